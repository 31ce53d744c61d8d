//! The call graph of a run, from its records of calls, returns and jumps.
//!
//! **The idea.** The engine records each of them with the thread's running sums of instructions,
//! loads and stores, behind all references that the thread made before. So the sums between a call
//! and its return are one subtraction, and nothing is done for each block. What a simulation finds
//! in the records between is added to the sums of the thread. A shadow stack ([`stack`]) turns the
//! records into edges.
//!
//! Functions are looked up once for each edge, while the program runs, because jumps within a
//! function are no calls. **Leaves out** what signal handlers interrupt: their costs are also those
//! of the open calls.

pub mod stack;

use crate::cli::Rep;
use crate::run::tally::{Event, Events};
use event::{Groups, Record, RecordKind, StateLayout};
use instrument::call::{is_word, CallEvent, CallReader, Ticks, Transfer};
use instrument::{CallRecords, EndedImage, Module};
use simulate::{MissSide, RecordMiss, References};
use stack::{Callee, CalleeKind, Collects, Edge, ShadowStack};
use std::collections::{BTreeMap, HashMap};
use symbol::{ByNumber, Symbolizer};

/// The calls from one block to one function, under the numbers of the run's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The block that ends with the call.
    pub block: u32,
    /// The first block of the callee.
    pub callee: u32,
    /// Their number and costs.
    pub edge: Edge,
}

/// The call graphs of all images that live.
pub struct CallGraph {
    records: CallRecords,
    rep: Rep,
    layout: StateLayout,
    symbols: Symbolizer,
    images: HashMap<u32, ImageCalls>,
    /// What the records of a batch mean, in their order; the allocation is reused.
    steps: Vec<(u32, Step)>,
    /// The records of a batch without words of calls; the allocation is reused.
    plain: Vec<Record>,
    misses: Vec<RecordMiss>,
}

/// What a record means to calls.
#[derive(Clone, Copy)]
enum Step {
    Transfer(CallEvent),
    /// A complex reference has made this many instructions, loads and stores in addition.
    More([u64; 3]),
}

/// The call graph of an image.
#[derive(Default)]
struct ImageCalls {
    modules: Vec<Module>,
    keys: Keys,
    threads: BTreeMap<u32, ThreadCalls>,
    /// Thread, number of cuts before, edges by number.
    parts: Vec<(u32, u32, Vec<Edge>)>,
}

/// A block and the address to which it leads, with the function there.
#[derive(Clone, Copy)]
struct Key {
    block: u32,
    target: u64,
    callee: Callee,
}

/// The edges of an image.
#[derive(Default)]
struct Keys {
    all: Vec<Key>,
    numbers: ByNumber<(u32, u64), u32>,
    /// By block: one more than the edge that was used last.
    last: Vec<u32>,
}

impl Keys {
    /// The number of an edge, and its callee; a new one asks for the callee.
    #[inline]
    fn number(&mut self, block: u32, target: u64, callee: impl FnOnce() -> Callee) -> (u32, Callee) {
        let index = block as usize;
        if let Some(last) = self.last.get(index).and_then(|last| last.checked_sub(1)) {
            let key = &self.all[last as usize];
            if key.target == target {
                return (last, key.callee);
            }
        }
        let all = &mut self.all;
        let number = *self.numbers.entry((block, target)).or_insert_with(|| {
            all.push(Key { block, target, callee: callee() });
            all.len() as u32 - 1
        });
        if self.last.len() <= index {
            self.last.resize(index + 1, 0);
        }
        self.last[index] = number + 1;
        (number, self.all[number as usize].callee)
    }
}

/// The calls of one thread.
struct ThreadCalls {
    reader: CallReader,
    groups: Groups,
    /// The running sums when they were read last.
    last: Ticks,
    /// What the thread has counted.
    now: Events,
    collects: Collects,
    /// Whether calls are not followed.
    rests: bool,
    stack: ShadowStack,
}

impl ThreadCalls {
    fn new(records: CallRecords) -> ThreadCalls {
        ThreadCalls {
            reader: CallReader::new(records),
            groups: Groups::default(),
            last: Ticks::default(),
            now: Events::default(),
            collects: Collects::No,
            rests: false,
            stack: ShadowStack::default(),
        }
    }

    /// Counts what happened since the running sums were read last.
    fn advance(&mut self, ticks: Ticks) {
        let last = std::mem::replace(&mut self.last, ticks);
        if self.collects == Collects::Yes {
            self.now.increase(Event::Ir, ticks.instructions.wrapping_sub(last.instructions));
            self.now.increase(Event::Dr, ticks.loads.wrapping_sub(last.loads));
            self.now.increase(Event::Dw, ticks.stores.wrapping_sub(last.stores));
        }
    }

    /// What a complex reference adds, which the running sums leave out, if `record` is its last.
    fn complex(&mut self, record: &Record, rep: Rep, layout: &StateLayout) -> Option<Step> {
        let event::Step::Whole(_, complex) = self.groups.push(record) else { return None };
        let (loads, stores) = complex.loads_and_stores(layout);
        let mut counts = References { loads, stores, ..References::default() };
        counts.execute(&complex);
        Some(Step::More([rep.more(&counts), loads, stores]))
    }

    fn more(&mut self, more: [u64; 3]) {
        if self.collects == Collects::Yes {
            [Event::Ir, Event::Dr, Event::Dw].into_iter().zip(more).for_each(|(event, more)| {
                self.now.increase(event, more);
            });
        }
    }

    fn missed(&mut self, miss: &RecordMiss) {
        let event = match (miss.level, miss.side) {
            (0, MissSide::Fetch) => Event::I1mr,
            (0, MissSide::Load) => Event::D1mr,
            (0, MissSide::Store) => Event::D1mw,
            (1, MissSide::Fetch) => Event::ILmr,
            (1, MissSide::Load) => Event::DLmr,
            (1, MissSide::Store) => Event::DLmw,
            _ => return,
        };
        if self.collects == Collects::Yes {
            self.now.increase(event, 1);
        }
    }
}

impl CallGraph {
    /// A graph of calls that are recorded in this way.
    pub fn new(records: CallRecords, rep: Rep) -> CallGraph {
        let (layout, symbols) = (StateLayout::default(), Symbolizer::new());
        let images = HashMap::new();
        let (steps, plain, misses) = (Vec::new(), Vec::new(), Vec::new());
        CallGraph { records, rep, layout, symbols, images, steps, plain, misses }
    }

    /// Says which modules an image has in addition.
    pub fn modules(&mut self, image: u32, more: &[Module]) {
        self.images.entry(image).or_default().modules.extend_from_slice(more);
    }

    /// Follows records of a thread. Those that are no words of calls go to `simulate`, which puts
    /// their misses into a list.
    pub fn records(
        &mut self,
        (image, thread): (u32, u32),
        records: &[Record],
        simulate: impl FnOnce(&[Record], &mut Vec<RecordMiss>),
    ) {
        self.divide((image, thread), records);
        simulate(&self.plain, &mut self.misses);
        let CallGraph { symbols, images, steps, misses, .. } = self;
        let Some(ImageCalls { modules, keys, threads, .. }) = images.get_mut(&image) else { return };
        let Some(thread) = threads.get_mut(&thread) else { return };
        let mut misses = misses.drain(..).peekable();
        for (behind, step) in steps.drain(..) {
            // What missed before the step belongs to the calls that are open until then.
            while let Some(miss) = misses.next_if(|miss| miss.record < behind) {
                thread.missed(&miss);
            }
            match step {
                Step::More(more) => thread.more(more),
                Step::Transfer(event) => {
                    follow(thread, &event, keys, |target| callee_at(symbols, modules, target));
                }
            }
        }
        misses.for_each(|miss| thread.missed(&miss));
    }

    /// Divides a batch into plain records and steps, each with the number of plain records before
    /// it.
    fn divide(&mut self, (image, thread): (u32, u32), records: &[Record]) {
        let CallGraph { images, layout, rep, records: how, steps, plain, .. } = self;
        let threads = &mut images.entry(image).or_default().threads;
        let thread = threads.entry(thread).or_insert_with(|| ThreadCalls::new(*how));
        plain.clear();
        for record in records {
            if is_word(record) {
                let event = thread.reader.read(record);
                steps.extend(event.map(|event| (plain.len() as u32, Step::Transfer(event))));
                continue;
            }
            plain.push(*record);
            if matches!(record.code().kind(), RecordKind::Complex | RecordKind::Payload) {
                let more = thread.complex(record, *rep, layout);
                steps.extend(more.map(|more| (plain.len() as u32, more)));
            }
        }
    }

    /// Notes the running sums of a thread.
    pub fn ticks(&mut self, image: u32, thread: u32, ticks: Ticks) {
        self.thread(image, thread).advance(ticks);
    }

    /// Sets whether a thread counts.
    pub fn collect(&mut self, image: u32, thread: u32, collects: Collects) {
        self.thread(image, thread).collects = collects;
    }

    /// Closes all calls of an image, and follows no others until [`CallGraph::work`].
    pub fn rest(&mut self, image: u32) {
        for thread in self.images.entry(image).or_default().threads.values_mut() {
            thread.stack.clear(&thread.now);
            thread.rests = true;
        }
    }

    /// Follows the calls of an image again.
    pub fn work(&mut self, image: u32) {
        let threads = &mut self.images.entry(image).or_default().threads;
        threads.values_mut().for_each(|thread| thread.rests = false);
    }

    /// Makes what a thread, or each thread, has counted the part behind this number of cuts.
    pub fn cut(&mut self, image: u32, thread: Option<u32>, cuts: u32) {
        let ImageCalls { threads, parts, .. } = self.images.entry(image).or_default();
        for (&number, calls) in threads.iter_mut().filter(|(&number, _)| is_meant(thread, number)) {
            parts.push((number, cuts, calls.stack.take(&calls.now)));
        }
    }

    /// Forgets what a thread, or each thread, has counted.
    pub fn forget(&mut self, image: u32, thread: Option<u32>) {
        let threads = &mut self.images.entry(image).or_default().threads;
        for (_, calls) in threads.iter_mut().filter(|(&number, _)| is_meant(thread, number)) {
            calls.stack.take(&calls.now);
        }
    }

    /// The calls of an image that has ended, by thread and number of cuts before; `cuts` is the
    /// number of all its cuts.
    pub fn ended(&mut self, image: &EndedImage<'_>, cuts: u32) -> HashMap<(u32, u32), Vec<Calls>> {
        let threads = &mut self.images.entry(image.number).or_default().threads;
        threads.values_mut().for_each(|thread| thread.stack.clear(&thread.now));
        self.cut(image.number, None, cuts);
        let Some(ImageCalls { keys, parts, .. }) = self.images.remove(&image.number) else {
            return HashMap::new();
        };
        let firsts = first_blocks(image, &keys);
        let calls_of = |edges: Vec<Edge>| -> Vec<Calls> {
            let used = edges.into_iter().zip(&keys.all).filter(|(edge, _)| *edge != Edge::default());
            let calls = used.filter_map(|(edge, key)| {
                let (block, callee) = (image.numbering.block(key.block), *firsts.get(&key.target)?);
                Some(Calls { block, callee, edge })
            });
            calls.collect()
        };
        let parts = parts.into_iter().map(|(thread, cut, edges)| ((thread, cut), calls_of(edges)));
        parts.collect()
    }

    fn thread(&mut self, image: u32, thread: u32) -> &mut ThreadCalls {
        let records = self.records;
        let threads = &mut self.images.entry(image).or_default().threads;
        threads.entry(thread).or_insert_with(|| ThreadCalls::new(records))
    }
}

fn is_meant(thread: Option<u32>, number: u32) -> bool {
    thread.is_none_or(|one| one == number)
}

/// The numbers, in the run's profile, of the blocks at the targets of edges.
fn first_blocks(image: &EndedImage<'_>, keys: &Keys) -> ByNumber<u64, u32> {
    let mut firsts: ByNumber<u64, u32> = keys.all.iter().map(|key| (key.target, u32::MAX)).collect();
    for (block, number) in image.profile.blocks.iter().zip(0..) {
        if let Some(first) = firsts.get_mut(&block.ip) {
            *first = image.numbering.block(number);
        }
    }
    firsts.retain(|_, first| *first != u32::MAX);
    firsts
}

/// Lets a thread's shadow stack follow an event.
fn follow(
    thread: &mut ThreadCalls,
    event: &CallEvent,
    keys: &mut Keys,
    mut callee_at: impl FnMut(u64) -> Callee,
) {
    thread.advance(event.ticks);
    if thread.rests {
        return;
    }
    let ThreadCalls { stack, now, collects, .. } = thread;
    match event.transfer {
        Transfer::Return => stack.give_back(event.stack, now),
        Transfer::Call(target) => {
            let edge = keys.number(event.block, target, || callee_at(target));
            stack.call(event.stack, edge, now, *collects);
        }
        Transfer::Jump(target) => {
            // A long jump has set the stack pointer before it.
            stack.abandon(event.stack, now);
            let Some((open, from)) = stack.innermost() else { return };
            let edge = keys.number(event.block, target, || callee_at(target));
            if edge.1.function == from.function {
                return;
            }
            // The function behind a stub or the resolver is called where that was.
            let caller = keys.all[open as usize].block;
            match from.kind {
                CalleeKind::Function => stack.jump(edge, now, *collects),
                CalleeKind::Stub => stack.replace(keys.number(caller, target, || edge.1)),
                CalleeKind::Resolver => {
                    stack.succeed(keys.number(caller, target, || edge.1), now, *collects);
                }
            }
        }
    }
}

/// The function at an address. What no module has is one function.
fn callee_at(symbols: &mut Symbolizer, modules: &[Module], target: u64) -> Callee {
    let module = modules.iter().rev().find(|module| (module.start..module.end).contains(&target));
    let Some(module) = module else { return Callee { function: 0, kind: CalleeKind::Function } };
    let function = symbols.function_at(module, target).function;
    let name = &symbols.functions()[function].name;
    let kind = match name.as_str() {
        name if name.starts_with("_dl_runtime_resolve") => CalleeKind::Resolver,
        name if name.ends_with("@plt") || name.ends_with(".plt") => CalleeKind::Stub,
        _ => CalleeKind::Function,
    };
    // Number 0 is that of unknown code.
    Callee { function: function as u32 + 1, kind }
}
