//! Folders of our own in the system's folder for temporary files, gone when they are dropped.
//!
//! That folder belongs to everybody. A folder in it gets a name that nobody guesses and is made for
//! its owner alone; a name that is taken, by a link too, is never used: another one is drawn. What
//! cannot be removed in the end is the system's to clean up.
//!
//! A process that is killed removes nothing. Each folder is therefore locked while its owner lives,
//! and [`Temporary::remove_abandoned`] removes those that nobody holds any more.

use anyhow::{Context, Result};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names that are drawn before we give up.
const DRAWS: usize = 100;

/// A folder that nobody holds is abandoned at this age: its owner makes it first and locks it then.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// The folder.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    /// Locked as long as the owner lives; nothing where the system has no such locks.
    _lock: Option<File>,
}

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
                Ok(()) => {
                    let lock = File::open(&path).ok().filter(|lock| lock.try_lock().is_ok());
                    return Ok(Temporary { path, _lock: lock });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                Err(_) => break,
            }
        }
        made.map(|()| Temporary { path: folder.to_owned(), _lock: None }).with_context(|| {
            format!(
                "cannot make a folder in {}: set TMPDIR to a folder with room that can be written to",
                folder.display()
            )
        })
    }

    /// Removes the folders of this user for `what` whose owners were killed.
    pub fn remove_abandoned(what: &str) {
        Temporary::remove_abandoned_within(&std::env::temp_dir(), what, ABANDONED_AFTER);
    }

    fn remove_abandoned_within(folder: &Path, what: &str, age: Duration) {
        let prefix = format!("lightfoot-{what}-");
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            // A link is no folder of ours, whatever it leads to.
            let Ok(found) = entry.path().symlink_metadata() else { continue };
            let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
            let old = found.modified().is_ok_and(|time| time.elapsed().is_ok_and(|since| since >= age));
            let free = || File::open(entry.path()).is_ok_and(|lock| lock.try_lock().is_ok());
            if own && old && free() {
                // What cannot be removed is left to the system.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
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
    fn what_a_killed_owner_left_goes_and_what_a_living_one_holds_stays() {
        let place = tempfile::tempdir().unwrap();
        let held = Temporary::within(place.path(), "test", || 1).unwrap();
        let left = place.path().join("lightfoot-test-2");
        let (other, link) = (place.path().join("lightfoot-other-3"), place.path().join("lightfoot-test-4"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("file"), "x").unwrap();
        std::fs::create_dir(&other).unwrap();
        symlink(&other, &link).unwrap();
        Temporary::remove_abandoned_within(place.path(), "test", ABANDONED_AFTER);
        assert!(left.exists(), "it may be about to be locked");
        Temporary::remove_abandoned_within(place.path(), "test", Duration::ZERO);
        assert!(!left.exists() && held.path().exists() && other.exists() && link.exists());
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
