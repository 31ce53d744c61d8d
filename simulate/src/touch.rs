//! Touches of single lines, kept as columns: what a level takes, and what it hands on.
//!
//! **What.** A touch has an address in the one line it touches, a `what` as records have it (kind
//! `Load`, `Store`, `Modify` or `Fetch`), and the number of the reference it belongs to: touches of
//! one reference have equal numbers, which is how a level counts it once. **Why this way.** Columns
//! let a vector look at 8 or 16 touches at once: kinds, sets and tags are found, and misses are
//! packed, without a branch or a look-up per touch. **Leaves out** everything that depends on cache
//! contents.

use event::RecordKind;

/// Touches of one sweep at most.
pub(crate) const SWEEP: usize = 512;

/// Touches that a vector step looks at.
pub(crate) const STEP: usize = 16;

/// Columns have room for a whole step behind the last touch.
pub(crate) const ROOM: usize = SWEEP + STEP;

/// Touches in program order; what lies behind `len` is of no meaning. Each column begins a line of
/// the host's cache, so that a step's part of it is whole lines.
#[repr(C, align(64))]
pub(crate) struct Touches {
    pub(crate) address: [u64; ROOM],
    pub(crate) what: [u32; ROOM],
    pub(crate) reference: [u32; ROOM],
    pub(crate) len: usize,
}

impl Touches {
    /// Room for touches, and none yet.
    pub(crate) fn empty() -> Box<Touches> {
        Box::new(Touches { address: [0; ROOM], what: [0; ROOM], reference: [0; ROOM], len: 0 })
    }

    /// Appends one; there must be room.
    #[inline(always)]
    pub(crate) fn push(&mut self, address: u64, what: u32, reference: u32) {
        self.address[self.len] = address;
        self.what[self.len] = what;
        self.reference[self.len] = reference;
        self.len += 1;
    }

    /// The step that begins at `start`.
    #[inline(always)]
    pub(crate) fn step(&self, start: usize) -> TouchStep<'_> {
        TouchStep {
            address: lanes(&self.address, start),
            what: lanes(&self.what, start),
            reference: lanes(&self.reference, start),
        }
    }

    /// A copy of it, from which touches can be written back to where the step lies or before it.
    #[inline(always)]
    pub(crate) fn copied(&self, start: usize) -> TouchStepCopy {
        let TouchStep { address, what, reference } = self.step(start);
        TouchStepCopy { address: *address, what: *what, reference: *reference }
    }
}

/// A step's touches by themselves.
pub(crate) struct TouchStepCopy {
    address: [u64; STEP],
    what: [u32; STEP],
    reference: [u32; STEP],
}

impl TouchStepCopy {
    #[inline(always)]
    pub(crate) fn step(&self) -> TouchStep<'_> {
        TouchStep { address: &self.address, what: &self.what, reference: &self.reference }
    }
}

/// Sixteen touches.
#[derive(Clone, Copy)]
pub(crate) struct TouchStep<'a> {
    pub(crate) address: &'a [u64; STEP],
    pub(crate) what: &'a [u32; STEP],
    pub(crate) reference: &'a [u32; STEP],
}

/// The step's part of a column.
#[inline(always)]
pub(crate) fn lanes<T>(column: &[T], start: usize) -> &[T; STEP] {
    column[start..].first_chunk().expect("columns have room for a whole step")
}

/// A step's part of a column, or any number of its lanes, to write.
#[inline(always)]
pub(crate) fn lanes_mut<T, const LANES: usize>(column: &mut [T], start: usize) -> &mut [T; LANES] {
    column[start..].first_chunk_mut().expect("columns have room for a whole step")
}

/// The lanes of the step at `start` that hold one of `len` touches.
#[inline(always)]
pub(crate) fn held(len: usize, start: usize) -> u32 {
    let count = (len - start).min(STEP);
    (1 << count) - 1
}

/// Whether a `what` is that of an instruction line.
#[inline(always)]
pub(crate) fn is_fetch(what: u32) -> bool {
    (what >> 4) & 15 == RecordKind::Fetch as u32
}

/// Whether a `what` is that of a store.
#[inline(always)]
pub(crate) fn is_store(what: u32) -> bool {
    (what >> 4) & 15 == RecordKind::Store as u32
}

/// Which first level a touch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Data,
    Instruction,
}
