//! The ring buffer into which the kernel writes an event's records.
//!
//! It has a page with the positions of writing and reading, and a power of two of pages that are
//! written in turn. While the ring is full the kernel drops records; running totals survive that.
//! **Leaves out** overwriting rings, and the counter in the first page. Source: perf_event_open(2),
//! "MMAP layout".

use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::fs::File;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages of records.
const PAGES: usize = 32;
/// Offset in bytes of `data_head` in `struct perf_event_mmap_page`; `data_tail` follows.
const HEAD_OFFSET: usize = 1024;
/// The first word of a record: 32 bits of kind, 16 of flags, 16 of length.
pub(super) const RECORD_HEAD_BYTES: usize = 8;

/// One event's records.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    page_bytes: usize,
    /// The position up to which records were read.
    tail: u64,
}

// SAFETY: the mapping belongs to this value alone and outlives every use; a reader on another
// thread orders its reads by `data_head`.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event`.
    pub(super) fn new(event: &File) -> std::io::Result<Ring> {
        let page_bytes = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let length = (PAGES + 1) * page_bytes;
        // SAFETY: a new mapping at an address of the kernel's choice changes nothing that exists.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, event, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Ring { base, page_bytes, tail: 0 })
    }

    /// One of the two words that hold the positions of the kernel and of the reader.
    fn position(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped and holds both words, aligned; the kernel and we access
        // them as whole words, for as long as this value lives.
        unsafe { &*self.base.as_ptr().add(HEAD_OFFSET + 8 * index).cast::<AtomicU64>() }
    }

    /// Calls `take` with each record, its head included, and returns their room to the kernel. A
    /// program that has inherited the event can map the same pages and write to them, so positions
    /// are our own or checked against the ring's size.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.position(0).load(Ordering::Acquire);
        let mut tail = self.tail;
        let mut record = Vec::new();
        if head.wrapping_sub(tail) > (PAGES * self.page_bytes) as u64 {
            tail = head;
        }
        while tail != head {
            self.copy(tail, RECORD_HEAD_BYTES, &mut record);
            let bytes = usize::from(u16::from_ne_bytes([record[6], record[7]]));
            if bytes < RECORD_HEAD_BYTES || bytes as u64 > head.wrapping_sub(tail) {
                // The kernel does not write such a record, so the records behind it cannot be
                // found.
                tail = head;
                break;
            }
            self.copy(tail, bytes, &mut record);
            // The second copy may differ from the first, so the checked length is used.
            record[6..8].copy_from_slice(&(bytes as u16).to_ne_bytes());
            take(&record);
            tail = tail.wrapping_add(bytes as u64);
        }
        self.tail = tail;
        self.position(1).store(tail, Ordering::Release);
    }

    /// Copies `bytes` bytes of the ring from `position` on, which may wrap around its end.
    fn copy(&self, position: u64, bytes: usize, record: &mut Vec<u8>) {
        let size = PAGES * self.page_bytes;
        let start = position as usize % size;
        let first = bytes.min(size - start);
        record.clear();
        record.resize(bytes, 0);
        // SAFETY: both pieces lie in the mapped pages behind the first and in `record`, which has
        // `bytes` bytes; no reference to the mapping exists.
        unsafe {
            let data = self.base.as_ptr().add(self.page_bytes);
            let into = record.as_mut_ptr();
            std::ptr::copy_nonoverlapping(data.add(start), into, first);
            std::ptr::copy_nonoverlapping(data, into.add(first), bytes - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and nothing refers to it any
        // more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), (PAGES + 1) * self.page_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
