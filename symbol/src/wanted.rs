//! The functions of a file whose names a caller wants, found without listing all others.
//!
//! **Problem.** A program that toggles functions asks of each library, before its code runs, which
//! functions the user's patterns match. Mostly there are none, and a [`Listing`] of a C library
//! takes longer than a short program runs. **Idea.** A wanted name has parts that can be looked for
//! in a file's table of strings as a whole. Without any, no symbol is read. **Agrees** with the
//! functions of [`Listing::read`], to which the rare patterns fall back that mean functions without
//! a symbol.

use crate::debug_file;
use crate::elf::{code_segments, File, Segment};
use crate::listing::{mapped, Kind, Listing, Named};
use crate::sparse::Sparse;
use instrument::Module;
use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::read::elf::{Sym, SymbolTable};
use object::{LittleEndian, Object, ObjectSection};
use std::collections::BTreeMap;
use std::path::Path;

/// Which names are wanted. Mangled names are meant, without versions.
pub trait Wanted {
    /// Whether a table of strings may hold a wanted name. A false yes costs time only.
    fn may_be_among(&self, strings: &[u8]) -> bool;

    /// Whether this name is wanted.
    fn is(&self, name: &str) -> bool;

    /// Whether the name that stands for a function without a symbol, `FILE+0xADDRESS`, may be
    /// wanted of the file with this name.
    fn may_be_nameless(&self, file: &str) -> bool;
}

/// The wanted functions of a file.
#[derive(Debug)]
pub struct WantedFunctions {
    /// The functions, sorted by address.
    pub functions: Vec<Named>,
    segments: Vec<Segment>,
}

impl WantedFunctions {
    /// Reads the file at `path`; `None` if it is no program or library.
    pub fn read(path: &Path, wanted: &impl Wanted) -> Option<WantedFunctions> {
        let path = path.canonicalize().ok()?;
        if wanted.may_be_nameless(&path.file_name().unwrap_or_default().to_string_lossy()) {
            let Listing { names, segments, .. } = Listing::read(&path)?;
            let is_wanted = |named: &Named| named.kind == Kind::Function && wanted.is(&named.name);
            return Some(WantedFunctions {
                functions: names.into_iter().filter(is_wanted).collect(),
                segments,
            });
        }
        let mut own = Sparse::open(&path)?;
        let read = [".symtab", ".strtab", ".dynsym", ".dynstr", ".gnu_debuglink"];
        own.load(|name| read.contains(&name) || name.starts_with(".note"));
        let file = own.parse()?;
        let mut names = BTreeMap::new();
        collect(&file, file.elf_symbol_table(), wanted, &mut names);
        collect(&file, file.elf_dynamic_symbol_table(), wanted, &mut names);
        if file.symbol_table().is_none() {
            let debug = debug_file::find(&file, &path);
            if let Some(debug) = debug.as_ref().and_then(Sparse::parse) {
                collect(&debug, debug.elf_symbol_table(), wanted, &mut names);
            }
        }
        let functions = names.into_values().filter(|named| named.kind == Kind::Function);
        let mut functions: Vec<Named> = functions.collect();
        functions.sort_unstable();
        Some(WantedFunctions { functions, segments: code_segments(&file) })
    }

    /// The address in a process that maps the file as `module` of link address `address`.
    pub fn mapped(&self, module: &Module, address: u64) -> Option<u64> {
        mapped(&self.segments, module, address)
    }
}

/// Adds the wanted names of one table; if several tables have a name, it is added once.
fn collect<'data>(
    file: &File<'data>,
    table: &SymbolTable<'data, object::elf::FileHeader64<LittleEndian>>,
    wanted: &impl Wanted,
    names: &mut BTreeMap<(u64, String), Named>,
) {
    let endian = file.endian();
    let strings = file.section_by_index(table.string_section()).and_then(|strings| strings.data());
    if !strings.is_ok_and(|strings| wanted.may_be_among(strings)) {
        return;
    }
    for symbol in table.iter() {
        let kind = match symbol.st_type() {
            STT_FUNC => Kind::Function,
            STT_GNU_IFUNC => Kind::Indirect,
            STT_OBJECT => Kind::Variable,
            _ => continue,
        };
        if symbol.is_undefined(endian) {
            continue;
        }
        let name = table.symbol_name(endian, symbol).ok().and_then(|name| str::from_utf8(name).ok());
        let Some(name) = name else { continue };
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        if wanted.is(name) {
            let (address, size_bytes) = (symbol.st_value(endian), symbol.st_size(endian));
            let named = Named { address, size_bytes, kind, name: name.to_owned(), source: None };
            names.entry((address, name.to_owned())).or_insert(named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that hold a text.
    struct Holds(&'static str);

    impl Wanted for Holds {
        fn may_be_among(&self, strings: &[u8]) -> bool {
            strings.windows(self.0.len()).any(|window| window == self.0.as_bytes())
        }

        fn is(&self, name: &str) -> bool {
            name.contains(self.0)
        }

        fn may_be_nameless(&self, file: &str) -> bool {
            format!("{file}+0x").contains(self.0)
        }
    }

    #[test]
    fn the_wanted_functions_are_those_of_the_listing() {
        let own = std::env::current_exe().unwrap();
        let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
        let (mut found, mut without) = (0, 0);
        for path in [&own, loader] {
            let all = Listing::read(path).unwrap();
            for text in ["tests", "_dl_", "mem", "+0x", "no such function"] {
                let wanted = Holds(text);
                let is_wanted = |named: &&Named| named.kind == Kind::Function && wanted.is(&named.name);
                let expected = all.names.iter().filter(is_wanted);
                let expected: Vec<_> = expected.map(|n| (n.address, n.size_bytes, &n.name)).collect();
                let read = WantedFunctions::read(path, &wanted).unwrap();
                let functions = read.functions.iter();
                assert_eq!(
                    functions.map(|n| (n.address, n.size_bytes, &n.name)).collect::<Vec<_>>(),
                    expected
                );
                found += expected.len();
                without += usize::from(expected.is_empty());
            }
        }
        assert!(found > 10 && without > 0, "{found} {without}");
        assert!(WantedFunctions::read(Path::new("/etc/passwd"), &Holds("root")).is_none());
    }
}
