//! The bell of a run: one word on which the host sleeps, and that everything rings for which the
//! host must wake.
//!
//! **The problem.** Threads post requests in shared memory, and the kernel reports ptrace's stops
//! by `waitpid`. A thread can sleep on a word or in `waitpid`, but not in both.
//!
//! **The idea.** The kernel sends SIGCHLD with each stop. Its handler rings the bell too:
//!
//! ```text
//!   a thread posts ────────────────────────▶ bell = 1, wake ─┐
//!   a stop ──▶ SIGCHLD ──▶ handler: child = 1, bell = 1, wake ┴▶ host: bell = 0, then looks at
//!                                                                 requests, and at stops if child
//! ```
//!
//! The host clears the bell before it looks, and the kernel lets it sleep only while the bell is 0
//! (futex(2)), so no ring is lost. Behind the bell's word there are *places*, one for some threads
//! each. A thread that posts writes its place before the bell, so the host need not look at all
//! threads: a browser has some hundred. The host clears a place before it looks at the threads that
//! have it. Each host of a process has a bell. The handler rings all of
//! them, because the kernel may run it on any thread. One of the few files with `unsafe`; the
//! handler uses atomics and makes one system call for each bell. **Leaves out** programs that use
//! more hosts at a time than there are slots: the rest of the hosts wait by `waitpid`.

use super::memory::Shared;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The bells of one host, as the handler finds them.
struct Slot {
    /// The bell's word; null if the slot is free.
    word: AtomicPtr<AtomicU32>,
    /// Whether a child may have stopped since the host looked last.
    child: AtomicBool,
}

/// The number of places beside a bell.
const PLACES: usize = 256;
/// Where the places begin in the bell's memory: not in the line of the bell's word.
const PLACES_START: usize = 64;
const _: () = assert!(PLACES_START + 4 * PLACES <= super::layout::BELL_BYTES as usize);

/// The number of the place of a thread that has this context of this image.
fn place(image: u32, context: usize) -> usize {
    // Images have few threads or many, and either fills the places evenly.
    (image as usize).wrapping_mul(41).wrapping_add(context) % PLACES
}

/// Where the place of a thread lies in the bell's memory.
pub(crate) fn place_offset(image: u32, context: usize) -> usize {
    PLACES_START + 4 * place(image, context)
}

/// The places that threads have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rung([u64; PLACES / 64]);

impl Rung {
    /// Whether the place of this thread, and perhaps of others, was written.
    pub(crate) fn has(&self, image: u32, context: usize) -> bool {
        let place = place(image, context);
        self.0[place / 64] >> (place % 64) & 1 != 0
    }
}

/// The most hosts of one process that have bells.
const SLOTS: usize = 16;
static BELLS: [Slot; SLOTS] =
    [const { Slot { word: AtomicPtr::new(std::ptr::null_mut()), child: AtomicBool::new(false) } }; SLOTS];
/// How many threads are in the handler.
static RINGING: AtomicUsize = AtomicUsize::new(0);
/// How many bells there are, and the action of SIGCHLD before the first one.
static HANDLER: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

extern "C" fn child_changed(_signal: i32) {
    // A word that is found here stays mapped until the handler has ended.
    RINGING.fetch_add(1, Ordering::SeqCst);
    for slot in &BELLS {
        let word = slot.word.load(Ordering::SeqCst);
        if word.is_null() {
            continue;
        }
        slot.child.store(true, Ordering::SeqCst);
        // SAFETY: the word is mapped as long as its slot holds it and as this handler runs; the
        // second pointer leads to this thread's error number, which the interrupted code may read.
        unsafe {
            let error = *libc::__errno_location();
            (*word).store(1, Ordering::SeqCst);
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1);
            *libc::__errno_location() = error;
        }
    }
    RINGING.fetch_sub(1, Ordering::SeqCst);
}

/// The bell of the host that runs on the calling thread.
pub(crate) struct Bell {
    memory: Arc<Shared>,
    slot: usize,
    /// Whether the thread blocked SIGCHLD before.
    blocked: bool,
}

impl Bell {
    /// A bell for the calling thread; `None` if there is no room for another one.
    pub(crate) fn new() -> Option<Bell> {
        let memory = Arc::new(Shared::new(super::layout::BELL_BYTES as usize).ok()?);
        let word = memory.half_at(0);
        let is_taken = |slot: &Slot| {
            slot.word.compare_exchange(std::ptr::null_mut(), word, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let slot = BELLS.iter().position(is_taken)?;
        // Children may have stopped before.
        BELLS[slot].child.store(true, Ordering::SeqCst);
        handle();
        Some(Bell { memory, slot, blocked: set_blocked(false) })
    }

    /// The memory in which the bell lies, for the processes of the run.
    pub(crate) fn memory(&self) -> Arc<Shared> {
        self.memory.clone()
    }

    /// Whether a child may have stopped since this was last asked.
    pub(crate) fn takes_child(&self) -> bool {
        BELLS[self.slot].child.swap(false, Ordering::SeqCst)
    }

    /// Notes that another child may have stopped.
    pub(crate) fn note_child(&self) {
        BELLS[self.slot].child.store(true, Ordering::SeqCst);
    }

    /// Whether somebody has rung since this was last asked.
    pub(crate) fn takes_ring(&self) -> bool {
        self.memory.swap32(0, 0) != 0
    }

    /// The places that were written since this was last asked.
    pub(crate) fn takes_places(&self) -> Rung {
        let mut rung = Rung::default();
        for pair in (0..PLACES).step_by(2) {
            // Two places at a time: nearly all are 0.
            if self.memory.read64(PLACES_START + 4 * pair) == 0 {
                continue;
            }
            for place in [pair, pair + 1] {
                let written = self.memory.swap32(PLACES_START + 4 * place, 0) != 0;
                rung.0[place / 64] |= u64::from(written) << (place % 64);
            }
        }
        rung
    }

    /// Sleeps until somebody rings, or has rung since [`Bell::takes_ring`]. Returns whether another
    /// signal has interrupted the sleep.
    pub(crate) fn sleep(&self) -> bool {
        self.memory.futex_sleep(0, 0)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        BELLS[self.slot].word.store(std::ptr::null_mut(), Ordering::SeqCst);
        // A handler on another thread may still hold the word.
        while RINGING.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
        if self.blocked {
            set_blocked(true);
        }
        let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
        handler.0 -= 1;
        let former = if handler.0 == 0 { handler.1.take() } else { None };
        if let Some(former) = former {
            // SAFETY: the action is the one that `handle` has read.
            unsafe { libc::sigaction(libc::SIGCHLD, &raw const former, std::ptr::null_mut()) };
        }
    }
}

/// Handles SIGCHLD, if this is the first bell.
fn handle() {
    let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
    handler.0 += 1;
    if handler.0 > 1 {
        return;
    }
    // SAFETY: all zeroes are a valid action, the handler is async-signal-safe, and the pointers
    // lead to live values.
    handler.1 = Some(unsafe {
        let (mut action, mut former): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
        action.sa_sigaction = child_changed as *const () as usize;
        // Calls of other threads go on.
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCHLD, &raw const action, &raw mut former);
        former
    });
}

/// Blocks SIGCHLD in this thread or not; returns whether it was blocked.
fn set_blocked(blocks: bool) -> bool {
    // SAFETY: all zeroes are a valid set, and the pointers lead to live values.
    unsafe {
        let (mut set, mut former): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let how = if blocks { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
        libc::pthread_sigmask(how, &raw const set, &raw mut former);
        libc::sigismember(&raw const former, libc::SIGCHLD) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rings_for_posts_and_for_children() {
        let bell = Bell::new().expect("tests use few hosts at a time");
        assert!(bell.takes_child(), "children may have stopped before");
        bell.takes_ring();
        // A ring of a thread of the program, as generated code makes it.
        bell.memory().write32(0, 1);
        assert!(!bell.sleep(), "it has been rung");
        assert!(bell.takes_ring() && !bell.takes_ring());
        // The end of a child of this process.
        let status = std::process::Command::new("/bin/true").status().expect("it runs");
        assert!(status.success());
        while !bell.takes_child() {
            bell.sleep();
        }
    }

    #[test]
    fn places_are_taken_once_and_belong_to_their_threads() {
        let bell = Bell::new().expect("tests use few hosts at a time");
        assert_eq!(bell.takes_places(), Rung::default());
        let threads = [(0, 0), (0, 1), (7, 511), (u32::MAX, 3)];
        for &(image, context) in &threads {
            bell.memory().write32(place_offset(image, context), 1);
            let rung = bell.takes_places();
            let own = |&(other, at): &(u32, usize)| place(other, at) == place(image, context);
            let found = threads.iter().filter(|&&(other, at)| rung.has(other, at));
            assert!(found.eq(threads.iter().filter(|thread| own(thread))), "{image} {context}");
            assert_eq!(bell.takes_places(), Rung::default(), "they were taken");
        }
        threads.iter().for_each(|&(image, context)| bell.memory().write32(place_offset(image, context), 1));
        let rung = bell.takes_places();
        assert!(threads.iter().all(|&(image, context)| rung.has(image, context)));
        // The last place lies in the bell's memory.
        let offsets = (0..600).map(|context| place_offset(0, context));
        assert_eq!(offsets.max(), Some(PLACES_START + 4 * (PLACES - 1)));
    }

    #[test]
    fn the_action_of_the_signal_comes_back_with_the_last_bell() {
        let (first, second) = (Bell::new(), Bell::new());
        assert!(first.is_some() && second.is_some());
        drop(first);
        let second = second.expect("checked");
        second.takes_child();
        child_changed(libc::SIGCHLD);
        assert!(second.takes_child() && second.takes_ring());
    }
}
