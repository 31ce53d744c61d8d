//! The simulation of a run: a hierarchy for each process image, and the counts of all of them.
//!
//! An exec gives the program a new address space in which an address is other memory, so caches
//! start empty. They also start empty in a forked child, whose memory is a copy. Images of several
//! processes take turns, each in its own caches. Each image numbers its sites and blocks from 0;
//! the profile says where an image's numbers begin in the whole run, and [`join`] puts the counts
//! there.

use crate::run::distances::Distances;
use anyhow::{anyhow, Result};
use event::{Record, Stream};
use instrument::Threads;
use simulate::distance::MissCurve;
use simulate::{plan_levels, Counts, Levels, Simulator, WriteBacks};
use std::collections::HashMap;

/// Counts by the number of a process image or of a thread.
pub type Numbered = Vec<(u32, Counts)>;

/// The results of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Counts by image; images without records may be missing.
    pub images: Numbered,
    /// Counts by thread, if threads are counted separately.
    pub threads: Numbered,
    /// The miss curve of all images together, if requested.
    pub curve: Option<MissCurve>,
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
        Simulator::check(levels, write_backs).map_err(|error| anyhow!("{error}"))?;
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
        if let Some(distances) = &self.distances {
            distances.records(self.image, thread, records);
        }
        let Simulation { levels, stream, write_backs, threads, spare, hierarchy, .. } = self;
        let empty = || {
            let emptied = spare.take().and_then(Simulator::emptied);
            emptied.unwrap_or_else(|| empty(levels, stream, *write_backs, *threads))
        };
        hierarchy.get_or_insert_with(empty).records(thread, records);
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

    /// Says that no more records of this image follow, which frees its caches.
    pub fn ends(&mut self, image: u32) {
        let hierarchy = if image == self.image { self.hierarchy.take() } else { self.waiting.remove(&image) };
        self.distances.iter().for_each(|distances| distances.ends(image));
        let Some(hierarchy) = hierarchy else { return };
        self.note(image, &hierarchy);
        self.spare = Some(hierarchy);
    }

    fn note(&mut self, image: u32, hierarchy: &Simulator) {
        self.ended.images.push((image, hierarchy.counts()));
        self.ended.threads.extend(hierarchy.counts_of_threads());
    }

    /// Returns the results.
    pub fn finish(mut self) -> Simulated {
        let last = self.hierarchy.take().map(|hierarchy| (self.image, hierarchy));
        let left: Vec<(u32, Simulator)> = std::mem::take(&mut self.waiting).into_iter().chain(last).collect();
        left.iter().for_each(|(image, hierarchy)| self.note(*image, hierarchy));
        self.ended.images.sort_unstable_by_key(|(image, _)| *image);
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

/// The counts of all images together; `first` returns an image's first site and block.
pub fn join(images: Numbered, first: impl Fn(u32) -> (usize, usize)) -> Counts {
    let mut all = Counts::default();
    for (image, counts) in images {
        let (site, block) = first(image);
        put(&mut all.sites, site, counts.sites);
        put(&mut all.blocks, block, counts.blocks);
        put(&mut all.complex, site, counts.complex);
        all.damaged += counts.damaged;
        if let Some(more) = counts.write_backs {
            let sums = all.write_backs.get_or_insert_default();
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    all
}

/// Copies `entries` to the table from index `first` on; entries of 0 change nothing.
fn put<T: Clone + Default + PartialEq>(table: &mut Vec<T>, first: usize, entries: Vec<T>) {
    if table.is_empty() && first == 0 {
        *table = entries;
        return;
    }
    if table.len() < first + entries.len() {
        table.resize(first + entries.len(), T::default());
    }
    for (to, entry) in table[first..].iter_mut().zip(entries).filter(|(_, entry)| *entry != T::default()) {
        *to = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::RecordKind;
    use simulate::Geometry;

    #[test]
    fn an_image_starts_with_empty_caches_and_its_own_numbers() {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64));
        let mut simulation = Simulation::new(&levels, WriteBacks::Counted).unwrap();
        let load = [Record::new(RecordKind::Load, 8, 3, 0x1000).unwrap()];
        simulation.records(0, &load);
        simulation.records(0, &load);
        simulation.starts(1);
        simulation.records(1, &load);
        let counts = join(simulation.finish().images, |image| (10 * image as usize, 0));
        let misses: Vec<u64> = counts.sites.iter().map(|site| site.loads[0]).collect();
        assert_eq!((misses[3], misses[13], misses.iter().sum::<u64>()), (1, 1, 2));
        assert_eq!(counts.write_backs, Some([0; 3]));
    }

    #[test]
    fn images_that_take_turns_keep_their_caches() {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64));
        let mut simulation = Simulation::new(&levels, WriteBacks::Ignored).unwrap();
        let load = |address| [Record::new(RecordKind::Load, 8, 0, address).unwrap()];
        for (image, address) in [(0, 0x1000), (2, 0x1000), (0, 0x1000), (1, 0x1000), (2, 0x1000), (2, 0x2000)]
        {
            simulation.starts(image);
            simulation.records(image, &load(address));
            if image == 1 {
                simulation.ends(1);
            }
        }
        simulation.ends(2);
        let counts = simulation.finish().images;
        let misses: Vec<(u32, u64)> =
            counts.iter().map(|(image, counts)| (*image, counts.sites[0].loads[0])).collect();
        assert_eq!(misses, [(0, 1), (1, 1), (2, 2)]);
    }

    #[test]
    fn numbers_that_run_on_are_left_where_they_are() {
        let site = |loads| simulate::SiteMisses { loads: [loads, 0, 0], ..Default::default() };
        let counts = |sites| Counts { sites, ..Counts::default() };
        let images = vec![(0, counts(vec![site(5)])), (1, counts(vec![site(0), site(7)]))];
        assert_eq!(join(images, |_| (0, 0)).sites, [site(5), site(7)]);
    }
}
