//! The state map: which registers of the program wait in which slots, at each instruction of
//! generated code.
//!
//! Scratch code borrows registers and flags. The program's values wait in slots of the thread's
//! context meanwhile. At a stop in generated code the host finds here which of them to put back.

use super::assembler::{reg, Assembler};
use crate::target::layout::context;

/// Bit in a spill mask that stands for the status flags (rsp is never spilled).
pub(crate) const FLAGS_BIT: u16 = 1 << reg::RSP;

/// The state of a fragment at one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateMapEntry {
    /// Byte in the zone where the instruction's translation begins.
    pub(crate) at: u32,
    /// Its block.
    pub(crate) block: u32,
    /// Its index in the block.
    pub(crate) index: u8,
    /// Whether the fragment's last counter was incremented before `at`.
    pub(crate) counted: bool,
    /// Whether it was before the program's own instruction executes.
    pub(crate) counted_executing: bool,
    /// Spilled at `at`.
    pub(crate) spilled: u16,
    /// Spilled where the program's own instruction executes.
    pub(crate) executing: u16,
    /// Up to the next entry nothing happens that could not happen again: a stop there counts as one
    /// at `at`.
    pub(crate) retreat: bool,
    /// Records behind the ring's position in memory at `at`, and where the program's own
    /// instruction executes.
    pub(crate) pending: u8,
    pub(crate) pending_executing: u8,
}

/// The lowest register of a mask.
pub(crate) fn pick(mask: u16) -> Option<u8> {
    (mask != 0).then(|| mask.trailing_zeros() as u8)
}

/// Context offset of a register's slot.
pub(crate) fn slot(r: u8) -> u32 {
    context::SPILL + 8 * u32::from(r)
}

/// Loads the registers of `mask` from their slots.
pub(crate) fn restore_registers(code: &mut Assembler, mut mask: u16) {
    while let Some(r) = pick(mask) {
        code.load(r, slot(r));
        mask &= mask - 1;
    }
}
