//! Finds the words whose window is marked, and chooses the window of each word.
//!
//! The best window of a word is the one that is rarest in the text: a sample of the text counts
//! hashes of windows. Words are sorted by their window's hash and numbered by its upper bits. A
//! word is compared by its first eight bytes under a mask, then by its last eight.

use super::list::{List, Spelling, CASE_BIT};
use super::tables::{value, window_at, Tables, MULTIPLIERS};

/// Bits of a hash that the sample distinguishes.
const SAMPLE_BITS: u32 = 16;
/// The sample has this many pieces.
const SAMPLE_PIECES: usize = 16;
const PIECE_BYTES: usize = 4096;
/// The pieces are spread over this many bytes of the text.
const SPREAD_BYTES: usize = 1 << 20;

/// A word and its window.
#[derive(Clone, Debug)]
struct Word {
    hash: u32,
    /// The offset of the window in the word.
    window: u32,
    bytes: u32,
    /// The word's number in the list.
    number: u32,
    /// The first eight bytes, or all of a shorter word.
    head: u64,
    head_folds: u64,
    head_mask: u64,
    /// The last eight bytes, if the word has more than eight.
    tail: u64,
    tail_folds: u64,
}

/// Words by the hashes of their windows, and the tables that find such windows.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) tables: Tables,
    words: Vec<Word>,
    buckets: Vec<u32>,
    bucket_shift: u32,
}

impl Index {
    /// An index for windows that are rare in `text`, and for a kernel that tells so many words'
    /// windows without a look into memory. With more, each word that is long enough has two windows
    /// one byte apart, so that every second position is looked at. Cost: reads 64 KB of text and
    /// every word, which takes some hundred microseconds for thousands of words.
    pub(super) fn new(list: &List, text: &[u8], most_in_registers: usize) -> Index {
        let shortest = list.words.iter().map(|word| word.bytes.len()).min().unwrap_or(0);
        let length = shortest.min(4);
        let folds = list.words.iter().any(|word| word.folds.iter().any(|&fold| fold != 0));
        let step = if list.words.len() > most_in_registers && shortest > length { 2 } else { 1 };
        let mut tables = Tables::new(length, list.words.len(), if folds { CASE_BIT } else { 0 }, step);
        let sample = sample(text, &tables);
        let mut windows = Vec::with_capacity(step * list.words.len());
        let mut words = Vec::with_capacity(step * list.words.len());
        for (number, word) in list.words.iter().enumerate() {
            let first = rarest(word, length, &tables, &sample);
            for window in first..first + step {
                let folded = tables.folded(value(&word.bytes[window..window + length]));
                tables.add(folded);
                windows.push(folded);
                words.push(Word::new(word, number, window, hash(folded)));
            }
        }
        tables.add_nibbles(&windows, length);
        words.sort_by_key(|word| word.hash);
        let bits = (words.len().max(8).ilog2() + 2).min(16);
        let mut index = Index { tables, words, buckets: vec![0; (1 << bits) + 1], bucket_shift: 32 - bits };
        index.number_buckets();
        index
    }

    fn number_buckets(&mut self) {
        for word in &self.words {
            self.buckets[(word.hash >> self.bucket_shift) as usize + 1] += 1;
        }
        for bucket in 1..self.buckets.len() {
            self.buckets[bucket] += self.buckets[bucket - 1];
        }
    }

    /// Whether a window at `at` is that of a word, and the word stands around it.
    #[inline]
    pub(super) fn stands_at(&self, list: &List, text: &[u8], at: usize) -> bool {
        let hash = hash(self.tables.folded(window_at(text, at)));
        let bucket = (hash >> self.bucket_shift) as usize;
        let words = &self.words[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize];
        words.iter().any(|word| word.hash == hash && word.stands_around(list, text, at))
    }

    /// Calls `hit` with the number of each word that stands around the window at `at`, and where
    /// the word begins.
    #[inline]
    pub(super) fn each_at(&self, list: &List, text: &[u8], at: usize, hit: &mut impl FnMut(usize, usize)) {
        let hash = hash(self.tables.folded(window_at(text, at)));
        let bucket = (hash >> self.bucket_shift) as usize;
        for word in &self.words[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
            if word.hash == hash && word.stands_around(list, text, at) {
                hit(word.number as usize, at - word.window as usize);
            }
        }
    }
}

impl Word {
    fn new(spelling: &Spelling, number: usize, window: usize, hash: u32) -> Word {
        let bytes = spelling.bytes.len();
        let eight = |from: &[u8]| {
            let mut eight = [0; 8];
            eight[..from.len().min(8)].copy_from_slice(&from[..from.len().min(8)]);
            u64::from_le_bytes(eight)
        };
        let last = bytes.saturating_sub(8);
        Word {
            hash,
            window: window as u32,
            bytes: bytes as u32,
            number: number as u32,
            head: eight(&spelling.bytes),
            head_folds: eight(&spelling.folds),
            head_mask: u64::MAX >> (8 * (8 - bytes.min(8))),
            tail: eight(&spelling.bytes[last..]),
            tail_folds: eight(&spelling.folds[last..]),
        }
    }

    #[inline]
    fn stands_around(&self, list: &List, text: &[u8], at: usize) -> bool {
        let Some(start) = at.checked_sub(self.window as usize) else { return false };
        let Some(head) = eight_at(text, start) else { return self.is_spelled(list, &text[start..]) };
        if (head | self.head_folds) & self.head_mask != self.head {
            return false;
        }
        let bytes = self.bytes as usize;
        if bytes <= 8 {
            return true;
        }
        let Some(tail) = eight_at(text, start + bytes - 8) else { return false };
        tail | self.tail_folds == self.tail && (bytes <= 16 || self.is_spelled(list, &text[start..]))
    }

    /// Whether `text` begins with the word, compared byte by byte.
    fn is_spelled(&self, list: &List, text: &[u8]) -> bool {
        let Spelling { bytes, folds } = &list.words[self.number as usize];
        text.len() >= bytes.len()
            && text.iter().zip(folds).zip(bytes).all(|((&found, &fold), &byte)| found | fold == byte)
    }
}

fn hash(window: u32) -> u32 {
    window.wrapping_mul(MULTIPLIERS[0])
}

fn eight_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|&bytes| u64::from_le_bytes(bytes))
}

/// How often each hash of a window occurs in the sampled pieces of the text.
fn sample(text: &[u8], tables: &Tables) -> Vec<u16> {
    let mut counts = vec![0u16; 1 << SAMPLE_BITS];
    let spread = text.len().min(SPREAD_BYTES);
    let step = (spread / SAMPLE_PIECES).max(PIECE_BYTES);
    for start in (0..spread).step_by(step) {
        let piece = &text[start..text.len().min(start + PIECE_BYTES)];
        for window in piece.windows(4) {
            let count = &mut counts[sample_place(tables.folded(value(window)))];
            *count = count.saturating_add(1);
        }
    }
    counts
}

fn sample_place(window: u32) -> usize {
    (hash(window) >> (32 - SAMPLE_BITS)) as usize
}

/// The offset of a word's rarest window, or of the first one of the rarest two.
fn rarest(word: &Spelling, length: usize, tables: &Tables, sample: &[u16]) -> usize {
    let cost = |&first: &usize| {
        let windows = (first..first + tables.step).map(|at| &word.bytes[at..at + length]);
        windows.fold((0, 0), |(times, common), window| {
            let sampled = sample[sample_place(tables.folded(value(window)))];
            (times + u32::from(sampled), common + commonness(window))
        })
    };
    (0..=word.bytes.len() + 1 - length - tables.step).min_by_key(cost).unwrap_or(0)
}

/// A rough measure of how common a window's bytes are in text: letters of frequent words weigh
/// most.
fn commonness(bytes: &[u8]) -> u32 {
    const FREQUENT: &[u8] = b"jqzxvkwybgpfmucdhlrsnioate ";
    let weight = |byte: u8| match FREQUENT.iter().position(|&known| known == byte) {
        Some(place) => 3 + place as u32,
        None if byte.is_ascii_graphic() => 4,
        None => 1,
    };
    bytes.iter().map(|&byte| weight(byte)).sum()
}
