//! Moves often used memory onto huge pages, once a run has lasted long enough to gain by them.
//!
//! **Problem.** Huge pages save misses of the instruction TLB in long runs. But the kernel clears
//! or copies 2 MB for each of them, and a benchmark or a small program with kept translations takes
//! hardly longer than that altogether. Nobody knows how long a program will run. **Idea.** Requests
//! of a run's beginning wait, and a thread makes them if the run still lasts when their time has
//! come. Later ones are made at once. A program that ends before never pays for one.

use crate::target::memory::Shared;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long requests wait, from the cache's beginning on: some ten times as long as the huge pages
/// of a middling program take.
const PATIENCE: Duration = Duration::from_millis(40);

/// The huge pages of one code cache.
pub(crate) struct HugePages {
    due: Instant,
    waiting: Option<Sender<usize>>,
}

impl HugePages {
    pub(crate) fn new() -> HugePages {
        HugePages { due: Instant::now() + PATIENCE, waiting: None }
    }

    /// Asks for a huge page under the aligned 2 MB at `offset` of the memory, now or later.
    pub(crate) fn request(&mut self, shared: &Arc<Shared>, offset: usize) {
        if self.waiting.is_none() && Instant::now() < self.due {
            self.waiting = waiter(shared.clone(), self.due);
        }
        // The waiter that has had its time takes no more requests.
        let taken = self.waiting.as_ref().is_some_and(|waiting| waiting.send(offset).is_ok());
        if !taken {
            shared.collapse(offset);
        }
    }
}

/// A thread that makes requests when they are `due`, unless the sender is dropped before; `None` if
/// the system refuses a thread.
fn waiter(shared: Arc<Shared>, due: Instant) -> Option<Sender<usize>> {
    let (sender, requests) = channel();
    let wait = move || {
        for offset in until(due, &requests) {
            shared.collapse(offset);
        }
    };
    std::thread::Builder::new().name("huge pages".into()).spawn(wait).ok()?;
    Some(sender)
}

/// The requests that have come when they are `due`; none if the sender is dropped before.
fn until(due: Instant, requests: &Receiver<usize>) -> Vec<usize> {
    let mut waiting = Vec::new();
    loop {
        match requests.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(offset) => waiting.push(offset),
            Err(RecvTimeoutError::Timeout) => return waiting,
            Err(RecvTimeoutError::Disconnected) => return Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_until_they_are_due_and_end_with_their_run() {
        let (sender, requests) = channel();
        for offset in [1, 2, 3] {
            sender.send(offset).unwrap();
        }
        let begun = Instant::now();
        assert_eq!(until(begun + Duration::from_millis(3), &requests), [1, 2, 3]);
        assert!(begun.elapsed() >= Duration::from_millis(3));
        sender.send(4).unwrap();
        drop(sender);
        assert!(until(begun + Duration::from_secs(3600), &requests).is_empty());
    }

    #[test]
    fn memory_keeps_its_contents() {
        let shared = Arc::new(Shared::new(4 << 20).unwrap());
        let bytes: Vec<u8> = (0..4 << 20).map(|at| (at / 7) as u8).collect();
        shared.write(0, &bytes);
        let mut early = HugePages { due: Instant::now() + Duration::from_millis(5), waiting: None };
        early.request(&shared, 0);
        let late = Instant::now() + Duration::from_secs(10);
        // The waiter lets go of the memory when it has made its request.
        while Arc::strong_count(&shared) > 1 && Instant::now() < late {
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&shared), 1, "the waiter has ended");
        early.request(&shared, 2 << 20);
        assert_eq!(shared.read(0, 4 << 20), bytes);
    }
}
