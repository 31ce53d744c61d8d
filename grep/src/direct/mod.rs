//! The direct path: files searched by the engine in large pieces, results formatted into one
//! buffer.
//!
//! A searcher that asks for one line after the other costs 30 to 90 ns a matching line; here lines
//! are pushed, counted by popcount, and numbers are written from a table. It takes what most
//! searches are (lines, counts, paths, `-o`, `-n`, `-b`, `-v`, `-m`, headings) and leaves to the
//! general path everything else, and every file with a NUL byte or a byte order mark where that
//! would matter: [`Direct::search`] then answers nothing and has printed nothing. Both paths print
//! the same bytes.

mod bits;
mod dense;
mod file;
mod format;
mod large;
mod piece;
mod print;
mod printed;
mod searcher;
mod stream;
mod turn;

pub(super) use searcher::Direct;
pub(super) use stream::Streamed;
