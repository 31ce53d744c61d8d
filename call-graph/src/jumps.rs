//! Jumps by a register or memory that may stay within a function: those of a `switch`.
//!
//! They are no calls, so the shadow stack passes over them. A viewer that draws jumps beside the
//! instructions wants their numbers by block and target. Direct jumps need no count of their own:
//! the counts of blocks have it. **Leaves out** jumps that are calls, and those of stubs.

use symbol::ByNumber;

/// Whether jumps are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpRecords {
    /// They are counted by block and target.
    Counted,
    /// They are not.
    LeftOut,
}

/// The jumps from one block to another, under the numbers of the run's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The block that ends with the jump.
    pub block: u32,
    /// The block to which it leads.
    pub target: u32,
    /// How many there were.
    pub times: u64,
}

/// The jumps of one thread since its last cut, by block and address.
#[derive(Debug)]
pub(super) struct JumpCounts(Option<ByNumber<(u32, u64), u64>>);

impl JumpCounts {
    pub(super) fn new(records: JumpRecords) -> JumpCounts {
        JumpCounts((records == JumpRecords::Counted).then(ByNumber::default))
    }

    /// Counts a jump.
    #[inline(always)]
    pub(super) fn count(&mut self, block: u32, target: u64) {
        if let Some(counts) = &mut self.0 {
            *counts.entry((block, target)).or_default() += 1;
        }
    }

    /// What was counted until now.
    pub(super) fn take(&mut self) -> JumpCounts {
        JumpCounts(self.0.as_mut().map(std::mem::take))
    }

    /// The addresses to which they lead.
    pub(super) fn targets(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flatten().map(|((_, target), _)| *target)
    }

    /// All jumps, in no order.
    pub(super) fn all(self) -> impl Iterator<Item = ((u32, u64), u64)> {
        self.0.into_iter().flatten()
    }
}
