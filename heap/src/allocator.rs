//! The functions that allocate and free memory, by their symbols.
//!
//! A prefix by which an allocator is linked beside the C library's own (`je_malloc`) is passed
//! over. **Leaves out** allocators of a program's own that have other names: blocks that they
//! divide are one block here; and functions that copy strings, whose length no argument says.

use event::Stream;
use instrument::Module;
use std::collections::HashMap;
use std::ops::Range;
use symbol::{Kind, Listing};

/// What a function does, and where its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// The first argument is the size.
    Allocate,
    /// The product of both arguments is the size.
    AllocateArray,
    /// The second argument is the size.
    AllocateAligned,
    /// The third argument is the size; the address is stored where the first one points.
    AllocateAt,
    /// The size is rounded up to whole pages.
    AllocatePages,
    /// The first argument is a block, the second one its new size.
    Resize,
    /// The first argument is a block.
    Free,
    /// The third argument is the number of bytes that are copied.
    Copy,
}

/// Which functions are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follows {
    /// Those that allocate and free.
    #[default]
    Blocks,
    /// Those that copy memory.
    Copies,
    /// None.
    Nothing,
}

impl Follows {
    /// The references that are recorded for these functions.
    pub(crate) fn stream(self) -> Stream {
        match self {
            Follows::Blocks => Stream::Allocated,
            Follows::Copies | Follows::Nothing => Stream::Counts,
        }
    }
}

impl Function {
    /// The function with this number.
    pub fn of_number(number: u32) -> Option<Function> {
        use Function::*;
        [Allocate, AllocateArray, AllocateAligned, AllocateAt, AllocatePages, Resize, Free, Copy]
            .get(number as usize)
            .copied()
    }

    /// The function with this symbol, if it copies. C libraries have one for each kind of
    /// processor, such as `__memmove_avx_unaligned`. Those that check the room (`_chk`) end in the
    /// ones that copy, and those that choose (`_ifunc`) copy nothing.
    pub fn copying(symbol: &str) -> Option<Function> {
        let (name, variant) = match symbol.strip_prefix("__") {
            Some(own) => own.split_at(own.find('_').unwrap_or(own.len())),
            None => (symbol, ""),
        };
        let copies = matches!(name, "memcpy" | "memmove" | "mempcpy" | "bcopy");
        let passes = variant.starts_with("_chk") || variant.ends_with("ifunc");
        (copies && !passes).then_some(Function::Copy)
    }

    /// The allocating function with this symbol.
    pub fn of_symbol(symbol: &str) -> Option<Function> {
        // Operators of C++, whatever they take besides: `_Znwm` is `new`, `_Znam` is `new[]`.
        if symbol.starts_with("_Znwm") || symbol.starts_with("_Znam") {
            return Some(Function::Allocate);
        }
        if symbol.starts_with("_ZdlPv") || symbol.starts_with("_ZdaPv") {
            return Some(Function::Free);
        }
        let name = PREFIXES.iter().find_map(|prefix| symbol.strip_prefix(prefix)).unwrap_or(symbol);
        NAMES.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }
}

/// Prefixes of allocators that are linked beside another one.
const PREFIXES: &[&str] = &["_rjem_", "je_", "mi_", "tc_", "__rust_no_alloc_shim_"];

const NAMES: &[(&str, Function)] = &[
    ("malloc", Function::Allocate),
    ("mallocx", Function::Allocate),
    ("zalloc", Function::Allocate),
    ("malloc_aligned", Function::Allocate),
    ("zalloc_aligned", Function::Allocate),
    ("valloc", Function::Allocate),
    ("pvalloc", Function::AllocatePages),
    ("calloc", Function::AllocateArray),
    ("memalign", Function::AllocateAligned),
    ("aligned_alloc", Function::AllocateAligned),
    ("posix_memalign", Function::AllocateAt),
    ("realloc", Function::Resize),
    ("rallocx", Function::Resize),
    ("realloc_aligned", Function::Resize),
    ("free", Function::Free),
    ("cfree", Function::Free),
    ("free_sized", Function::Free),
    ("free_aligned_sized", Function::Free),
    ("dallocx", Function::Free),
    ("sdallocx", Function::Free),
    ("free_size", Function::Free),
    ("free_aligned", Function::Free),
    ("free_size_aligned", Function::Free),
];

/// The functions of a module that are followed, at their addresses in the running program.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    functions: HashMap<u64, Function>,
    /// Code that stores the address of a block where an argument points.
    storing: Vec<Range<u64>>,
}

impl Entries {
    /// Finds those that are followed among the symbols of the module's file.
    pub fn of(module: &Module, listing: &Listing, follows: Follows) -> Entries {
        let mut entries = Entries::default();
        let of_symbol = match follows {
            Follows::Blocks => Function::of_symbol,
            Follows::Copies => Function::copying,
            Follows::Nothing => return entries,
        };
        for named in listing.names.iter().filter(|named| named.kind == Kind::Function) {
            let Some(function) = of_symbol(&named.name) else { continue };
            let Some(start) = listing.mapped(module, named.address) else { continue };
            if !(module.start..module.end).contains(&start) {
                continue;
            }
            entries.functions.insert(start, function);
            if function == Function::AllocateAt {
                entries.storing.push(start..start.saturating_add(named.size_bytes));
            }
        }
        entries
    }

    /// Whether the module has no such function.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that begins at this address.
    pub fn at(&self, address: u64) -> Option<Function> {
        self.functions.get(&address).copied()
    }

    /// Whether code at this address may store the address of a block where an argument points.
    pub fn stores(&self, address: u64) -> bool {
        self.storing.iter().any(|range| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_allocators_are_known_in_all_forms() {
        for (symbol, function) in [
            ("malloc", Some(Function::Allocate)),
            ("_Znwm", Some(Function::Allocate)),
            ("_ZnamSt11align_val_tRKSt9nothrow_t", Some(Function::Allocate)),
            ("_ZdlPvmSt11align_val_t", Some(Function::Free)),
            ("_rjem_realloc", Some(Function::Resize)),
            ("je_posix_memalign", Some(Function::AllocateAt)),
            ("mi_free", Some(Function::Free)),
            ("mallocate", None),
            ("_ZN4freeEv", None),
            ("je_mallctl", None),
        ] {
            assert_eq!(Function::of_symbol(symbol), function, "{symbol}");
        }
    }

    #[test]
    fn copying_functions_are_known_by_processor() {
        for copies in
            ["memcpy", "memmove", "__memmove_avx_unaligned_erms", "__mempcpy_sse2_unaligned", "__memcpy"]
        {
            assert_eq!(Function::copying(copies), Some(Function::Copy), "{copies}");
        }
        for other in [
            "__memcpy_chk_avx_unaligned",
            "__memcpy_chk",
            "__memcpy_ifunc",
            "memcmp",
            "_memcpy",
            "memcpy_all",
        ] {
            assert_eq!(Function::copying(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_name_functions() {
        for number in 0..8 {
            assert_eq!(Function::of_number(number).map(|function| function as u32), Some(number));
        }
        assert_eq!(Function::of_number(8), None);
    }
}
