//! The edges of an image: numbers for pairs of a block and the address to which it leads.

use super::stack::{CalleeKind, Known};
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
    const NONE: Last =
        Last { target: NOWHERE, known: Known { edge: 0, function: 0, kind: CalleeKind::Function } };
}

/// All edges of an image.
#[derive(Default)]
pub(super) struct EdgeTable {
    pub(super) all: Vec<Key>,
    /// By edge: the first address of the callee's function, and its bytes.
    extents: Vec<(u64, u64)>,
    numbers: ByNumber<(u32, u64), u32>,
    /// By block.
    last: Vec<Last>,
    /// Edges that were used lately, by some bits of block and target: indirect calls and jumps
    /// seldom go twice to one target.
    lately: Vec<Lately>,
}

/// An edge that was used lately.
#[derive(Clone, Copy)]
struct Lately {
    block: u32,
    last: Last,
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

    /// Whether an address belongs to the function to which an edge leads.
    #[inline(always)]
    pub(super) fn is_within(&self, edge: u32, address: u64) -> bool {
        self.table.extents.get(edge as usize).is_some_and(|(start, bytes)| address.wrapping_sub(*start) < *bytes)
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
        let last = &mut self.table.last;
        if last.len() <= block as usize {
            last.resize((block as usize + 1).next_power_of_two(), Last::NONE);
        }
        last[block as usize] = Last { target, known };
        known
    }

    fn new_edge(&mut self, block: u32, target: u64) -> Known {
        let (range, function, kind) = self.callee_at(target);
        let edge = self.table.all.len() as u32;
        let known = Known { edge, function, kind };
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
            _ if name.ends_with("@plt") || name.ends_with(".plt") => CalleeKind::Stub,
            _ => CalleeKind::Function,
        };
        // Number 0 is that of unknown code.
        (range, function as u32 + 1, kind)
    }
}
