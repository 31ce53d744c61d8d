//! Abbreviated names in callgrind's files: a name is written out once, and named by a number from
//! then on.
//!
//! **Why a file of its own.** The files of `--format callgrind` and those of `lightfoot valgrind`
//! know names by different keys, and abbreviate them by one rule. **Leaves out** names that are
//! written in full each time. Source: "Name compression" in callgrind's format of files.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::hash::Hash;

/// A kind of abbreviated names; each kind has its own numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Object,
    File,
    Function,
}

/// The names that have numbers, by a key of type `N`.
pub(super) struct Abbreviations<N> {
    numbers: HashMap<(Kind, N), usize>,
    /// The last number of each kind.
    last: HashMap<Kind, usize>,
}

impl<N: Eq + Hash> Abbreviations<N> {
    pub(super) fn new() -> Abbreviations<N> {
        Abbreviations { numbers: HashMap::new(), last: HashMap::new() }
    }

    /// `(7) name` the first time, `(7)` from then on; `text` is the name of `key`.
    pub(super) fn name(&mut self, kind: Kind, key: N, text: &str) -> String {
        match self.numbers.entry((kind, key)) {
            Entry::Occupied(known) => format!("({})", known.get()),
            Entry::Vacant(new) => {
                let last = self.last.entry(kind).or_default();
                *last += 1;
                format!("({}) {text}", new.insert(*last))
            }
        }
    }
}
