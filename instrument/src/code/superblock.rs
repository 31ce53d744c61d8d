//! Superblocks: basic blocks that are translated together, entered at the first one only.

use super::decode::{Decoded, End};
use super::event_request::EventRequests;
use crate::target::trust::Trust;

/// A block of a superblock, decoded.
pub(crate) struct BasicBlock {
    pub(crate) ip: u64,
    pub(crate) instructions: Vec<Decoded>,
    pub(crate) end: End,
    /// Number in the profile.
    pub(crate) number: u32,
    /// The address at which the superblock goes on, if it does.
    pub(crate) next: Option<u64>,
    /// The events that a tool asked for.
    pub(crate) events: EventRequests,
}

impl BasicBlock {
    pub(crate) fn last(&self) -> Option<&Decoded> {
        self.instructions.last()
    }

    /// Address after the last instruction.
    pub(crate) fn end_ip(&self) -> u64 {
        self.last().map_or(self.ip, |d| d.i.next_ip())
    }
}

/// The blocks that are emitted as one fragment.
#[derive(Clone, Copy)]
pub(crate) struct Superblock<'a> {
    /// At least one.
    pub(crate) blocks: &'a [BasicBlock],
    pub(crate) trust: Trust,
    /// The words of memory that hold the code, if it may change; they are compared whenever it
    /// runs.
    pub(crate) words: &'a [u64],
    pub(crate) steps: Steps,
}

/// Whether the program steps itself by the trap flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// It never did.
    Never,
    /// It has: every instruction needs code of its own.
    Itself,
}

impl Superblock<'_> {
    /// Address of the first byte, and behind the last one, of its words.
    pub(crate) fn extent(blocks: &[BasicBlock]) -> (u64, u64) {
        (blocks[0].ip & !7, blocks.last().map_or(blocks[0].ip, BasicBlock::end_ip))
    }
}
