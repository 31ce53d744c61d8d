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

use super::counted::{leading, BlockCount, ImageCounts};
use super::Image;
use crate::address_map::{AddressHasher, AddressMap};
use crate::code::fragment::Fragment;
use crate::evidence::Forgery;
use crate::translate::Translator;
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
/// The most sums of many targets.
const COARSE_MAX: usize = 1 << 14;

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

    /// Compares the sums of all contexts with each other.
    pub(super) fn add_up(&mut self, counts: &ImageCounts) {
        let Translator { blocks, cache, .. } = &self.translator;
        let most = ceiling(self.born.elapsed()).saturating_mul(self.used as u64);
        let instructions = |counted: &BlockCount| {
            counted.executions.saturating_mul(blocks[counted.block as usize].count.into())
        };
        let instructions = counts.blocks.iter().map(instructions).fold(0, u64::saturating_add);
        if instructions > most {
            self.evidence.note(Forgery::Count(instructions));
        }
        for (fragment_index, before) in &self.looked {
            let first = cache.fragments[*fragment_index].first_block;
            let executions = |block: u32| {
                let at = counts.blocks.binary_search_by_key(&block, |counted| counted.block);
                at.map_or(0, |at| counts.blocks[at].executions)
            };
            self.compare(before, (first..).map(executions));
        }
        // How often each address at which fragments begin was entered.
        let mut entered = Vec::with_capacity(counts.blocks.len());
        let mut left = &cache.fragments[..];
        for counted in &counts.blocks {
            let behind = leading(left, |fragment| fragment.first_block <= counted.block);
            left = &left[behind.saturating_sub(1)..];
            let Some(&Fragment { pc, first_block, blocks, .. }) = left.first() else { continue };
            if counted.block + 1 == first_block + blocks && counted.taken > counted.executions {
                self.evidence.note(Forgery::Taken(counted.taken, counted.executions));
            }
            if counted.block == first_block {
                entered.push((pc, counted.executions));
            }
        }
        let led = self.led(counts);
        if let Some((times, ran)) = unexplained(&led, &entered) {
            self.evidence.note(Forgery::Entries(times, ran));
        }
    }

    /// The targets of side exits that were taken, and how often.
    fn led(&mut self, counts: &ImageCounts) -> Vec<(u64, u64)> {
        let exits = &self.translator.cache.exits;
        self.exit_of_counter.resize(self.translator.counters as usize, 0);
        for (exit, number) in exits.iter().zip(0u32..).skip(self.exits_known) {
            if let Some(of_counter) =
                exit.counter.and_then(|counter| self.exit_of_counter.get_mut(counter as usize))
            {
                *of_counter = number + 1;
            }
        }
        self.exits_known = exits.len();
        let target = |counter: u32| {
            let exit = &exits[self.exit_of_counter[counter as usize].checked_sub(1)? as usize];
            (!exit.stale).then_some(exit.target)
        };
        counts.counters.iter().filter_map(|&(counter, times)| Some((target(counter)?, times))).collect()
    }
}

/// Compares side exits, by target, with the executions of the blocks that they lead to. If exits
/// were taken more often than their target can explain, returns how often, and how often the target
/// ran. Most targets are led to a few times; they are passed by sums of many targets.
fn unexplained(led: &[(u64, u64)], entered: &[(u64, u64)]) -> Option<(u64, u64)> {
    let mut coarse = vec![0u64; led.len().next_power_of_two().clamp(64, COARSE_MAX)];
    let mask = coarse.len() - 1;
    let index = |address: u64| AddressHasher::of(address) as usize & mask;
    for &(target, times) in led {
        let sum = &mut coarse[index(target)];
        *sum = sum.saturating_add(times);
    }
    let may_be_wrong = |address: u64| coarse[index(address)] > LOST;
    let mut sums: AddressMap<(u64, u64)> = AddressMap::default();
    for &(target, times) in led.iter().filter(|(target, _)| may_be_wrong(*target)) {
        let sum = &mut sums.entry(target).or_default().0;
        *sum = sum.saturating_add(times);
    }
    for &(pc, executions) in entered.iter().filter(|(pc, _)| may_be_wrong(*pc)) {
        if let Some((_, ran)) = sums.get_mut(&pc) {
            *ran = ran.saturating_add(executions);
        }
    }
    let is_wrong =
        |&(times, ran): &(u64, u64)| times > ran.saturating_add(ran / LOST_SHARE).saturating_add(LOST);
    sums.into_values().find(is_wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machine::random::Random;

    /// Compares every target with its block.
    fn slow(led: &[(u64, u64)], entered: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let of = |table: &[(u64, u64)], wanted: u64| {
            table.iter().filter(|(address, _)| *address == wanted).map(|(_, times)| times).sum::<u64>()
        };
        let both = led.iter().map(|&(target, _)| (of(led, target), of(entered, target)));
        both.filter(|(times, ran)| *times > ran + ran / LOST_SHARE + LOST).collect()
    }

    #[test]
    fn exits_are_compared_with_their_targets() {
        let mut random = Random::default();
        let mut next = |below: u64| random.word() % below;
        let mut wrong = 0;
        for _ in 0..3000 {
            let count = 1 + next(60);
            let mut table = || -> Vec<(u64, u64)> {
                let rows = next(100);
                let mut row = |_| {
                    let shift = next(14);
                    (0x1000 + 8 * next(count), next(1 << shift))
                };
                (0..rows).map(&mut row).collect()
            };
            let (led, entered) = (table(), table());
            let expected = slow(&led, &entered);
            match unexplained(&led, &entered) {
                Some(found) => assert!(expected.contains(&found), "{led:?} {entered:?}"),
                None => assert!(expected.is_empty(), "{led:?} {entered:?}"),
            }
            wrong += usize::from(!expected.is_empty());
        }
        assert!((500..2500).contains(&wrong), "both kinds are tried: {wrong}");
    }
}
