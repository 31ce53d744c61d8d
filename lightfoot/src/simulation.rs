//! The simulation of a run: a hierarchy for each process image, and what all of them counted.
//!
//! An exec gives the program a new address space: the same address is other memory, so caches start empty. Sites and blocks are numbered anew in each
//! image; the run's profile says where its numbers begin, and [`join`] puts the counts there.

use anyhow::{anyhow, Result};
use event::Record;
use simulate::{plan_levels, Counts, Hierarchy, Levels, WriteBacks};

/// Hierarchies of one run, one after the other.
pub struct Simulation {
    levels: Levels,
    write_backs: WriteBacks,
    hierarchy: Hierarchy,
    image: u32,
    ended: Vec<(u32, Counts)>,
}

impl Simulation {
    /// Empty caches, for the stream that is planned for them.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn new(levels: &Levels, write_backs: WriteBacks) -> Result<Simulation> {
        levels.check().map_err(|error| anyhow!("{error}"))?;
        let hierarchy = empty(levels, write_backs);
        Ok(Simulation { levels: levels.clone(), write_backs, hierarchy, image: 0, ended: Vec::new() })
    }

    /// Takes records of one thread.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        self.hierarchy.records(thread, records);
    }

    /// The records that follow are those of this image.
    pub fn starts(&mut self, image: u32) {
        if image == self.image {
            return;
        }
        let new = empty(&self.levels, self.write_backs);
        let former = std::mem::replace(&mut self.hierarchy, new);
        self.ended.push((std::mem::replace(&mut self.image, image), former.counts()));
    }

    /// What was counted, by image.
    pub fn finish(mut self) -> Vec<(u32, Counts)> {
        self.ended.push((self.image, self.hierarchy.counts()));
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
    fn numbers_that_run_on_are_left_where_they_are() {
        let site = |loads| simulate::SiteMisses { loads: [loads, 0, 0], ..Default::default() };
        let counts = |sites| Counts { sites, ..Counts::default() };
        let images = [(0, counts(vec![site(5)])), (1, counts(vec![site(0), site(7)]))];
        assert_eq!(join(&images, |_| (0, 0)).sites, [site(5), site(7)]);
    }
}
