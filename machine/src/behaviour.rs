//! How a cache behaves beyond its size and ways: replacement, inclusion, prefetching, slices.
//!
//! Each choice has a word (`plru`, `inclusive`, `stride`) for TOML files and for options of the
//! command line, where it follows the geometry; no word has two meanings. The simulator defines
//! what a choice does. Names of replacement policies are those of [`Replacement`].

use crate::replacement::{Duel, Qlru, Replacement, REPLACEMENTS};
#[cfg(feature = "toml")]
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How the contents of a level depend on those of the levels closer to the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum Inclusion {
    /// They are independent.
    #[default]
    Independent,
    /// Inclusive: a line that this level replaces is also removed from the inner levels.
    Inclusive,
    /// Exclusive: the level holds the lines that the next inner level has replaced.
    Exclusive,
}

/// What a hardware prefetcher fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// There is no prefetcher.
    #[default]
    None,
    /// The line that follows one that was missed.
    NextLine,
    /// The line at the constant distance (stride) between an instruction's references.
    Stride,
    /// Lines ahead of ascending or descending touches of a page.
    Streamer,
    /// The other line of an aligned pair.
    AdjacentLine,
}

/// The prefetchers of a level: a word, or several with `+` between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefetches(u8);

impl Prefetches {
    /// These and one more.
    #[must_use]
    pub fn with(self, kind: Prefetch) -> Prefetches {
        Prefetches(self.0 | if kind == Prefetch::None { 0 } else { 1 << kind as u8 })
    }

    /// Those that there are.
    pub fn kinds(self) -> impl Iterator<Item = Prefetch> {
        let kinds = PREFETCHES.iter().map(|(_, kind)| *kind).filter(|kind| *kind != Prefetch::None);
        kinds.filter(move |kind| self.with(*kind) == self)
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// What is possible, for messages.
    #[cfg(feature = "toml")]
    pub(crate) fn possible() -> String {
        let names: Vec<String> = PREFETCHES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        format!("{}, or several with + between them", names.join(" or "))
    }
}

impl FromStr for Prefetches {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefetches, String> {
        let lower = text.to_ascii_lowercase();
        let mut kinds =
            lower.split('+').map(|word| named(PREFETCHES, word).ok_or_else(|| format!("\"{text}\"")));
        kinds.try_fold(Prefetches::default(), |all, kind| Ok(all.with(kind?)))
    }
}

impl fmt::Display for Prefetches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.kinds().filter_map(|kind| name(PREFETCHES, kind)).collect();
        f.write_str(if names.is_empty() { "none".into() } else { names.join("+") }.as_str())
    }
}

#[cfg(feature = "toml")]
impl Serialize for Prefetches {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The most masks of a slice hash, for 64 slices.
pub(crate) const SLICE_MASKS_MAX: usize = 6;

/// A cache in 2^n slices: bit k of a line's slice is the parity of its address under mask k.
///
/// The sets of a slice stand side by side. Inside a slice a line's set is its number modulo the
/// sets of a slice. Source: Maurice et al. 2015.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceMasks {
    masks: [u64; SLICE_MASKS_MAX],
    count: u8,
}

impl SliceMasks {
    /// The form of a word, for messages.
    const SHAPE: &str = "slices:MASK:MASK… (such as slices:0x1b5f575440)";

    /// One slice.
    pub const ONE: SliceMasks = SliceMasks { masks: [0; SLICE_MASKS_MAX], count: 0 };

    /// These masks.
    ///
    /// # Errors
    /// A sentence about the masks, if there are too many of them or one is impossible.
    pub fn new(masks: &[u64]) -> Result<SliceMasks, String> {
        let mut all = SliceMasks { count: masks.len() as u8, ..SliceMasks::ONE };
        let Some(places) = all.masks.get_mut(..masks.len()) else {
            return Err(format!("{} masks", masks.len()));
        };
        if let Some(mask) = masks.iter().find(|mask| **mask == 0 || **mask > i64::MAX as u64) {
            return Err(format!("mask {mask:#x}"));
        }
        places.copy_from_slice(masks);
        Ok(all)
    }

    /// What is possible, for messages.
    pub(crate) const POSSIBLE: &str = "at most 6 masks of address bits from 0 to 62, such as [0x1b5f575440]";

    /// The masks.
    pub fn masks(&self) -> &[u64] {
        &self.masks[..usize::from(self.count)]
    }

    /// How many slices there are.
    pub fn slices(&self) -> u64 {
        1 << self.count
    }

    /// The slice of a line by the address of its first byte.
    pub fn slice(&self, address: u64) -> u64 {
        let parity = |mask: &u64| u64::from((address & mask).count_ones() & 1);
        self.masks().iter().rev().fold(0, |slice, mask| slice << 1 | parity(mask))
    }

    fn of_word(word: &str) -> Option<Result<SliceMasks, String>> {
        let texts = word.strip_prefix("slices:")?.split(':');
        let mask = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let masks: Option<Vec<u64>> = texts.map(mask).collect();
        Some(masks.ok_or_else(|| format!("\"{word}\"")).and_then(|masks| SliceMasks::new(&masks)))
    }
}

#[cfg(feature = "toml")]
impl Serialize for SliceMasks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.masks())
    }
}

/// The greatest number of touches by which a prefetched line may be late.
pub(crate) const LATE_TOUCHES_MAX: u64 = 1_000_000;

/// Words for inclusion.
pub const INCLUSIONS: &[(&str, Inclusion)] = &[
    ("independent", Inclusion::Independent),
    ("inclusive", Inclusion::Inclusive),
    ("exclusive", Inclusion::Exclusive),
];

/// Words for prefetchers.
pub const PREFETCHES: &[(&str, Prefetch)] = &[
    ("none", Prefetch::None),
    ("next-line", Prefetch::NextLine),
    ("stride", Prefetch::Stride),
    ("streamer", Prefetch::Streamer),
    ("adjacent-line", Prefetch::AdjacentLine),
];

/// Replacement, inclusion, prefetching and slices of a cache; in files these fields stand beside
/// the cache's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Behaviour {
    /// Which line of a full set is replaced.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub replacement: Replacement,
    /// How the level's contents depend on those of the inner levels.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub inclusion: Inclusion,
    /// Its prefetchers.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub prefetch: Prefetches,
    /// A prefetched line is late for this many touches of the level after the one for which it was
    /// fetched.
    #[cfg_attr(feature = "toml", serde(rename = "prefetch_late_touches"))]
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub late_touches: u32,
    /// How the cache is cut into slices; no masks for one slice.
    #[cfg_attr(feature = "toml", serde(rename = "slice_masks"))]
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub slices: SliceMasks,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Behaviour {
    /// This behaviour, changed by one word.
    ///
    /// # Errors
    /// A sentence that names the word and what would be accepted.
    pub(crate) fn with_word(self, word: &str) -> Result<Behaviour, String> {
        let lower = word.to_ascii_lowercase();
        let problem = match word.parse() {
            Ok(replacement) => return Ok(Behaviour { replacement, ..self }),
            Err(problem) => problem,
        };
        if let Some(inclusion) = named(INCLUSIONS, &lower) {
            return Ok(Behaviour { inclusion, ..self });
        }
        if let Ok(prefetch) = lower.parse() {
            return Ok(Behaviour { prefetch, ..self });
        }
        if let Some(slices) = SliceMasks::of_word(&lower) {
            let expected = |problem| format!("{problem} in \"{word}\": {}", SliceMasks::POSSIBLE);
            return Ok(Behaviour { slices: slices.map_err(expected)?, ..self });
        }
        if let Some(touches) = lower.strip_prefix("late:") {
            let late = touches.parse().ok().filter(|&touches: &u32| u64::from(touches) <= LATE_TOUCHES_MAX);
            let wrong = || format!("\"{word}\" is no number of touches from 0 to {LATE_TOUCHES_MAX}");
            return Ok(Behaviour { late_touches: late.ok_or_else(wrong)?, ..self });
        }
        Err(format!("{problem} is none of {}", words().join(", ")))
    }

    /// The words that differ from the default: `plru, inclusive`.
    pub fn words(&self) -> Vec<String> {
        let replacement = (!is_default(&self.replacement)).then(|| self.replacement.to_string());
        let inclusion = name(INCLUSIONS, self.inclusion).filter(|_| !is_default(&self.inclusion));
        let prefetch = (!self.prefetch.is_none()).then(|| self.prefetch.to_string());
        let late = (self.late_touches > 0).then(|| format!("late:{}", self.late_touches));
        let masks = self.slices.masks().iter().map(|mask| format!(":{mask:#x}"));
        let slices = masks.reduce(|all, mask| all + &mask).map(|masks| format!("slices{masks}"));
        let inclusion = inclusion.map(str::to_string);
        [replacement, inclusion, prefetch, late, slices].into_iter().flatten().collect()
    }
}

fn named<T: Copy>(names: &[(&str, T)], word: &str) -> Option<T> {
    names.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> Option<&'static str> {
    names.iter().find(|(_, other)| *other == value).map(|(name, _)| *name)
}

/// All words.
fn words() -> Vec<&'static str> {
    let replacements = REPLACEMENTS.iter().map(|(name, _)| *name);
    let inclusions = INCLUSIONS.iter().map(|(name, _)| *name);
    let prefetches = PREFETCHES.iter().map(|(name, _)| *name);
    let replacements = replacements.chain([Qlru::SHAPE, Duel::SHAPE]);
    replacements.chain(inclusions).chain(prefetches).chain(["late:TOUCHES", SliceMasks::SHAPE]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_said() {
        let mut behaviour = Behaviour::default();
        let said = ["plru", "exclusive", "stride+adjacent-line", "late:9", "slices:0x1b5f575440:0x40"];
        for word in ["PLRU", "exclusive", "adjacent-line+Stride", "late:9", "slices:0x1B5F575440:64"] {
            behaviour = behaviour.with_word(word).unwrap();
        }
        assert_eq!(behaviour.words(), said);
        for (word, expected) in [
            ("late:x", "\"late:x\" is no number of touches from 0 to 1000000"),
            ("slices:", "\"slices:\" in \"slices:\": at most 6 masks of address bits from 0 to 62"),
            ("slices:0", "mask 0x0 in \"slices:0\": at most 6 masks"),
            ("slices:1:2:3:4:5:6:7", "7 masks in"),
        ] {
            let error = behaviour.with_word(word).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = behaviour.with_word("clock").unwrap_err();
        assert!(error.starts_with("\"clock\" is none of lru, fifo, plru, random, mru"), "{error}");
        let all = words();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
