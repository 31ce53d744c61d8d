//! Follows blocks for a tool that asks what lies at an address: [`Blocks`].
//!
//! **Why.** A tool that finds addresses of its own, such as those of simulated misses, wants to
//! know whose memory they are. It asks for the events of [`Blocks::instrumenter`], passes those of
//! a batch to [`Blocks::event`] in their order, and may look addresses up between any two of them.
//! **Leaves out** accesses, which [`HeapTool`](crate::HeapTool) counts.

use crate::ask::{Asker, Known, SharedKnown};
use crate::heap::Heap;
pub use crate::live::WARMED;
use crate::snapshots::Snapshots;
use crate::thread::{StackPlace, Thread};
use crate::{Call, Follows, HeapProfile, Site};
use event::{Groups, Record};
use instrument::tool::Instrumenter;
use instrument::Module;
use std::ops::Range;
use std::sync::PoisonError;
use symbol::Listing;

/// The blocks of a process image while it runs. Calls have one number in all images of a run.
pub struct Blocks {
    known: SharedKnown,
    frames_max: usize,
    heap: Heap,
    /// Instructions of the images that it is a copy of, until then.
    before: u64,
}

/// What a thread has called, while its events are read.
#[derive(Default)]
pub struct CallStack {
    thread: Thread,
    groups: Groups,
}

/// The block around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the block while it lives; another one may have it afterwards.
    pub number: u32,
    /// The number of its place of allocation: an index into [`HeapProfile::sites`].
    pub site: u32,
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub size_bytes: u64,
}

impl Blocks {
    /// No blocks; places of allocation are told apart by this many calls.
    pub fn new(frames_max: usize) -> Blocks {
        Blocks { known: SharedKnown::default(), frames_max, heap: Heap::new(frames_max), before: 0 }
    }

    /// No blocks yet, of another image of the run.
    #[must_use]
    pub fn of_other_image(&self) -> Blocks {
        Blocks { known: self.known.clone(), heap: Heap::new(self.frames_max), before: 0, ..*self }
    }

    /// The blocks of a forked child, whose first thread `made` goes on as `maker` does, which has
    /// run this many instructions. Only what the child allocates itself, and what it had most at a
    /// time, counts for it. Cost: a copy.
    #[must_use]
    pub fn forked(&mut self, threads: (u32, u32), instructions: u64) -> Blocks {
        let mut heap = self.heap.forked(threads, instructions);
        heap.forget_sums();
        Blocks { known: self.known.clone(), before: heap.now(), heap, ..*self }
    }

    /// The program ran before it was followed: what it frees in these addresses may be blocks of
    /// which nothing is known.
    pub fn ran_before(&mut self, memory: Vec<Range<u64>>) {
        self.heap.before = memory;
    }

    /// The instrumentation code that asks for the events. `modules` gets each module in which code
    /// runs when that is first seen, with its symbols.
    pub fn instrumenter(&self, modules: impl FnMut(&Module, &Listing) + 'static) -> Instrumenter {
        let mut asker = Asker::new(self.known.clone(), Follows::Blocks).with_modules(modules);
        Box::new(move |block, requests| asker.ask(block, requests))
    }

    /// Takes the calls of a thread, to read its events; [`Blocks::put_back`] ends that.
    pub fn take(&mut self, thread: u32) -> CallStack {
        let (thread, groups) = self.heap.threads.remove(&thread).unwrap_or_default();
        CallStack { thread, groups }
    }

    /// Puts the calls of a thread back.
    pub fn put_back(&mut self, thread: u32, calls: CallStack) {
        self.heap.threads.insert(thread, (calls.thread, calls.groups));
    }

    /// Follows an event of a thread.
    #[inline(always)]
    pub fn event(&mut self, calls: &mut CallStack, event: &Record) {
        self.heap.event(&mut calls.thread, event.extra, event.address);
    }

    /// The block around an address; `None` if none lives there. Three loads.
    #[inline(always)]
    pub fn find(&self, address: u64) -> Option<Found> {
        let number = self.heap.live.find(address)?;
        let (address, size_bytes, site) = self.heap.live.place_of(number);
        Some(Found { number, site, address, size_bytes })
    }

    /// Whether an address lies in a block that was found before, and that is still what it was. One
    /// load.
    #[inline(always)]
    pub fn still_holds(&self, found: &Found, address: u64) -> bool {
        let place = self.heap.live.place_of(found.number);
        let is_it = place == (found.address, found.size_bytes, found.site);
        is_it && address.wrapping_sub(found.address) < found.size_bytes
    }

    /// Whether no block ever lay in these bytes.
    #[inline(always)]
    pub fn never_reached(&self, bytes: &Range<u64>) -> bool {
        let reach = self.heap.live.reach();
        bytes.end <= reach.start || bytes.start >= reach.end
    }

    /// Brings what [`Blocks::find`] will read for the first [`WARMED`] of these addresses into the
    /// host's caches: worth it where many look-ups follow, because alone each waits for memory
    /// twice.
    pub fn warm(&self, addresses: impl Iterator<Item = u64>) {
        std::hint::black_box(self.heap.live.warm(addresses));
    }

    /// The address of the call with a number, of which [`CallStack::place`] knows.
    pub fn call_address(&self, call: u32) -> Option<u64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.calls.get(call as usize).map(|call| call.address)
    }

    /// The numbers of the calls that led to a place of allocation, the innermost first.
    pub fn stack(&self, site: u32) -> &[u32] {
        self.heap.sites.stack(site)
    }

    /// The module and the address of each of these calls.
    pub fn calls(&self, numbers: &[u32]) -> Vec<(Module, u64)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let call = |number: &u32| {
            let Call { module, address } = *known.calls.get(*number as usize)?;
            Some((known.modules.get(module as usize)?.clone(), address))
        };
        numbers.iter().filter_map(call).collect()
    }

    /// All calls of the run so far, the modules in which they lie, and whether any module has an
    /// allocating function.
    pub fn known(&self) -> (Vec<Call>, Vec<Module>, bool) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.calls.clone(), known.modules.clone(), known.has_allocator)
    }

    /// Ends the image, whose threads have run this many instructions in it. Returns its places of
    /// allocation, and the number of allocations of which it was not seen where the block lies.
    pub fn finish(self, instructions: u64) -> (Vec<Site>, u64) {
        let ended = finish(self.heap, Known::default(), self.before + instructions);
        (ended.sites, ended.lost)
    }
}

/// The profile of an image that ends after this many instructions.
pub(crate) fn finish(mut heap: Heap, known: Known, instructions: u64) -> HeapProfile {
    heap.ended(instructions);
    let Known { calls, modules, has_allocator } = known;
    let (all, peak_at, lost) = (heap.sites.all.clone(), heap.sites.peak_at, heap.lost);
    let snapshots = heap.sites.snapshots.take().map_or_else(Vec::new, Snapshots::into_taken);
    let sites = heap.sites.finish();
    let follows = Follows::Blocks;
    HeapProfile { all, sites, calls, modules, peak_at, instructions, snapshots, lost, has_allocator, follows }
}

impl CallStack {
    /// Whether the thread is in an allocating function.
    #[inline(always)]
    pub fn is_allocating(&self) -> bool {
        self.thread.inside.is_some()
    }

    /// The frame around an address of the thread's stack; `None` if it lies far from the stack.
    #[inline(always)]
    pub fn place(&self, address: u64) -> Option<StackPlace> {
        self.thread.place(address)
    }
}
