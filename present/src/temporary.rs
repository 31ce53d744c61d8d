//! Folders of our own in the system's folder for temporary files, gone when they are dropped.
//!
//! That folder belongs to everybody. A folder in it gets a name that nobody guesses and is made for
//! its owner alone; a name that is taken, by a link too, is never used: another one is drawn. What
//! cannot be removed in the end is the system's to clean up.

use anyhow::{Context, Result};
use std::fs::DirBuilder;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names that are drawn before we give up.
const DRAWS: usize = 100;

/// The folder.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Makes one; `what` is part of its name.
    ///
    /// # Errors
    /// When nothing can be made in the system's folder for temporary files.
    pub fn new(what: &str) -> Result<Temporary> {
        Temporary::within(&std::env::temp_dir(), what, || RandomState::new().hash_one(what))
    }

    fn within(folder: &Path, what: &str, mut draw: impl FnMut() -> u64) -> Result<Temporary> {
        let mut made = Err(ErrorKind::AlreadyExists.into());
        for _ in 0..DRAWS {
            let path = folder.join(format!("lightfoot-{what}-{:016x}", draw()));
            made = DirBuilder::new().mode(0o700).create(&path);
            match &made {
                Ok(()) => return Ok(Temporary(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                Err(_) => break,
            }
        }
        made.map(|()| Temporary(folder.to_owned())).with_context(|| {
            format!(
                "cannot make a folder in {}: set TMPDIR to a folder with room that can be written to",
                folder.display()
            )
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn a_folder_is_its_owners_and_goes() {
        let folder = Temporary::new("test").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        assert_ne!(Temporary::new("test").unwrap().path(), path);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_name_that_is_taken_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let other = place.path().join("other");
        std::fs::create_dir(&other).unwrap();
        symlink(&other, place.path().join(format!("lightfoot-test-{:016x}", 1))).unwrap();
        std::fs::create_dir(place.path().join(format!("lightfoot-test-{:016x}", 2))).unwrap();
        let mut drawn = 0;
        let folder = Temporary::within(place.path(), "test", || {
            drawn += 1;
            drawn
        });
        assert_eq!(folder.unwrap().path(), place.path().join(format!("lightfoot-test-{:016x}", 3)));
        let said = Temporary::within(place.path(), "test", || 1).unwrap_err();
        assert!(said.to_string().contains("TMPDIR"), "{said:#}");
        assert!(place.path().join(format!("lightfoot-test-{:016x}", 2)).is_dir());
        assert!(Temporary::within(Path::new("/no/such/folder"), "test", || 1).is_err());
    }
}
