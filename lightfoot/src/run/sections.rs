//! Observes a run that is divided by marks: what each thread's records count between them.
//!
//! The engine divides the counts of blocks, and tells an observer of each deed behind the records
//! that the thread made before it. Here records are divided in the same way: a thread that counts
//! has tables of its own, which take the simulation's place while its records are simulated. Caches
//! know nothing of that, so parts cost what the whole costs. When an image ends, both halves of
//! each part are put together.

use crate::run::observe::Counter;
use crate::run::simulation::Simulation;
use crate::run::tally::Part;
use call_graph::{CallGraph, Calls, Collects, Jump, ThreadPart};
use event::Record;
use instrument::call::{DirectTarget, Ticks};
use instrument::mark::{Deed, PartCounts};
use instrument::{ComplexCounts, EndedImage, Module, Observer};
use simulate::{Counts, MissIntervals, Shelf};
use std::collections::{BTreeMap, HashMap};

/// What is made of records.
pub enum Recorded {
    /// Misses.
    Simulated(Box<Simulation>),
    /// Complex references only, which block counts do not contain.
    Counted,
}

impl Recorded {
    /// Counts records of a thread, whose section may be closed. Divides their misses, if there are
    /// intervals for them.
    fn take(
        &mut self,
        section: &mut ThreadSection,
        thread: u32,
        records: &[Record],
        misses: Option<&mut MissIntervals>,
    ) {
        let simulation = match self {
            Recorded::Simulated(simulation) => simulation,
            Recorded::Counted => {
                if section.open {
                    section.counter.records(thread, records);
                }
                return;
            }
        };
        if section.open {
            simulation.exchange(&mut section.shelf);
        }
        match misses {
            Some(misses) => simulation.records_divided(thread, records, misses),
            None => simulation.records(thread, records),
        }
        if section.open {
            simulation.exchange(&mut section.shelf);
        }
    }
}

/// A part of an image's counts: those of one thread between two cuts.
#[derive(Clone, Debug)]
pub struct Section {
    /// Number of the image.
    pub image: u32,
    /// Number of the thread.
    pub thread: u32,
    /// How many cuts of the image came before the one that ended the part.
    pub cut: u32,
    /// The counts, under the numbers of the run's profile.
    pub part: Part,
    /// The calls, if they are followed.
    pub calls: Vec<Calls>,
    /// Its jumps by a register or memory, if they are counted.
    pub jumps: Vec<Jump>,
}

/// The observer.
pub struct Sections {
    recorded: Recorded,
    graph: Option<Box<dyn CallGraph + Send>>,
    image: u32,
    living: HashMap<u32, ImageSections>,
    ended: Vec<Section>,
}

/// The threads and cuts of one image.
#[derive(Default)]
struct ImageSections {
    threads: BTreeMap<u32, ThreadSection>,
    /// Whether caches are not simulated.
    rests: bool,
    cuts: u32,
    parts: Vec<(u32, u32, Counts)>,
}

/// What a thread has counted since its last cut.
#[derive(Default)]
struct ThreadSection {
    open: bool,
    shelf: Shelf,
    /// Complex references, where nothing is simulated.
    counter: Counter,
}

impl ThreadSection {
    fn counts(&mut self) -> Counts {
        let mut counts = std::mem::take(&mut self.shelf).counts();
        let complex = std::mem::take(&mut self.counter).finish();
        counts.add(&Counts { complex, ..Counts::default() });
        counts
    }
}

impl ImageSections {
    /// Makes what the thread, or each thread, has counted a part.
    fn cut(&mut self, thread: Option<u32>) {
        for (&number, section) in &mut self.threads {
            if thread.is_none_or(|one| one == number) {
                self.parts.push((number, self.cuts, section.counts()));
            }
        }
        self.cuts += 1;
    }

    fn forget(&mut self, thread: Option<u32>) {
        let all = self.threads.iter_mut();
        let wanted = all.filter(|(&number, _)| thread.is_none_or(|one| one == number));
        wanted.for_each(|(_, section)| _ = section.counts());
    }
}

impl Sections {
    /// An observer that makes this of records.
    pub fn new(recorded: Recorded) -> Sections {
        Sections { recorded, graph: None, image: 0, living: HashMap::new(), ended: Vec::new() }
    }

    /// Follows calls too.
    #[must_use]
    pub fn with_calls(self, graph: Box<dyn CallGraph + Send>) -> Sections {
        Sections { graph: Some(graph), ..self }
    }

    /// The parts of all images, in the order in which the images ended, and the records that a
    /// simulation read.
    pub fn finish(self) -> (Vec<Section>, event::Counter) {
        let records = match self.recorded {
            Recorded::Simulated(simulation) => simulation.finish().records,
            Recorded::Counted => event::Counter::default(),
        };
        (self.ended, records)
    }

    /// Makes an image the one to which the next records belong.
    fn turn_to(&mut self, image: u32) {
        self.image = image;
        if let Recorded::Simulated(simulation) = &mut self.recorded {
            simulation.starts(image);
        }
    }
}

impl Observer for Sections {
    fn records(&mut self, thread: u32, records: &[Record]) {
        let image = self.living.entry(self.image).or_default();
        if image.rests {
            self.graph.iter_mut().for_each(|graph| graph.pass((self.image, thread), records));
            return;
        }
        let section = image.threads.entry(thread).or_default();
        let Some(graph) = &mut self.graph else { return self.recorded.take(section, thread, records, None) };
        graph.records((self.image, thread), records, &mut |records, misses| {
            self.recorded.take(section, thread, records, Some(misses));
        });
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn image(&mut self, number: u32) {
        self.turn_to(number);
    }

    fn modules(&mut self, image: u32, more: &[Module]) {
        self.graph.iter_mut().for_each(|graph| graph.modules(image, more));
    }

    fn targets(&mut self, image: u32, more: &[DirectTarget]) {
        self.graph.iter_mut().for_each(|graph| graph.targets(image, more));
    }

    fn ticks(&mut self, image: u32, thread: u32, ticks: Ticks) {
        self.graph.iter_mut().for_each(|graph| graph.ticks(image, thread, ticks));
    }

    fn marked(&mut self, number: u32, _thread: u32, deed: Deed) {
        let image = self.living.entry(number).or_default();
        if let Some(graph) = &mut self.graph {
            mark_calls(&mut **graph, (number, image.cuts), deed);
        }
        match deed {
            Deed::Open(thread) => image.threads.entry(thread).or_default().open = true,
            Deed::Close(thread) => image.threads.entry(thread).or_default().open = false,
            Deed::Cut(thread) => image.cut(thread),
            Deed::Drop(thread) => image.forget(thread),
            Deed::Rest => image.rests = true,
            Deed::Work => image.rests = false,
            Deed::Empty => {
                let present = self.image;
                self.turn_to(number);
                if let Recorded::Simulated(simulation) = &mut self.recorded {
                    simulation.empty_caches();
                }
                self.turn_to(present);
            }
        }
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        if let Recorded::Simulated(simulation) = &mut self.recorded {
            simulation.ends(image.number);
        }
        let mut own = self.living.remove(&image.number).unwrap_or_default();
        let graph = self.graph.as_mut();
        let mut calls = graph.map_or_else(HashMap::new, |graph| graph.ended(image, own.cuts));
        own.cut(None);
        let mut recorded: HashMap<(u32, u32), Counts> =
            own.parts.into_iter().map(|(thread, cut, counts)| ((thread, cut), counts)).collect();
        for counted in image.parts {
            let PartCounts { thread, cut, .. } = *counted;
            let counts = recorded.remove(&(thread, cut)).unwrap_or_default();
            let part = Part::of_section(counted, &counts).renumbered(image.numbering);
            let ThreadPart { calls, jumps } = calls.remove(&(thread, cut)).unwrap_or_default();
            self.ended.push(Section { image: image.number, thread, cut, part, calls, jumps });
        }
    }
}

/// Lets a graph of calls follow a deed in an image, behind this number of cuts.
fn mark_calls(graph: &mut dyn CallGraph, (image, cuts): (u32, u32), deed: Deed) {
    match deed {
        Deed::Open(thread) => graph.collect(image, thread, Collects::Yes),
        Deed::Close(thread) => graph.collect(image, thread, Collects::No),
        Deed::Cut(thread) => graph.cut(image, thread, cuts),
        Deed::Drop(thread) => graph.forget(image, thread),
        Deed::Rest => graph.rest(image),
        Deed::Work => graph.work(image),
        Deed::Empty => {}
    }
}
