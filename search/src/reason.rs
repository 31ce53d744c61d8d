//! Why an index has its layout, as one word of a file, so that it can be told where the file is
//! opened.
//!
//! The low byte is the kind of the choice; behind it, two bytes for each layout that refused the
//! keys before: its code, and the refusal's. Codes never change their meaning. Word 0, which files
//! of format 1 have, says nothing.

use alloc::format;
use alloc::string::String;

use crate::layout::{Layout, Refusal};

/// Why a layout was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(u64);

/// Refusals that fit the word.
const REFUSALS_MAX: u32 = 3;

impl Reason {
    /// The caller named the layout.
    pub(crate) const NAMED: Reason = Reason(1);
    /// The plan's first layout, or the next one after refusals.
    pub(crate) const PLANNED: Reason = Reason(2);

    /// The reason with one more layout that refused the keys; those that do not fit are left out.
    pub(crate) fn after(self, layout: Layout, refusal: Refusal) -> Reason {
        let place = (0..REFUSALS_MAX).map(|number| 8 + 16 * number).find(|place| self.0 >> place == 0);
        let entry = u64::from(layout.code() & 0xFF) | (u64::from(refusal.code()) << 8);
        Reason(place.map_or(self.0, |place| self.0 | (entry << place)))
    }

    /// The word of a file.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The reason that a file's word stands for.
    pub(crate) fn from_word(word: u64) -> Reason {
        Reason(word)
    }

    /// The reason in words, for the layout that was chosen.
    pub(crate) fn words(self, layout: Layout) -> String {
        match self.0 & 0xFF {
            1 => return String::from("asked for by name"),
            2 => {}
            _ => return String::from("as the file says, which does not say why"),
        }
        let entries = (0..REFUSALS_MAX).map(|number| (self.0 >> (8 + 16 * number)) & 0xFFFF);
        let refusals = entries.filter_map(|entry| {
            let (layout, why) =
                (Layout::from_code(entry as u32 & 0xFF)?, Refusal::from_code((entry >> 8) as u8)?);
            Some(format!("{} refused: {}; ", layout.name(), why.why()))
        });
        let mut words: String = refusals.collect();
        words.push_str(match layout {
            Layout::Split => "the keys are evenly spread: one line a query",
            Layout::Pieces => {
                "the keys are evenly spread piece by piece: one line a query behind small tables"
            }
            _ if words.is_empty() => "few keys: one line or two whatever they are",
            _ => "the tree takes any keys",
        });
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_its_word() {
        let refused = Reason::PLANNED.after(Layout::Split, Refusal::Crowded);
        let twice = refused.after(Layout::Pieces, Refusal::TooMany);
        for (reason, layout, expected) in [
            (Reason::NAMED, Layout::Tree, "asked for by name"),
            (Reason::PLANNED, Layout::Split, "the keys are evenly spread: one line a query"),
            (refused, Layout::Pieces, "split refused: the keys are too unevenly spread"),
            (twice, Layout::Tree, "pieces refused: there are more keys"),
            (Reason::PLANNED, Layout::Tree, "few keys"),
            (Reason::from_word(0), Layout::Tree, "does not say why"),
        ] {
            let words = Reason::from_word(reason.word()).words(layout);
            assert!(words.contains(expected), "{words}");
        }
        let full = (0..5).fold(Reason::PLANNED, |reason, _| reason.after(Layout::Split, Refusal::Crowded));
        assert_eq!(full.words(Layout::Tree).matches("split refused").count(), REFUSALS_MAX as usize);
        assert!(!Reason::from_word(u64::MAX).words(Layout::Tree).is_empty());
    }
}
