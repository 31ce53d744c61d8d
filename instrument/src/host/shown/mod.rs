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
mod task;
mod turns;
mod wait;

use super::state::Host;
use crate::image::{number, Image, Opens};
use crate::virtual_machine::clock::Clock;
use crate::virtual_machine::leaves::Leaves;
use crate::virtual_machine::random::Random;
use crate::virtual_machine::{Answered, Processor, Repeats, ThreadOrder, VirtualMachine};
use open::Open;
use std::collections::HashMap;
use turns::Turns;
use wait::Waiting;

/// The shown machine, and the state of its clocks and generators.
#[derive(Default)]
pub(crate) struct Shown {
    machine: VirtualMachine,
    leaves: Option<Leaves>,
    answered: Answered,
    /// The clock of each process.
    clocks: HashMap<i32, Clock>,
    /// The generator of each thread.
    generators: HashMap<i32, Random>,
    /// Files that are shown in place of the system's, by what they show.
    files: file::Files,
    /// Whether the program has opened a file of random bytes.
    reads_random: bool,
    /// Threads that wait in a system call, at whose end the host acts.
    waiting: HashMap<i32, Waiting>,
    /// Who of the first process's threads may run.
    turns: Turns,
    /// Threads of the first process in the order of their births.
    numbers: Vec<i32>,
    /// What may differ from run to run.
    open: Vec<Open>,
}

impl Shown {
    /// Shows `machine` to the run whose first process is `root`.
    pub(crate) fn new(machine: VirtualMachine, root: i32) -> Shown {
        let (leaves, answered) = (machine.leaves(), machine.answered());
        Shown { machine, leaves, answered, numbers: vec![root], ..Shown::default() }
    }

    /// Whether the run is to repeat exactly.
    fn repeats(&self) -> bool {
        self.machine.repeats == Repeats::Exactly
    }

    /// Whether the threads of the first process run one at a time.
    fn takes_turns(&self) -> bool {
        self.machine.threads == ThreadOrder::OneAtATime
    }

    /// Whether a processor is declared.
    fn is_declared(&self) -> bool {
        self.leaves.is_some()
    }

    /// Whether the processor is Valgrind's.
    fn is_valgrinds(&self) -> bool {
        self.machine.processor.is_some_and(Processor::is_valgrinds)
    }

    fn clock(&mut self, process: i32) -> &mut Clock {
        self.clocks.entry(process).or_default()
    }

    fn generator(&mut self, tid: i32) -> &mut Random {
        self.generators.entry(tid).or_default()
    }

    /// Gives task `new` a generator of its maker's, and process `process` a copy of the maker's
    /// clock.
    pub(crate) fn born(&mut self, (new, process): (i32, i32), (maker, makers_process): (i32, i32)) {
        if !self.repeats() {
            return;
        }
        if self.numbers.first() == Some(&process) {
            self.numbers.push(new);
        }
        let random = self.generator(maker).child();
        self.generators.insert(new, random);
        if process != makers_process {
            let clock = *self.clock(makers_process);
            self.clocks.insert(process, clock);
        }
    }

    /// Forgets a task that has ended.
    pub(crate) fn gone(&mut self, tid: i32) {
        self.waiting.remove(&tid);
        // The number of a thread that has ended names no other one.
        self.numbers.iter_mut().skip(1).filter(|own| **own == tid).for_each(|own| *own = -1);
        self.generators.remove(&tid);
        self.clocks.remove(&tid);
    }
}

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

    /// Gives code that is translated from now on the stops for the shown machine, and writes the
    /// machine's facts where a program finds them at its start.
    pub(crate) fn prepare_shown(&mut self, pid: i32, image: &mut Image) {
        image.translator.set_answered(self.shown.answered);
        self.write_start_block(pid);
    }
}
