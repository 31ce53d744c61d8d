//! A temporary folder for a study's inputs, gone when the study ends.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The folder.
#[derive(Debug)]
pub(super) struct Workshop(PathBuf);

/// Makes one.
///
/// # Errors
/// When the system's folder for temporary files cannot be written to.
pub(super) fn workshop() -> Result<Workshop> {
    let path = std::env::temp_dir().join(format!("lightfoot-study-{}", std::process::id()));
    std::fs::create_dir(&path)
        .with_context(|| format!("cannot make {}: set TMPDIR to a folder with room", path.display()))?;
    Ok(Workshop(path))
}

impl Workshop {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
