//! A text in pieces that end at line ends.
//!
//! A piece is small enough for the second-level cache, so counting its line ends, finding its lines
//! and copying them read memory only once. The texts of this file are in a buffer; `stream` and
//! `large` read theirs piece by piece.

use std::ops::Range;

/// Bytes of a piece without the rest of its last line.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// Bytes of the first piece that is printed, which shows whether the text is dense.
pub(super) const FIRST_BYTES: usize = 64 << 10;

/// A piece to be printed, and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct PieceContext<'t> {
    pub(super) piece: Range<usize>,
    /// The number of its first line.
    pub(super) first_line: u64,
    /// The beginning of every line.
    pub(super) prefix: &'t [u8],
    /// Whether lines with NUL bytes are not printed.
    pub(super) checks_lines: bool,
    /// The most lines to print, if there is a limit.
    pub(super) most: Option<u64>,
    /// The number of bytes before the text.
    pub(super) offset: u64,
}

impl<'t> PieceContext<'t> {
    /// The context for the start of a text.
    pub(super) fn new(prefix: &'t [u8], most: Option<u64>) -> PieceContext<'t> {
        PieceContext { piece: 0..0, first_line: 1, prefix, checks_lines: false, most, offset: 0 }
    }
}

/// The pieces of a text, the first one of about `first_bytes`.
pub(super) fn pieces(text: &[u8], first_bytes: usize) -> impl Iterator<Item = Range<usize>> + Send + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let bytes = if start == 0 { first_bytes } else { PIECE_BYTES };
            let wish = (start + bytes).min(text.len());
            let piece = start..pattern::line::end_of(text, wish - 1, b'\n');
            start = piece.end;
            piece
        })
    })
}

/// The number of line ends of a text.
pub(super) fn line_ends(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
