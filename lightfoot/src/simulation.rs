//! The simulation of a run: a hierarchy for each process image, and what all of them counted.
//!
//! An exec gives the program a new address space: the same address is other memory, so caches start empty; so they do in a forked child, whose
//! memory is a copy. Images of several processes take turns, each in its own caches. Sites and blocks are numbered anew in each
//! image; the run's profile says where its numbers begin, and [`join`] puts the counts there.

use anyhow::{anyhow, Result};
use event::Record;
use simulate::{plan_levels, Counts, Hierarchy, Levels, WriteBacks};
use std::collections::HashMap;

/// Hierarchies of one run.
pub struct Simulation {
    levels: Levels,
    write_backs: WriteBacks,
    /// Of the image whose records come, from its first one on.
    hierarchy: Option<Hierarchy>,
    image: u32,
    /// Of the other images that have not ended.
    waiting: HashMap<u32, Hierarchy>,
    ended: Vec<(u32, Counts)>,
}

impl Simulation {
    /// Empty caches, for the stream that is planned for them.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn new(levels: &Levels, write_backs: WriteBacks) -> Result<Simulation> {
        levels.check().map_err(|error| anyhow!("{error}"))?;
        let hierarchy = Some(empty(levels, write_backs));
        let levels = levels.clone();
        Ok(Simulation {
            levels,
            write_backs,
            hierarchy,
            image: 0,
            waiting: HashMap::new(),
            ended: Vec::new(),
        })
    }

    /// Takes records of one thread.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let hierarchy = self.hierarchy.get_or_insert_with(|| empty(&self.levels, self.write_backs));
        hierarchy.records(thread, records);
    }

    /// The records that follow are those of this image.
    pub fn starts(&mut self, image: u32) {
        if image == self.image {
            return;
        }
        let next = self.waiting.remove(&image);
        let former = std::mem::replace(&mut self.hierarchy, next);
        let number = std::mem::replace(&mut self.image, image);
        self.waiting.extend(former.map(|former| (number, former)));
    }

    /// No more records of this image follow: its caches are given back.
    pub fn ends(&mut self, image: u32) {
        let hierarchy = if image == self.image { self.hierarchy.take() } else { self.waiting.remove(&image) };
        self.ended.extend(hierarchy.map(|hierarchy| (image, hierarchy.counts())));
    }

    /// What was counted, by image; those that recorded nothing may be missing.
    pub fn finish(mut self) -> Vec<(u32, Counts)> {
        let left = self.waiting.into_iter().chain(self.hierarchy.map(|hierarchy| (self.image, hierarchy)));
        self.ended.extend(left.map(|(image, hierarchy)| (image, hierarchy.counts())));
        self.ended.sort_unstable_by_key(|(image, _)| *image);
        self.ended
    }
}

fn empty(levels: &Levels, write_backs: WriteBacks) -> Hierarchy {
    let stream = plan_levels(levels, write_backs).stream;
    let hierarchy = Hierarchy::of_stream(levels, &stream).expect("the levels were checked");
    match write_backs {
        WriteBacks::Counted => hierarchy.counting_write_backs(),
        WriteBacks::Ignored => hierarchy,
    }
}

/// All images together; `first` gives an image's first site and block.
pub fn join(images: &[(u32, Counts)], first: impl Fn(u32) -> (usize, usize)) -> Counts {
    let mut all = Counts::default();
    for (image, counts) in images {
        let (site, block) = first(*image);
        put(&mut all.sites, site, &counts.sites);
        put(&mut all.blocks, block, &counts.blocks);
        put(&mut all.complex, site, &counts.complex);
        all.damaged += counts.damaged;
        if let Some(more) = counts.write_backs {
            let sums = all.write_backs.get_or_insert_default();
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    all
}

/// Puts `entries` behind the first `first` ones; those that are not zero are of this image alone.
fn put<T: Clone + Default + PartialEq>(table: &mut Vec<T>, first: usize, entries: &[T]) {
    if table.len() < first + entries.len() {
        table.resize(first + entries.len(), T::default());
    }
    for (to, entry) in table[first..].iter_mut().zip(entries).filter(|(_, entry)| **entry != T::default()) {
        to.clone_from(entry);
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
        let counts = join(&simulation.finish(), |image| (10 * image as usize, 0));
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
        let counts = simulation.finish();
        let misses: Vec<(u32, u64)> =
            counts.iter().map(|(image, counts)| (*image, counts.sites[0].loads[0])).collect();
        assert_eq!(misses, [(0, 1), (1, 1), (2, 2)]);
    }

    #[test]
    fn numbers_that_run_on_are_left_where_they_are() {
        let site = |loads| simulate::SiteMisses { loads: [loads, 0, 0], ..Default::default() };
        let counts = |sites| Counts { sites, ..Counts::default() };
        let images = [(0, counts(vec![site(5)])), (1, counts(vec![site(0), site(7)]))];
        assert_eq!(join(&images, |_| (0, 0)).sites, [site(5), site(7)]);
    }
}
