//! Counts one region of a program: the marker of `--region`.

use crate::run::block_order::region::{Marker as RegionMark, Regions, State};
use instrument::mark::{Answer, Birth, Deed, Mark, MarkedThread, Marker, ProgramMemory};
use instrument::Module;
use std::cell::RefCell;
use std::rc::Rc;

/// Opens what a thread counts while the wanted region is open in it.
pub struct RegionMarker {
    regions: Regions,
}

impl RegionMarker {
    /// A marker that counts region `name`.
    pub fn new(name: &str) -> Rc<RefCell<RegionMarker>> {
        Rc::new(RefCell::new(RegionMarker { regions: Regions::new(name) }))
    }

    /// The regions that the program has passed.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    fn pass(&mut self, thread: u32, mark: &RegionMark) -> Vec<Deed> {
        let before = self.regions.state(thread);
        match (before, self.regions.pass(thread, mark)) {
            (State::Closed, State::Open) => vec![Deed::Open(thread)],
            (State::Open, State::Closed) => vec![Deed::Close(thread)],
            _ => Vec::new(),
        }
    }
}

impl Marker for RegionMarker {
    fn setting(&self) -> String {
        String::new()
    }

    fn entries(&mut self, _module: &Module) -> Vec<u64> {
        Vec::new()
    }

    fn starts(&mut self, thread: &MarkedThread, birth: Birth) -> Vec<Deed> {
        let Birth::Forked(maker) = birth else { return Vec::new() };
        self.regions.inherit(maker, thread.thread);
        match self.regions.state(thread.thread) {
            State::Open => vec![Deed::Open(thread.thread)],
            State::Closed => Vec::new(),
        }
    }

    fn reached(&mut self, thread: &MarkedThread, mark: &Mark, _: &dyn ProgramMemory) -> Answer {
        let deeds = match mark {
            Mark::RegionOpens(name) => self.pass(thread.thread, &RegionMark::Opens(name.clone())),
            Mark::RegionCloses(name) => self.pass(thread.thread, &RegionMark::Closes(name.clone())),
            _ => Vec::new(),
        };
        Answer { deeds, ..Answer::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoMemory;

    impl ProgramMemory for NoMemory {
        fn read(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
        fn write(&self, _: u64, _: &[u8]) -> usize {
            0
        }
    }

    #[test]
    fn the_outermost_mark_counts_and_a_forked_thread_inherits() {
        let marker = RegionMarker::new("a");
        let thread = |number| MarkedThread { image: 0, thread: number, pid: 0 };
        let pass = |number, mark: Mark| marker.borrow_mut().reached(&thread(number), &mark, &NoMemory).deeds;
        let (opens, closes) = (|| Mark::RegionOpens("a".into()), || Mark::RegionCloses("a".into()));
        assert_eq!(pass(1, opens()), [Deed::Open(1)]);
        assert!(pass(1, opens()).is_empty() && pass(1, Mark::RegionOpens("b".into())).is_empty());
        assert!(pass(1, closes()).is_empty());
        assert_eq!(marker.borrow_mut().starts(&thread(2), Birth::Forked(1)), [Deed::Open(2)]);
        assert!(marker.borrow_mut().starts(&thread(3), Birth::Cloned).is_empty());
        assert_eq!((pass(1, closes()), pass(2, closes())), (vec![Deed::Close(1)], vec![Deed::Close(2)]));
    }
}
