//! From names to addresses: all functions and variables that a file names, its source lines, and
//! the libraries it asks for.
//!
//! The opposite question of the rest of this module, asked once per file and before a program runs,
//! so the file is read whole. Names come from the full symbol table, of the file or of its debug
//! file, with the exported ones beside it. Addresses are the file's own; [`Listing::mapped`] gives
//! those of a running program. **Leaves out** functions that no table names, and which library wins
//! where two export one name. Source: System V ABI, chapters 4 and 5.

use crate::debug_file;
use crate::dwarf::Names;
use crate::elf::{code_segments, File, Segment};
use instrument::Module;
use object::elf::{STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::{Object, ObjectSection, ObjectSymbol, SymbolFlags};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Code.
    Function,
    /// A function that chooses, when the program is linked, which function the name stands for.
    Indirect,
    /// Data.
    Variable,
}

/// A name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Where it is, in the file's own addresses.
    pub address: u64,
    /// Its length; 0 where the file does not say.
    pub size_bytes: u64,
    /// What it is.
    pub kind: Kind,
    /// As the file has it, without a version.
    pub name: String,
    /// The source file of a name that only its own source file sees, where the table says it.
    pub source: Option<String>,
}

/// Everything that a file names.
#[derive(Debug)]
pub struct Listing {
    /// The file, without links.
    pub path: PathBuf,
    /// Its names by address.
    pub names: Vec<Named>,
    /// Sections of code.
    pub text: Vec<Range<u64>>,
    /// Libraries that it asks for, as it calls them.
    pub needed: Vec<String>,
    segments: Vec<Segment>,
    bytes: Vec<u8>,
}

impl Listing {
    /// Reads a file; `None` where it is no 64-bit ELF file.
    pub fn read(path: &Path) -> Option<Listing> {
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
        let names = names.into_values().collect();
        let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let text = code.map(|s| s.address()..s.address().saturating_add(s.size())).collect();
        let (needed, segments) = (needed(&file), code_segments(&file));
        Some(Listing { names, text, needed, segments, bytes, path })
    }

    /// Where the file's `address` lies in a process that maps it as `module` says.
    pub fn mapped(&self, module: &Module, address: u64) -> Option<u64> {
        let begins = |s: &&Segment| {
            s.offset < module.file_offset + 4096 && module.file_offset < s.offset + s.size_bytes
        };
        let segment = self.segments.iter().find(begins)?;
        let bias = module.start.wrapping_sub(module.file_offset).wrapping_add(segment.offset);
        Some(address.wrapping_sub(segment.address).wrapping_add(bias))
    }

    /// Where in the file the code at its own `address` is.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.offset_of(address))
    }

    /// The file's build id.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        let file = File::parse(&*self.bytes).ok()?;
        file.build_id().ok().flatten().map(<[u8]>::to_vec)
    }

    /// First addresses of the pieces of code that belong to a line; `file` is the end of a path.
    /// `None` without debug information.
    pub fn lines(&self, file: &str, line: u32) -> Option<Vec<u64>> {
        let own = File::parse(&*self.bytes).ok()?;
        let mut debug = None;
        if own.section_by_name(".debug_info").is_none() {
            debug = debug_file::find(&own, &self.path);
        }
        match &mut debug {
            Some(debug) => {
                debug.load(|name| name.starts_with(".debug"));
                Some(Names::new(&debug.parse()?)?.line(file, line))
            }
            None => Some(Names::new(&own)?.line(file, line)),
        }
    }
}

/// Takes the names of one table in; of several tables that have one, any may.
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

/// `DT_NEEDED`.
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
        let (names, text, needed, bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let listing = Listing { path: path.clone(), names, text, needed, segments, bytes };
        let module = Module { path, start: 0x7f00_0000_1000, end: 0x7f00_0000_2000, file_offset: 0x1000 };
        assert_eq!((listing.file_offset(0x41_2200), listing.file_offset(0x41_2a00)), (Some(0x1200), None));
        assert_eq!(listing.mapped(&module, 0x41_2200), Some(0x7f00_0000_1200));
        let other = Module { file_offset: 0x9000, ..module };
        assert_eq!(listing.mapped(&other, 0x41_2200), None);
    }
}
