//! All debug information of a file for readers that look for more than names and lines, such as
//! types and places of variables.
//!
//! **Why.** Such readers know what they need of DWARF; this module knows where it is: in the file
//! itself or in its separate debug file, compressed or not. **Leaves out** what several files
//! share (`.gnu_debugaltlink`), and split debug information.

use crate::debug_file;
use crate::elf::{code_segments, Segment};
use crate::sparse::Sparse;
use gimli::{BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use object::{Object, ObjectSection};
use std::path::Path;

/// Reads the bytes of a section, which stay until the process ends: a file is read once a run.
pub type SectionReader = EndianSlice<'static, LittleEndian>;

/// The debug information of one file.
pub struct DebugSections {
    /// The sections.
    pub dwarf: gimli::Dwarf<SectionReader>,
    segments: Vec<Segment>,
    /// The unwind table of the file itself.
    frames: Option<(EhFrame<SectionReader>, BaseAddresses)>,
}

/// The number of the stack pointer in DWARF.
const RSP: gimli::Register = gimli::Register(7);

impl DebugSections {
    /// Reads the debug information of the file at `path`; `None` if there is none.
    pub fn read(path: &Path) -> Option<DebugSections> {
        let mut own = Sparse::open(path)?;
        own.load(|name| name.starts_with(".note") || name == ".gnu_debuglink");
        let file = own.parse()?;
        let segments = code_segments(&file);
        let table = file.section_by_name(".eh_frame").map(|section| section.address());
        let separate = match file.section_by_name(".debug_info") {
            Some(_) => None,
            None => Some(debug_file::find(&file, path)?),
        };
        let frames = table.and_then(|address| {
            let table = EhFrame::new(own.section(".eh_frame")?.leak(), LittleEndian);
            Some((table, BaseAddresses::default().set_eh_frame(address)))
        });
        let mut source = separate.unwrap_or(own);
        source.parse()?.section_by_name(".debug_info")?;
        let load = |id: gimli::SectionId| -> Result<SectionReader, gimli::Error> {
            let wanted = Some(id.name()).filter(|name| !name.starts_with(".debug_mac"));
            let contents = wanted.and_then(|name| source.section(name)).unwrap_or_default();
            Ok(EndianSlice::new(contents.leak(), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        Some(DebugSections { dwarf, segments, frames })
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

    /// How far below the frame's canonical address the stack pointer is in the body of the function
    /// with the code at a link address: at most of its code, since prologues and epilogues move it.
    /// `None` where the unwind table counts from another register, or does not know. Cost: the
    /// table is read up to the function.
    pub fn stack_distance(&self, address: u64) -> Option<u64> {
        let (frames, bases) = self.frames.as_ref()?;
        let entry = frames.fde_for_address(bases, address, EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let mut rows = entry.rows(frames, bases, &mut context).ok()?;
        // Distances, each with the bytes of code at which it holds. An aligned frame counts from
        // the stack pointer in its prologue alone.
        let mut found: Vec<(Option<u64>, u64)> = Vec::new();
        while let Ok(Some(row)) = rows.next_row() {
            let distance = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } if *register == RSP => {
                    u64::try_from(*offset).ok()
                }
                _ => None,
            };
            let bytes = row.end_address().saturating_sub(row.start_address());
            match found.iter_mut().find(|known| known.0 == distance) {
                Some(known) => known.1 += bytes,
                None => found.push((distance, bytes)),
            }
        }
        found.into_iter().max_by_key(|known| known.1)?.0
    }
}
