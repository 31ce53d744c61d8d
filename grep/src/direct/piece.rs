//! A text in pieces that end at line ends.
//!
//! A piece is small enough for the second-level cache, so counting its line ends, finding its lines
//! and copying them read memory only once. The texts of this file are in a buffer; `stream` and
//! `large` read theirs piece by piece. [`Sizes`] holds all lengths on which the way through a text
//! depends, so that tests can meet every boundary with small texts.

use std::ops::Range;

/// Bytes of a piece without the rest of its last line.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// Bytes of the first piece that is printed, which shows whether the text is dense.
pub(super) const FIRST_BYTES: usize = 64 << 10;

/// Bytes of a cache line, at whose start reads begin.
pub(super) const LINE_BYTES: usize = 64;

/// The lengths, in bytes, on which the way through a text depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The first bytes of a named file that are searched for a NUL byte, and the bytes that are
    /// read at once of a file that was found in a folder.
    pub(super) probe: usize,
    /// Files of this size and more are read in pieces.
    pub(super) large: u64,
    /// Files of this size and more are searched by several threads.
    pub(super) shared: u64,
    /// The first piece, which shows whether a text is dense, and whose results come early; a piece
    /// of a text that may be binary.
    pub(super) first: usize,
    /// Any other piece, without the rest of its last line.
    pub(super) piece: usize,
    /// Bytes of a large file that a thread takes at once: what one page table maps.
    pub(super) stretch: usize,
    /// Bytes of a mapped file that are loaded and searched at once.
    pub(super) mapped: usize,
    /// Bytes that are read beyond a range, so that most last lines are complete with the first
    /// read.
    pub(super) beyond: usize,
    /// Bytes of a long line that are searched first.
    pub(super) early: usize,
    /// Longer lines are searched in parts even where a string is looked for first, as they would
    /// not stay in a cache.
    pub(super) whole: usize,
    /// Room in front of a read for the beginning of a line.
    pub(super) front: usize,
}

impl Sizes {
    /// The lengths that were measured to suit caches and system calls.
    pub(super) const USUAL: Sizes = Sizes {
        probe: 64 << 10,
        large: 1 << 20,
        shared: 4 << 20,
        first: FIRST_BYTES,
        piece: PIECE_BYTES,
        stretch: 2 << 20,
        mapped: 512 << 10,
        beyond: 2 << 10,
        early: 64 << 10,
        whole: 4 << 20,
        front: 4 << 10,
    };
}

/// A piece to be printed, and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct PieceContext<'t> {
    pub(super) piece: Range<usize>,
    /// The number of its first line.
    pub(super) first_line: u64,
    /// The beginning of every line.
    pub(super) prefix: &'t [u8],
    /// The beginning of every line around matches.
    pub(super) prefix_around: &'t [u8],
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
        PieceContext {
            piece: 0..0,
            first_line: 1,
            prefix,
            prefix_around: &[],
            checks_lines: false,
            most,
            offset: 0,
        }
    }
}

/// The pieces of a text, the first one of about `first_bytes` and the others of `piece_bytes`; the
/// last one may be half as long again, because a short rest is searched at a worse rate.
pub(super) fn pieces(
    text: &[u8],
    first_bytes: usize,
    piece_bytes: usize,
) -> impl Iterator<Item = Range<usize>> + Send + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let bytes = if start == 0 { first_bytes } else { piece_bytes };
            let rest = text.len() - start;
            let wish = if rest <= bytes + bytes / 2 { text.len() } else { start + bytes };
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
