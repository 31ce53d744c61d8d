//! Mispredicted branches: a simulation that also sees in which order blocks run.
//!
//! **What.** A tool that asks for an event at the start of every block, beside the references that the simulation needs. A conditional
//! branch went to its target or not as the next block of its thread says, and each thread's gshare predictor is asked what it had expected.
//! **Why this way.** How often a branch is taken follows from counters; whether it was predicted depends on the order of outcomes, and that has to be
//! recorded: a record of 16 bytes per block, so the run takes about five times as long. **Leaves out** targets of indirect branches and returns.
//!
//! A signal handler that runs between a branch and the block it goes to hides the outcome; such branches are counted apart, not guessed.

use crate::simulation::Simulation;
use event::{Record, RecordKind, Stream};
use instrument::tool::{Batch, Instrumenter, Program, Report, Summary, Tool, Transfer, Value};
use simulate::{Counts, Gshare, Outcome, Prediction};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A conditional branch at the end of a block.
#[derive(Clone, Copy, Debug)]
struct Branch {
    ip: u64,
    next: u64,
    target: u64,
}

/// What was found of branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Conditional branches whose outcome was seen.
    pub resolved: u64,
    /// Those whose outcome a signal hid.
    pub hidden: u64,
    /// Mispredictions, by index into [`instrument::Profile::blocks`].
    pub mispredicted: Vec<u64>,
}

/// What one thread has of its own.
#[derive(Default)]
struct Thread {
    predictor: Gshare,
    pending: Option<(u32, Branch)>,
}

/// The branches of blocks, by number: written where blocks are translated, read where they are analysed.
type Branches = Arc<Mutex<Vec<Option<Branch>>>>;

/// The tool.
pub struct BranchSimulator {
    simulation: Simulation,
    stream: Stream,
    branches: Branches,
    threads: HashMap<u32, Thread>,
    predicted: Predicted,
    records: Vec<Record>,
    lost: u64,
}

impl BranchSimulator {
    /// Around a simulation that wants `stream`.
    pub fn new(simulation: Simulation, stream: Stream) -> BranchSimulator {
        BranchSimulator {
            simulation,
            stream,
            branches: Branches::default(),
            threads: HashMap::new(),
            predicted: Predicted::default(),
            records: Vec::new(),
            lost: 0,
        }
    }

    /// What was counted, by image; numbers of sites and blocks run on over images. And what was predicted.
    pub fn finish(mut self) -> (Vec<(u32, Counts)>, Predicted) {
        self.predicted.hidden +=
            self.threads.values().filter(|thread| thread.pending.is_some()).count() as u64;
        let mut images = self.simulation.finish();
        if let Some((_, counts)) = images.first_mut() {
            counts.damaged += self.lost;
        }
        (images, self.predicted)
    }
}

impl Predicted {
    /// Thread `thread` enters block `number` at `address`: the branch before it is decided.
    fn block(&mut self, thread: &mut Thread, address: u64, number: u32, ends: Option<Branch>) {
        if let Some((block, branch)) = thread.pending.take() {
            match branch.outcome(address) {
                None => self.hidden += 1,
                Some(outcome) => {
                    self.resolved += 1;
                    let wrong = thread.predictor.branch(branch.ip, outcome) == Prediction::Wrong;
                    let block = block as usize;
                    if self.mispredicted.len() <= block {
                        self.mispredicted.resize(block + 1, 0);
                    }
                    self.mispredicted[block] += u64::from(wrong);
                }
            }
        }
        thread.pending = ends.map(|branch| (number, branch));
    }
}

impl Branch {
    /// The outcome when control comes to `address`; `None` where it came there by other means.
    fn outcome(&self, address: u64) -> Option<Outcome> {
        match address {
            _ if address == self.next => Some(Outcome::NotTaken),
            _ if address == self.target => Some(Outcome::Taken),
            _ => None,
        }
    }
}

impl Tool for BranchSimulator {
    fn stream(&self) -> Stream {
        self.stream
    }

    fn instrumenter(&mut self) -> Instrumenter {
        let branches = self.branches.clone();
        Box::new(move |block, ask| {
            let number = block.number() as usize;
            let mut branches = branches.lock().unwrap_or_else(PoisonError::into_inner);
            let room = branches.len().max(number + 1);
            branches.resize(room, None);
            branches[number] = block.last().and_then(|last| match last.transfer() {
                Transfer::Conditional(target) => Some(Branch {
                    ip: last.address(),
                    next: last.address() + last.bytes().len() as u64,
                    target,
                }),
                _ => None,
            });
            ask.at_start(Value::Constant(block.address()), block.number());
        })
    }

    fn start(&mut self, program: &Program) {
        self.simulation.starts(program.image);
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.records.clear();
        for record in batch.records() {
            match record {
                Some(record) if record.code().kind() == RecordKind::Tool => {}
                Some(record) => self.records.push(record),
                None => self.lost += 1,
            }
        }
        self.simulation.records(batch.thread(), &self.records);
        let thread = self.threads.entry(batch.thread()).or_default();
        let branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        for event in batch.events() {
            let ends = branches.get(event.tag as usize).copied().flatten();
            self.predicted.block(thread, event.value, event.tag, ends);
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        Ok(Report::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use instrument::reference;
    use instrument::{Command, Options};
    use simulate::{Geometry, Levels, WriteBacks};

    #[test]
    fn a_handler_hides_an_outcome() {
        let branch = Branch { ip: 0x10, next: 0x12, target: 0x40 };
        let (mut predicted, mut thread) = (Predicted::default(), Thread::default());
        for address in [0x12, 0x40, 0x77] {
            predicted.block(&mut thread, 0, 3, Some(branch));
            predicted.block(&mut thread, address, 4, None);
        }
        assert_eq!((predicted.resolved, predicted.hidden), (2, 1));
    }

    /// Outcomes one instruction at a time, and the same predictor.
    fn stepped(command: &Command) -> (u64, u64) {
        let (mut predictor, mut pending) = (Gshare::default(), None::<Branch>);
        let (mut resolved, mut wrong) = (0, 0);
        reference::run(command, &mut |step| {
            if let Some(branch) = pending.take() {
                let outcome = branch.outcome(step.ip).expect("no signals here");
                resolved += 1;
                wrong += u64::from(predictor.branch(branch.ip, outcome) == Prediction::Wrong);
            }
            let i = step.instruction;
            let conditional = i.flow_control() == iced_x86::FlowControl::ConditionalBranch;
            pending = conditional.then(|| Branch {
                ip: step.ip,
                next: i.next_ip(),
                target: i.near_branch_target(),
            });
        })
        .unwrap();
        (resolved, wrong)
    }

    #[test]
    fn mispredictions_are_those_of_single_steps() {
        let command = Command { program: "/bin/true".into(), arguments: Vec::new() };
        let levels = Levels::data_only(Geometry::cache(32 << 10, 8, 64));
        for write_backs in [WriteBacks::Ignored, WriteBacks::Counted] {
            let stream = simulate::plan_levels(&levels, write_backs).stream;
            let simulation = Simulation::new(&levels, write_backs).unwrap();
            let mut tool = BranchSimulator::new(simulation, stream);
            instrument::tool::run_tool(&command, &Options::default(), &mut tool).unwrap();
            let (_, predicted) = tool.finish();
            assert_eq!((predicted.resolved, predicted.mispredicted.iter().sum()), stepped(&command));
            assert_eq!(predicted.hidden, 0);
        }
    }
}
