//! Regular expressions over lines: the interface for programs that search text.
//!
//! [`Regex`] finds matching lines (whether there is one, how many, which) with the engine that
//! [`crate::plan`] chose, and spans with `regex-automata`, which resolves leftmost-first spans
//! inside lines that are known to match. So spans are those of the `regex` crate, and their cost is
//! paid only if the caller needs spans. A [`Unit::Text`] expression treats the whole text as one
//! haystack, like the `regex` crate; lines then have no meaning for engines. **Leaves out**
//! replacement and splitting, which `regex` has.

pub(crate) mod ascii;
pub(crate) mod automaton;
mod builder;
mod captures;
mod ends;
mod error;
mod expression;
mod find;
mod long_line;
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
pub use long_line::LongLine;
pub use options::{Boundary, Case, Options, Terminator, Unit};
pub(crate) use set::set_pattern;
pub use set::RegexSet;
pub use starts::Scratch;
