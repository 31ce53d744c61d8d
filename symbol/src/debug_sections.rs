//! All debug information of a file for readers that look for more than names and lines, such as
//! types and places of variables.
//!
//! **Why.** Such readers know what they need of DWARF; this module knows where it is: in the file
//! itself or in its separate debug file, compressed or not. **Leaves out** what several files
//! share (`.gnu_debugaltlink`), and split debug information.

use crate::debug_file;
use crate::elf::{code_segments, Segment};
use crate::sparse::Sparse;
use gimli::{EndianSlice, LittleEndian};
use object::Object;
use std::path::Path;

/// Reads the bytes of a section, which stay until the process ends: a file is read once a run.
pub type SectionReader = EndianSlice<'static, LittleEndian>;

/// The debug information of one file.
pub struct DebugSections {
    /// The sections.
    pub dwarf: gimli::Dwarf<SectionReader>,
    segments: Vec<Segment>,
}

impl DebugSections {
    /// Reads the debug information of the file at `path`; `None` if there is none.
    pub fn read(path: &Path) -> Option<DebugSections> {
        let mut own = Sparse::open(path)?;
        own.load(|name| name.starts_with(".note") || name == ".gnu_debuglink");
        let file = own.parse()?;
        let segments = code_segments(&file);
        let mut source = match file.section_by_name(".debug_info") {
            Some(_) => own,
            None => debug_file::find(&file, path)?,
        };
        source.parse()?.section_by_name(".debug_info")?;
        let load = |id: gimli::SectionId| -> Result<SectionReader, gimli::Error> {
            let wanted = Some(id.name()).filter(|name| !name.starts_with(".debug_mac"));
            let contents = wanted.and_then(|name| source.section(name)).unwrap_or_default();
            Ok(EndianSlice::new(contents.leak(), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        Some(DebugSections { dwarf, segments })
    }

    /// Whether the file at `path` has its debug information in itself, not in a separate file.
    /// Reads headers only.
    pub fn lie_in(path: &Path) -> bool {
        let own = Sparse::open(path);
        own.is_some_and(|own| own.parse().is_some_and(|file| file.section_by_name(".debug_info").is_some()))
    }

    /// The link address of the code at `offset` of the file.
    pub fn link_address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.address_of(offset))
    }
}
