//! Keeps the host on the core of a single-threaded program.
//!
//! Every stop is a hand-over between program and host. On one core it costs 2–4 µs; across cores it
//! costs 9–12 µs and the wake-up of an idle core (cc1 under `count`: 0.9 s against 2.5). So both
//! are bound to one core while the program has one thread, and the observer's thread has the other
//! cores. A program that asks for its mask gets the original one. From the second thread on a
//! watcher decides (`gathering`). A child that is released gets the original mask. One of the few
//! files with `unsafe`. Source: our own measurements with the study's programs.

use std::mem::{size_of, size_of_val};

/// A set of processors.
#[derive(Clone, Copy)]
pub(crate) struct Processors(libc::cpu_set_t);

impl Processors {
    fn empty() -> Processors {
        // SAFETY: the set is a plain array of words, and all zeroes are the empty set.
        Processors(unsafe { std::mem::zeroed() })
    }

    fn only(processor: usize) -> Processors {
        let mut set = Processors::empty();
        // SAFETY: `CPU_SET` indexes the array of the set with a bounds check.
        unsafe { libc::CPU_SET(processor, &mut set.0) };
        set
    }

    fn without(mut self, processor: usize) -> Processors {
        // SAFETY: `CPU_CLR` indexes the array of the set with a bounds check.
        unsafe { libc::CPU_CLR(processor, &mut self.0) };
        self
    }

    fn contains(&self, processor: usize) -> bool {
        // SAFETY: `CPU_ISSET` indexes the array of the set with a bounds check.
        unsafe { libc::CPU_ISSET(processor, &self.0) }
    }

    fn count(&self) -> i32 {
        // SAFETY: `CPU_COUNT` only reads the plain words of the set.
        unsafe { libc::CPU_COUNT(&self.0) }
    }

    /// The processors on which thread `tid` (0: the caller) may run.
    pub(super) fn of(tid: i32) -> Option<Processors> {
        let mut set = Processors::empty();
        // SAFETY: the kernel writes at most the passed number of bytes, which is the size of `set`.
        let got = unsafe { libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), &mut set.0) };
        (got == 0).then_some(set)
    }

    pub(super) fn apply(&self, tid: i32) {
        // SAFETY: the kernel reads at most the passed number of bytes, which is the size of `self`.
        unsafe { libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &self.0) };
    }

    /// The set as the kernel writes it for `sched_getaffinity`.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        (0..8 * size_of::<libc::cpu_set_t>())
            .step_by(8)
            .map(|first| {
                (0..8).filter(|&bit| self.contains(first + bit)).fold(0u8, |byte, bit| byte | 1 << bit)
            })
            .collect()
    }
}

/// The processors of a run that is bound to one of them.
#[derive(Clone, Copy)]
pub(super) struct Cores {
    /// Those that the program would have natively.
    pub(super) all: Processors,
    /// The one of host and program.
    pub(super) host: Processors,
    /// Those of the observer.
    pub(super) observer: Processors,
}

/// The binding of one run.
pub(crate) struct Binding {
    original: Option<Processors>,
    processor: usize,
    bound: bool,
}

impl Binding {
    /// Binds the calling thread and the program `tid` to the caller's core, if another core remains
    /// for the observer.
    pub(crate) fn new(tid: i32) -> Binding {
        let original = Processors::of(0);
        // SAFETY: the call takes no arguments and returns a number.
        let processor = unsafe { libc::sched_getcpu() }.max(0) as usize;
        let mut binding = Binding { original, processor, bound: false };
        if original.is_some_and(|set| set.count() > 1 && set.contains(processor)) {
            Processors::only(processor).apply(0);
            Processors::only(processor).apply(tid);
            binding.bound = true;
        }
        binding
    }

    /// Binds nothing: the program ran before, where it was.
    pub(crate) fn none() -> Binding {
        Binding { original: Processors::of(0), processor: 0, bound: false }
    }

    /// Whether host, program and observer share a single processor.
    pub(crate) fn is_single(&self) -> bool {
        self.original.is_some_and(|set| set.count() == 1)
    }

    /// The processors for the observer's thread.
    pub(crate) fn observer(&self) -> Option<Processors> {
        self.original.filter(|_| self.bound).map(|set| set.without(self.processor))
    }

    /// The run's processors, if it is bound.
    pub(super) fn cores(&self) -> Option<Cores> {
        let host = Processors::only(self.processor);
        self.observer().zip(self.original).map(|(observer, all)| Cores { all, host, observer })
    }

    /// The program's original mask while it is bound to another one.
    pub(crate) fn hidden(&self) -> Option<Processors> {
        self.original.filter(|_| self.bound)
    }

    /// Gives a task that leaves the engine its original mask.
    pub(crate) fn free(&self, tid: i32) {
        if let Some(set) = self.hidden() {
            set.apply(tid);
        }
    }

    /// Gives host and program their original mask: the program has a second thread, or chooses its
    /// own processors.
    pub(crate) fn dissolve(&mut self, tids: impl Iterator<Item = i32>) {
        if let Some(set) = self.hidden() {
            tids.chain([0]).for_each(|tid| set.apply(tid));
            self.bound = false;
        }
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        self.dissolve(std::iter::empty());
    }
}

/// Bytes of the affinity masks that this kernel writes into a buffer that is large enough.
pub(crate) fn set_bytes() -> usize {
    let mut room = [0u64; 1024];
    let to = room.as_mut_ptr();
    // The C library's own function does not return how much the kernel wrote.
    // SAFETY: the kernel writes at most the passed number of bytes, which is the size of `room`.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&room), to) };
    usize::try_from(written).unwrap_or(size_of::<libc::cpu_set_t>())
}

/// Moves the calling thread onto `set`.
pub(crate) fn move_here(set: &Processors) {
    set.apply(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_kernels() {
        let set = Processors::only(9);
        let bytes = set.bytes();
        assert_eq!(bytes.len(), size_of::<libc::cpu_set_t>());
        assert!(set_bytes().is_multiple_of(8) && set_bytes() > 0);
        assert_eq!((bytes[0], bytes[1], bytes[2]), (0, 2, 0));
        assert!(set.contains(9) && !set.without(9).contains(9));
    }
}
