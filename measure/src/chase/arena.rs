//! Memory of a chosen page size, in which chases run.
//!
//! Caches are measured on large pages, so that hardly a look-up misses a TLB and lines of the arena
//! lie in a physically indexed cache as evenly as their addresses say. TLBs are measured on base
//! pages. The kernel is asked for either by `madvise`; whether it gave large ones is read from
//! `/proc/self/smaps`, because it may have had none.

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

/// The size that transparent large pages have on x86-64, and on Arm with base pages of 4 KiB.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages an arena asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Base pages, never large ones.
    Base,
    /// Large pages, where the kernel has some.
    Large,
}

/// A private mapping of zeros, aligned to a large page.
#[derive(Debug)]
pub(super) struct Arena {
    mapping: NonNull<c_void>,
    mapped_bytes: usize,
    start: NonNull<u32>,
    bytes: usize,
}

impl Arena {
    /// Maps at least `bytes`, in whole large pages.
    pub(super) fn new(bytes: usize, pages: Pages) -> io::Result<Arena> {
        let bytes = bytes.next_multiple_of(LARGE_PAGE_BYTES);
        // One large page more, so that an aligned part of `bytes` lies inside.
        let mapped_bytes = bytes + LARGE_PAGE_BYTES;
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice changes nothing that exists.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, flags)? };
        let mapping = NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory)?;
        let skipped_bytes = mapping.as_ptr().cast::<u8>().align_offset(LARGE_PAGE_BYTES);
        // SAFETY: less than a large page is skipped, and the mapping is longer than that.
        let start = unsafe { mapping.byte_add(skipped_bytes) }.cast();
        let arena = Arena { mapping, mapped_bytes, start, bytes };
        let advice = match pages {
            Pages::Base => Advice::LinuxNoHugepage,
            Pages::Large => Advice::LinuxHugepage,
        };
        // Kernels without transparent large pages refuse the advice, and give base pages.
        // SAFETY: the advice changes the size of pages of our own mapping, never their contents.
        let _ = unsafe { madvise(mapping.as_ptr(), mapped_bytes, advice) };
        Ok(arena)
    }

    /// The memory as words.
    pub(super) fn words(&mut self) -> &mut [u32] {
        // SAFETY: the words are mapped, aligned and zero or written by us for as long as this value
        // lives, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes / size_of::<u32>()) }
    }

    /// How many of its bytes lie on large pages; `None` where the kernel does not say.
    pub(super) fn large_bytes(&self) -> Option<u64> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        Some(large_bytes(&maps, self.start.as_ptr().addr() as u64))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no borrow outlives it.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.mapped_bytes) };
    }
}

/// The bytes on large pages of the mapping that `address` lies in, from the text of `smaps`.
fn large_bytes(maps: &str, address: u64) -> u64 {
    let mut within = false;
    for line in maps.lines() {
        let Some((word, rest)) = line.split_once(' ') else { continue };
        if word == "AnonHugePages:" && within {
            let kilobytes: u64 = rest.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
            return kilobytes << 10;
        }
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let range = word.split_once('-').and_then(|(from, to)| Some((hexadecimal(from)?, hexadecimal(to)?)));
        if let Some((from, to)) = range {
            within = (from..to).contains(&address);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_zero_aligned_and_its_own() {
        for pages in [Pages::Base, Pages::Large] {
            let mut arena = Arena::new(3 << 20, pages).unwrap();
            let words = arena.words();
            assert_eq!((words.len(), words.as_ptr().addr() % LARGE_PAGE_BYTES), (1 << 20, 0));
            words[0] = 1;
            *words.last_mut().unwrap() = 7;
            assert_eq!(words.iter().map(|&word| u64::from(word)).sum::<u64>(), 8);
        }
        let mut base = Arena::new(4 << 20, Pages::Base).unwrap();
        base.words().fill(1);
        assert_eq!(base.large_bytes().unwrap_or(0), 0, "large pages were refused");
    }

    #[test]
    fn large_pages_are_those_of_the_mapping() {
        let maps = "7f00-7f80 rw-p 0 00:00 0\nSize: 4 kB\nAnonHugePages:      2048 kB\n\
                    7f80-8000 rw-p 0 00:00 0 [heap]\nAnonHugePages:   0 kB\nVmFlags: rd wr\n";
        assert_eq!(large_bytes(maps, 0x7f10), 2 << 20);
        assert_eq!(large_bytes(maps, 0x7f80), 0);
        assert_eq!(large_bytes(maps, 0x9000), 0);
    }
}
