//! Files that grow under a name beside their own, until they are whole and renamed.
//!
//! Such a name can be guessed, and its folder may be one that others write to: a link put
//! there would get another file overwritten. So the name is always made new (`O_EXCL`, which
//! follows no link). What an earlier run left there, a regular file, is removed first.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file, in the place of a regular file that may be there.
///
/// # Errors
/// There is a link, a pipe, a device or a folder, which stays; or what the system says.
pub fn begin(path: &Path) -> io::Result<File> {
    match path.symlink_metadata() {
        Ok(about) if about.is_file() => std::fs::remove_file(path)?,
        Ok(_) => {
            let what = "there is a link, or what is no file: move it away or write elsewhere";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Err(_) => (),
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}
