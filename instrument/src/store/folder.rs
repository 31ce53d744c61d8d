//! The folder of kept translations: which files in it are ours, and how much they may take.
//!
//! Kept code is executed, so it must come from nobody but this user: nothing is read, written or
//! removed unless the folder is private ([`PrivateFolder`]). The folder is named by the user, so it
//! may hold anything else: nothing is removed but regular files of this user with a name and a
//! magic of ours. A lock on the folder makes comparing and renaming one step among several
//! lightfoots.

use private_folder::{FolderLock, ListedFile, PrivateFolder};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What the magic of every version begins with.
pub(super) const MAGIC_START: &[u8] = b"lftrans";
/// Hexadecimal digits of a name.
pub(super) const NAME_DIGITS: usize = 32;
/// An unfinished file that nobody has written to for so long was left by a process that ended.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(600);
/// How long another lightfoot is waited for; each holds the lock for as long as a few renames take.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// A folder that is private, with kept translations among its files.
#[derive(Debug)]
pub(super) struct Folder(PrivateFolder);

/// What a name in the folder says of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Kept translations.
    Finished,
    /// Kept translations that are being written.
    Unfinished,
}

impl Name {
    /// `None` for all names that are not ours: 32 digits in lower case, or these with
    /// `.NUMBER-NUMBER.tmp` behind.
    pub(super) fn parse(name: &str) -> Option<Name> {
        // Exactly ours: nothing else in the folder is ever touched.
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
        PrivateFolder::open(path).map(Folder)
    }

    /// Opens a folder, and makes it where it is not there; never below a folder of another user
    /// than the system's own.
    pub(super) fn make(path: &Path) -> Option<Folder> {
        PrivateFolder::make(path).map(Folder)
    }

    /// Opens a file of ours; `None` for whatever else has that name.
    pub(super) fn file(&self, name: &str) -> Option<(File, Metadata)> {
        self.0.file(name)
    }

    /// Makes a file that is not there yet.
    pub(super) fn create(&self, name: &str) -> std::io::Result<File> {
        self.0.create(name)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }

    /// Waits until no other lightfoot compares and renames here; `None` where one does for long.
    /// The lock ends with the value.
    pub(super) fn lock(&self) -> Option<FolderLock<'_>> {
        self.0.lock(LOCK_PATIENCE)
    }

    /// Removes a file, if name, owner, kind and magic are ours; whether it did.
    pub(super) fn remove(&self, name: &str) -> bool {
        let Some(kind) = Name::parse(name) else { return false };
        let Some((mut file, _)) = self.file(name) else { return false };
        let mut magic = Vec::new();
        if file.by_ref().take(MAGIC_START.len() as u64).read_to_end(&mut magic).is_err() {
            return false;
        }
        // A file of another version begins alike.
        let whole = magic == MAGIC_START;
        // What was left unfinished may have no bytes yet.
        let begun = kind == Name::Unfinished && MAGIC_START.starts_with(&magic);
        (whole || begun) && self.0.remove(name).is_ok()
    }

    /// Removes files of ours, those first that were used least recently, until all of ours take at
    /// most `bytes_max`; and what was left unfinished.
    pub(super) fn bound(&self, bytes_max: u64) {
        let Ok(all) = self.0.files() else { return };
        let ours = |file: ListedFile| {
            let kind = Name::parse(&file.name)?;
            Some((file.modified, file.bytes, file.name, kind))
        };
        let mut files: Vec<_> = all.into_iter().filter_map(ours).collect();
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
