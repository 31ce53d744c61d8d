//! Computes differences of running totals, for counters that are read together.

use crate::counter::Times;
use crate::trace::{Share, Value};

/// The totals of the first read, of the last record, and of the newest read.
#[derive(Clone, Debug)]
pub(super) struct Deltas {
    pub(super) first: Vec<u64>,
    last: Vec<u64>,
    pub(super) now: Vec<u64>,
    last_times: Times,
    /// `None` when the last read failed.
    pub(super) times: Option<Times>,
    /// Whether the last record had no numbers: then the next difference would span two intervals.
    lost: bool,
}

impl Deltas {
    pub(super) fn new(first: Vec<u64>, times: Times) -> Deltas {
        let (last, now) = (first.clone(), first.clone());
        Deltas { first, last, now, last_times: times, times: Some(times), lost: false }
    }

    /// Appends the differences since the last record.
    pub(super) fn take(&mut self, values: &mut Vec<Value>) {
        let Some(times) = self.times else {
            self.lost = true;
            values.extend(self.now.iter().map(|_| Value { delta: None, share: None }));
            return;
        };
        let enabled_ns = times.enabled_ns.saturating_sub(self.last_times.enabled_ns);
        let running_ns = times.running_ns.saturating_sub(self.last_times.running_ns);
        let share = (running_ns < enabled_ns).then_some(Share { enabled_ns, running_ns });
        let never_ran = share.is_some_and(|share| share.running_ns == 0);
        for (now, last) in self.now.iter().zip(&mut self.last) {
            // A counter that decreased was reset by another process.
            let delta = now.checked_sub(*last).filter(|_| !never_ran && !self.lost);
            values.push(Value { delta, share });
            *last = *now;
        }
        (self.last_times, self.lost) = (times, false);
    }

    /// The differences since the first read; `None` for counters that cannot be read.
    pub(super) fn totals(&self) -> Vec<Option<u64>> {
        self.last.iter().zip(&self.first).map(|(last, first)| last.checked_sub(*first)).collect()
    }

    /// Whether one of `totals` is less than at the last record.
    pub(super) fn goes_back(&self, totals: &[u64]) -> bool {
        totals.iter().zip(&self.last).any(|(now, last)| now < last)
    }
}
