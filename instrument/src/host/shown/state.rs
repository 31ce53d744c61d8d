//! What the host knows of the machine that the program is shown: its clocks, generators, numbers
//! and turns.

use crate::target::ptrace::Registers;
use crate::virtual_machine::clock::Clock;
use crate::virtual_machine::files;
use crate::virtual_machine::leaves::Leaves;
use crate::virtual_machine::random::Random;
use crate::virtual_machine::{Answered, Processor, Repeats, ThreadOrder, VirtualMachine};
use std::collections::{HashMap, HashSet};
use std::fs::File;

/// Files that were made, by what they show.
pub(super) type Files = Vec<(files::Shown, File)>;

/// The shown machine, and the state of its clocks and generators.
#[derive(Default)]
pub(crate) struct Shown {
    pub(super) machine: VirtualMachine,
    pub(super) leaves: Option<Leaves>,
    pub(super) answered: Answered,
    /// The clock of each process.
    pub(super) clocks: HashMap<i32, Clock>,
    /// The generator of each thread.
    pub(super) generators: HashMap<i32, Random>,
    /// Files that are shown in place of the system's, by what they show.
    pub(super) files: Files,
    /// Whether the program has opened a file of random bytes.
    pub(super) reads_random: bool,
    /// Threads that wait in a system call, at whose end the host acts.
    pub(super) waiting: HashMap<i32, Waiting>,
    /// Who of the first process's threads may run.
    pub(super) turns: Turns,
    /// Threads of the first process in the order of their births.
    pub(super) numbers: Vec<i32>,
    /// What may differ from run to run.
    pub(super) open: Vec<Open>,
}

impl Shown {
    /// Shows `machine` to the run whose first process is `root`.
    pub(crate) fn new(machine: VirtualMachine, root: i32) -> Shown {
        let (leaves, answered) = (machine.leaves(), machine.answered());
        Shown { machine, leaves, answered, numbers: vec![root], ..Shown::default() }
    }

    /// Whether the run is to repeat exactly.
    pub(crate) fn repeats(&self) -> bool {
        self.machine.repeats == Repeats::Exactly
    }

    /// Whether the threads of the first process run one at a time.
    pub(crate) fn takes_turns(&self) -> bool {
        self.machine.threads != ThreadOrder::AsNatively
    }

    /// The instructions of a turn, if turns have a length.
    pub(in crate::host) fn quantum(&self) -> Option<u64> {
        match self.machine.threads {
            ThreadOrder::InTurnsOf(instructions) => Some(instructions.into()),
            ThreadOrder::AsNatively | ThreadOrder::OneAtATime => None,
        }
    }

    /// Whether a processor is declared.
    pub(super) fn is_declared(&self) -> bool {
        self.leaves.is_some()
    }

    /// Whether the processor is Valgrind's.
    pub(super) fn is_valgrinds(&self) -> bool {
        self.machine.processor.is_some_and(Processor::is_valgrinds)
    }

    pub(super) fn clock(&mut self, process: i32) -> &mut Clock {
        self.clocks.entry(process).or_default()
    }

    pub(super) fn generator(&mut self, tid: i32) -> &mut Random {
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
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Open::StartBlock => {
                "the start of the program's stack is as the system made it, so its addresses depend on the environment"
            }
            Open::Threads => {
                "the program has several threads, whose order is not fixed: counts repeat as far as it does not depend on that"
            }
            Open::Processes => {
                "the program starts processes, whose numbers are the system's and which end when they like: counts repeat as far as they do not depend on that"
            }
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

/// A thread that waits in a system call.
pub(crate) struct Waiting {
    /// The program's registers at the stop before the call.
    pub(super) before: Registers,
    /// The time on the process's clock at which the call ends; `None` if it waits for ever.
    pub(super) deadline: Option<u64>,
    /// Address and value of a time in which the kernel leaves what remains of it.
    pub(super) remains: Option<(u64, (u64, u64))>,
    /// What the call has come to.
    pub(super) phase: Phase,
    /// What has become of its time.
    pub(super) time: TimeLeft,
}

/// What has become of the time of a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeLeft {
    /// The kernel waits for it, or there is none.
    Kernel,
    /// It has run out in the system's time, and the call waits on until nothing else can happen.
    Overdue,
    /// Nothing else can happen: the host has interrupted the call.
    Over,
}

/// What a call that waits has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    Within,
    /// A signal has interrupted the call and is about to be delivered.
    Interrupted,
}

impl Waiting {
    /// The time on the process's clock at which the wait ends, if it does.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.deadline
    }
}

/// Who has the turn, and who waits for it.
#[derive(Default)]
pub(crate) struct Turns {
    /// Whether the process has had a second thread, so that turns are taken.
    pub(super) are_taken: bool,
    pub(super) holder: Option<i32>,
    /// Threads that are stopped and may go on.
    pub(super) ready: Vec<i32>,
    /// Threads that are stopped because their time ran out, with their deadlines.
    pub(super) late: Vec<(u64, i32)>,
    /// The number of the thread that had the last turn.
    pub(super) last: u32,
    /// How long the present turn is, where turns have a length.
    pub(super) length: TurnLength,
}

/// How long turns are in instructions and records.
#[derive(Default)]
pub(crate) struct TurnLength {
    /// The running sum of the holder's instructions when its turn began.
    pub(super) began: u64,
    /// The records that it has made since.
    pub(super) records: u64,
    /// For each thread, the records of 1024 instructions in its last turn.
    pub(super) density: HashMap<i32, u64>,
    /// Threads whose last turn ended because it was long enough.
    pub(super) expired: HashSet<i32>,
    /// The system calls at which the host had stopped threads when all was at rest; `None` if
    /// threads may have been woken since.
    pub(super) rested_at: Option<u64>,
}

impl Turns {
    pub(super) fn are_taken(&self) -> bool {
        self.are_taken
    }

    /// Forgets a thread that has ended, or that runs another program.
    pub(super) fn gone(&mut self, tid: i32) {
        self.holder = self.holder.filter(|&holder| holder != tid);
        self.ready.retain(|&ready| ready != tid);
        self.late.retain(|&(_, late)| late != tid);
    }

    /// Forgets how long the turns of a thread were, which has ended.
    pub(super) fn forget_length(&mut self, tid: i32) {
        self.length.expired.remove(&tid);
        self.length.density.remove(&tid);
        self.length.rested_at = None;
    }

    pub(super) fn has_stopped(&self, tid: i32) -> bool {
        self.ready.contains(&tid) || self.late.iter().any(|&(_, late)| late == tid)
    }
}
