//! The memory of an index: lines on the heap, or an anonymous mapping for which huge pages are
//! requested.
//!
//! In large arrays most of a query's time is address translation unless pages are large. So arrays
//! of at least 1 MiB are mapped on a 2 MiB boundary and `madvise`d; `explain` reads from
//! `/proc/self/smaps` whether the system granted huge pages. A [`Memory`] is immutable once shared
//! and cheap to clone; a range of its lines can be used as a memory of its own.
//!
//! This is one of the few files with `unsafe`, for the mappings and the slices made from them.

#[cfg(feature = "std")]
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::line::Line;

/// From this size on memory is mapped and huge pages are requested.
#[cfg(all(feature = "std", target_os = "linux"))]
const HUGE_FROM_BYTES: usize = 1 << 20;

/// The owner of the lines.
#[derive(Debug)]
enum Owner {
    Heap(Vec<Line>),
    Static(&'static [Line]),
    #[cfg(all(feature = "std", unix))]
    Mapped(mapped::Mapping),
}

impl Owner {
    #[inline(always)]
    fn lines(&self) -> &[Line] {
        match self {
            Owner::Heap(lines) => lines,
            Owner::Static(lines) => lines,
            #[cfg(all(feature = "std", unix))]
            Owner::Mapped(mapping) => mapping.lines(),
        }
    }
}

/// Lines under construction: exclusively owned and writable.
#[derive(Debug)]
pub(crate) struct Draft {
    owner: Owner,
    len: usize,
}

impl Draft {
    /// `len` zeroed lines, on huge pages where the system has them.
    pub(crate) fn new(len: usize) -> Draft {
        #[cfg(all(feature = "std", target_os = "linux"))]
        if len * crate::line::LINE_BYTES >= HUGE_FROM_BYTES {
            if let Some(mapping) = mapped::Mapping::anonymous(len) {
                return Draft { owner: Owner::Mapped(mapping), len };
            }
        }
        Draft { owner: Owner::Heap(zeroed(len)), len }
    }

    /// The lines, to be written.
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        match &mut self.owner {
            Owner::Heap(lines) => &mut lines[..self.len],
            Owner::Static(_) => unreachable!("a draft is never made of static lines"),
            #[cfg(all(feature = "std", unix))]
            Owner::Mapped(mapping) => &mut mapping.lines_mut()[..self.len],
        }
    }

    /// Finishes the first `len` lines. The rest stays allocated: freeing it would copy the lines,
    /// and untouched memory takes no pages.
    pub(crate) fn finish(self, len: usize) -> Memory {
        Memory::of(Arc::new(self.owner), 0..len)
    }
}

/// `len` zeroed lines on the heap, cleared by the allocator: `vec!` would do it with the build's
/// narrowest vectors.
fn zeroed(len: usize) -> Vec<Line> {
    let layout = core::alloc::Layout::array::<Line>(len).expect("an index fits the address space");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout has a size.
    let start = unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<Line>();
    if start.is_null() {
        alloc::alloc::handle_alloc_error(layout);
    }
    // SAFETY: the global allocator gave memory for exactly `len` lines, and zeroed bytes are lines.
    unsafe { Vec::from_raw_parts(start, len, len) }
}

/// Finished lines, shared and immutable.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The lines; `owner` keeps them alive and in place.
    start: *const Line,
    len: usize,
    owner: Arc<Owner>,
}

// SAFETY: `start` points into `owner`, which is never written again and may be read from any
// thread.
unsafe impl Send for Memory {}
// SAFETY: what `start` points at is never written again, so threads may share it.
unsafe impl Sync for Memory {}

impl Memory {
    fn of(owner: Arc<Owner>, range: Range<usize>) -> Memory {
        let lines = &owner.lines()[range];
        let (start, len) = (lines.as_ptr(), lines.len());
        Memory { start, len, owner }
    }

    /// No lines.
    pub(crate) fn empty() -> Memory {
        Draft::new(0).finish(0)
    }

    /// The lines of a vector.
    pub(crate) fn from_vec(lines: Vec<Line>) -> Memory {
        let len = lines.len();
        Memory::of(Arc::new(Owner::Heap(lines)), 0..len)
    }

    /// Lines that live as long as the program, when `bytes` are aligned; bytes behind the last
    /// whole line are left out.
    pub(crate) fn from_static(bytes: &'static [u8]) -> Option<Memory> {
        let whole = bytes.len() / crate::line::LINE_BYTES * crate::line::LINE_BYTES;
        let lines = crate::line::lines_of(&bytes[..whole])?;
        Some(Memory::of(Arc::new(Owner::Static(lines)), 0..lines.len()))
    }

    /// The lines.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[Line] {
        // SAFETY: `of` took both from a slice of `owner`, whose lines neither move nor change while
        // it lives, and `self` keeps it alive.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }

    /// A part of these lines.
    ///
    /// # Panics
    /// When the range is outside.
    pub(crate) fn part(&self, range: Range<usize>) -> Memory {
        let lines = &self.lines()[range];
        Memory { start: lines.as_ptr(), len: lines.len(), owner: Arc::clone(&self.owner) }
    }

    /// What kind of pages the lines stand on, in words.
    pub(crate) fn pages(&self) -> String {
        match &*self.owner {
            Owner::Heap(_) => String::from("heap"),
            Owner::Static(_) => String::from("static memory of the program"),
            #[cfg(all(feature = "std", unix))]
            Owner::Mapped(_) => match mapped::huge_bytes(self.start as usize) {
                Some(0) => String::from("mapped, huge pages asked for and not granted"),
                Some(bytes) => format!("mapped, {} MiB of it on huge pages", bytes >> 20),
                None => {
                    String::from("mapped, huge pages asked for (the system does not say whether granted)")
                }
            },
        }
    }
}

/// Reads the first `len` lines of a file into memory of this process: those in `read`, and the
/// others.
#[cfg(feature = "std")]
pub(crate) fn read_file(mut file: &std::fs::File, read: &[Line], len: usize) -> std::io::Result<Memory> {
    let mut draft = Draft::new(len);
    let (first, others) = draft.lines_mut().split_at_mut(read.len());
    first.copy_from_slice(read);
    std::io::Read::read_exact(&mut file, crate::line::lanes_mut(others))?;
    Ok(draft.finish(len))
}

#[cfg(all(feature = "std", unix))]
mod mapped {
    //! The system calls.

    use crate::line::{Line, LINE_BYTES};

    /// Bytes of a huge page.
    const HUGE_BYTES: usize = 2 << 20;

    /// An anonymous mapping of whole lines.
    #[derive(Debug)]
    pub(super) struct Mapping {
        base: *mut libc::c_void,
        mapped_bytes: usize,
        start: *mut Line,
        len: usize,
    }

    // SAFETY: a mapping is memory that belongs to the process, not to a thread.
    unsafe impl Send for Mapping {}
    // SAFETY: shared access only reads.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        /// `len` zeroed lines on a 2 MiB boundary, huge pages asked for; `None` when the system has
        /// no memory.
        pub(super) fn anonymous(len: usize) -> Option<Mapping> {
            let bytes = len.checked_mul(LINE_BYTES)?;
            // A huge page is cleared whole when it is first touched. A last one that would stay
            // mostly empty is not worth that: the mapping then ends before it does, and the system
            // takes small pages for the rest.
            let rest = bytes % HUGE_BYTES;
            let bytes = if rest > HUGE_BYTES / 4 { bytes - rest + HUGE_BYTES } else { bytes };
            let mapped_bytes = bytes.checked_add(HUGE_BYTES)?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a fresh private mapping at an address of the kernel's choice touches no
            // memory of ours.
            let base = unsafe { libc::mmap(core::ptr::null_mut(), mapped_bytes, protection, flags, -1, 0) };
            if base == libc::MAP_FAILED {
                return None;
            }
            let skip = (base as usize).next_multiple_of(HUGE_BYTES) - base as usize;
            let start = base.wrapping_byte_add(skip);
            #[cfg(target_os = "linux")]
            // SAFETY: the range lies inside the mapping that was just made; the call is advice and
            // changes no content.
            unsafe {
                libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            }
            Some(Mapping { base, mapped_bytes, start: start.cast(), len })
        }

        #[inline(always)]
        pub(super) fn lines(&self) -> &[Line] {
            // SAFETY: `start..start+len` lies in the mapping, which is this process's alone, is
            // readable and page aligned, and any bytes are lines.
            unsafe { core::slice::from_raw_parts(self.start, self.len) }
        }

        pub(super) fn lines_mut(&mut self) -> &mut [Line] {
            // SAFETY: `start..start+len` lies in the mapping, which is writable and exclusively
            // borrowed, and any bytes are lines.
            unsafe { core::slice::from_raw_parts_mut(self.start, self.len) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: exactly the range that was mapped; nothing borrows it any more.
            unsafe {
                libc::munmap(self.base, self.mapped_bytes);
            }
        }
    }

    /// Bytes on huge pages of the mapping that contains `address`, when the system tells.
    pub(super) fn huge_bytes(address: usize) -> Option<usize> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let mut inside = false;
        for line in smaps.lines() {
            if let Some((start, end)) = line.split(' ').next().and_then(|range| range.split_once('-')) {
                if let (Ok(start), Ok(end)) =
                    (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
                {
                    inside = (start..end).contains(&address);
                }
            } else if let (true, Some(rest)) = (inside, line.strip_prefix("AnonHugePages:")) {
                return rest.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kib| kib << 10);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_become_shared_memory() {
        for len in [0, 1, 100, 40_000] {
            let mut draft = Draft::new(len + 3);
            draft.lines_mut().fill(Line::PADDING);
            let memory = draft.finish(len);
            assert_eq!(memory.lines().len(), len);
            assert!(memory.lines().iter().all(|line| *line == Line::PADDING));
            let part = memory.part(len / 2..len);
            drop(memory);
            assert_eq!(part.lines().len(), len - len / 2);
            assert!(!part.pages().is_empty());
        }
    }
}
