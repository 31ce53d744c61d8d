//! Turns running sums into records: one at every edge of a regular grid.
//!
//! The caller passes the program's position and the running sums of all metrics to
//! [`Recorder::at`]. Edges are multiples of the interval. A record ends at the first call at or
//! behind its edge; it states its true length, and the number of further edges that it contains as
//! missed.

use super::partial::Partial;
use measure::trace::{Interval, Record, Value};

/// Makes records.
#[derive(Debug)]
pub(super) struct Recorder {
    length: u64,
    edge: u64,
    start: u64,
    last: Vec<u64>,
    records: Vec<Record>,
    partial: Partial,
}

impl Recorder {
    /// A recorder of metrics whose sums are 0 now; records are also appended to `partial`.
    pub(super) fn new(interval: Interval, metrics: usize, partial: Partial) -> Recorder {
        let length = interval.length.max(1);
        Recorder { length, edge: length, start: 0, last: vec![0; metrics], records: Vec::new(), partial }
    }

    /// The next edge.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Says that the program is at `position`, where the metrics have the sums `sums`.
    pub(super) fn at(&mut self, position: u64, sums: &[u64]) {
        if position < self.edge {
            return;
        }
        let missed = (position - self.edge) / self.length;
        self.edge += (missed + 1) * self.length;
        self.push(position, missed, sums);
    }

    /// Ends the last record. Returns all records, and a complaint about the partial file, if any.
    pub(super) fn finish(mut self, position: u64, sums: &[u64]) -> (Vec<Record>, Option<String>) {
        if position > self.start || self.last != sums {
            self.push(position, 0, sums);
        }
        (self.records, self.partial.complaint())
    }

    fn push(&mut self, position: u64, missed: u64, sums: &[u64]) {
        let deltas = sums.iter().zip(&self.last).map(|(sum, last)| Value::whole(sum - last));
        let record = Record {
            sequence: self.records.len() as u64,
            start: self.start,
            dt: position - self.start,
            missed_ticks: u32::try_from(missed).unwrap_or(u32::MAX),
            threads: 0,
            values: deltas.collect(),
        };
        self.partial.record(&record);
        self.records.push(record);
        self.start = position;
        self.last.copy_from_slice(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::trace::Unit;

    #[test]
    fn records_follow_each_other_and_add_up() {
        let interval = Interval { length: 10, unit: Unit::Instructions };
        let mut recorder = Recorder::new(interval, 1, Partial::default());
        for (position, sum) in [(4, 1), (11, 3), (19, 4), (20, 5), (47, 9)] {
            recorder.at(position, &[sum]);
        }
        let (records, _) = recorder.finish(50, &[10]);
        let shown: Vec<_> = records
            .iter()
            .map(|record| (record.start, record.dt, record.missed_ticks, record.values[0].delta.unwrap()))
            .collect();
        assert_eq!(shown, [(0, 11, 0, 3), (11, 9, 0, 2), (20, 27, 1, 4), (47, 3, 0, 1)]);
    }
}
