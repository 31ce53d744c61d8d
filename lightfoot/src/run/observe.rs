//! Observers of a running program: a counter of the references that block counts do not include,
//! and the simulator.
//!
//! Both run in the host, on another core than the program, and both update the progress line.
//! Complex references (repeated string instructions, gather, scatter, masked moves, state saves)
//! are recorded in every mode, and each observer counts them.

use crate::run::images::Images;
use crate::run::simulation::{Simulated, Simulation};
use event::{Complex, Groups, Record, StateLayout, Step, Upcoming};
use instrument::{ComplexCounts, EndedImage, Observer, Progress, Threads};
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
        draw(&mut self.line, progress);
    }
}

/// Counts by the engine alone, with the counts of images and threads where a report shows them.
pub struct Counted<'a> {
    line: Line,
    images: Option<Images<'a>>,
    threads: Option<Counter>,
}

impl<'a> Counted<'a> {
    /// Creates the observer.
    pub fn new(images: Option<Images<'a>>, threads: Threads) -> Counted<'a> {
        let threads = (threads == Threads::Apart).then(Counter::default);
        Counted { line: Line::new(), images, threads }
    }

    /// Removes the progress line, and returns the images, and the complex references of each
    /// thread.
    pub fn finish(self) -> (Option<Images<'a>>, Vec<(u32, References)>) {
        (self.images, self.threads.map_or_else(Vec::new, |counter| counter.threads()))
    }
}

impl Observer for Counted<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        if let Some(threads) = &mut self.threads {
            threads.records(thread, records);
        }
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        if let Some(images) = &mut self.images {
            images.note(image, None);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        draw(&mut self.line, progress);
    }
}

/// Passes records to the simulation.
pub struct Simulator<'a> {
    line: Line,
    simulation: Simulation,
    /// The counts of all images that have ended.
    counts: simulate::Counts,
    images: Option<Images<'a>>,
}

/// What the simulation of a run found.
pub struct SimulatedRun<'a> {
    /// The counts of all images, by the numbers of the run's profile.
    pub counts: simulate::Counts,
    /// The simulation's other results.
    pub simulated: Simulated,
    /// The images, if they are shown.
    pub images: Option<Images<'a>>,
}

impl<'a> Simulator<'a> {
    /// Creates the observer of a simulation.
    pub fn new(simulation: Simulation, images: Option<Images<'a>>) -> Simulator<'a> {
        Simulator { line: Line::new(), simulation, counts: simulate::Counts::default(), images }
    }

    /// Removes the progress line, and returns the counts.
    pub fn finish(self) -> SimulatedRun<'a> {
        SimulatedRun { counts: self.counts, simulated: self.simulation.finish(), images: self.images }
    }
}

impl Observer for Simulator<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.simulation.records(thread, records);
    }

    fn records_before(&mut self, thread: u32, records: &[Record], next: Upcoming) {
        self.simulation.records_before(thread, records, next);
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn image(&mut self, number: u32) {
        self.simulation.starts(number);
    }

    fn thread_ended(&mut self, image: u32, thread: u32) {
        self.simulation.thread_ends(image, thread);
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        let counts = self.simulation.ends(image.number);
        if let Some(images) = &mut self.images {
            images.note(image, Some(&counts));
        }
        let numbers = image.numbering;
        if numbers.is_own() {
            return self.counts.take(counts);
        }
        self.counts.add_renumbered(&counts, |site| numbers.site(site), |block| numbers.block(block));
    }

    fn progress(&mut self, progress: &Progress) {
        draw(&mut self.line, progress);
    }
}

fn draw(line: &mut Line, progress: &Progress) {
    line.draw(progress.wall, format_args!("{} blocks translated", progress.blocks));
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
}
