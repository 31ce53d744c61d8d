//! Lines that contain one string.
//!
//! A rare string is found fastest by searching for its rarest bytes ([`finder`]) and skipping to
//! the next line after a hit. If it is frequent, each hit costs tens of nanoseconds, and bit
//! streams are faster because their cost does not depend on hits. So a search begins with the first
//! method, and changes to the second when a sample shows more than one hit in [`SPARSE_BYTES`]
//! bytes.

pub(crate) mod commonness;
pub(crate) mod finder;
pub(crate) mod required;

use crate::line::{self, Push, Wanted};
use finder::Finder;
use std::ops::ControlFlow;

/// Hits are counted over this many bytes before the decision.
const SAMPLE_BYTES: usize = 32 << 10;
/// With fewer bytes to a hit the string is dense: there a hit costs what the bit streams need for
/// them.
pub(crate) const SPARSE_BYTES: usize = 384;

/// A search for one string.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    finder: Finder,
}

impl Literal {
    pub(crate) fn new(bytes: &[u8]) -> Literal {
        Literal { finder: Finder::new(bytes) }
    }

    /// The name of the kernel that looks for it.
    pub(crate) fn kernel(&self) -> &'static str {
        self.finder.kernel()
    }

    /// Pushes what is wanted of the lines that contain the string. Answers where it stopped because
    /// the string is dense: at the start of a line, or at the end of the text when it did not.
    pub(crate) fn lines(
        &self,
        text: &[u8],
        terminator: u8,
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<(), usize> {
        let (mut at, mut hits) = (0, 0);
        while let Some(found) = self.finder.find(text, at) {
            let line = wanted.start(text, at, found, terminator)..line::end_of(text, found, terminator);
            at = line.end;
            push(line)?;
            hits += 1;
            if hits % 64 == 0 && is_dense(at, hits) {
                return ControlFlow::Continue(at);
            }
        }
        ControlFlow::Continue(text.len())
    }

    /// The number of lines that contain the string in front of where it is dense, and that place.
    pub(crate) fn count(&self, text: &[u8], terminator: u8) -> (u64, usize) {
        let (mut at, mut hits) = (0, 0);
        while let Some(found) = self.finder.find(text, at) {
            at = line::end_of(text, found, terminator);
            hits += 1;
            if hits % 64 == 0 && is_dense(at, hits) {
                return (hits as u64, at);
            }
        }
        (hits as u64, text.len())
    }
}

/// Only the beginning of a text decides; what follows it is searched as it was.
fn is_dense(at: usize, hits: usize) -> bool {
    at <= 2 * SAMPLE_BYTES && at < hits * SPARSE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_string_is_given_up_and_a_rare_one_is_not() {
        let dense = b"a b\n".repeat(10_000);
        let rare = [b"ab\n".repeat(10_000), b"a b".to_vec()].concat();
        let lines = |text: &[u8]| {
            let mut lines = Vec::new();
            let end = Literal::new(b" ").lines(text, b'\n', Wanted::Lines, &mut |line| {
                lines.push(line);
                ControlFlow::Continue(())
            });
            (lines.len(), end)
        };
        let (count, end) = lines(&dense);
        assert!(matches!(end, ControlFlow::Continue(end) if end == 4 * count && end < dense.len()));
        assert_eq!(lines(&rare), (1, ControlFlow::Continue(rare.len())));
        assert_eq!(Literal::new(b" ").count(&rare, b'\n'), (1, rare.len()));
    }
}
