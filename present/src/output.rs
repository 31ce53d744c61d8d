//! Where a report goes: standard error, or a file that appears whole or not at all.
//!
//! A file is written under another name beside its place and renamed, so that a full disk or an
//! interruption keeps what was there. What can be known before the program runs is said before it
//! runs: a missing folder, one that cannot be written to, a folder in the file's place. Devices and
//! pipes cannot be replaced; they are written to directly. A reader that closed its pipe wants no
//! more: silence.

use anyhow::{Context, Result};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard error.
    Stderr,
    /// A device or a pipe.
    Device(PathBuf),
    /// A file, to be replaced as a whole.
    File(PathBuf),
}

impl Destination {
    /// Decides, and refuses what cannot work.
    ///
    /// # Errors
    /// One sentence that names the path and what is wrong with it.
    pub fn new(path: Option<&Path>) -> Result<Destination> {
        let Some(path) = path else { return Ok(Destination::Stderr) };
        // A link stays a link: what it points to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match path.metadata() {
            Ok(about) if about.is_dir() => {
                anyhow::bail!("cannot write the report to {}: it is a directory, give a file", path.display())
            }
            Ok(about) if !about.is_file() => return Ok(Destination::Device(path)),
            _ => {}
        }
        let folder = folder(&path);
        if !folder.is_dir() {
            anyhow::bail!(
                "cannot write the report to {}: there is no directory {}",
                path.display(),
                folder.display()
            );
        }
        let probe = temporary(&path);
        create(&probe).with_context(|| {
            format!(
                "cannot write the report to {}: nothing can be created in {}",
                path.display(),
                folder.display()
            )
        })?;
        let _ = std::fs::remove_file(&probe);
        Ok(Destination::File(path))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// One sentence that names the path; an existing file is then as it was.
    pub fn write(&self, text: impl AsRef<[u8]>) -> Result<()> {
        let text = text.as_ref();
        match self {
            Destination::Stderr => silently(std::io::stderr().write_all(text))
                .context("cannot write the report to standard error"),
            Destination::Device(path) | Destination::File(path) => {
                replace(path, text).with_context(|| format!("cannot write the report to {}", path.display()))
            }
        }
    }
}

/// A closed pipe is no error.
fn silently(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A line on standard error, without control characters. Where it cannot be written, nobody reads
/// it: `eprintln!` would panic.
#[macro_export]
macro_rules! tell {
    ($($what:tt)*) => {{
        let line = $crate::terminal::printable_lines(&format!($($what)*));
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"));
    }};
}

/// Prints to standard output; a reader that closed the pipe ends it silently.
///
/// # Errors
/// Any other failure to write.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    silently(written).context("cannot write to standard output")
}

/// Puts `text` in the place of `path`, whole or not at all; a link stays a link, and a device or a
/// pipe is written to.
///
/// # Errors
/// When it cannot be written; a file is then as it was.
pub fn replace(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return silently(
            OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_ref())),
        );
    }
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let temporary = temporary(path);
    let mut file = create(&temporary)?;
    take_place(&temporary, path, || {
        if let Ok(about) = path.metadata() {
            file.set_permissions(Permissions::from_mode(about.permissions().mode() & 0o777))?;
        }
        file.write_all(text.as_ref())?;
        file.sync_all()
    })
}

/// Renames a file of ours when `write` has made it whole, or removes it.
fn take_place(
    temporary: &Path,
    path: &Path,
    write: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let result = write().and_then(|()| std::fs::rename(temporary, path));
    if result.is_err() {
        let _ = std::fs::remove_file(temporary);
    }
    result
}

/// Puts a file with these bytes and permissions in the place of `path`, whole or not at all; a link
/// stays a link. Until it is whole, nobody but its owner can read it.
///
/// # Errors
/// When it cannot be written; what was there is then as it was.
pub fn replace_with(path: &Path, bytes: &[u8], permissions: &Permissions) -> std::io::Result<()> {
    let known = path.canonicalize();
    let path = known.as_deref().unwrap_or(path);
    let temporary = temporary(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    take_place(&temporary, path, || {
        file.write_all(bytes)?;
        file.set_permissions(permissions.clone())?;
        // Waiting for the disk takes as long as a short program runs. It protects what was there
        // before; where nothing was, there is nothing to lose.
        if known.is_ok() {
            file.sync_all()
        } else {
            Ok(())
        }
    })
}

fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A name beside `path` that no other process uses.
fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or("report".as_ref()));
    name.push(format!(".{}.tmp", std::process::id()));
    folder(path).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        std::fs::write(&path, "old").unwrap();
        Destination::new(Some(&path)).unwrap().write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Destination::new(Some(&link)).unwrap().write("new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_missing_folder_is_said_before_the_run() {
        let said = Destination::new(Some(Path::new("/no/such/folder/out"))).unwrap_err().to_string();
        assert!(said.contains("there is no directory /no/such/folder"), "{said}");
    }

    #[test]
    fn a_folder_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let said = Destination::new(Some(folder.path())).unwrap_err().to_string();
        assert!(said.contains("is a directory"), "{said}");
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        let full = Destination::new(Some(Path::new("/dev/full"))).unwrap();
        assert_eq!(full, Destination::Device("/dev/full".into()));
        assert!(full.write("x").is_err());
        Destination::new(Some(Path::new("/dev/null"))).unwrap().write("x").unwrap();
    }

    #[test]
    fn replacing_takes_the_place_of_files_alone() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        // Whoever may create files in /dev would otherwise lose the device; a link to it shows the
        // same without risk.
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        assert!(replace(&link, "x").is_err());
        assert!(
            link.metadata().unwrap().file_type().is_char_device()
                && link.symlink_metadata().unwrap().is_symlink()
        );
        let (file, link) = (folder.path().join("file"), folder.path().join("other"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
