//! Regular expressions over lines: what a program that searches text asks for.
//!
//! [`Regex`] answers about lines (is there one, how many, which) with the engine that
//! [`crate::plan`] chose, and about places in a line with `regex-automata`, which resolves
//! leftmost-first spans inside lines that are known to match. So spans are those of the `regex`
//! crate, and its cost is paid only where somebody asks for a span. A [`Unit::Text`] expression
//! instead treats the whole text as one haystack, as the `regex` crate does; lines are then no
//! engine's business. Left out: replacement and splitting, which `regex` has.

pub(crate) mod automaton;
mod builder;
mod captures;
mod error;
mod expression;
mod find;
mod matcher;
pub(crate) mod options;
mod parse;
mod set;
mod spans;
mod starts;

pub use builder::RegexBuilder;
pub use captures::Captures;
pub use error::{Error, ErrorKind};
pub use expression::Regex;
pub use find::Matches;
pub use options::{Boundary, Case, Options, Terminator, Unit};
pub use set::RegexSet;
pub use starts::Scratch;
