//! Metrics of the simulated machine: deterministic counts at exact edges, on any computer.
//!
//! **What.** A tool requests an event at the start of every block, in addition to the references
//! that the simulation needs. Blocks give instructions, outcomes of branches, and executions of
//! chosen instructions; references give misses. Both arrive in program order, so an edge falls
//! between two blocks of the program although the simulation runs later. **Why this way.** Block
//! counts are sums over the whole run; only a record in the stream has a time. The stream is
//! filtered, which is exact. Watching writes and simulated noise need every reference: then the
//! full stream is used, and its own block records replace the events. **Leaves out** processes that
//! the program starts, and, in a filtered stream, signals that end a block early: the block counts
//! as a whole. With several threads, records arrive in batches of one thread, so edges are exact in
//! the sum of their instructions and not in time. Functions cost an addition for each block: names
//! are looked up when a block is translated.

use super::noise;
use super::partial::Partial;
use super::recorder::{Recorded, Recorder};
use super::request::By;
use super::target::{Mapped, MetricTarget, Targets};
use crate::run::block_order::branch::Branch;
use crate::run::hierarchy::Hierarchy as Machine;
use event::{Access, Groups, Record, RecordKind, StateLayout, Step, Stream, CUT_SITE};
use instrument::tool::{Batch, BlockView, Instrumenter, Program, Report, Requests, Summary, Tool, Value};
use measure::trace::{Functions, Interval, Record as Row, Unit};
use simulate::{CycleModel, Gshare, Hierarchy, Levels, Prediction, Totals, CACHES_MAX, TLBS_MAX};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use symbol::{demangle, Symbolizer};

/// The fewest instructions between two readings of the simulated machine's clock.
const LOOK_MIN: u64 = 64;

/// The running sums of all events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EventTotals {
    pub(super) instructions: u64,
    branches: u64,
    mispredictions: u64,
    misses: Totals,
}

/// A metric of the simulated machine.
pub(super) struct Event {
    pub(super) name: &'static str,
    /// Returns its sum; `None` if the machine lacks the part that counts it.
    count: fn(&EventTotals, &Simulated) -> Option<u64>,
}

/// All events of the simulated machine.
pub(super) const EVENTS: &[Event] = &[
    Event { name: "instructions", count: |sums, _| Some(sums.instructions) },
    Event { name: "cycles", count: |sums, machine| Some(machine.cycles(sums)) },
    Event { name: "branches", count: |sums, _| Some(sums.branches) },
    Event { name: "branch-misses", count: |sums, _| Some(sums.mispredictions) },
    Event {
        name: "l1i-misses",
        count: |sums, machine| machine.levels.instruction.map(|_| sums.misses.caches[0].instructions),
    },
    Event {
        name: "l1d-misses",
        count: |sums, _| Some(sums.misses.caches[0].loads + sums.misses.caches[0].stores),
    },
    Event {
        name: "l2-misses",
        count: |sums, machine| machine.second.map(|level| sums.misses.caches[level].total()),
    },
    Event {
        name: "llc-misses",
        count: |sums, machine| {
            let outer = machine.levels.outer.len();
            (outer > 0).then(|| sums.misses.caches[outer].total())
        },
    },
    Event {
        name: "dtlb-misses",
        count: |sums, machine| machine.levels.data_tlb.map(|_| sums.misses.tlbs[0].loads),
    },
    Event {
        name: "itlb-misses",
        count: |sums, machine| machine.levels.instruction_tlb.map(|_| sums.misses.tlbs[0].instructions),
    },
];

/// Whether caches are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caches {
    /// They are simulated.
    Simulated,
    /// They are not: only events that follow from blocks are counted.
    Absent,
}

/// The machine, as far as metrics need it.
pub(super) struct Simulated {
    caches: Caches,
    levels: Levels,
    stream: Stream,
    model: CycleModel,
    /// Index of the simulated level that is the machine's second.
    second: Option<usize>,
}

impl Simulated {
    pub(super) fn new(machine: &Machine, stream: Stream, caches: Caches) -> Simulated {
        let model = CycleModel::of(&machine.machine).unwrap_or_default();
        Simulated { caches, levels: machine.levels.clone(), stream, model, second: machine.place(2) }
    }

    /// Whether the machine has what `event` counts.
    pub(super) fn has(&self, event: &Event) -> bool {
        let of_blocks = ["instructions", "branches"].contains(&event.name);
        (self.caches == Caches::Simulated || of_blocks)
            && (event.count)(&EventTotals::default(), self).is_some()
    }

    fn cycles(&self, sums: &EventTotals) -> u64 {
        self.model.cycles(sums.instructions, &sums.misses, sums.mispredictions).total().round() as u64
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        let new = || Hierarchy::of_stream(&self.levels, &self.stream).expect("the levels were checked");
        (self.caches == Caches::Simulated).then(new)
    }
}

/// The properties of a block that the trace needs.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    instructions: u32,
    /// Its chosen instructions: a range of [`Plan::marks`].
    marks: (u32, u32),
    branch: Option<Branch>,
    /// Index into [`Plan::functions`], if functions are counted.
    function: u32,
}

/// Properties of blocks that instrumentation code finds and analysis code reads.
#[derive(Debug, Default)]
struct Plan {
    blocks: Vec<Block>,
    /// The column of each chosen instruction.
    marks: Vec<u32>,
    /// Watched addresses, with their columns.
    watched: Vec<(Range<u64>, usize)>,
    /// Names of the functions that were translated so far.
    functions: Vec<String>,
}

/// The state of one thread.
#[derive(Default)]
struct Thread {
    predictor: Gshare,
    pending: Option<Branch>,
    /// The function of its last block.
    function: u32,
    groups: Groups,
}

/// The tool that makes the trace.
pub(super) struct Tracer {
    machine: Simulated,
    events: Vec<&'static Event>,
    targets: Arc<Targets>,
    interval: Interval,
    by: By,
    noise: Option<noise::Source>,
    plan: Arc<Mutex<Plan>>,
    threads: HashMap<u32, Thread>,
    hierarchy: Option<Hierarchy>,
    /// Misses of images that have ended, without those of noise.
    before: Totals,
    noise_misses: Totals,
    image: u32,
    sums: EventTotals,
    columns: Vec<u64>,
    pending: Vec<Record>,
    recorder: Recorder,
    /// The number of instructions at which an edge or an interrupt may be due.
    attention: u64,
    lost: u64,
    hidden: u64,
}

/// The results.
pub(super) struct Traced {
    pub(super) records: Vec<Row>,
    /// What functions executed, if that was requested.
    pub(super) functions: Option<Functions>,
    pub(super) totals: Vec<u64>,
    pub(super) instructions: u64,
    pub(super) lost: u64,
    pub(super) hidden: u64,
    /// A complaint about the partial file, if any.
    pub(super) complaint: Option<String>,
}

impl Tracer {
    pub(super) fn new(
        machine: Simulated,
        events: Vec<&'static Event>,
        targets: Arc<Targets>,
        (interval, by): (Interval, By),
        noise: Option<noise::Noise>,
        partial: Partial,
    ) -> Tracer {
        let hierarchy = machine.hierarchy();
        let columns = vec![0; targets.columns.len()];
        let recorder = Recorder::new(interval, events.len() + columns.len(), partial);
        let recorder = if by == By::Function { recorder.by_function() } else { recorder };
        let mut plan = Plan::default();
        // Memory ranges hold from the start. Places in files join them when the files are mapped.
        for (index, column) in targets.columns.iter().enumerate() {
            if let MetricTarget::Memory(range) = &column.place {
                plan.watched.push((range.clone(), index));
            }
        }
        let mut tracer = Tracer {
            machine,
            events,
            targets,
            interval,
            by,
            noise: noise.map(noise::Source::new),
            plan: Arc::new(Mutex::new(plan)),
            threads: HashMap::new(),
            hierarchy,
            before: Totals::default(),
            noise_misses: Totals::default(),
            image: 0,
            sums: EventTotals::default(),
            columns,
            pending: Vec::new(),
            recorder,
            attention: 0,
            lost: 0,
            hidden: 0,
        };
        // The first edge or interrupt depends on the machine, the interval and the noise, so the
        // tracer must exist.
        tracer.attention = tracer.next_attention();
        tracer
    }

    /// The records, once the program has ended.
    pub(super) fn finish(mut self) -> Traced {
        self.sums.misses = self.misses();
        self.hidden += self.threads.values().filter(|thread| thread.pending.is_some()).count() as u64;
        let totals = self.values();
        let position = self.position();
        let Recorded { records, functions, complaint } =
            self.recorder.finish(position, &totals, &locked(&self.plan).functions);
        let instructions = self.sums.instructions;
        Traced { records, functions, totals, instructions, lost: self.lost, hidden: self.hidden, complaint }
    }

    /// Passes the collected records to the simulation.
    fn feed(&mut self, thread: u32) {
        if let Some(hierarchy) = self.hierarchy.as_mut().filter(|_| !self.pending.is_empty()) {
            hierarchy.records(thread, &self.pending);
        }
        self.pending.clear();
    }

    fn misses(&self) -> Totals {
        less(&plus(&self.before, &self.of_image()), &self.noise_misses)
    }

    /// Misses since the last exec, including those of noise.
    fn of_image(&self) -> Totals {
        self.hierarchy.as_ref().map(Hierarchy::totals).unwrap_or_default()
    }

    fn position(&self) -> u64 {
        match self.interval.unit {
            Unit::Cycles => self.machine.cycles(&self.sums),
            _ => self.sums.instructions,
        }
    }

    fn values(&self) -> Vec<u64> {
        let events = self.events.iter().map(|event| (event.count)(&self.sums, &self.machine).unwrap_or(0));
        events.chain(self.columns.iter().copied()).collect()
    }

    /// Handles edges and interrupts that are due.
    fn attend(&mut self, thread: u32, names: &[String]) {
        self.feed(thread);
        if let Some(source) = self.noise.as_mut().filter(|source| self.sums.instructions >= source.next) {
            let reads = source.interrupt(self.sums.instructions);
            let before = self.of_image();
            self.pending = reads;
            self.feed(thread);
            let own = less(&self.of_image(), &before);
            self.noise_misses = plus(&self.noise_misses, &own);
        }
        self.sums.misses = self.misses();
        let position = self.position();
        if position >= self.recorder.edge() {
            let values = self.values();
            self.recorder.at(position, &values, names);
        }
        self.attention = self.next_attention();
    }

    /// When to check again. Cycles are known only after a simulation, so the next check is after
    /// nine tenths of the rest at the mean pace so far.
    fn next_attention(&self) -> u64 {
        let now = self.sums.instructions;
        let edge = match self.interval.unit {
            Unit::Cycles => {
                let cycles = self.position();
                let left = self.recorder.edge().saturating_sub(cycles);
                let pace =
                    (cycles as f64 / now.max(1) as f64).max(self.machine.model.per_instruction).max(0.1);
                now + ((left as f64 * 0.9 / pace) as u64).max(LOOK_MIN)
            }
            _ => self.recorder.edge(),
        };
        self.noise.as_ref().map_or(edge, |noise| edge.min(noise.next))
    }

    /// Thread `id` enters block `number` at `address`.
    #[inline]
    fn block(&mut self, plan: &Plan, thread: &mut Thread, id: u32, number: usize, address: u64) {
        if let Some(branch) = thread.pending.take() {
            self.decided(thread, branch, address);
        }
        if self.sums.instructions >= self.attention {
            self.attend(id, &plan.functions);
        }
        let Some(block) = plan.blocks.get(number) else {
            self.lost += 1;
            return;
        };
        self.sums.instructions += u64::from(block.instructions);
        if self.by == By::Function {
            self.recorder.executed(block.function, block.instructions);
            thread.function = block.function;
        }
        let (from, to) = block.marks;
        for &column in &plan.marks[from as usize..to as usize] {
            self.columns[column as usize] += 1;
        }
        thread.pending = block.branch;
    }

    #[inline]
    fn decided(&mut self, thread: &mut Thread, branch: Branch, address: u64) {
        match branch.outcome(address) {
            None => self.hidden += 1,
            Some(outcome) => {
                self.sums.branches += 1;
                let wrong = thread.predictor.branch(branch.ip, outcome) == Prediction::Wrong;
                self.sums.mispredictions += u64::from(wrong);
            }
        }
    }

    /// Counts writes to watched addresses.
    fn watch(&mut self, plan: &Plan, thread: &mut Thread, record: &Record) {
        let columns = &mut self.columns;
        let mut write = |address: u64, size_bytes: u32| {
            let end = address.saturating_add(size_bytes.into());
            for (range, column) in &plan.watched {
                columns[*column] += u64::from(address < range.end && end > range.start);
            }
        };
        match record.code().kind() {
            RecordKind::Store | RecordKind::Modify => write(record.address, record.code().size_bytes()),
            RecordKind::Complex | RecordKind::Payload => {
                if let Step::Whole(_, complex) = thread.groups.push(record) {
                    complex.references(&StateLayout::default(), |address, size_bytes, access| {
                        if access == Access::Store {
                            write(address, size_bytes);
                        }
                    });
                }
            }
            _ => {}
        }
    }
}

impl Tool for Tracer {
    fn stream(&self) -> Stream {
        self.machine.stream
    }

    fn instrumenter(&mut self) -> Instrumenter {
        let (plan, targets) = (self.plan.clone(), self.targets.clone());
        let functions = (self.by == By::Function).then(FunctionNumbers::default);
        let mut sight = Sight { targets, modules: HashMap::new(), functions };
        let full = self.machine.stream == Stream::Full;
        Box::new(move |block, ask| {
            let mut plan = locked(&plan);
            sight.look(&mut plan, block);
            if !full {
                announce(block, ask);
            }
        })
    }

    fn start(&mut self, program: &Program) {
        if program.image != self.image {
            self.image = program.image;
            self.before = plus(&self.before, &self.of_image());
            self.hierarchy = self.machine.hierarchy();
        }
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        let plan = self.plan.clone();
        let plan = locked(&plan);
        let id = batch.thread();
        let mut thread = self.threads.remove(&id).unwrap_or_default();
        for record in batch.records() {
            let Some(record) = record else {
                self.lost += 1;
                continue;
            };
            match record.code().kind() {
                RecordKind::Tool => {
                    self.block(&plan, &mut thread, id, record.extra as usize, record.address);
                    continue;
                }
                RecordKind::Block if record.site() == CUT_SITE => {
                    self.sums.instructions = self.sums.instructions.saturating_sub(record.address);
                    self.recorder.not_executed(thread.function, record.address);
                }
                RecordKind::Block => self.block(&plan, &mut thread, id, record.site(), record.address),
                _ if !plan.watched.is_empty() => self.watch(&plan, &mut thread, &record),
                _ => {}
            }
            self.pending.push(record);
        }
        self.threads.insert(id, thread);
        self.feed(id);
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        Ok(Report::default())
    }
}

/// Requests an event at the start of a block.
fn announce(block: &BlockView<'_>, ask: &mut Requests) {
    ask.at_start(Value::Constant(block.address()), block.number());
}

fn locked(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The metrics in the form that instrumentation code uses.
struct Sight {
    targets: Arc<Targets>,
    /// Columns by address, for each module by path and start.
    modules: HashMap<(PathBuf, u64), HashMap<u64, Vec<u32>>>,
    /// Set if functions are counted.
    functions: Option<FunctionNumbers>,
}

/// Gives functions their numbers in the trace, in the order of their translation.
#[derive(Default)]
struct FunctionNumbers {
    symbols: Symbolizer,
    /// By index into [`Symbolizer::functions`].
    numbers: HashMap<usize, u32>,
}

impl FunctionNumbers {
    /// The number of a block's function. A new one gets the next number, and its name in `names`.
    fn of(&mut self, block: &BlockView<'_>, names: &mut Vec<String>) -> u32 {
        let found = self.symbols.function_at(block.module(), block.address()).function;
        *self.numbers.entry(found).or_insert_with(|| {
            let function = &self.symbols.functions()[found];
            let library = self.symbols.libraries()[function.library].name();
            names.push(format!("{} [{library}]", demangle(&function.name)));
            names.len() as u32 - 1
        })
    }
}

impl Sight {
    /// Stores the properties of a block.
    fn look(&mut self, plan: &mut Plan, block: &BlockView<'_>) {
        let from = plan.marks.len() as u32;
        if !self.targets.columns.is_empty() {
            self.mark(plan, block);
        }
        let number = block.number() as usize;
        if plan.blocks.len() <= number {
            plan.blocks.resize(number + 1, Block::default());
        }
        let instructions = block.instructions().len() as u32;
        let marks = (from, plan.marks.len() as u32);
        let function = match &mut self.functions {
            Some(numbers) => numbers.of(block, &mut plan.functions),
            None => 0,
        };
        plan.blocks[number] = Block { instructions, marks, branch: Branch::of(block), function };
    }

    fn mark(&mut self, plan: &mut Plan, block: &BlockView<'_>) {
        let module = block.module();
        let key = (module.path.clone(), module.start);
        let columns = self.modules.entry(key).or_insert_with(|| {
            let mut columns: HashMap<u64, Vec<u32>> = HashMap::new();
            for mapped in self.targets.mapped(module) {
                match mapped {
                    Mapped::Code(column, addresses) => {
                        addresses
                            .into_iter()
                            .for_each(|address| columns.entry(address).or_default().push(column as u32));
                    }
                    Mapped::Data(column, ranges) => {
                        plan.watched.extend(ranges.into_iter().map(|range| (range, column)));
                    }
                }
            }
            columns
        });
        if !columns.is_empty() {
            let marks = block.instructions().filter_map(|instruction| columns.get(&instruction.address()));
            plan.marks.extend(marks.flatten());
        }
    }
}

fn each(first: &Totals, second: &Totals, join: fn(u64, u64) -> u64) -> Totals {
    let both = |first: &simulate::Misses, second: &simulate::Misses| simulate::Misses {
        loads: join(first.loads, second.loads),
        stores: join(first.stores, second.stores),
        instructions: join(first.instructions, second.instructions),
    };
    Totals {
        caches: std::array::from_fn::<_, CACHES_MAX, _>(|level| {
            both(&first.caches[level], &second.caches[level])
        }),
        tlbs: std::array::from_fn::<_, TLBS_MAX, _>(|level| both(&first.tlbs[level], &second.tlbs[level])),
    }
}

fn plus(first: &Totals, second: &Totals) -> Totals {
    each(first, second, |first, second| first + second)
}

fn less(first: &Totals, second: &Totals) -> Totals {
    each(first, second, |first, second| first - second)
}
