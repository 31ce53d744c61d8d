//! All words that stand in a text, each with its place: the search for sets of patterns.
//!
//! The search for lines stops at the first word of a line; here every mark is looked up, and all
//! words that stand there are reported. **Leaves out** letters with a form beyond ASCII: callers do
//! not ask for them.

use super::index::Index;
use super::list::{List, Spelling};
use super::{MarkKernel, Words, CHUNK_BYTES, KERNELS};
use regex_syntax::hir::Hir;

/// A word's bytes, and for each the bit that its two cases differ in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spelled {
    pub(crate) bytes: Vec<u8>,
    pub(crate) folds: Vec<u8>,
}

/// The words that an expression is an alternation of; none where it is anything else, or a letter
/// has a third form.
pub(crate) fn spelled(hir: &Hir, most: usize) -> Option<Vec<Spelled>> {
    let list = List::of(hir, most)?;
    let words = list.words.into_iter().map(|word| Spelled { bytes: word.bytes, folds: word.folds });
    (!list.has_long_forms).then(|| words.collect())
}

/// A search for all places of many words.
#[derive(Debug)]
pub(crate) struct WordSet {
    words: Words,
    index: Index,
}

impl WordSet {
    /// A search for words of at least two bytes in texts like `sample`; none where this machine has
    /// no fast kernel for as many.
    pub(crate) fn new(words: &[Spelled], sample: &[u8]) -> Option<WordSet> {
        let fits = |kernel: &&MarkKernel| (kernel.is_available)() && words.len() >= kernel.fewest_words;
        WordSet::with_kernel(words, sample, KERNELS.iter().find(fits)?)
    }

    fn with_kernel(words: &[Spelled], sample: &[u8], kernel: &'static MarkKernel) -> Option<WordSet> {
        let spelling = |word: &Spelled| Spelling { bytes: word.bytes.clone(), folds: word.folds.clone() };
        let list = List { words: words.iter().map(spelling).collect(), ..List::default() };
        let index = Index::new(&list, sample, kernel.most_in_registers);
        Some(WordSet { words: Words::with_kernel(list, kernel)?, index })
    }

    /// Calls `hit` with the number of each word that stands in the text, and where it begins;
    /// nearly in the order of the text.
    pub(crate) fn each_hit(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        let mut marks = [0u16; CHUNK_BYTES + 64];
        let mut from = 0;
        while from < text.len() {
            let (end, count) = self.words.mark(&self.index.tables, text, from, &mut marks);
            for &offset in &marks[..count] {
                self.index.each_at(&self.words.list, text, from + usize::from(offset), &mut hit);
            }
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(word: &[u8]) -> Spelled {
        Spelled { bytes: word.to_vec(), folds: vec![0; word.len()] }
    }

    #[test]
    fn all_places_of_all_words_are_found() {
        let words: [&[u8]; 6] = [b"abc", b"abcd", b"bcd", b"dab", b"cabcabcabcabcabcabc", b"abc"];
        let folded = Spelled { bytes: b"xy".to_vec(), folds: vec![0x20; 2] };
        let list: Vec<Spelled> = words.into_iter().map(exact).chain([folded]).collect();
        let text =
            [&b"abcdabcabcabcabcabcabcXy-xYabc"[..], &b"-".repeat(300), &b"dabcd xy".repeat(700)].concat();
        check(&list, &text);
    }

    #[test]
    fn each_place_of_a_word_with_two_windows_is_found_once() {
        let mut random = 7u32;
        let mut letters = |count: usize| -> Vec<u8> {
            let letter = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b'a' + (random >> 30) as u8
            };
            std::iter::repeat_with(letter).take(count).collect()
        };
        // So many that kernels look at every second position.
        let mut list: Vec<Spelled> = (0..1500).map(|number| exact(&letters(5 + number % 3))).collect();
        list.extend([exact(b"aaaaa"), exact(b"aaaaaaaa")]);
        let text = [letters(9000), b"a".repeat(50), letters(500)].concat();
        check(&list, &text);
    }

    fn check(list: &[Spelled], text: &[u8]) {
        let mut expected: Vec<(usize, usize)> = Vec::new();
        for (number, word) in list.iter().enumerate() {
            for at in 0..text.len() {
                let stands = text[at..].len() >= word.bytes.len()
                    && word.bytes.iter().zip(&word.folds).zip(&text[at..]).all(|((b, f), t)| t | f == *b);
                if stands {
                    expected.push((number, at));
                }
            }
        }
        for kernel in KERNELS.iter().filter(|kernel| (kernel.is_available)()) {
            let words = WordSet::with_kernel(list, text, kernel).unwrap();
            let mut found = Vec::new();
            words.each_hit(text, |word, at| found.push((word, at)));
            found.sort_unstable();
            assert_eq!(found, expected, "{}", kernel.name);
        }
    }
}
