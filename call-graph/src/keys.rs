//! The edges of an image: numbers for pairs of a block and the address to which it leads.

use super::stack::{CalleeKind, Known, NO_STUB};
use instrument::call::{stub_number, DirectTarget};
use instrument::Module;
use std::ops::Range;
use symbol::{ByNumber, FunctionRange, Symbolizer};

/// A block and the address to which it leads.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) block: u32,
    pub(super) target: u64,
    known: Known,
}

/// The edge that a block used last.
#[derive(Clone, Copy)]
struct Last {
    target: u64,
    known: Known,
}

/// No target of a call.
const NOWHERE: u64 = u64::MAX;

impl Last {
    const NONE: Last = Last { target: NOWHERE, known: Known::NONE };
}

/// Where the direct call or jump of a block leads.
#[derive(Clone, Copy)]
struct Direct {
    target: u64,
    /// What a call opens, once it was used: an edge, and the edge to the stub before it.
    opened: (u32, Known),
    /// The state of stubs for which that holds: the number of one, [`ALWAYS`], or 0 for none.
    bound: u64,
}

impl Direct {
    fn to(target: u64) -> Direct {
        Direct { target, opened: (NO_STUB, Known::NONE), bound: 0 }
    }
}

/// The number of every state of stubs.
pub(super) const ALWAYS: u64 = u64::MAX;

/// All edges of an image.
#[derive(Default)]
pub(super) struct EdgeTable {
    pub(super) all: Vec<Key>,
    /// By edge: the first address of the callee's function, and its bytes.
    extents: Vec<(u64, u64)>,
    /// By edge whose callee is a stub: the edge that last took its place, with its target.
    behind: Vec<Last>,
    /// By block: where its direct call or jump leads.
    direct: Vec<Direct>,
    numbers: ByNumber<(u32, u64), u32>,
    /// By block.
    last: Vec<Last>,
    /// Edges that were used lately, by some bits of block and target: indirect calls and jumps
    /// seldom go twice to one target.
    lately: Vec<Lately>,
    /// How many states of the stubs of threads there were.
    bindings: u64,
}

/// An edge that was used lately.
#[derive(Clone, Copy)]
struct Lately {
    block: u32,
    last: Last,
}

impl EdgeTable {
    /// Enters an edge to a function that begins at the target and has this number of bytes.
    #[cfg(test)]
    pub(super) fn enter(
        &mut self,
        block: u32,
        (target, bytes): (u64, u64),
        (function, kind): (u32, CalleeKind),
    ) {
        let known = Known::new(self.all.len() as u32, function, kind);
        self.all.push(Key { block, target, known });
        self.extents.push((target, bytes));
        self.numbers.insert((block, target), known.edge);
    }

    /// Notes where direct calls and jumps lead.
    pub(super) fn add_targets(&mut self, more: &[DirectTarget]) {
        for &DirectTarget { block, target } in more {
            grow(&mut self.direct, block, Direct::to(NOWHERE));
            self.direct[block as usize] = Direct::to(target);
        }
    }

    /// The number of another state of the stubs of a thread.
    pub(super) fn next_binding(&mut self) -> u64 {
        self.bindings += 1;
        self.bindings
    }
}

/// Makes room for the element at `index` of a table.
fn grow<T: Clone>(table: &mut Vec<T>, index: u32, empty: T) {
    if table.len() <= index as usize {
        table.resize((index as usize + 1).next_power_of_two(), empty);
    }
}

/// Number of edges that were used lately.
const LATELY: usize = 1 << 12;

/// The edges of an image, with what finds the functions of new ones.
pub(super) struct Keys<'a> {
    pub(super) table: &'a mut EdgeTable,
    pub(super) symbols: &'a mut Symbolizer,
    pub(super) modules: &'a [Module],
}

impl Keys<'_> {
    /// The edge from a block to an address.
    #[inline(always)]
    pub(super) fn find(&mut self, block: u32, target: u64) -> Known {
        match self.table.last.get(block as usize) {
            Some(last) if last.target == target => last.known,
            _ => self.look_up(block, target),
        }
    }

    /// What a block's direct call opens, if that is known for this state of stubs: an edge, behind
    /// the edge to a stub or [`NO_STUB`].
    #[inline(always)]
    pub(super) fn called(&self, block: u32, bound: u64) -> Option<(u32, Known)> {
        let direct = self.table.direct.get(block as usize)?;
        // Calls of stubs and others come in no order: one branch for both.
        ((direct.bound == bound) | (direct.bound == ALWAYS)).then_some(direct.opened)
    }

    /// Notes what a block's direct call opens while stubs are in this state.
    pub(super) fn note_called(&mut self, block: u32, opened: (u32, Known), bound: u64) {
        if let Some(direct) = self.table.direct.get_mut(block as usize) {
            (direct.opened, direct.bound) = (opened, bound);
        }
    }

    /// The target of a block's direct call or jump.
    #[inline(always)]
    pub(super) fn direct_target(&self, block: u32) -> Option<u64> {
        let target = self.table.direct.get(block as usize)?.target;
        (target != NOWHERE).then_some(target)
    }

    /// The edge that took the place of a stub's when the stub last jumped to an address.
    #[inline(always)]
    pub(super) fn behind_stub(&self, edge: u32, target: u64) -> Option<Known> {
        let behind = self.table.behind.get(edge as usize)?;
        (behind.target == target).then_some(behind.known)
    }

    /// Notes the edge that takes the place of a stub's when the stub jumps to an address.
    pub(super) fn note_behind_stub(&mut self, edge: u32, target: u64, known: Known) {
        grow(&mut self.table.behind, edge, Last::NONE);
        self.table.behind[edge as usize] = Last { target, known };
    }

    /// Whether an address belongs to the function to which an edge leads.
    #[inline(always)]
    pub(super) fn is_within(&self, edge: u32, address: u64) -> bool {
        self.table
            .extents
            .get(edge as usize)
            .is_some_and(|(start, bytes)| address.wrapping_sub(*start) < *bytes)
    }

    /// Whether the address of an edge is where its function begins.
    pub(super) fn begins_function(&self, edge: u32) -> bool {
        let EdgeTable { all, extents, .. } = &*self.table;
        let edge = edge as usize;
        all.get(edge).zip(extents.get(edge)).is_some_and(|(key, (start, _))| key.target == *start)
    }

    /// What is known of an edge.
    pub(super) fn known(&self, edge: u32) -> Known {
        self.table.all[edge as usize].known
    }

    /// The number of the stub to which an edge leads.
    #[inline(always)]
    pub(super) fn stub_of(&self, edge: u32) -> u32 {
        stub_number(self.table.all[edge as usize].target)
    }

    /// The block from which an edge leads.
    pub(super) fn block_of(&self, edge: u32) -> u32 {
        self.table.all[edge as usize].block
    }

    #[inline(never)]
    fn look_up(&mut self, block: u32, target: u64) -> Known {
        if self.table.lately.is_empty() {
            self.table.lately = vec![Lately { block: 0, last: Last::NONE }; LATELY];
        }
        let slot = (target ^ target >> 12 ^ u64::from(block) << 3) as usize % LATELY;
        let lately = self.table.lately[slot];
        if lately.block == block && lately.last.target == target {
            return lately.last.known;
        }
        let known = match self.table.numbers.get(&(block, target)) {
            Some(&edge) => self.table.all[edge as usize].known,
            None => self.new_edge(block, target),
        };
        self.table.lately[slot] = Lately { block, last: Last { target, known } };
        grow(&mut self.table.last, block, Last::NONE);
        self.table.last[block as usize] = Last { target, known };
        known
    }

    fn new_edge(&mut self, block: u32, target: u64) -> Known {
        let (range, function, kind) = self.callee_at(target);
        let edge = self.table.all.len() as u32;
        let known = Known::new(edge, function, kind);
        self.table.all.push(Key { block, target, known });
        self.table.extents.push((range.start, range.end.saturating_sub(range.start)));
        self.table.numbers.insert((block, target), edge);
        known
    }

    /// The function at an address. What no module has is one function.
    fn callee_at(&mut self, target: u64) -> (Range<u64>, u32, CalleeKind) {
        let module = self.modules.iter().rev().find(|module| (module.start..module.end).contains(&target));
        let Some(module) = module else { return (0..0, 0, CalleeKind::Function) };
        let FunctionRange { function, range } = self.symbols.function_at(module, target);
        let name = self.symbols.functions()[function].name.as_str();
        let kind = match name {
            _ if name.starts_with("_dl_runtime_resolve") => CalleeKind::Resolver,
            _ if is_stub(name) => CalleeKind::Stub,
            _ => CalleeKind::Function,
        };
        // Number 0 is that of unknown code.
        (range, function as u32 + 1, kind)
    }
}

/// Whether a function of this name is a stub of the linkage table.
pub fn is_stub(name: &str) -> bool {
    name.ends_with("@plt") || name.ends_with(".plt")
}
