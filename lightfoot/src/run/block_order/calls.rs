//! Costs by calling context and by time.
//!
//! A *cell* is a calling context within a slice of time, which is measured in instructions. Records
//! get the number of the cell in the place of the site's number, so that a simulation that counts
//! by number counts by cell. Slices are short at first; when there are too many, they double in
//! length.

use super::stack::{Context, Contexts, Node, Stack, Step};
use super::{with_number, Accumulator};
use event::{Record, RecordKind, CUT_SITE};
use instrument::tool::BlockView;
use simulate::distance::WorkingSet;
use simulate::Counts;
use symbol::ByNumber;

/// The most slices.
const SLICES_MAX: u64 = 1024;
/// Instructions of the first slices.
const SLICE_START: u64 = 1 << 12;

/// An empty working set with the slices of calls.
pub(super) fn working_set(line_bytes: u32) -> WorkingSet {
    WorkingSet::new(line_bytes, SLICE_START, SLICES_MAX as usize)
}

/// The costs of one execution of a block, without misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Instructions.
    pub instructions: u64,
    /// Blocks.
    pub blocks: u64,
    /// Loads with listed addresses; others are counted from their records.
    pub loads: u64,
    /// Stores with listed addresses.
    pub stores: u64,
}

impl Costs {
    /// The costs of `block`.
    pub(super) fn of(block: &BlockView<'_>) -> Costs {
        let count = |wanted: [RecordKind; 2]| {
            let touches = block.instructions().flat_map(|instruction| instruction.touches());
            touches.filter(|touch| wanted.contains(&touch.kind)).count() as u64
        };
        Costs {
            instructions: block.instructions().len() as u64,
            blocks: 1,
            loads: count([RecordKind::Load, RecordKind::Modify]),
            stores: count([RecordKind::Store, RecordKind::Modify]),
        }
    }

    fn add(&mut self, other: &Costs) {
        self.instructions += other.instructions;
        self.blocks += other.blocks;
        self.loads += other.loads;
        self.stores += other.stores;
    }
}

/// A calling context within a slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The context; 0 outside of any function, and outside of the region to count.
    pub node: Node,
    /// Instructions before the beginning of the slice.
    pub start: u64,
    /// The costs of its blocks.
    pub costs: Costs,
}

/// The results of following calls.
pub struct Called {
    /// The contexts.
    pub contexts: Contexts,
    /// Cells; their numbers are those of [`Called::counts`].
    pub cells: Vec<Cell>,
    /// Misses and complex references, by cell instead of site and block.
    pub counts: Counts,
    /// Instructions of a slice.
    pub slice: u64,
}

/// The state of following calls.
pub(super) struct Calls {
    contexts: Contexts,
    sums: Accumulator,
    cells: Vec<Cell>,
    /// The cells of the current slice, by context.
    numbers: ByNumber<Node, u32>,
    /// The context and cell of the last look-up.
    last: Option<(Node, u32)>,
    slice: u64,
    /// The number of instructions at which the current slice ends.
    slice_end: u64,
    instructions: u64,
    records: Vec<Record>,
    /// Instruction fetches whose block has not begun yet: the index of the record, and the block's
    /// number.
    ahead: Vec<(usize, u32)>,
}

impl Calls {
    pub(super) fn new(sums: Accumulator) -> Calls {
        Calls {
            contexts: Contexts::default(),
            sums,
            // Cell 0 is for everything outside of the region to count.
            cells: vec![Cell::default()],
            numbers: ByNumber::default(),
            last: None,
            slice: SLICE_START,
            slice_end: SLICE_START,
            instructions: 0,
            records: Vec::new(),
            ahead: Vec::new(),
        }
    }

    pub(super) fn starts(&mut self, image: u32) {
        self.sums.starts(image);
    }

    /// Instructions that counted so far.
    pub(super) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Enters a block and returns its cell. Without `costs` the block is not counted.
    pub(super) fn enter(&mut self, stack: &mut Stack, step: Step, costs: Option<Costs>) -> u32 {
        let node = stack.step(step, &mut self.contexts);
        let Some(costs) = costs else { return 0 };
        if self.instructions >= self.slice_end {
            self.next_slice();
        }
        self.instructions += costs.instructions;
        let cell = self.cell(node);
        self.cells[cell as usize].costs.add(&costs);
        cell
    }

    fn next_slice(&mut self) {
        if self.instructions >= self.slice * SLICES_MAX {
            self.slice *= 2;
        }
        self.slice_end = (self.instructions / self.slice + 1) * self.slice;
        self.numbers.clear();
        self.last = None;
    }

    fn cell(&mut self, node: Node) -> u32 {
        if let Some((_, cell)) = self.last.filter(|(last, _)| *last == node) {
            return cell;
        }
        let start = self.slice_end - self.slice;
        let cells = &mut self.cells;
        let cell = *self.numbers.entry(node).or_insert_with(|| {
            // A number must fit into a record. If there were more cells, which no run has needed so
            // far, costs would go to the last one.
            if cells.len() < CUT_SITE {
                cells.push(Cell { node, start, costs: Costs::default() });
            }
            cells.len() as u32 - 1
        });
        self.last = Some((node, cell));
        cell
    }

    /// Adds a record of a thread that is in `cell`.
    pub(super) fn record(&mut self, record: Record, cell: u32) {
        if matches!(record.code().kind(), RecordKind::Fetch | RecordKind::FetchPage | RecordKind::Block) {
            self.ahead.push((self.records.len(), record.site() as u32));
        }
        self.records.push(with_number(record, cell));
    }

    /// Block `number` has begun in `cell`: assigns the fetches that were recorded for it.
    pub(super) fn entered(&mut self, number: u32, cell: u32) {
        if self.ahead.is_empty() {
            return;
        }
        for (at, block) in self.ahead.drain(..) {
            if block == number {
                self.records[at] = with_number(self.records[at], cell);
            }
        }
    }

    /// Passes the collected records of a thread on.
    pub(super) fn flush(&mut self, thread: u32) {
        self.sums.records(thread, &self.records);
        self.records.clear();
        self.ahead.clear();
    }

    pub(super) fn finish(self) -> Called {
        Called {
            contexts: self.contexts,
            cells: self.cells,
            counts: self.sums.finish().counts,
            slice: self.slice,
        }
    }
}

impl Called {
    /// The contexts, parents first.
    pub fn nodes(&self) -> &[Context] {
        self.contexts.nodes()
    }
}
