//! What a run that is to repeat leaves open: each thing is named once, in a warning.

use super::Shown;
use crate::host::state::Host;

/// Something that may differ from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// The block at the program's first stack pointer could not be written anew.
    StartBlock,
    /// The program has more than one thread at a time.
    Threads,
    /// The program starts other processes.
    Processes,
    /// The program talks to another machine or process by a socket.
    Socket,
    /// The program set a timer.
    Timer,
}

impl Open {
    fn sentence(self) -> &'static str {
        match self {
            Open::StartBlock => {
                "the start of the program's stack is as the system made it, so its addresses depend on the environment"
            }
            Open::Threads => {
                "the program has several threads, whose order is not fixed: counts repeat as far as it does not depend on that"
            }
            Open::Processes => "the program starts processes, whose numbers are the system's",
            Open::Socket => "the program uses sockets of the network, whose answers are not fixed",
            Open::Timer => "the program set a timer, which goes by the system's time",
        }
    }
}

impl Shown {
    /// Notes what is left open.
    pub(super) fn leave_open(&mut self, what: Open) {
        if !self.open.contains(&what) {
            self.open.push(what);
        }
    }
}

impl Host<'_> {
    /// Warns about what a run that is to repeat has left open.
    pub(crate) fn name_open(&mut self) {
        let open = std::mem::take(&mut self.shown.open);
        let sentence = |open: Open| format!("with --repeatable: {}", open.sentence());
        self.warnings.extend(open.into_iter().map(sentence));
    }

    /// Notes that a process has a second thread.
    pub(crate) fn threads_are_open(&mut self) {
        if self.shown.repeats() && !self.shown.takes_turns() {
            self.shown.leave_open(Open::Threads);
        }
    }
}
