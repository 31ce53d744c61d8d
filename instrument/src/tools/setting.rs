//! The settings of built-in tools.

use std::path::PathBuf;

/// Settings with which a built-in tool is created.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The file to write, for tools that write one.
    pub output: Option<PathBuf>,
}
