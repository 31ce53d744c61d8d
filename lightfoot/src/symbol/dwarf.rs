//! Function names from DWARF, for functions that no symbol table names.

use super::image::File;
use gimli::{EndianArcSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::sync::Arc;

/// Parsed debug information of one file; units are read as they are asked for.
pub(super) struct Names {
    context: addr2line::Context<EndianArcSlice<LittleEndian>>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Names {
    /// `None` where the file has no (readable) debug information.
    pub(super) fn new(file: &File<'_>) -> Option<Names> {
        file.section_by_name(".debug_info")?;
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let section = file.section_by_name(id.name());
            let bytes = section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default();
            Ok(EndianArcSlice::new(Arc::from(&*bytes), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        Some(Names { context: addr2line::Context::from_dwarf(dwarf).ok()? })
    }

    /// The function at `address`, not what is inlined into it.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        let mut name = None;
        while let Ok(Some(frame)) = frames.next() {
            name = frame.function;
        }
        name?.raw_name().ok().map(|name| name.into_owned())
    }
}
