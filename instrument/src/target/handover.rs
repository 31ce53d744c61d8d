//! Hands descriptors of the host to a stopped process, by system calls that the process executes
//! for the host.
//!
//! ```text
//!   process                               host
//!   socketpair ─▶ theirs, ours            pidfd_getfd(ours) ─▶ a copy of that socket
//!   recvmsg(theirs) ◀──────────────────── sendmsg(copy, descriptors)
//!   close both
//! ```
//!
//! **Why this way.** No path is used, so it works for a process that has given up the privileges to
//! open files of the host, that has no `/proc`, or that has another root or PID namespace. **If the
//! system refuses it** (Linux before 5.6, profiles of containers), the process opens the host's
//! `/proc/PID/fd/N`, and the host checks that the process has opened the right file. **Leaves out**
//! processes that forbid both by a filter of system calls. One of the few files with `unsafe`.

use crate::error::{Error, ErrorKind};
use crate::target::inject::Injector;
use crate::target::memory;
use crate::target::ptrace;
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Bytes of the process's memory that the transfer overwrites and then restores.
pub(crate) const SCRATCH_BYTES: usize = 192;
/// The most descriptors in one transfer.
const FDS_MAX: usize = 4;

/// Offset in these bytes of the two descriptors of the sockets.
const PAIR: usize = 0;
/// Offset in these bytes of the `struct msghdr`.
const HEADER: usize = 8;
/// Offset in these bytes of the `struct iovec`.
const VECTOR: usize = 64;
/// Offset in these bytes of the message's one byte of data.
const DATA: usize = 80;
/// Offset in these bytes of the ancillary data, which holds the descriptors.
const ANCILLARY: usize = 88;
/// Bytes of ancillary data before the first descriptor (`struct cmsghdr`).
const ANCILLARY_HEAD: usize = size_of::<libc::cmsghdr>();
const ANCILLARY_BYTES: usize = ANCILLARY_HEAD + FDS_MAX * size_of::<i32>();
const _: () = assert!(ANCILLARY + ANCILLARY_BYTES <= SCRATCH_BYTES);

impl Injector {
    /// Gives these descriptors to the process; returns their numbers there. Overwrites
    /// [`SCRATCH_BYTES`] bytes of the process at `at` and restores them.
    pub(crate) fn hand_over(&mut self, fds: &[BorrowedFd<'_>], at: u64) -> Result<Vec<u64>, Error> {
        assert!(fds.len() <= FDS_MAX);
        let mut old = [0u8; SCRATCH_BYTES];
        memory::read_target(self.tid, at, &mut old);
        let given = self.hand_over_by_sockets(fds, at).or_else(|by_sockets| {
            let opened = fds.iter().map(|fd| self.open_by_name(fd, at)).collect::<io::Result<Vec<u64>>>();
            opened.map_err(|by_name| refusal(&by_sockets, &by_name))
        });
        memory::write_target(self.tid, at, &old);
        given
    }

    /// Gives the descriptors to the process through a pair of sockets.
    fn hand_over_by_sockets(&mut self, fds: &[BorrowedFd<'_>], at: u64) -> io::Result<Vec<u64>> {
        let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
        self.checked(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind, 0, at + PAIR as u64, 0, 0])?;
        let mut pair = [0u8; 8];
        memory::read_target(self.tid, at + PAIR as u64, &mut pair);
        let [theirs, ours] = halves(&pair);
        let received = take(self.tid, ours).and_then(|socket| {
            send(&socket, fds)?;
            self.receive(theirs, fds.len(), at)
        });
        self.close(theirs.into());
        self.close(ours.into());
        received
    }

    /// Receives `count` descriptors from a socket of the process.
    fn receive(&mut self, socket: u32, count: usize, at: u64) -> io::Result<Vec<u64>> {
        let mut message = [0u8; SCRATCH_BYTES];
        let mut put =
            |offset: usize, word: u64| message[offset..offset + 8].copy_from_slice(&word.to_ne_bytes());
        // The `struct msghdr` has no name, one vector and ancillary data.
        put(HEADER + 16, at + VECTOR as u64);
        put(HEADER + 24, 1);
        put(HEADER + 32, at + ANCILLARY as u64);
        put(HEADER + 40, ANCILLARY_BYTES as u64);
        put(VECTOR, at + DATA as u64);
        put(VECTOR + 8, 1);
        if memory::write_target(self.tid, at, &message) != message.len() {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        // The host has already sent the message, so the call need not wait.
        let flags = (libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as u64;
        self.checked(libc::SYS_recvmsg, [socket.into(), at + HEADER as u64, flags, 0, 0, 0])?;
        let mut ancillary = [0u8; ANCILLARY_BYTES];
        memory::read_target(self.tid, at + ANCILLARY as u64, &mut ancillary);
        let len = u64::from_ne_bytes(ancillary[..8].try_into().expect("eight bytes")) as usize;
        let got = len.saturating_sub(ANCILLARY_HEAD) / size_of::<i32>();
        let numbers = ancillary[ANCILLARY_HEAD..].chunks_exact(4).take(got.min(FDS_MAX));
        let numbers: Vec<u64> =
            numbers.map(|number| u32::from_ne_bytes(number.try_into().expect("four bytes")).into()).collect();
        if numbers.len() == count {
            return Ok(numbers);
        }
        // The process has too few free descriptors, so the kernel has left some out.
        numbers.into_iter().for_each(|fd| self.close(fd));
        Err(io::Error::from_raw_os_error(libc::EMFILE))
    }

    /// Opens one of the host's descriptors by its name in `/proc`.
    fn open_by_name(&mut self, fd: &BorrowedFd<'_>, at: u64) -> io::Result<u64> {
        const AT_FDCWD: u64 = -100i64 as u64;
        let path = format!("/proc/{}/fd/{}\0", ptrace::own_pid(), fd.as_raw_fd());
        memory::write_target(self.tid, at, path.as_bytes());
        // SAFETY: the call takes integers only.
        let access = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) } & libc::O_ACCMODE;
        let flags = (access | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
        let opened = self.checked(libc::SYS_openat, [AT_FDCWD, at, flags, 0, 0, 0])?;
        // In another PID namespace the path may name another process's file.
        let there = fs::metadata(format!("/proc/{}/fd/{opened}", self.tid))?;
        let here = fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        if (there.dev(), there.ino()) == (here.dev(), here.ino()) {
            return Ok(opened);
        }
        self.close(opened);
        Err(io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Makes a system call; its failure is an error.
    fn checked(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let got = self.call(number, arguments);
        u64::try_from(got).map_err(|_| io::Error::from_raw_os_error(-got as i32))
    }
}

fn refusal(by_sockets: &io::Error, by_name: &io::Error) -> Error {
    let remedy = "in a container allow pidfd_getfd with --cap-add=SYS_PTRACE";
    let why = format!("through a socket: {by_sockets}; by /proc: {by_name}");
    Error::new(ErrorKind::System, format!("cannot share memory with the program ({why}); {remedy}"))
}

fn halves(pair: &[u8; 8]) -> [u32; 2] {
    [0, 4].map(|at| u32::from_ne_bytes(pair[at..at + 4].try_into().expect("four bytes")))
}

/// A copy of a descriptor of process `pid`.
fn take(pid: i32, fd: u32) -> io::Result<OwnedFd> {
    let process = owned(
        // SAFETY: the call takes integers only.
        unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) },
    )?;
    owned(
        // SAFETY: the call takes integers only.
        unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) },
    )
}

fn owned(got: i64) -> io::Result<OwnedFd> {
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(got as i32) })
}

/// Sends descriptors with a byte of data.
fn send(socket: &OwnedFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    // Words, because ancillary data is aligned to them.
    let mut ancillary = [0u64; ANCILLARY_BYTES / 8];
    let mut data = 0u8;
    let mut vector = libc::iovec { iov_base: (&raw mut data).cast(), iov_len: 1 };
    // SAFETY: the type is plain old data, and all zeroes are a valid value of it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = ANCILLARY_HEAD + size_of_val(fds);
    // SAFETY: `ancillary` is aligned and has room for the header and `FDS_MAX` descriptors, and
    // `message` points to values that live until the call returns.
    let sent = unsafe {
        let header: *mut libc::cmsghdr = ancillary.as_mut_ptr().cast();
        (*header).cmsg_len = message.msg_controllen;
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        let mut at: *mut i32 = libc::CMSG_DATA(header).cast();
        for fd in fds {
            at.write(fd.as_raw_fd());
            at = at.add(1);
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
