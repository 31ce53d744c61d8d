//! The folder of compiled card programs: used only where it is this user's own and nobody else may
//! write to it.
//!
//! What lies there is loaded by the driver as code, and a search may be run by root with another
//! user's environment. So a folder or a file that belongs to somebody else, that others may write
//! to, or that is a symbolic link is never read, and nothing is written there. Both are checked on
//! descriptors that are open already; files are reached by way of `/proc/self/fd/N`, so that what
//! was checked is what is used. Files appear whole: written under a name of their own, then
//! renamed. Leaves out removing anything but what this process has begun itself.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Larger files are not compiled programs.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A folder that is ours and private.
#[derive(Debug)]
pub(super) struct Folder {
    descriptor: File,
    user: u32,
}

impl Folder {
    /// Opens a folder; `None` where it is not there, or not ours and private.
    pub(super) fn open(path: &Path) -> Option<Folder> {
        let user = effective_user()?;
        // A slash behind the name would make the system follow a link in spite of `O_NOFOLLOW`.
        let path: PathBuf = path.components().collect();
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let descriptor = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let metadata = descriptor.metadata().ok()?;
        (metadata.is_dir() && is_private(&metadata, user)).then_some(Folder { descriptor, user })
    }

    /// Opens a folder, and makes it where it is not there; never below a folder of another user
    /// than the system's own.
    pub(super) fn make(path: &Path) -> Option<Folder> {
        let path: PathBuf = path.components().collect();
        if fs::symlink_metadata(&path).is_err() {
            let above = path.ancestors().skip(1).find_map(|above| {
                fs::metadata(if above.as_os_str().is_empty() { Path::new(".") } else { above }).ok()
            })?;
            if above.uid() != effective_user()? && above.uid() != 0 {
                return None;
            }
            DirBuilder::new().recursive(true).mode(0o700).create(&path).ok()?;
        }
        Folder::open(&path)
    }

    /// The path of a name in this folder, whatever became of the folder's own path.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd()))
    }

    /// The contents of a kept file, or `None` where another kind of file has that name.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        // Opening a pipe would wait for a writer.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(name)).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_private(&metadata, self.user) || metadata.len() > FILE_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes a file, whole or not at all. Nothing depends on whether it could be written.
    pub(super) fn write(&self, name: &str, parts: &[&[u8]]) {
        let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let beside = self.path(&format!("{name}.{}-{since}.new", std::process::id()));
        let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside) else {
            return;
        };
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        if written.and_then(|()| fs::rename(&beside, self.path(name))).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }
}

/// Whether nobody but this user (and the system's administrator) can have written it.
fn is_private(metadata: &Metadata, user: u32) -> bool {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    metadata.uid() == user && metadata.mode() & OTHERS_MAY_WRITE == 0
}

/// The user whose files are this process's own.
fn effective_user() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

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
        chown(&inside, Some(effective_user().unwrap()), None).unwrap();
        chown(inside.join("one"), Some(65534), None).unwrap();
        assert_eq!(Folder::open(&inside).unwrap().read("one"), None);
    }
}
