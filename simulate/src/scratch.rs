//! Columns that a sweep fills between its steps.

use crate::touch::SWEEP;

/// Where a sweep's touches go: rows and tags, and in which lane each was found. Shared by banks, so
/// that it stays in the host's first level. Each column begins a line of the host's cache.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    pub(crate) row: [u32; SWEEP],
    pub(crate) line: [u64; SWEEP],
    pub(crate) narrow: [u32; SWEEP],
    /// Tags that were last in their sets; narrow ones lie in `found`.
    pub(crate) former: [u64; SWEEP],
    pub(crate) found: [u32; SWEEP],
}

impl Scratch {
    pub(crate) fn new() -> Box<Scratch> {
        let (row, narrow, found) = ([0; SWEEP], [0; SWEEP], [0; SWEEP]);
        Box::new(Scratch { row, line: [0; SWEEP], narrow, former: [0; SWEEP], found })
    }
}
