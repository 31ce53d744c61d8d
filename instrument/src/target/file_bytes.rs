//! The bytes of a file, mapped. One of the few files with `unsafe`. **Leaves out** files that
//! others may change in place.

use std::fs::File;
use std::os::fd::AsRawFd;

/// The mapped bytes of a file that is never changed in place. Reading them needs no copy, and no
/// fault for each page.
pub(crate) struct FileBytes {
    base: *mut libc::c_void,
    len: usize,
}

impl FileBytes {
    /// Maps the whole file; `None` if it is empty or cannot be mapped.
    pub(crate) fn of(file: &File) -> Option<FileBytes> {
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        let (anywhere, read, descriptor) = (std::ptr::null_mut(), libc::PROT_READ, file.as_raw_fd());
        // SAFETY: the kernel chooses a free address for the new mapping.
        let base = unsafe { libc::mmap(anywhere, len, read, flags, descriptor, 0) };
        (base != libc::MAP_FAILED).then_some(FileBytes { base, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `len` bytes, lives as long as `self`, and nothing writes it.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.len) }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.base, self.len) };
    }
}
