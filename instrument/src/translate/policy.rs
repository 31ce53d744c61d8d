//! The translate-ahead policy: how many blocks a superblock has, and how many fragments are
//! translated ahead of the one that a stop needs.

/// How far translation goes beyond the fragment that a stop needs.
#[derive(Clone, Copy)]
pub(super) struct TranslateAhead {
    /// The most blocks of a superblock.
    pub(super) blocks: usize,
    /// The most fragments translated ahead at one stop.
    pub(super) ahead: usize,
}

/// The policy if little is added to the program's code.
pub(super) const GENEROUS: TranslateAhead = TranslateAhead { blocks: 8, ahead: 3 };
/// The policy if references are recorded. Half of the code that is translated ahead never runs, and
/// then translating a block costs as much as a stop. Without that half, the code that runs lies
/// closer together (a compiler: 12 % less time in all).
pub(super) const SPARING: TranslateAhead = TranslateAhead { blocks: 5, ahead: 1 };
/// The most fragments translated ahead at one stop while the program has executed little code: it
/// may end before it runs more.
pub(super) const AHEAD_CAUTIOUS_MAX: usize = 1;
/// While the lookup table holds fewer targets than this, return addresses enter it before they are
/// used, so that the first return does not stop. Later only used ones enter it, because a full
/// table costs every lookup more than a stop costs once. This is a quarter of the table's slots.
pub(super) const PUBLISHED_AHEAD_MAX: usize = 64 << 10;

/// Where a superblock ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Before a block that begins another fragment, or after the policy's number of blocks.
    UpToKnownCode,
    /// After this number of blocks.
    Blocks(usize),
}

/// The addresses that should be translated next.
#[derive(Default)]
pub(super) struct Ahead {
    /// Direct targets.
    pub(super) targets: Vec<(u64, Role)>,
}

/// How control will reach an address that is translated ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Control reaches the address by a direct branch.
    Branch,
    /// Control reaches the address by a return.
    Return,
}
