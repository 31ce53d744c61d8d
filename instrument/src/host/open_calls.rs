//! The marker of a run, and the calls of watched functions that have not returned.

use crate::mark::SharedMarker;
use std::collections::HashMap;

/// The marker of a run, with the open calls of its threads.
pub(crate) struct Marking {
    pub(crate) marker: SharedMarker,
    /// By number of the thread, outermost first.
    pub(super) calls: HashMap<u32, Vec<OpenCall>>,
    /// The thread that has just forked, until its child begins.
    pub(crate) maker: Option<i32>,
}

/// A call of a watched function that has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCall {
    pub(super) function: u64,
    pub(super) return_address: u64,
    /// The stack pointer at the entry.
    pub(super) stack: u64,
}

impl Marking {
    pub(crate) fn new(marker: SharedMarker) -> Marking {
        Marking { marker, calls: HashMap::new(), maker: None }
    }
}
