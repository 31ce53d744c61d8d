//! The simulator that levels ask for: the fast one where they are plain, else the one that can do
//! everything.

use crate::{
    Counts, GeometryError, Hierarchy, Levels, LocatedMisses, MissIntervals, Refined, Shelf, WriteBacks,
};
use event::{Record, Sink, Stream, Upcoming};

/// A hierarchy of any levels.
pub enum Simulator {
    /// LRU, independent levels, no prefetchers, pages of one size.
    Plain(Box<Hierarchy>),
    /// Anything.
    Refined(Box<Refined>),
}

impl Simulator {
    /// An empty hierarchy for a stream that was planned for `levels`.
    ///
    /// # Errors
    /// When the levels cannot be simulated.
    pub fn of_stream(
        levels: &Levels,
        stream: &Stream,
        write_backs: WriteBacks,
    ) -> Result<Simulator, GeometryError> {
        levels.check()?;
        if levels.is_plain() {
            let hierarchy = Hierarchy::of_stream(levels, stream)?;
            return Ok(Simulator::Plain(Box::new(match write_backs {
                WriteBacks::Counted => hierarchy.counting_write_backs(),
                WriteBacks::Ignored => hierarchy,
            })));
        }
        let refined = Refined::new(levels)?;
        Ok(Simulator::Refined(Box::new(match write_backs {
            WriteBacks::Counted => refined.counting_traffic(),
            WriteBacks::Ignored => refined,
        })))
    }

    /// Has a plain simulator count each thread by itself; changes nothing in another one. Call it
    /// before the first record.
    #[must_use]
    pub fn by_thread(self) -> Simulator {
        match self {
            Simulator::Plain(hierarchy) => Simulator::Plain(Box::new(hierarchy.by_thread())),
            refined @ Simulator::Refined(_) => refined,
        }
    }

    /// An empty simulator with the settings of this one, where its memory can be used again; cheap
    /// where little of it was used.
    pub fn emptied(self) -> Option<Simulator> {
        match self {
            Simulator::Plain(hierarchy) => Some(Simulator::Plain(Box::new(hierarchy.emptied()))),
            Simulator::Refined(_) => None,
        }
    }

    /// Frees the caches of a thread that makes no more records. Returns what it counted if threads
    /// are counted separately; [`Simulator::counts`] still includes it.
    pub fn end_thread(&mut self, thread: u32) -> Option<Counts> {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.end_thread(thread),
            Simulator::Refined(refined) => {
                refined.end_thread(thread);
                None
            }
        }
    }

    /// What was counted so far by each thread that has not ended, by number; empty where threads
    /// are not told apart.
    pub fn counts_of_threads(&self) -> Vec<(u32, Counts)> {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.counts_of_threads(),
            Simulator::Refined(_) => Vec::new(),
        }
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.records(thread, records),
            Simulator::Refined(refined) => refined.records(thread, records),
        }
    }

    /// Takes records of one thread, and prefetches those that the thread receives next, where it is
    /// fast enough to wait for them.
    pub fn records_before(&mut self, thread: u32, records: &[Record], next: Upcoming) {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.records_before(thread, records, next),
            Simulator::Refined(refined) => refined.records(thread, records),
        }
    }

    /// Takes records of one thread, of which `intervals` knows the intervals, and counts their
    /// misses in the caches there. A simulator of levels that are not plain counts none there.
    pub fn records_divided(&mut self, thread: u32, records: &[Record], intervals: &mut MissIntervals) {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.records_divided(thread, records, intervals),
            Simulator::Refined(refined) => refined.records(thread, records),
        }
    }

    /// Takes records of one thread, and lists the references that missed in `located`, which is
    /// emptied first.
    pub fn records_located(&mut self, thread: u32, records: &[Record], located: &mut LocatedMisses) {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.records_located(thread, records, located),
            Simulator::Refined(refined) => refined.records_located(thread, records, located),
        }
    }

    /// Exchanges the tables of misses and complex references with those of the shelf. Threads must
    /// be counted together.
    pub fn exchange(&mut self, shelf: &mut Shelf) {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.exchange(&mut shelf.tally),
            Simulator::Refined(refined) => refined.exchange(&mut shelf.counts),
        }
    }

    /// Empties the caches of a plain simulator and keeps what it has counted; returns whether it
    /// did. Threads must be counted together.
    pub fn empty_caches(&mut self) -> bool {
        match self {
            Simulator::Plain(hierarchy) => {
                hierarchy.empty_caches();
                true
            }
            Simulator::Refined(_) => false,
        }
    }

    /// What was counted, of a simulator whose records have ended: it must be
    /// [emptied](Simulator::emptied) before it is used again.
    pub fn take_counts(&mut self) -> Counts {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.take_counts(),
            Simulator::Refined(refined) => refined.counts(),
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        match self {
            Simulator::Plain(hierarchy) => hierarchy.counts(),
            Simulator::Refined(refined) => refined.counts(),
        }
    }
}

impl Sink for Simulator {
    fn records(&mut self, thread: u32, records: &[Record]) {
        Simulator::records(self, thread, records);
    }
}
