//! How far translation goes: blocks of a superblock, and fragments ahead of what a miss asks for.

/// How far translation goes beyond what a miss asks for.
#[derive(Clone, Copy)]
pub(super) struct TranslateAhead {
    /// Most blocks of a superblock.
    pub(super) blocks: usize,
    /// Fragments translated ahead of one miss.
    pub(super) ahead: usize,
}

/// The policy if little is added to the program's code.
pub(super) const GENEROUS: TranslateAhead = TranslateAhead { blocks: 8, ahead: 3 };
/// The policy if references are recorded. Half of the code that is translated ahead never runs,
/// translating a block costs as much as a stop, and without that half the code that runs lies
/// closer together (a compiler: 12 % less time in all).
pub(super) const SPARING: TranslateAhead = TranslateAhead { blocks: 5, ahead: 1 };
/// Fragments translated ahead while the program may well end before it runs them.
pub(super) const AHEAD_CAUTIOUS_MAX: usize = 1;
/// Return addresses that enter the lookup table before they are used, so that the first return does
/// not stop. Beyond this many, only used ones do: a full table costs every lookup more than a stop
/// costs once.
pub(super) const PUBLISHED_AHEAD_MAX: usize = 16 << 10;

/// How far a superblock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Up to a block that begins a fragment, or a few blocks.
    UpToKnownCode,
    /// This many blocks.
    Blocks(usize),
}

/// The addresses that should be translated next.
#[derive(Default)]
pub(super) struct Ahead {
    /// Direct targets.
    pub(super) targets: Vec<(u64, Role)>,
}

/// How control will come to an address that is translated ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// By a direct branch.
    Branch,
    /// By a return.
    Return,
}
