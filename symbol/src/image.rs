//! The names of one ELF file, by address. Symbol tables are read at once, other sources when an
//! address needs them.

use crate::elf::{code_segments, File, Segment};
use crate::source::Sources;
use crate::sparse::{identity, Sparse};
use crate::strings::{FunctionName, Strings};
use crate::table::{At, Candidate, Name, Size, Table};
use crate::{debug_file, dwarf, frame, kept_symbols, plt};
use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::Sym;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolFlags};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

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
    /// The names of the symbols in the table.
    strings: Option<Arc<Strings>>,
    /// The names of dynamic symbols, if stubs were named after them.
    dynamic_strings: Option<Arc<Strings>>,
    coverage: Coverage,
    filled: Filled,
    /// Whether the table has more than what is kept of it; `None` if it was not asked for.
    is_new: Option<bool>,
    /// They are not taken apart when the process ends, which would take milliseconds.
    names: Option<Option<ManuallyDrop<dwarf::Names>>>,
}

impl Image {
    /// Reads the symbol tables, or what is kept of them in the folder `kept_in`; `None` if the
    /// bytes are not a 64-bit ELF file.
    pub(crate) fn new(path: &Path, mut own: Sparse, kept_in: Option<&Path>) -> Option<Image> {
        own.load(|name| name == ".gnu_debuglink" || name.starts_with(".note"));
        let file = own.parse()?;
        let (segments, sections) = (code_segments(&file), sections(&file));
        let has_symbols = file.symbol_table().is_some();
        let debug = if has_symbols { None } else { debug_file::find(&file, path) };
        let is_listed =
            debug.as_ref().and_then(Sparse::parse).is_some_and(|debug| debug.symbol_table().is_some());
        let strings = match (is_listed, has_symbols) {
            (_, true) => own.strings(".strtab"),
            (true, false) => debug.as_ref().and_then(|debug| debug.strings(".strtab")),
            (false, false) => own.strings(".dynstr"),
        };
        let coverage = if has_symbols || is_listed { Coverage::Full } else { Coverage::Exported };
        let kept =
            kept_in.and_then(|folder| kept_symbols::read(folder, path, &identity_of(&own, debug.as_ref())?));
        let is_new = kept_in.map(|_| kept.is_none());
        let mut dynamic_strings = None;
        let (table, filled) = match kept {
            Some((table, is_filled)) => {
                dynamic_strings = own.strings(".dynstr").filter(|_| is_filled).map(Arc::new);
                (table, if is_filled { Filled::Yes } else { Filled::No })
            }
            None => {
                let mut candidates = Vec::new();
                match (&debug, has_symbols) {
                    (_, true) => {
                        own.load(|name| name == ".symtab");
                        collect(own.parse()?.symbols(), &sections, &mut candidates);
                    }
                    (Some(debug), false) if is_listed => {
                        collect(debug.parse()?.symbols(), &sections, &mut candidates);
                    }
                    _ => {
                        own.load(|name| name == ".dynsym");
                        collect(own.parse()?.dynamic_symbols(), &sections, &mut candidates);
                    }
                }
                (Table::new(candidates), Filled::No)
            }
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let (strings, names) = (strings.map(Arc::new), None);
        Some(Image {
            name,
            own,
            debug,
            segments,
            sections,
            table,
            strings,
            dynamic_strings,
            coverage,
            filled,
            is_new,
            names,
        })
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
        self.changes();
        let Some(file) = self.own.parse() else { return };
        let relocations = plt::relocations(&file);
        let more = [".dynsym", ".eh_frame"].into_iter().chain(relocations.iter().copied());
        let more: Vec<&str> = more.collect();
        self.own.load(|name| more.contains(&name) || name.starts_with(".plt"));
        self.dynamic_strings = self.own.strings(".dynstr").map(Arc::new);
        let Some(file) = self.own.parse() else { return };
        self.table
            .insert_all(plt::stubs(&file, &relocations).into_iter().map(|stub| (stub.range, stub.name)));
        let plt = self.sections.iter().filter(|section| section.name.starts_with(".plt"));
        let plt: Vec<Range<u64>> = plt.map(|section| section.range.clone()).collect();
        let mut frames = frame::functions(&file);
        frames.retain(|frame| !plt.iter().any(|plt| plt.contains(&frame.start)));
        self.table.fill(&frames);
    }

    /// The number of the symbol's function; `intern` gives a number to a symbol that has none.
    pub(crate) fn function(&mut self, span: &Span, intern: impl FnOnce(FunctionName, u64) -> usize) -> usize {
        if let Some(function) = self.table.symbols[span.symbol].function {
            return function;
        }
        let address = self.table.symbols[span.symbol].address;
        let name = match self.table.symbols[span.symbol].name.clone() {
            Name::Written(name) => name.into(),
            Name::Listed(offset) => named(&self.strings, vec![offset], ""),
            Name::Aliases(offsets) => named(&self.strings, offsets, ""),
            Name::Stub(offset) => named(&self.dynamic_strings, vec![offset], "@plt"),
            Name::Unnamed => {
                self.dwarf_name(address).unwrap_or_else(|| format!("{}+{address:#x}", self.name)).into()
            }
        };
        let function = intern(name, address);
        self.table.symbols[span.symbol].function = Some(function);
        function
    }

    /// Creates a symbol for the part of a gap that lies in the section of `address`.
    fn name_gap(&mut self, gap: Range<u64>, address: u64) -> Span {
        self.changes();
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
        identity_of(&self.own, self.debug.as_ref())
    }

    /// Keeps the table in `folder` for later runs, if it was asked for there and has more than what
    /// is kept.
    pub(crate) fn keep_symbols(&mut self, folder: &Path, path: &Path) {
        if self.is_new == Some(true) {
            self.is_new = Some(false);
            let Some(identity) = self.identity() else { return };
            kept_symbols::write(folder, (path, &identity), &self.table, self.filled == Filled::Yes);
        }
    }

    /// Notes that the table has more than what is kept.
    fn changes(&mut self) {
        self.is_new = self.is_new.map(|_| true);
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

/// Numbers that change with a file, with its debug file and with this program; `None` if there is
/// no file.
fn identity_of(own: &Sparse, debug: Option<&Sparse>) -> Option<Vec<u64>> {
    let reader = std::fs::metadata("/proc/self/exe").ok()?;
    let mut numbers = [identity(&reader), own.identity()?].concat();
    numbers.extend(debug.and_then(Sparse::identity).unwrap_or_default());
    Some(numbers)
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
    sections: &[Section],
    candidates: &mut Vec<Candidate>,
) {
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
        let name = Name::Listed(symbol.elf_symbol().st_name(symbol.endian()));
        candidates.push(Candidate { range: address..end, name, rank, size });
    }
}

/// The name at these offsets of a string table.
fn named(strings: &Option<Arc<Strings>>, offsets: Vec<u32>, behind: &'static str) -> FunctionName {
    match strings {
        Some(strings) => FunctionName::listed(strings.clone(), offsets, behind),
        None => String::new().into(),
    }
}
