//! A folder that belongs to this user alone, for files that are trusted because of where they lie:
//! compiled code above all.
//!
//! **Problem.** A program that keeps code on disk and executes it later executes what anybody else
//! could put there. The folder is often named by an environment that somebody else has set, as for
//! a program that root runs, and a path that was checked may name something else a moment later.
//!
//! **Idea.** What is checked is what is used. The folder is opened once, checked on its descriptor,
//! and everything in it is reached from there:
//!
//! ```text
//! path ──open──▶ descriptor ──fstat──▶ a folder, of this user, nobody else may write?
//!                     │                                  │ no: None
//!                     └──openat(name)──▶ descriptor ──fstat──▶ a file, of this user, ...?
//! ```
//!
//! **Invariants.**
//!
//! 1. A [`PrivateFolder`] exists only for a folder of the effective user to which neither its group
//!    nor others may write, and whose path does not end in a symbolic link.
//! 2. A file is handed out only where it is a regular file under the same conditions.
//! 3. Names are single components: nothing leads out of the folder.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a path | the folder, if it is there | [`PrivateFolder::open`] |
//! | a path | the folder, made if need be | [`PrivateFolder::make`] |
//! | a name | the folder of that name within | [`PrivateFolder::inner`], [`PrivateFolder::make_inner`] |
//! | a name | the file, if it can be trusted | [`PrivateFolder::file`] |
//! | bytes | a file that is whole or not there | [`PrivateFolder::create`], [`PrivateFolder::rename`] |
//! | several processes | one of them at a time | [`PrivateFolder::lock`] |
//!
//! ```
//! use lightfoot_private_folder::PrivateFolder;
//! use std::io::Write;
//!
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path().join("remembered");
//! let folder = PrivateFolder::make(&path).expect("it is this user's alone");
//! folder.create("image.new")?.write_all(b"code")?;
//! folder.rename("image.new", "image")?;
//! let (_, metadata) = folder.file("image").expect("it was just written");
//! assert_eq!(metadata.len(), 4);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Leaves out** who may rename the folder itself: whoever can do that gains a folder with files
//! of this user's own making. Access control lists and capabilities are not looked at.

#![forbid(unsafe_code)]

use rustix::fs::{
    mkdirat, openat, renameat, statat, unlinkat, AtFlags, Dir, FileType, Mode, OFlags, Stat, CWD,
};
use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a lock that is held is left alone before it is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// An open folder of this user to which nobody else may write.
#[derive(Debug)]
pub struct PrivateFolder {
    descriptor: File,
    user: u32,
}

impl PrivateFolder {
    /// Opens a folder; `None` where it is not there, or not this user's own and private.
    pub fn open(path: &Path) -> Option<PrivateFolder> {
        let user = rustix::process::geteuid().as_raw();
        // A slash behind the name would make the system follow a link in spite of `NOFOLLOW`.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = File::from(openat(CWD, &path, flags, Mode::empty()).ok()?);
        PrivateFolder::checked(descriptor, user)
    }

    /// The folder that was opened, if it is this user's alone.
    fn checked(descriptor: File, user: u32) -> Option<PrivateFolder> {
        let metadata = descriptor.metadata().ok()?;
        let is_usable = metadata.is_dir() && is_private(&metadata, user);
        is_usable.then_some(PrivateFolder { descriptor, user })
    }

    /// Opens a folder in this one; `None` where it is not there, or not this user's own and
    /// private.
    pub fn inner(&self, name: &str) -> Option<PrivateFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.descriptor, component(name).ok()?, flags, Mode::empty()).ok()?;
        PrivateFolder::checked(opened.into(), self.user)
    }

    /// Opens a folder in this one, and makes it where it is not there.
    pub fn make_inner(&self, name: &str) -> Option<PrivateFolder> {
        // Whether it was made, or was there, is seen when it is opened.
        let _ = mkdirat(&self.descriptor, component(name).ok()?, Mode::RWXU);
        self.inner(name)
    }

    /// Opens a folder, and makes it where it is not there. It is made only below a folder of this
    /// user or of the system: a folder that root makes below that of another user could be neither
    /// used nor removed by that user.
    pub fn make(path: &Path) -> Option<PrivateFolder> {
        let path: PathBuf = path.components().collect();
        if fs::symlink_metadata(&path).is_err() {
            // The nearest folder above that exists. The empty path above a relative one is the
            // current folder.
            let above = path.ancestors().skip(1).find_map(|above| {
                fs::metadata(if above.as_os_str().is_empty() { Path::new(".") } else { above }).ok()
            })?;
            if above.uid() != rustix::process::geteuid().as_raw() && above.uid() != 0 {
                return None;
            }
            DirBuilder::new().recursive(true).mode(0o700).create(&path).ok()?;
        }
        // What was made is checked like any other folder: another process may have been faster.
        PrivateFolder::open(&path)
    }

    /// Opens a file to be read; `None` where it is not there, is no regular file, or not this
    /// user's own and private.
    pub fn file(&self, name: &str) -> Option<(File, Metadata)> {
        // Opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.descriptor, component(name).ok()?, flags, Mode::empty()).ok()?;
        let file = File::from(opened);
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && is_private(&metadata, self.user)).then_some((file, metadata))
    }

    /// Makes a file that is not there yet, to be written.
    ///
    /// # Errors
    /// Where there is such a file, or none can be made.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, component(name)?, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives a file another name, in place of what had that name.
    ///
    /// # Errors
    /// Where there is no such file, or a folder has the new name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, component(from)?, &self.descriptor, component(to)?)?)
    }

    /// Removes a file, or a link but not its target.
    ///
    /// # Errors
    /// Where there is no such file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, component(name)?, AtFlags::empty())?)
    }

    /// The regular files, whoever owns them, in no order. Links and names that are no text are left
    /// out.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn files(&self) -> io::Result<Vec<ListedFile>> {
        let listed = |entry: rustix::fs::DirEntry| {
            let stat = statat(&self.descriptor, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let name = entry.file_name().to_str().ok()?.to_owned();
            let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
            is_file.then(|| ListedFile { name, bytes: stat.st_size as u64, modified: modified(&stat) })
        };
        Ok(Dir::read_from(&self.descriptor)?.flatten().filter_map(listed).collect())
    }

    /// Waits until no other holder of this lock is left; `None` where one stays for longer than
    /// `patience`. On file systems without locks every caller gets it at once. The lock ends with
    /// the value.
    pub fn lock(&self, patience: Duration) -> Option<FolderLock<'_>> {
        let late = Instant::now() + patience;
        loop {
            match self.descriptor.try_lock() {
                Ok(()) | Err(TryLockError::Error(_)) => return Some(FolderLock(self)),
                Err(TryLockError::WouldBlock) if Instant::now() > late => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
    }
}

/// A regular file as the folder lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

/// The time of the last change; whole seconds before 1970 are negative, nanoseconds never.
#[allow(clippy::unnecessary_cast, reason = "nanoseconds have another type on other systems")]
fn modified(stat: &Stat) -> SystemTime {
    let whole = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let second = if stat.st_mtime < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    second + Duration::from_nanos(stat.st_mtime_nsec as u64)
}

/// The lock of a folder.
#[derive(Debug)]
pub struct FolderLock<'f>(&'f PrivateFolder);

impl Drop for FolderLock<'_> {
    fn drop(&mut self) {
        let _ = self.0.descriptor.unlock();
    }
}

/// Refuses a name that leads out of the folder, or further into it.
fn component(name: &str) -> io::Result<&str> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => {
            let sentence = format!("expected the name of a file in the folder, got {name:?}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, sentence))
        }
    }
}

/// Whether nobody but this user (and the system's administrator) can have written it.
fn is_private(metadata: &Metadata, user: u32) -> bool {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    metadata.uid() == user && metadata.mode() & OTHERS_MAY_WRITE == 0
}

#[cfg(test)]
mod tests;
