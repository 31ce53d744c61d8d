//! Spreads the threads of a short search over the processors.
//!
//! A search of a hundred megabytes takes some milliseconds. A system may start a thread on the
//! processor of the one that started it, and move it only at its next tick: then two threads take
//! as long as one, which was seen in half of all runs on a virtual machine with two processors. So
//! a thread that finds itself where another one runs asks for a processor of its own, once, and may
//! be moved anywhere afterwards. **Leaves out** everything about caches and nodes; where the system
//! refuses, threads stay where they are.

use super::turn::lock;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};
use std::sync::Mutex;

/// The processors on which threads of a search began.
#[derive(Debug)]
pub(super) struct Spread {
    taken: Mutex<CpuSet>,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { taken: Mutex::new(CpuSet::new()) }
    }
}

impl Spread {
    /// Moves the calling thread to a processor on which no other one began, if there is one that it
    /// may use. Cost: two to five system calls.
    pub(super) fn take_processor(&self) {
        let mut taken = lock(&self.taken);
        let is_taken = |taken: &CpuSet| {
            let here = sched_getcpu();
            here < CpuSet::MAX_CPU && taken.is_set(here)
        };
        if is_taken(&taken) {
            if let Ok(allowed) = sched_getaffinity(None) {
                let mut free = allowed;
                (0..CpuSet::MAX_CPU).filter(|&cpu| taken.is_set(cpu)).for_each(|cpu| free.unset(cpu));
                if free.count() > 0 && sched_setaffinity(None, &free).is_ok() {
                    let _ = sched_setaffinity(None, &allowed);
                }
            }
        }
        let here = sched_getcpu();
        if here < CpuSet::MAX_CPU {
            taken.set(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_begins_on_a_processor_of_its_own() {
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let threads = (allowed.count() as usize).min(4);
        let spread = Spread::default();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    spread.take_processor();
                    // Afterwards it may run wherever it might before.
                    assert_eq!(sched_getaffinity(None).unwrap().count(), allowed.count());
                });
            }
        });
        let taken = lock(&spread.taken);
        assert!(taken.count() >= 1 && taken.count() as usize <= threads);
    }
}
