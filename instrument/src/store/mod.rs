//! Translations kept on disk from run to run, so that a program that ran before starts without being translated again.
//!
//! **What.** When an image ends, its code cache with all that the host knows of it is written to one file (`snapshot`); when the same program is
//! executed again, the file is put back, and each module's part of it sleeps until the module is first executed (`dormant`). **Why whole
//! images:** without address randomisation a program and its libraries lie where they lay, so code needs no relocation, and a stop of the program
//! costs more than the translation it asks for: a list of addresses would save only half.
//! **Safe against change:** a file is found by the program's first page (which holds its build-id), the layout, the stream, this executable and the processor; it is taken as
//! a whole or not at all (checksum, every index checked); and a module wakes only if every page that was translated still
//! reads the same. Files are the user's own, in a folder that nobody else may write. A failure of any kind means a run like the first.
//! **Leaves out** generated code, children that are forked, tools, randomised addresses.

pub(crate) mod dormant;
mod form;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;

use crate::emit::lookup::Hash;
use crate::memory::FileBytes;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MAGIC: &[u8; 8] = b"lftrans2";
/// Magic, checksum.
const HEADER_BYTES: usize = 16;
/// Larger files are not written.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// What a folder may hold; the files that were used least recently are removed first.
const FOLDER_BYTES_MAX: u64 = 1 << 30;

/// The place on disk of one image's translations.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    path: PathBuf,
}

impl Store {
    /// The place of whatever `identity` tells apart.
    pub(crate) fn new(folder: &Path, identity: &[u8]) -> Store {
        let name = format!("{:016x}{:016x}", hash(identity, 1), hash(identity, 2));
        Store { folder: folder.into(), path: folder.join(name) }
    }

    /// What was written, if it is there, ours and whole.
    pub(crate) fn read(&self) -> Option<Body> {
        if !is_private(&fs::symlink_metadata(&self.folder).ok()?) {
            return None;
        }
        let metadata = fs::symlink_metadata(&self.path).ok()?;
        if !metadata.is_file() || !is_private(&metadata) || metadata.len() > FILE_BYTES_MAX {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        let body = Body(FileBytes::of(&file)?);
        let header = body.0.bytes().get(..HEADER_BYTES)?;
        if &header[..8] != MAGIC || header[8..] != hash(body.bytes(), 0).to_le_bytes() {
            return None;
        }
        // The order of removal is that of use.
        let _ = file.set_modified(SystemTime::now());
        Some(body)
    }

    /// Writes `body`, whole or not at all. Nothing depends on whether it could be written.
    pub(crate) fn write(&self, body: &[u8]) {
        if body.len() as u64 + HEADER_BYTES as u64 > FILE_BYTES_MAX {
            return self.remove();
        }
        if self.try_write(body).is_ok() {
            bound(&self.folder, FOLDER_BYTES_MAX);
        }
    }

    fn try_write(&self, body: &[u8]) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let unfinished = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
            file.write_all(MAGIC)?;
            file.write_all(&hash(body, 0).to_le_bytes())?;
            file.write_all(body)?;
            fs::rename(&unfinished, &self.path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Forgets what was written.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What a file holds behind its header. Files are replaced, never written again: what is mapped stays.
pub(crate) struct Body(FileBytes);

impl Body {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes()[HEADER_BYTES..]
    }
}

/// Whether nobody but us (and the system's administrator) can have written it.
fn is_private(metadata: &Metadata) -> bool {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    let us = fs::metadata("/proc/self").map(|own| own.uid());
    us.is_ok_and(|uid| uid == metadata.uid()) && metadata.mode() & OTHERS_MAY_WRITE == 0
}

/// Removes files of a folder of ours, those first that were used least recently, until it holds at most `bytes_max`.
fn bound(folder: &Path, bytes_max: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let described = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(described).collect();
    let mut total: u64 = files.iter().map(|file| file.1).sum();
    files.sort();
    for (_, bytes, path) in files {
        if total <= bytes_max {
            return;
        }
        total -= bytes;
        let _ = fs::remove_file(path);
    }
}

/// What of this process and processor decides how code is generated; `None` where the executable cannot be told from another one.
pub(crate) fn generator() -> Option<Vec<u8>> {
    let own = fs::metadata("/proc/self/exe").ok()?;
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

/// A hash of 64 bits: four chains of multiplications, so that ten gigabytes a second are checked. Not for enemies: whoever can write the
/// file can run programs as the user.
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    const FACTORS: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f];
    let mix = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mut lanes = FACTORS.map(|factor| factor ^ seed.wrapping_mul(FACTORS[1]));
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (n, lane) in lanes.iter_mut().enumerate() {
            *lane =
                mix(*lane ^ word(&chunk[8 * n..8 * n + 8]), FACTORS[n]).wrapping_add(lane.rotate_left(23));
        }
    }
    let mut last = [0u8; 32];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let mut all = bytes.len() as u64;
    for (n, lane) in lanes.iter().enumerate() {
        all = mix(all ^ lane ^ word(&last[8 * n..8 * n + 8]), FACTORS[n]).wrapping_add(lane.rotate_left(31));
    }
    all
}
