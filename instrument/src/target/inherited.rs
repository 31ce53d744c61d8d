//! The state that this process inherited, noted before any runtime changes it, so that a program
//! inherits exactly the same.
//!
//! **The problem.** A program started under measurement must inherit what it would inherit from its
//! caller. Three things change between the start of this process and its `fork`: Rust's runtime
//! ignores SIGPIPE and opens `/dev/null` for descriptors 0 to 2 that are closed, and the C library
//! takes signals 32 and 33 for itself when it makes a thread. An ignored signal, a blocked signal
//! and an open descriptor all survive `exec`.
//!
//! **The idea.** A constructor runs before `main` and notes the three states; between `fork` and
//! `exec` the child restores them. A library cannot stop the runtime from changing them. The child
//! restores the noted states and not fixed ones, because a caller may have ignored SIGPIPE on
//! purpose. The program inherits later changes by the user of this library as they are. **Leaves
//! out** handlers, which no `exec` keeps. One of the few files with `unsafe`.

use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals that were ignored at the start, by bit.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Signals that were blocked at the start, by bit.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Standard descriptors that were closed at the start, by bit.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// The signals that the C library uses for its threads.
const OF_THREADS: [i32; 2] = [32, 33];
/// The signals whose disposition Rust's runtime or the C library changes.
const CHANGED: [i32; 3] = [libc::SIGPIPE, OF_THREADS[0], OF_THREADS[1]];
const STANDARD_DESCRIPTORS: i32 = 3;
/// Device number of `/dev/null`.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// The kernel's `struct sigaction`. The C library's `sigaction` refuses signals 32 and 33, so this
/// file makes the system call itself.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

// SAFETY: the section holds addresses of functions that the C library calls once before `main`, on
// the only thread; `note` has the signature of such a function and needs nothing that a runtime
// sets up.
#[used]
#[link_section = ".init_array"]
static NOTE: extern "C" fn() = note;

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

extern "C" fn note() {
    let is_ignored = |signal: &i32| action(*signal).handler == libc::SIG_IGN;
    let ignored = CHANGED.into_iter().filter(is_ignored).fold(0, |all, signal| all | bit(signal));
    // SAFETY: the call takes integers only and changes nothing.
    let is_closed = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    let closed = (0..STANDARD_DESCRIPTORS).filter(is_closed).fold(0, |all, fd| all | 1 << fd);
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(mask(), Ordering::Relaxed);
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Restores the inherited state in a child between `fork` and `exec`, so that the next program
/// inherits it. Makes system calls only, and allocates nothing.
pub(crate) fn hand_down() {
    let ignored = IGNORED.load(Ordering::Relaxed);
    for signal in CHANGED {
        let handler = if ignored & bit(signal) != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
        set_action(signal, &KernelAction { handler, ..KernelAction::default() });
    }
    let of_threads = OF_THREADS.into_iter().fold(0, |all, signal| all | bit(signal));
    set_mask(mask() & !of_threads | BLOCKED.load(Ordering::Relaxed) & of_threads);
    let closed = CLOSED.load(Ordering::Relaxed);
    for fd in (0..STANDARD_DESCRIPTORS).filter(|fd| closed >> fd & 1 != 0 && is_null_device(*fd)) {
        // SAFETY: the runtime opened this descriptor in place of a closed one, and the program is
        // about to be executed.
        unsafe { libc::close(fd) };
    }
}

/// The action of this process for a signal.
fn action(signal: i32) -> KernelAction {
    let mut action = KernelAction::default();
    let old = std::ptr::from_mut(&mut action);
    // SAFETY: `action` is live and has the kernel's layout; the call only reads the disposition.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, 0usize, old, size_of::<u64>()) };
    action
}

fn set_action(signal: i32, action: &KernelAction) {
    let new = std::ptr::from_ref(action);
    // SAFETY: `action` is live, has the kernel's layout, and names no handler.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, 0usize, size_of::<u64>()) };
}

/// The signals that the calling thread blocks.
fn mask() -> u64 {
    let mut mask = 0u64;
    let old = std::ptr::from_mut(&mut mask);
    // SAFETY: `mask` is live and has the passed size; the call only reads the thread's mask.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, 0usize, old, size_of::<u64>()) };
    mask
}

fn set_mask(mask: u64) {
    let new = std::ptr::from_ref(&mask);
    // SAFETY: `mask` is live and has the passed size.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, 0usize, size_of::<u64>()) };
}

fn is_null_device(fd: i32) -> bool {
    // SAFETY: all zeroes are a valid `stat`, which the call fills.
    let about = unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &mut about) != 0 {
            return false;
        }
        about
    };
    about.st_mode & libc::S_IFMT == libc::S_IFCHR
        && (libc::major(about.st_rdev), libc::minor(about.st_rdev)) == NULL_DEVICE
}
