//! Regular expressions by bitwise data parallelism: every byte of a block at once.
//!
//! Made for programs that search text by lines: which lines of a buffer match, how many, and where
//! in them the matches are. Most patterns run at a few gigabytes per second whatever the text
//! holds.
//!
//! ```
//! use lightfoot_pattern::Regex;
//! use std::ops::ControlFlow;
//!
//! let text = b"sing\nsong\ndancing with bears\n";
//! let regex = Regex::new("[a-z]+ing")?;
//! assert_eq!(regex.count_lines(text), 2);
//! assert_eq!(regex.first_line(text), Some(0..5));
//! assert_eq!(regex.find_iter(text).collect::<Vec<_>>(), [0..4, 10..17]);
//!
//! let mut lines = Vec::new();
//! let _ = regex.matching_lines(text, |line| {
//!     lines.push(line);
//!     ControlFlow::Continue(())
//! });
//! assert_eq!(lines, [0..5, 10..29]);
//! # Ok::<(), lightfoot_pattern::regex::Error>(())
//! ```
//!
//! A file is a buffer like any other: `regex.count_lines(&std::fs::read("access.log")?)`, or a
//! memory map of it.
//!
//! # Which call
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | a pattern | an expression | [`Regex::new`] | a parse; programs are compiled when they pay |
//! | patterns and options | an expression | [`RegexBuilder`] | a parse |
//! | a text | is there a matching line | [`Regex::is_match`] | up to the first one |
//! | a text | the number of matching lines | [`Regex::count_lines`] | one pass, see below |
//! | a text | each matching line | [`Regex::matching_lines`] | one pass, and each line's start |
//! | a text | one line after the other | [`Regex::first_line`] | cheap where lines match often |
//! | a text | all spans | [`Regex::find_iter`] | a search in each matching line |
//! | a dense text | all spans | [`Regex::each_match`] | one pass backwards, a look at each match |
//! | several patterns | the lines of each | [`RegexSet::line_bitmaps`] | one pass for all |
//! | a column of strings | the rows that match | [`column::ColumnRegex`] | one pass, no copy |
//! | such a column, patterns | the rows of each | [`column::ColumnRegexSet`] | one pass for all |
//! | a stream of pieces | line ends | [`kernel::Scan`] | a few streams of 4 KiB |
//! | look-around, references | candidates | [`superset`](mod@superset) | an exact engine confirms |
//! | a graphics card | lines on it | [`Regex::on_card`] | some 0.3 s once, then the link |
//!
//! # What matches, and what is refused
//!
//! By default a match lies within one line: no expression sees a line terminator, and a line
//! matches exactly if the `regex` crate's bytes API finds a match in the line by itself. Spans are
//! those of `regex`, leftmost and earlier alternatives first. Syntax is that of `regex-syntax`. An
//! [`Error`](regex::Error) names the place in the pattern when it
//!
//! * does not parse, or nests more than 250 deep;
//! * asks for a byte that ends a line ([`Unit::Text`](regex::Unit::Text) takes the whole text as
//!   one haystack instead);
//! * would need more memory than [`Options::size_limit`](regex::Options::size_limit).
//!
//! Nothing is ever approximated: a pattern whose bit-stream program would be too large, or cannot
//! decide a Unicode word boundary, gets another engine or has its lines confirmed
//! ([`Regex::explain`] says so; [`plan::ENGINES`] lists the engines).
//!
//! # How fast
//!
//! GB/s of commands that count matching lines in 64 MB of text, start-up subtracted, one thread of
//! a virtual machine with AVX-512 on 2026-11-23 (`lightfoot study regex`; the record is in the
//! repository's `results`):
//!
//! | pattern | engine | this crate | ripgrep | GNU grep |
//! |---|---|---:|---:|---:|
//! | a rare string | literal | 7.2 | 19.8 | 5.8 |
//! | a blank, in nearly every line | literal | 8.7 | 2.0 | 1.5 |
//! | a date of digits | streams | 8.6 | 2.3 | 2.6 |
//! | an e-mail address | streams | 8.9 | 19.7 | 0.3 |
//! | words that end in `ing` | streams | 7.7 | 6.3 | 0.5 |
//! | nested stars | streams | 7.9 | 3.0 | 0.02 |
//!
//! `regex` is the better choice for short haystacks (below 4 KiB this crate asks the automaton of
//! `regex-automata` too), for spans and groups of most lines of a text, and for replacement.
//! Compiling a program takes from tens of microseconds to milliseconds, for Unicode classes; it
//! happens when the first large text comes. Time is linear in the text for all but nested stars,
//! and memory is bounded for lines of any length.
//!
//! # Inside
//!
//! ```text
//! pattern -> HIR -> program -> passes -> kernel <- basis streams <- transpose <- text
//!                                           |
//!                                           +-> a stream with one bit per matching line
//! ```
//!
//! [`compile`](mod@compile) makes of a parsed expression a [`program`]: logic, advances and
//! additions over streams of one bit per byte. [`transpose`] turns bytes into basis streams, a
//! [`kernel`] (interpreter, machine code, or a graphics card) runs the program on them.
//! [`kernel::KERNELS`], [`transpose::TRANSPOSERS`] and [`plan::ENGINES`] list the families;
//! [`reference`](mod@reference) is the slow twin, and `tests/agree.rs` holds every kernel against
//! it and it against the `regex` crate. A program can be printed, parsed and checked:
//!
//! ```
//! use lightfoot_pattern::compile::{compile, CompileOptions};
//! use lightfoot_pattern::kernel::Scanner;
//! use lightfoot_pattern::program::BitProgram;
//!
//! let hir = regex_syntax::parse("[a-z]+ing").unwrap();
//! let program = compile(&hir, &CompileOptions::default())?;
//! assert_eq!(BitProgram::parse(&program.to_string()).unwrap(), program);
//! assert_eq!(Scanner::new(&program).count_lines(b"sing\nsong\n"), 1);
//! # Ok::<(), lightfoot_pattern::compile::CompileError>(())
//! ```
//!
//! # Platforms
//!
//! Kernels: machine code for AVX-512, AVX2 and SSE2 on x86-64 Unix; interpreters for AVX-512, AVX2,
//! SSE2, NEON and any machine; CUDA where its libraries are found when somebody asks. Source: R. D.
//! Cameron and others, Bitwise data parallelism in regular expression matching, 2014.
#![deny(unsafe_op_in_unsafe_fn)]

// The agreement runner names the crate as its users do.
#[cfg(test)]
extern crate self as lightfoot_pattern;

pub mod addition;
mod bits;
pub mod column;
pub mod compile;
pub mod kernel;
pub mod line;
mod literal;
pub mod plan;
pub mod program;
pub mod reference;
pub mod regex;
mod set;
pub mod superset;
pub mod transpose;
pub mod vectors;
mod words;

pub use regex::{Regex, RegexBuilder, RegexSet};
