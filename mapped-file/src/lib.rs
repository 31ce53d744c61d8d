//! A file in memory that survives when another process shortens the file.
//!
//! **Problem.** A mapped file is read without a copy, which is half of the time of a quick search.
//! But another process may shorten the file at any time, as log rotation does. A page that is gone
//! then raises `SIGBUS`, which ends the process.
//!
//! **Idea.** A handler puts pages of zeros where the file is gone and remembers that it did. The
//! reader goes on, over bytes that mean nothing, asks afterwards, and throws its result away:
//!
//! ```text
//! read the mapped bytes ──fault──▶ handler: note it, map zeros, return ──▶ read on
//!          │                                     │
//!          └────────────▶ still_has(range)? ◀────┘   no: read the file by other means
//! ```
//!
//! **Invariants.**
//!
//! 1. The note is made before the zeros are there: who has read a zero sees the note.
//! 2. The handler acts on addresses of live mappings only, and hands all others to the handler that
//!    was there before.
//! 3. A result counts only where [`MappedFile::still_has`] said yes after it was computed: that
//!    also finds a file that was cut inside its last page, where no signal is raised.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a file | its bytes | [`MappedFile::new`], [`MappedFile::bytes`] |
//! | a range that is read next | its pages at once, not fault by fault | [`MappedFile::load`] |
//! | a result | whether it is one | [`MappedFile::still_has`] |
//!
//! ```
//! use lightfoot_mapped_file::MappedFile;
//!
//! # let path = tempfile::NamedTempFile::new()?;
//! # std::fs::write(&path, "some text")?;
//! let file = std::fs::File::open(path)?;
//! let mapped = MappedFile::new(&file, file.metadata()?.len()).expect("it can be mapped");
//! assert!(mapped.load(0..9));
//! let spaces = mapped.bytes().iter().filter(|&&byte| byte == b' ').count();
//! assert!(mapped.still_has(&file, 9));
//! assert_eq!(spaces, 1);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Leaves out** bytes that another process overwrites in place: a reader sees old and new ones,
//! as it does between two reads.

use slot::{Slot, PAGE_BYTES, SLOTS};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;
use std::sync::Once;

mod fault;
mod slot;

/// Bytes that the last level of page tables maps by one table.
const TABLE_BYTES: usize = 2 << 20;

/// A file in memory.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    bytes: usize,
    slot: usize,
}

// SAFETY: the memory is only read, by whatever thread, and the handler's state is atomic.
unsafe impl Send for MappedFile {}
// SAFETY: the memory is only read, by whatever thread, and the handler's state is atomic.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the first `bytes` bytes of a file; `None` where there are none, where the system
    /// refuses, or where many files are mapped already. No page is loaded yet.
    pub fn new(file: &File, bytes: u64) -> Option<MappedFile> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0 && bytes < isize::MAX as usize)?;
        static HANDLER: Once = Once::new();
        HANDLER.call_once(fault::install);
        let free = |slot: &Slot| !slot.is_taken.swap(true, Ordering::Acquire);
        let slot = SLOTS.iter().position(free)?;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place that the system chooses touches no other memory.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
        let start = Some(start).filter(|&start| start != libc::MAP_FAILED).and_then(NonNull::new);
        let Some(start) = start else {
            SLOTS[slot].is_taken.store(false, Ordering::Release);
            return None;
        };
        let start = start.cast::<u8>();
        SLOTS[slot].has_shrunk.store(false, Ordering::Relaxed);
        let address = start.as_ptr() as usize;
        SLOTS[slot].end.store((address + bytes).next_multiple_of(PAGE_BYTES), Ordering::Release);
        SLOTS[slot].start.store(address, Ordering::Release);
        Some(MappedFile { start, bytes, slot })
    }

    /// The file's bytes. Where the file has become shorter they are zeros; another process may
    /// change them at any time.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length and lives as long as `self`. A page that is gone is
        // replaced by zeros in the handler. Other processes may write to the file, as to any mapped
        // file; what is read are bytes, and any bytes are valid.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Makes the pages of a range present, so that no page of it faults; false where the system
    /// cannot, or where the file has become shorter. Cost: a system call, and half a microsecond
    /// for 64 KB.
    pub fn load(&self, range: Range<usize>) -> bool {
        let from = range.start.min(self.bytes) & !(PAGE_BYTES - 1);
        let length = range.end.min(self.bytes).saturating_sub(from);
        // SAFETY: the range lies in the mapping, and this advice changes no bytes.
        let done =
            unsafe { libc::madvise(self.start.as_ptr().add(from).cast(), length, libc::MADV_POPULATE_READ) };
        done == 0
    }

    /// Gives the pages of one of some equal parts back, as the end of the mapping does for all of
    /// them: threads do so at once. The bytes stay readable, at the cost of loading them again.
    ///
    /// # Panics
    /// If there are no parts.
    pub fn give_back(&self, part: usize, parts: usize) {
        // Whole page tables, so that no two threads wait for each other.
        let bytes = self.bytes.div_ceil(parts).next_multiple_of(TABLE_BYTES);
        let from = part.saturating_mul(bytes).min(self.bytes.next_multiple_of(PAGE_BYTES));
        let length = bytes.min(self.bytes.next_multiple_of(PAGE_BYTES) - from);
        // SAFETY: the range lies in the mapping, whose pages are those of a file and come back from
        // there with the same bytes.
        unsafe { libc::madvise(self.start.as_ptr().add(from).cast(), length, libc::MADV_DONTNEED) };
    }

    /// Whether the file still has its first `bytes` bytes, and always had since it was mapped as
    /// far as anybody has read. Cost: a system call.
    pub fn still_has(&self, file: &File, bytes: usize) -> bool {
        !SLOTS[self.slot].has_shrunk.load(Ordering::Acquire)
            && file.metadata().is_ok_and(|about| about.len() >= bytes as u64)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        let slot = &SLOTS[self.slot];
        slot.start.store(0, Ordering::Release);
        // SAFETY: the mapping is this value's own, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        slot.is_taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
