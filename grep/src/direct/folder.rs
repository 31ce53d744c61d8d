//! What a short read says about a file that was found: its end, on file systems that keep files.
//!
//! A tree has thousands of small files, and a read that finds nothing more costs as much as a part
//! of their search. **Leaves out** a file that another file system provides in such a folder by
//! itself, which may come in parts.

use crate::walk::Haystack;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

/// What a read of fewer bytes than were asked for says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortReads {
    /// The file has no more.
    EndFile,
    /// Perhaps that it has: only a read of no bytes is its end.
    MayGoOn,
}

/// The folder of the last file that was found, and what short reads say there. The system is asked
/// once a folder; asking for each file would cost what it saves.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: Vec<u8>,
    short: ShortReads,
}

impl Default for Folder {
    fn default() -> Folder {
        // No folder is called so.
        Folder { path: vec![0], short: ShortReads::MayGoOn }
    }
}

impl Folder {
    /// What short reads of a file say.
    pub(super) fn short_reads(&mut self, haystack: &Haystack, file: &File) -> ShortReads {
        if haystack.named {
            return ShortReads::MayGoOn;
        }
        let path = haystack.path.as_os_str().as_bytes();
        let folder = &path[..memchr::memrchr(b'/', path).unwrap_or(0)];
        if self.path != folder {
            self.path.clear();
            self.path.extend_from_slice(folder);
            self.short = match rustix::fs::fstatfs(file) {
                Ok(about) if KEEPS_FILES.contains(&(about.f_type as u32)) => ShortReads::EndFile,
                _ => ShortReads::MayGoOn,
            };
        }
        self.short
    }
}

/// The kinds of file systems, as Linux numbers them, that keep files and give all bytes that are
/// there: ext2 to ext4, XFS, Btrfs, those in memory, and layers of these. Files of `/proc`, and of
/// programs and networks, may come in parts.
const KEEPS_FILES: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630];

#[cfg(test)]
mod tests {
    use super::*;

    fn short_reads(folder: &mut Folder, path: &str, named: bool) -> ShortReads {
        let haystack = Haystack { path: path.into(), named, stdin: false };
        folder.short_reads(&haystack, &File::open(path).unwrap())
    }

    #[test]
    fn files_that_programs_provide_may_come_in_parts() {
        let mut folder = Folder::default();
        assert_eq!(short_reads(&mut folder, "/proc/self/status", false), ShortReads::MayGoOn);
        assert_eq!(folder.path, b"/proc/self");
        // The answer holds for the folder, and is another one in the next.
        let other = tempfile::tempdir().unwrap();
        let file = other.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let path = file.to_str().unwrap();
        let found = short_reads(&mut folder, path, false);
        let kind = rustix::fs::fstatfs(File::open(&file).unwrap()).unwrap().f_type as u32;
        assert_eq!(found == ShortReads::EndFile, KEEPS_FILES.contains(&kind));
        assert_eq!(short_reads(&mut folder, path, false), found);
        assert_eq!(short_reads(&mut folder, path, true), ShortReads::MayGoOn);
        assert_eq!(short_reads(&mut folder, "/proc/self/status", false), ShortReads::MayGoOn);
    }
}
