//! Regions: parts of a program that `lightfoot count --region NAME` and
//! `lightfoot cache --region NAME` count apart.
//!
//! ```
//! fn lookup(table: &[u64], key: u64) -> Option<usize> {
//!     let _open = lightfoot_region::region!("lookup");
//!     table.iter().position(|&entry| entry == key)
//! }
//! assert_eq!(lookup(&[1, 2, 3], 3), Some(2));
//! ```
//!
//! In C and C++, with `include/lightfoot_region.h` of this crate (`examples/two_regions.c` is a
//! whole program):
//!
//! ```c
//! #include "lightfoot_region.h"
//!
//! region_begin("lookup");
//! index = find(table, key);
//! region_end("lookup");
//! ```
//!
//! Then `lightfoot cache --region lookup -- ./program` counts what runs while a region of that name
//! is open in the thread that opened it, and nothing else.
//!
//! | you want | in Rust | in C |
//! |---|---|---|
//! | a scope | [`region!`] | |
//! | a beginning and an end | [`region_begin!`], [`region_end!`] | `region_begin`, `region_end` |
//!
//! # Cost
//!
//! Natively a mark is a `nop` and a jump over the region's name: no register, no flag and no memory
//! changes, about a cycle is spent, and no library is needed at run time. lightfoot sees every
//! block of code before it runs; a mark ends its block, so a region begins and ends exactly between
//! two instructions.
//!
//! # Rules
//!
//! Regions nest, belong to the thread that opened them, and may be opened from several places.
//! Names are string literals without quotes, braces and backslashes; names made at run time are
//! left out. On other processors than x86-64 marks are nothing. The crate has no dependencies and
//! needs no `std`.

//!
//! # Benchmarks in C and C++
//!
//! `include/lightfoot_bench.h` makes functions benchmarks, which `lightfoot bench --program FILE`
//! counts (`examples/benchmarks.c`); in Rust crate `lightfoot-bench` does. `lightfoot bench
//! --headers DIR` writes both headers.

#![no_std]

/// The headers for C and C++, with the names of their files.
pub const HEADERS: [(&str, &str); 2] = [
    ("lightfoot_region.h", include_str!("../include/lightfoot_region.h")),
    ("lightfoot_bench.h", include_str!("../include/lightfoot_bench.h")),
];

#[doc(hidden)]
#[macro_export]
macro_rules! mark {
    ($kind:literal, $name:literal) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `nop`, and a jump over the bytes of the name that stand between it and its
        // target; neither changes anything.
        unsafe {
            ::core::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80",
                concat!(".ascii \"", $kind, "\""),
                "jmp 2f",
                concat!(".asciz \"", $name, "\""),
                "2:",
                options(nostack, preserves_flags)
            )
        }
    };
}

/// Opens the region of this name in this thread.
#[macro_export]
macro_rules! region_begin {
    ($name:literal) => {
        $crate::mark!("LFTB", $name)
    };
}

/// Closes the region of this name in this thread.
#[macro_export]
macro_rules! region_end {
    ($name:literal) => {
        $crate::mark!("LFTE", $name)
    };
}

/// Opens the region of this name until the value that this gives is dropped.
#[macro_export]
macro_rules! region {
    ($name:literal) => {{
        struct Open;
        impl Drop for Open {
            #[inline(always)]
            fn drop(&mut self) {
                $crate::region_end!($name);
            }
        }
        $crate::region_begin!($name);
        Open
    }};
}

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
