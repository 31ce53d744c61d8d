//! The heaps of several processes at a time: those of a program and of its children.
//!
//! Each process image has a [`Heap`]. A forked child begins with a copy of its maker's, because its
//! memory is one, and its sums go on from there, as under DHAT. A program that is executed begins
//! with none. **Leaves out** what other threads of the maker have recorded since their last
//! hand-over, which a forked child does not know.

use crate::ask::{Asker, SharedKnown};
use crate::follow;
use crate::heap::Heap;
use crate::snapshots::{SnapshotPlan, Snapshots};
use crate::{Follows, HeapProfile, Known};
use event::{Record, Stream};
use instrument::tool::{Instrumenter, Sums};
use instrument::{ComplexCounts, EndedImage, Fork, Observer};
use std::collections::HashMap;
use std::sync::PoisonError;

/// An observer that follows the heap of each image of a run.
pub struct ImageHeaps {
    known: SharedKnown,
    frames_max: usize,
    follows: Follows,
    plan: Option<SnapshotPlan>,
    /// The image whose records come next.
    image: u32,
    living: HashMap<u32, ImageHeap>,
    /// Profiles of images that have ended, without calls and modules.
    ended: HashMap<u32, HeapProfile>,
}

/// The heap of an image.
struct ImageHeap {
    heap: Heap,
    /// Instructions of the images that it is a copy of, until then.
    before: u64,
}

impl ImageHeaps {
    /// Heaps whose places are told apart by this many calls, with snapshots if there is a plan for
    /// them. Of copies, a place's `total` has the bytes and the number.
    pub fn new(frames_max: usize, follows: Follows, plan: Option<SnapshotPlan>) -> ImageHeaps {
        let (living, ended) = (HashMap::new(), HashMap::new());
        ImageHeaps { known: SharedKnown::default(), frames_max, follows, plan, image: 0, living, ended }
    }

    /// The stream of references that a run needs.
    pub fn stream(&self) -> Stream {
        self.follows.stream()
    }

    /// The instrumentation code, and the running sums that it needs.
    pub fn instrumenter(&self) -> (Instrumenter, Sums) {
        let mut asker = Asker::new(self.known.clone(), self.follows);
        (Box::new(move |block, requests| asker.ask(block, requests)), Sums::Instructions)
    }

    /// The profile of an image that has ended; an empty one if it has not, or was asked for before.
    /// Cost: a copy of all calls of the run.
    pub fn profile(&mut self, image: u32) -> HeapProfile {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { calls, modules, has_allocator } = &*known;
        let ended = self.ended.remove(&image).unwrap_or_default();
        let (calls, modules) = (calls.clone(), modules.clone());
        HeapProfile { calls, modules, has_allocator: *has_allocator, follows: self.follows, ..ended }
    }

    fn heap(&mut self, image: u32) -> &mut ImageHeap {
        let (frames_max, plan) = (self.frames_max, self.plan);
        self.living.entry(image).or_insert_with(|| {
            let mut heap = Heap::new(frames_max);
            heap.sites.snapshots = plan.map(Snapshots::new);
            ImageHeap { heap, before: 0 }
        })
    }
}

impl Observer for ImageHeaps {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.heap(self.image).heap.records(thread, records);
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByObserver
    }

    fn image(&mut self, number: u32) {
        self.image = number;
    }

    fn forked(&mut self, fork: &Fork) {
        let ((maker, maker_thread), (made, made_thread)) = (fork.maker, fork.made);
        let heap = self.heap(maker).heap.forked((maker_thread, made_thread), fork.instructions);
        let before = heap.now();
        self.living.insert(made, ImageHeap { heap, before });
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        self.heap(image.number);
        let Some(ImageHeap { heap, before }) = self.living.remove(&image.number) else { return };
        let instructions = before + image.profile.instructions_retired();
        self.ended.insert(image.number, follow::finish(heap, Known::default(), instructions));
    }
}
