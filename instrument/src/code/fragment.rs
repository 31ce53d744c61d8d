//! What the code cache stores about translated code: fragments, the exits that leave them, and the
//! jumps that lead to them.

/// Exit number: the target of an indirect transfer is not in the lookup table.
pub(crate) const EXIT_LOOKUP: u32 = 0xffff_ffff;
/// Exit number: the next instruction is a system call that the host handles.
pub(crate) const EXIT_SYSTEM_CALL: u32 = 0xffff_fffe;
/// Exit number: the current segment of the ring is full.
pub(crate) const EXIT_RING: u32 = 0xffff_fffd;
/// Exit number: the host must look the pages of a complex reference up in the data TLB.
pub(crate) const EXIT_PAGES: u32 = 0xffff_fffc;
/// Exit number: the host answers the next instruction.
pub(crate) const EXIT_INSTRUCTION: u32 = 0xffff_fffb;

/// A translated superblock.
#[cfg_attr(test, derive(Default))]
pub(crate) struct Fragment {
    /// Address of the program's code.
    pub(crate) pc: u64,
    /// Number of the zone that holds the fragment.
    pub(crate) zone: u32,
    /// Address of the first instruction of the generated code.
    pub(crate) body: u64,
    /// Address of the entry for indirect transfers, which restores the registers that the lookup
    /// uses; `None` until an indirect transfer needs it.
    pub(crate) entry: Option<u64>,
    /// The number, in the profile, of the fragment's first block.
    pub(crate) first_block: u32,
    /// The number of blocks in the fragment.
    pub(crate) blocks: u32,
    /// The number of the fragment's first counter. There are `blocks` counters of taken branches,
    /// then one of the last block.
    pub(crate) counters: u32,
    /// Whether the status flags are dead at the fragment's head.
    pub(crate) flags_dead: bool,
    /// Bit set of the registers and flags that are dead at the fragment's head, so that code that
    /// leads here need not restore them; empty if the program's code may change.
    pub(crate) dead: u16,
    /// How often the program's code has been translated again for better record modes.
    pub(crate) tunings: u8,
    /// Number of the newest jump to the body, the head of a list by [`Incoming::next`] (0: none).
    pub(crate) incoming: u32,
}

/// An exit of a fragment in the code cache.
#[derive(Clone, Copy)]
pub(crate) struct CodeExit {
    /// Address in the program's code to which the exit leads.
    pub(crate) target: u64,
    /// Number of the zone that holds the exit's code.
    pub(crate) zone: u32,
    /// Offset in the zone of the displacement that linking rewrites; for a stale check, the number
    /// of its fragment.
    pub(crate) patch: u32,
    /// Number of the counter to increment when the exit is taken; side exits only.
    pub(crate) counter: Option<u32>,
    /// Bit set of the registers to restore when the exit is taken.
    pub(crate) restore: u16,
    /// Number of the next exit in the list of those that wait for the same target (0: none).
    pub(crate) next: u32,
    /// Whether this is not an exit but a failed check of code that may change: the host translates
    /// the code again.
    pub(crate) stale: bool,
}

/// A displacement, or an address in a table, that leads to a fragment's body.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    /// Offset of the displacement or address in the file that backs the zones.
    pub(crate) offset: usize,
    /// The address behind a displacement, to which it is relative; 0 if the body's address itself
    /// is stored.
    pub(crate) from: u64,
    /// Number of the next older element of the fragment's list (0: none).
    pub(crate) next: u32,
}

/// Whether a 32-bit displacement reaches from `from` to `to`.
pub(crate) fn near(from: u64, to: u64) -> bool {
    i32::try_from(to.wrapping_sub(from) as i64).is_ok()
}
