//! Median and spread of every event over runs in several layouts.

use super::measurement::Report;
use super::metric::Metric;
use crate::run::tally::Counts;
use present::number::grouped;
use serde::Serialize;
use std::collections::BTreeMap;

/// An event's counts over all layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The number of layouts.
    pub layouts: usize,
    /// The median; of an even number of layouts the lower one of the two in the middle.
    pub median: u64,
    /// The least count.
    pub least: u64,
    /// The greatest count.
    pub most: u64,
}

impl Spread {
    /// The spread of `counts`; `None` if there are none.
    fn of(mut counts: Vec<u64>) -> Option<Spread> {
        counts.sort_unstable();
        let (&least, &most) = (counts.first()?, counts.last()?);
        Some(Spread { layouts: counts.len(), median: counts[(counts.len() - 1) / 2], least, most })
    }
}

/// The spreads of a report's events over its own run and `others`; `None` without others.
pub fn spreads(report: &Report, others: &[Counts]) -> Option<BTreeMap<&'static str, Spread>> {
    if others.is_empty() {
        return None;
    }
    let spread = |metric: &Metric| {
        let counts: Option<Vec<u64>> =
            std::iter::once(&report.totals).chain(others).map(|totals| (metric.value)(totals)).collect();
        Some((metric.field, Spread::of(counts?)?))
    };
    Some(report.metrics().filter_map(spread).collect())
}

/// The spreads as lines of text.
pub(super) fn text(report: &Report) -> String {
    let Some(spreads) = &report.layouts else { return String::new() };
    let mut out = String::new();
    for metric in report.metrics() {
        let Some(spread) = spreads.get(metric.field) else { continue };
        if out.is_empty() {
            out = format!("\n  over {} layouts: median, least to greatest\n", spread.layouts);
        }
        let [median, least, most] = [spread.median, spread.least, spread.most].map(grouped);
        out += &format!("  {:<16} {median}, {least} to {most}\n", metric.label);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_median_is_a_count_that_was_seen() {
        let spread = Spread::of(vec![7, 1, 3, 4]).unwrap();
        assert_eq!(spread, Spread { layouts: 4, median: 3, least: 1, most: 7 });
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
