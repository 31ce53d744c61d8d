//! The patterns of a set that rare strings decide: all strings are looked for at once, and a
//! pattern is confirmed in the lines that hold one of its own.
//!
//! **Which string.** A sample of the text counts the hits of all strings that could serve
//! ([`super::needle`]); a pattern takes the rarest. Where even those are frequent the pattern's
//! share of a program costs less than its confirmations, and it is left to a program. The costs
//! below were estimated from runs of the bench `columns` on one machine; they choose speed only.

use super::confirm::{Confirmation, Pattern};
use super::needle::{needles, Needle, Place};
use super::window::Window;
use super::SetBits;
use crate::plan::expression::letters;
use crate::words::{Spelled, WordSet};
use memchr::memmem;
use regex_syntax::hir::Hir;
use std::collections::HashMap;

/// Fewer patterns than this do not repay the search for strings.
const FEWEST_PATTERNS: usize = 24;
/// What a hit costs in nanoseconds, by what it takes to decide it.
const HIT_NS: [(Place, f64); 3] = [(Place::Whole, 8.0), (Place::Start, 50.0), (Place::Inside, 150.0)];
/// What a letter of a pattern in a program costs for a byte of text, in nanoseconds.
const LETTER_NS: f64 = 0.001;

/// A string's pattern, and where in its matches the string lies.
#[derive(Clone, Copy, Debug)]
struct Owner {
    pattern: usize,
    place: Place,
}

/// Patterns that are found by strings.
#[derive(Debug)]
pub(super) struct Literals {
    words: WordSet,
    /// For each word those patterns that it is looked for for.
    owners: Vec<Vec<Owner>>,
    /// By pattern.
    confirmations: Vec<Confirmation>,
    /// By pattern: other strings that every match holds.
    required: Vec<Vec<memmem::Finder<'static>>>,
    patterns: usize,
}

impl Literals {
    /// Patterns of a set that strings find best in texts like `sample`, and the others.
    pub(super) fn new(hirs: &[&Hir], sample: &[u8], terminator: u8) -> (Option<Literals>, Vec<usize>) {
        let all: Vec<usize> = (0..hirs.len()).collect();
        if hirs.len() < FEWEST_PATTERNS {
            return (None, all);
        }
        // A string with the terminator stands in no line, but may stand across two.
        let within_line = |needle: &Needle| !needle.words.iter().any(|word| word.bytes.contains(&terminator));
        let candidates: Vec<Vec<Needle>> =
            hirs.iter().map(|hir| needles(hir).into_iter().filter(within_line).collect()).collect();
        let Some(counts) = counts(&candidates, sample) else { return (None, all) };
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for (number, needles) in candidates.iter().enumerate() {
            let costs = needles.iter().map(|needle| (cost(needle, &counts, sample.len()), needle));
            match costs.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
                Some((cost, needle)) if cost < LETTER_NS * letters(hirs[number]) as f64 => {
                    chosen.push((number, needle));
                }
                _ => others.push(number),
            }
        }
        if chosen.len() < FEWEST_PATTERNS {
            return (None, all);
        }
        match Literals::of(&chosen, &candidates, sample) {
            Some(literals) => (Some(literals), others),
            None => (None, all),
        }
    }

    fn of(chosen: &[(usize, &Needle)], candidates: &[Vec<Needle>], sample: &[u8]) -> Option<Literals> {
        let mut numbers: HashMap<&Spelled, usize> = HashMap::new();
        let (mut words, mut owners): (Vec<Spelled>, Vec<Vec<Owner>>) = (Vec::new(), Vec::new());
        for &(pattern, needle) in chosen {
            for word in &needle.words {
                let number = *numbers.entry(word).or_insert(words.len());
                if number == words.len() {
                    words.push(word.clone());
                    owners.push(Vec::new());
                }
                owners[number].push(Owner { pattern, place: needle.place });
            }
        }
        let words = WordSet::new(&words, sample)?;
        let most = chosen.iter().map(|&(pattern, _)| pattern + 1).max().unwrap_or(0);
        let confirmations = (0..most).map(|_| Confirmation::default()).collect();
        let mut required = vec![Vec::new(); most];
        for &(pattern, needle) in chosen {
            required[pattern] =
                candidates[pattern].iter().filter_map(|other| other_string(other, needle)).collect();
        }
        Some(Literals { words, owners, confirmations, required, patterns: chosen.len() })
    }

    /// How many patterns it finds.
    pub(super) fn patterns(&self) -> usize {
        self.patterns
    }

    /// Marks the lines of a window in the bits of their patterns.
    pub(super) fn run<'p>(
        &self,
        window: &Window<'_>,
        out: &mut SetBits,
        pattern: &dyn Fn(usize) -> Pattern<'p>,
    ) {
        // The line of the last hit, and for each pattern the line that it was refused in last.
        let (mut line, mut number) = (0..0, usize::MAX);
        let mut refused = vec![usize::MAX; self.confirmations.len()];
        self.words.each_hit(window.text, |word, start| {
            if !(line.start <= start && start < line.end) {
                (line, number) = (window.line(start), window.line_number(start));
            }
            for owner in &self.owners[word] {
                if out.get(owner.pattern, number) {
                    continue;
                }
                let confirms = |from: Option<usize>| {
                    let content = &window.text[line.clone()];
                    let part = &content[from.unwrap_or(0)..];
                    self.required[owner.pattern].iter().all(|string| string.find(part).is_some())
                        && self.confirmations[owner.pattern].matches(&pattern(owner.pattern), content, from)
                };
                let is_match = match owner.place {
                    Place::Whole => true,
                    Place::Start => confirms(Some(start - line.start)),
                    Place::Inside if refused[owner.pattern] == number => false,
                    Place::Inside => confirms(None),
                };
                match is_match {
                    true => out.set(owner.pattern, number),
                    false if owner.place == Place::Inside => {
                        refused[owner.pattern] = number;
                    }
                    false => {}
                }
            }
        });
    }
}

/// The string of a needle that is not the one looked for, if it is a single one: a line without it
/// need not be walked through.
fn other_string(other: &Needle, needle: &Needle) -> Option<memmem::Finder<'static>> {
    match &other.words[..] {
        [word] if other != needle && word.folds.iter().all(|&fold| fold == 0) => {
            Some(memmem::Finder::new(&word.bytes).into_owned())
        }
        _ => None,
    }
}

/// How often each string stands in the sample.
fn counts<'n>(candidates: &'n [Vec<Needle>], sample: &[u8]) -> Option<HashMap<&'n Spelled, u32>> {
    let mut counts: HashMap<&Spelled, u32> = HashMap::new();
    for word in candidates.iter().flatten().flat_map(|needle| &needle.words) {
        counts.insert(word, 0);
    }
    let words: Vec<Spelled> = counts.keys().map(|&word| word.clone()).collect();
    let mut hits = vec![0u32; words.len()];
    WordSet::new(&words, sample)?.each_hit(sample, |word, _| hits[word] += 1);
    for (word, hits) in words.iter().zip(hits) {
        if let Some(count) = counts.get_mut(word) {
            *count = hits;
        }
    }
    Some(counts)
}

/// What a needle costs for a byte of text like the sample, in nanoseconds.
fn cost(needle: &Needle, counts: &HashMap<&Spelled, u32>, sample_bytes: usize) -> f64 {
    let hits: u32 = needle.words.iter().map(|word| counts[word]).sum();
    let hit_ns = HIT_NS.iter().find(|(place, _)| *place == needle.place).map_or(0.0, |(_, ns)| *ns);
    // A string that the sample lacks may still come up: longer ones less often.
    let unseen = 0.1 / needle.words.iter().map(|word| word.bytes.len()).min().unwrap_or(1) as f64;
    (f64::from(hits) + unseen) * hit_ns / sample_bytes.max(1) as f64
}
