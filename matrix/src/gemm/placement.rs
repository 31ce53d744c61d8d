//! Processors of threads: a thread that waits for work stays off the processor of its caller.
//!
//! **The problem.** Linux wakes a thread on the processor of the thread that wakes it, unless it
//! finds an idle one. A virtual processor that has halted does not count as idle, because the
//! hypervisor reports it as preempted. Two threads then share one processor for tenths of a second
//! while the other processor does nothing, and a product on two threads is as slow as on one.
//!
//! **The idea.** Each thread of a call notes its processor. A thread that finds itself on the
//! processor of a thread before it moves to another one: it takes the processors in use out of its
//! affinity mask, which moves it at once, and restores the mask. A sleeping thread cannot do that
//! itself, so its caller takes its own processor out of the mask, and the thread restores it when
//! it runs. Nobody is bound to a processor for longer than that.
//!
//! **Leaves out** systems other than Linux, masks of more than 1,024 processors, and machines where
//! the program may use no other processor: threads then stay where they are.

/// The processor of a thread that has not been asked.
pub(super) const NOWHERE: usize = usize::MAX;

#[cfg(target_os = "linux")]
mod linux {
    use super::NOWHERE;

    /// The identifier of a thread.
    pub(crate) type ThreadId = libc::pid_t;

    /// The processor on which the calling thread runs, or [`NOWHERE`]. It may change at any time.
    #[inline]
    pub(crate) fn current() -> usize {
        // SAFETY: the function has no arguments and no requirements.
        usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(NOWHERE)
    }

    /// The calling thread.
    pub(crate) fn own_id() -> ThreadId {
        // SAFETY: the system call has no arguments and cannot fail.
        unsafe { libc::syscall(libc::SYS_gettid) as ThreadId }
    }

    /// The processors that a thread may use; 0 is the calling thread.
    fn allowed(thread: ThreadId) -> Option<libc::cpu_set_t> {
        // SAFETY: a set of processors is an array of integers, for which zeros are a value.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is as large as the length says.
        let outcome = unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &mut set) };
        (outcome == 0).then_some(set)
    }

    /// Changes the processors that a thread may use. A refusal leaves everything as it was.
    fn allow(thread: ThreadId, set: &libc::cpu_set_t) -> bool {
        // SAFETY: the set is as large as the length says.
        unsafe { libc::sched_setaffinity(thread, size_of_val(set), set) == 0 }
    }

    /// The set without a processor; nothing if that is all it has.
    fn without(mut set: libc::cpu_set_t, used: impl Iterator<Item = usize>) -> Option<libc::cpu_set_t> {
        for processor in used.filter(|&processor| processor < libc::CPU_SETSIZE as usize) {
            // SAFETY: the processor is below the size of the set.
            unsafe { libc::CPU_CLR(processor, &mut set) };
        }
        // SAFETY: the function reads a valid set.
        (unsafe { libc::CPU_COUNT(&set) } > 0).then_some(set)
    }

    /// Moves the calling thread to a processor that is not `used`, if it may use one. Its mask is
    /// afterwards as before.
    pub(crate) fn leave(used: impl Iterator<Item = usize>) {
        let Some(all) = allowed(0) else { return };
        if let Some(others) = without(all, used) {
            allow(0, &others);
            allow(0, &all);
        }
    }

    /// Takes a processor out of the mask of a thread that sleeps; returns whether that changed the
    /// mask, in which case the thread must call [`back_to`].
    pub(crate) fn keep_off(thread: ThreadId, processor: usize) -> bool {
        let Some(all) = allowed(thread) else { return false };
        // SAFETY: the processor is below the size of the set.
        let has = processor < libc::CPU_SETSIZE as usize && unsafe { libc::CPU_ISSET(processor, &all) };
        match without(all, std::iter::once(processor)) {
            Some(others) if has => allow(thread, &others),
            _ => false,
        }
    }

    /// Allows a thread to use a processor again.
    pub(crate) fn back_to(thread: ThreadId, processor: usize) {
        let Some(mut set) = allowed(thread) else { return };
        if processor < libc::CPU_SETSIZE as usize {
            // SAFETY: the processor is below the size of the set.
            unsafe { libc::CPU_SET(processor, &mut set) };
            allow(thread, &set);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn processors() -> Vec<usize> {
            let set = allowed(0).expect("the mask of this thread");
            // SAFETY: the numbers are below the size of the set.
            (0..libc::CPU_SETSIZE as usize).filter(|&at| unsafe { libc::CPU_ISSET(at, &set) }).collect()
        }

        #[test]
        fn a_thread_leaves_a_processor_and_keeps_its_mask() {
            let before = processors();
            if before.len() < 2 {
                eprintln!("skipped: this process may use one processor only");
                return;
            }
            for &used in &before {
                leave(std::iter::once(used));
                assert_eq!(processors(), before);
            }
            // All processors are used: the thread stays, and may still use all of them.
            leave(before.iter().copied());
            assert_eq!(processors(), before);
        }

        #[test]
        fn a_thread_is_kept_off_a_processor_until_it_takes_it_back() {
            let before = processors();
            let Some((&first, others)) = before.split_first().filter(|(_, others)| !others.is_empty()) else {
                eprintln!("skipped: this process may use one processor only");
                return;
            };
            assert!(keep_off(own_id(), first));
            assert_eq!(processors(), others);
            assert_ne!(current(), first);
            // A second time there is nothing to take out.
            assert!(!keep_off(own_id(), first));
            back_to(own_id(), first);
            assert_eq!(processors(), before);
            assert!(!keep_off(own_id(), NOWHERE));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::NOWHERE;

    /// The identifier of a thread.
    pub(crate) type ThreadId = ();

    /// The processor of the calling thread, which this system does not tell.
    pub(crate) fn current() -> usize {
        NOWHERE
    }

    /// The calling thread.
    pub(crate) fn own_id() -> ThreadId {}

    /// Leaves the calling thread where it is.
    pub(crate) fn leave(_: impl Iterator<Item = usize>) {}

    /// Leaves the mask of a thread as it is.
    pub(crate) fn keep_off(_: ThreadId, _: usize) -> bool {
        false
    }

    /// Leaves the mask of a thread as it is.
    pub(crate) fn back_to(_: ThreadId, _: usize) {}
}

#[cfg(target_os = "linux")]
pub(super) use linux::{back_to, current, keep_off, leave, own_id, ThreadId};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{back_to, current, keep_off, leave, own_id, ThreadId};
