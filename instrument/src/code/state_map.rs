//! The state map: for each instruction of generated code, which of the program's registers are
//! spilled to the thread's context.
//!
//! **Why.** Code that checks and records uses registers and flags of the program, and keeps their
//! values in the context for that time. If a signal or a fault stops generated code there, the host
//! restores the program's state with this map.

use super::assembler::{reg, Assembler};
use super::kept_table::KeptRow;
use crate::target::layout::context;

/// The bit of a spill mask that stands for the status flags: that of rsp, which is never spilled.
pub(crate) const FLAGS_BIT: u16 = 1 << reg::RSP;

/// The state of generated code from one position to the next entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateMapEntry {
    /// Offset in the zone at which the instruction's translation begins.
    pub(crate) at: u32,
    /// Number of the instruction's block.
    pub(crate) block: u32,
    /// Index of the instruction in the block.
    pub(crate) index: u8,
    /// Whether the fragment's last counter was incremented before `at`.
    pub(crate) counted: bool,
    /// Whether the fragment's last counter was incremented before the copy of the program's
    /// instruction executes.
    pub(crate) counted_executing: bool,
    /// Bit set of the registers that are spilled at `at`.
    pub(crate) spilled: u16,
    /// Bit set of the registers that are spilled where the copy of the program's instruction
    /// executes.
    pub(crate) executing: u16,
    /// Whether the code up to the next entry may be repeated: a stop in it is treated as one at
    /// `at`.
    pub(crate) retreat: bool,
    /// Records that are written but not yet counted by the ring's position in memory, at `at`.
    pub(crate) pending: u8,
    /// Records that are written but not yet counted where the copy of the program's instruction
    /// executes.
    pub(crate) pending_executing: u8,
}

impl KeptRow for StateMapEntry {
    const BYTES: usize = 16;

    fn decoded(row: &[u8]) -> StateMapEntry {
        let u32_at = |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        let u16_at = |at: usize| u16::from_le_bytes([row[at], row[at + 1]]);
        let flag = |bit: u8| row[13] >> bit & 1 != 0;
        StateMapEntry {
            at: u32_at(0),
            block: u32_at(4),
            spilled: u16_at(8),
            executing: u16_at(10),
            index: row[12],
            counted: flag(0),
            counted_executing: flag(1),
            retreat: flag(2),
            pending: row[14],
            pending_executing: row[15],
        }
    }
}

/// The lowest register of a mask.
pub(crate) fn pick(mask: u16) -> Option<u8> {
    (mask != 0).then(|| mask.trailing_zeros() as u8)
}

/// Context offset of a register's slot.
pub(crate) fn slot(register: u8) -> u32 {
    context::SPILL + 8 * u32::from(register)
}

/// Loads the registers of `mask` from their slots.
pub(crate) fn restore_registers(code: &mut Assembler, mut mask: u16) {
    while let Some(register) = pick(mask) {
        code.load(register, slot(register));
        mask &= mask - 1;
    }
}
