//! Kept translations that this run has not checked yet: they sleep, by group of modules.
//!
//! ```text
//!               the module is executed                 all of its group: text, same files,
//!                                                       same addresses, same bytes?
//!    Asleep ──────────────────────────────▶ verify ──┬── yes ──▶ Awake    they enter the map
//!                                                    └── no ───▶ GivenUp  nothing leads to them
//! ```
//!
//! A group is decided as a whole, because direct branches lead from one of its modules to another
//! (`store::parts`). The fragments of a group that was given up stay in the cache's tables, whose
//! numbers the code names, but they never enter the map.

use crate::code::hash::hash;
use crate::target::memory;

pub(crate) const PAGE: u64 = 4096;

/// A page of code and the hash of what it held.
pub(crate) type PageHash = (u64, u64);

/// The state of a module's part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// The file has no fragments of the module.
    Absent,
    /// The module was not executed yet.
    Asleep,
    /// It was verified and is in use.
    Awake,
    /// The module, or one of its group, differs from what was translated.
    GivenUp,
}

/// Restored translations, by number of the module.
#[derive(Default)]
pub(crate) struct UnverifiedModules {
    /// Pages that were translated, in order; of modules that are awake too.
    pub(crate) pages: Vec<Vec<PageHash>>,
    /// Fragments of modules that are asleep.
    pub(super) live: Vec<Vec<u32>>,
    pub(super) states: Vec<Verification>,
    pub(super) groups: Vec<u32>,
    /// Fragments restored, awake or not.
    pub(crate) fragments: usize,
    /// A module held something else than what was translated.
    pub(crate) gave_up: bool,
}

impl UnverifiedModules {
    /// Everything asleep; `groups` are modules that wake together.
    pub(crate) fn new(
        groups: Vec<u32>,
        pages: Vec<Vec<PageHash>>,
        live: Vec<Vec<u32>>,
        fragments: usize,
    ) -> UnverifiedModules {
        let state =
            |live: &Vec<u32>| if live.is_empty() { Verification::Absent } else { Verification::Asleep };
        let states = live.iter().map(state).collect();
        UnverifiedModules { pages, live, states, groups, fragments, gave_up: false }
    }

    /// Whether a module is asleep.
    pub(crate) fn sleeps(&self, module: u32) -> bool {
        self.states.get(module as usize) == Some(&Verification::Asleep)
    }

    /// Modules that are asleep, with their fragments.
    pub(crate) fn sleeping(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..self.states.len()).filter(|&n| self.sleeps(n as u32)).map(|n| (n, &self.live[n][..]))
    }
}

/// Whether process `pid` holds these pages.
pub(super) fn holds(pid: i32, pages: &[PageHash]) -> bool {
    const RUN_PAGES: usize = 16;
    let mut buffer = vec![0u8; RUN_PAGES * PAGE as usize];
    let mut rest = pages;
    while let Some(&(start, _)) = rest.first() {
        // Adjacent pages are read by one call, up to the size of the buffer.
        let run = rest
            .iter()
            .zip(0u64..)
            .take(RUN_PAGES)
            .take_while(|((page, _), n)| *page == start + n * PAGE)
            .count();
        let bytes = &mut buffer[..run * PAGE as usize];
        if memory::read_target(pid, start, bytes) != bytes.len() {
            return false;
        }
        // Every page must have the bytes that were translated.
        let same = |(bytes, (_, expected)): (&[u8], &PageHash)| hash(bytes, 0) == *expected;
        if !bytes.chunks_exact(PAGE as usize).zip(&rest[..run]).all(same) {
            return false;
        }
        rest = &rest[run..];
    }
    true
}
