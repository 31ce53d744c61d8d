//! Files mapped read-only.
//!
//! A map is read-only and shared: a private writable one would copy every page that is populated. Whoever goes through one piece after the other
//! has each [`populate`]d: an exception for every 64 KB, which the system maps around one, costs a tenth of a scan. Left out: whatever cannot
//! be mapped (pipes, devices, most of `/proc`), which callers read instead.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A file's content as a slice of memory.
///
/// Another process that shortens the file while it is read ends this one with a signal, as in every program that maps; bytes that it
/// changes are seen or not. Nothing in this crate depends on the content staying the same.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    length: usize,
}

impl Map {
    /// Maps a regular file that is not empty; none where that is impossible.
    pub fn new(file: &File) -> Option<Map> {
        let about = file.metadata().ok()?;
        let length = usize::try_from(about.len()).ok()?;
        if !about.is_file() || length == 0 {
            return None;
        }
        // SAFETY: a new read-only mapping of a descriptor that `file` keeps open; the kernel chooses a free address.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the range is the mapping just made; the advice changes speed only.
        unsafe { libc::madvise(start, length, libc::MADV_SEQUENTIAL) };
        Some(Map { start: NonNull::new(start.cast())?, length })
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is `length` readable bytes and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `start` and `length` are those of a mapping that nobody refers to any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Maps the pages of a part of a map at once; for other memory, or on a system before Linux 5.14, a call for nothing.
pub fn populate(part: &[u8]) {
    const PAGE_BYTES: usize = 4096;
    let start = part.as_ptr().map_addr(|address| address & !(PAGE_BYTES - 1));
    let length = part.as_ptr().addr() - start.addr() + part.len();
    // SAFETY: the range begins with the page of the first byte and ends with the slice, all of it memory that may be read; the advice changes speed only.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::madvise(start.cast_mut().cast(), length, libc::MADV_POPULATE_READ);
    }
}

// SAFETY: the memory is read-only here, and unmapping is not bound to a thread.
unsafe impl Send for Map {}
// SAFETY: as above; shared reads need no order.
unsafe impl Sync for Map {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mapped_and_an_empty_one_is_not() {
        let path = std::env::current_exe().unwrap();
        let map = Map::new(&File::open(&path).unwrap()).unwrap();
        assert_eq!(&map[..4], b"\x7fELF");
        assert_eq!(map.len() as u64, path.metadata().unwrap().len());
        for part in [0..map.len(), 1..2, 5000..map.len() - 1, 7..7] {
            populate(&map[part]);
        }
        assert!(Map::new(&File::open("/dev/null").unwrap()).is_none());
        assert!(Map::new(&File::open("/").unwrap()).is_none());
    }
}
