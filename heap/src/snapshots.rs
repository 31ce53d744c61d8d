//! Snapshots of the heap: how much lived at some moments, and at a few of them where it came from.
//!
//! **The idea.** A heap changes too often to be noted each time. A change is noted if enough time
//! has passed since the last snapshot. When the list is full, its less important half goes, and the
//! least time that is left between two of them is what the next one waits for. So snapshots become
//! rarer as the program runs on, and always cover the whole run. A peak is noted before memory
//! becomes less, if it exceeds the last one by some percents; the highest is never dropped.
//!
//! **Leaves out** stacks, and pages that the program maps itself. Source: the manual of Massif,
//! Valgrind's tool, whose rules for taking and dropping these are.

use crate::amount::Amount;

/// To what an allocator rounds blocks up.
const ALIGNMENT_BYTES: u64 = 16;

/// Which snapshots are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotPlan {
    /// When this many are kept, half of them go; at least 10.
    pub at_most: usize,
    /// Every how many snapshots the places are noted, from 1.
    pub detailed_every: usize,
    /// By how many percents a peak must exceed the last one.
    pub peak_percent: f64,
    /// Bytes of an allocator's own for each block.
    pub block_bytes: u64,
}

/// How much a snapshot knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Sums alone.
    Plain,
    /// Sums, and the bytes of each place.
    Detailed,
    /// The bytes of each place, at the highest of all peaks.
    Peak,
}

/// The heap at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Instructions of all threads so far.
    pub at: u64,
    /// Bytes that live, as the program asked for them.
    pub bytes: u64,
    /// Bytes of the allocator's own: those of each block, and what fills it up.
    pub extra_bytes: u64,
    /// What it knows.
    pub kind: SnapshotKind,
    /// Places with blocks, as indices into [`HeapProfile::sites`](crate::HeapProfile::sites), and
    /// their bytes.
    pub sites: Vec<(u32, u64)>,
}

impl Snapshot {
    /// All bytes.
    pub fn total_bytes(&self) -> u64 {
        self.bytes + self.extra_bytes
    }
}

/// Why a snapshot may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Memory has become more or less.
    Changed,
    /// Memory is about to become less.
    Falling,
}

/// What fills a block up.
pub(crate) fn padding_bytes(size_bytes: u64) -> u64 {
    size_bytes.wrapping_neg() % ALIGNMENT_BYTES
}

/// The snapshots of a program that runs.
#[derive(Clone)]
pub(crate) struct Snapshots {
    plan: SnapshotPlan,
    taken: Vec<Snapshot>,
    /// Before this time none is taken for a change.
    next_at: u64,
    /// The least time between two snapshots.
    apart: u64,
    /// Snapshots without places since the last one with them.
    plain: usize,
    peak_bytes: u64,
}

impl Snapshots {
    /// Begins with a snapshot of nothing.
    pub(crate) fn new(plan: SnapshotPlan) -> Snapshots {
        let mut all = Snapshots { plan, taken: Vec::new(), next_at: 0, apart: 0, plain: 0, peak_bytes: 0 };
        all.offer(Moment::Changed, 0, (Amount::default(), 0), Vec::new);
        all
    }

    pub(crate) fn into_taken(self) -> Vec<Snapshot> {
        self.taken
    }

    /// Takes a snapshot of what lives, in blocks with so many bytes of padding, if it is due.
    pub(crate) fn offer(
        &mut self,
        moment: Moment,
        at: u64,
        (now, padding_bytes): (Amount, u64),
        places: impl FnOnce() -> Vec<(u32, u64)>,
    ) {
        let extra_bytes = now.blocks * self.plan.block_bytes + padding_bytes;
        let total = now.bytes + extra_bytes;
        let kind = match moment {
            Moment::Changed if at < self.next_at => return,
            Moment::Changed if self.plain + 1 >= self.plan.detailed_every => SnapshotKind::Detailed,
            Moment::Changed => SnapshotKind::Plain,
            Moment::Falling => {
                let more = (self.peak_bytes as f64 * self.plan.peak_percent / 100.0) as u64;
                if total <= self.peak_bytes + more {
                    return;
                }
                self.peak_bytes = total;
                for older in self.taken.iter_mut().filter(|older| older.kind == SnapshotKind::Peak) {
                    older.kind = SnapshotKind::Detailed;
                }
                SnapshotKind::Peak
            }
        };
        let (sites, plain) = match kind {
            SnapshotKind::Plain => (Vec::new(), self.plain + 1),
            _ => (places(), 0),
        };
        self.plain = plain;
        self.taken.push(Snapshot { at, bytes: now.bytes, extra_bytes, kind, sites });
        if self.taken.len() >= self.plan.at_most {
            self.thin_out();
        }
        self.next_at = at + self.apart;
    }

    /// Drops half of the snapshots: each time the one between whose neighbours the least time lies.
    /// The first, the last and the peak stay.
    fn thin_out(&mut self) {
        for _ in 0..self.plan.at_most / 2 {
            let inner = 1..self.taken.len() - 1;
            let culled = inner
                .filter(|&index| self.taken[index].kind != SnapshotKind::Peak)
                .min_by_key(|&index| self.taken[index + 1].at - self.taken[index - 1].at);
            let Some(index) = culled else { break };
            self.taken.remove(index);
        }
        let apart = self.taken.windows(2).map(|pair| pair[1].at - pair[0].at).min();
        self.apart = apart.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAN: SnapshotPlan =
        SnapshotPlan { at_most: 10, detailed_every: 3, peak_percent: 1.0, block_bytes: 8 };

    /// The heap after each change: when, and how many bytes live in one block.
    fn run(plan: SnapshotPlan, steps: &[(u64, u64)]) -> Vec<Snapshot> {
        let mut all = Snapshots::new(plan);
        let (mut at, mut before) = (0, Amount::default());
        for &(passed, bytes) in steps {
            at += passed;
            let place = move || vec![(0, bytes)];
            if bytes < before.bytes {
                let last = before.bytes;
                all.offer(Moment::Falling, at, (before, 0), move || vec![(0, last)]);
            }
            before = Amount { bytes, blocks: 1 };
            all.offer(Moment::Changed, at, (before, padding_bytes(bytes)), place);
        }
        all.into_taken()
    }

    #[test]
    fn a_short_run_has_every_change_and_its_peak() {
        let taken = run(PLAN, &[(10, 100), (10, 200), (10, 50), (10, 60)]);
        let shown: Vec<_> = taken.iter().map(|one| (one.at, one.bytes, one.kind)).collect();
        use SnapshotKind::{Detailed, Peak, Plain};
        let expected = [(0, 0, Plain), (10, 100, Plain), (20, 200, Detailed), (30, 200, Peak)];
        assert_eq!(shown[..4], expected);
        assert_eq!(shown[4..], [(30, 50, Plain), (40, 60, Plain)]);
        assert_eq!((taken[1].extra_bytes, taken[3].sites[..].to_vec()), (8 + 12, vec![(0, 200)]));
    }

    #[test]
    fn a_peak_that_exceeds_the_last_one_by_little_is_none() {
        let taken = run(PLAN, &[(1, 1000), (1, 1), (1, 1009), (1, 1), (1, 1020), (1, 1)]);
        let peaks: Vec<_> = taken.iter().filter(|one| one.kind == SnapshotKind::Peak).collect();
        assert_eq!((peaks.len(), peaks[0].bytes), (1, 1020));
    }

    proptest! {
        #[test]
        fn snapshots_cover_the_run_and_keep_its_peak(
            steps in prop::collection::vec((1u64..50, 1u64..10_000), 1..400),
        ) {
            let plan = SnapshotPlan { peak_percent: 0.0, block_bytes: 0, ..PLAN };
            let taken = run(plan, &steps);
            prop_assert!(taken.len() < plan.at_most && taken[0].at == 0);
            prop_assert!(taken.windows(2).all(|pair| pair[0].at <= pair[1].at));
            // The highest level from which the heap fell.
            let falls = steps.windows(2).filter(|pair| pair[1].1 < pair[0].1);
            let highest = falls.map(|pair| pair[0].1).max();
            let peak = taken.iter().find(|one| one.kind == SnapshotKind::Peak);
            prop_assert_eq!(peak.map(|one| one.bytes), highest);
            // Dropping leaves half of the list, so a long run never has fewer.
            prop_assert!(taken.len() >= (plan.at_most / 2).min(steps.len()));
        }
    }
}
