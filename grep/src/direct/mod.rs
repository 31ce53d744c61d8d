//! The direct path: the engine searches files in large pieces, and results are formatted into one
//! buffer.
//!
//! A searcher that is asked for one line after the other takes 30 to 90 ns per matching line. Here
//! lines are pushed, population counts count them, and a table formats numbers. The direct path
//! implements what most searches use (lines, counts, paths, `-o`, `-n`, `-b`, `-v`, `-m`,
//! headings, colours, columns, `-r`, lines around matches). It leaves all other searches to the
//! general path, and files in which a NUL byte or a byte order mark matters: for these
//! [`Direct::search`] returns `None` and has printed nothing. Both paths print the same bytes.

mod around;
mod bits;
mod count;
mod decorated;
mod dense;
mod file;
mod folder;
mod format;
mod large;
mod mapped;
mod paint;
mod piece;
mod print;
mod printed;
mod searcher;
mod spread;
mod stream;
#[cfg(test)]
mod tests;
mod turn;

pub(super) use searcher::Direct;
pub(super) use stream::Streamed;
