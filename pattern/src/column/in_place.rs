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
use crate::transpose::{BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS};

/// The last bytes of rows in a chunk of the text.
struct RowEnds<'o, O> {
    offsets: &'o [O],
    /// The next row that has not ended.
    row: usize,
    words: [u64; CHUNK_WORDS],
}

impl<O: Offset> RowEnds<'_, O> {
    fn offset(&self, row: usize) -> usize {
        self.offsets[row].into() as usize
    }

    /// Marks the rows that end up to `to`, in the chunk that begins at `from`.
    fn fill(&mut self, from: usize, to: usize) {
        self.words = [0; CHUNK_WORDS];
        let rows = self.offsets.len() - 1;
        // Empty rows at the chunk's start have their end, but no byte, there.
        while self.row < rows && self.offset(self.row + 1) == from {
            self.row += 1;
        }
        // A word is kept in a register while rows end in it, and written each time: to read it back
        // from memory would take longer than all else.
        let (mut word, mut at_word) = (0u64, usize::MAX);
        let ends = &self.offsets[self.row + 1..];
        let mut count = 0;
        for &end in ends {
            let end = end.into() as usize;
            if end > to {
                break;
            }
            let at = end - 1 - from;
            let same = u64::from(at / 64 == at_word).wrapping_neg();
            word = word & same | 1 << (at % 64);
            at_word = at / 64;
            self.words[at_word % CHUNK_WORDS] = word;
            count += 1;
        }
        self.row += count;
    }
}

/// Runs a program over all rows: the bits of those that it marks, and `empty` for empty rows.
pub(super) fn run<O: Offset>(program: &RowProgram, values: &[u8], offsets: &[O], empty: bool) -> Bitmap {
    let bits = BitKernel::detect();
    let rows = offsets.len() - 1;
    let (first, end) = (offsets[0].into() as usize, offsets[rows].into() as usize);
    let mut ends = RowEnds { offsets, row: 0, words: [0; CHUNK_WORDS] };
    let mut marked = BitWriter::with_room_for(rows);
    let mut scan = program.scanner.scan_for(end - first);
    let mut from = first;
    while from < end {
        let to = end.min(from + CHUNK_BYTES);
        let row = ends.row;
        ends.fill(from, to);
        let chunk = &values[from..to];
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
        let words = chunk.len() / 64;
        let found = scan.feed_rows(chunk, &ends.words[..words]);
        let with_bytes = crate::kernel::count_ones(&ends.words[..words]) as usize;
        if with_bytes == ends.row - row {
            (bits.append)(found, &ends.words[..words], &mut marked);
        } else {
            let mut some = BitWriter::with_room_for(with_bytes);
            (bits.append)(found, &ends.words[..words], &mut some);
            with_empty_rows(&some.finish(), &offsets[row..=ends.row], empty, &mut marked);
        }
        from = to;
    }
    // Rows behind the last byte are empty.
    for _ in ends.row..rows {
        marked.push(u64::from(empty), 1);
    }
    Bitmap::from_words(marked.finish(), rows)
}

/// Appends the bits of rows, of which those that are not empty have theirs in `found`.
fn with_empty_rows<O: Offset>(found: &[u64], offsets: &[O], empty: bool, marked: &mut BitWriter) {
    let mut at = 0;
    for pair in offsets.windows(2) {
        let is_empty = pair[0] == pair[1];
        let bit = if is_empty { u64::from(empty) } else { found[at / 64] >> (at % 64) & 1 };
        marked.push(bit, 1);
        at += usize::from(!is_empty);
    }
}
