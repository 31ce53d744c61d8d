//! Lines that contain any of many words.
//!
//! A word is found by a window: four consecutive bytes of it (fewer if the shortest word has
//! fewer), those that are rarest in the text. A kernel of [`KERNELS`] marks the positions where
//! such a window may stand, by the sieves of `tables`; `index` looks up the marked positions and
//! compares words. A hit reports its line and skips the rest of it. Words may fold the case of
//! ASCII letters; lines with a third form of a letter, which lies beyond ASCII, are decided by the
//! automaton. **Leaves out** words of one byte, which are a class. Source: the bucket filters of
//! Hyperscan's FDR and Teddy (Wang et al. 2019), with hashes in place of buckets.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod index;
mod list;
mod marks;
mod scalar;
mod set;
mod tables;

use crate::line::{self, Push, Wanted};
use crate::regex::automaton::Automaton;
use index::Index;
use list::List;
use marks::{Marks, CHUNK_BYTES, MARGIN_BYTES};
use regex_syntax::hir::Hir;
pub(crate) use set::{spelled, Spelled, WordSet};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use tables::Tables;

/// A way to mark the windows of a chunk.
#[derive(Clone, Copy, Debug)]
struct MarkKernel {
    name: &'static str,
    is_available: fn() -> bool,
    /// The fewest words for which it is faster than the automaton.
    fewest_words: usize,
    /// With more words, it looks for each position into memory; then every second position is
    /// looked at, where words are long enough.
    most_in_registers: usize,
    /// Marks the windows at positions `from..end` that pass the tables, and returns their number.
    /// The range is a multiple of 64 bytes and at most a chunk.
    mark: fn(&Tables, &[u8], usize, usize, &mut Marks) -> usize,
}

/// All kernels, the fastest first. The last one is the slow twin of the others and is never faster
/// than the automaton. AVX2 leaves out marks that the tables of nibbles tell to be no words.
const KERNELS: &[MarkKernel] = &[
    #[cfg(target_arch = "x86_64")]
    MarkKernel {
        name: "avx512",
        is_available: avx512::is_available,
        fewest_words: 1,
        most_in_registers: tables::WORDS_OF_TWO_FILTERS,
        mark: avx512::mark,
    },
    #[cfg(target_arch = "x86_64")]
    MarkKernel {
        name: "avx2",
        is_available: avx2::is_available,
        fewest_words: 1,
        most_in_registers: tables::WORDS_OF_NIBBLES,
        mark: avx2::mark,
    },
    MarkKernel {
        name: "scalar",
        is_available: || true,
        fewest_words: usize::MAX,
        most_in_registers: usize::MAX,
        mark: scalar::mark,
    },
];

/// A search for many words.
#[derive(Debug)]
pub(crate) struct Words {
    list: List,
    kernel: &'static MarkKernel,
    /// The index is made for the first text that is searched.
    index: OnceLock<Index>,
}

impl Words {
    /// A search for the words of an expression that is an alternation of at most `most` words.
    /// `None` if it is no such alternation, a word is too short, or the automaton is faster on this
    /// machine.
    pub(crate) fn new(hir: &Hir, most: usize) -> Option<Words> {
        let list = List::of(hir, most)?;
        let fits = |kernel: &&MarkKernel| (kernel.is_available)() && list.words.len() >= kernel.fewest_words;
        let kernel = KERNELS.iter().find(fits)?;
        Words::with_kernel(list, kernel)
    }

    fn with_kernel(list: List, kernel: &'static MarkKernel) -> Option<Words> {
        let is_long = list.words.iter().all(|word| word.bytes.len() >= 2);
        is_long.then(|| Words { list, kernel, index: OnceLock::new() })
    }

    /// The name of the kernel.
    pub(crate) fn kernel(&self) -> &'static str {
        self.kernel.name
    }

    /// The number of lines that contain a word. `spans` is the automaton of the same words.
    pub(crate) fn count(&self, spans: &Automaton, text: &[u8], terminator: u8) -> u64 {
        let mut count = 0;
        let _ = self.hits(spans, text, terminator, |_, _, _| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Pushes what is wanted of the lines that contain a word. `spans` is the automaton of the same
    /// words.
    pub(crate) fn lines(
        &self,
        spans: &Automaton,
        text: &[u8],
        terminator: u8,
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        self.hits(spans, text, terminator, |past, at, end| {
            push(wanted.start(text, past, at, terminator)..end)
        })
    }

    /// Calls `report` for each line with a word, with the end of the last such line, a position in
    /// this line, and its end.
    fn hits(
        &self,
        spans: &Automaton,
        text: &[u8],
        terminator: u8,
        mut report: impl FnMut(usize, usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let index = self.index.get_or_init(|| Index::new(&self.list, text, self.kernel.most_in_registers));
        let mut marks = [0u16; CHUNK_BYTES + 64];
        // `from` is where the next chunk begins. `past` is the end of the last reported line: marks
        // before it stand in a line that is reported already.
        let (mut from, mut past) = (0, 0);
        while from < text.len() {
            let (end, mut count) = self.mark(&index.tables, text, from, &mut marks);
            let long_forms = match self.list.has_long_forms && !text[from..end].is_ascii() {
                true => long_forms(text, from, end),
                false => Vec::new(),
            };
            if !long_forms.is_empty() {
                count = with_others(&mut marks, count, &long_forms);
            }
            for &offset in &marks[..count] {
                let at = from + usize::from(offset);
                if at < past {
                    continue;
                }
                let is_hit = index.stands_at(&self.list, text, at)
                    || long_forms.contains(&offset) && matches_around(spans, text, at, terminator);
                if is_hit {
                    let line_end = line::end_of(text, at, terminator);
                    report(past, at, line_end)?;
                    past = line_end;
                }
            }
            from = end.max(past);
        }
        ControlFlow::Continue(())
    }

    /// Marks where windows may stand from `from` on; returns where it stopped, and the number of
    /// marks.
    fn mark(&self, tables: &Tables, text: &[u8], from: usize, marks: &mut Marks) -> (usize, usize) {
        let room = text.len().saturating_sub(from + MARGIN_BYTES) / 64 * 64;
        if room >= 64 {
            let end = from + room.min(CHUNK_BYTES);
            return (end, (self.kernel.mark)(tables, text, from, end, marks));
        }
        let end = text.len().min(from + CHUNK_BYTES);
        (end, scalar::mark(tables, text, from, end, marks))
    }
}

/// Offsets of characters that begin at `from..end` and fold to an ASCII letter: the Kelvin sign and
/// the long s.
fn long_forms(text: &[u8], from: usize, end: usize) -> Vec<u16> {
    let [kelvin, long_s] = ["\u{212a}", "\u{17f}"].map(str::as_bytes);
    let stands = |at: usize| text[at..].starts_with(kelvin) || text[at..].starts_with(long_s);
    let firsts = memchr::memchr2_iter(kelvin[0], long_s[0], &text[from..end]);
    firsts.filter(|&offset| stands(from + offset)).map(|offset| offset as u16).collect()
}

/// Merges `others` into the marks, ascending, and returns their number.
fn with_others(marks: &mut Marks, count: usize, others: &[u16]) -> usize {
    let mut all = [&marks[..count], others].concat();
    all.sort_unstable();
    all.dedup();
    marks[..all.len()].copy_from_slice(&all);
    all.len()
}

fn matches_around(spans: &Automaton, text: &[u8], at: usize, terminator: u8) -> bool {
    let line = line::around(text, at, terminator);
    let content = line::content(&text[line.clone()], terminator);
    spans.is_match(&text[line.start..line.start + content])
}

#[cfg(test)]
mod tests;
