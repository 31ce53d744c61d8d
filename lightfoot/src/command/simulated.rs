//! The results of a simulation, on their way into a report: misses and estimated cycles by site and
//! block, and the numbers that belong to no row.
//!
//! **Why two threads.** Estimating cycles reads the code of all hot blocks, and naming blocks reads
//! the files of all libraries. Neither needs the other, the program has ended, and in a short run
//! both together take longer than the program. So one thread estimates while the other names.

use crate::cli::Rep;
use crate::report::curve::Curve;
use crate::report::cycles::Cycles;
use crate::report::Report;
use crate::run::block_order::branch::Predicted;
use crate::run::hierarchy::Hierarchy;
use crate::run::tally::{tally_meanwhile, Attributed, Grain, Misses, Tally};
use instrument::Profile;
use std::panic::resume_unwind;
use std::thread;
use symbol::Symbolizer;

/// The results of a simulation.
pub(super) struct Simulated<'a> {
    pub(super) hierarchy: &'a Hierarchy,
    pub(super) counts: simulate::Counts,
    pub(super) predicted: Option<Predicted>,
    pub(super) curve: Option<Curve>,
}

impl Attributed for Simulated<'_> {
    fn each_site(&self, add: &mut dyn FnMut(u32, &Misses)) {
        self.hierarchy.each_site(&self.counts, add);
    }

    fn each_block(&self, add: &mut dyn FnMut(u32, &Misses)) {
        self.hierarchy.each_block(&self.counts, self.predicted.as_ref(), add);
    }
}

impl Simulated<'_> {
    /// 0 misses of each level that exists, and of each other number that is known.
    fn none(&self) -> Misses {
        Misses {
            branch_mispredictions: self.predicted.as_ref().map(|_| 0),
            cycles: self.hierarchy.machine.cycle.as_ref().map(|_| cycles::Parts::default()),
            ..self.hierarchy.none()
        }
    }

    /// The tally of `profile`. Cycles are estimated on a thread of their own, while this one reads
    /// names and counts all else.
    pub(super) fn tally(&self, profile: &Profile, how: (Rep, Grain), symbols: &mut Symbolizer) -> Tally {
        thread::scope(|scope| {
            let estimate = move || self.hierarchy.estimated(profile, &self.counts, self.predicted.as_ref());
            let started = thread::Builder::new().spawn_scoped(scope, estimate);
            let estimated = || match started {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // Without another thread it takes longer.
                Err(_) => estimate(),
            };
            tally_meanwhile(profile, Some((self.none(), self)), estimated, how, symbols)
        })
    }

    /// Adds numbers that belong to no row to the report, or the reasons for their absence.
    pub(super) fn describe(&self, report: &mut Report) {
        report.null_reasons.extend(self.hierarchy.null_reasons());
        report.write_backs = self.hierarchy.write_backs(&self.counts);
        report.prefetched = self.hierarchy.prefetched(&self.counts);
        report.traffic = self.hierarchy.traffic(&self.counts);
        report.curve = self.curve.clone();
        report.conditional_branches = self.predicted.as_ref().map(|predicted| predicted.resolved);
        let wrong = report.totals.misses.and_then(|misses| misses.branch_mispredictions);
        let declared = self.hierarchy.cycles(&self.counts, report.totals.instructions, wrong);
        let parts = report.totals.misses.and_then(|misses| misses.cycles);
        report.cycles = parts.zip(declared).map(|(parts, declared)| Cycles::new(parts, declared));
        let no_model = format!("machine {} declares no cycle model", self.hierarchy.machine.name);
        let missing = [
            ("write_backs", report.write_backs.is_none(), "not counted: run with --write-backs"),
            ("conditional_branches", self.predicted.is_none(), "not counted: run with --branches"),
            ("branch_mispredictions", self.predicted.is_none(), "not counted: run with --branches"),
            ("cycles", report.cycles.is_none(), &no_model),
        ];
        for (field, _, reason) in missing.into_iter().filter(|(_, missing, _)| *missing) {
            report.null_reasons.insert(field.into(), reason.into());
        }
    }
}
