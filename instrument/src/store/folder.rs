//! The folder of kept translations: who may own it, which files in it belong to lightfoot, and how
//! much room they may take.
//!
//! Kept code is executed, so it must have been written by this user; and the user names the folder,
//! so it may hold other files. Hence two rules. Nothing is read, written or removed unless the
//! folder belongs to the effective user, no other user may write to it, and it is no symbolic link.
//! Only regular files of this user that have lightfoot's form of name and magic are removed.
//!
//! Both are checked on descriptors that are open already, never by a path beforehand: what is
//! checked is what is used. All accesses go through `/proc/self/fd/N`, which is what `openat` does,
//! in safe code. A lock on the folder makes comparing and renaming one step among several
//! lightfoots. **Leaves out** renames of the folder itself: a user who may rename it gains nothing
//! but a folder with this user's own files.

use crate::target::credentials::Credentials;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The magic of every version begins with these bytes.
pub(super) const MAGIC_START: &[u8] = b"lftrans";
/// Hexadecimal digits of a name.
pub(super) const NAME_DIGITS: usize = 32;
/// An unfinished file that was not written to for so long was left by a process that has ended.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(600);
/// The longest wait for another lightfoot's lock, which it holds for a few renames only.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// A folder that is ours and private.
#[derive(Debug)]
pub(super) struct Folder {
    descriptor: File,
    user: u32,
}

/// The kind of a file, as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Kept translations.
    Finished,
    /// Kept translations that are being written.
    Unfinished,
}

impl Name {
    /// `None` for a name that lightfoot does not give: it gives 32 hexadecimal digits in lower
    /// case, with `.NUMBER-NUMBER.tmp` behind them while the file is unfinished.
    pub(super) fn parse(name: &str) -> Option<Name> {
        // The form is checked exactly, because files with other names must never be touched.
        let (digits, rest) = name.split_at_checked(NAME_DIGITS)?;
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if !digits.bytes().all(hexadecimal) {
            return None;
        }
        if rest.is_empty() {
            return Some(Name::Finished);
        }
        let numbers = rest.strip_prefix('.')?.strip_suffix(".tmp")?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (process, time) = numbers.split_once('-')?;
        (number(process) && number(time)).then_some(Name::Unfinished)
    }
}

impl Folder {
    /// Opens a folder; `None` where it is not there, or not ours and private.
    pub(super) fn open(path: &Path) -> Option<Folder> {
        let user = Credentials::own()?.effective_user()?;
        // A slash behind the name would make the system follow a link in spite of `O_NOFOLLOW`.
        let path: PathBuf = path.components().collect();
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let descriptor = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let metadata = descriptor.metadata().ok()?;
        (metadata.is_dir() && is_private(&metadata, user)).then_some(Folder { descriptor, user })
    }

    /// Opens a folder, and makes it if it does not exist. It is made only below a folder of this
    /// user or of root. Below another user's folder it is not: that user could neither use nor
    /// remove a folder that root made there.
    pub(super) fn make(path: &Path) -> Option<Folder> {
        let user = Credentials::own()?.effective_user()?;
        let path: PathBuf = path.components().collect();
        if fs::symlink_metadata(&path).is_err() {
            // The nearest folder that exists decides whose place this is.
            let above = path.ancestors().skip(1).find_map(|above| {
                fs::metadata(if above.as_os_str().is_empty() { Path::new(".") } else { above }).ok()
            })?;
            if above.uid() != user && above.uid() != 0 {
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

    /// Opens a file that lightfoot may have written; `None` for anything else with this name.
    pub(super) fn file(&self, name: &str) -> Option<(File, Metadata)> {
        // Without `O_NONBLOCK`, opening a pipe would wait for a writer.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(name)).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && is_private(&metadata, self.user)).then_some((file, metadata))
    }

    /// Makes a file that is not there yet.
    pub(super) fn create(&self, name: &str) -> std::io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(name))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    /// Waits until no other lightfoot compares and renames here; `None` if one does so for too
    /// long. A file system without locks counts as unlocked. The lock ends with the value.
    pub(super) fn lock(&self) -> Option<Locked<'_>> {
        let late = Instant::now() + LOCK_PATIENCE;
        loop {
            match self.descriptor.try_lock() {
                Ok(()) | Err(TryLockError::Error(_)) => return Some(Locked(self)),
                Err(TryLockError::WouldBlock) if Instant::now() > late => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Removes a file if its name, owner, kind and magic show that lightfoot wrote it; returns
    /// whether it did.
    pub(super) fn remove(&self, name: &str) -> bool {
        let Some(kind) = Name::parse(name) else { return false };
        let Some((mut file, _)) = self.file(name) else { return false };
        let mut magic = Vec::new();
        if file.by_ref().take(MAGIC_START.len() as u64).read_to_end(&mut magic).is_err() {
            return false;
        }
        // The magic of another version has the same beginning.
        let whole = magic == MAGIC_START;
        // A file that was left unfinished may hold any part of the magic.
        let begun = kind == Name::Unfinished && MAGIC_START.starts_with(&magic);
        (whole || begun) && fs::remove_file(self.path(name)).is_ok()
    }

    /// Removes the least recently used files until those that are left take at most `bytes_max`.
    /// Removes abandoned unfinished files too.
    pub(super) fn bound(&self, bytes_max: u64) {
        let Ok(entries) = fs::read_dir(self.path("")) else { return };
        let described = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let kind = Name::parse(&name)?;
            let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
            Some((metadata.modified().ok()?, metadata.len(), name, kind))
        };
        let mut files: Vec<_> = entries.flatten().filter_map(described).collect();
        let mut total: u64 = files.iter().map(|file| file.1).sum();
        // Least recently used first: reading a file sets its time.
        files.sort_by_key(|file| file.0);
        for (used, bytes, name, kind) in files {
            let age = SystemTime::now().duration_since(used).unwrap_or_default();
            let abandoned = kind == Name::Unfinished && age > UNFINISHED_AGE_MAX;
            let surplus = kind == Name::Finished && total > bytes_max;
            if (abandoned || surplus) && self.remove(&name) {
                total -= bytes;
            }
        }
    }
}

/// The lock of a folder.
pub(super) struct Locked<'f>(&'f Folder);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = self.0.descriptor.unlock();
    }
}

/// Whether only this user, and the system's administrator, can have written it.
fn is_private(metadata: &Metadata, user: u32) -> bool {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    metadata.uid() == user && metadata.mode() & OTHERS_MAY_WRITE == 0
}
