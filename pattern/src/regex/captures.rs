//! Groups of one match, for callers that need more than its span.

use regex_automata::util::captures;
use std::ops::Range;

/// The spans of a match and its groups; its memory can be reused for other matches.
#[derive(Clone, Debug)]
pub struct Captures(pub(super) captures::Captures);

impl Captures {
    /// The span of a group; group 0 is the match.
    pub fn group(&self, index: usize) -> Option<Range<usize>> {
        self.0.get_group(index).map(|span| span.range())
    }
}
