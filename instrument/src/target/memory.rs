//! Memory that host and target share, and the target's own memory.
//!
//! **What.** The host maps two sparse memory files, one behind the other:
//!
//! ```text
//!   host    │ first file: code, lookup table │ second file: contexts, counters, rings │
//!   host      reads and writes                 reads and writes
//!   target    reads and executes               reads and writes
//! ```
//!
//! The target maps parts of both at the addresses of its `layout`. **Why two.** A program under
//! measurement is not trusted. The host seals the first file after it has mapped it: then no
//! process can make another writable mapping, or write through a descriptor, however it opens the
//! file. So the host reads from that file only bytes that it wrote itself, and may keep them for
//! other runs. Neither file can be truncated, because that would end the host by SIGBUS. **How.**
//! All accesses are checked against the bounds of the mapping; words that the target writes are
//! read atomically. One of the few files with `unsafe`. **Leaves out** the meaning of the bytes.

use crate::error::Error;
use event::Record;
use std::arch::x86_64::__m512i;
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A flag that the `libc` crate lacks: the memory file cannot be executed as a program (Linux 6.3).
const MFD_NOEXEC_SEAL: u32 = 8;
/// Advice that makes all pages of a range present and writable with one call (Linux 5.14).
const MADV_POPULATE_WRITE: i32 = 23;
/// How far ahead of a copied record lines are fetched: about as many lines as a core has on their
/// way at a time.
const AHEAD_BYTES: i32 = 24 << 6;

/// The shared memory files, mapped into the host.
pub(crate) struct Shared {
    /// The part that only the host writes, open for reading; `None` if the target may write
    /// everything.
    code: Option<OwnedFd>,
    /// The part that the target may write.
    data: OwnedFd,
    base: *mut u8,
    len: usize,
    /// Bytes of the part that only the host writes.
    split: usize,
}

// SAFETY: the mapping lives as long as the value, and every access is an atomic word or a copy of
// bytes whose ownership the ring protocol or the stopped state of the target hands over.
unsafe impl Send for Shared {}
// SAFETY: accesses by several threads are atomic words, or copies of bytes whose ownership the ring
// protocol or the stopped state of the target hands over.
unsafe impl Sync for Shared {}

impl Shared {
    /// Shared memory of `len` bytes; the target may write all of them.
    pub(crate) fn new(len: usize) -> Result<Shared, Error> {
        Shared::with_code(0, len)
    }

    /// Shared memory of `len` bytes; the target may write those from `split` on, which is a
    /// multiple of 2 MB.
    pub(crate) fn with_code(split: usize, len: usize) -> Result<Shared, Error> {
        assert!(split <= len && split.is_multiple_of(HUGE_BYTES));
        let data = memory_file(len - split)?;
        let base = reserve(len).ok_or_else(unmapped)?;
        // From here on `drop` releases the reservation.
        let mut shared = Shared { code: None, data, base, len, split };
        shared.map(split, len - split, shared.data.as_raw_fd())?;
        seal(&shared.data, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW);
        if split > 0 {
            let code = memory_file(split)?;
            shared.map(0, split, code.as_raw_fd())?;
            // The host's own mapping stays writable. Systems before Linux 5.1 do not have this
            // seal; there the only protection is that the target gets a descriptor for reading.
            seal(&code, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_FUTURE_WRITE);
            shared.code = Some(reopened_for_reading(&code)?);
        }
        Ok(shared)
    }

    /// Maps a file's first `bytes` bytes at `offset` of the reservation.
    fn map(&self, offset: usize, bytes: usize, fd: i32) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let at = self.at(offset, bytes);
        // SAFETY: the range lies inside the reservation of `self`, in which nothing is mapped yet.
        let got = unsafe { libc::mmap(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if got == libc::MAP_FAILED {
            return Err(unmapped());
        }
        Ok(())
    }

    /// The files that are handed over to the target: the one that only the host writes, if there is
    /// one, then the other.
    pub(crate) fn files(&self) -> Vec<BorrowedFd<'_>> {
        self.code.iter().map(AsFd::as_fd).chain([self.data.as_fd()]).collect()
    }

    /// Asks the kernel to put the aligned 2 MB at `offset` onto one huge page, whatever the
    /// system's policy for shared memory is (`MADV_COLLAPSE`, Linux 6.1). If the kernel refuses,
    /// only speed changes.
    pub(crate) fn collapse(&self, offset: usize) {
        const MADV_COLLAPSE: i32 = 25;
        let at = self.at(offset & !(HUGE_BYTES - 1), HUGE_BYTES);
        // SAFETY: the range lies inside the mapping of `self`, and the advice keeps its contents.
        unsafe { libc::madvise(at.cast(), HUGE_BYTES, MADV_COLLAPSE) };
    }

    /// The address of `bytes` bytes at `offset`; panics if they do not lie inside the mapping.
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.len),
            "offset {offset:#x} is outside"
        );
        // SAFETY: the assertion above has checked that `offset` lies inside the mapping.
        unsafe { self.base.add(offset) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert_eq!(offset % 8, 0);
        // SAFETY: the word is aligned and inside the mapping, and the host accesses words that the
        // target writes only atomically.
        unsafe { &*self.at(offset, 8).cast() }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        assert_eq!(offset % 4, 0);
        // SAFETY: the half word is aligned and inside the mapping, and the host accesses words that
        // the target writes only atomically.
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

    /// Replaces a word of 32 bits by `to` if it is `from`; returns whether it was.
    pub(crate) fn exchange32(&self, offset: usize, from: u32, to: u32) -> bool {
        self.half(offset).compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Replaces a word of 32 bits; returns what it was.
    pub(crate) fn swap32(&self, offset: usize, to: u32) -> u32 {
        self.half(offset).swap(to, Ordering::SeqCst)
    }

    /// The address of a word of 32 bits in this process, for a handler of signals.
    pub(crate) fn half_at(&self, offset: usize) -> *mut AtomicU32 {
        std::ptr::from_ref(self.half(offset)).cast_mut()
    }

    /// Sleeps until a waker wakes the waiters of the word, or the word is no longer `value`.
    /// Returns whether a signal has interrupted the sleep.
    pub(crate) fn futex_sleep(&self, offset: usize, value: u32) -> bool {
        let (word, no_time) = (std::ptr::from_ref(self.half(offset)), std::ptr::null::<libc::timespec>());
        // SAFETY: the word is a live aligned word of the mapping, and the kernel only reads it.
        let ended = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, no_time) };
        ended != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    }

    /// Sleeps until a waker wakes the waiters of the word, the word is no longer `value`, or the
    /// time is up.
    pub(crate) fn futex_wait(&self, offset: usize, value: u32, longest: std::time::Duration) {
        let word = std::ptr::from_ref(self.half(offset));
        let time =
            libc::timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        // SAFETY: the word is a live aligned word of the mapping and the time is live; the kernel
        // only reads both.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, std::ptr::from_ref(&time)) };
    }

    /// Wakes all waiters of the word, in any process.
    pub(crate) fn futex_wake(&self, offset: usize) {
        let word = std::ptr::from_ref(self.half(offset));
        // SAFETY: the word is a live aligned word of the mapping; the kernel uses only its address.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Writes code or data that the target does not use yet.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` has room for `bytes`, and no Rust slice points into the shared mapping, so
        // the ranges do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// A copy of `bytes` bytes that the target no longer writes.
    pub(crate) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let from = self.at(offset, bytes);
        let mut copy = Vec::with_capacity(bytes);
        // SAFETY: `from` is readable for `bytes` bytes, `copy` has room for them, and the copy
        // initialises all of them.
        unsafe {
            std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes);
            copy.set_len(bytes);
        }
        copy
    }

    /// Writes many bytes that the target does not use yet. One call makes all their pages present,
    /// which saves a fault for each page.
    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        let start = offset & !(PAGE_BYTES - 1);
        let end = (offset + bytes.len()).next_multiple_of(PAGE_BYTES).min(self.len);
        let at = self.at(start, end - start);
        // SAFETY: the range lies inside the mapping of `self`, and the advice keeps its contents.
        unsafe { libc::madvise(at.cast(), end - start, MADV_POPULATE_WRITE) };
        self.write(offset, bytes);
    }

    /// Gives back the memory behind the code, so that it reads as zeros. No process may have it
    /// mapped but this one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn clear_data(&self) -> Result<(), Error> {
        let bytes = self.len - self.split;
        let at = self.at(self.split, bytes);
        // SAFETY: the range lies inside the mapping of `self`; all accesses to it are atomic words
        // or copies, which find zeros from now on.
        let refused = unsafe { libc::madvise(at.cast(), bytes, libc::MADV_REMOVE) } != 0;
        let why = || Error::system("the kernel refuses to clear shared memory (MADV_REMOVE)");
        if refused {
            Err(why())
        } else {
            Ok(())
        }
    }

    /// The parts of a range that may hold something but zeros: those of which the kernel has pages.
    ///
    /// The files are sparse, and the kernel makes a page of zeros where one is read that does not
    /// exist. So who reads or clears large ranges asks first.
    pub(crate) fn present(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let in_code = self.code.is_some() && range.start < self.split;
        let (file, base) = match &self.code {
            Some(code) if in_code => (code, 0),
            _ => (&self.data, self.split),
        };
        // Where the kernel cannot tell, everything counts as present.
        let seek = |offset: usize, whence: i32, unknown: usize| {
            // SAFETY: the call takes integers only, and nobody uses the descriptor's position.
            let found = unsafe { libc::lseek(file.as_raw_fd(), (offset - base) as i64, whence) };
            let nothing_behind = || std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
            match usize::try_from(found) {
                Ok(found) => (found + base).min(range.end),
                Err(_) if nothing_behind() => range.end,
                Err(_) => unknown,
            }
        };
        let (mut parts, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let start = seek(at, libc::SEEK_DATA, at);
            at = seek(start, libc::SEEK_HOLE, range.end);
            if start < at {
                parts.push(start..at);
            }
        }
        parts
    }

    /// Reads a branch displacement, extended to 64 bits.
    pub(crate) fn displacement(&self, offset: usize) -> u64 {
        let bytes: [u8; 4] = self.read(offset, 4).try_into().expect("four bytes");
        i64::from(i32::from_le_bytes(bytes)) as u64
    }

    /// Replaces a branch displacement that threads may be executing; it must not cross a line of 64
    /// bytes.
    pub(crate) fn patch32(&self, offset: usize, value: i32) {
        debug_assert!(offset % 64 <= 60, "a patch at {offset:#x} would cross a line");
        let to = self.at(offset, 4);
        // SAFETY: the four bytes lie inside the mapping. x86 makes a store within one line atomic,
        // aligned or not, and the assembly keeps it one store.
        unsafe {
            std::arch::asm!("mov dword ptr [{to}], {value:e}", to = in(reg) to, value = in(reg) value, options(nostack, preserves_flags));
        }
    }

    /// Copies records out of shared memory. The target may write there at any time, even after it
    /// has handed a segment over.
    ///
    /// The lines lie in the cache of the core that wrote them, and fetching one takes as long as
    /// dozens of records. Observers that work long prefetch the lines meanwhile
    /// ([`crate::Observer::records_before`]); for all others, copying a line also asks for the line
    /// [`AHEAD_BYTES`] behind it.
    pub(crate) fn copy_records(&self, offset: usize, into: &mut [Record]) {
        // SAFETY: the pointer and the length are those of the slice, and any bytes are valid
        // records.
        unsafe { self.copy(offset, into.as_mut_ptr().cast(), std::mem::size_of_val(into)) }
    }

    /// The records of `steps` steps, to be loaded step by step. Like [`Shared::copy_records`], each
    /// load asks for lines further on.
    pub(crate) fn record_steps(&self, offset: usize, steps: usize) -> RecordSteps<'_> {
        let from = self.at(offset, steps * RecordSteps::BYTES);
        RecordSteps { from, steps, memory: PhantomData }
    }

    /// The address of `bytes` bytes in this process: a number to prefetch from, not to read.
    pub(crate) fn address(&self, offset: usize, bytes: usize) -> usize {
        self.at(offset, bytes) as usize
    }

    /// Copies words out of shared memory, to which the target may write at any time.
    pub(crate) fn copy_words(&self, offset: usize, into: &mut [u64]) {
        // SAFETY: the pointer and the length are those of the slice, and any bytes are valid words.
        unsafe { self.copy(offset, into.as_mut_ptr().cast(), std::mem::size_of_val(into)) }
    }

    /// Copies bytes out of shared memory, line by line.
    ///
    /// # Safety
    /// `to` must be writable for `bytes` bytes, and any bytes must be valid there.
    unsafe fn copy(&self, offset: usize, to: *mut u8, bytes: usize) {
        let from = self.at(offset, bytes);
        // SAFETY: `from` is readable for `bytes` bytes inside the mapping, `to` is writable for as
        // many by this function's contract, and any bytes are valid there. Assembly makes the copy,
        // so that the compiler assumes nothing about memory that another process may be writing. A
        // prefetch behind the mapping's end has no effect.
        unsafe {
            std::arch::asm!(
                "sub rcx, 64",
                "jb 3f",
                "2:",
                "prefetcht1 [rsi + {ahead}]",
                "movups {a}, [rsi]",
                "movups {b}, [rsi + 16]",
                "movups {c}, [rsi + 32]",
                "movups {d}, [rsi + 48]",
                "movups [rdi], {a}",
                "movups [rdi + 16], {b}",
                "movups [rdi + 32], {c}",
                "movups [rdi + 48], {d}",
                "add rsi, 64",
                "add rdi, 64",
                "sub rcx, 64",
                "jae 2b",
                // What remains is less than a line.
                "3:",
                "add rcx, 64",
                "rep movsb",
                ahead = const AHEAD_BYTES,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                inout("rcx") bytes => _,
                options(nostack)
            );
        }
    }
}

/// Records in memory to which the target may write at any time, sixteen to a step.
pub(crate) struct RecordSteps<'s> {
    from: *const u8,
    steps: usize,
    memory: PhantomData<&'s Shared>,
}

impl RecordSteps<'_> {
    /// Bytes of a step.
    const BYTES: usize = 16 * size_of::<Record>();

    /// The number of steps.
    pub(crate) fn len(&self) -> usize {
        self.steps
    }

    /// Loads the records of a step, four to a register. Each byte is loaded once.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn load(&self, step: usize) -> [__m512i; 4] {
        assert!(step < self.steps, "step {step} is outside");
        let (a, b, c, d);
        // SAFETY: `record_steps` has checked that all steps lie inside the mapping, which `self`
        // borrows. Assembly loads the bytes, so that the compiler assumes nothing about memory that
        // another process may be writing. A prefetch behind the mapping's end has no effect.
        unsafe {
            std::arch::asm!(
                "prefetcht1 [{from} + {ahead}]",
                "prefetcht1 [{from} + {ahead} + 64]",
                "prefetcht1 [{from} + {ahead} + 128]",
                "prefetcht1 [{from} + {ahead} + 192]",
                "vmovdqu64 {a}, [{from}]",
                "vmovdqu64 {b}, [{from} + 64]",
                "vmovdqu64 {c}, [{from} + 128]",
                "vmovdqu64 {d}, [{from} + 192]",
                from = in(reg) self.from.add(step * Self::BYTES),
                ahead = const AHEAD_BYTES,
                a = out(zmm_reg) a,
                b = out(zmm_reg) b,
                c = out(zmm_reg) c,
                d = out(zmm_reg) d,
                options(nostack, preserves_flags, readonly)
            );
        }
        [a, b, c, d]
    }

    /// Steps of records that are in no shared memory.
    #[cfg(test)]
    pub(crate) fn of(records: &[Record]) -> RecordSteps<'_> {
        let steps = records.len() / 16;
        RecordSteps { from: records.as_ptr().cast(), steps, memory: PhantomData }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// Bytes of a huge page.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

const PAGE_BYTES: usize = 4096;

fn unmapped() -> Error {
    Error::system("cannot map shared memory (see 'ulimit -v')")
}

/// A sparse memory file of `len` bytes that can be sealed.
fn memory_file(len: usize) -> Result<OwnedFd, Error> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let create = |flags| {
        // SAFETY: the name is a constant that ends with a NUL, and the flags are an integer.
        unsafe { libc::memfd_create(c"lightfoot".as_ptr(), flags) }
    };
    let mut fd = create(flags | MFD_NOEXEC_SEAL);
    if fd < 0 {
        fd = create(flags);
    }
    if fd < 0 {
        return Err(Error::system("cannot create shared memory: the system refuses memfd_create"));
    }
    // SAFETY: the call above has just made the descriptor, and nothing else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: `file` owns `fd`, and the call takes integers only.
    if unsafe { libc::ftruncate(fd, len as i64) } != 0 {
        return Err(Error::system("cannot size shared memory (is there a file size limit? see 'ulimit -f')"));
    }
    Ok(file)
}

/// A file in memory with these bytes, which nobody can change.
pub(crate) fn constant_file(bytes: &[u8]) -> Result<File, Error> {
    let mut file = File::from(memory_file(0)?);
    file.write_all(bytes).map_err(|_| Error::system("cannot write a file in memory"))?;
    let file = OwnedFd::from(file);
    seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE);
    Ok(File::from(file))
}

/// The path under which other processes open a file of this process.
pub(crate) fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Seals a memory file against these changes for ever, except for seals that the system does not
/// have.
fn seal(file: &OwnedFd, seals: i32) {
    let add = |seals: i32| {
        // SAFETY: the call takes integers only.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals | libc::F_SEAL_SEAL) == 0 }
    };
    let _ = add(seals) || add(seals & !libc::F_SEAL_FUTURE_WRITE);
}

/// Opens a file again with a descriptor that allows neither writes nor writable mappings.
fn reopened_for_reading(file: &OwnedFd) -> Result<OwnedFd, Error> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let refused = |_| Error::system("cannot open shared memory through /proc/self/fd (is /proc mounted?)");
    File::open(path).map(OwnedFd::from).map_err(refused)
}

/// Reserves `len` bytes of address space at a multiple of 2 MB, so that huge pages of the files can
/// be mapped there.
fn reserve(len: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses a free address for the reservation.
    let room = unsafe { libc::mmap(std::ptr::null_mut(), len + HUGE_BYTES, libc::PROT_NONE, flags, -1, 0) };
    if room == libc::MAP_FAILED {
        return None;
    }
    let skip = (room as usize).wrapping_neg() % HUGE_BYTES;
    // SAFETY: both ends that are unmapped belong to the new reservation, and nothing uses them.
    unsafe {
        let start = room.byte_add(skip);
        if skip > 0 {
            libc::munmap(room, skip);
        }
        let end = len.next_multiple_of(PAGE_BYTES);
        libc::munmap(start.byte_add(end), HUGE_BYTES - skip);
        Some(start.cast())
    }
}

/// The most bytes of address space that this process may have; `None` if there is no limit.
pub(crate) fn address_space_limit() -> Option<u64> {
    // SAFETY: all zeroes are a valid `rlimit`, which the call fills.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_AS, &mut limit) == 0).then_some(limit.rlim_cur)
    };
    limit.filter(|&bytes| bytes != libc::RLIM_INFINITY)
}

/// Reads the memory of process `pid`; returns the number of bytes that could be read.
pub(crate) fn read_target(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the local vector describes `into`, and the kernel checks the remote one.
    let got = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    got.max(0) as usize
}

/// Writes the memory of process `pid`; returns the number of bytes that could be written.
pub(crate) fn write_target(pid: i32, address: u64, bytes: &[u8]) -> usize {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the local vector describes `bytes`, which the kernel only reads, and the kernel
    // checks the remote vector.
    let put = unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) };
    put.max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    /// The file of a descriptor, opened for writing by its name.
    fn opened_again(fd: BorrowedFd<'_>) -> File {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    fn mapped(file: BorrowedFd<'_>, protection: i32) -> *mut libc::c_void {
        // SAFETY: the kernel chooses a free address for the new mapping.
        unsafe {
            libc::mmap(std::ptr::null_mut(), HUGE_BYTES, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        }
    }

    #[test]
    fn what_is_not_present_reads_as_zeros_and_what_was_written_is_present() {
        let shared = Shared::with_code(8 * HUGE_BYTES, 40 * HUGE_BYTES).expect("shared memory");
        let written = [0, 3 * 4096 + 8, 8 * HUGE_BYTES - 8, 8 * HUGE_BYTES, 25 * HUGE_BYTES + 4096];
        written.iter().for_each(|&at| shared.write64(at, 7));
        for file in [0..8 * HUGE_BYTES, 8 * HUGE_BYTES..40 * HUGE_BYTES] {
            let parts = shared.present(file.clone());
            assert!(parts.iter().all(|part| file.start <= part.start && part.end <= file.end));
            assert!(parts.is_sorted_by(|one, other| one.end < other.start));
            for at in file.clone().step_by(8) {
                let present = parts.iter().any(|part| part.contains(&at));
                assert!(present || !written.contains(&at), "{at:#x} was written");
            }
            // Even where the kernel takes huge pages, most of them were not written.
            assert!(parts.iter().map(Range::len).sum::<usize>() < file.len());
        }
        let part = 3 * 4096 + 8..3 * 4096 + 24;
        assert_eq!(shared.present(part.clone()), std::slice::from_ref(&part));
    }

    #[test]
    fn only_the_host_writes_the_first_file_and_nobody_cuts_either_short() {
        let shared = Shared::with_code(HUGE_BYTES, 3 * HUGE_BYTES).unwrap();
        let files = shared.files();
        let [code, data] = files[..] else { panic!("two files") };
        for file in [code, data].map(opened_again) {
            assert!(file.set_len(4096).is_err());
            assert!(file.set_len(9 * HUGE_BYTES as u64).is_err());
        }
        let again = opened_again(code);
        assert!(again.write_at(b"planted", 0).is_err());
        let both = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(mapped(again.as_fd(), both), libc::MAP_FAILED);
        for file in [again.as_fd(), code] {
            let at = mapped(file, libc::PROT_READ | libc::PROT_EXEC);
            assert_ne!(at, libc::MAP_FAILED);
            // SAFETY: `at` is the new mapping, which nothing else uses.
            let allowed = unsafe { libc::mprotect(at, HUGE_BYTES, both) };
            assert_eq!(allowed, -1);
        }
        // The host can write words, pieces and huge pages, and the file then holds what it wrote.
        shared.write64(8, 5);
        shared.fill(4000, &[7; 9000]);
        shared.collapse(0);
        shared.write(HUGE_BYTES - 2, &[1, 2]);
        let mut seen = [0u8; 2];
        again.read_exact_at(&mut seen, HUGE_BYTES as u64 - 2).unwrap();
        assert_eq!((seen, shared.read64(8), shared.read(12_999, 2)), ([1, 2], 5, vec![7, 0]));
        // The second file lies behind the first one, and both sides can write it.
        opened_again(data).write_at(&[9], 0).unwrap();
        assert_eq!(shared.read(HUGE_BYTES, 1), [9]);
        shared.write(3 * HUGE_BYTES - 1, &[4]);
        opened_again(data).read_exact_at(&mut seen[..1], 2 * HUGE_BYTES as u64 - 1).unwrap();
        assert_eq!(seen[0], 4);
    }
}
