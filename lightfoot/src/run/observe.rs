//! Observers of a running program: a counter of the references that block counts do not include,
//! and the simulator.
//!
//! Both run in the host, on another core than the program, and both update the progress line.
//! Complex references (repeated string instructions, gather, scatter, masked moves, state saves)
//! are recorded in every mode, and each observer counts them.

use crate::run::images::Images;
use crate::run::simulation::{Simulated, Simulation};
use event::{masked_reference, Access, Complex, Groups, Record, Shape, StateLayout, Step, Upcoming};
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
}

/// Adds what a complex reference of a site did.
fn add(sites: &mut Vec<References>, site: usize, of_thread: &mut References, counts: &References) {
    if sites.len() <= site {
        sites.resize(site + 1, References::default());
    }
    sites[site].add(counts);
    of_thread.add(counts);
}

/// What one complex reference did.
fn of_complex(complex: &Complex, layout: &StateLayout) -> References {
    let (loads, stores) = complex.loads_and_stores(layout);
    let mut counts = References { loads, stores, ..References::default() };
    counts.execute(complex);
    counts
}

/// What one masked access did: most complex references are such.
fn of_masked(shape: Shape, [base, mask]: [u64; 2]) -> References {
    let access = masked_reference(shape, base, mask).map(|(_, _, access)| access);
    let once = |wanted| u64::from(access == Some(wanted));
    let (loads, stores) = (once(Access::Load), once(Access::Store));
    References { loads, stores, executions: 1, iterations: 1, ..References::default() }
}

impl Observer for Counter {
    fn records(&mut self, thread: u32, mut records: &[Record]) {
        let (groups, of_thread) = self.threads.entry(thread).or_default();
        while let [record, rest @ ..] = records {
            if let Some((shape, values)) = groups.masked(records) {
                add(&mut self.sites, record.site(), of_thread, &of_masked(shape, values));
                records = &records[2..];
                continue;
            }
            if let Step::Whole(site, complex) = groups.push(record) {
                add(&mut self.sites, site, of_thread, &of_complex(&complex, &self.layout));
            }
            records = rest;
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
    use event::{AddressWidth, Direction, MaskedLayout, Segment, StringOperation};

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
    fn masked_accesses_count_as_other_complex_references() {
        let layouts = [MaskedLayout::InPlace, MaskedLayout::Packed, MaskedLayout::Broadcast];
        let directions = [Direction::Load, Direction::Store];
        for (direction, layout) in directions.iter().flat_map(|one| layouts.map(|layout| (*one, layout))) {
            let shape = Shape::Masked { direction, layout, element_bytes: 4, count: 16 };
            let (mut records, mut expected) = (copy(3), References::default());
            expected.add(&References { loads: 3, stores: 3, iterations: 3, executions: 1, counted_down: 1 });
            for mask in [0, 1, 0x8421, 0xffff] {
                let complex = Complex::new(shape, &[0x1000, mask]);
                complex.encode(5, &mut records);
                expected.add(&of_complex(&complex, &StateLayout::default()));
                assert_eq!(of_masked(shape, [0x1000, mask]), of_complex(&complex, &StateLayout::default()));
            }
            for cut in 0..records.len() {
                let mut counter = Counter::default();
                counter.records(1, &records[..cut]);
                counter.records(1, &records[cut..]);
                assert_eq!(counter.threads(), [(1, expected)]);
                assert_eq!(counter.finish()[5], expected);
            }
        }
    }
}
