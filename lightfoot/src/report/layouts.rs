//! Median and spread of every event over runs in several layouts.

use super::metric::Metric;
use crate::run::tally::Counts;
use present::number::grouped;
use present::order::map_of;
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

/// The spreads of these events over several runs' totals; `None` if there is only one run.
pub fn spreads(
    metrics: impl Iterator<Item = &'static Metric>,
    runs: &[&Counts],
) -> Option<BTreeMap<&'static str, Spread>> {
    let spread = |metric: &'static Metric| {
        let counts: Option<Vec<u64>> = runs.iter().map(|totals| (metric.value)(totals)).collect();
        Some((metric.field, Spread::of(counts?)?))
    };
    (runs.len() > 1).then(|| map_of(metrics.filter_map(spread)))
}

/// The spreads as lines of text.
pub(super) fn text(
    metrics: impl Iterator<Item = &'static Metric>,
    spreads: &BTreeMap<&'static str, Spread>,
) -> String {
    let mut out = String::new();
    for metric in metrics {
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
