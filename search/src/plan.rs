//! The plan: which layout, why, and what it costs, decided before a query is ever asked.
//!
//! The planner is a short list of candidates in order of preference; a layout that cannot hold the keys within its bound refuses, and the next one is tried.
//! The tree never refuses. What decides, measured with `benches/race`: a few hundred keys are one or two lines in any layout, and the tree's are the
//! plainest; evenly spread keys go to `split`, which reads one line at every size from 16 KiB to 2 GiB and was fastest at all of them; whatever it refuses goes to the
//! tree. Evenness is found out by placing the keys, not by sampling, so the bound holds for every key. `packed` (half the keys' memory) and the other layouts
//! are for callers who ask for them by name.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::kernel::{fill_part, Isa, Kernel};
use crate::key::{Exact, Lane};
use crate::layout::*;
use crate::memory::{Draft, Memory};

/// What a caller may decide; everything else is planned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A layout for races and studies; planned when `None`.
    pub layout: Option<Layout>,
    /// An instruction set; the fastest available when `None`.
    pub isa: Option<Isa>,
    /// Threads that place the keys; the caller's own when `None`. The index is the same for any number.
    pub threads: Option<usize>,
}

/// A searchable array of lanes: a plan, the lines it describes, and the kernel chosen for them.
#[derive(Clone, Debug)]
pub(crate) struct Core<L: Lane> {
    pub(crate) n: usize,
    pub(crate) shape: Shape<L>,
    pub(crate) memory: Memory,
    kernel: Kernel<L>,
    reason: String,
}

impl<L: Lane> Core<L> {
    /// Plans and builds for sorted keys, which are checked: by the layout that places them where it reads them anyway, beforehand elsewhere.
    pub(crate) fn build<K: Exact<As = L>>(keys: &[K], options: &Options) -> Result<Core<L>, Error> {
        let isa = options.isa.unwrap_or_else(Isa::detect);
        let mut refused = Vec::new();
        let candidates = match options.layout {
            Some(layout) => alloc::vec![layout],
            None => preference::<L>(keys.len()),
        };
        for &layout in &candidates {
            if layout != Layout::Split {
                check_sorted(keys)?;
            }
            match place(layout, isa, keys, options.threads.unwrap_or(1)) {
                Ok((shape, memory)) => {
                    let kernel = Kernel::choose(layout, isa).ok_or(Error::NoSuchIsa { isa: isa.name() })?;
                    let reason = reason(layout, options, &refused);
                    return Ok(Core { n: keys.len(), shape, memory, kernel, reason });
                }
                Err(Refusal::Unsorted) => {
                    check_sorted(keys)?;
                    unreachable!("keys that are sorted were found unsorted");
                }
                Err(why) if options.layout.is_some() => {
                    return Err(Error::Refused { layout: layout.name(), reason: why.why() });
                }
                Err(why) => refused.push((layout, why)),
            }
        }
        unreachable!("the tree refuses no keys and is always a candidate")
    }

    /// The index of lines that were read from a file.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the lines are not in the layout's order, whatever their checksum says.
    pub(crate) fn from_parts(n: usize, shape: Shape<L>, memory: Memory) -> Result<Core<L>, Error> {
        if !shape.holds(memory.lines()) {
            return Err(Error::Damaged { what: "the contents are not in the order of their layout" });
        }
        let layout = shape.layout();
        let kernel = Kernel::choose(layout, Isa::detect()).expect("a detected instruction set is available");
        Ok(Core { n, shape, memory, kernel, reason: String::from("as the file says") })
    }

    /// The number of keys less than `q`.
    #[inline(always)]
    pub(crate) fn rank(&self, q: L) -> usize {
        self.kernel.rank(&self.shape, self.memory.lines(), q)
    }

    /// Many ranks.
    #[inline]
    pub(crate) fn ranks(&self, qs: &[L], out: &mut [usize]) {
        self.kernel.ranks(&self.shape, self.memory.lines(), qs, out);
    }

    /// The number of keys not greater than `q`.
    #[inline(always)]
    pub(crate) fn rank_after(&self, q: L) -> usize {
        if q < L::MAX {
            self.rank(L::narrow(q.widen() + 1))
        } else {
            self.n
        }
    }

    /// The lane of rank `rank < n`.
    pub(crate) fn key(&self, rank: usize) -> L {
        self.shape.key(self.memory.lines(), rank)
    }

    /// Hands out the lanes of a range of ranks in order.
    pub(crate) fn read(&self, ranks: core::ops::Range<usize>, each: &mut dyn FnMut(L)) {
        self.shape.read(self.memory.lines(), ranks, each);
    }

    /// True when the lanes, in order, are those of `expected`.
    pub(crate) fn has_lanes(&self, mut expected: impl Iterator<Item = L>) -> bool {
        let mut same = true;
        self.read(0..self.n, &mut |lane| same &= expected.next() == Some(lane));
        same
    }

    /// The plan in words: layout, reason, size, kernel and pages.
    pub(crate) fn explain(&self) -> String {
        let layout = self.shape.layout().description();
        let bytes = size_of_val(self.memory.lines());
        let keys_bytes = (self.n * size_of::<L>()).max(1);
        let digits = match &self.shape {
            Shape::Split(split) => format!(", {}-bit digits", split.digit_bits()),
            _ => String::new(),
        };
        format!(
            "layout   {} ({}{digits})\nbecause  {}\nlines    {}\nkeys     {}\nmemory   {} bytes, {:.2} of the keys' own\nkernel   {}\npages    {}\n",
            layout.name,
            layout.about,
            self.reason,
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
        alloc::vec![Layout::Split, Layout::Tree]
    }
}

/// Why a layout was taken, in words.
fn reason(layout: Layout, options: &Options, refused: &[(Layout, Refusal)]) -> String {
    if options.layout.is_some() {
        return String::from("asked for by name");
    }
    if let Some((other, why)) = refused.first() {
        return format!("{} refused: {}", other.name(), why.why());
    }
    String::from(match layout {
        Layout::Split => "the keys are evenly spread: one line a query",
        _ => "few keys: one line or two whatever they are",
    })
}

/// Places `keys` in `layout`.
fn place<L: Lane, K: Exact<As = L>>(
    layout: Layout,
    isa: Isa,
    keys: &[K],
    threads: usize,
) -> Result<(Shape<L>, Memory), Refusal> {
    let n = keys.len();
    Ok(match layout {
        Layout::Sorted => filled(Sorted::new::<L>(n), Shape::Sorted, keys, threads),
        Layout::BranchFree => filled(BranchFree::new::<L>(n), Shape::BranchFree, keys, threads),
        Layout::Eytzinger => filled(Eytzinger::new::<L>(n), Shape::Eytzinger, keys, threads),
        Layout::Kary => filled(Kary::new::<L>(n)?, Shape::Kary, keys, threads),
        Layout::Tree => filled(Tree::new::<L>(n), Shape::Tree, keys, threads),
        Layout::VanEmdeBoas => filled(VanEmdeBoas::new::<L>(n), Shape::VanEmdeBoas, keys, threads),
        Layout::Window => {
            let plan = Window::plan(keys)?;
            let lines = Method::<L>::lines(&plan);
            let mut draft = Draft::new(lines);
            plan.fill(keys, draft.lines_mut(), threads)?;
            (Shape::Window(plan), draft.finish(lines))
        }
        Layout::Packed => {
            let plan = Packed::plan(keys)?;
            let lines = Method::<L>::lines(&plan);
            let mut draft = Draft::new(lines);
            plan.fill(keys, draft.lines_mut())?;
            (Shape::Packed(plan), draft.finish(lines))
        }
        Layout::Split => {
            let plan = Split::plan(keys)?;
            let mut draft = Draft::new(plan.lines_max());
            let part = |plan: &Split<L>, keys: &[K], part: Part<'_>| fill_part(isa, plan, keys, part);
            let plan = plan.fill(keys, draft.lines_mut(), threads, part)?;
            let lines = Method::<L>::lines(&plan);
            (Shape::Split(plan), draft.finish(lines))
        }
    })
}

/// Places keys in a layout that never refuses.
fn filled<L, K, M>(method: M, shape: fn(M) -> Shape<L>, keys: &[K], threads: usize) -> (Shape<L>, Memory)
where
    L: Lane,
    K: Exact<As = L>,
    M: Fill<L>,
{
    let lines = method.lines();
    let mut draft = Draft::new(lines);
    method.fill(keys, draft.lines_mut(), threads);
    (shape(method), draft.finish(lines))
}
