//! Observers of a running program: a counter of the references that block counts do not include,
//! and the simulator.
//!
//! Both run in the host, on another core than the program, and both update the progress line.
//! Complex references (repeated string instructions, gather, scatter, masked moves, state saves)
//! are recorded in every mode, and each observer counts them.

use crate::run::simulation::{Simulated, Simulation};
use event::{Complex, Groups, Record, StateLayout, Step};
use instrument::{ComplexCounts, Observer, Profile, Progress};
use present::progress::Line;
use simulate::References;
use std::collections::HashMap;

/// Counts complex references and nothing else.
#[derive(Debug, Default)]
pub struct Counter {
    line: Line,
    layout: StateLayout,
    threads: HashMap<u32, (Groups, References)>,
    sites: Vec<References>,
}

impl Counter {
    /// Removes the progress line, and returns the counts by site.
    pub fn finish(self) -> Vec<References> {
        self.sites
    }

    /// The counts of each thread.
    pub fn threads(&self) -> Vec<(u32, References)> {
        self.threads.iter().map(|(&thread, (_, counts))| (thread, *counts)).collect()
    }

    fn whole(&mut self, thread: u32, site: usize, complex: &Complex) {
        if self.sites.len() <= site {
            self.sites.resize(site + 1, References::default());
        }
        let (loads, stores) = complex.loads_and_stores(&self.layout);
        let mut counts = References { loads, stores, ..References::default() };
        counts.execute(complex);
        let thread = &mut self.threads.entry(thread).or_default().1;
        for sum in [&mut self.sites[site], thread] {
            sum.add(&counts);
        }
    }
}

impl Observer for Counter {
    fn records(&mut self, thread: u32, records: &[Record]) {
        for record in records {
            let step = self.threads.entry(thread).or_default().0.push(record);
            if let Step::Whole(site, complex) = step {
                self.whole(thread, site, &complex);
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.draw(progress.wall, format_args!("{} blocks translated", progress.blocks));
    }
}

/// Passes records to the simulation.
pub struct Simulator {
    line: Line,
    simulation: Simulation,
}

impl Simulator {
    /// Creates the observer of a simulation.
    pub fn new(simulation: Simulation) -> Simulator {
        Simulator { line: Line::new(), simulation }
    }

    /// Removes the progress line, and returns the counts.
    pub fn finish(self) -> Simulated {
        self.simulation.finish()
    }
}

impl Observer for Simulator {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.simulation.records(thread, records);
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn image(&mut self, number: u32) {
        self.simulation.starts(number);
    }

    fn image_ended(&mut self, number: u32) {
        self.simulation.ends(number);
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.draw(progress.wall, format_args!("{} blocks translated", progress.blocks));
    }
}

/// Adds observed complex references to a profile without them.
pub fn complete(profile: &mut Profile, observed: &[References]) {
    if !profile.complex.is_empty() || !profile.repeats.is_empty() {
        return;
    }
    for (site, counts) in observed.iter().enumerate().filter(|(_, counts)| counts.executions > 0) {
        profile.complex.push((site as u32, counts.loads, counts.stores));
        let repetitions = counts.iterations.saturating_sub(counts.executions);
        if repetitions > 0 {
            profile.repeats.push((site as u32, repetitions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{AddressWidth, Segment, Shape, StringOperation};

    /// `rep movsb` of `bytes` bytes at site 5.
    fn copy(bytes: u64) -> Vec<Record> {
        let shape = Shape::String {
            operation: StringOperation::Movs,
            element_bytes: 1,
            width: AddressWidth::Bits64,
            segment: Segment::Flat,
        };
        let mut records = Vec::new();
        Complex::new(shape, &[0x1000, 0x2000, 0x2000 + bytes]).encode(5, &mut records);
        records
    }

    #[test]
    fn repeated_strings_are_counted_across_batches_and_threads() {
        let mut counter = Counter::default();
        let (ten, three) = (copy(10), copy(3));
        counter.records(1, &ten[..1]);
        counter.records(2, &three);
        counter.records(1, &ten[1..]);
        let sites = counter.finish();
        let twice = References { loads: 13, stores: 13, iterations: 13, executions: 2, counted_down: 2 };
        assert_eq!(sites[5], twice);
    }

    #[test]
    fn a_profile_that_knows_is_left_alone() {
        let (iterations, executions, counted_down) = (13, 2, 2);
        let observed = [References { loads: 13, stores: 13, iterations, executions, counted_down }];
        let mut profile = Profile::default();
        complete(&mut profile, &observed);
        assert_eq!(
            (profile.complex.as_slice(), profile.repeats.as_slice()),
            (&[(0, 13, 13)][..], &[(0, 11)][..])
        );
        let before = profile.complex.clone();
        complete(&mut profile, &observed);
        assert_eq!(profile.complex, before);
    }
}
