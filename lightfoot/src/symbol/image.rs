//! One ELF file's names: what is where, read once, completed as addresses ask for it.

use super::table::{Candidate, Found, Size, Table};
use super::{debug_file, dwarf, frame, plt};
use object::elf::{PF_X, PT_LOAD, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolFlags};
use std::ops::Range;
use std::path::Path;

/// A 64-bit little-endian ELF file, parsed.
pub(super) type File<'data> = ElfFile64<'data, object::LittleEndian>;

/// An executable segment.
#[derive(Clone, Debug)]
struct Segment {
    offsets: Range<u64>,
    address: u64,
}

/// A section of code.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    range: Range<u64>,
}

/// A part of the file that belongs to one symbol; addresses are the file's own.
#[derive(Clone, Debug)]
pub(super) struct Span {
    symbol: usize,
    pub(super) range: Range<u64>,
}

/// Which symbol tables a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// The full one.
    Full,
    /// Only exported names.
    Exported,
}

/// The file.
#[derive(Debug)]
pub(super) struct Image {
    name: String,
    bytes: Vec<u8>,
    debug: Option<Vec<u8>>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    table: Table,
    coverage: Coverage,
    frames: Option<Vec<Range<u64>>>,
    names: Option<Option<dwarf::Names>>,
}

impl Image {
    /// Reads symbol tables; `None` where the bytes are not a 64-bit ELF file.
    pub(super) fn new(path: &Path, bytes: Vec<u8>) -> Option<Image> {
        let file = File::parse(&*bytes).ok()?;
        let segments = segments(&file);
        let sections = sections(&file);
        let mut candidates = Vec::new();
        let mut debug = None;
        collect(&file, &sections, &mut candidates);
        let mut coverage = Coverage::Full;
        if file.symbol_table().is_none() {
            debug = debug_file::bytes(&file, path);
            let parsed = debug.as_deref().and_then(|bytes| File::parse(bytes).ok());
            let parsed = parsed.filter(|file| file.symbol_table().is_some());
            match &parsed {
                Some(file) => collect(file, &sections, &mut candidates),
                None => coverage = Coverage::Exported,
            }
        }
        candidates.extend(plt::stubs(&file));
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let frames = candidates.iter().any(|c| c.size == Size::Guessed).then(|| frame::functions(&file));
        shorten_guesses(&mut candidates, frames.as_deref().unwrap_or_default());
        let table = Table::new(candidates);
        Some(Image { name, bytes, debug, segments, sections, table, coverage, frames, names: None })
    }

    /// Whether only exported functions have names.
    pub(super) fn is_stripped(&self) -> bool {
        self.coverage == Coverage::Exported
    }

    /// The address that the file gives to what lies at `offset`.
    pub(super) fn link_address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.offsets.contains(&offset))?;
        Some(offset - segment.offsets.start + segment.address)
    }

    /// The symbol at `address`; makes one where none is known.
    pub(super) fn find(&mut self, address: u64) -> Span {
        match self.table.find(address) {
            Found::Symbol(symbol, range) => Span { symbol, range },
            Found::Gap(gap) => self.name_gap(gap, address),
        }
    }

    /// The symbol's number as a function; `intern` gives one to a symbol that has none yet.
    pub(super) fn function(&mut self, span: &Span, intern: impl FnOnce(String, u64) -> usize) -> usize {
        let symbol = &mut self.table.symbols[span.symbol];
        *symbol.function.get_or_insert_with(|| intern(symbol.name.clone(), symbol.address))
    }

    /// Names the part of a gap around `address`: a function of the unwind tables, or the gap itself within its section.
    fn name_gap(&mut self, gap: Range<u64>, address: u64) -> Span {
        let section = self.sections.iter().find(|section| section.range.contains(&address)).cloned();
        let section = section.unwrap_or_else(|| Section { name: String::new(), range: gap.clone() });
        let bounds = intersection(&section.range, &gap);
        let (range, name) = match self.frame(address).filter(|_| !section.name.starts_with(".plt")) {
            Some(frame) => {
                let name = self.dwarf_name(frame.start);
                let name = name.unwrap_or_else(|| format!("{}+{:#x}", self.name, frame.start));
                (intersection(&bounds, &frame), name)
            }
            None => {
                let range = self.between_frames(bounds, address);
                let name = match section.name.as_str() {
                    "" | ".text" => format!("{}+{:#x}", self.name, range.start),
                    other => format!("{}{other}", self.name),
                };
                (range, name)
            }
        };
        Span { symbol: self.table.insert(range.clone(), name), range }
    }

    /// The part of `bounds` around `address` that no function of the unwind tables claims.
    fn between_frames(&self, bounds: Range<u64>, address: u64) -> Range<u64> {
        let frames = self.frames.as_deref().unwrap_or_default();
        let after = frames.partition_point(|frame| frame.start <= address);
        let start = after.checked_sub(1).map_or(0, |before| frames[before].end);
        let end = frames.get(after).map_or(u64::MAX, |frame| frame.start);
        intersection(&bounds, &(start..end))
    }

    fn frame(&mut self, address: u64) -> Option<Range<u64>> {
        let bytes = &self.bytes;
        let frames = self.frames.get_or_insert_with(|| {
            File::parse(&**bytes).map(|file| frame::functions(&file)).unwrap_or_default()
        });
        let before = frames.partition_point(|frame| frame.start <= address).checked_sub(1)?;
        Some(frames[before].clone()).filter(|frame| frame.contains(&address))
    }

    fn dwarf_name(&mut self, address: u64) -> Option<String> {
        let bytes = self.debug.as_ref().unwrap_or(&self.bytes);
        let names = self
            .names
            .get_or_insert_with(|| File::parse(&**bytes).ok().and_then(|file| dwarf::Names::new(&file)));
        names.as_ref()?.function(address)
    }
}

/// A symbol without a size ends at the latest where the unwind tables start another function.
fn shorten_guesses(candidates: &mut [Candidate], frames: &[Range<u64>]) {
    for candidate in candidates.iter_mut().filter(|c| c.size == Size::Guessed) {
        let next = frames.partition_point(|frame| frame.start <= candidate.range.start);
        if let Some(frame) = frames.get(next) {
            candidate.range.end = candidate.range.end.min(frame.start);
        }
    }
}

fn intersection(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

fn segments(file: &File<'_>) -> Vec<Segment> {
    let endian = file.endian();
    let headers = file.elf_program_headers().iter();
    let executable = headers.filter(|h| h.p_type(endian) == PT_LOAD && h.p_flags(endian).contains(PF_X));
    let segment = |h: &_| {
        let header: &object::elf::ProgramHeader64<object::LittleEndian> = h;
        let start = header.p_offset(endian);
        Segment {
            offsets: start..start.saturating_add(header.p_filesz(endian)),
            address: header.p_vaddr(endian),
        }
    };
    executable.map(segment).collect()
}

fn sections(file: &File<'_>) -> Vec<Section> {
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let section = |s: object::read::elf::ElfSection64<'_, '_, object::LittleEndian>| Section {
        name: s.name().unwrap_or_default().to_owned(),
        range: s.address()..s.address().saturating_add(s.size()),
    };
    code.map(section).collect()
}

/// Function symbols of both symbol tables.
fn collect(file: &File<'_>, sections: &[Section], candidates: &mut Vec<Candidate>) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let address = symbol.address();
        let section = sections.iter().find(|section| section.range.contains(&address));
        let (Some(section), Ok(name)) = (section, symbol.name()) else { continue };
        if name.is_empty() || symbol.is_undefined() {
            continue;
        }
        let rank = match (st_info.st_type(), symbol.is_local(), symbol.is_weak()) {
            (STT_FUNC | STT_GNU_IFUNC, false, false) => 0,
            (STT_FUNC | STT_GNU_IFUNC, false, true) => 1,
            (STT_FUNC | STT_GNU_IFUNC, true, _) => 2,
            (STT_NOTYPE, ..) => 4,
            _ => continue,
        };
        let (end, size) = match symbol.size() {
            0 => (section.range.end, Size::Guessed),
            bytes => (address.saturating_add(bytes), Size::Stated),
        };
        candidates.push(Candidate { range: address..end, name: name.to_owned(), rank, size });
    }
}
