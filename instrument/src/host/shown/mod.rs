//! The machine that the program is shown: answers to instructions, system calls and files that tell
//! machines and runs apart.
//!
//! **What.** A run with a virtual machine (`virtual_machine`) has more stops: before instructions
//! such as `cpuid`, before system calls that read clocks or random bytes, and before files are
//! opened. Here the host answers them. **Why.** The program's own code then takes the same way on
//! every machine and in every run. **Invariants.** A process has one clock, a thread one generator;
//! what another process does changes neither. **Leaves out** what the host cannot decide: the
//! network, other processes, and the order of threads that race.

mod call;
mod file;
mod instruction;
mod open;
mod start_block;
pub(crate) mod state;
mod task;
mod turns;
mod wait;

use super::state::Host;
use crate::image::{number, Image, Opens};
use crate::virtual_machine::Answered;

impl Host<'_> {
    /// Makes a new image stop where the shown machine answers.
    pub(crate) fn show_machine(&self, image: &Image) {
        if self.shown.is_declared() {
            image.stop_before(&number::OF_PROCESSORS);
        }
        if self.shown.repeats() {
            image.stop_before(&number::OF_REPEATING);
            image.stop_before(&number::OF_TASKS);
            if self.shown.reads_random {
                image.stop_before(&number::READS);
            }
        }
    }

    /// Whether the program is to stop before it opens a file.
    pub(crate) fn opens_now(&self) -> Opens {
        let bound = self.binding.hidden().is_some() && self.opens_left > 0;
        if bound || self.shown.is_declared() {
            Opens::Watched
        } else {
            Opens::Ignored
        }
    }

    /// Decides in all images anew whether they stop before they open a file.
    pub(crate) fn watch_opens(&self) {
        let opens = self.opens_now();
        self.images.values().for_each(|image| image.watch(opens));
    }

    /// The instructions that the host answers for the shown machine.
    pub(crate) fn answered(&self) -> Answered {
        self.shown.answered
    }

    /// Writes the shown machine's facts where a program finds them at its start.
    pub(crate) fn prepare_shown(&mut self, pid: i32) {
        self.write_start_block(pid);
    }
}
