//! How a cache behaves beyond its size and ways: replacement, inclusion, prefetching.
//!
//! Each choice has a word (`plru`, `inclusive`, `stride`) for TOML files and for options of the
//! command line, where it follows the geometry; no word has two meanings. The simulator defines
//! what a choice does. **Leaves out** adaptive policies (such as DRRIP), which no vendor describes.

#[cfg(feature = "toml")]
use serde::Serialize;

/// Which line of a full set is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum Replacement {
    /// The least recently used one.
    #[default]
    Lru,
    /// The one that came first.
    Fifo,
    /// The one that a binary tree of bits points to.
    Plru,
    /// Any line leaves, drawn by chance.
    Random,
}

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
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "kebab-case"))]
pub enum Prefetch {
    /// There is no prefetcher.
    #[default]
    None,
    /// The line that follows one that was missed.
    NextLine,
    /// The line at the constant distance (stride) between an instruction's references.
    Stride,
}

/// Words for replacement.
pub const REPLACEMENTS: &[(&str, Replacement)] = &[
    ("lru", Replacement::Lru),
    ("fifo", Replacement::Fifo),
    ("plru", Replacement::Plru),
    ("random", Replacement::Random),
];

/// Words for inclusion.
pub const INCLUSIONS: &[(&str, Inclusion)] = &[
    ("independent", Inclusion::Independent),
    ("inclusive", Inclusion::Inclusive),
    ("exclusive", Inclusion::Exclusive),
];

/// Words for prefetchers.
pub const PREFETCHES: &[(&str, Prefetch)] =
    &[("none", Prefetch::None), ("next-line", Prefetch::NextLine), ("stride", Prefetch::Stride)];

/// Replacement, inclusion and prefetching of a cache; in files these fields stand beside the
/// cache's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Behaviour {
    /// Which line of a full set is replaced.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub replacement: Replacement,
    /// How the level's contents depend on those of the inner levels.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub inclusion: Inclusion,
    /// What its prefetcher fetches.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "is_default"))]
    pub prefetch: Prefetch,
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
        if let Some(replacement) = named(REPLACEMENTS, &lower) {
            return Ok(Behaviour { replacement, ..self });
        }
        if let Some(inclusion) = named(INCLUSIONS, &lower) {
            return Ok(Behaviour { inclusion, ..self });
        }
        if let Some(prefetch) = named(PREFETCHES, &lower) {
            return Ok(Behaviour { prefetch, ..self });
        }
        Err(format!("\"{word}\" is none of {}", words().join(", ")))
    }

    /// The words that differ from the default: `plru, inclusive`.
    pub fn words(&self) -> Vec<&'static str> {
        let replacement = name(REPLACEMENTS, self.replacement).filter(|_| !is_default(&self.replacement));
        let inclusion = name(INCLUSIONS, self.inclusion).filter(|_| !is_default(&self.inclusion));
        let prefetch = name(PREFETCHES, self.prefetch).filter(|_| !is_default(&self.prefetch));
        [replacement, inclusion, prefetch].into_iter().flatten().collect()
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
    replacements.chain(inclusions).chain(PREFETCHES.iter().map(|(name, _)| *name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_said() {
        let mut behaviour = Behaviour::default();
        for word in ["PLRU", "exclusive", "stride"] {
            behaviour = behaviour.with_word(word).unwrap();
        }
        assert_eq!(behaviour.words(), ["plru", "exclusive", "stride"]);
        let error = behaviour.with_word("mru").unwrap_err();
        assert!(error.starts_with("\"mru\" is none of lru, fifo, plru, random, independent"), "{error}");
        let all = words();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
