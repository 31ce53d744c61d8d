//! Layouts: where keys stand in memory, and how a rank is found there.
//!
//! A layout is a *plan* before it is bytes: a [`Shape`] is a few numbers from which every address follows, so it can be printed, checked,
//! written to a file and rebuilt. [`LAYOUTS`] lists the family; tests, benches and the command iterate over it. One layout is one file: its
//! shape, how keys fill its lines, and its search, generic over the instruction set.

mod binary;
mod eytzinger;
mod kary;
mod packed;
mod split;
mod tree;
mod veb;
mod window;

pub(crate) use binary::{BranchFree, Sorted};
pub(crate) use eytzinger::Eytzinger;
pub(crate) use kary::Kary;
pub(crate) use packed::Packed;
pub(crate) use split::{Filled, Part, Split};
pub(crate) use tree::Tree;
pub(crate) use veb::VanEmdeBoas;
pub(crate) use window::Window;

use core::ops::Range;

use crate::kernel::Simd;
use crate::key::{Exact, Lane};
use crate::line::Line;

/// The order in which keys stand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The sorted array, searched with branches.
    Sorted,
    /// The sorted array, halved without branches.
    BranchFree,
    /// Breadth-first binary tree, prefetching four levels ahead.
    Eytzinger,
    /// Breadth-first tree of whole lines, every key once.
    Kary,
    /// S+tree: the sorted array in lines, and levels of separators above it.
    Tree,
    /// Recursive (van Emde Boas) binary tree.
    VanEmdeBoas,
    /// A table of starts by key prefix, then one window of the sorted array.
    Window,
    /// Keys split into a line number and a short digit: one line per query.
    Split,
    /// Digits end to end, a table of starts, and interpolation with a proven bound.
    Packed,
}

/// One entry of the family.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Which layout.
    pub layout: Layout,
    /// The name that selects it.
    pub name: &'static str,
    /// How it works, in one line.
    pub about: &'static str,
    /// The most lines that one query reads, for keys of whatever distribution (k keys per line, n keys).
    pub bound: &'static str,
}

/// Every layout.
pub const LAYOUTS: &[Description] = &[
    Description {
        layout: Layout::Sorted,
        name: "sorted",
        about: "sorted array, classic binary search",
        bound: "at most log2 n a query",
    },
    Description {
        layout: Layout::BranchFree,
        name: "branch-free",
        about: "sorted array, halving without branches, sixteen queries abreast",
        bound: "at most log2 n a query",
    },
    Description {
        layout: Layout::Eytzinger,
        name: "eytzinger",
        about: "breadth-first binary tree, prefetching four levels ahead",
        bound: "at most log2 n a query, in a quarter of the waits",
    },
    Description {
        layout: Layout::Kary,
        name: "k-ary",
        about: "breadth-first tree of lines, every key once, ranks beside the keys",
        bound: "at most log(k+1) n a query, and one of ranks",
    },
    Description {
        layout: Layout::Tree,
        name: "tree",
        about: "S+tree: separators over the sorted array, one line per level",
        bound: "at most log(k+1) n a query",
    },
    Description {
        layout: Layout::VanEmdeBoas,
        name: "van-emde-boas",
        about: "recursive binary tree, child addresses after Brodal, Fagerberg and Jacob",
        bound: "at most 4 log(k+1) n a query",
    },
    Description {
        layout: Layout::Window,
        name: "window",
        about: "table of starts by scaled key, then unaligned windows of the sorted array",
        bound: "at most 1 + 6 a query; keys that need more are refused",
    },
    Description {
        layout: Layout::Split,
        name: "split",
        about: "keys split into a line number and a short digit kept in the line",
        bound: "1 a query, at most 2; keys that need more are refused",
    },
    Description {
        layout: Layout::Packed,
        name: "packed",
        about: "16-bit digits end to end, a table of starts, interpolation in between",
        bound: "2 a query, at most 4; keys that interpolation misses by more are refused",
    },
];

impl Layout {
    /// The layout's entry in [`LAYOUTS`].
    pub fn description(self) -> &'static Description {
        LAYOUTS.iter().find(|entry| entry.layout == self).expect("every layout is listed")
    }

    /// The name that selects the layout.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// The layout called `name`.
    pub fn from_name(name: &str) -> Option<Layout> {
        LAYOUTS.iter().find(|entry| entry.name == name).map(|entry| entry.layout)
    }

    /// The number that stands for the layout in a file.
    pub(crate) fn code(self) -> u32 {
        self as u32 + 1
    }

    /// The layout that a file's number stands for.
    pub(crate) fn from_code(code: u32) -> Option<Layout> {
        LAYOUTS.iter().map(|entry| entry.layout).find(|layout| layout.code() == code)
    }
}

/// Why a layout cannot hold some keys; the planner then takes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many keys share one bucket: the keys are too unevenly spread, or repeat too often.
    Crowded,
    /// More keys than the layout's counters can number.
    TooMany,
    /// The keys are not sorted, which was found out while they were placed.
    Unsorted,
}

impl Refusal {
    /// The refusal as a clause of a sentence.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Refusal::Crowded => "the keys are too unevenly spread or repeated too often",
            Refusal::TooMany => "there are more keys than its counters can number",
            Refusal::Unsorted => "the keys are not sorted",
        }
    }
}

/// What a layout can do. Shapes are `lines` long, hold `n` keys, and answer ranks: the number of keys less than `q`.
pub(crate) trait Method<L: Lane>: Copy {
    /// This method's shape inside the family's.
    ///
    /// # Panics
    /// When `shape` is of another layout.
    fn of(shape: &Shape<L>) -> &Self;
    /// Lines that the keys take in this layout.
    fn lines(&self) -> usize;
    /// The number of keys less than `q`.
    fn rank<S: Simd>(&self, simd: S, lines: &[Line], q: L) -> usize;
    /// Many ranks; `out` is as long as `qs`.
    fn ranks<S: Simd>(&self, simd: S, lines: &[Line], qs: &[L], out: &mut [usize]);
    /// The key of rank `rank < n`.
    fn key(&self, lines: &[Line], rank: usize) -> L;
    /// Hands out the keys of a range of ranks in order.
    fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        ranks.for_each(|rank| each(self.key(lines, rank)));
    }
    /// True when `lines`, which may come from anywhere, are in the order that searches rely on: then no query leaves them and no answer exceeds n.
    fn holds(&self, lines: &[Line]) -> bool;
    /// Numbers that, with layout and n, give the shape back.
    fn words(&self) -> [u64; 6] {
        [0; 6]
    }
}

/// A layout that keys are written into when its shape is known beforehand.
pub(crate) trait Fill<L: Lane>: Method<L> {
    /// Writes the sorted `keys` into zeroed `lines`, on up to `threads` threads where that pays.
    fn fill<K: Exact<As = L>>(&self, keys: &[K], lines: &mut [Line], threads: usize);
}

/// The plan of an index: a layout and its numbers.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "one per index, never moved in a loop")]
pub(crate) enum Shape<L: Lane> {
    Sorted(Sorted),
    BranchFree(BranchFree),
    Eytzinger(Eytzinger),
    Kary(Kary),
    Tree(Tree),
    VanEmdeBoas(VanEmdeBoas),
    Window(Window<L>),
    Split(Split<L>),
    Packed(Packed<L>),
}

/// Calls one method on whichever shape it is.
macro_rules! each {
    ($shape:expr, $inner:ident => $call:expr) => {
        match $shape {
            Shape::Sorted($inner) => $call,
            Shape::BranchFree($inner) => $call,
            Shape::Eytzinger($inner) => $call,
            Shape::Kary($inner) => $call,
            Shape::Tree($inner) => $call,
            Shape::VanEmdeBoas($inner) => $call,
            Shape::Window($inner) => $call,
            Shape::Split($inner) => $call,
            Shape::Packed($inner) => $call,
        }
    };
}

impl<L: Lane> Shape<L> {
    /// The layout.
    pub(crate) fn layout(&self) -> Layout {
        match self {
            Shape::Sorted(_) => Layout::Sorted,
            Shape::BranchFree(_) => Layout::BranchFree,
            Shape::Eytzinger(_) => Layout::Eytzinger,
            Shape::Kary(_) => Layout::Kary,
            Shape::Tree(_) => Layout::Tree,
            Shape::VanEmdeBoas(_) => Layout::VanEmdeBoas,
            Shape::Window(_) => Layout::Window,
            Shape::Split(_) => Layout::Split,
            Shape::Packed(_) => Layout::Packed,
        }
    }

    /// Lines that the keys take.
    pub(crate) fn lines(&self) -> usize {
        each!(self, inner => Method::<L>::lines(inner))
    }

    /// The key of rank `rank`.
    pub(crate) fn key(&self, lines: &[Line], rank: usize) -> L {
        each!(self, inner => inner.key(lines, rank))
    }

    /// Hands out the keys of a range of ranks in order.
    pub(crate) fn read(&self, lines: &[Line], ranks: Range<usize>, each: &mut dyn FnMut(L)) {
        each!(self, inner => inner.read(lines, ranks, each));
    }

    /// True when the lines are in this layout's order.
    pub(crate) fn holds(&self, lines: &[Line]) -> bool {
        each!(self, inner => Method::<L>::holds(inner, lines))
    }

    /// The numbers that a file keeps.
    pub(crate) fn words(&self) -> [u64; 6] {
        each!(self, inner => Method::<L>::words(inner))
    }

    /// The shape of `n` keys in `layout` with a file's numbers, or `None` when they describe none.
    pub(crate) fn from_words(layout: Layout, n: usize, words: [u64; 6]) -> Option<Shape<L>> {
        Some(match layout {
            Layout::Sorted => Shape::Sorted(Sorted::new::<L>(n)),
            Layout::BranchFree => Shape::BranchFree(BranchFree::new::<L>(n)),
            Layout::Eytzinger => Shape::Eytzinger(Eytzinger::new::<L>(n)),
            Layout::Kary => Shape::Kary(Kary::new::<L>(n).ok()?),
            Layout::Tree => Shape::Tree(Tree::new::<L>(n)),
            Layout::VanEmdeBoas => Shape::VanEmdeBoas(VanEmdeBoas::new::<L>(n)),
            Layout::Window => Shape::Window(Window::from_words(n, words)?),
            Layout::Split => Shape::Split(Split::from_words(n, words)?),
            Layout::Packed => Shape::Packed(Packed::from_words(n, words)?),
        })
    }
}
