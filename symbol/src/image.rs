//! The names of one ELF file, by address. Symbol tables are read at once, other sources when an
//! address needs them.

use crate::elf::{code_segments, File, Segment};
use crate::source::Sources;
use crate::sparse::{identity, Sparse};
use crate::table::{At, Candidate, List, Listed, Name, Size, Table};
use crate::{debug_file, dwarf, frame, plt};
use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SectionKind, SymbolFlags, SymbolIndex};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::Path;

/// A section of code.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    range: Range<u64>,
}

/// A range of link addresses that belongs to one symbol.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    symbol: usize,
    pub(crate) range: Range<u64>,
}

/// Which symbol tables a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// The full symbol table.
    Full,
    /// Only the table of exported names: the file is stripped.
    Exported,
}

/// Which sources besides symbol tables have been added to the table of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// None.
    No,
    /// Stubs of the procedure linkage table and unwind tables.
    Yes,
}

/// A file, with its symbols.
#[derive(Debug)]
pub(crate) struct Image {
    name: String,
    own: Sparse,
    debug: Option<Sparse>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    table: Table,
    coverage: Coverage,
    filled: Filled,
    /// They are not taken apart when the process ends, which would take milliseconds.
    names: Option<Option<ManuallyDrop<dwarf::Names>>>,
}

impl Image {
    /// Reads the symbol tables; `None` if the bytes are not a 64-bit ELF file.
    pub(crate) fn new(path: &Path, mut own: Sparse) -> Option<Image> {
        let symbols = [".symtab", ".strtab", ".dynsym", ".dynstr", ".gnu_debuglink"];
        own.load(|name| symbols.contains(&name) || name.starts_with(".note"));
        let file = own.parse()?;
        let (segments, sections) = (code_segments(&file), sections(&file));
        let mut debug = None;
        if file.symbol_table().is_none() {
            debug = debug_file::find(&file, path);
        }
        let mut candidates = Vec::new();
        let listed = debug.as_ref().and_then(Sparse::parse).filter(|debug| debug.symbol_table().is_some());
        let coverage = match (&listed, file.symbol_table()) {
            (Some(debug), None) => collect(debug.symbols(), List::Debug, &sections, &mut candidates),
            (_, Some(_)) => collect(file.symbols(), List::Own, &sections, &mut candidates),
            (None, None) => {
                collect(file.dynamic_symbols(), List::Exported, &sections, &mut candidates);
                Coverage::Exported
            }
        };
        let table = Table::new(candidates, |name| match name {
            Name::Listed(listed_as) => text(*listed_as, &file, listed.as_ref()).to_owned(),
            _ => String::new(),
        });
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let (filled, names) = (Filled::No, None);
        Some(Image { name, own, debug, segments, sections, table, coverage, filled, names })
    }

    /// Whether only exported functions have names.
    pub(crate) fn is_stripped(&self) -> bool {
        self.coverage == Coverage::Exported
    }

    /// The link address of the byte at `offset` of the file.
    pub(crate) fn link_address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.address_of(offset))
    }

    /// The symbol at link address `address`; a new one without a known name if there is none.
    pub(crate) fn find(&mut self, address: u64) -> Span {
        match (self.table.find(address), self.filled) {
            (At::Symbol(symbol, range, Size::Stated), _) | (At::Symbol(symbol, range, _), Filled::Yes) => {
                Span { symbol, range }
            }
            (_, Filled::No) => {
                self.fill();
                self.find(address)
            }
            (At::Gap(gap), Filled::Yes) => self.name_gap(gap, address),
        }
    }

    /// Fills the gaps between symbols with stubs and then with functions of the unwind tables.
    fn fill(&mut self) {
        self.filled = Filled::Yes;
        let more = [".rela.plt", ".rela.dyn", ".eh_frame"];
        self.own.load(|name| more.contains(&name) || name.starts_with(".plt"));
        let Some(file) = self.own.parse() else { return };
        self.table.insert_all(plt::stubs(&file).into_iter().map(|stub| (stub.range, stub.name)));
        let plt = self.sections.iter().filter(|section| section.name.starts_with(".plt"));
        let plt: Vec<Range<u64>> = plt.map(|section| section.range.clone()).collect();
        let mut frames = frame::functions(&file);
        frames.retain(|frame| !plt.iter().any(|plt| plt.contains(&frame.start)));
        self.table.fill(&frames);
    }

    /// The number of the symbol's function; `intern` gives a number to a symbol that has none.
    pub(crate) fn function(&mut self, span: &Span, intern: impl FnOnce(String, u64) -> usize) -> usize {
        if let Some(function) = self.table.symbols[span.symbol].function {
            return function;
        }
        let address = self.table.symbols[span.symbol].address;
        let name = match self.table.symbols[span.symbol].name.clone() {
            Name::Written(name) => name,
            Name::Listed(listed) => self.listed(listed).unwrap_or_default(),
            Name::Unnamed => {
                self.dwarf_name(address).unwrap_or_else(|| format!("{}+{address:#x}", self.name))
            }
        };
        let function = intern(name, address);
        self.table.symbols[span.symbol].function = Some(function);
        function
    }

    fn listed(&self, listed: Listed) -> Option<String> {
        let own = self.own.parse()?;
        let debug = self.debug.as_ref().and_then(Sparse::parse);
        Some(text(listed, &own, debug.as_ref()).to_owned())
    }

    /// Creates a symbol for the part of a gap that lies in the section of `address`.
    fn name_gap(&mut self, gap: Range<u64>, address: u64) -> Span {
        let section = self.sections.iter().find(|section| section.range.contains(&address)).cloned();
        let section = section.unwrap_or_else(|| Section { name: String::new(), range: gap.clone() });
        let range = intersection(&section.range, &gap);
        let name = match section.name.as_str() {
            "" | ".text" => format!("{}+{:#x}", self.name, range.start),
            other => format!("{}{other}", self.name),
        };
        Span { symbol: self.table.insert(range.clone(), Name::Written(name)), range }
    }

    fn dwarf_name(&mut self, address: u64) -> Option<String> {
        self.dwarf()?.function(address)
    }

    /// Numbers that change with the file, with its debug file and with this program, which finds
    /// lines in them; `None` if there is no file.
    pub(crate) fn identity(&self) -> Option<Vec<u64>> {
        let reader = std::fs::metadata("/proc/self/exe").ok()?;
        let mut identity = [identity(&reader), self.own.identity()?].concat();
        identity.extend(self.debug.as_ref().and_then(Sparse::identity).unwrap_or_default());
        Some(identity)
    }

    /// The number in `sources` of the innermost frame at link address `address`.
    pub(crate) fn frame(&mut self, address: u64, sources: &mut Sources) -> Option<u32> {
        self.dwarf()?.frame(address, sources)
    }

    /// The numbers in `sources` of the innermost frames at ascending link addresses.
    pub(crate) fn frames(
        &mut self,
        addresses: impl Iterator<Item = u64>,
        sources: &mut Sources,
        mut found: impl FnMut(Option<u32>),
    ) {
        let Some(names) = self.dwarf() else { return addresses.for_each(|_| found(None)) };
        let mut last = dwarf::Last::default();
        addresses.for_each(|address| found(names.next_frame(address, sources, &mut last)));
    }

    /// Whether debug information was read.
    pub(crate) fn has_lines(&self) -> bool {
        self.names.as_ref().is_some_and(Option::is_some)
    }

    fn dwarf(&mut self) -> Option<&dwarf::Names> {
        let source = self.debug.as_mut().unwrap_or(&mut self.own);
        let names = self.names.get_or_insert_with(|| {
            dwarf::Names::new(|section| source.section(section)).map(ManuallyDrop::new)
        });
        names.as_deref()
    }
}

fn intersection(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

fn sections(file: &File<'_>) -> Vec<Section> {
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let section = |s: object::read::elf::ElfSection64<'_, '_, object::LittleEndian>| Section {
        name: s.name().unwrap_or_default().to_owned(),
        range: s.address()..s.address().saturating_add(s.size()),
    };
    code.map(section).collect()
}

/// The second half of the dynamic linker's `_start`, behind its call of `_dl_start`. It is a label
/// in that function, which leads to the program; as a function of its own it would have no caller.
const LABEL_OF_START: &[u8] = b"_dl_start_user";

/// Adds the function symbols of one table to `candidates`.
fn collect<'data: 'file, 'file>(
    symbols: impl Iterator<Item = object::read::elf::ElfSymbol64<'data, 'file, object::LittleEndian>>,
    list: List,
    sections: &[Section],
    candidates: &mut Vec<Candidate>,
) -> Coverage {
    for symbol in symbols {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let rank = match (st_info.st_type(), symbol.is_local(), symbol.is_weak()) {
            (STT_FUNC | STT_GNU_IFUNC, false, false) => 0,
            (STT_FUNC | STT_GNU_IFUNC, false, true) => 1,
            (STT_FUNC | STT_GNU_IFUNC, true, _) => 2,
            (STT_NOTYPE, ..) if symbol.name_bytes().is_ok_and(|name| name == LABEL_OF_START) => continue,
            (STT_NOTYPE, ..) => 4,
            _ => continue,
        };
        let address = symbol.address();
        let section = sections.iter().find(|section| section.range.contains(&address));
        let Some(section) = section.filter(|_| !symbol.is_undefined()) else { continue };
        let (end, size) = match symbol.size() {
            0 => (section.range.end, Size::Guessed),
            bytes => (address.saturating_add(bytes), Size::Stated),
        };
        let name = Name::Listed(Listed { list, index: symbol.index().0 });
        candidates.push(Candidate { range: address..end, name, rank, size });
    }
    Coverage::Full
}

/// The name of a symbol table's entry, without the version that a linker appends.
fn text<'a>(listed: Listed, own: &File<'a>, debug: Option<&File<'a>>) -> &'a str {
    let index = SymbolIndex(listed.index);
    let table = match listed.list {
        List::Own => own.symbol_table(),
        List::Exported => own.dynamic_symbol_table(),
        List::Debug => debug.and_then(|debug| debug.symbol_table()),
    };
    let symbol = table.and_then(|table| table.symbol_by_index(index).ok());
    let name = symbol.and_then(|symbol| symbol.name().ok()).unwrap_or("?");
    name.split_once('@').map_or(name, |(name, _)| name)
}
