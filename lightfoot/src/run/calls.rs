//! Calls for reports: contexts and slices of time with their costs.
//!
//! Misses arrive by cell, in tables that a simulation otherwise uses for sites and blocks; here
//! they become costs of the cell's context and of its slice.

use crate::cli::Rep;
use crate::run::block_order::calls::Called;
use crate::run::block_order::stack::{Back, Context};
use crate::run::tally::{Attribution, Counts};
use present::order::SortRows;

/// The costs of a context within a slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Index into [`Calls::slices`].
    pub slice: usize,
    /// Index into [`Calls::contexts`].
    pub node: u32,
    /// Its costs there.
    pub counts: Counts,
}

/// Calls of a run.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Contexts, parents first; the first is the root.
    pub contexts: Vec<Context>,
    /// The own costs of each context.
    pub own: Vec<Counts>,
    /// Recursive calls, and how often each was made.
    pub backs: Vec<(Back, u64)>,
    /// The costs of each slice of time.
    pub slices: Vec<Counts>,
    /// The costs of each context in each slice, in order of time.
    pub samples: Vec<Sample>,
    /// Instructions of a slice; the last may be shorter.
    pub slice_instructions: u64,
}

impl Calls {
    /// The functions of a context, the innermost first.
    pub fn functions_of(&self, context: u32) -> impl Iterator<Item = u32> + '_ {
        let inner = (context > 0).then_some(context);
        let outwards =
            |context: &u32| Some(self.contexts[*context as usize].parent).filter(|&parent| parent > 0);
        std::iter::successors(inner, outwards).map(|context| self.contexts[context as usize].function)
    }

    /// Makes it from the results of an analysis; `misses` are by cell, and `rep` says how repeated
    /// instructions count.
    pub fn new(called: &Called, misses: Option<&Attribution>, rep: Rep) -> Calls {
        let empty = Counts { misses: misses.map(|attribution| attribution.none), ..Counts::default() };
        let mut cells: Vec<Counts> = called.cells.iter().map(|_| empty).collect();
        for (counts, cell) in cells.iter_mut().zip(&called.cells) {
            let calls = cell.costs;
            (counts.instructions, counts.blocks) = (calls.instructions, calls.blocks);
            (counts.loads, counts.stores) = (calls.loads, calls.stores);
        }
        for (counts, complex) in cells.iter_mut().zip(&called.counts.complex) {
            counts.loads += complex.loads;
            counts.stores += complex.stores;
            counts.instructions += rep.more(complex);
        }
        let by_cell = misses
            .into_iter()
            .flat_map(|attribution| attribution.by_site.iter().chain(&attribution.by_block));
        for (cell, misses) in by_cell {
            if let Some(counts) = cells.get_mut(*cell as usize) {
                counts.add(&Counts { misses: Some(*misses), ..Counts::default() });
            }
        }
        let mut backs: Vec<(Back, u64)> =
            called.contexts.backs.iter().map(|(back, times)| (*back, *times)).collect();
        backs.sort_rows_by_key(|back| *back);
        let mut calls = Calls {
            contexts: called.nodes().to_vec(),
            own: vec![empty; called.nodes().len()],
            backs,
            slices: Vec::new(),
            samples: Vec::new(),
            slice_instructions: called.slice,
        };
        // Cell 0 holds records outside of the region to count.
        for (cell, counts) in called.cells.iter().zip(&cells).skip(1) {
            calls.own[cell.node as usize].add(counts);
            let slice = (cell.start / called.slice) as usize;
            if calls.slices.len() <= slice {
                calls.slices.resize(slice + 1, empty);
            }
            calls.slices[slice].add(counts);
            calls.samples.push(Sample { slice, node: cell.node, counts: *counts });
        }
        calls
    }

    /// The inclusive costs of each context.
    pub fn inclusive(&self) -> Vec<Counts> {
        let mut all = self.own.clone();
        for node in (1..all.len()).rev() {
            let counts = all[node];
            all[self.contexts[node].parent as usize].add(&counts);
        }
        all
    }
}
