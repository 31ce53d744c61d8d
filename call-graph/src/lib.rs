//! The call graph of a run, from its records of calls, returns and jumps.
//!
//! **The idea.** The engine records each of them with the thread's running sums of instructions,
//! loads and stores, behind all references that the thread made before. So the sums between a call
//! and its return are one subtraction, and nothing is done for each block. What a simulation finds
//! in the records between is added to the sums of the thread. A shadow stack (`stack`) turns the
//! records into edges.
//!
//! Functions are looked up once for each edge, while the program runs, because jumps within a
//! function are no calls. Where they are asked for, those by a register or memory are counted by
//! block and target ([`JumpRecords`]). **Leaves out** what signal handlers interrupt: their costs
//! are also those of the open calls.

#![forbid(unsafe_code)]

mod batch;
mod events;
mod jumps;
mod keys;
mod stack;
#[cfg(test)]
mod tests;
mod thread;

pub use events::{Event, Events};
pub use jumps::{Jump, JumpRecords};
pub use keys::is_stub;
pub use stack::Collects;
pub use thread::MoreInstructions;

use batch::Batch;
use event::{Record, StateLayout};
use instrument::call::{DirectTarget, Ticks};
use instrument::{Block, CallRecords, EndedImage, Module};
use jumps::JumpCounts;
use keys::{EdgeTable, Keys};
use simulate::MissIntervals;
use stack::Edge;
use std::collections::{BTreeMap, HashMap};
use symbol::{ByNumber, Symbolizer};
use thread::{Counting, ThreadCalls};

/// The calls from one block to one function, under the numbers of the run's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The block that ends with the call.
    pub block: u32,
    /// The first block of the callee.
    pub callee: u32,
    /// How many there were.
    pub times: u64,
    /// What happened between them and their returns.
    pub costs: Events,
}

/// What a thread did between two cuts.
#[derive(Clone, Debug, Default)]
pub struct ThreadPart {
    /// Its calls.
    pub calls: Vec<Calls>,
    /// Its jumps by a register or memory that may stay within a function, if they are counted.
    pub jumps: Vec<Jump>,
}

/// Simulates records and counts their misses by interval.
pub type Simulate<'s> = &'s mut dyn FnMut(&[Record], &mut MissIntervals);

/// Follows the calls of all images that live.
pub trait CallGraph {
    /// Says which modules an image has in addition.
    fn modules(&mut self, image: u32, more: &[Module]);
    /// Says where direct calls and jumps of an image lead.
    fn targets(&mut self, image: u32, more: &[DirectTarget]);
    /// Follows records of a thread of an image. Those that are no words of calls go to `simulate`.
    fn records(&mut self, thread: (u32, u32), records: &[Record], simulate: Simulate<'_>);
    /// Passes over records of a thread whose image rests, except those that later records rely on.
    fn pass(&mut self, thread: (u32, u32), records: &[Record]);
    /// Notes the running sums of a thread.
    fn ticks(&mut self, image: u32, thread: u32, ticks: Ticks);
    /// Sets whether a thread counts.
    fn collect(&mut self, image: u32, thread: u32, collects: Collects);
    /// Closes all calls of an image, and follows no others until [`CallGraph::work`].
    fn rest(&mut self, image: u32);
    /// Follows the calls of an image again.
    fn work(&mut self, image: u32);
    /// Makes what a thread, or each thread, has counted the part behind this number of cuts.
    fn cut(&mut self, image: u32, thread: Option<u32>, cuts: u32);
    /// Forgets what a thread, or each thread, has counted.
    fn forget(&mut self, image: u32, thread: Option<u32>);
    /// The calls and jumps of an image that has ended, by thread and number of cuts before; `cuts`
    /// is the number of all its cuts.
    fn ended(&mut self, image: &EndedImage<'_>, cuts: u32) -> HashMap<(u32, u32), ThreadPart>;
}

/// A graph of calls that are recorded in this way. `more` says how complex references count.
pub fn of_records(
    records: CallRecords,
    jumps: JumpRecords,
    more: MoreInstructions,
) -> Box<dyn CallGraph + Send> {
    match records {
        CallRecords::References => Box::new(Graph::<{ Events::COUNT }>::new(records, jumps, more)),
        CallRecords::Instructions | CallRecords::None => Box::new(Graph::<1>::new(records, jumps, more)),
    }
}

/// A graph whose edges have the first `N` events.
struct Graph<const N: usize> {
    records: CallRecords,
    jumps: JumpRecords,
    counting: Counting,
    symbols: Symbolizer,
    images: HashMap<u32, ImageCalls<N>>,
    batch: Batch,
}

/// The call graph of an image.
struct ImageCalls<const N: usize> {
    modules: Vec<Module>,
    table: EdgeTable,
    threads: BTreeMap<u32, ThreadCalls<N>>,
    /// Thread, number of cuts before, edges by number, jumps.
    parts: Vec<(u32, u32, Vec<Edge<N>>, JumpCounts)>,
}

impl<const N: usize> Default for ImageCalls<N> {
    fn default() -> ImageCalls<N> {
        let (modules, table) = (Vec::new(), EdgeTable::default());
        ImageCalls { modules, table, threads: BTreeMap::new(), parts: Vec::new() }
    }
}

impl<const N: usize> Graph<N> {
    fn new(records: CallRecords, jumps: JumpRecords, more: MoreInstructions) -> Graph<N> {
        Graph {
            records,
            jumps,
            counting: Counting { more, layout: StateLayout::default() },
            symbols: Symbolizer::new(),
            images: HashMap::new(),
            batch: Batch::default(),
        }
    }

    fn thread(&mut self, image: u32, thread: u32) -> &mut ThreadCalls<N> {
        let ImageCalls { table, threads, .. } = self.images.entry(image).or_default();
        threads
            .entry(thread)
            .or_insert_with(|| ThreadCalls::new((self.records, self.jumps), table.next_binding()))
    }
}

impl<const N: usize> CallGraph for Graph<N> {
    fn modules(&mut self, image: u32, more: &[Module]) {
        self.images.entry(image).or_default().modules.extend_from_slice(more);
    }

    fn targets(&mut self, image: u32, more: &[DirectTarget]) {
        self.images.entry(image).or_default().table.add_targets(more);
    }

    fn records(&mut self, (image, thread): (u32, u32), records: &[Record], simulate: Simulate<'_>) {
        let Graph { counting, symbols, images, batch, .. } = self;
        let ImageCalls { modules, table, threads, .. } = images.entry(image).or_default();
        let new = || ThreadCalls::new((self.records, self.jumps), table.next_binding());
        let thread = threads.entry(thread).or_insert_with(new);
        let mut keys = Keys { table, symbols, modules };
        if N == 1 {
            thread.follow_records(records, counting, batch, &mut keys);
        } else {
            thread.divide(records, counting, batch);
        }
        let (plain, intervals) = batch.plain();
        simulate(plain, intervals);
        if N > 1 {
            thread.follow_steps(records, batch, &mut keys);
        }
    }

    fn pass(&mut self, (image, thread): (u32, u32), records: &[Record]) {
        self.thread(image, thread);
        let ImageCalls { table, threads, .. } = self.images.entry(image).or_default();
        threads.entry(thread).and_modify(|thread| thread.pass(records, table));
    }

    fn ticks(&mut self, image: u32, thread: u32, ticks: Ticks) {
        self.thread(image, thread).advance(ticks);
    }

    fn collect(&mut self, image: u32, thread: u32, collects: Collects) {
        self.thread(image, thread).collect(collects);
    }

    fn rest(&mut self, image: u32) {
        for thread in self.images.entry(image).or_default().threads.values_mut() {
            let now = thread.now();
            thread.stack.clear(&now);
            thread.rests = true;
        }
    }

    fn work(&mut self, image: u32) {
        let threads = &mut self.images.entry(image).or_default().threads;
        threads.values_mut().for_each(|thread| thread.rests = false);
    }

    fn cut(&mut self, image: u32, thread: Option<u32>, cuts: u32) {
        let ImageCalls { threads, parts, .. } = self.images.entry(image).or_default();
        for (&number, calls) in threads.iter_mut().filter(|(&number, _)| is_meant(thread, number)) {
            let now = calls.now();
            parts.push((number, cuts, calls.stack.take(&now), calls.jumps.take()));
        }
    }

    fn forget(&mut self, image: u32, thread: Option<u32>) {
        let threads = &mut self.images.entry(image).or_default().threads;
        for (_, calls) in threads.iter_mut().filter(|(&number, _)| is_meant(thread, number)) {
            let now = calls.now();
            calls.stack.take(&now);
            calls.jumps.take();
        }
    }

    fn ended(&mut self, image: &EndedImage<'_>, cuts: u32) -> HashMap<(u32, u32), ThreadPart> {
        self.rest(image.number);
        self.cut(image.number, None, cuts);
        let Some(ImageCalls { table, parts, .. }) = self.images.remove(&image.number) else {
            return HashMap::new();
        };
        let jumped = parts.iter().flat_map(|(_, _, _, jumps)| jumps.targets());
        let called = table.all.iter().map(|key| key.target);
        let firsts = first_blocks(&image.profile.blocks, called.chain(jumped));
        let numbers = image.numbering;
        let calls_of = |edges: Vec<Edge<N>>| -> Vec<Calls> {
            let used = edges.into_iter().zip(&table.all).filter(|(edge, _)| !edge.is_empty());
            let calls = used.filter_map(|(edge, key)| {
                let (block, callee) = (numbers.block(key.block), numbers.block(*firsts.get(&key.target)?));
                Some(Calls { block, callee, times: edge.calls, costs: Events::of_first(&edge.costs) })
            });
            calls.collect()
        };
        let jumps_of = |jumps: JumpCounts| -> Vec<Jump> {
            let all = jumps.all().filter_map(|((block, target), times)| {
                let target = numbers.block(*firsts.get(&target)?);
                Some(Jump { block: numbers.block(block), target, times })
            });
            all.collect()
        };
        let part = |(thread, cut, edges, jumps)| {
            ((thread, cut), ThreadPart { calls: calls_of(edges), jumps: jumps_of(jumps) })
        };
        parts.into_iter().map(part).collect()
    }
}

fn is_meant(thread: Option<u32>, number: u32) -> bool {
    thread.is_none_or(|one| one == number)
}

/// The numbers, in their image, of the blocks at these addresses. Of a block that was translated
/// again, one translation may never have run, and reports have no place for it.
fn first_blocks(blocks: &[Block], addresses: impl Iterator<Item = u64>) -> ByNumber<u64, u32> {
    let mut firsts: ByNumber<u64, u32> = addresses.map(|address| (address, u32::MAX)).collect();
    for (block, number) in blocks.iter().zip(0..) {
        if let Some(first) = firsts.get_mut(&block.ip) {
            if *first == u32::MAX || block.executions > 0 {
                *first = number;
            }
        }
    }
    firsts.retain(|_, first| *first != u32::MAX);
    firsts
}
