//! The heap of a program: every block by the place that allocated it.
//!
//! **The idea.** The engine stops for nothing. Generated code records the stack pointer before each
//! call, arguments and results of allocating functions, and the references that can touch memory
//! that was allocated. A thread of the host reads these records while the program runs on. It keeps
//! a shadow stack for each thread (`thread`), the blocks that live (`live`), and sums for each
//! place that allocates (`sites`).
//!
//! Numbers are those of DHAT, Valgrind's tool: sizes are those that the program asked for, no bytes
//! count as one; a resized block counts again with its new size and stays a block of the place that
//! allocated it first; of several equal peaks the last one counts. **Leaves out** what the kernel
//! reads and writes in blocks. Programs that the program starts are followed by [`ImageHeaps`],
//! which keeps a heap for each. Source: the manual of DHAT.
//!
//! ```
//! use lightfoot_heap::HeapTool;
//! use instrument::tool::run_tool;
//! use instrument::{Command, Options};
//!
//! let mut tool = HeapTool::new(8);
//! let command = Command { program: "/bin/true".into(), arguments: vec![] };
//! run_tool(&command, &Options::default(), &mut tool)?;
//! let heap = tool.into_profile().expect("it has run");
//! assert!(heap.all.total.bytes >= heap.all.most.bytes);
//! # Ok::<(), instrument::Error>(())
//! ```

#![forbid(unsafe_code)]

mod allocator;
mod amount;
mod ask;
mod events;
mod follow;
mod heap;
mod images;
mod live;
mod sites;
mod snapshots;
#[cfg(test)]
mod tests;
mod thread;
mod word;

pub use allocator::{Entries, Follows, Function};
pub use amount::Amount;
pub use events::AdHocEvents;
pub use follow::{Blocks, CallStack, Found, WARMED};
pub use images::ImageHeaps;
pub use sites::Site;
pub use snapshots::{Snapshot, SnapshotKind, SnapshotPlan};
pub use thread::{StackFrame, StackPlace};

use ask::{Asker, Known, SharedKnown};
use event::Stream;
use heap::Heap;
use instrument::tool::{Batch, Instrumenter, Program, Report, Summary, Sums, Tool};
use instrument::{ComplexCounts, Module};
use std::sync::PoisonError;

/// An instruction that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index into [`HeapProfile::modules`].
    pub module: u32,
    /// Its address in the program that ran.
    pub address: u64,
}

/// The heap of a program that has ended.
#[derive(Clone, Debug, Default)]
pub struct HeapProfile {
    /// Sums over all places; its stack is empty.
    pub all: Site,
    /// The places that allocated.
    pub sites: Vec<Site>,
    /// The calls of their stacks.
    pub calls: Vec<Call>,
    /// The modules in which calls lie.
    pub modules: Vec<Module>,
    /// Instructions of all threads at the peak.
    pub peak_at: u64,
    /// Instructions of all threads at the end.
    pub instructions: u64,
    /// The heap at some moments, in their order; none unless they were asked for.
    pub snapshots: Vec<Snapshot>,
    /// Allocations of which it was not seen where the block lies.
    pub lost: u64,
    /// Whether any module had a function that is followed.
    pub has_allocator: bool,
    /// Which functions were followed. Of copies, `total` has the bytes and the number.
    pub follows: Follows,
}

/// The tool that follows a program's heap.
pub struct HeapTool {
    known: SharedKnown,
    heap: Option<Heap>,
    profile: Option<HeapProfile>,
    is_started: bool,
    follows: Follows,
}

impl HeapTool {
    /// A tool that tells places apart by this many calls.
    pub fn new(frames_max: usize) -> HeapTool {
        HeapTool {
            known: SharedKnown::default(),
            heap: Some(Heap::new(frames_max)),
            profile: None,
            is_started: false,
            follows: Follows::Blocks,
        }
    }

    /// Follows other functions than those that allocate: of copies, a place's `total` has the bytes
    /// and the number.
    pub fn following(self, follows: Follows) -> HeapTool {
        HeapTool { follows, ..self }
    }

    /// Takes snapshots while the program runs.
    pub fn with_snapshots(mut self, plan: SnapshotPlan) -> HeapTool {
        if let Some(heap) = &mut self.heap {
            heap.sites.snapshots = Some(snapshots::Snapshots::new(plan));
        }
        self
    }

    /// The profile of the program, if it has run.
    pub fn into_profile(self) -> Option<HeapProfile> {
        self.profile
    }
}

impl Tool for HeapTool {
    fn stream(&self) -> Stream {
        self.follows.stream()
    }

    fn sums(&self) -> Sums {
        Sums::Instructions
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn instrumenter(&mut self) -> Instrumenter {
        let mut asker = Asker::new(self.known.clone(), self.follows);
        Box::new(move |block, requests| asker.ask(block, requests))
    }

    fn start(&mut self, _program: &Program) {
        let executes = std::mem::replace(&mut self.is_started, true);
        self.heap.iter_mut().filter(|_| executes).for_each(Heap::executes);
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        if let Some(heap) = &mut self.heap {
            heap.records(batch.thread(), batch.raw());
        }
    }

    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report> {
        let Some(heap) = self.heap.take() else { return Ok(Report::default()) };
        let instructions = summary.outcome().profile.instructions_retired();
        let known = std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner));
        let profile = HeapProfile { follows: self.follows, ..follow::finish(heap, known, instructions) };
        let all = &profile.all;
        let report = Report::totals([
            ("bytes allocated", all.total.bytes),
            ("blocks allocated", all.total.blocks),
            ("bytes at the peak", all.most.bytes),
            ("bytes at the end", all.at_end.bytes),
        ]);
        self.profile = Some(profile);
        Ok(report)
    }
}
