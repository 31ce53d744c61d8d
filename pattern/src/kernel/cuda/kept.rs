//! The folder of compiled card programs, which is used only if it belongs to this user and no other
//! user can write to it.
//!
//! The driver loads these files as code, and root may run a search with another user's environment.
//! So a folder or a file that belongs to another user, that others may write to, or that is a
//! symbolic link is never read, and nothing is written there ([`PrivateFolder`]). A file is written
//! under a temporary name and then renamed, so it is always complete. **Leaves out** removing
//! files, except those that this process has begun itself.

use private_folder::PrivateFolder;
use std::io::{Read, Write};
use std::path::Path;
use std::time::SystemTime;

/// Larger files are not compiled programs.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A folder that is private, with compiled programs as its files.
#[derive(Debug)]
pub(super) struct Folder(PrivateFolder);

impl Folder {
    /// Opens a folder; `None` if it does not exist, or is not private to this user.
    pub(super) fn open(path: &Path) -> Option<Folder> {
        PrivateFolder::open(path).map(Folder)
    }

    /// Opens a folder, and creates it if it does not exist; never below a folder of another user,
    /// except those of the system.
    pub(super) fn make(path: &Path) -> Option<Folder> {
        PrivateFolder::make(path).map(Folder)
    }

    /// The contents of a file; `None` if it does not exist or is not a regular file.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let (file, metadata) = self.0.file(name)?;
        if metadata.len() > FILE_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes a file, as a whole or not at all. Failures are ignored, because the file only saves
    /// time.
    pub(super) fn write(&self, name: &str, parts: &[&[u8]]) {
        let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let unfinished = format!("{name}.{}-{since}.new", std::process::id());
        let Ok(mut file) = self.0.create(&unfinished) else { return };
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        if written.and_then(|()| self.0.rename(&unfinished, name)).is_err() {
            let _ = self.0.remove(&unfinished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, DirBuilder};
    use std::os::unix::fs::{chown, symlink, DirBuilderExt, MetadataExt, PermissionsExt};
    use std::path::PathBuf;

    /// A folder that goes with the value.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new() -> Temporary {
            let since = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
            let path = std::env::temp_dir().join(format!("kept-{}-{since}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            Temporary(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_read_as_it_was_written_where_all_of_it_is_ours() {
        let temporary = Temporary::new();
        let inside = temporary.0.join("made/here");
        assert!(Folder::open(&inside).is_none());
        let folder = Folder::make(&inside).unwrap();
        assert_eq!(folder.read("one"), None);
        folder.write("one", &[b"key", b"image"]);
        folder.write("one", &[b"key", b"another"]);
        assert_eq!(folder.read("one").as_deref(), Some(&b"keyanother"[..]));
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 1, "nothing unfinished is left");
        let file = inside.join("one");
        for wrong in [0o620, 0o602] {
            mode(&file, wrong);
            assert_eq!(folder.read("one"), None, "{wrong:o}");
        }
        mode(&file, 0o600);
        fs::rename(&file, inside.join("elsewhere")).unwrap();
        symlink("elsewhere", &file).unwrap();
        assert_eq!(folder.read("one"), None, "a link");
        assert!(folder.read("elsewhere").is_some());
    }

    #[test]
    fn a_folder_of_others_is_left_alone() {
        let temporary = Temporary::new();
        let (inside, link) = (temporary.0.join("inside"), temporary.0.join("link"));
        Folder::make(&inside).unwrap().write("one", &[b"image"]);
        symlink(&inside, &link).unwrap();
        assert!(Folder::open(&link).is_none() && Folder::make(&temporary.0.join("link/")).is_none());
        for wrong in [0o770, 0o707, 0o1777] {
            mode(&inside, wrong);
            assert!(Folder::open(&inside).is_none() && Folder::make(&inside).is_none(), "{wrong:o}");
        }
        mode(&inside, 0o700);
        if chown(&inside, Some(65534), None).is_err() {
            return eprintln!("skipped: only root can give a folder to another user");
        }
        assert!(Folder::open(&inside).is_none() && Folder::make(&inside).is_none());
        assert!(Folder::make(&inside.join("below")).is_none() && !inside.join("below").exists());
        // A file of another user in a folder of this one.
        let own = fs::metadata(&temporary.0).unwrap().uid();
        chown(&inside, Some(own), None).unwrap();
        chown(inside.join("one"), Some(65534), None).unwrap();
        assert_eq!(Folder::open(&inside).unwrap().read("one"), None);
    }
}
