//! What a stock tool is given.

use std::path::PathBuf;

/// What a stock tool is given.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Where it writes, if it writes a file.
    pub output: Option<PathBuf>,
}
