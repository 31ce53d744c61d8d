//! Views of strings that lie one behind the other, searched where those lie.
//!
//! **Problem.** Copying strings to blocks takes longer than searching them.
//!
//! **Idea.** A file's page or a builder writes the strings of views into one buffer in the order of
//! their rows, but for those of up to 12 bytes, which are in the views. So a stretch of rows is two
//! columns: one of offsets into the buffer, searched in place as any other, and one of the views
//! that hold their strings, which are copied. Bytes between two strings are a row that nobody asks
//! for. The answers of both are put together in the order of the rows.
//!
//! **Leaves out** views in another order, as those of a dictionary are, buffers beyond 2 GB, and
//! stretches with much between the strings, as a filter leaves them: these rows are copied.

use super::rows::{parts, INLINE_BYTES};
use crate::bits::{BitKernel, BitWriter, Bitmap};

/// Rows of one stretch at most: their offsets stay in the second-level cache.
const MOST_ROWS: usize = 16 << 10;
/// Strings of fewer bytes are copied.
const LEAST_BYTES: usize = 4 << 10;
/// So many bytes between strings are read for nothing, and one more for each four in strings.
const SLACK_BYTES: usize = 1 << 10;
const GAPS_PART: usize = 4;

/// Rows whose strings lie one behind the other in one buffer, or in the views.
#[derive(Default)]
pub(super) struct Strings {
    pub(super) buffer: usize,
    /// Ends of strings, and of what lies between them; none where all strings are in views.
    pub(super) offsets: Vec<i32>,
    /// Which of the offsets' rows are strings.
    is_string: Vec<u64>,
    strings: usize,
    /// The views that hold their strings.
    pub(super) inline: Vec<[u8; 16]>,
    /// Which rows have their strings in the buffer.
    is_long: Vec<u64>,
    rows: usize,
}

impl Strings {
    /// Takes the first rows, as many as lie together; their number.
    pub(super) fn fill(&mut self, views: &[[u8; 16]]) -> usize {
        self.offsets.clear();
        self.inline.clear();
        self.is_string.clear();
        self.is_long.clear();
        (self.rows, self.strings) = (0, 0);
        let (mut buffer, mut begin, mut end, mut gaps) = (None, 0, 0, 0);
        let mut longs = 0;
        for view in &views[..views.len().min(MOST_ROWS)] {
            let (bytes, number, offset) = parts(view);
            if bytes <= INLINE_BYTES {
                self.inline.push(*view);
            } else {
                let after = offset + bytes;
                if buffer.is_none() {
                    (buffer, begin, end) = (Some(number), offset, offset);
                    self.offsets.push(offset as i32);
                }
                let gap = offset.wrapping_sub(end);
                if gap != 0 {
                    gaps = if offset > end { gaps + gap } else { usize::MAX };
                    if gaps > SLACK_BYTES + (end - begin) / GAPS_PART {
                        break;
                    }
                }
                if buffer != Some(number) || i32::try_from(after).is_err() {
                    break;
                }
                if gap != 0 {
                    self.add_end(offset, false);
                }
                self.add_end(after, true);
                self.strings += 1;
                end = after;
                longs |= 1 << (self.rows % 64);
            }
            self.rows += 1;
            if self.rows.is_multiple_of(64) {
                self.is_long.push(longs);
                longs = 0;
            }
        }
        self.is_long.push(longs);
        self.buffer = buffer.map_or(0, |buffer| buffer as usize);
        self.rows
    }

    #[inline(always)]
    fn add_end(&mut self, end: usize, is_string: bool) {
        let row = self.offsets.len() - 1;
        if row.is_multiple_of(64) {
            self.is_string.push(0);
        }
        self.is_string[row / 64] |= u64::from(is_string) << (row % 64);
        self.offsets.push(end as i32);
    }

    /// Whether so much lies together that it is worth a search of its own.
    pub(super) fn are_worth_it(&self) -> bool {
        let bytes = self.offsets.last().map_or(0, |end| (end - self.offsets[0]) as usize);
        bytes >= LEAST_BYTES && self.inline.len() <= self.strings
    }

    /// Appends the bits of all rows: `long` are those of the offsets' rows, `inline` those of the
    /// views that hold their strings.
    pub(super) fn join(&self, long: &Bitmap, inline: &Bitmap, out: &mut BitWriter) {
        let compressed;
        let has_gaps = long.len() > self.strings;
        let long = match has_gaps {
            true => {
                let mut strings = BitWriter::with_room_for(self.strings);
                (BitKernel::detect().append)(long.words(), &self.is_string, &mut strings);
                compressed = strings.finish();
                &compressed
            }
            false => long.words(),
        };
        let (mut long, mut inline) = (Bits::new(long), Bits::new(inline.words()));
        for (number, &places) in self.is_long.iter().enumerate() {
            let rows = (self.rows - 64 * number).min(64) as u32;
            let longs = places.count_ones();
            let strings = long.take(longs);
            let bits = match longs == rows {
                true => strings,
                false => spread(strings, places) | spread(inline.take(rows - longs), !places),
            };
            if rows > 0 {
                out.push(bits, rows);
            }
        }
    }
}

/// Bits that are taken from the lowest one on.
struct Bits<'w> {
    words: &'w [u64],
    at: usize,
}

impl Bits<'_> {
    fn new(words: &[u64]) -> Bits<'_> {
        Bits { words, at: 0 }
    }

    /// The next bits, up to 64.
    fn take(&mut self, count: u32) -> u64 {
        let (word, shift) = (self.at / 64, self.at % 64);
        self.at += count as usize;
        let part = |word: usize| self.words.get(word).copied().unwrap_or(0);
        let bits = match shift {
            0 => part(word),
            _ => part(word) >> shift | part(word + 1) << (64 - shift),
        };
        match count {
            64 => bits,
            _ => bits & ((1 << count) - 1),
        }
    }
}

/// The lowest bits, each moved to the next place that is set.
fn spread(mut bits: u64, mut places: u64) -> u64 {
    let mut spread = 0;
    while bits != 0 {
        let place = places & places.wrapping_neg();
        spread |= if bits & 1 == 1 { place } else { 0 };
        places ^= place;
        bits >>= 1;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_to_places_that_are_set() {
        for (bits, places) in [(0b1011, 0b1111_0000), (0b101, 0b1000_1010), (1, 1 << 63), (!0, !0), (0, 0)] {
            let set: Vec<u32> = (0..64).filter(|at| places >> at & 1u64 == 1).collect();
            let expected =
                set.iter().enumerate().fold(0, |all, (at, place)| all | (bits >> at & 1u64) << place);
            let mask = if set.len() == 64 { !0 } else { (1 << set.len()) - 1 };
            assert_eq!(spread(bits & mask, places), expected, "{bits:b} {places:b}");
        }
    }

    /// Rows come back in their order: each with the bit that its string got.
    #[test]
    fn rows_keep_their_order() {
        let lengths = |row: usize| if row % 7 == 2 { row % 13 } else { 13 + row % 31 };
        for (between, mixed, rows) in [(0, false, 500), (0, true, 500), (9, true, 640), (3, false, 64)] {
            let (mut views, mut end) = (Vec::new(), 40);
            for row in 0..rows {
                let bytes = if mixed { lengths(row) } else { 13 + row % 31 };
                let mut view = [0; 16];
                view[0] = bytes as u8;
                if bytes > INLINE_BYTES {
                    end += if row % 5 == 3 { between } else { 0 };
                    view[8] = 1;
                    view[12..].copy_from_slice(&(end as u32).to_le_bytes());
                    end += bytes;
                }
                views.push(view);
            }
            let mut strings = Strings::default();
            assert_eq!(strings.fill(&views), rows);
            assert_eq!((strings.buffer, strings.are_worth_it()), (1, rows > 64));
            let is_hit = |view: &[u8; 16]| view[0].is_multiple_of(3);
            let mut long = Bitmap::zeros(strings.offsets.len() - 1);
            for (row, pair) in strings.offsets.windows(2).enumerate() {
                let bytes = pair[1] - pair[0];
                // What lies between strings matches here, and is nobody's.
                long.set(row, bytes % 3 == 0 || bytes <= INLINE_BYTES as i32);
            }
            let mut inline = Bitmap::zeros(strings.inline.len());
            strings.inline.iter().enumerate().for_each(|(row, view)| inline.set(row, is_hit(view)));
            let mut out = BitWriter::default();
            strings.join(&long, &inline, &mut out);
            let found = Bitmap::from_words(out.finish(), rows);
            for (row, view) in views.iter().enumerate() {
                assert_eq!(found.get(row), is_hit(view), "{between} {mixed} row {row}");
            }
        }
    }

    #[test]
    fn strings_that_lie_apart_end_a_stretch() {
        let view = |bytes: u8, buffer: u8, place: u32| {
            let mut view = [0; 16];
            (view[0], view[8]) = (bytes, buffer);
            view[12..].copy_from_slice(&place.to_le_bytes());
            view
        };
        for (next, rows) in [
            (view(20, 0, 70), 3),
            (view(20, 0, 40), 2),
            (view(20, 1, 50), 2),
            (view(20, 0, 50 + SLACK_BYTES as u32 + 100), 2),
            (view(20, 0, i32::MAX as u32), 2),
        ] {
            let mut strings = Strings::default();
            assert_eq!(strings.fill(&[view(20, 0, 10), view(20, 0, 30), next]), rows, "{next:?}");
        }
        let mut strings = Strings::default();
        assert_eq!(strings.fill(&[view(20, 0, i32::MAX as u32)]), 0);
        assert!(!strings.are_worth_it());
    }
}
