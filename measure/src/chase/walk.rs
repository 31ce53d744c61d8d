//! Chases, streams and their times.
//!
//! A chase follows a random cycle: each load's address is the value of the load before, so nothing
//! overlaps, and no prefetcher knows what comes next. A word of the arena is the index of the next
//! word. Everything is safe code: the check of an index waits for nothing that a load does not wait
//! for, so it costs no latency.

use crate::random::Random;
use rustix::time::{clock_gettime, ClockId};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time that the thread may have lost in a trial before it counts as disturbed.
const LOST_MAX: Duration = Duration::from_micros(20);

/// A random cycle over places of an arena, which can grow.
///
/// Inserting place `n` behind a place that is drawn from the `n` before it keeps one cycle, and
/// makes each cycle equally likely (Sattolo 1986, inside out). So a sweep over sizes writes each
/// place once.
#[derive(Debug)]
pub(super) struct Cycle {
    random: Random,
    length: usize,
}

impl Cycle {
    pub(super) fn new(seed: u64) -> Cycle {
        Cycle { random: Random::new(seed), length: 0 }
    }

    /// Grows to `length` places; `place` gives the word of each by its number.
    pub(super) fn grow(&mut self, words: &mut [u32], length: usize, place: impl Fn(usize) -> usize) {
        for number in self.length..length {
            let own = place(number);
            let former = if number == 0 { own } else { place(self.random.below(number)) };
            words[own] = if number == 0 { own as u32 } else { words[former] };
            words[former] = own as u32;
        }
        self.length = self.length.max(length);
    }
}

/// Follows the cycle from word `at`, and returns where it ends.
#[inline(never)]
pub(super) fn chase(words: &[u32], at: u32, steps: usize) -> u32 {
    let mut at = at;
    for _ in 0..steps {
        at = words[at as usize];
    }
    at
}

/// Reads all words, as fast as one thread does.
#[inline(never)]
pub(super) fn stream(words: &[u32]) -> u32 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// `steps` pairs of an addition and an exclusive or, each of which waits for the one before: two
/// cycles of the core's clock a pair.
#[inline(never)]
pub(super) fn count(steps: usize) -> u64 {
    let (addend, mask) = (black_box(3_u64), black_box(5_u64));
    (0..steps).fold(0_u64, |sum, _| sum.wrapping_add(addend) ^ mask)
}

/// The time of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// Wall time.
    pub(super) seconds: f64,
    /// Whether the thread was off its processor meanwhile.
    pub(super) was_disturbed: bool,
}

/// Times `work`, and tells whether the thread had its processor all the time.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> Timed {
    let processor = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let before = processor();
    let start = Instant::now();
    black_box(work());
    let wall = start.elapsed();
    let used = processor().saturating_sub(before);
    let was_disturbed = wall.saturating_sub(used) > LOST_MAX + wall / 50;
    Timed { seconds: wall.as_secs_f64(), was_disturbed }
}
