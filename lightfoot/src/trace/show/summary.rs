//! Least, median, largest value and total of each metric.

use measure::trace::Trace;
use serde::Serialize;

/// One metric of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// The least value of a whole interval; `None` if none was counted.
    pub(super) min: Option<u64>,
    pub(super) median: Option<u64>,
    pub(super) max: Option<u64>,
    /// The total of the run as it was read at the end, else the sum of the records that are shown;
    /// `None` if one of them was not counted.
    pub(super) total: Option<u64>,
}

impl Summary {
    /// The summary of a metric. A last record that is shorter than an interval counts in the total
    /// alone, unless there is no other.
    pub(super) fn of(trace: &Trace, metric: usize) -> Summary {
        let records = if trace.whole().is_empty() { &trace.records } else { trace.whole() };
        let values = records.iter().filter_map(|record| record.values[metric].scaled());
        let mut values: Vec<u64> = values.map(|value| value.round() as u64).collect();
        values.sort_unstable();
        let total = trace.end.as_ref().and_then(|end| end.totals.get(metric).copied().flatten());
        Summary {
            min: values.first().copied(),
            median: values.get(values.len() / 2).copied(),
            max: values.last().copied(),
            total: total.or_else(|| trace.sum(metric)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stepped;
    use super::*;

    #[test]
    fn the_short_last_record_is_in_the_total_alone() {
        let mut trace = stepped();
        let summary = Summary::of(&trace, 0);
        assert_eq!(
            summary,
            Summary { min: Some(1000), median: Some(1000), max: Some(1000), total: Some(60_007) }
        );
        assert_eq!(Summary::of(&trace, 1).max, Some(501));
        trace.end = None;
        trace.records[5].values[1].delta = None;
        assert_eq!((Summary::of(&trace, 1).total, Summary::of(&trace, 0).total), (None, Some(60_007)));
    }
}
