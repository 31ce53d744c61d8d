//! Turns running sums into records: one at every edge of a regular grid.
//!
//! The caller passes the program's position and the running sums of all metrics to
//! [`Recorder::at`]. Edges are multiples of the interval. A record ends at the first call at or
//! behind its edge; it states its true length, and the number of further edges that it contains as
//! missed. With [`Recorder::by_function`], a record is followed by the instructions of each
//! function that ran in it, which the caller adds as the blocks run.

use super::partial::Partial;
use measure::trace::{Functions, Interval, Record, Value};

/// Makes records.
#[derive(Debug)]
pub(super) struct Recorder {
    length: u64,
    edge: u64,
    start: u64,
    last: Vec<u64>,
    records: Vec<Record>,
    functions: Option<Functions>,
    /// Instructions of each function since the last edge, by number; empty unless they are counted.
    executed: Vec<u64>,
    partial: Partial,
}

/// What a recorder made.
pub(super) struct Recorded {
    pub(super) records: Vec<Record>,
    /// `None` unless functions were counted.
    pub(super) functions: Option<Functions>,
    /// A complaint about the partial file, if any.
    pub(super) complaint: Option<String>,
}

impl Recorder {
    /// A recorder of metrics whose sums are 0 now; records are also appended to `partial`.
    pub(super) fn new(interval: Interval, metrics: usize, partial: Partial) -> Recorder {
        let length = interval.length.max(1);
        Recorder {
            length,
            edge: length,
            start: 0,
            last: vec![0; metrics],
            records: Vec::new(),
            functions: None,
            executed: Vec::new(),
            partial,
        }
    }

    /// Counts instructions by function too.
    pub(super) fn by_function(mut self) -> Recorder {
        self.functions = Some(Functions::default());
        self
    }

    /// Adds instructions of a function, which ran since the last call of [`Recorder::at`].
    #[inline]
    pub(super) fn executed(&mut self, function: u32, instructions: u32) {
        let function = function as usize;
        if function >= self.executed.len() {
            self.executed.resize(function + 1, 0);
        }
        self.executed[function] += u64::from(instructions);
    }

    /// Takes instructions back that did not run after all.
    pub(super) fn not_executed(&mut self, function: u32, instructions: u64) {
        if let Some(executed) = self.executed.get_mut(function as usize) {
            *executed = executed.saturating_sub(instructions);
        }
    }

    /// The next edge.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Says that the program is at `position`, where the metrics have the sums `sums`, and which
    /// functions have names so far.
    pub(super) fn at(&mut self, position: u64, sums: &[u64], names: &[String]) {
        if position < self.edge {
            return;
        }
        let missed = (position - self.edge) / self.length;
        self.edge += (missed + 1) * self.length;
        self.push(position, missed, sums, names);
    }

    /// Ends the last record.
    pub(super) fn finish(mut self, position: u64, sums: &[u64], names: &[String]) -> Recorded {
        if position > self.start || self.last != sums {
            self.push(position, 0, sums, names);
        }
        Recorded { records: self.records, functions: self.functions, complaint: self.partial.complaint() }
    }

    fn push(&mut self, position: u64, missed: u64, sums: &[u64], names: &[String]) {
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
        if let Some(functions) = &mut self.functions {
            let new = &names[functions.names.len()..];
            let ran = self.executed.iter_mut().enumerate().filter(|(_, executed)| **executed > 0);
            let row: Vec<(u32, u64)> =
                ran.map(|(number, executed)| (number as u32, std::mem::take(executed))).collect();
            self.partial.functions(new, &row);
            functions.names.extend_from_slice(new);
            functions.instructions.push(row);
        }
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
            recorder.at(position, &[sum], &[]);
        }
        let recorded = recorder.finish(50, &[10], &[]);
        let shown: Vec<_> = recorded
            .records
            .iter()
            .map(|record| (record.start, record.dt, record.missed_ticks, record.values[0].delta.unwrap()))
            .collect();
        assert_eq!(shown, [(0, 11, 0, 3), (11, 9, 0, 2), (20, 27, 1, 4), (47, 3, 0, 1)]);
    }

    #[test]
    fn functions_belong_to_the_record_in_which_they_ran() {
        let interval = Interval { length: 10, unit: Unit::Instructions };
        let names = ["f", "g", "h"].map(String::from);
        let mut recorder = Recorder::new(interval, 0, Partial::default()).by_function();
        recorder.executed(0, 7);
        recorder.executed(1, 4);
        recorder.at(11, &[], &names[..2]);
        recorder.executed(2, 5);
        recorder.executed(1, 1);
        recorder.not_executed(2, 2);
        let functions = recorder.finish(15, &[], &names).functions.unwrap();
        assert_eq!(functions.names, names);
        assert_eq!(functions.instructions, [vec![(0, 7), (1, 4)], vec![(1, 1), (2, 3)]]);
    }
}
