//! The interface of a layout: its properties, its contents, and its search.
//!
//! A *shape* is the plan of an index: a few numbers from which every address follows. Each layout
//! has a shape type of its own, which implements [`Contents`] (everything that needs no instruction
//! set, callable through a pointer) and [`Method`] (building and searching, compiled for each
//! instruction set). The table of layouts, in the parent module, is made from these two.

use alloc::string::String;
use core::ops::Range;

use crate::lane::{Exact, Lane};
use crate::line::Line;
use crate::memory::{Draft, Memory};
use crate::simd::{Simd, Vectors};

/// The properties of a layout, for the table of layouts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// The layout's number in files: never changed, never reused.
    pub(crate) code: u32,
    /// The name that selects the layout.
    pub(crate) name: &'static str,
    /// How the layout works, in one line.
    pub(crate) about: &'static str,
    /// The most lines that one query reads, for keys of any distribution.
    pub(crate) bound: &'static str,
    /// Whether placing keys in this layout detects that they are not sorted.
    pub(crate) is_order_checked: bool,
}

/// The numbers from which, with layout and n, a shape can be restored; files store them.
pub(crate) type Numbers = [u64; 6];

/// Why a layout cannot hold some keys; the planner then tries another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many keys share one bucket: the keys are too unevenly spread, or repeat too often.
    Crowded,
    /// More keys than the layout's counters can number.
    TooMany,
    /// The keys are not sorted, which was detected while they were placed.
    Unsorted,
}

impl Refusal {
    /// The refusal's number in files: never changed, never reused.
    pub(crate) fn code(self) -> u8 {
        match self {
            Refusal::Crowded => 1,
            Refusal::TooMany => 2,
            Refusal::Unsorted => 3,
        }
    }

    /// The refusal that a file's number stands for.
    pub(crate) fn from_code(code: u8) -> Option<Refusal> {
        [Refusal::Crowded, Refusal::TooMany, Refusal::Unsorted]
            .into_iter()
            .find(|refusal| refusal.code() == code)
    }

    /// The refusal as a clause of a sentence.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Refusal::Crowded => "the keys are too unevenly spread or repeated too often",
            Refusal::TooMany => "there are more keys than its counters can number",
            Refusal::Unsorted => "the keys are not sorted",
        }
    }
}

/// How keys are placed: the instruction set, and the number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing<V> {
    pub(crate) vectors: V,
    pub(crate) threads: usize,
}

/// Operations on an index's lines that need no instruction set.
pub(crate) trait Contents<L: Lane> {
    /// The number of lines that the keys occupy in this layout.
    fn lines(&self) -> usize;
    /// The key of rank `rank < n`.
    fn key(&self, lines: &[Line], rank: usize) -> L;
    /// Calls `each` with the keys of a range of ranks in order.
    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        ranks.for_each(|rank| each(self.key(lines, rank)));
    }
    /// Whether `lines`, which may come from an untrusted file, are in the order on which searches
    /// rely: then no query reads outside of them and no answer exceeds n.
    fn holds(&self, lines: &[Line]) -> bool;
    /// The numbers of this shape that a file stores.
    fn numbers(&self) -> Numbers {
        [0; 6]
    }
    /// Text that `explain` adds to the layout's description; may be empty.
    fn detail(&self) -> String {
        String::new()
    }
}

/// A layout's shape as something to build and to search: ranks are the numbers of keys less than a
/// query.
pub(crate) trait Method<L: Lane>: Contents<L> + Copy {
    /// Plans a shape for the sorted `keys` and writes them into memory.
    ///
    /// # Errors
    /// Why the layout cannot hold the keys.
    fn build<K: Exact<As = L>>(keys: &[K], placing: Placing<impl Vectors>)
        -> Result<(Self, Memory), Refusal>;
    /// The shape of `n` keys with a file's numbers, or `None` when they describe none.
    fn from_numbers(n: usize, numbers: Numbers) -> Option<Self>;
    /// The number of keys less than `query`.
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], query: L) -> usize;
    /// Many ranks; `out` is as long as `queries`.
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], queries: &[L], out: &mut [usize]);
}

/// Allocates the memory of a shape and calls `fill` to write it.
///
/// # Errors
/// The errors of `fill`.
pub(super) fn filled<L: Lane, M: Contents<L>>(
    shape: M,
    fill: impl FnOnce(&M, &mut [Line]) -> Result<(), Refusal>,
) -> Result<(M, Memory), Refusal> {
    let lines = shape.lines();
    let mut draft = Draft::new(lines);
    fill(&shape, draft.lines_mut())?;
    Ok((shape, draft.finish(lines)))
}
