//! Whether a process still has a file's own pages where it maps the file.
//!
//! **The problem.** Whoever knows a file's bytes would like to know the bytes of a private mapping
//! of it, too, without reading them. **The idea.** The kernel says of each page whether it is one
//! of a file or a copy that the process has made by writing (`/proc/PID/pagemap`), and of each file
//! when it changed last. **Leaves out** pages that the process has handed to the swap: they count
//! as copies. Source: Linux, Documentation/admin-guide/mm/pagemap.rst.

use super::mappings::FileNumber;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PAGE: u64 = 4096;
/// Bits of an entry of the map: the page is in memory; in the swap; one of a file, or shared.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
/// A file that changed a shorter time ago may change again without another time of change, because
/// the kernel's clock for files has ticks of milliseconds.
const SETTLED: Duration = Duration::from_secs(2);

/// The state of a file: if it is the same at two times, the bytes were the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds of the last change of the file or its properties.
    changed: (i64, i64),
}

impl FileState {
    /// The state of the file at `path`; `None` if there is none, or if it changed just now.
    pub(crate) fn of(path: &Path) -> Option<FileState> {
        let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let changed = (file.ctime(), file.ctime_nsec());
        let since = UNIX_EPOCH + Duration::new(changed.0.try_into().ok()?, changed.1.try_into().ok()?);
        let settled = SystemTime::now().duration_since(since).is_ok_and(|age| age >= SETTLED);
        settled.then_some(FileState { device: file.dev(), inode: file.ino(), bytes: file.len(), changed })
    }

    /// The numbers by which mappings name the file.
    pub(crate) fn number(&self) -> FileNumber {
        let (major, minor) = (libc::major(self.device), libc::minor(self.device));
        FileNumber { device: u64::from(major) << 32 | u64::from(minor), inode: self.inode }
    }
}

/// Whether process `pid` has copies of none of these pages, which are in order. All of them must
/// lie in mappings of files.
pub(crate) fn are_of_files(pid: i32, pages: impl Iterator<Item = u64> + Clone) -> bool {
    let Ok(map) = File::open(format!("/proc/{pid}/pagemap")) else { return false };
    let mut entries = [0u8; 8 * 512];
    // The entries that were read are those of this page and of the ones behind it.
    let mut first = None;
    pages.into_iter().all(|page| {
        let known = first.is_some_and(|first: u64| (first..first + 512 * PAGE).contains(&page));
        if !known {
            if map.read_exact_at(&mut entries, page / PAGE * 8).is_err() {
                return false;
            }
            first = Some(page);
        }
        let index = (page - first.unwrap_or(page)) / PAGE;
        let entry = &entries[8 * index as usize..][..8];
        let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
        entry & (PRESENT | SWAPPED) == 0 || entry & (PRESENT | OF_FILE) == PRESENT | OF_FILE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_has_another_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [1; 100]).expect("written");
        assert_eq!(FileState::of(&path), None, "it changed just now");
        let old = FileState::of(Path::new("/proc/self/exe"));
        assert_eq!(old, FileState::of(Path::new("/proc/self/exe")));
        assert_eq!(FileState::of(&folder.path().join("none")), None);
        assert_eq!(FileState::of(folder.path()), None);
    }

    #[test]
    fn a_page_that_was_written_is_a_copy() {
        if File::open("/proc/self/pagemap").is_err() {
            eprintln!("skipped: this kernel does not say where pages come from");
            return;
        }
        // The text of this executable is the file's, memory that was written is not.
        let own = std::process::id() as i32;
        let text = a_page_that_was_written_is_a_copy as *const () as u64 & !(PAGE - 1);
        assert!(are_of_files(own, [text].into_iter()));
        let bytes = std::hint::black_box(vec![1u8; 3 * PAGE as usize]);
        let written = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
        assert!(!are_of_files(own, [text, written].into_iter()));
        assert!(!are_of_files(own, [written].into_iter()));
    }
}
