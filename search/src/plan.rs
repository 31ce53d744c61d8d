//! The plan: chooses a layout before any query, with the reason and the cost.
//!
//! The planner has a short list of candidates in order of preference. A layout that cannot hold the
//! keys within its bound refuses, and the next one is tried. The tree never refuses. The order was
//! measured with `benches/race`: a few hundred keys are one or two lines in any layout, and the
//! tree is the simplest; evenly spread keys go to `split`, which reads one line at every size from
//! 16 KiB to 2 GiB and was the fastest at all of them; keys that are evenly spread piece by piece
//! go to `pieces`, and all others to the tree. Whether keys are evenly spread is found by placing
//! all of them, not by sampling, so the bound holds for every key; a sample only spares the placing
//! of keys that are clearly uneven. The copies of a single key that takes a large part of all keys
//! are counted beforehand, and no layout gets them. `packed` (half the keys' memory) and the other
//! layouts are used only if the caller names them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::choose::Kernel;
use crate::copies::Copies;
use crate::error::Error;
use crate::kernel::Isa;
use crate::lane::{Exact, Lane};
use crate::layout::{Layout, Placing, Refusal, Shape};
use crate::memory::Memory;
use crate::reason::Reason;

/// The choices that a caller can make; all others are planned.
///
/// ```
/// use lightfoot_search::{Index, Layout, Options};
/// let options = Options { layout: Some(Layout::Tree), threads: Some(2), ..Options::default() };
/// let index = Index::build_with(&[1u32, 2, 3], &options)?;
/// assert_eq!(index.layout(), Layout::Tree);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A layout for races and studies; planned when `None`.
    pub layout: Option<Layout>,
    /// An instruction set; the fastest available when `None`.
    pub isa: Option<Isa>,
    /// Threads that place the keys; the caller's own when `None`. The index is the same for any
    /// number.
    pub threads: Option<usize>,
}

/// A searchable array of lanes: a plan, the lines it describes, and the kernel chosen for them.
#[derive(Clone, Debug)]
pub(crate) struct Core<L: Lane> {
    pub(crate) n: usize,
    pub(crate) shape: Shape<L>,
    pub(crate) memory: Memory,
    kernel: Kernel<L>,
    pub(crate) reason: Reason,
    /// The copies of a key that are counted and not stored.
    pub(crate) copies: Copies<L>,
}

impl<L: Lane> Core<L> {
    /// Plans and builds for sorted keys. If one key takes a large part of them, its copies are
    /// counted, and the layout holds the other keys.
    pub(crate) fn build<K: Exact<As = L>>(keys: &[K], options: &Options) -> Result<Core<L>, Error> {
        let Some(copies) = Copies::find(keys).filter(|_| options.layout.is_none()) else {
            return Core::build_whole(keys, options);
        };
        // What lies between copies is left out, so it must be looked at before.
        check_sorted(keys)?;
        let core = Core::build_whole(&copies.without(keys), options)?;
        Ok(Core { n: keys.len(), copies, ..core })
    }

    /// Plans and builds for sorted keys, all of which the layout holds. Their order is checked
    /// once: by the layout where it reads them anyway, beforehand elsewhere.
    pub(crate) fn build_whole<K: Exact<As = L>>(keys: &[K], options: &Options) -> Result<Core<L>, Error> {
        let isa = options.isa.unwrap_or_else(Isa::detect);
        let placing = Placing { vectors: isa, threads: options.threads.unwrap_or(1) };
        let mut reason = if options.layout.is_some() { Reason::NAMED } else { Reason::PLANNED };
        let candidates = match options.layout {
            Some(layout) => alloc::vec![layout],
            None => preference::<L>(keys.len()),
        };
        let mut is_order_known = false;
        for &layout in &candidates {
            if !layout.properties().is_order_checked && !is_order_known {
                check_sorted(keys)?;
                is_order_known = true;
            }
            match Shape::build(layout, keys, placing) {
                Ok((shape, memory)) => {
                    let kernel = Kernel::choose(&shape, isa).ok_or(Error::NoSuchIsa { isa: isa.name() })?;
                    let (n, copies) = (keys.len(), Copies::NONE);
                    return Ok(Core { n, shape, memory, kernel, reason, copies });
                }
                // The layout has detected that keys are out of order; find the first such key.
                Err(Refusal::Unsorted) => {
                    check_sorted(keys)?;
                    unreachable!("keys that are sorted were found unsorted");
                }
                // A layout that the caller named is not replaced by another.
                Err(why) if options.layout.is_some() => {
                    return Err(Error::Refused { layout: layout.name(), reason: why.why() });
                }
                Err(why) => reason = reason.after(layout, why),
            }
        }
        unreachable!("the tree refuses no keys and is always a candidate")
    }

    /// The index of lines that were read from a file, with `count` copies of `key`.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the lines are not in the layout's order, or do not hold a key that
    /// has copies, whatever their checksum says.
    pub(crate) fn from_parts(
        n: usize,
        shape: Shape<L>,
        memory: Memory,
        reason: Reason,
        (key, count): (u64, usize),
    ) -> Result<Core<L>, Error> {
        if !shape.contents().holds(memory.lines()) {
            return Err(Error::Damaged { what: "the contents are not in the order of their layout" });
        }
        let kernel = Kernel::choose(&shape, Isa::detect()).expect("a detected instruction set is available");
        let mut core = Core { n, shape, memory, kernel, reason, copies: Copies::NONE };
        if count > 0 {
            let key = L::narrow(key);
            let first = core.rank(key);
            if first >= n - count || core.key(first) != key {
                return Err(Error::Damaged { what: "a key that has copies is not there" });
            }
            core.copies = Copies::of(key, first, count);
        }
        Ok(core)
    }

    /// The number of keys less than `query`.
    #[inline(always)]
    pub(crate) fn rank(&self, query: L) -> usize {
        self.kernel.rank(&self.shape, self.memory.lines(), query) + self.copies.below(query)
    }

    /// Many ranks.
    #[inline]
    pub(crate) fn ranks(&self, queries: &[L], out: &mut [usize]) {
        let search = |queries: &[L], out: &mut [usize]| {
            self.kernel.ranks(&self.shape, self.memory.lines(), queries, out);
        };
        self.copies.ranks(queries, out, search);
    }

    /// The number of keys not greater than `query`.
    #[inline(always)]
    pub(crate) fn rank_after(&self, query: L) -> usize {
        if query < L::MAX {
            self.rank(L::narrow(query.widen() + 1))
        } else {
            self.n
        }
    }

    /// The lane of rank `rank < n`.
    pub(crate) fn key(&self, rank: usize) -> L {
        self.shape.contents().key(self.memory.lines(), self.copies.stored(rank))
    }

    /// Calls `each` with the lanes of a range of ranks in order.
    pub(crate) fn read(&self, ranks: core::ops::Range<usize>, each: &mut dyn FnMut(L)) {
        let (before, copies, behind) = self.copies.cut(ranks);
        let (contents, lines) = (self.shape.contents(), self.memory.lines());
        contents.read(lines, before, each);
        (0..copies).for_each(|_| each(self.copies.key));
        contents.read(lines, behind, each);
    }

    /// True when the lanes, in order, are those of `expected`.
    pub(crate) fn has_lanes(&self, mut expected: impl Iterator<Item = L>) -> bool {
        let mut same = true;
        self.read(0..self.n, &mut |lane| same &= expected.next() == Some(lane));
        same
    }

    /// The plan in words: layout, reason, size, kernel and pages.
    pub(crate) fn explain(&self) -> String {
        // One line for each question: which layout, why, and how many lines a query reads.
        let layout = self.shape.layout().description();
        let bytes = size_of_val(self.memory.lines());
        let keys_bytes = (self.n * size_of::<L>()).max(1);
        let detail = self.shape.contents().detail();
        let copies = match self.copies.count {
            0 => String::new(),
            count => format!(", and {count} copies of one key are counted beside them"),
        };
        format!(
            "layout   {} ({}{detail})\nbecause  {}\nlines    {}\nkeys     {}\nmemory   {} bytes, {:.2} of the keys' own\nkernel   {}\npages    {}\n",
            layout.name,
            layout.about,
            self.reason.words(self.shape.layout()) + &copies,
            layout.bound,
            self.n,
            bytes,
            bytes as f64 / keys_bytes as f64,
            self.kernel.isa().name(),
            self.memory.pages(),
        )
    }
}

/// The first position whose key is smaller than its predecessor is an error.
fn check_sorted<K: Exact>(keys: &[K]) -> Result<(), Error> {
    const BLOCK: usize = 1024;
    for start in (1..keys.len()).step_by(BLOCK) {
        let pairs = keys[start - 1..keys.len().min(start + BLOCK)].windows(2);
        let descents = pairs.map(|pair| u32::from(pair[0].to_lane() > pair[1].to_lane())).sum::<u32>();
        // Blocks are compared without branches; only the first unsorted one is searched.
        if descents > 0 {
            let within = keys[start - 1..].windows(2).position(|pair| pair[0].to_lane() > pair[1].to_lane());
            return Err(Error::Unsorted { position: start + within.unwrap_or(0) });
        }
    }
    Ok(())
}

/// Layouts to try, best first; ends with the tree.
fn preference<L: Lane>(n: usize) -> Vec<Layout> {
    if n <= L::PER_LINE * (L::PER_LINE + 1) {
        alloc::vec![Layout::Tree]
    } else {
        alloc::vec![Layout::Split, Layout::Pieces, Layout::Tree]
    }
}
