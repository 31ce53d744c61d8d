//! Superblocks: basic blocks that are translated together and entered at the first one only.

use super::decode::{Decoded, End};
use super::event_request::EventRequests;
use crate::target::trust::Trust;
use std::ops::Range;

/// A decoded basic block of a superblock.
pub(crate) struct BasicBlock {
    /// Address of the first instruction.
    pub(crate) ip: u64,
    pub(crate) instructions: Vec<Decoded>,
    /// Why the block ends.
    pub(crate) end: End,
    /// Number of the block in the profile.
    pub(crate) number: u32,
    /// The address of the superblock's next block; `None` for the last one.
    pub(crate) next: Option<u64>,
    /// The events that a tool requested in the block.
    pub(crate) events: EventRequests,
    /// Whether it ends with a direct jump into another function that is recorded as calls are.
    pub(crate) is_tail_jump: bool,
    /// The addresses of the function whose jump by a register or memory ends the block: jumps
    /// within them are no calls. `None` records all jumps, if calls are recorded.
    pub(crate) jumps_within: Option<Range<u64>>,
    /// Whether it is a stub of the linkage table, whose jump is recorded as such.
    pub(crate) is_stub: bool,
}

impl BasicBlock {
    pub(crate) fn last(&self) -> Option<&Decoded> {
        self.instructions.last()
    }

    /// The address behind the last instruction.
    pub(crate) fn end_ip(&self) -> u64 {
        self.last().map_or(self.ip, |last| last.instruction.next_ip())
    }
}

/// The blocks that are emitted as one fragment.
#[derive(Clone, Copy)]
pub(crate) struct Superblock<'a> {
    /// One or more blocks.
    pub(crate) blocks: &'a [BasicBlock],
    pub(crate) trust: Trust,
    /// The 8-byte words of memory that hold the code, if it may change: generated code compares
    /// them whenever it runs. Empty otherwise.
    pub(crate) words: &'a [u64],
    pub(crate) steps: Steps,
}

/// Whether the program single-steps itself by the trap flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The program has never set the trap flag.
    Never,
    /// The program has set the trap flag: every instruction needs a fragment of its own.
    Itself,
}

impl Superblock<'_> {
    /// The addresses of the first byte, rounded down to a word, and behind the last byte of
    /// `blocks`.
    pub(crate) fn extent(blocks: &[BasicBlock]) -> (u64, u64) {
        (blocks[0].ip & !7, blocks.last().map_or(blocks[0].ip, BasicBlock::end_ip))
    }
}
