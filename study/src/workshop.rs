//! A temporary folder for a study's inputs, gone when the study ends, or when the next one begins
//! after one that was interrupted.

use anyhow::Result;
use present::temporary::Temporary;

/// The folder.
pub(crate) type Workshop = Temporary;

/// Makes one.
///
/// # Errors
/// When the system's folder for temporary files cannot be written to.
pub(crate) fn workshop() -> Result<Workshop> {
    Temporary::remove_abandoned("study");
    Temporary::new("study")
}
