//! Whether an image's counters can be true.
//!
//! **What.** Counters lie where the program can write. What it overwrites by accident, or without
//! knowing how they hang together, shows: a number that there was no time to reach; one that went
//! back; a branch that was taken oftener than its block ran; a block that ran less often than
//! branches led to it. **Why this way.** All of that follows from what the host knows anyway, when
//! an image ends; nothing is added to what the program runs. Each check has room for threads that
//! ended between two counters. **Leaves out** counts that fit together and are wrong.

use super::Image;
use crate::evidence::Forgery;
use crate::profile::Block;
use std::collections::HashMap;
use std::time::Duration;

/// What a thread counts in a second, at most: some ten instructions in each of some six billion
/// cycles.
const COUNTED_PER_S: u64 = 1 << 36;
/// Beside that: clocks are not exact.
const COUNTED_FREE: u64 = 1 << 24;
/// Transfers whose targets did not begin, because their thread ended: at most, and beside one in so
/// many.
const LOST: u64 = 4096;
const LOST_SHARE: u64 = 64;

/// What one thread can have counted in `elapsed`.
fn ceiling(elapsed: Duration) -> u64 {
    let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    us.saturating_mul(COUNTED_PER_S / 1_000_000).saturating_add(COUNTED_FREE)
}

impl Image {
    /// What a thread can have counted until now; a larger counter is noted.
    pub(super) fn checked(&self, counters: impl IntoIterator<Item = u64>) {
        let most = ceiling(self.born.elapsed());
        if let Some(count) = counters.into_iter().find(|&count| count > most) {
            self.evidence.note(Forgery::Count(count));
        }
    }

    /// Notes executions of the blocks of fragment `f` that were looked at on the way: they never
    /// become fewer.
    pub(super) fn look(&mut self, f: usize, executions: &[u64]) {
        let before = self.looked.insert(f, executions.to_vec()).unwrap_or_default();
        self.compare(&before, executions.iter().copied());
    }

    pub(super) fn compare(&self, before: &[u64], now: impl Iterator<Item = u64>) {
        if let Some((&before, now)) = before.iter().zip(now).find(|(&before, now)| before > *now) {
            self.evidence.note(Forgery::Backwards(before, now));
        }
    }

    /// Holds the sums of all contexts against each other; `blocks` have their executions.
    pub(super) fn add_up(&self, counters: &[u64], blocks: &[Block]) {
        let most = ceiling(self.born.elapsed()).saturating_mul(self.used as u64);
        let instructions = blocks.iter().map(|block| block.executions.saturating_mul(block.count.into()));
        let instructions = instructions.fold(0, u64::saturating_add);
        if instructions > most {
            self.evidence.note(Forgery::Count(instructions));
        }
        let fragments = &self.translator.cache.fragments;
        for (f, before) in &self.looked {
            let first = fragments[*f].first_block as usize;
            self.compare(before, blocks[first..].iter().map(|block| block.executions));
        }
        let mut ran: HashMap<u64, u64> = HashMap::new();
        for fragment in fragments {
            let of_block = |n: u32| &blocks[(fragment.first_block + n) as usize];
            let last = of_block(fragment.blocks - 1);
            if last.taken > last.executions {
                self.evidence.note(Forgery::Taken(last.taken, last.executions));
            }
            let sum = ran.entry(fragment.pc).or_default();
            *sum = sum.saturating_add(of_block(0).executions);
        }
        self.lead(counters, &ran);
    }

    /// Holds side exits against the executions of what they lead to.
    fn lead(&self, counters: &[u64], ran: &HashMap<u64, u64>) {
        let mut led: HashMap<u64, u64> = HashMap::new();
        for exit in self.translator.cache.exits.iter().filter(|exit| !exit.stale) {
            let Some(&times) = exit.counter.and_then(|counter| counters.get(counter as usize)) else {
                continue;
            };
            let sum = led.entry(exit.target).or_default();
            *sum = sum.saturating_add(times);
        }
        for (target, times) in led {
            let ran = ran.get(&target).copied().unwrap_or(0);
            if times > ran.saturating_add(ran / LOST_SHARE).saturating_add(LOST) {
                self.evidence.note(Forgery::Entries(times, ran));
            }
        }
    }
}
