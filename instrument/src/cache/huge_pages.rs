//! Moves often used memory onto huge pages, once a run has lasted long enough to gain by them.
//!
//! **Problem.** Huge pages save misses of the instruction TLB in long runs. But the kernel clears
//! or copies 2 MB for each of them, and a benchmark or a small program with kept translations takes
//! hardly longer than that altogether. Nobody knows how long a program will run, nor what a huge
//! page costs: tenths of a millisecond, or several milliseconds where a virtual machine gives
//! unused memory back to its host. **Idea.** A thread makes the requests, as long as they have
//! taken a small share of the run's time. A program that ends before never pays for one.

use crate::target::memory::Shared;
use std::collections::VecDeque;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long requests wait at least, from the cache's beginning on.
const PATIENCE: Duration = Duration::from_millis(40);
/// Huge pages may take one in this many parts of the time: they save about as much.
const SHARE: u32 = 20;

/// How long the thread sleeps at a time while nothing is requested.
const IDLE: Duration = Duration::from_secs(3600);

/// The huge pages of one code cache.
pub(crate) struct HugePages {
    begun: Instant,
    waiting: Option<Sender<usize>>,
}

impl HugePages {
    pub(crate) fn new() -> HugePages {
        HugePages { begun: Instant::now(), waiting: None }
    }

    /// Asks for a huge page under the aligned 2 MB at `offset` of the memory, when its time has
    /// come.
    pub(crate) fn request(&mut self, shared: &Arc<Shared>, offset: usize) {
        if self.waiting.is_none() {
            self.waiting = waiter(shared.clone(), self.begun);
        }
        let taken = self.waiting.as_ref().is_some_and(|waiting| waiting.send(offset).is_ok());
        if !taken {
            shared.collapse(offset);
        }
    }
}

/// A thread that makes requests in their time, until the sender is dropped; `None` if the system
/// refuses a thread.
fn waiter(shared: Arc<Shared>, begun: Instant) -> Option<Sender<usize>> {
    let (sender, requests) = channel();
    let serve = move || serve(begun, &requests, |offset| shared.collapse(offset));
    std::thread::Builder::new().name("huge pages".into()).spawn(serve).ok()?;
    Some(sender)
}

/// Makes requests as long as they have taken a small share of the time since `begun`.
fn serve(begun: Instant, requests: &Receiver<usize>, mut make: impl FnMut(usize)) {
    let mut queue = VecDeque::new();
    let (mut spent, mut last) = (Duration::ZERO, Duration::ZERO);
    loop {
        let due = begun + PATIENCE.max((spent + last) * SHARE);
        let wait = if queue.is_empty() { IDLE } else { due.saturating_duration_since(Instant::now()) };
        match requests.recv_timeout(wait) {
            Ok(offset) => queue.push_back(offset),
            Err(RecvTimeoutError::Timeout) => {
                let Some(offset) = queue.pop_front() else { continue };
                let started = Instant::now();
                make(offset);
                last = started.elapsed();
                spent += last;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_and_end_with_their_run() {
        let (sender, requests) = channel();
        for offset in [1, 2, 3] {
            sender.send(offset).unwrap();
        }
        let mut made = Vec::new();
        let begun = Instant::now();
        // The sender is dropped with the last request, which takes too long for more.
        let mut sender = Some(sender);
        serve(begun, &requests, |offset| {
            assert!(begun.elapsed() >= PATIENCE);
            made.push(offset);
            if offset == 2 {
                std::thread::sleep(Duration::from_millis(5));
                sender.take();
            }
        });
        assert_eq!(made, [1, 2], "what waits when the program ends is not made");
    }

    #[test]
    fn requests_take_a_small_share_of_the_time() {
        let (sender, requests) = channel();
        (0..3).for_each(|offset| sender.send(offset).unwrap());
        let begun = Instant::now();
        let mut sender = Some(sender);
        serve(begun, &requests, |offset| {
            // Two requests took ten milliseconds each; the third would take as long.
            let least =
                if offset == 0 { PATIENCE } else { Duration::from_millis(10) * SHARE * (offset as u32 + 1) };
            assert!(begun.elapsed() >= least, "{offset}");
            std::thread::sleep(Duration::from_millis(10));
            if offset == 2 {
                sender.take();
            }
        });
        assert!(sender.is_none());
    }

    #[test]
    fn memory_keeps_its_contents() {
        let shared = Arc::new(Shared::new(4 << 20).unwrap());
        let bytes: Vec<u8> = (0..4 << 20).map(|at| (at / 7) as u8).collect();
        shared.write(0, &bytes);
        let mut pages = HugePages::new();
        pages.request(&shared, 0);
        pages.request(&shared, 2 << 20);
        let late = Instant::now() + Duration::from_secs(10);
        std::thread::sleep(2 * PATIENCE);
        drop(pages);
        // The waiter lets go of the memory when it has ended.
        while Arc::strong_count(&shared) > 1 && Instant::now() < late {
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&shared), 1, "the waiter has ended");
        assert_eq!(shared.read(0, 4 << 20), bytes);
    }
}
