//! The limit: one random cache line per query, as fast as this machine can fetch them.
//!
//! A pass over precomputed random line numbers with a prefetch ahead and one load each
//! (throughput), and a walk along a random cycle of lines (latency), on memory of the array's size
//! with huge pages asked for, as everybody else here. It is a limit for layouts that read a line of
//! an array of that size; a layout that needs fewer bytes may pass it.

use alloc::vec::Vec;

use crate::line::lanes_mut;
use crate::memory::{Draft, Memory};
use crate::sample::Random;

/// Lines to be read at random, and a cycle through all of them.
#[derive(Debug)]
pub struct Limit {
    memory: Memory,
    picks: Vec<u32>,
    next: usize,
}

/// Number of reads between the prefetch of a line and its read.
const AHEAD: usize = 64;

impl Limit {
    /// For an array of `bytes` bytes and chunks of `chunk` queries.
    pub fn new(bytes: usize, chunk: usize) -> Limit {
        let mut random = Random::new(3);
        let lines = bytes.div_ceil(64).max(1);
        let mut order: Vec<u32> = (0..lines as u32).collect();
        for i in (1..lines).rev() {
            order.swap(i, random.below(i as u64) as usize);
        }
        let mut draft = Draft::new(lines);
        for (words, &next) in lanes_mut::<u64>(draft.lines_mut()).chunks_exact_mut(8).zip(&order) {
            words[0] = u64::from(next);
        }
        let picks = (0..64 * chunk).map(|_| random.below(lines as u64) as u32).collect();
        Limit { memory: draft.finish(lines), picks, next: 0 }
    }

    /// Reads as many random lines as `out` is long.
    pub fn read(&mut self, out: &mut [usize]) {
        let start = self.next;
        self.next = (start + out.len()) % (self.picks.len() - out.len() + 1);
        let picks = &self.picks[start..start + out.len()];
        let lines = self.memory.lines();
        let ahead = picks[AHEAD.min(picks.len())..].iter().chain(core::iter::repeat_n(&0, AHEAD));
        for ((&pick, &later), answer) in picks.iter().zip(ahead).zip(out) {
            crate::kernel::prefetch(lines, later as usize);
            *answer = lines[pick as usize].u64s()[0] as usize;
        }
    }

    /// Follows the cycle for `steps` steps.
    pub fn walk(&self, steps: usize) -> usize {
        let lines = self.memory.lines();
        (0..steps).fold(0, |at, _| lines[at].u64s()[0] as usize)
    }
}
