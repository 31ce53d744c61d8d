//! The records that the code cache keeps of translated code: fragments, the exits that leave them,
//! the places that lead to them.

/// The lookup table does not hold an indirect target.
pub(crate) const EXIT_LOOKUP: u32 = 0xffff_ffff;
/// The next instruction is a system call that the host must know of.
pub(crate) const EXIT_SYSTEM_CALL: u32 = 0xffff_fffe;
/// The segment of the ring is full.
pub(crate) const EXIT_RING: u32 = 0xffff_fffd;
/// The host is to use the pages of a complex reference.
pub(crate) const EXIT_PAGES: u32 = 0xffff_fffc;

/// A translated superblock.
pub(crate) struct Fragment {
    pub(crate) pc: u64,
    pub(crate) zone: u32,
    /// Address of the first instruction of its code.
    pub(crate) body: u64,
    /// Address of the entry that restores the lookup's registers.
    pub(crate) entry: Option<u64>,
    pub(crate) first_block: u32,
    pub(crate) blocks: u32,
    /// First counter: `blocks` counters of taken side exits, then the last block's.
    pub(crate) counters: u32,
    /// Nothing at its head needs the status flags.
    pub(crate) flags_dead: bool,
    /// Registers (and flags) that are dead at its head, so that code that leads here need not
    /// restore them; none if the code may change.
    pub(crate) dead: u16,
    /// How often its code was translated again to become this fragment.
    pub(crate) tunings: u8,
    /// The last place that leads to its body; the others follow by [`Incoming::next`].
    pub(crate) incoming: u32,
}

/// An exit of a fragment, as the cache keeps it.
#[derive(Clone, Copy)]
pub(crate) struct CodeExit {
    pub(crate) target: u64,
    pub(crate) zone: u32,
    /// Byte in the zone of the displacement to rewrite (stale: the fragment).
    pub(crate) patch: u32,
    /// Counter to increment when taken (side exits).
    pub(crate) counter: Option<u32>,
    /// Registers to restore when taken.
    pub(crate) restore: u16,
    /// The exit that waited for the same target before this one (0: none).
    pub(crate) next: u32,
    /// Not an exit but a check of generated code that failed: translate again.
    pub(crate) stale: bool,
}

/// A place that leads to a fragment's body.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    /// Its offset in the shared file.
    pub(crate) offset: usize,
    /// The address behind a displacement; 0 where the place holds the body's address.
    pub(crate) from: u64,
    /// The place that was noted before it (0: none).
    pub(crate) next: u32,
}

/// Whether a 32-bit displacement leads from `from` to `to`.
pub(crate) fn near(from: u64, to: u64) -> bool {
    i32::try_from(to.wrapping_sub(from) as i64).is_ok()
}
