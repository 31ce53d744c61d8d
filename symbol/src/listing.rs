//! Finds addresses by names: lists all functions and variables of a file, its source lines, and the
//! libraries that it needs.
//!
//! The rest of this crate answers the opposite question. A file is listed once, before a program
//! runs, so it is read whole. Names come from the full symbol table, of the file or of its debug
//! file, and from the table of exported names. A function without a symbol is listed by the name
//! that reports give it, `FILE+0xADDRESS`, if the unwind tables state its range: so the functions
//! of a stripped program can be named too. Addresses are link addresses; [`Listing::mapped`]
//! converts them to those of a running program. **Leaves out** functions with neither a symbol nor
//! unwind information, and the choice of a library if several export the same name. Source: System
//! V ABI, chapters 4 and 5; Linux Standard Base 5, section 10.6.1.

use crate::debug_file;
use crate::dwarf::Names;
use crate::elf::{code_segments, File, Segment};
use crate::frame;
use instrument::Module;
use object::elf::{STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::{Object, ObjectSection, ObjectSymbol, SymbolFlags};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The kind of thing that a name denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Code.
    Function,
    /// A resolver (`IFUNC`): a function that the dynamic linker calls in order to choose the
    /// function that the name denotes.
    Indirect,
    /// Data.
    Variable,
}

/// A named function or variable of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Its link address.
    pub address: u64,
    /// Its length in bytes; 0 if unknown.
    pub size_bytes: u64,
    /// Whether it is a function, a resolver or data.
    pub kind: Kind,
    /// Its name in the symbol table, without a version.
    pub name: String,
    /// The source file of a local name, if the table states it.
    pub source: Option<String>,
}

/// All names of a file.
#[derive(Debug)]
pub struct Listing {
    /// Path of the file, with links resolved.
    pub path: PathBuf,
    /// The names, sorted by address.
    pub names: Vec<Named>,
    /// Link addresses of the sections of code.
    pub text: Vec<Range<u64>>,
    /// Names and link addresses of the sections of data.
    pub data: Vec<(String, Range<u64>)>,
    /// The names of the libraries that it needs (`DT_NEEDED`).
    pub needed: Vec<String>,
    pub(crate) segments: Vec<Segment>,
    bytes: Vec<u8>,
}

impl Listing {
    /// Reads a file; `None` if it is not a 64-bit ELF file.
    pub fn read(path: &Path) -> Option<Listing> {
        let mut listing = Listing::of_symbols(path)?;
        let file = File::parse(&*listing.bytes).ok()?;
        listing.names.sort_unstable();
        let unnamed = unnamed(&file, &listing.path, &listing.names);
        listing.names.extend(unnamed);
        listing.names.sort_unstable();
        Some(listing)
    }

    /// Reads a file without the functions that no symbol names, which takes less time; `None` if it
    /// is not a 64-bit ELF file.
    pub fn of_symbols(path: &Path) -> Option<Listing> {
        let path = path.canonicalize().ok()?;
        let bytes = std::fs::read(&path).ok()?;
        let file = File::parse(&*bytes).ok()?;
        let mut names = BTreeMap::new();
        symbols(file.symbols(), &mut names);
        symbols(file.dynamic_symbols(), &mut names);
        if file.symbol_table().is_none() {
            let debug = debug_file::find(&file, &path);
            if let Some(debug) = debug.as_ref().and_then(|debug| debug.parse()) {
                symbols(debug.symbols(), &mut names);
            }
        }
        let names: Vec<Named> = names.into_values().collect();
        let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let text = code.map(|s| s.address()..s.address().saturating_add(s.size())).collect();
        let data = file.sections().filter(|section| is_data(section.kind()));
        let data = data.map(|s| {
            (s.name().unwrap_or_default().to_owned(), s.address()..s.address().saturating_add(s.size()))
        });
        let data = data.filter(|(_, range)| range.start > 0).collect();
        let (needed, segments) = (needed(&file), code_segments(&file));
        Some(Listing { names, text, data, needed, segments, bytes, path })
    }

    /// The address in a process that maps the file as `module` of link address `address`.
    pub fn mapped(&self, module: &Module, address: u64) -> Option<u64> {
        mapped(&self.segments, module, address)
    }

    /// The offset in the file of the code at link address `address`.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.offset_of(address))
    }

    /// The file's build id.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        let file = File::parse(&*self.bytes).ok()?;
        file.build_id().ok().flatten().map(<[u8]>::to_vec)
    }

    /// The first addresses of the ranges of code of a line; `file` is the end of a path. `None` if
    /// the file has no debug information.
    pub fn lines(&self, file: &str, line: u32) -> Option<Vec<u64>> {
        let own = File::parse(&*self.bytes).ok()?;
        let mut debug = None;
        if own.section_by_name(".debug_info").is_none() {
            debug = debug_file::find(&own, &self.path);
        }
        let names = match &mut debug {
            Some(debug) => Names::new(|section| debug.section(section)),
            None => Names::new(|section| {
                let section = own.section_by_name(section)?;
                section.uncompressed_data().ok().map(Cow::into_owned)
            }),
        };
        Some(names?.line(file, line))
    }
}

/// The address in a process that maps a file with these segments as `module` of link address
/// `address`.
pub(crate) fn mapped(segments: &[Segment], module: &Module, address: u64) -> Option<u64> {
    let begins =
        |s: &&Segment| s.offset < module.file_offset + 4096 && module.file_offset < s.offset + s.size_bytes;
    let segment = segments.iter().find(begins)?;
    let bias = module.start.wrapping_sub(module.file_offset).wrapping_add(segment.offset);
    Some(address.wrapping_sub(segment.address).wrapping_add(bias))
}

/// Whether sections of this kind hold data of all threads.
fn is_data(kind: object::SectionKind) -> bool {
    use object::SectionKind::{Data, ReadOnlyData, ReadOnlyDataWithRel, ReadOnlyString, UninitializedData};
    matches!(kind, Data | ReadOnlyData | ReadOnlyDataWithRel | ReadOnlyString | UninitializedData)
}

/// Adds the names of one table to `names`; if several tables have a name, it is added once.
fn symbols<'data: 'file, 'file>(
    table: impl Iterator<Item = object::read::elf::ElfSymbol64<'data, 'file, object::LittleEndian>>,
    names: &mut BTreeMap<(u64, String), Named>,
) {
    // A table names a source file before the local names that come from it.
    let mut source: Option<String> = None;
    for symbol in table.filter(|symbol| !symbol.is_undefined()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let kind = match st_info.st_type() {
            STT_FILE => {
                source = symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned);
                continue;
            }
            STT_FUNC => Kind::Function,
            STT_GNU_IFUNC => Kind::Indirect,
            STT_OBJECT => Kind::Variable,
            _ => continue,
        };
        let Ok(name) = symbol.name() else { continue };
        let name = name.split_once('@').map_or(name, |(name, _)| name).to_owned();
        let (address, size_bytes) = (symbol.address(), symbol.size());
        let source = source.clone().filter(|_| symbol.is_local());
        let named = Named { address, size_bytes, kind, name: name.clone(), source };
        names.entry((address, name)).or_insert(named);
    }
}

/// The functions of the unwind tables that no symbol of `names` covers, which are sorted.
fn unnamed(file: &File<'_>, path: &Path, names: &[Named]) -> Vec<Named> {
    let stubs = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")));
    let stubs: Vec<Range<u64>> = stubs.map(|s| s.address()..s.address().saturating_add(s.size())).collect();
    let code: Vec<&Named> = names.iter().filter(|named| named.kind != Kind::Variable).collect();
    let has_symbol = |address: u64| {
        let before = &code[..code.partition_point(|named| named.address <= address)];
        let covers = |named: &&&Named| named.address == address || address - named.address < named.size_bytes;
        // An alias or a nested symbol may end before the one that covers the address.
        before.iter().rev().take(4).any(|named| covers(&named))
    };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut found = Vec::new();
    for range in frame::functions(file) {
        let address = range.start;
        if stubs.iter().any(|stub| stub.contains(&address)) || has_symbol(address) {
            continue;
        }
        let (size_bytes, kind) = (range.end - address, Kind::Function);
        let name = format!("{file_name}+{address:#x}");
        found.push(Named { address, size_bytes, kind, name, source: None });
    }
    found
}

/// The names of the needed libraries, from the `DT_NEEDED` entries.
fn needed(file: &File<'_>) -> Vec<String> {
    let section = |name| file.section_by_name(name).and_then(|section| section.data().ok());
    let (Some(entries), Some(strings)) = (section(".dynamic"), section(".dynstr")) else { return Vec::new() };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let entries = entries.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
    let text = |(_, at): (u64, u64)| {
        let rest = strings.get(usize::try_from(at).ok()?..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        String::from_utf8(rest[..end].to_vec()).ok()
    };
    entries.filter(|(tag, _)| *tag == 1).filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a symbol however the test is built: a test's own function may be inlined into its
    /// caller.
    #[inline(never)]
    fn function_with_a_symbol(number: u64) -> u64 {
        std::hint::black_box(number)
    }

    #[test]
    fn this_test_names_its_functions_its_libraries_and_its_code() {
        std::hint::black_box(function_with_a_symbol as fn(u64) -> u64)(1);
        let listing = Listing::read(&std::env::current_exe().unwrap()).unwrap();
        let own = listing.names.iter().find(|named| named.name.contains("function_with_a_symbol")).unwrap();
        assert_eq!(own.kind, Kind::Function);
        assert!(listing.text.iter().any(|text| text.contains(&own.address)));
        assert!(listing.needed.iter().any(|library| library.starts_with("libc.so")), "{:?}", listing.needed);
        assert!(Listing::read(Path::new("/etc/passwd")).is_none());
    }

    #[test]
    fn an_address_of_a_file_is_mapped_with_its_segment() {
        let segments = vec![Segment { offset: 0x1100, address: 0x41_2100, size_bytes: 0x900 }];
        let path = PathBuf::new();
        let (names, text, data) = (Vec::new(), Vec::new(), Vec::new());
        let (needed, bytes) = (Vec::new(), Vec::new());
        let listing = Listing { path: path.clone(), names, text, data, needed, segments, bytes };
        let module = Module {
            path,
            start: 0x7f00_0000_1000,
            end: 0x7f00_0000_2000,
            file_offset: 0x1000,
            process: None,
        };
        assert_eq!((listing.file_offset(0x41_2200), listing.file_offset(0x41_2a00)), (Some(0x1200), None));
        assert_eq!(listing.mapped(&module, 0x41_2200), Some(0x7f00_0000_1200));
        let other = Module { file_offset: 0x9000, ..module };
        assert_eq!(listing.mapped(&other, 0x41_2200), None);
    }
}
