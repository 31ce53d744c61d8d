//! The indexes of `lightfoot-search` for C and for everything that calls C: a shared and a static
//! library, and the header `include/lightfoot_index.h`.
//!
//! ```text
//! cargo build --release -p lightfoot-search-c
//! cc program.c -Isearch-c/include -Ltarget/release -llightfoot_index
//! ```
//!
//! The header documents every function. Each type of keys has functions of its own, so that a
//! compiler of C sees a wrong key; the macro `LFINDEX_DECLARE` of the header and
//! `define_functions!` here list the same ones, and a test compiles a program of C that calls all
//! of them.
//!
//! **Errors.** A function that can fail returns a status, and `lfindex_message` has a sentence.
//!
//! **What it leaves out.** Byte strings, keys of 128 bits and tuples, maps, and indexes that grow.

mod functions;
mod status;

pub use functions::*;
