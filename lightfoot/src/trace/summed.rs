//! Metrics that are sums of several counters.
//!
//! **What.** A name may denote several functions, each with a counter of its own. [`Summed`] reads
//! the kernel's counters of a name's functions as one metric. [`Shape`] makes sums from records
//! whose counters were read one by one, as by a handler in the program. **Why this way.** The
//! kernel and the handler count single functions; only the host knows which functions have one
//! name. **Leaves out** probes that the host reads: they are added up when they are read.

use measure::counter::{Counters, Entry, Times, Uprobes};
use measure::trace::{Metric, Value};
use measure::Error;

/// Uprobes; neighbours with one name form one metric.
pub(super) struct Summed {
    uprobes: Uprobes,
    metrics: Vec<Metric>,
    /// The metric of each counter; `None` if its sum would be incomplete.
    columns: Vec<Option<usize>>,
    /// The totals of the counters of one group.
    totals: Vec<u64>,
}

impl Summed {
    /// Joins the counters of `entries`, in their order. A metric is left out if the kernel does not
    /// probe all its functions.
    pub(super) fn new(uprobes: Uprobes, entries: &[Entry]) -> Summed {
        let refused = |name: &str| uprobes.refused.iter().any(|(index, _)| entries[*index].metric == name);
        let (mut metrics, mut columns) = (Vec::<Metric>::new(), Vec::new());
        for metric in uprobes.groups.iter().flat_map(Counters::metrics) {
            if refused(&metric.name) {
                columns.push(None);
                continue;
            }
            if metrics.last().is_none_or(|last| last.name != metric.name) {
                metrics.push(metric.clone());
            }
            columns.push(Some(metrics.len() - 1));
        }
        Summed { uprobes, metrics, columns, totals: Vec::new() }
    }
}

impl Counters for Summed {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        totals.fill(0);
        let mut columns = self.columns.iter();
        let mut times = Times::default();
        for group in &mut self.uprobes.groups {
            self.totals.clear();
            self.totals.resize(group.metrics().len(), 0);
            times = group.read(&mut self.totals)?;
            for (count, column) in self.totals.iter().zip(&mut columns) {
                if let Some(column) = column {
                    totals[*column] += count;
                }
            }
        }
        Ok(times)
    }
}

/// How single values are combined into metrics.
pub(super) struct Shape {
    /// Number of values in front of the sums, which do not change.
    pub(super) first: usize,
    /// Number of values of each sum. Values behind them do not change.
    pub(super) sums: Vec<usize>,
}

impl Shape {
    /// A record's values.
    pub(super) fn values(&self, values: Vec<Value>) -> Vec<Value> {
        let whole = |delta: Option<u64>| Value { delta, share: None };
        self.folded(values, |part| match part {
            [one] => *one,
            all => whole(all.iter().map(|value| value.delta).sum()),
        })
    }

    /// The totals of all records.
    pub(super) fn totals(&self, totals: Vec<Option<u64>>) -> Vec<Option<u64>> {
        self.folded(totals, |part| part.iter().copied().sum())
    }

    fn folded<T: Clone>(&self, values: Vec<T>, sum: impl Fn(&[T]) -> T) -> Vec<T> {
        let mut at = self.first.min(values.len());
        let mut folded = values[..at].to_vec();
        for count in &self.sums {
            let end = (at + count).min(values.len());
            folded.push(sum(&values[at..end]));
            at = end;
        }
        folded.extend_from_slice(&values[at..]);
        folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_name_become_one() {
        let shape = Shape { first: 1, sums: vec![1, 3, 2] };
        let totals = [Some(9), Some(1), Some(2), Some(3), Some(4), Some(5), None, Some(7)];
        assert_eq!(shape.totals(totals.to_vec()), [Some(9), Some(1), Some(9), None, Some(7)]);
        let values = totals.map(|delta| Value { delta, share: None });
        let folded: Vec<Option<u64>> =
            shape.values(values.to_vec()).iter().map(|value| value.delta).collect();
        assert_eq!(folded, [Some(9), Some(1), Some(9), None, Some(7)]);
    }
}
