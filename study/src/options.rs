//! What a study is asked for.

use std::path::PathBuf;

/// How much work a study does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Small inputs, few rounds.
    Quick,
    /// The record.
    Full,
}

impl Effort {
    /// The word that pages, files and journals use.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Full => "full",
        }
    }
}

/// What a study is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much work.
    pub effort: Effort,
    /// Folder for the results.
    pub folder: PathBuf,
    /// Largest array of the studies that scale with memory, when the user says.
    pub max_bytes: Option<usize>,
}
