//! What the host knows about a program that ran before it, from its entry (`attach`) to its leave
//! (`detach`).

use crate::outcome::Standstill;
use crate::target::restartable::Area;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// What the host knows about a program that ran before it.
pub(crate) struct Attachment {
    /// When the host leaves the program; `None`: when the user says so.
    pub(crate) until: Option<Instant>,
    /// The areas for restartable sequences of threads, which are registered again at the end.
    pub(crate) areas: HashMap<i32, Area>,
    /// Whether threads still wait for their entry.
    pub(crate) enters: bool,
    /// Threads that stand in the program's own code with its own registers.
    pub(crate) parked: BTreeSet<i32>,
    /// When the host began to leave the program.
    pub(crate) leaves_since: Option<Instant>,
    pub(crate) standstill: Standstill,
}

impl Attachment {
    /// Forgets the threads of a process that executes another program.
    pub(crate) fn executed(&mut self) {
        self.areas.clear();
        self.parked.clear();
    }
}
