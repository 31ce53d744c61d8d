//! The results of benchmarks: events by name, as reports and baselines have them.

use crate::run::tally::Counts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the shape of results.
pub(super) const SCHEMA: u32 = 1;

/// The events of a benchmark by their fields in reports. An event that was not counted is absent.
pub(super) type Numbers = BTreeMap<String, u64>;

/// All events with their titles, in the order of reports.
pub(super) const TITLES: &[(&str, &str)] = &[
    ("instructions", "instructions"),
    ("loads", "loads"),
    ("stores", "stores"),
    ("l1i_misses", "L1I misses"),
    ("l1d_accesses", "L1D accesses"),
    ("l1d_misses", "L1D misses"),
    ("l2_accesses", "L2 accesses"),
    ("l2_misses", "L2 misses"),
    ("l3_accesses", "L3 accesses"),
    ("l3_misses", "L3 misses"),
    ("dtlb_misses", "dTLB misses"),
    ("estimated_cycles", "estimated cycles"),
];

/// The results of a run, as a baseline keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) schema: u32,
    /// The version of lightfoot that counted.
    pub(super) version: String,
    /// The machine whose caches were simulated; `None` if none were.
    pub(super) machine: Option<String>,
    /// The processor that the programs were shown; `None` for the machine's own.
    #[serde(default)]
    pub(super) virtual_cpu: Option<String>,
    /// Whether benchmarks began with empty caches.
    pub(super) cold: bool,
    pub(super) benchmarks: Vec<Row>,
}

/// The results of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    /// The package of the program; empty where cargo did not build it.
    pub(super) package: String,
    /// The program: its name in `[[bench]]`, else that of its file.
    pub(super) program: String,
    pub(super) name: String,
    /// Where it is written; empty where the program does not say it.
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) events: Numbers,
}

impl Row {
    /// What tells benchmarks apart.
    pub(super) fn key(&self) -> (&str, &str, &str) {
        (&self.package, &self.program, &self.name)
    }
}

/// What a worker says of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) events: Numbers,
    /// Why nothing was counted.
    pub(super) failed: Option<String>,
}

/// What a worker says of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) benchmarks: Vec<Counted>,
    pub(super) warnings: Vec<String>,
    /// How the program ended, where that was not status 0.
    pub(super) ended: Option<String>,
}

/// The events of these counts.
pub(super) fn events(counts: &Counts) -> Numbers {
    let mut numbers = Numbers::new();
    let mut enter = |name: &str, number: Option<u64>| {
        if let Some(number) = number {
            numbers.insert(name.to_owned(), number);
        }
    };
    enter("instructions", Some(counts.instructions));
    enter("loads", Some(counts.loads));
    enter("stores", Some(counts.stores));
    let Some(misses) = &counts.misses else { return numbers };
    // Every miss of one level is an access of the next one that the machine has.
    let first = misses.l1i_misses.unwrap_or(0) + misses.l1d();
    enter("l1i_misses", misses.l1i_misses);
    enter("l1d_accesses", Some(counts.loads + counts.stores));
    enter("l1d_misses", Some(misses.l1d()));
    enter("l2_accesses", misses.l2_misses.map(|_| first));
    enter("l2_misses", misses.l2_misses);
    enter("l3_accesses", misses.l3_misses.map(|_| misses.l2_misses.unwrap_or(first)));
    enter("l3_misses", misses.l3_misses);
    enter("dtlb_misses", misses.dtlb_misses);
    enter("estimated_cycles", misses.cycles.as_ref().map(|parts| parts.total()));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tally::Misses;

    #[test]
    fn a_miss_is_an_access_of_the_next_level() {
        let misses = Misses {
            l1i_misses: Some(1),
            l1d_load_misses: Some(20),
            l1d_store_misses: Some(300),
            l3_misses: Some(9),
            ..Misses::default()
        };
        let counts =
            Counts { instructions: 7, loads: 4000, stores: 500, misses: Some(misses), ..Counts::default() };
        let numbers = events(&counts);
        assert_eq!((numbers["l1d_accesses"], numbers["l1d_misses"]), (4500, 320));
        assert_eq!((numbers.get("l2_misses"), numbers["l3_accesses"]), (None, 321));
        assert!(numbers.keys().all(|name| TITLES.iter().any(|(event, _)| event == name)));
        assert_eq!(events(&Counts { misses: None, ..counts }).len(), 3);
    }

    #[test]
    fn limits_are_about_events_that_reports_have() {
        for (_, field) in crate::cli::EVENTS {
            assert!(TITLES.iter().any(|(event, _)| event == field), "{field}");
        }
    }
}
