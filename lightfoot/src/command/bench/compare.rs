//! Results beside those of a baseline, and the limits that they exceed.

use super::baseline::same_measure;
use super::results::{Numbers, Results, Row, TITLES};
use crate::cli::{Growth, Limit};
use anyhow::Result;
use present::exit::{Failure, USAGE};
use present::number::grouped;
use std::collections::{HashMap, HashSet};

/// Results with what they are compared with.
pub(super) struct Comparison<'r> {
    pub(super) results: &'r Results,
    /// The name of the baseline; `None` if nothing is compared.
    pub(super) baseline: Option<&'r str>,
    /// By benchmark: its events in the baseline.
    before: HashMap<(&'r str, &'r str, &'r str), &'r Numbers>,
    /// Benchmarks that the baseline has and the run does not.
    pub(super) gone: Vec<&'r Row>,
    /// Limits that are exceeded.
    pub(super) exceeded: Vec<Exceeded<'r>>,
}

/// A limit that a benchmark exceeds.
pub(super) struct Exceeded<'r> {
    pub(super) row: &'r Row,
    pub(super) sentence: String,
}

impl<'r> Comparison<'r> {
    /// Results that are compared with nothing.
    pub(super) fn alone(results: &'r Results) -> Comparison<'r> {
        let (before, gone, exceeded) = (HashMap::new(), Vec::new(), Vec::new());
        Comparison { results, baseline: None, before, gone, exceeded }
    }

    /// Results beside a baseline that was counted in the same way.
    pub(super) fn new(
        results: &'r Results,
        (name, base): (&'r str, &'r Results),
        limits: &[Limit],
        chosen: Chosen,
    ) -> Comparison<'r> {
        let before: HashMap<_, _> = base.benchmarks.iter().map(|row| (row.key(), &row.events)).collect();
        let now: HashSet<_> = results.benchmarks.iter().map(Row::key).collect();
        // The benchmarks of programs that did not run are not gone.
        let programs: HashSet<_> =
            results.benchmarks.iter().map(|row| (&row.package, &row.program)).collect();
        let is_gone =
            |row: &&Row| !now.contains(&row.key()) && programs.contains(&(&row.package, &row.program));
        let gone = base.benchmarks.iter().filter(|row| chosen == Chosen::All && is_gone(row)).collect();
        let mut compared = Comparison { results, baseline: Some(name), before, gone, exceeded: Vec::new() };
        compared.exceeded = results
            .benchmarks
            .iter()
            .flat_map(|row| {
                limits.iter().filter_map(|limit| compared.exceeds(row, limit)).collect::<Vec<_>>()
            })
            .collect();
        compared
    }

    /// The events of a benchmark in the baseline.
    pub(super) fn before(&self, row: &Row) -> Option<&'r Numbers> {
        self.before.get(&row.key()).copied()
    }

    /// The count of an event, and that in the baseline.
    pub(super) fn pair(&self, row: &Row, event: &str) -> Option<(Option<u64>, u64)> {
        let now = *row.events.get(event)?;
        Some((self.before(row).and_then(|before| before.get(event).copied()), now))
    }

    /// Whether an event of a benchmark differs from the baseline, or the benchmark is new.
    pub(super) fn differs(&self, row: &Row) -> bool {
        self.before(row) != Some(&row.events)
    }

    fn exceeds(&self, row: &'r Row, limit: &Limit) -> Option<Exceeded<'r>> {
        let (Some(before), now) = self.pair(row, limit.event)? else { return None };
        let grown = now.saturating_sub(before);
        let is_beyond = match limit.growth {
            Growth::Percent(percent) => grown as f64 * 100.0 > before as f64 * percent,
            Growth::Events(events) => grown > events,
        };
        let title =
            TITLES.iter().find(|(event, _)| *event == limit.event).map_or(limit.event, |(_, title)| title);
        let sentence = format!(
            "{} {}: {} {title} against {} in baseline {}, {}: beyond {}",
            row.program,
            row.name,
            grouped(now),
            grouped(before),
            self.baseline.unwrap_or_default(),
            change(Some(before), now),
            limit.text
        );
        (is_beyond && grown > 0).then_some(Exceeded { row, sentence })
    }
}

/// Refuses to compare results that were counted in different ways.
///
/// # Errors
/// When they were.
pub(super) fn check_way(results: &Results, (name, base): (&str, &Results)) -> Result<()> {
    if same_measure(results, base) {
        return Ok(());
    }
    let sentence = format!(
        "baseline {name} was counted {}, and this run {}: count both in one way, or save the baseline anew",
        way(base),
        way(results)
    );
    Err(Failure { status: USAGE, sentence }.into())
}

/// Which benchmarks were to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    All,
    Some,
}

/// How results were counted, in words.
fn way(results: &Results) -> String {
    let machine = results
        .machine
        .as_ref()
        .map_or("with --no-caches".to_owned(), |name| format!("with --machine {name}"));
    let processor = results.virtual_cpu.as_ref().map(|name| format!(" --virtual-cpu {name}"));
    let cold = if results.cold { " --cold" } else { "" };
    machine + &processor.unwrap_or_default() + cold
}

/// A change in words: `+1.2 %`, `new`, `=`; with as many digits as tell it from none.
pub(super) fn change(before: Option<u64>, now: u64) -> String {
    match before {
        None => "new".into(),
        Some(before) if before == now => "=".into(),
        Some(0) => format!("+{now}"),
        Some(before) => {
            let share = (now as f64 - before as f64) / before as f64 * 100.0;
            match share.abs() {
                far if far >= 1000.0 => format!("{share:+.0} %"),
                far if far >= 1.0 => format!("{share:+.1} %"),
                far if far >= 0.005 => format!("{share:+.2} %"),
                _ => format!("{:+}", now as i128 - i128::from(before)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(counts: &[(&str, u64, u64)]) -> Results {
        let row = |(name, instructions, misses): &(&str, u64, u64)| Row {
            program: "sorting".into(),
            name: (*name).to_owned(),
            events: Numbers::from([("instructions".into(), *instructions), ("l1d_misses".into(), *misses)]),
            ..Row::default()
        };
        Results { benchmarks: counts.iter().map(row).collect(), ..Results::default() }
    }

    fn exceeded(before: u64, now: u64, growth: Growth) -> Vec<String> {
        let limit = Limit { text: "instructions=+1%".into(), event: "instructions", growth };
        let (base, now) = (results(&[("a", before, 0)]), results(&[("a", now, 0)]));
        let compared = Comparison::new(&now, ("main", &base), &[limit], Chosen::All);
        compared.exceeded.into_iter().map(|exceeded| exceeded.sentence).collect()
    }

    #[test]
    fn a_limit_is_exceeded_beyond_it() {
        let percent = Growth::Percent(1.0);
        assert!(exceeded(1000, 1010, percent).is_empty() && exceeded(1000, 0, percent).is_empty());
        assert_eq!(
            exceeded(1000, 1011, percent),
            ["sorting a: 1,011 instructions against 1,000 in baseline main, +1.1 %: beyond instructions=+1%"]
        );
        assert_eq!(exceeded(0, 1, percent).len(), 1, "nothing is a percent of nothing");
        assert!(exceeded(5, 8, Growth::Events(3)).is_empty() && exceeded(5, 9, Growth::Events(3)).len() == 1);
        assert!(exceeded(5, 5, Growth::Percent(0.0)).is_empty());
    }

    #[test]
    fn what_is_new_or_gone_exceeds_nothing() {
        let limit = Limit { text: String::new(), event: "l1d_misses", growth: Growth::Percent(0.0) };
        let (base, now) = (results(&[("a", 1, 1), ("b", 1, 1)]), results(&[("b", 1, 1), ("c", 1, 1)]));
        let compared = Comparison::new(&now, ("main", &base), &[limit], Chosen::All);
        assert!(compared.exceeded.is_empty());
        assert_eq!(compared.gone.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["a"]);
        assert!(compared.differs(&now.benchmarks[1]) && !compared.differs(&now.benchmarks[0]));
        let compared = Comparison::new(&now, ("main", &base), &[], Chosen::Some);
        assert!(compared.gone.is_empty(), "a filter left it out");
    }

    #[test]
    fn results_of_two_ways_are_not_compared() {
        let base = Results { machine: Some("zen4".into()), ..results(&[]) };
        let now = Results { cold: true, ..results(&[]) };
        let said = check_way(&now, ("main", &base)).unwrap_err().to_string();
        assert!(said.contains("--machine zen4") && said.contains("--no-caches --cold"), "{said}");
    }

    #[test]
    fn changes_show_what_differs() {
        let all = [
            (None, 1),
            (Some(4), 4),
            (Some(0), 3),
            (Some(100), 112),
            (Some(1000), 1001),
            (Some(1_000_000), 999_999),
            (Some(1), 30),
        ];
        let words = all.map(|(before, now)| change(before, now));
        assert_eq!(words, ["new", "=", "+3", "+12.0 %", "+0.10 %", "-1", "+2900 %"]);
    }
}
