//! Block-order analysis: calls, regions, branches, and the change of costs over time, which follow
//! from the order of blocks.
//!
//! **What.** A tool requests an event at the start of every block, in addition to the records that
//! a simulation needs. From the order of blocks follow the outcome of a branch ([`branch`]), the
//! calling context ([`stack`]) and whether a region is open ([`region`]). **Why this way.**
//! Counters know numbers of executions but not their order. An event per block takes 16 bytes and a
//! look-up, so such a run takes about five times as long as one without. The costs of contexts need
//! no changes in the simulator: a second simulation of the same stream gets the number of the
//! context in the place of the site's number, so it counts by context. **Leaves out** child
//! processes, for which tools do not run.

pub mod branch;
pub mod calls;
pub mod region;
pub mod stack;

use crate::run::observe::Counter;
use crate::run::simulation::{Simulated, Simulation};
use branch::{Branch, Predicted};
use calls::{Called, Calls};
use event::{Record, RecordKind, Stream, CUT_SITE};
use instrument::tool::{Batch, BlockView, Instrumenter, Program, Report, Summary, Tool, Transfer, Value};
use instrument::{Observer, Profile};
use region::{marker, Marker, Regions, State};
use simulate::distance::{MissCurve, WorkingSet};
use simulate::{Counts, Predictor, References, PREDICTORS};
use stack::{Ends, Entry, Step};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use symbol::Symbolizer;

/// The consumer of records: a simulation, or a counter of complex references.
pub enum Accumulator {
    /// Misses.
    Simulated(Box<Simulation>),
    /// Complex references only, which block counts do not include.
    Counted(Box<Counter>),
}

impl Accumulator {
    fn records(&mut self, thread: u32, records: &[Record]) {
        match self {
            Accumulator::Simulated(simulation) => simulation.records(thread, records),
            Accumulator::Counted(counter) => counter.records(thread, records),
        }
    }

    fn starts(&mut self, image: u32) {
        if let Accumulator::Simulated(simulation) = self {
            simulation.starts(image);
        }
    }

    /// The counts of all images together, with running numbers of sites and blocks, and the miss
    /// curve if the simulation has one.
    fn finish(self) -> Simulated {
        match self {
            Accumulator::Simulated(simulation) => simulation.finish(),
            Accumulator::Counted(counter) => {
                let counts = Counts { complex: counter.finish(), ..Counts::default() };
                Simulated { counts, ..Simulated::default() }
            }
        }
    }
}

/// The properties of a block that are known when it is translated.
#[derive(Clone, Debug, Default)]
struct BlockFacts {
    step: Step,
    costs: calls::Costs,
    branch: Option<Branch>,
    marker: Option<Marker>,
}

/// The state of one thread.
#[derive(Default)]
struct Thread {
    branches: branch::Thread,
    stack: stack::Stack,
    region: State,
    cell: u32,
}

/// The tool that makes the analysis.
pub struct BlockOrderAnalysis {
    stream: Stream,
    sums: Accumulator,
    blocks: Arc<Mutex<Vec<BlockFacts>>>,
    symbols: Arc<Mutex<Symbolizer>>,
    threads: HashMap<u32, Thread>,
    predicted: Option<Predicted>,
    predictor: fn() -> Predictor,
    regions: Option<Regions>,
    /// Blocks entered while the region was open, by number.
    executions: Vec<u64>,
    calls: Option<Calls>,
    touched: Option<WorkingSet>,
    records: Vec<Record>,
    lost: u64,
}

/// The results of block-order analysis.
pub struct BlockOrderFindings {
    /// Counts by site and block; if a region is counted, of the region only.
    pub counts: Counts,
    /// Branches, if requested.
    pub predicted: Option<Predicted>,
    /// Calls, if requested.
    pub called: Option<Called>,
    /// The miss curve, if requested.
    pub curve: Option<MissCurve>,
    /// Records that the simulation read, by kind.
    pub records: event::Counter,
    /// Memory touched in each slice of time, if requested.
    pub touched: Option<WorkingSet>,
    /// The region to count, if any.
    pub region: Option<Region>,
    /// The functions to which the numbers in [`Called`] refer.
    pub symbols: Symbolizer,
}

/// The results for a region.
pub struct Region {
    executions: Vec<u64>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Whether it was never entered, so that nothing was counted.
    pub never_opened: bool,
}

impl Region {
    /// Reduces `profile` to the executions while the region was open. Blocks that were left in the
    /// middle count as a whole.
    pub fn narrow(&self, profile: &mut Profile, complex: &[References]) {
        for (number, block) in profile.blocks.iter_mut().enumerate() {
            let inside = self.executions.get(number).copied().unwrap_or(0);
            // Directions are not counted inside alone: the share of the whole run is kept.
            let taken = u128::from(block.taken) * u128::from(inside) / u128::from(block.executions.max(1));
            block.taken = u64::try_from(taken).unwrap_or(inside);
            block.executions = inside;
        }
        profile.cut.clear();
        profile.complex.clear();
        profile.repeats.clear();
        crate::run::complex::complete(profile, complex);
    }
}

impl BlockOrderAnalysis {
    /// Creates an analysis whose records of `stream` go to `sums`.
    pub fn new(sums: Accumulator, stream: Stream) -> BlockOrderAnalysis {
        BlockOrderAnalysis {
            stream,
            sums,
            blocks: Arc::default(),
            symbols: Arc::default(),
            threads: HashMap::new(),
            predicted: None,
            predictor: PREDICTORS[0].new,
            regions: None,
            executions: Vec::new(),
            calls: None,
            touched: None,
            records: Vec::new(),
            lost: 0,
        }
    }

    /// Also predicts branches; each thread has its own predictor.
    pub fn with_branches(self, predictor: fn() -> Predictor) -> BlockOrderAnalysis {
        BlockOrderAnalysis { predicted: Some(Predicted::default()), predictor, ..self }
    }

    /// Also follows calls; `sums` adds up records by context.
    pub fn with_calls(self, sums: Accumulator) -> BlockOrderAnalysis {
        BlockOrderAnalysis { calls: Some(Calls::new(sums)), ..self }
    }

    /// Also follows the working set, in lines of `line_bytes` and in the slices of calls, which
    /// must be followed too.
    pub fn with_working_set(self, line_bytes: u32) -> BlockOrderAnalysis {
        BlockOrderAnalysis { touched: Some(calls::working_set(line_bytes)), ..self }
    }

    /// Counts only while region `name` is open.
    pub fn within_region(self, name: &str) -> BlockOrderAnalysis {
        BlockOrderAnalysis { regions: Some(Regions::new(name)), ..self }
    }

    /// Returns the results.
    pub fn finish(self) -> BlockOrderFindings {
        let hidden = self.threads.values().filter(|thread| thread.branches.is_pending()).count() as u64;
        let predicted =
            self.predicted.map(|predicted| Predicted { hidden: predicted.hidden + hidden, ..predicted });
        let Simulated { mut counts, curve, records, .. } = self.sums.finish();
        counts.damaged += self.lost;
        let region = self.regions.map(|regions| {
            counts = inside(&counts);
            Region {
                executions: self.executions,
                warnings: regions.warnings(),
                never_opened: regions.never_opened(),
            }
        });
        let symbols = std::mem::take(&mut *self.symbols.lock().unwrap_or_else(PoisonError::into_inner));
        let called = self.calls.map(Calls::finish);
        let touched = self.touched;
        BlockOrderFindings { counts, predicted, called, curve, records, touched, region, symbols }
    }

    /// A thread enters a block: updates branches, calls and regions.
    fn enter(&mut self, thread_number: u32, thread: &mut Thread, known: &BlockFacts) {
        let number = known.step.block;
        if let Some(predicted) = &mut self.predicted {
            let state = if self.regions.is_none() { State::Open } else { thread.region };
            let branches = &mut thread.branches;
            predicted.block(branches, self.predictor, known.step.address, number, (known.branch, state));
        }
        let counts = self.regions.is_none() || thread.region == State::Open;
        if let Some(calls) = &mut self.calls {
            if let Some(touched) = self.touched.as_mut().filter(|_| counts) {
                touched.at(calls.instructions());
            }
            thread.cell = calls.enter(&mut thread.stack, known.step, counts.then_some(known.costs));
            calls.entered(number, thread.cell);
        }
        if let Some(regions) = &mut self.regions {
            if counts {
                let number = number as usize;
                if self.executions.len() <= number {
                    self.executions.resize(number + 1, 0);
                }
                self.executions[number] += 1;
            }
            if let Some(marker) = &known.marker {
                thread.region = regions.pass(thread_number, marker);
            }
        }
    }

    /// The record with the number for the analysis's own sums. If a region is counted, numbers are
    /// doubled: odd inside of the region, even outside.
    fn renumbered(&self, thread: &Thread, record: Record) -> Option<Record> {
        if self.regions.is_none() {
            return Some(record);
        }
        let number = 2 * record.site() + usize::from(thread.region == State::Open);
        (number < CUT_SITE).then(|| with_number(record, number as u32))
    }

    fn record(&mut self, number: u32, thread: &Thread, record: Record) {
        if let Some(calls) = &mut self.calls {
            calls.record(record, thread.cell);
        }
        if let Some(touched) = &mut self.touched {
            if self.regions.is_none() || thread.region == State::Open {
                touched.records(number, &[record]);
            }
        }
        match self.renumbered(thread, record) {
            Some(record) => self.records.push(record),
            None => self.lost += 1,
        }
    }
}

/// Replaces the number of a record.
fn with_number(record: Record, number: u32) -> Record {
    Record { what: number << 8 | u32::from(record.code().0), ..record }
}

/// The counts inside of the region: those with odd numbers.
fn inside(counts: &Counts) -> Counts {
    fn odd<T: Clone>(all: &[T]) -> Vec<T> {
        all.iter().skip(1).step_by(2).cloned().collect()
    }
    Counts {
        sites: odd(&counts.sites),
        blocks: odd(&counts.blocks),
        complex: odd(&counts.complex),
        write_backs: None,
        prefetched: None,
        traffic: None,
        damaged: counts.damaged,
    }
}

fn block_facts(block: &BlockView<'_>, symbols: &mut Symbolizer) -> BlockFacts {
    let Some(last) = block.last() else { return BlockFacts::default() };
    let place = symbols.function_at(block.module(), block.address());
    let name = &symbols.functions()[place.function].name;
    let entry = match place.range.start == block.address() {
        _ if name.ends_with("@plt") || name.ends_with(".plt") || name.starts_with("_dl_runtime_resolve") => {
            Entry::Stub
        }
        true => Entry::First,
        false => Entry::Inside,
    };
    let next = last.address() + last.bytes().len() as u64;
    let ends = match last.transfer() {
        Transfer::Call(_) | Transfer::IndirectCall => Ends::Call,
        Transfer::Return => Ends::Return,
        _ => Ends::Other,
    };
    let step = Step {
        block: block.number(),
        address: block.address(),
        next,
        ends,
        function: place.function as u32,
        entry,
    };
    BlockFacts { step, costs: calls::Costs::of(block), branch: Branch::of(block), marker: marker(block) }
}

impl Tool for BlockOrderAnalysis {
    fn stream(&self) -> Stream {
        self.stream
    }

    fn instrumenter(&mut self) -> Instrumenter {
        let (blocks, symbols) = (self.blocks.clone(), self.symbols.clone());
        Box::new(move |block, ask| {
            let number = block.number() as usize;
            let facts = block_facts(block, &mut symbols.lock().unwrap_or_else(PoisonError::into_inner));
            let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
            let room = blocks.len().max(number + 1);
            blocks.resize(room, BlockFacts::default());
            blocks[number] = facts;
            ask.at_start(Value::Constant(block.address()), block.number());
        })
    }

    fn start(&mut self, program: &Program) {
        self.sums.starts(program.image);
        if let Some(calls) = &mut self.calls {
            calls.starts(program.image);
        }
        if let Some(touched) = &mut self.touched {
            touched.forget();
        }
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        let number = batch.thread();
        let mut thread = self.threads.remove(&number).unwrap_or_default();
        let blocks = self.blocks.clone();
        let blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
        for record in batch.records() {
            match record {
                None => self.lost += 1,
                Some(record) if record.code().kind() != RecordKind::Tool => {
                    self.record(number, &thread, record);
                }
                // The tag is the block's number.
                Some(event) => {
                    if let Some(known) = blocks.get(event.extra as usize) {
                        self.enter(number, &mut thread, known);
                    }
                }
            }
        }
        drop(blocks);
        self.threads.insert(number, thread);
        self.sums.records(number, &self.records);
        self.records.clear();
        if let Some(calls) = &mut self.calls {
            calls.flush(number);
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        Ok(Report::default())
    }
}

#[cfg(test)]
mod tests;
