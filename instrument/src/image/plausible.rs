//! Checks that an image's counters are plausible.
//!
//! **The problem.** The program can write to its counters. **The idea.** Overwritten counters
//! rarely satisfy the relations that true counters have:
//!
//! - The run was long enough for each count.
//! - No count decreases.
//! - A block runs at least as often as the branch at its end is taken.
//! - A block runs at least as often as side exits lead to it.
//!
//! The host has all of these numbers when an image ends, so no generated code is added. The last
//! check allows for threads that ended between two counters. **Leaves out** counts that are
//! consistent and wrong.

use super::Image;
use crate::code::address_map::AddressMap;
use crate::evidence::Forgery;
use crate::profile::Block;
use std::time::Duration;

/// The most instructions that a thread can count in a second: about ten in each of about six
/// billion cycles.
const COUNTED_PER_S: u64 = 1 << 36;
/// Instructions that a thread may count in addition, because clocks are not exact.
const COUNTED_FREE: u64 = 1 << 24;
/// The most transfers whose targets may not have run because the thread ended.
const LOST: u64 = 4096;
/// In addition to [`LOST`], one in this many transfers.
const LOST_SHARE: u64 = 64;

/// The most that one thread can have counted in `elapsed`.
fn ceiling(elapsed: Duration) -> u64 {
    let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    us.saturating_mul(COUNTED_PER_S / 1_000_000).saturating_add(COUNTED_FREE)
}

impl Image {
    /// Notes a forgery if a counter is larger than a thread can have counted until now.
    pub(super) fn checked(&self, counters: impl IntoIterator<Item = u64>) {
        let most = ceiling(self.born.elapsed());
        if let Some(count) = counters.into_iter().find(|&count| count > most) {
            self.evidence.note(Forgery::Count(count));
        }
    }

    /// Remembers the executions of the fragment's blocks. If a later reading finds fewer, it notes
    /// a forgery.
    pub(super) fn look(&mut self, fragment_index: usize, executions: &[u64]) {
        let before = self.looked.insert(fragment_index, executions.to_vec()).unwrap_or_default();
        self.compare(&before, executions.iter().copied());
    }

    /// Notes a forgery if a count is lower than it was before.
    pub(super) fn compare(&self, before: &[u64], now: impl Iterator<Item = u64>) {
        if let Some((&before, now)) = before.iter().zip(now).find(|(&before, now)| before > *now) {
            self.evidence.note(Forgery::Backwards(before, now));
        }
    }

    /// Compares the sums of all contexts with each other; `blocks` have their executions filled in.
    pub(super) fn add_up(&self, counters: &[u64], blocks: &[Block]) {
        let most = ceiling(self.born.elapsed()).saturating_mul(self.used as u64);
        let instructions = blocks.iter().map(|block| block.executions.saturating_mul(block.count.into()));
        let instructions = instructions.fold(0, u64::saturating_add);
        if instructions > most {
            self.evidence.note(Forgery::Count(instructions));
        }
        let fragments = &self.translator.cache.fragments;
        for (fragment_index, before) in &self.looked {
            let first = fragments[*fragment_index].first_block as usize;
            self.compare(before, blocks[first..].iter().map(|block| block.executions));
        }
        let mut ran = AddressMap::default();
        for fragment in fragments {
            let of_block = |index: u32| &blocks[(fragment.first_block + index) as usize];
            let last = of_block(fragment.blocks - 1);
            if last.taken > last.executions {
                self.evidence.note(Forgery::Taken(last.taken, last.executions));
            }
            // Most blocks of kept translations do not run.
            let executions = of_block(0).executions;
            if executions > 0 {
                let sum: &mut u64 = ran.entry(fragment.pc).or_default();
                *sum = sum.saturating_add(executions);
            }
        }
        self.lead(counters, &ran);
    }

    /// Compares side exits with the executions of the blocks that they lead to.
    fn lead(&self, counters: &[u64], ran: &AddressMap<u64>) {
        let mut led = AddressMap::default();
        for exit in self.translator.cache.exits.iter().filter(|exit| !exit.stale) {
            let Some(&times) = exit.counter.and_then(|counter| counters.get(counter as usize)) else {
                continue;
            };
            if times > 0 {
                let sum: &mut u64 = led.entry(exit.target).or_default();
                *sum = sum.saturating_add(times);
            }
        }
        for (target, times) in led {
            let ran = ran.get(&target).copied().unwrap_or(0);
            if times > ran.saturating_add(ran / LOST_SHARE).saturating_add(LOST) {
                self.evidence.note(Forgery::Entries(times, ran));
            }
        }
    }
}
