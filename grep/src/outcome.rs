//! What a search of one file came to, whichever path searched it.

use grep_printer::Stats;

/// What a search of one haystack came to.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchOutcome {
    /// Whether it counts as a match.
    pub(super) any: bool,
    /// Statistics, where they were asked for.
    pub(super) stats: Option<Stats>,
}
