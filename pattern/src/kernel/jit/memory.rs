//! Executable memory: written first, then made executable, never both at once.

use std::io;

/// A mapping that holds machine code.
#[derive(Debug)]
pub(crate) struct Executable {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the mapping is never written again; any thread may run or unmap it.
unsafe impl Send for Executable {}
// SAFETY: through `&self` the mapping is only read and run.
unsafe impl Sync for Executable {}

impl Executable {
    /// Maps a copy of `code`.
    ///
    /// # Errors
    /// The system's, for instance where a policy forbids executable memory.
    pub(crate) fn new(code: &[u8]) -> io::Result<Executable> {
        let bytes = code.len().max(1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Executable { start, bytes };
        // SAFETY: the mapping is at least as long as the code, writable, and nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), start.cast(), code.len()) };
        // SAFETY: the mapping is ours; from here on it is read and run only.
        if unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(mapping)
    }

    /// The address of the code.
    pub(crate) fn entry(&self) -> *const u8 {
        self.start.cast()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody runs it any more: running borrows it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
