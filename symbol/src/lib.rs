//! Finds names by addresses: the function, library and source line of an instruction.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | an address and the mapping it lies in | its function | [`Symbolizer::function_at`] |
//! | instructions of a block | source lines, with inlined frames | [`Symbolizer::frames`] |
//! | a tool of the engine | names for it | [`ProgramNames`], to `run_named` |
//! | a file | all names that it holds, and where they are | [`Listing::read`] |
//! | a file | the functions that a pattern matches | [`WantedFunctions::read`] |
//! | code that a program generates | its names too | [`Symbolizer::name_generated`], at the end |
//! | a file | its DWARF, for questions of your own | [`DebugSections::read`] |
//! | a frame of a stopped thread | its caller's | [`CallFrames::caller`] |
//! | a mangled name | the name as the programmer wrote it | [`demangle`], [`Spellings`] |
//!
//! The name of a function comes from the first of these sources that covers its address: symbol
//! tables (of the file, or of its separate debug file), stubs of the procedure linkage table,
//! functions in the unwind tables (named by DWARF, else `prog+0x1234`), and the gaps between all of
//! these. Unwind tables make stripped programs readable, because they say where each function
//! starts. Each file is opened once. A look-up is a binary search; unwind tables and DWARF are read
//! only when an address needs them, and the text of a name only when somebody asks for it
//! ([`FunctionName`]). Source lines come from DWARF only: [`Symbolizer::frames`] looks
//! a block of instructions up, most of which have the line of their predecessor;
//! [`Symbolizer::frame`] is its slow twin for single addresses.
//!
//! Lines can be kept from run to run ([`Symbolizer::keep_lines_in`]).
//!
//! Generated code has the names that run-time compilers write for profilers
//! ([`Symbolizer::name_generated`]).
//!
//! **Leaves out** split debug information (`.dwo`), lines of generated code, and 32-bit files.
//! Source: System V ABI, AMD64 supplement, chapters 4 and 5; DWARF 5, sections 6.2 and 6.4.

#![forbid(unsafe_code)]

mod call_frames;
mod debug_file;
mod debug_sections;
mod demangle;
mod dwarf;
mod elf;
mod frame;
mod generated;
mod image;
mod kept_lines;
mod kept_symbols;
mod listing;
mod names;
mod numbers;
mod plt;
mod source;
mod sparse;
mod spelling;
mod strings;
mod symbolizer;
mod table;
mod vdso;
mod wanted;

pub use call_frames::{CallFrames, FrameRegisters};
pub use debug_sections::{DebugSections, SectionReader};
pub use demangle::demangle;
pub use listing::{Kind, Listing, Named};
pub use names::ProgramNames;
pub use numbers::{ByNumber, Multiply};
pub use source::{SourceFrame, Sources, UNKNOWN};
pub use spelling::{may_include, Spellings};
pub use strings::FunctionName;
pub use symbolizer::{Function, FunctionRange, Library, Symbolizer};
pub use wanted::{Wanted, WantedFunctions};

#[cfg(test)]
mod tests;
