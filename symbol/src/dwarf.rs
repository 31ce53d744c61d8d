//! Queries DWARF debug information: the function at an address, for addresses that no symbol table
//! covers, and source lines with their inlined frames.

use crate::source::{Frame, Sources};
use gimli::{EndianSlice, LittleEndian};
use std::collections::HashSet;
use std::sync::Arc;

/// Sections that are not needed: locations of variables and macros, often half of all debug
/// information.
const UNREAD: &[&str] = &[".debug_loc", ".debug_loclists", ".debug_macro", ".debug_macinfo"];

/// Bytes of sections.
///
/// They live until the process ends: a file is read once a run, and slices that borrow from nothing
/// are read a good deal faster than shared ones.
type Bytes = EndianSlice<'static, LittleEndian>;

/// Parsed debug information of one file; compilation units are parsed when they are first needed.
pub(crate) struct Names {
    context: addr2line::Context<Bytes>,
    dwarf: Arc<gimli::Dwarf<Bytes>>,
}

/// Identifies a frame without its name: offset of its function's description, address of its file's
/// name within one unit, line.
type Mark = (Option<usize>, Option<*const u8>, Option<u32>);

/// The frames of the address that was looked up last.
#[derive(Default)]
pub(crate) struct Last {
    marks: Vec<Mark>,
    innermost: Option<u32>,
}

/// Stores the name of the last frame of `frames`.
fn name_last<R: gimli::Reader>(frames: &mut [Frame<'_>], name: Option<addr2line::FunctionName<R>>) {
    if let Some(frame) = frames.last_mut() {
        frame.function = name.as_ref().and_then(|name| Some(name.raw_name().ok()?.into_owned()));
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Names {
    /// Parses the debug information whose sections `read` gives by name; `None` if there is none
    /// that can be read.
    pub(crate) fn new(mut read: impl FnMut(&str) -> Option<Vec<u8>>) -> Option<Names> {
        let mut info = Some(read(gimli::SectionId::DebugInfo.name())?);
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let contents = match id {
                gimli::SectionId::DebugInfo => info.take(),
                _ => Some(id.name()).filter(|name| !UNREAD.contains(name)).and_then(&mut read),
            };
            Ok(EndianSlice::new(contents.unwrap_or_default().leak(), LittleEndian))
        };
        let dwarf = Arc::new(gimli::Dwarf::load(load).ok()?);
        Some(Names { context: addr2line::Context::from_arc_dwarf(dwarf.clone()).ok()?, dwarf })
    }

    /// The name of the function at `address`, not that of a function inlined there.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        let mut name = None;
        while let Ok(Some(frame)) = frames.next() {
            name = frame.function;
        }
        name?.raw_name().ok().map(|name| name.into_owned())
    }

    /// Adds the frames of `address` to `sources` and returns the number of the innermost one.
    pub(crate) fn frame(&self, address: u64, sources: &mut Sources) -> Option<u32> {
        let mut found = self.context.find_frames(address).skip_all_loads().ok()?;
        let mut frames = Vec::new();
        // The function of the last frame: only if the next frame exists is it an inlined one whose
        // name is needed, and names are copied.
        let mut inlined: Option<addr2line::FunctionName<_>> = None;
        // If debug information is damaged, the frames before the damage still hold.
        while let Ok(Some(frame)) = found.next() {
            name_last(&mut frames, inlined.take());
            let (file, line) = frame.location.map_or((None, None), |location| (location.file, location.line));
            frames.push(Frame { function: None, file, line });
            inlined = frame.function;
        }
        sources.enter(&frames)
    }

    /// Returns [`Names::frame`] of an address behind the `last` one. It most often has the same
    /// frames, which then need no names and no search.
    pub(crate) fn next_frame(&self, address: u64, sources: &mut Sources, last: &mut Last) -> Option<u32> {
        let mut found = self.context.find_frames(address).skip_all_loads().ok()?;
        let (mut depth, mut same) = (0, true);
        while let Ok(Some(frame)) = found.next() {
            let (file, line) = frame.location.map_or((None, None), |location| (location.file, location.line));
            let mark = (frame.dw_die_offset.map(|offset| offset.0), file.map(str::as_ptr), line);
            same &= last.marks.get(depth) == Some(&mark);
            last.marks.truncate(if same { last.marks.len() } else { depth });
            if !same {
                last.marks.push(mark);
            }
            depth += 1;
        }
        if !same || last.marks.len() > depth {
            last.marks.truncate(depth);
            last.innermost = self.frame(address, sources);
        }
        last.innermost
    }

    /// The first addresses of the ranges of code of a line, in order; `file` is the end of a path.
    /// An optimiser may scatter a line: then only ranges that begin a statement count, if the
    /// compiler marks these.
    pub(crate) fn line(&self, file: &str, line: u32) -> Vec<u64> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let Ok(pieces) = self.context.find_location_range(0, u64::MAX) else { return Vec::new() };
        let own = |name: Option<&str>| name.is_some_and(|name| std::path::Path::new(name).ends_with(file));
        for (start, bytes, _) in pieces.filter(|(_, _, place)| place.line == Some(line) && own(place.file)) {
            match found.last_mut() {
                Some((_, end)) if *end == start => *end += bytes,
                _ => found.push((start, start + bytes)),
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|piece| piece.0);
        let pieces: Vec<u64> = found.into_iter().map(|piece| piece.0).collect();
        let statements = self.statements(line);
        let begun: Vec<u64> = pieces.iter().copied().filter(|start| statements.contains(start)).collect();
        if begun.is_empty() {
            pieces
        } else {
            begun
        }
    }

    /// The addresses at which statements of a line begin, in any file.
    fn statements(&self, line: u32) -> HashSet<u64> {
        let mut found = HashSet::new();
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            while let Ok(Some((_, row))) = rows.next_row() {
                if row.is_stmt() && !row.end_sequence() && row.line().map(|l| l.get()) == Some(line.into()) {
                    found.insert(row.address());
                }
            }
        }
        found
    }
}
