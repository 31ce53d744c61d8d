//! The outcome of the search of one file, for both paths.

use grep_printer::Stats;

/// The outcome of the search of one haystack.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchOutcome {
    /// Whether it counts as a match.
    pub(super) any: bool,
    /// Statistics, if they were requested.
    pub(super) stats: Option<Stats>,
}
