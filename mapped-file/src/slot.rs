//! What the handler knows about mappings.

use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The most files that are mapped at once; further ones are refused.
const MOST_FILES: usize = 16;

/// The page of Linux on x86-64. Where pages are larger, the system refuses most ranges, so that
/// [`load`](super::MappedFile::load) fails and files are read.
pub(super) const PAGE_BYTES: usize = 4096;

/// What the handler knows about a mapping.
pub(super) struct Slot {
    pub(super) is_taken: AtomicBool,
    /// The first address; 0 if there is no mapping.
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
    pub(super) has_shrunk: AtomicBool,
}

pub(super) static SLOTS: [Slot; MOST_FILES] = [const {
    Slot {
        is_taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        has_shrunk: AtomicBool::new(false),
    }
}; MOST_FILES];
