//! What the caches have counted, while they run and at their end.

use super::{CoherentCaches, Core};
use crate::counts::{Pair, Results, SharedLine, Touched};

impl CoherentCaches {
    /// How many lines are shared, and how many places have met. A caller that watches these can say
    /// what lies at an address while it lies there.
    pub fn met(&self) -> (usize, usize) {
        (self.shared.len(), self.pairs.len())
    }

    /// The pairs so far, with undecided misses in no column.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The address of a shared line.
    pub fn address(&self, shared: usize) -> u64 {
        self.lines[self.shared_lines[shared]].number << self.line_shift
    }

    /// Empties all caches and forgets all lines, as when the program executes another one; the
    /// counts stay.
    pub fn forget(&mut self) {
        (0..self.copies.len() as u32).for_each(|copy| self.is_false(copy));
        self.lines.forget();
        for core in 0..self.cores.len() {
            let counts = self.cores[core].counts;
            self.cores[core] = Core { counts, ..self.empty_core() };
        }
    }

    /// Decides all misses that are open, and returns the results.
    pub fn finish(mut self) -> Results {
        (0..self.copies.len() as u32).for_each(|copy| self.is_false(copy));
        let mut results = Results {
            line_bytes: self.levels.first.line_bytes,
            cores: self.cores.iter().map(|core| core.counts).collect(),
            pairs: self.pairs.clone(),
            sites: self.sites.clone(),
            ..Results::default()
        };
        results.cores.iter().for_each(|core| results.total.add(core));
        for (shared, counts) in self.shared.iter().enumerate() {
            let touched = self.touched(self.shared_lines[shared]);
            results.lines.push(SharedLine { address: self.address(shared), counts: *counts, touched });
        }
        results
    }

    /// The cores that have touched a line.
    fn touched(&self, line: u32) -> Vec<Touched> {
        let first = self.lines[line].copy;
        let touched = std::iter::once(first).chain(self.others(first)).map(|copy| {
            let copy = &self.copies[copy as usize];
            Touched { core: copy.core.into(), read: copy.read, written: copy.written | copy.fresh }
        });
        let mut all: Vec<Touched> = touched.collect();
        all.sort_unstable_by_key(|touched| touched.core);
        all
    }
}
