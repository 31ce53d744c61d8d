//! Searches files that were named or found: small ones are read as a whole, others are passed on to
//! [`large`](super::large).

use super::large::Large;
use super::searcher::{is_marked, Answer, Direct};
use crate::outcome::SearchOutcome;
use crate::walk::Haystack;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

impl Direct {
    /// Searches a file; `None` if the general path must.
    pub(crate) fn search(
        &mut self,
        haystack: &Haystack,
        out: &mut impl Write,
    ) -> Option<io::Result<SearchOutcome>> {
        if haystack.stdin {
            return None;
        }
        let mut file = match File::open(&haystack.path) {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        let short = self.folder.short_reads(haystack, &file);
        let mut buffer = std::mem::take(&mut self.buffer);
        let content = self.content(haystack, &mut file, short, &mut buffer);
        let found = match content {
            Ok(Content::Whole(length)) => self.content_of(haystack, &buffer[..length], out),
            Ok(Content::Large { bytes, read }) => {
                self.large(haystack, Large { file: &file, bytes, read, sizes: self.sizes }, &mut buffer, out)
            }
            Ok(Content::Unknown) => None,
            Err(error) => Some(Err(error)),
        };
        self.buffer = buffer;
        found
    }

    /// Reads all of a file into `buffer`, or the beginning of a large one.
    fn content(
        &self,
        haystack: &Haystack,
        file: &mut File,
        short: ShortReads,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Content> {
        let mut filled = 0;
        if !haystack.named {
            // Most files of a tree are small: they take one call or two, and their length is not
            // asked for.
            buffer.resize(buffer.len().max(self.sizes.probe), 0);
            filled = match short {
                ShortReads::EndFile => read(file, &mut buffer[..self.sizes.probe])?,
                ShortReads::MayGoOn => fill(file, &mut buffer[..self.sizes.probe])?,
            };
            if filled < self.sizes.probe {
                return Ok(Content::Whole(filled));
            }
            if self.quits(haystack) && memchr::memchr(0, &buffer[..filled]).is_some() {
                return Ok(Content::Whole(filled));
            }
        }
        let bytes = file.metadata().ok().filter(|about| about.is_file()).map_or(0, |about| about.len());
        // A file without a length may have no end, as a pipe or a device.
        if bytes == 0 {
            return Ok(Content::Unknown);
        }
        if bytes >= self.sizes.large {
            buffer.resize(buffer.len().max(self.sizes.probe), 0);
            filled += fill(file, &mut buffer[filled..self.sizes.probe])?;
            return Ok(Content::Large { bytes, read: filled });
        }
        // One byte more than expected is read, so that the end is recognised without another call.
        buffer.resize(buffer.len().max(bytes as usize + 1), 0);
        loop {
            filled += fill(file, &mut buffer[filled..])?;
            if filled < buffer.len() {
                return Ok(Content::Whole(filled));
            }
            buffer.resize(2 * filled, 0);
        }
    }

    /// Whether the search of a file ends at its first NUL byte.
    fn quits(&self, haystack: &Haystack) -> bool {
        self.quits && !haystack.named
    }

    fn content_of(
        &self,
        haystack: &Haystack,
        text: &[u8],
        out: &mut impl Write,
    ) -> Option<io::Result<SearchOutcome>> {
        if self.sniff && is_marked(text) {
            return None;
        }
        let checks_lines = self.as_mapped && haystack.named;
        let probe = if checks_lines { &text[..text.len().min(self.sizes.probe)] } else { text };
        match memchr::memchr(0, probe).filter(|_| !self.text) {
            None => Some(self.text(haystack, text, checks_lines, out)),
            // Without a match before the NUL byte, nothing is printed for the file.
            Some(at) if self.quits(haystack) && !self.any(&text[..at]) => Some(Ok(SearchOutcome::default())),
            Some(_) => None,
        }
    }

    /// Searches a text. If `checks_lines` is set, a line to be printed may still hold a NUL byte,
    /// and is then not printed.
    fn text(
        &self,
        haystack: &Haystack,
        text: &[u8],
        checks_lines: bool,
        out: &mut impl Write,
    ) -> io::Result<SearchOutcome> {
        let path = haystack.path.as_os_str().as_bytes();
        let any = match self.answer {
            Answer::Lines | Answer::Matches => self.print(path, text, checks_lines && !self.text, out)?,
            Answer::Count | Answer::CountMatches => {
                return self.say_count(path, self.count(text), out);
            }
            Answer::Path | Answer::PathWithout => {
                let any = self.any(text) == (self.answer == Answer::Path);
                if any {
                    out.write_all(&self.format.path_line(path))?;
                }
                any
            }
            Answer::Quiet => self.any(text),
            Answer::QuietWithout => !self.any(text),
        };
        Ok(SearchOutcome { any, stats: None })
    }
}

/// A file's content as far as it was read.
enum Content {
    /// All of it, in this many first bytes of the buffer.
    Whole(usize),
    /// A large file of so many bytes, the first of which were read.
    Large { bytes: u64, read: usize },
    /// A file that may have no end.
    Unknown,
}

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
    fn short_reads(&mut self, haystack: &Haystack, file: &File) -> ShortReads {
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

/// Reads once.
fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            read => return read,
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

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
