//! The folder of kept translations: which of its files lightfoot has written, and how many bytes
//! they may take.
//!
//! Kept code is executed, so it must come from this user only: files are read, written and removed
//! only if the folder is private ([`PrivateFolder`]). The user chooses the folder, so it may hold
//! other files. Therefore only regular files of this user are removed whose name and magic are
//! those of kept translations. A lock on the folder makes comparing and renaming one step among
//! several lightfoots.

use private_folder::{FolderLock, ListedFile, PrivateFolder};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The beginning of the magic in every version.
pub(super) const MAGIC_START: &[u8] = b"lftrans";
/// Hexadecimal digits of a name.
pub(super) const NAME_DIGITS: usize = 32;
/// An unfinished file that was not written to for this time was left by a process that ended.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(600);
/// The longest wait for the lock, which each lightfoot holds for the time of a few renames.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// A private folder with kept translations among its files.
#[derive(Debug)]
pub(super) struct Folder(PrivateFolder);

/// The kind of a file of kept translations, which its name shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Kept translations.
    Finished,
    /// Kept translations that are being written.
    Unfinished,
}

impl Name {
    /// Parses a file's name: 32 hexadecimal digits in lower case, followed by nothing or by
    /// `.NUMBER-NUMBER.tmp`. `None` for all other names.
    pub(super) fn parse(name: &str) -> Option<Name> {
        // The comparison is exact, because all other files in the folder must stay.
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
    /// Opens a folder; `None` if it does not exist, or is not a private folder of this user.
    pub(super) fn open(path: &Path) -> Option<Folder> {
        PrivateFolder::open(path).map(Folder)
    }

    /// Opens a folder, and makes it if it does not exist. A folder is made only below folders of
    /// this user and of the system.
    pub(super) fn make(path: &Path) -> Option<Folder> {
        PrivateFolder::make(path).map(Folder)
    }

    /// Opens a regular file of this user; `None` if anything else has that name.
    pub(super) fn file(&self, name: &str) -> Option<(File, Metadata)> {
        self.0.file(name)
    }

    /// Makes a file; fails if the name exists.
    pub(super) fn create(&self, name: &str) -> std::io::Result<File> {
        self.0.create(name)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }

    /// Locks the folder against other lightfoots; `None` if one of them holds the lock for too
    /// long. Dropping the value unlocks the folder.
    pub(super) fn lock(&self) -> Option<FolderLock<'_>> {
        self.0.lock(LOCK_PATIENCE)
    }

    /// Removes a file, if its name, owner, kind and magic are those of kept translations. Returns
    /// whether it did.
    pub(super) fn remove(&self, name: &str) -> bool {
        let Some(kind) = Name::parse(name) else { return false };
        let Some((mut file, _)) = self.file(name) else { return false };
        let mut magic = Vec::new();
        if file.by_ref().take(MAGIC_START.len() as u64).read_to_end(&mut magic).is_err() {
            return false;
        }
        // Files of other versions begin with these bytes too.
        let whole = magic == MAGIC_START;
        // An unfinished file may end before the magic is complete.
        let begun = kind == Name::Unfinished && MAGIC_START.starts_with(&magic);
        (whole || begun) && self.0.remove(name).is_ok()
    }

    /// Removes kept translations, the least recently used ones first, until they take at most
    /// `bytes_max`. Also removes abandoned unfinished files.
    pub(super) fn bound(&self, bytes_max: u64) {
        let Ok(all) = self.0.files() else { return };
        let ours = |file: ListedFile| {
            let kind = Name::parse(&file.name)?;
            Some((file.modified, file.bytes, file.name, kind))
        };
        let mut files: Vec<_> = all.into_iter().filter_map(ours).collect();
        let mut total: u64 = files.iter().map(|file| file.1).sum();
        // Reading a file sets its time, so the order of times is the order of uses.
        files.sort_unstable_by_key(|file| file.0);
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
