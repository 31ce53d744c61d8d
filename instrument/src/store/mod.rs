//! Translations kept on disk from run to run, so that a program that ran before starts without
//! being translated again.
//!
//! # The problem
//!
//! A program that runs for a tenth of a second spends most of that time waiting for translations
//! that a former run has already made. But the code that the former run translated may not be the
//! code that is mapped now.
//!
//! # The idea
//!
//! When an image ends, the host writes its code cache, and everything that it knows about the
//! cache, to one file (`snapshot`). When the program is executed again, the host restores the whole
//! file, and verifies each module's part of it when the module is first executed
//! (`translate::unverified`). Without address randomisation a program and its libraries keep their
//! addresses, so code needs no relocation. The file holds whole images and not a list of addresses:
//! a stop of the program costs more than the translation that the stop leads to, so a list would
//! save only half.
//!
//! ```text
//!   image ends ──▶ groups of modules that can be kept ──▶ encode ──▶ file (new name, rename)
//!                                                                         │
//!   exec ──▶ identity: first page, layout, stream, executable, processor ─┴▶ file ──▶ decode
//!                                                                                       │
//!   a module is executed ──▶ its group: same files, addresses, pages? ──────────────────┴▶ in use
//! ```
//!
//! # Invariants
//!
//! - A file is used as a whole or not at all: its checksum and every index in it must be right, and
//!   no two parts may hold the same addresses (`parts`).
//! - Nothing leads to a fragment whose module was not verified in this run.
//! - Blocks, sites, counters, lines and exits keep their numbers, because the code names them.
//!
//! **Safe against change:** a file is found by the program's first page (which holds its build-id),
//! the layout, the stream, this executable and the processor. A module's part of it is used only if
//! the same file (device and inode) is mapped as text at the same addresses, and all pages that
//! were translated still hold the same bytes. Parts of modules that moved or changed are given up.
//! If a program that ran with a file ends by a fault, the file is given up too, with a warning.
//!
//! **Safe against other users:** files belong to the user and lie in a folder that no other user
//! may write to (`folder`). Translations of a process whose credentials differ from the host's are
//! never kept. If anything fails, the program is translated as in its first run. **Leaves out**
//! generated code, children that are forked, tools, randomised addresses; and memory that the
//! processes of one run share (`image::resting`), which goes by these rules.

mod folder;
#[cfg(test)]
mod folder_tests;
mod form;
pub(crate) mod kept;
pub(crate) mod parts;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;

use crate::code::hash::hash;
use crate::code::lookup::Hash;
use crate::target::file_bytes::FileBytes;
use folder::Folder;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MAGIC: &[u8; 8] = b"lftrans3";
/// Bytes of the header: magic, number of fragments, checksum.
const HEADER_BYTES: usize = 24;
/// The most bytes of a file; larger files are not written.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The most bytes in a folder; the least recently used files are removed first.
const FOLDER_BYTES_MAX: u64 = 1 << 30;

/// The header in front of a file's body. Files are replaced as a whole, so two files with equal
/// headers are taken for the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    fragments: u64,
    checksum: u64,
}

impl Header {
    fn of(body: &[u8], fragments: u64) -> Header {
        Header { fragments, checksum: hash(body, fragments) }
    }

    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.fragments.to_le_bytes());
        bytes[16..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}

/// The place on disk of one image's translations.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    name: String,
    /// The header of the file that this run has read or written last, if it has done either.
    taken: Option<Header>,
}

impl Store {
    /// The store of the image with this `identity`; the file's name is a hash of it.
    pub(crate) fn new(folder: &Path, identity: &[u8]) -> Store {
        let name = format!("{:016x}{:016x}", hash(identity, 1), hash(identity, 2));
        Store { folder: folder.into(), name, taken: None }
    }

    /// The file's path, whether it exists or not.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Reads the file, if it exists, belongs to this user and is whole.
    pub(crate) fn read(&mut self) -> Option<Body> {
        let (file, body) = self.whole(&Folder::open(&self.folder)?)?;
        // Making room removes the least recently used files first, so reading sets the time.
        let _ = file.set_modified(SystemTime::now());
        self.taken = Some(body.header);
        Some(body)
    }

    /// The current file of this name, if it belongs to this user and is whole.
    fn whole(&self, folder: &Folder) -> Option<(File, Body)> {
        let (file, metadata) = folder.file(&self.name)?;
        if metadata.len() > FILE_BYTES_MAX {
            return None;
        }
        let bytes = FileBytes::of(&file)?;
        let (front, body) = bytes.bytes().split_at_checked(HEADER_BYTES)?;
        let fragments = u64::from_le_bytes(front[8..16].try_into().ok()?);
        let header = Header::of(body, fragments);
        (front == header.bytes()).then_some((file, Body { bytes, header }))
    }

    /// Writes `body`, which holds this number of fragments, whole or not at all. The caller does
    /// not learn whether the file could be written, because nothing depends on it.
    pub(crate) fn write(&mut self, body: &[u8], fragments: u64) {
        if body.len() as u64 + HEADER_BYTES as u64 > FILE_BYTES_MAX {
            self.give_up();
            return;
        }
        let Some(folder) = Folder::make(&self.folder) else { return };
        let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        // Another lightfoot may write the same image at this time. So each one writes a file with a
        // name of its own, and then renames it.
        let unfinished = format!("{}.{}-{since}.tmp", self.name, std::process::id());
        let header = Header::of(body, fragments);
        let written = folder.create(&unfinished).and_then(|mut file| {
            file.write_all(&header.bytes())?;
            file.write_all(body)
        });
        if written.is_ok() && self.put(&folder, &unfinished, fragments) {
            self.taken = Some(header);
        } else {
            folder.remove(&unfinished);
        }
    }

    /// Gives a written file its final name, unless another lightfoot has written a file of that
    /// name in the meantime that should stay. Returns whether the file was renamed.
    fn put(&self, folder: &Folder, unfinished: &str, fragments: u64) -> bool {
        let Some(_locked) = folder.lock() else { return false };
        // The lock makes the comparison and the rename one step.
        let there = self.whole(folder).map(|(_, body)| body.header);
        let stays = match (self.taken, there) {
            (None, None) => false,
            // Both runs began without a file: the file with more fragments stays.
            (None, Some(there)) => there.fragments >= fragments,
            // Another process has removed or replaced the file with which this run began: the
            // decision of that process stands.
            (taken, there) => taken != there,
        };
        if stays || folder.rename(unfinished, &self.name).is_err() {
            return false;
        }
        folder.bound(FOLDER_BYTES_MAX);
        true
    }

    /// Removes the file that this run has read, unless another file has replaced it. Returns
    /// whether a file was removed.
    pub(crate) fn give_up(&self) -> bool {
        let Some(folder) = Folder::open(&self.folder) else { return false };
        let Some(_locked) = folder.lock() else { return false };
        let there = self.whole(&folder).map(|(_, body)| body.header);
        // A fault in this run says nothing about a file that this run did not use.
        self.taken.is_some() && self.taken == there && folder.remove(&self.name)
    }
}

/// The mapped bytes of a file behind its header. Files are replaced and never written in place, so
/// these bytes do not change.
pub(crate) struct Body {
    bytes: FileBytes,
    header: Header,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes.bytes()[HEADER_BYTES..]
    }
}

/// Everything about this process and processor on which generated code depends; `None` if the
/// executable's identity cannot be read.
pub(crate) fn generator() -> Option<Vec<u8>> {
    let own = fs::metadata("/proc/self/exe").ok()?;
    // Generated code depends on this executable and on the way in which the processor hashes
    // targets.
    let mut identity = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
    for number in [
        own.dev(),
        own.ino(),
        own.size(),
        own.mtime() as u64,
        own.mtime_nsec() as u64,
        own.ctime_nsec() as u64,
    ] {
        identity.extend(number.to_le_bytes());
    }
    identity.push(Hash::of_host() as u8);
    Some(identity)
}
