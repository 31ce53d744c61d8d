//! One row of tags, touched, and sixteen touches sifted: the innermost operations, in a version per instruction set.
//!
//! **What.** [`TouchRow`] finds a line among a row's lanes and puts it in front. **Why this way.** The set is stored in recency order, so the same
//! shift serves hit and miss, without a branch. `Kernel` is chosen once; holding one proves that the processor has the instructions,
//! which is `pulp`'s business, and the reason why this crate needs no `unsafe`.
//!
//! **Shapes.** 8 or 16 lanes of 8 bytes, or 16 of 4; logical ways are the first lanes, the others stay empty.

mod avx2;
mod avx512;
mod portable;

use crate::bank::{is_fetch, Part};
use crate::stage::Limits;
use crate::touch::{lanes_mut, Step, Touches, STEP};
use event::Record;
use pulp::x86::{V3, V4};
use pulp::NullaryFnOnce;
use std::marker::PhantomData;

/// No line has this number: the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's tags, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T, const LANES: usize>(pub(crate) [T; LANES]);

/// A tag, of a width that rows have. Wide tags are line numbers; narrow ones leave the set's bits out.
pub(crate) trait Tag: Copy + Eq {
    /// No line has it.
    const EMPTY: Self;
    /// What is kept of lines, written to `tags`; answers 0, or something else where one does not fit.
    fn keep<K: Vectors>(kernel: K, located: &Located, tags: &mut [Self; STEP]) -> u32;
    /// Which of the tags differ.
    fn differ<K: Vectors>(kernel: K, tags: &[Self; STEP], others: &[Self; STEP]) -> u32;
    /// The one of two columns that holds such tags.
    fn column<'a, const LEN: usize>(
        wide: &'a mut [u64; LEN],
        narrow: &'a mut [u32; LEN],
    ) -> &'a mut [Self; LEN];
}

impl Tag for u64 {
    const EMPTY: u64 = EMPTY;

    #[inline(always)]
    fn keep<K: Vectors>(_kernel: K, located: &Located, tags: &mut [u64; STEP]) -> u32 {
        *tags = located.line;
        0
    }

    #[inline(always)]
    fn differ<K: Vectors>(kernel: K, tags: &[u64; STEP], others: &[u64; STEP]) -> u32 {
        kernel.long_differ(tags, others)
    }

    #[inline(always)]
    fn column<'a, const LEN: usize>(
        wide: &'a mut [u64; LEN],
        _narrow: &'a mut [u32; LEN],
    ) -> &'a mut [u64; LEN] {
        wide
    }
}

impl Tag for u32 {
    const EMPTY: u32 = u32::MAX;

    #[inline(always)]
    fn keep<K: Vectors>(kernel: K, located: &Located, tags: &mut [u32; STEP]) -> u32 {
        kernel.narrow(&located.quotient, tags)
    }

    #[inline(always)]
    fn differ<K: Vectors>(kernel: K, tags: &[u32; STEP], others: &[u32; STEP]) -> u32 {
        kernel.differ(tags, others)
    }

    #[inline(always)]
    fn column<'a, const LEN: usize>(
        _wide: &'a mut [u64; LEN],
        narrow: &'a mut [u32; LEN],
    ) -> &'a mut [u32; LEN] {
        narrow
    }
}

/// Touches rows of `LANES` tags.
pub(crate) trait TouchRow<T, const LANES: usize>: Vectors {
    /// Finds `tag` and moves it to the front; when it is missing, `fill` says what happens. Answers with the bit of the lane where the
    /// tag was, 0 where it was missing.
    fn touch_row<F: Fill>(self, row: &mut Row<T, LANES>, tag: T, fill: F) -> u32;
}

/// What is done with sixteen touches at once; masks have a bit per touch. The provided versions are plain code.
pub(crate) trait Vectors: Copy {
    /// Writes sixteen touches behind the last one of `touches`, as if all `records` were touches of references numbered from `reference`,
    /// and answers which of them are.
    #[inline(always)]
    fn stage(self, records: &[Record; STEP], limits: &Limits, reference: u32, touches: &mut Touches) -> u32 {
        let Touches { address, what, reference: references, len } = touches;
        let address: &mut [u64; STEP] = lanes_mut(address, *len);
        let what: &mut [u32; STEP] = lanes_mut(what, *len);
        let references: &mut [u32; STEP] = lanes_mut(references, *len);
        let mut are = 0;
        for (lane, record) in records.iter().enumerate() {
            address[lane] = record.address;
            what[lane] = record.what;
            references[lane] = reference.wrapping_add(lane as u32);
            are |= u32::from(limits.hold(record)) << lane;
        }
        are
    }

    /// Has the line of the host's cache that holds `_item` brought in; nothing waits for it.
    #[inline(always)]
    fn prefetch<T>(self, _item: &T) {}

    /// The bits of the lanes that hold a line.
    #[inline(always)]
    fn find(self, row: &Row<u64, 16>, line: u64) -> u32 {
        row.0.iter().enumerate().fold(0, |found, (lane, &tag)| found | u32::from(tag == line) << lane)
    }

    /// Which are 0.
    #[inline(always)]
    fn zeros(self, found: &[u32; STEP]) -> u32 {
        found.iter().enumerate().fold(0, |zeros, (lane, &found)| zeros | u32::from(found == 0) << lane)
    }

    /// Which are fetches.
    #[inline(always)]
    fn fetches(self, what: &[u32; STEP]) -> u32 {
        what.iter().enumerate().fold(0, |are, (lane, &what)| are | u32::from(is_fetch(what)) << lane)
    }

    /// Which differ from the other in their lane.
    #[inline(always)]
    fn differ(self, some: &[u32; STEP], others: &[u32; STEP]) -> u32 {
        differ(some, others)
    }

    /// The same for longer numbers.
    #[inline(always)]
    fn long_differ(self, some: &[u64; STEP], others: &[u64; STEP]) -> u32 {
        differ(some, others)
    }

    /// Which differ from the one before; `before` holds the step before, and becomes this one.
    #[inline(always)]
    fn changes(self, before: &mut [u32; STEP], now: &[u32; STEP]) -> u32 {
        changes(before, now)
    }

    /// The same for longer numbers.
    #[inline(always)]
    fn long_changes(self, before: &mut [u64; STEP], now: &[u64; STEP]) -> u32 {
        changes(before, now)
    }

    /// Finds the rows of touches in caches whose sets are a power of two.
    #[inline(always)]
    fn locate(self, step: Step, parts: &[Part; 2], rows: &mut [u32; STEP]) -> Located {
        let mut located = Located { line: [0; STEP], quotient: [0; STEP] };
        for lane in 0..STEP {
            let part = &parts[usize::from(is_fetch(step.what[lane]))];
            let line = step.address[lane] >> part.line_shift;
            rows[lane] = part.base + (line & (part.sets - 1)) as u32;
            located.line[lane] = line;
            located.quotient[lane] = line >> part.set_shift;
        }
        located
    }

    /// Writes narrow tags, and answers which do not fit. The largest number is `EMPTY`, and does not fit either.
    #[inline(always)]
    fn narrow(self, quotients: &[u64; STEP], tags: &mut [u32; STEP]) -> u32 {
        let mut beyond = 0;
        for lane in 0..STEP {
            tags[lane] = quotients[lane] as u32;
            beyond |= u32::from(quotients[lane] >= u64::from(u32::MAX)) << lane;
        }
        beyond
    }

    /// The numbers that `kept` names, in the leading lanes.
    #[inline(always)]
    fn pack(self, kept: u32, numbers: &[u32; STEP]) -> [u32; STEP] {
        let mut packed = *numbers;
        if kept.trailing_ones() < kept.count_ones() {
            let (mut kept, mut to) = (kept, 0);
            while kept != 0 {
                packed[to & (STEP - 1)] = numbers[kept.trailing_zeros() as usize & (STEP - 1)];
                kept &= kept - 1;
                to += 1;
            }
        }
        packed
    }

    /// Appends the touches of `step` that `kept` names.
    #[inline(always)]
    fn keep(self, kept: u32, step: Step, touches: &mut Touches) {
        let mut kept = kept;
        while kept != 0 {
            let lane = kept.trailing_zeros() as usize & (STEP - 1);
            kept &= kept - 1;
            touches.push(step.address[lane], step.what[lane], step.reference[lane]);
        }
    }
}

/// Line numbers, and their quotients by the number of sets.
pub(crate) struct Located {
    pub(crate) line: [u64; STEP],
    pub(crate) quotient: [u64; STEP],
}

#[inline(always)]
fn differ<T: Copy + PartialEq>(some: &[T; STEP], others: &[T; STEP]) -> u32 {
    (0..STEP).fold(0, |differ, lane| differ | u32::from(some[lane] != others[lane]) << lane)
}

#[inline(always)]
fn changes<T: Copy + PartialEq>(before: &mut [T; STEP], now: &[T; STEP]) -> u32 {
    let mut changes = u32::from(now[0] != before[STEP - 1]);
    for lane in 1..STEP {
        changes |= u32::from(now[lane] != now[lane - 1]) << lane;
    }
    *before = *now;
    changes
}

/// What a touch does to its row when the line is missing.
pub(crate) trait Fill: Copy {
    /// The bits of all lanes, where each is a way and the line always enters. A kernel may add it to what was found, modulo its sum's width: that is
    /// one less.
    #[inline(always)]
    fn whole(self) -> Option<u32> {
        None
    }

    /// Lanes that move: up to and with the lowest one of `found`; where none is, all ways, or none if nothing enters.
    fn moved(self, found: u32) -> u32;
}

/// The line always enters. `last` is the last way's bit.
#[derive(Clone, Copy)]
pub(crate) struct Enters {
    pub(crate) last: u32,
}

/// The line always enters, in a row each of whose lanes is a way.
#[derive(Clone, Copy)]
pub(crate) struct EntersWhole {
    all: u32,
}

impl EntersWhole {
    /// The compiler is not to know the number: it would take the sum in a general register, which a mask reaches and leaves in three cycles each.
    #[inline(always)]
    pub(crate) fn new(lanes: usize) -> EntersWhole {
        EntersWhole { all: std::hint::black_box(u32::MAX >> (u32::BITS - lanes as u32)) }
    }
}

/// The line enters where `enters` is all ones, and does not where it is 0.
#[derive(Clone, Copy)]
pub(crate) struct MayEnter {
    pub(crate) last: u32,
    pub(crate) enters: u32,
}

impl Fill for Enters {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        let last = found | self.last;
        last ^ (last - 1)
    }
}

impl Fill for EntersWhole {
    #[inline(always)]
    fn whole(self) -> Option<u32> {
        Some(self.all)
    }

    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        found ^ found.wrapping_sub(1)
    }
}

impl Fill for MayEnter {
    #[inline(always)]
    fn moved(self, found: u32) -> u32 {
        let hit = (found as i32).wrapping_neg() >> 31;
        Enters { last: self.last }.moved(found) & (self.enters | hit as u32)
    }
}

/// A loop over rows, generic over the kernel that it is compiled for.
pub(crate) trait Work<T, const LANES: usize> {
    type Output;
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Self::Output;
}

/// A loop over touches, generic over the kernel that it is compiled for.
pub(crate) trait Pass {
    type Output;
    fn run<K: Vectors>(self, kernel: K) -> Self::Output;
}

/// The kernel in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Avx512(V4),
    Avx2(V3),
    Portable,
}

impl Kernel {
    /// All that this processor has, fastest first.
    pub(crate) fn all() -> impl Iterator<Item = Kernel> {
        let avx512 = V4::try_new().map(Kernel::Avx512);
        let avx2 = V3::try_new().map(Kernel::Avx2);
        avx512.into_iter().chain(avx2).chain([Kernel::Portable])
    }

    /// The best that this processor has.
    pub(crate) fn fastest() -> Kernel {
        Kernel::all().next().unwrap_or(Kernel::Portable)
    }

    /// Runs `work`, compiled for this kernel.
    pub(crate) fn run<T, const LANES: usize, W: Work<T, LANES>>(self, work: W) -> W::Output
    where
        V4: TouchRow<T, LANES>,
        V3: TouchRow<T, LANES>,
        portable::Portable: TouchRow<T, LANES>,
    {
        let tags = PhantomData;
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(Compiled { kernel: avx512, work, tags }),
            Kernel::Avx2(avx2) => avx2.vectorize(Compiled { kernel: avx2, work, tags }),
            Kernel::Portable => work.run(portable::Portable),
        }
    }

    /// Runs `pass`, compiled for this kernel.
    pub(crate) fn pass<P: Pass>(self, pass: P) -> P::Output {
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(Passing { kernel: avx512, pass }),
            Kernel::Avx2(avx2) => avx2.vectorize(Passing { kernel: avx2, pass }),
            Kernel::Portable => pass.run(portable::Portable),
        }
    }
}

/// `pass` on `kernel`, inlined likewise.
struct Passing<K, P> {
    kernel: K,
    pass: P,
}

impl<K: Vectors, P: Pass> NullaryFnOnce for Passing<K, P> {
    type Output = P::Output;

    #[inline(always)]
    fn call(self) -> P::Output {
        self.pass.run(self.kernel)
    }
}

/// `work` on `kernel`, inlined into a function that has the kernel's instructions.
struct Compiled<K, W, T, const LANES: usize> {
    kernel: K,
    work: W,
    tags: PhantomData<[T; LANES]>,
}

impl<T, K, W, const LANES: usize> NullaryFnOnce for Compiled<K, W, T, LANES>
where
    K: TouchRow<T, LANES>,
    W: Work<T, LANES>,
{
    type Output = W::Output;

    #[inline(always)]
    fn call(self) -> W::Output {
        self.work.run(self.kernel)
    }
}
