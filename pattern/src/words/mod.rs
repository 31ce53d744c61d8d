//! Lines that contain any of many strings.
//!
//! Each word is known by a window of its four bytes (or as many as the shortest word has), the one with the rarest bytes. A kernel marks the positions of
//! a text where such a window may stand, in two steps: a filter of 2,048 bits that costs a few instructions for 64 positions, where it is not
//! saturated by the number of words, and a bitmap of hashes. What is left is looked up in a table and compared. A hit reports
//! its line and skips the rest of it. Building takes microseconds for hundreds of words.
//! Left out: case folding, and words of one byte, which are a class. Source: the bucket filters of Hyperscan's FDR and Teddy (Wang et al.
//! 2019), with hashes in place of buckets.

#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::line;
use crate::plan::Push;
use std::ops::{ControlFlow, Range};

/// Positions that a kernel marks at a time.
const CHUNK_BYTES: usize = 4096;
/// Bytes behind the last position that a kernel may read.
const MARGIN_BYTES: usize = 128;
/// A filter of 2,048 bits passes too much beyond this many words.
const FILTERED_WORDS: usize = 1000;
/// Bits of a hash that number a bucket of the table.
const BUCKET_BITS: u32 = 14;
/// Odd, from the golden ratio (Knuth 1973, section 6.4).
const MULTIPLIER: u32 = 0x9e37_79b1;

/// Linear maps over bits that hash bytes: any regular ones do; each row of eight bits is a byte.
const ROWS: [u64; 4] = [
    0x8142_2418_1824_4281 ^ 0x0102_0408_1020_4080,
    0x9a3d_57c6_e1f0_2b84,
    0x6cb2_19e5_4f87_d03a,
    0xd4e8_3b96_725c_a10f,
];
/// The same for the bit within a row.
const BITS: [u64; 4] =
    [0x17c9_a265_3ed8_4bf0, 0xb38e_5d71_c40a_962f, 0x2f60_d89b_1ac7_e354, 0xe51a_7cb4_90d3_682d];

/// A word and where its window begins in it.
#[derive(Clone, Debug)]
struct Word {
    hash: u32,
    window: usize,
    bytes: Range<usize>,
}

/// What the kernel reads.
#[derive(Clone, Debug)]
struct Tables {
    /// Bytes of a window, as a mask.
    mask: u32,
    /// Bit `q` of byte `r` is set for each window with these two hashes; none where it would be saturated.
    filter: Option<Box<[u8; 256]>>,
    rows: [u64; 4],
    bits: [u64; 4],
    /// Bit `h` is set for each window whose hash begins with the bits of `h`.
    bitmap: Vec<u32>,
    bitmap_bits: u32,
}

/// A search for many words.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    tables: Tables,
    words: Vec<Word>,
    letters: Vec<u8>,
    buckets: Vec<u32>,
}

impl Words {
    /// A search for these words, where this machine has the instructions and no word is too short.
    pub(crate) fn new<'w>(all: impl Iterator<Item = &'w [u8]> + Clone) -> Option<Words> {
        let shortest = all.clone().map(<[u8]>::len).min()?;
        if shortest < 2 || !is_available() {
            return None;
        }
        let length = shortest.min(4);
        let mut words = Words {
            tables: Tables::new(length, all.clone().count()),
            words: Vec::new(),
            letters: Vec::new(),
            buckets: vec![0; (1 << BUCKET_BITS) + 1],
        };
        all.for_each(|word| words.add(word, length));
        words.sort();
        Some(words)
    }

    fn add(&mut self, word: &[u8], length: usize) {
        let window =
            (0..=word.len() - length).min_by_key(|&at| commonness(&word[at..at + length])).unwrap_or(0);
        let value = value(&word[window..window + length]);
        let start = self.letters.len();
        self.letters.extend_from_slice(word);
        self.words.push(Word { hash: hash(value), window, bytes: start..self.letters.len() });
        self.tables.add(value);
    }

    fn sort(&mut self) {
        self.words.sort_by_key(|word| word.hash);
        for word in &self.words {
            self.buckets[(word.hash >> (32 - BUCKET_BITS)) as usize + 1] += 1;
        }
        for bucket in 1..self.buckets.len() {
            self.buckets[bucket] += self.buckets[bucket - 1];
        }
    }

    /// Pushes the lines that contain a word.
    pub(crate) fn lines(&self, text: &[u8], terminator: u8, push: &mut Push<'_>) -> ControlFlow<()> {
        let mut marked = [0u16; CHUNK_BYTES + 64];
        let (mut from, mut past) = (0, 0);
        while from < text.len() {
            let end = self.mark(text, from, &mut marked);
            let (end, count) = end;
            for &offset in &marked[..count] {
                let at = from + usize::from(offset);
                if at >= past && self.stands_at(text, at) {
                    let start = past + line::start_of(&text[past..], at - past, terminator);
                    past = line::end_of(text, at, terminator);
                    push(start..past)?;
                }
            }
            from = end.max(past);
        }
        ControlFlow::Continue(())
    }

    /// Marks where windows may stand from `from` on; where it stopped, and how many.
    fn mark(&self, text: &[u8], from: usize, marked: &mut [u16; CHUNK_BYTES + 64]) -> (usize, usize) {
        let room = text.len().saturating_sub(from + MARGIN_BYTES) / 64 * 64;
        if room >= 64 {
            let end = from + room.min(CHUNK_BYTES);
            return (end, mark(&self.tables, text, from, end, marked));
        }
        let end = text.len().min(from + CHUNK_BYTES);
        let mut count = 0;
        for at in from..end {
            if self.tables.passes(window_at(text, at) & self.tables.mask) {
                marked[count] = (at - from) as u16;
                count += 1;
            }
        }
        (end, count)
    }

    /// Whether a word's window stands at `at`, and the word around it.
    fn stands_at(&self, text: &[u8], at: usize) -> bool {
        let hash = hash(window_at(text, at) & self.tables.mask);
        let bucket = (hash >> (32 - BUCKET_BITS)) as usize;
        let words = &self.words[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize];
        words.iter().any(|word| {
            word.hash == hash
                && word.window <= at
                && text[at - word.window..].starts_with(&self.letters[word.bytes.clone()])
        })
    }
}

impl Tables {
    fn new(length: usize, words: usize) -> Tables {
        let bitmap_bits = if words > FILTERED_WORDS { 17 } else { 16 };
        let only = |matrices: [u64; 4]| std::array::from_fn(|at| if at < length { matrices[at] } else { 0 });
        Tables {
            mask: u32::MAX >> (8 * (4 - length)),
            filter: (words <= FILTERED_WORDS).then(|| Box::new([0; 256])),
            rows: only(ROWS),
            bits: only(BITS),
            bitmap: vec![0; 1 << (bitmap_bits - 5)],
            bitmap_bits,
        }
    }

    fn add(&mut self, value: u32) {
        let (row, bit) = self.filtered(value);
        if let Some(filter) = &mut self.filter {
            filter[row] |= 1 << bit;
        }
        let hash = hash(value) >> (32 - self.bitmap_bits);
        self.bitmap[(hash >> 5) as usize] |= 1 << (hash & 31);
    }

    /// The filter's row and bit of a window.
    fn filtered(&self, value: u32) -> (usize, u32) {
        let sum = |matrices: &[u64; 4]| {
            let bytes = value.to_le_bytes();
            matrices.iter().zip(bytes).fold(0, |sum, (&matrix, byte)| sum ^ affine(matrix, byte))
        };
        (usize::from(sum(&self.rows)), u32::from(sum(&self.bits) & 7))
    }

    fn passes(&self, value: u32) -> bool {
        let hash = hash(value) >> (32 - self.bitmap_bits);
        self.bitmap[(hash >> 5) as usize] >> (hash & 31) & 1 == 1
    }
}

fn hash(value: u32) -> u32 {
    value.wrapping_mul(MULTIPLIER)
}

/// Up to four bytes, the first one lowest.
fn value(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// The four bytes from `at` on, zeros behind the text.
fn window_at(text: &[u8], at: usize) -> u32 {
    match text[at..].first_chunk() {
        Some(&bytes) => u32::from_le_bytes(bytes),
        None => value(&text[at..]),
    }
}

/// A matrix of bits times a byte: bit `i` is the parity of row `7 - i` and the byte, as GFNI has it.
fn affine(matrix: u64, byte: u8) -> u8 {
    (0..8).fold(0, |sum, at| {
        let row = matrix.to_le_bytes()[7 - at];
        sum | ((row & byte).count_ones() as u8 & 1) << at
    })
}

/// How common a window's bytes are in text, roughly: letters of frequent words weigh most.
fn commonness(bytes: &[u8]) -> u32 {
    const FREQUENT: &[u8] = b"jqzxvkwybgpfmucdhlrsnioate ";
    let weight = |byte: u8| match FREQUENT.iter().position(|&known| known == byte) {
        Some(place) => 3 + place as u32,
        None if byte.is_ascii_graphic() => 4,
        None => 1,
    };
    bytes.iter().map(|&byte| weight(byte)).sum()
}

#[cfg(target_arch = "x86_64")]
fn is_available() -> bool {
    avx512::is_available()
}

#[cfg(not(target_arch = "x86_64"))]
fn is_available() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn mark(
    tables: &Tables,
    text: &[u8],
    from: usize,
    end: usize,
    marked: &mut [u16; CHUNK_BYTES + 64],
) -> usize {
    avx512::mark(tables, text, from, end, marked)
}

/// Never called, as no search is built.
#[cfg(not(target_arch = "x86_64"))]
fn mark(_: &Tables, _: &[u8], _: usize, _: usize, _: &mut [u16; CHUNK_BYTES + 64]) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_marks_what_the_tables_say() {
        let words: Vec<String> =
            (0..2500u32).map(|n| format!("w{}", n.wrapping_mul(2_654_435_761) % 99_991)).collect();
        let text: Vec<u8> =
            (0..60_000u32).flat_map(|n| format!("{} w{}\n", n, n * 7 % 99_991).into_bytes()).collect();
        for count in [1, 20, 500, 1000, 1001, 2500] {
            let Some(search) = Words::new(words[..count].iter().map(String::as_bytes)) else {
                println!("skipped: no AVX-512 here");
                return;
            };
            let mut marked = [0; CHUNK_BYTES + 64];
            for from in [0, 1, 4097] {
                let (end, found) = search.mark(&text, from, &mut marked);
                assert_eq!(end, from + CHUNK_BYTES);
                let passes = |&at: &usize| search.tables.passes(window_at(&text, at) & search.tables.mask);
                let all: Vec<u16> = (from..end).filter(passes).map(|at| (at - from) as u16).collect();
                // The filter may drop what the bitmap lets through by accident, never a word's own window.
                let marked = &marked[..found];
                assert!(marked.iter().all(|at| all.contains(at)));
                let stands = |at: &&u16| search.stands_at(&text, from + usize::from(**at));
                let expected: Vec<&u16> = all.iter().filter(stands).collect();
                assert_eq!(marked.iter().filter(stands).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn words_are_found_at_both_ends_of_a_text() {
        let Some(search) = Words::new([&b"needle"[..], b"pin"].into_iter()) else {
            println!("skipped: no AVX-512 here");
            return;
        };
        for length in [0, 1, 100, 127, 128, 200, 4096, 5000, 9000] {
            let text =
                [&b"pin"[..], &b"-".repeat(length), b"\n", &b"x\n".repeat(length), b"needl\nneedle"].concat();
            let mut lines = Vec::new();
            let _ = search.lines(&text, b'\n', &mut |line| {
                lines.push(line);
                ControlFlow::Continue(())
            });
            assert_eq!(lines, [0..length + 4, text.len() - 6..text.len()], "{length}");
        }
    }
}
