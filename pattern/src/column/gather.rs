//! Rows side by side in a block that stays in the first-level cache, a separator behind each.
//!
//! **Problem.** A row ends between two bytes of a column's values, and a program wants a byte that
//! ends it. Rows of views lie anywhere, and a copy of all of them would go through memory twice.
//!
//! **Idea.** A [`Gatherer`] copies rows to a block of 16 KB, puts [`SEPARATOR`] behind each, and
//! the program runs on the block before the next one is filled. Blocks are pieces of one text: a
//! row may begin in one and end in a later one, and the program's carries go on from block to
//! block. Null rows are copied as they are in memory; the caller leaves their results out.
//!
//! **Invariants.** The separator stands in a block only behind rows. Where a row holds that byte
//! itself, another one is put in its place and the row is noted as one to be decided by itself
//! ([`Gatherer::odd`]).

use super::rows::{place, Column, Layout, INLINE_BYTES};
use crate::bits::BitKernel;
use std::ops::Range;

/// Stands behind each row: the byte that ASCII has for this purpose, which texts hardly hold.
pub(super) const SEPARATOR: u8 = 0x1e;
/// Replaces the separator inside of rows.
pub(super) const REPLACEMENT: u8 = 0x1f;

/// The size of a block, a multiple of a kernel's chunk.
pub(super) const BLOCK_BYTES: usize = 16 << 10;
/// Short rows are copied as so many bytes at once, whatever their length.
const PIECE_BYTES: usize = 64;
/// Behind a block: room for one such copy and a separator.
const SLACK_BYTES: usize = 2 * PIECE_BYTES;

/// Fills one block after the other with a column's rows.
pub(super) struct Gatherer<'a> {
    column: &'a Column<'a>,
    bits: &'static BitKernel,
    block: Box<[u8; BLOCK_BYTES + SLACK_BYTES]>,
    /// Where separators stand in the block.
    masks: Box<[u64; BLOCK_BYTES / 64]>,
    /// Bytes in the block; what lies behind its end belongs to the next one.
    filled: usize,
    /// The next row, and how much of it was copied already.
    row: usize,
    copied: usize,
    /// Rows that ended in the blocks before, and how much of the next one those hold.
    ended: usize,
    before: usize,
    /// Rows that hold the separator, ascending.
    pub(super) odd: Vec<usize>,
}

/// A block's text and where its rows end.
pub(super) struct Block<'g> {
    /// As long as a block, except for the last one.
    pub(super) text: &'g [u8],
    /// Bit `i % 64` of word `i / 64` says whether a row ends at byte `i`.
    pub(super) ends: &'g [u64],
    /// The rows that have bytes in it.
    pub(super) rows: Range<usize>,
    /// Whether no other block follows.
    pub(super) is_last: bool,
}

impl<'a> Gatherer<'a> {
    pub(super) fn new(column: &'a Column<'a>) -> Gatherer<'a> {
        Gatherer {
            column,
            bits: BitKernel::detect(),
            block: Box::new([0; BLOCK_BYTES + SLACK_BYTES]),
            masks: Box::new([0; BLOCK_BYTES / 64]),
            filled: 0,
            row: 0,
            copied: 0,
            ended: 0,
            before: 0,
            odd: Vec::new(),
        }
    }

    /// The next block, at least an empty last one.
    pub(super) fn next(&mut self) -> Block<'_> {
        // What did not fit into the block before opens this one.
        let first = self.ended;
        let excess = self.filled.saturating_sub(BLOCK_BYTES);
        self.block.copy_within(BLOCK_BYTES..BLOCK_BYTES + excess, 0);
        self.filled = excess;
        let column = self.column;
        match column.layout {
            Layout::Views(views, buffers) => self.fill(|row| place(&views[row], buffers)),
            Layout::Offsets(..) | Layout::LargeOffsets(..) => self.fill(|row| {
                let bytes = column.bytes(row);
                (bytes, 0, bytes.len())
            }),
        }
        let length = self.filled.min(BLOCK_BYTES);
        let words = length.div_ceil(64);
        self.block[length..64 * words].fill(0);
        (self.bits.equal)(&self.block[..64 * words], SEPARATOR, &mut self.masks[..words]);
        // The last row may have its separator behind the block, where it belongs to the next one.
        let behind = usize::from(self.filled > BLOCK_BYTES);
        if self.ends(words) != self.row - behind - self.ended {
            self.replace_separators(length);
            (self.bits.equal)(&self.block[..64 * words], SEPARATOR, &mut self.masks[..words]);
        }
        self.ended += self.ends(words);
        self.before = match self.masks[..words].iter().rposition(|&mask| mask != 0) {
            Some(word) => length - (64 * word + 64 - self.masks[word].leading_zeros() as usize),
            None => self.before + length,
        };
        let is_last = self.row == self.column.len() && behind == 0;
        let rows = first..self.column.len().min(self.row + 1);
        Block { text: &self.block[..length], ends: &self.masks[..words], rows, is_last }
    }

    /// The number of separators in the block.
    fn ends(&self, words: usize) -> usize {
        crate::kernel::count_ones(&self.masks[..words]) as usize
    }

    /// Walks the block's rows, and replaces the separators that they hold themselves.
    #[cold]
    fn replace_separators(&mut self, length: usize) {
        let (mut at, mut row, mut before) = (0, self.ended, self.before);
        while at < length && row < self.column.len() {
            let end = at + self.column.bytes(row).len() - before;
            let part = &mut self.block[at..end.min(length)];
            if part.contains(&SEPARATOR) {
                part.iter_mut().filter(|byte| **byte == SEPARATOR).for_each(|byte| *byte = REPLACEMENT);
                if self.odd.last() != Some(&row) {
                    self.odd.push(row);
                }
            }
            (at, row, before) = (end + 1, row + 1, 0);
        }
    }

    /// Appends rows until the block is full. `place` says where a row lies: between two places of
    /// a slice.
    #[inline(always)]
    fn fill<'v>(&mut self, place: impl Fn(usize) -> (&'v [u8], usize, usize)) {
        let rows = self.column.len();
        let (mut at, mut row) = (self.filled, self.row);
        while at < BLOCK_BYTES && row < rows {
            let (values, start, end) = place(row);
            let bytes = end - start;
            // Bytes behind the row are overwritten by what follows.
            if bytes <= INLINE_BYTES && start + INLINE_BYTES <= values.len() {
                self.block[at..at + INLINE_BYTES].copy_from_slice(&values[start..start + INLINE_BYTES]);
                at += bytes;
            } else if bytes <= PIECE_BYTES && start + PIECE_BYTES <= values.len() {
                self.block[at..at + PIECE_BYTES].copy_from_slice(&values[start..start + PIECE_BYTES]);
                at += bytes;
            } else {
                let left = &values[start + self.copied..end];
                let room = BLOCK_BYTES - at;
                let part = left.len().min(room);
                copy(&mut self.block[at..], &values[start + self.copied..], part);
                at += part;
                if part < left.len() {
                    self.copied += part;
                    break;
                }
                self.copied = 0;
            }
            self.block[at] = SEPARATOR;
            at += 1;
            row += 1;
        }
        (self.filled, self.row) = (at, row);
    }
}

/// Copies the first `part` bytes; what lies behind them in `to` may be overwritten.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8], part: usize) {
    /// Longer parts are copied by the routine of the system.
    const LONG_BYTES: usize = 512;
    let whole = part.next_multiple_of(PIECE_BYTES);
    if part > LONG_BYTES || whole > from.len() {
        return to[..part].copy_from_slice(&from[..part]);
    }
    let pieces = to[..whole].as_chunks_mut::<PIECE_BYTES>().0;
    for (to, from) in pieces.iter_mut().zip(from[..whole].as_chunks::<PIECE_BYTES>().0) {
        *to = *from;
    }
}
