//! What a run that is to repeat leaves open: each thing is named once, in a warning.

use super::state::Open;
use crate::host::state::Host;

impl Host<'_> {
    /// Warns about what a run that is to repeat has left open.
    pub(crate) fn name_open(&mut self) {
        let open = std::mem::take(&mut self.shown.open);
        let sentence = |open: Open| format!("with --repeatable: {}", open.sentence());
        self.warnings.extend(open.into_iter().map(sentence));
    }

    /// Notes that the program has started a process.
    pub(crate) fn processes_are_open(&mut self) {
        if self.shown.repeats() {
            self.shown.leave_open(Open::Processes);
        }
    }

    /// Notes that a process has a second thread.
    pub(crate) fn threads_are_open(&mut self) {
        if self.shown.repeats() && !self.shown.takes_turns() {
            self.shown.leave_open(Open::Threads);
        }
    }
}
