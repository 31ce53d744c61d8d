//! The simulation of a run: a hierarchy for each process image, and the counts of all of them.
//!
//! An exec gives the program a new address space in which an address is other memory, so caches
//! start empty. They also start empty in a forked child, whose memory is a copy. Images of several
//! processes take turns, each in its own caches. Each image numbers its sites and blocks from 0, so
//! the counts of an image are handed out when it ends.

use crate::run::distances::Distances;
use anyhow::{anyhow, Result};
use event::{Counter, Record, Stream, Upcoming};
use instrument::Threads;
use simulate::distance::MissCurve;
use simulate::{count_kinds, plan_levels, Counts, Levels, MissIntervals, Shelf, Simulator, WriteBacks};
use std::collections::HashMap;

/// The results of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Counts of all images whose end was not announced, under the numbers of their records.
    pub counts: Counts,
    /// The sums of each thread by its number, if threads are counted separately.
    pub threads: Vec<(u32, Counts)>,
    /// The miss curve of all images together, if requested.
    pub curve: Option<MissCurve>,
    /// Records that the simulation has read, by kind, except those of
    /// [`Simulation::records_before`].
    pub records: Counter,
}

/// Hierarchies of one run.
pub struct Simulation {
    levels: Levels,
    stream: Stream,
    write_backs: WriteBacks,
    /// The hierarchy of the current image; `None` before its first record.
    hierarchy: Option<Simulator>,
    image: u32,
    /// The hierarchies of the other images that have not ended.
    waiting: HashMap<u32, Simulator>,
    /// The hierarchy of an image that has ended, for reuse.
    spare: Option<Simulator>,
    threads: Threads,
    distances: Option<Distances>,
    ended: Simulated,
}

impl Simulation {
    /// A simulation with empty caches, for the stream that is planned for them. Memory is allocated
    /// with the first record.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn new(levels: &Levels, write_backs: WriteBacks) -> Result<Simulation> {
        let stream = plan_levels(levels, write_backs).stream;
        levels.check().map_err(|error| anyhow!("{error}"))?;
        Ok(Simulation {
            levels: levels.clone(),
            stream,
            write_backs,
            hierarchy: None,
            image: 0,
            waiting: HashMap::new(),
            spare: None,
            threads: Threads::Together,
            distances: None,
            ended: Simulated::default(),
        })
    }

    /// Sets whether threads are counted separately. Call it before the first record.
    #[must_use]
    pub fn with_threads(self, threads: Threads) -> Simulation {
        Simulation { threads, ..self }
    }

    /// Adds a miss curve. Call it before the first record.
    #[must_use]
    pub fn with_distances(self, distances: Distances) -> Simulation {
        Simulation { distances: Some(distances), ..self }
    }

    /// Sets a stream that records at least what was planned. Call it before the first record.
    #[must_use]
    pub fn from_stream(self, stream: Stream) -> Simulation {
        Simulation { stream, ..self }
    }

    /// Simulates records of one thread.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        count_kinds(records, &mut self.ended.records);
        self.records_before(thread, records, Upcoming::default());
    }

    /// Simulates records of one thread, and prefetches those that the thread receives next. They
    /// are not counted by kind here: the engine has counted what it delivers
    /// ([`Outcome::records`](instrument::Outcome::records)).
    pub fn records_before(&mut self, thread: u32, records: &[Record], next: Upcoming) {
        if let Some(distances) = &self.distances {
            distances.records(self.image, thread, records);
        }
        self.current().records_before(thread, records, next);
    }

    /// Simulates records of one thread, of which `intervals` knows the intervals, and counts their
    /// misses there too.
    pub fn records_divided(&mut self, thread: u32, records: &[Record], intervals: &mut MissIntervals) {
        count_kinds(records, &mut self.ended.records);
        self.current().records_divided(thread, records, intervals);
    }

    /// Exchanges the tables of the current image with those of the shelf.
    pub fn exchange(&mut self, shelf: &mut Shelf) {
        self.current().exchange(shelf);
    }

    /// Empties the caches of the current image.
    pub fn empty_caches(&mut self) {
        self.current().empty_caches();
    }

    /// The hierarchy of the current image.
    fn current(&mut self) -> &mut Simulator {
        let Simulation { levels, stream, write_backs, threads, spare, hierarchy, .. } = self;
        hierarchy.get_or_insert_with(|| {
            let emptied = spare.take().and_then(Simulator::emptied);
            emptied.unwrap_or_else(|| empty(levels, stream, *write_backs, *threads))
        })
    }

    /// Says that the next records are those of this image.
    pub fn starts(&mut self, image: u32) {
        if image == self.image {
            return;
        }
        let next = self.waiting.remove(&image);
        let former = std::mem::replace(&mut self.hierarchy, next);
        let number = std::mem::replace(&mut self.image, image);
        self.waiting.extend(former.map(|former| (number, former)));
    }

    /// Says that no more records of this thread of an image follow, which frees its caches.
    pub fn thread_ends(&mut self, image: u32, thread: u32) {
        let hierarchy = match image == self.image {
            true => self.hierarchy.as_mut(),
            false => self.waiting.get_mut(&image),
        };
        let own = hierarchy.and_then(|hierarchy| hierarchy.end_thread(thread));
        self.ended.threads.extend(own.map(|counts| (thread, counts.summed())));
        self.distances.iter().for_each(|distances| distances.thread_ends(image, thread));
    }

    /// Says that no more records of this image follow. Frees its caches, and returns its counts
    /// under its own numbers.
    pub fn ends(&mut self, image: u32) -> Counts {
        let hierarchy = if image == self.image { self.hierarchy.take() } else { self.waiting.remove(&image) };
        self.distances.iter().for_each(|distances| distances.ends(image));
        let Some(mut hierarchy) = hierarchy else { return Counts::default() };
        self.note_threads(&hierarchy);
        let counts = hierarchy.take_counts();
        self.spare = Some(hierarchy);
        counts
    }

    fn note_threads(&mut self, hierarchy: &Simulator) {
        let threads = hierarchy.counts_of_threads();
        self.ended.threads.extend(threads.iter().map(|(number, counts)| (*number, counts.summed())));
    }

    /// Returns the results.
    pub fn finish(mut self) -> Simulated {
        let last = self.hierarchy.take();
        let left: Vec<Simulator> = std::mem::take(&mut self.waiting).into_values().chain(last).collect();
        for hierarchy in &left {
            self.note_threads(hierarchy);
            self.ended.counts.add(&hierarchy.counts());
        }
        self.ended.curve = self.distances.map(Distances::finish);
        self.ended
    }
}

fn empty(levels: &Levels, stream: &Stream, write_backs: WriteBacks, threads: Threads) -> Simulator {
    let simulator = Simulator::of_stream(levels, stream, write_backs).expect("the levels were checked");
    match threads {
        Threads::Apart => simulator.by_thread(),
        Threads::Together => simulator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::RecordKind;
    use simulate::Geometry;

    #[test]
    fn an_image_starts_with_empty_caches() {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64));
        let mut simulation = Simulation::new(&levels, WriteBacks::Counted).unwrap();
        let load = [Record::new(RecordKind::Load, 8, 3, 0x1000).unwrap()];
        simulation.records(0, &load);
        simulation.records(0, &load);
        simulation.starts(1);
        simulation.records(1, &load);
        for image in [0, 1] {
            let counts = simulation.ends(image);
            let misses: Vec<u64> = counts.sites.iter().map(|site| site.loads[0]).collect();
            assert_eq!((misses, counts.write_backs), (vec![0, 0, 0, 1], Some([0; 3])));
        }
        assert_eq!(simulation.finish().counts, Counts::default());
    }

    #[test]
    fn images_that_take_turns_keep_their_caches() {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64));
        let mut simulation = Simulation::new(&levels, WriteBacks::Ignored).unwrap();
        let load = |address| [Record::new(RecordKind::Load, 8, 0, address).unwrap()];
        let misses = |counts: &Counts| counts.sites[0].loads[0];
        for (image, address) in [(0, 0x1000), (2, 0x1000), (0, 0x1000), (1, 0x1000), (2, 0x1000), (2, 0x2000)]
        {
            simulation.starts(image);
            simulation.records(image, &load(address));
            if image == 1 {
                assert_eq!(misses(&simulation.ends(1)), 1);
            }
        }
        assert_eq!(misses(&simulation.ends(2)), 2);
        assert_eq!(simulation.ends(7), Counts::default(), "it made no records");
        assert_eq!(misses(&simulation.finish().counts), 1, "image 0, whose end was not announced");
    }

    #[test]
    fn numbers_of_a_tools_run_are_those_of_the_run() {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64));
        let mut simulation = Simulation::new(&levels, WriteBacks::Ignored).unwrap();
        for (image, site) in [(0, 0), (1, 1), (1, 2)] {
            simulation.starts(image);
            let address = 0x1000 * u64::from(1 + site);
            simulation.records(0, &[Record::new(RecordKind::Load, 8, site, address).unwrap()]);
        }
        let counts = simulation.finish().counts;
        assert_eq!(counts.sites.iter().map(|site| site.loads[0]).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
