//! Regular expressions by bitwise data parallelism: every byte of a block at once.
//!
//! ```
//! use pattern::{compile, kernel::Scanner};
//!
//! let hir = regex_syntax::parse("[a-z]+ing").unwrap();
//! let program = compile::compile(&hir, &compile::CompileOptions::default())?;
//! assert_eq!(Scanner::new(&program).count_lines(b"sing\nsong\ndancing with bears\n"), 2);
//! # Ok::<(), compile::CompileError>(())
//! ```
//!
//! # How to read this crate
//!
//! | given | plan | kernel | result |
//! |---|---|---|---|
//! | a parsed expression (`regex-syntax`'s HIR) | [`compile`](mod@compile) makes a [`program`]: logic, advances and additions over streams of one bit per byte | [`transpose`] turns bytes into basis streams, [`kernel`] runs the program on them | a stream with one bit per matching line |
//!
//! [`kernel::KERNELS`] and [`transpose::TRANSPOSERS`] list the families; [`reference`](mod@reference) is the slow twin, and `tests/agree.rs` holds every kernel against it and
//! it against the `regex` crate.
//!
//! # What it promises
//!
//! Lines: no expression sees a line terminator, and a line matches exactly if the `regex` crate's bytes API finds a match in it. What cannot be
//! expressed exactly is refused by [`compile`](fn@compile::compile) with a reason, never approximated. Time is linear in the text for all but nested stars, and memory is
//! bounded, whatever the length of a line.
//!
//! Source: R. D. Cameron and others, Bitwise data parallelism in regular expression matching, 2014.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod addition;
pub mod compile;
pub mod kernel;
pub mod line;
mod literal;
pub mod map;
pub mod plan;
pub mod program;
pub mod reference;
pub mod regex;
pub mod superset;
pub mod transpose;
mod words;

pub use regex::{Regex, RegexBuilder, RegexSet};
