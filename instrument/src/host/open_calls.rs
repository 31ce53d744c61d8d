//! The marker of a run, and the calls of watched functions that have not returned.

use super::within::MarksWithin;
use crate::mark::SharedMarker;
use crate::target::ptrace::Registers;
use std::collections::HashMap;

/// The marker of a run, with the open calls of its threads.
pub(crate) struct Marking {
    pub(crate) marker: SharedMarker,
    /// By number of the thread, outermost first.
    pub(super) calls: HashMap<u32, Vec<OpenCall>>,
    /// By number of the thread: the functions that it runs because a request asked for them,
    /// outermost first.
    pub(super) asked: HashMap<u32, Vec<AskedCall>>,
    /// The thread that has just forked, until its child begins.
    pub(crate) maker: Option<i32>,
    /// Marks whose deeds the observer learns with their segment.
    pub(super) within: MarksWithin,
}

/// A call of a watched function that has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCall {
    pub(super) function: u64,
    pub(super) return_address: u64,
    /// The stack pointer at the entry.
    pub(super) stack: u64,
}

/// A call that a request asked for and that has not returned.
#[derive(Clone)]
pub(super) struct AskedCall {
    /// The address behind the request, to which the function returns.
    pub(super) behind: u64,
    /// The stack pointer when it has returned.
    pub(super) stack: u64,
    /// The general registers at the request, and the others as the system keeps them.
    pub(super) registers: Registers,
    pub(super) extended: Vec<u8>,
}

impl Marking {
    pub(crate) fn new(marker: SharedMarker) -> Marking {
        let within = MarksWithin::default();
        Marking { marker, calls: HashMap::new(), asked: HashMap::new(), maker: None, within }
    }
}
