//! Memory that host and target share, and the target's own memory.
//!
//! One sparse memory file backs everything that generated code touches; the host maps it once, the target maps its parts
//! where `layout` says. All accesses are bounds-checked against the mapping; words that the target writes are read
//! atomically. One of the few files with `unsafe`. Leaves out: any notion of what the bytes mean.

use crate::error::Error;
use event::Record;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The shared memory file, mapped into the host.
pub(crate) struct Shared {
    fd: i32,
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping lives as long as the value, and every access is an atomic word or a copy of bytes whose
// ownership the ring protocol or the stopped state of the target hands over.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A sparse file of `len` bytes.
    pub(crate) fn new(len: usize) -> Result<Shared, Error> {
        // SAFETY: a constant name and flags.
        let fd = unsafe { libc::memfd_create(c"lightfoot".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(Error::system("cannot create shared memory (memfd_create)"));
        }
        // SAFETY: `fd` is ours.
        if unsafe { libc::ftruncate(fd, len as i64) } != 0 {
            return Err(Error::system(
                "cannot size shared memory (is there a file size limit? see 'ulimit -f')",
            ));
        }
        let base = map_aligned(fd, len);
        if base == libc::MAP_FAILED {
            return Err(Error::system("cannot map shared memory (see 'ulimit -v')"));
        }
        Ok(Shared { fd, base: base.cast(), len })
    }

    /// The file's descriptor in the host.
    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    /// Asks for one 2 MB page behind the aligned 2 MB at `offset`, whatever the system's policy for shared memory is
    /// (`MADV_COLLAPSE`, Linux 6.1); without it nothing changes but speed.
    pub(crate) fn collapse(&self, offset: usize) {
        const MADV_COLLAPSE: i32 = 25;
        let at = self.at(offset & !(HUGE_BYTES - 1), HUGE_BYTES);
        // SAFETY: advice on our own mapping; contents stay.
        unsafe { libc::madvise(at.cast(), HUGE_BYTES, MADV_COLLAPSE) };
    }

    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.len),
            "offset {offset:#x} is outside"
        );
        // SAFETY: just checked to lie inside the mapping.
        unsafe { self.base.add(offset) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert_eq!(offset % 8, 0);
        // SAFETY: inside the mapping, aligned, and only ever accessed atomically by the host.
        unsafe { &*self.at(offset, 8).cast() }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        assert_eq!(offset % 4, 0);
        // SAFETY: inside the mapping, aligned, and only ever accessed atomically by the host.
        unsafe { &*self.at(offset, 4).cast() }
    }

    pub(crate) fn read64(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    pub(crate) fn write64(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    pub(crate) fn read32(&self, offset: usize) -> u32 {
        self.half(offset).load(Ordering::Acquire)
    }

    pub(crate) fn write32(&self, offset: usize, value: u32) {
        self.half(offset).store(value, Ordering::Release);
    }

    /// Replaces a word if it is `from`.
    pub(crate) fn exchange32(&self, offset: usize, from: u32, to: u32) -> bool {
        self.half(offset).compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sleeps until somebody wakes those who wait for the word, it is no longer `value`, or time is up.
    pub(crate) fn futex_wait(&self, offset: usize, value: u32, longest: std::time::Duration) {
        let word = std::ptr::from_ref(self.half(offset));
        let time =
            libc::timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        // SAFETY: a live aligned word of the mapping and a live time; the kernel only reads them.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, std::ptr::from_ref(&time)) };
    }

    /// Wakes everybody who waits for the word, in any process.
    pub(crate) fn futex_wake(&self, offset: usize) {
        let word = std::ptr::from_ref(self.half(offset));
        // SAFETY: a live aligned word of the mapping, of which only the address counts.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Copies code or data in; the target does not use these bytes yet.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` has room for `bytes`, and a shared mapping never overlaps a Rust slice of ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// A copy of `bytes` bytes that the target does not write any more.
    pub(crate) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let from = self.at(offset, bytes);
        let mut copy = Vec::with_capacity(bytes);
        // SAFETY: in bounds, and `copy` has room for `bytes` bytes, all of which are written.
        unsafe {
            std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes);
            copy.set_len(bytes);
        }
        copy
    }

    /// [`Shared::write`] of much at once: through the file, which spares a fault for each page. What cannot be written so is copied.
    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        self.at(offset, bytes.len());
        // SAFETY: reads `bytes`, writes a file of ours.
        let put = unsafe { libc::pwrite(self.fd, bytes.as_ptr().cast(), bytes.len(), offset as i64) };
        let put = put.max(0) as usize;
        self.write(offset + put, &bytes[put..]);
    }

    /// A branch displacement, as a number to be added.
    pub(crate) fn displacement(&self, offset: usize) -> u64 {
        let bytes: [u8; 4] = self.read(offset, 4).try_into().expect("four bytes");
        i64::from(i32::from_le_bytes(bytes)) as u64
    }

    /// Replaces a branch displacement that other threads may be executing; it must not cross a 64-byte line.
    pub(crate) fn patch32(&self, offset: usize, value: i32) {
        debug_assert!(offset % 64 <= 60, "a patch at {offset:#x} would cross a line");
        let to = self.at(offset, 4);
        // SAFETY: four bytes inside the mapping; x86 makes a store inside one line atomic, aligned or not, and the
        // assembly keeps it one store.
        unsafe {
            std::arch::asm!("mov dword ptr [{to}], {value:e}", to = in(reg) to, value = in(reg) value, options(nostack, preserves_flags));
        }
    }

    /// Records that the target has handed over and will not touch until the host gives the segment back.
    pub(crate) fn records(&self, offset: usize, count: usize) -> &[Record] {
        assert_eq!(offset % 8, 0);
        let from = self.at(offset, count * std::mem::size_of::<Record>());
        // SAFETY: in bounds, aligned, plain old data; the ring protocol makes the range the host's while it is borrowed.
        unsafe { std::slice::from_raw_parts(from.cast(), count) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping and descriptor; borrows cannot outlive `self`.
        unsafe {
            libc::munmap(self.base.cast(), self.len);
            libc::close(self.fd);
        }
    }
}

/// A file's bytes, mapped: reading much of them takes no copy, and no fault for each page. For files that nobody changes in place.
pub(crate) struct FileBytes {
    base: *mut libc::c_void,
    len: usize,
}

impl FileBytes {
    /// The whole file as it is now; `None` where it is empty or cannot be mapped.
    pub(crate) fn of(file: &File) -> Option<FileBytes> {
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
        (base != libc::MAP_FAILED).then_some(FileBytes { base, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: our own mapping of `len` bytes, which lives as long as `self` and which nobody writes.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.len) }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        // SAFETY: our own mapping; borrows cannot outlive `self`.
        unsafe { libc::munmap(self.base, self.len) };
    }
}

/// A huge page.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// Maps `len` bytes of `fd` shared at a multiple of 2 MB, so that file and memory can share huge pages.
fn map_aligned(fd: i32, len: usize) -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh reservation at an address of the kernel's choice.
    let room = unsafe { libc::mmap(std::ptr::null_mut(), len + HUGE_BYTES, libc::PROT_NONE, flags, -1, 0) };
    if room == libc::MAP_FAILED {
        return room;
    }
    let skip = (room as usize).wrapping_neg() % HUGE_BYTES;
    // SAFETY: inside the reservation, which is ours and replaced here; its ends are given back.
    unsafe {
        let start = room.byte_add(skip);
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let base = libc::mmap(start, len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
        if skip > 0 {
            libc::munmap(room, skip);
        }
        let page = 4096 - 1;
        let end = (len + page) & !page;
        libc::munmap(start.byte_add(end), HUGE_BYTES - skip);
        base
    }
}

/// Reads the memory of process `pid`; returns how many bytes could be read.
pub(crate) fn read_target(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the local vector describes `into`; the kernel checks the remote one.
    let got = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    got.max(0) as usize
}

/// Writes the memory of process `pid`; returns how many bytes were written.
pub(crate) fn write_target(pid: i32, address: u64, bytes: &[u8]) -> usize {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the local vector describes `bytes`, which is only read; the kernel checks the remote one.
    let put = unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) };
    put.max(0) as usize
}
