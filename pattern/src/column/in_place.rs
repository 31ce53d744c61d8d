//! A program over rows where they lie, one behind the other, without a byte between them.
//!
//! **Problem.** A row of values with offsets ends between two bytes, and copying rows to put a byte
//! there takes longer than searching them.
//!
//! **Idea.** The program is given a stream besides the text: the last bytes of rows
//! ([`crate::compile::Haystack::MarkedRow`]). It is made from the offsets, 4 KB of text at a time,
//! and the program marks the last bytes of rows that match. The bits at the ends of rows, side by
//! side, are the bitmap. Empty rows have no byte: all of them have the answer of one.
//!
//! Cost: a row takes a few instructions besides those of its bytes.

use super::program::RowProgram;
use super::rows::Offset;
use crate::bits::{BitKernel, BitWriter, Bitmap};
use crate::kernel::ascii::is_ascii;
use crate::transpose::{BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS};
use std::ops::Range;

/// Rows of fewer bytes on average are short: many end in a word of 64 positions.
const SHORT_BYTES: usize = 48;

/// The last bytes of rows in a chunk of the text.
struct RowEnds<'o, O> {
    offsets: &'o [O],
    bits: &'static BitKernel,
    /// The next row that has not ended.
    row: usize,
    words: [u64; CHUNK_WORDS],
    /// Not zero where a row ends; zero between chunks.
    bytes: Box<[u8; CHUNK_BYTES]>,
}

impl<O: Offset> RowEnds<'_, O> {
    fn offset(&self, row: usize) -> usize {
        self.offsets[row].into() as usize
    }

    /// Passes over empty rows at the start of the text, which have their end there but no byte.
    fn pass_empty(&mut self, first: usize) {
        while self.row + 1 < self.offsets.len() && self.offset(self.row + 1) == first {
            self.row += 1;
        }
    }

    /// Marks long rows that end up to `to`, in the chunk that begins at `from`. An empty row has
    /// the last byte of the row before it.
    fn mark_long(&mut self, from: usize, to: usize) {
        self.words = [0; CHUNK_WORDS];
        let mut count = 0;
        for &end in &self.offsets[self.row + 1..] {
            let end = end.into() as usize;
            if end > to {
                break;
            }
            let at = end - 1 - from;
            self.words[at / 64] |= 1 << (at % 64);
            count += 1;
        }
        self.row += count;
    }

    /// Marks short rows that end in the chunk that begins at `from`: bytes first, which
    /// do not wait for each other as bits of one word do, and words from those. Returns how many
    /// bytes end rows.
    fn mark_short(&mut self, from: usize) -> usize {
        let mut count = 0;
        for &end in &self.offsets[self.row + 1..] {
            // A row that ends behind the chunk has no byte in the array.
            let Some(byte) = self.bytes.get_mut((end.into() as usize).wrapping_sub(from + 1)) else { break };
            *byte = 1;
            count += 1;
        }
        self.row += count;
        (self.bits.take)(&mut self.bytes[..], &mut self.words) as usize
    }
}

/// Runs a program over all rows: the bits of those that it marks, and `empty` for empty rows. Rows
/// in chunks that hold characters beyond ASCII are noted in `others`, where that is wanted.
pub(super) fn run<O: Offset>(
    program: &RowProgram,
    values: &[u8],
    offsets: &[O],
    empty: bool,
    mut others: Option<&mut Vec<Range<usize>>>,
) -> Bitmap {
    let bits = BitKernel::detect();
    let rows = offsets.len() - 1;
    let (first, end) = (offsets[0].into() as usize, offsets[rows].into() as usize);
    let are_short = (end - first) / rows.max(1) < SHORT_BYTES;
    let (words, bytes) = ([0; CHUNK_WORDS], Box::new([0; CHUNK_BYTES]));
    let mut ends = RowEnds { offsets, bits, row: 0, words, bytes };
    let mut marked = BitWriter::with_room_for(rows);
    let mut scan = program.scanner.scan_for(end - first);
    ends.pass_empty(first);
    (0..ends.row).for_each(|_| marked.push(u64::from(empty), 1));
    let mut from = first;
    while from < end {
        let to = end.min(from + CHUNK_BYTES);
        let row = ends.row;
        let with_bytes = match are_short {
            true => Some(ends.mark_short(from)),
            false => {
                ends.mark_long(from, to);
                None
            }
        };
        let chunk = &values[from..to];
        if let Some(others) = others.as_deref_mut().filter(|_| !is_ascii(chunk)) {
            note(others, row..rows.min(ends.row + 1));
        }
        let mut padded;
        let chunk = match chunk.len().is_multiple_of(BLOCK_BYTES) {
            true => chunk,
            // The last chunk is filled up with bytes of no row.
            false => {
                padded = [0; CHUNK_BYTES];
                padded[..chunk.len()].copy_from_slice(chunk);
                &padded[..chunk.len().next_multiple_of(BLOCK_BYTES)]
            }
        };
        let words = &ends.words[..chunk.len() / 64];
        let found = scan.feed_rows(chunk, words);
        let ended = &offsets[row..=ends.row];
        if with_bytes == Some(ended.len() - 1) {
            (bits.append)(found, words, &mut marked);
        } else {
            by_row(found, from, ended, empty, &mut marked);
        }
        from = to;
    }
    // Rows behind the last byte are empty.
    (ends.row..rows).for_each(|_| marked.push(u64::from(empty), 1));
    Bitmap::from_words(marked.finish(), rows)
}

/// Adds rows that follow those before, and may begin with the last ones of them.
pub(super) fn note(all: &mut Vec<Range<usize>>, rows: Range<usize>) {
    match all.last_mut().filter(|last| last.end >= rows.start) {
        Some(last) => last.end = rows.end,
        None => all.push(rows),
    }
}

/// Appends the bits of rows one by one, each from the place of its last byte in the chunk that
/// begins at `from`.
fn by_row<O: Offset>(found: &[u64], from: usize, offsets: &[O], empty: bool, marked: &mut BitWriter) {
    let rows = offsets.len() - 1;
    for first in (0..rows).step_by(64) {
        let count = (rows - first).min(64);
        let mut word = 0;
        for (number, pair) in offsets[first..=first + count].windows(2).enumerate() {
            let end = pair[1].into() as usize;
            // The byte before an empty row may lie before the chunk.
            let at = (end - 1).saturating_sub(from);
            let bit = if pair[0] == pair[1] { u64::from(empty) } else { found[at / 64] >> (at % 64) & 1 };
            word |= bit << number;
        }
        marked.push(word, count as u32);
    }
}
