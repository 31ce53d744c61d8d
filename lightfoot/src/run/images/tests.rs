//! The joined counts of a tree of processes against those of each image by itself.
//!
//! One run is both: an observer keeps the profile of each image that ends, as reports were made
//! before images were joined, and the twin adds up the tallies of these.

use super::*;
use crate::run::complex::complete;
use crate::run::observe::{Counted, SimulatedRun, Simulator};
use crate::run::simulation::Simulation;
use crate::run::tally::{tally, Grain, Tally};
use event::{Record, Stream};
use instrument::{Children, Command, ComplexCounts, Observer, Options, Outcome, Profile, Threads};
use machine::Machine;
use simulate::{plan_levels, WriteBacks};
use std::collections::HashMap;
use std::hash::Hash;
use symbol::Symbolizer;

/// A shell whose children run, one after the other and side by side, programs that share libraries;
/// some of them execute nothing.
const TREE: &str = "env true; env echo some text | cat | tr a-z A-Z > /dev/null; (echo in a copy; env true) > /dev/null; \
    n=0; while [ $n -lt 5 ]; do env printf '%s' $n | cat > /dev/null; env true; n=$((n+1)); done; (exec env true)";

/// Keeps what is known of each image when it ends, besides what `inner` makes of it.
struct Kept<'a> {
    inner: Inner<'a>,
    /// Each image's profile with complex references, and the misses of its simulation.
    images: Vec<(u32, Profile, Option<simulate::Counts>)>,
    /// A second simulation, for the counts of each image.
    again: Option<Simulation>,
}

enum Inner<'a> {
    Counted(Box<Counted<'a>>),
    Simulated(Box<Simulator<'a>>),
}

impl<'a> Inner<'a> {
    fn observer(&mut self) -> &mut (dyn Observer + 'a) {
        match self {
            Inner::Counted(counted) => &mut **counted,
            Inner::Simulated(simulated) => &mut **simulated,
        }
    }
}

impl Observer for Kept<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.again.iter_mut().for_each(|again| again.records(thread, records));
        self.inner.observer().records(thread, records);
    }

    fn complex_counts(&self) -> ComplexCounts {
        if self.again.is_some() {
            ComplexCounts::ByObserver
        } else {
            ComplexCounts::ByEngine
        }
    }

    fn image(&mut self, number: u32) {
        self.again.iter_mut().for_each(|again| again.starts(number));
        self.inner.observer().image(number);
    }

    /// The second simulation is not told, so its threads keep their caches.
    fn thread_ended(&mut self, image: u32, thread: u32) {
        self.inner.observer().thread_ended(image, thread);
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        let counts = self.again.as_mut().map(|again| again.ends(image.number));
        let mut profile = image.profile.clone();
        complete(&mut profile, counts.as_ref().map_or(&[], |counts| &counts.complex));
        self.images.push((image.number, profile, counts));
        self.inner.observer().image_ended(image);
    }
}

/// A run of [`TREE`], or of another program, with the images that it had.
struct Ran<'a> {
    outcome: Outcome,
    images: Images<'a>,
    counts: Option<simulate::Counts>,
    apart: Vec<(u32, Profile, Option<simulate::Counts>)>,
}

fn run<'a>(words: &[&str], rep: Rep, hierarchy: Option<&'a Hierarchy>) -> Ran<'a> {
    let images = Images::new(super::Kept::Parts, rep, hierarchy);
    let simulation = |hierarchy: &Hierarchy| Simulation::new(&hierarchy.levels, WriteBacks::Ignored).unwrap();
    let inner = match hierarchy {
        None => Inner::Counted(Box::new(Counted::new(Some(images), Threads::Together))),
        Some(hierarchy) => Inner::Simulated(Box::new(Simulator::new(simulation(hierarchy), Some(images)))),
    };
    let mut kept = Kept { inner, images: Vec::new(), again: hierarchy.map(simulation) };
    let stream = hierarchy
        .map_or(Stream::Counts, |hierarchy| plan_levels(&hierarchy.levels, WriteBacks::Ignored).stream);
    let command =
        Command { program: words[0].into(), arguments: words[1..].iter().map(Into::into).collect() };
    let options = Options { stream, children: Children::Followed, ..Options::default() };
    let mut outcome = instrument::run(&command, &options, &mut kept).unwrap();
    let (images, counts) = match kept.inner {
        Inner::Counted(counted) => (counted.finish().0.unwrap(), None),
        Inner::Simulated(simulator) => {
            let SimulatedRun { counts, images, .. } = simulator.finish();
            complete(&mut outcome.profile, &counts.complex);
            (images.unwrap(), Some(counts))
        }
    };
    Ran { outcome, images, counts, apart: kept.images }
}

/// Sums by key.
fn sums<'k, K: Hash + Eq + Clone + 'k>(
    rows: impl IntoIterator<Item = &'k (K, Counts)>,
) -> HashMap<K, Counts> {
    let mut sums: HashMap<K, Counts> = HashMap::new();
    for (key, counts) in rows {
        sums.entry(key.clone()).or_default().add(counts);
    }
    sums
}

/// Holds the joined tally against the sums of all images' tallies. They share a symbolizer, so
/// functions, lines and libraries have the same numbers.
fn agrees(ran: &Ran<'_>, rep: Rep, hierarchy: Option<&Hierarchy>) {
    let mut symbols = Symbolizer::new();
    let mut of = |profile: &Profile, counts: Option<&simulate::Counts>, grain: Grain| -> Tally {
        let misses = hierarchy.zip(counts).map(|(hierarchy, counts)| hierarchy.attribution(counts, None));
        tally(profile, misses.as_ref(), (rep, grain), &mut symbols)
    };
    for grain in [Grain::Lines, Grain::LinesAndOpcodes] {
        let joined = of(&ran.outcome.profile, ran.counts.as_ref(), grain);
        let apart: Vec<Tally> =
            ran.apart.iter().map(|(_, profile, counts)| of(profile, counts.as_ref(), grain)).collect();
        assert_eq!(sums(&joined.functions), sums(apart.iter().flat_map(|tally| &tally.functions)));
        assert_eq!(sums(&joined.libraries), sums(apart.iter().flat_map(|tally| &tally.libraries)));
        assert_eq!(sums(&joined.opcodes), sums(apart.iter().flat_map(|tally| &tally.opcodes)));
        assert_eq!(sums(&joined.cells), sums(apart.iter().flat_map(|tally| &tally.cells)));
        let mut totals = joined.none;
        apart.iter().for_each(|tally| totals.add(&tally.totals));
        assert_eq!(joined.totals, totals);
        // What is noted of an image is what its own tally says.
        for ((number, ..), own) in ran.apart.iter().zip(&apart) {
            assert_eq!(ran.images.sums(*number), Some(&own.totals), "image {number}");
            let part = ran.images.part(*number).unwrap();
            let misses = ran.images.misses(part);
            let cells = part.cells(&ran.outcome.profile, misses.as_ref(), rep, &joined);
            let counted = |(_, counts): &&(crate::run::tally::Cell, Counts)| *counts != joined.none;
            assert_eq!(sums(cells.iter().filter(counted)), sums(own.cells.iter().filter(counted)));
        }
    }
    let numbers: Vec<u32> = ran.apart.iter().map(|(number, ..)| *number).collect();
    let of_processes = ran.outcome.processes.iter().flat_map(|process| &process.images);
    assert!(
        of_processes.clone().count() == numbers.len() && of_processes.clone().all(|n| numbers.contains(n))
    );
}

/// How many blocks the joined profile has, and all images together.
fn blocks(ran: &Ran<'_>) -> (usize, usize) {
    let apart = ran.apart.iter().map(|(_, profile, _)| profile.blocks.len()).sum();
    (ran.outcome.profile.blocks.len(), apart)
}

#[test]
fn joined_counts_are_the_sums_of_all_images() {
    for rep in [Rep::Once, Rep::Iterations, Rep::Valgrind] {
        let ran = run(&["sh", "-c", TREE], rep, None);
        agrees(&ran, rep, None);
        let (joined, apart) = blocks(&ran);
        assert!(joined * 3 < apart, "{joined} of {apart} blocks");
    }
}

#[test]
fn joined_misses_are_the_sums_of_all_images() {
    // The second machine is walked touch by touch.
    for name in ["cachegrind", "zen4-victim"] {
        let hierarchy = Hierarchy::of(Machine::preset(name).unwrap()).unwrap();
        let ran = run(&["sh", "-c", TREE], Rep::Once, Some(&hierarchy));
        agrees(&ran, Rep::Once, Some(&hierarchy));
        let counts = ran.counts.as_ref().unwrap();
        for level in 0..hierarchy.levels.outer.len() + 1 {
            let of = |(_, _, counts): &(u32, Profile, Option<simulate::Counts>)| {
                counts.as_ref().unwrap().cache(level).total()
            };
            assert_eq!(counts.cache(level).total(), ran.apart.iter().map(of).sum::<u64>());
        }
        assert!(counts.sites.len() <= ran.outcome.profile.sites.len());
        assert!(counts.blocks.len() <= ran.outcome.profile.blocks.len());
    }
}
