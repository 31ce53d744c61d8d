//! Branch prediction: two-bit counters, one for each branch, against what the branches do. ATOM's
//! tool of that name.
//!
//! A branch tells what lies behind it, the next block tells where control went.

use lightfoot_instrument::tool::{
    run_tool, Batch, Instrumenter, Report, Row, Summary, Tool, Transfer, Value,
};
use lightfoot_instrument::{Command, Exit, Options};
use std::collections::HashMap;
use std::process::ExitCode;

/// Tags of the two kinds of events.
const BRANCH: u32 = 0;
const BLOCK: u32 = 1;

/// A branch's counter, and what was counted.
#[derive(Clone, Copy, Default)]
struct Branch {
    counter: u8,
    taken: u64,
    not_taken: u64,
    wrong: u64,
}

#[derive(Default)]
struct Prediction {
    branches: HashMap<u64, Branch>,
    /// By thread: a branch, and the address behind it.
    pending: HashMap<u32, (u64, u64)>,
}

impl Tool for Prediction {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            ask.at_start(Value::Constant(block.address()), BLOCK);
            let Some(last) = block.last() else { return };
            if let Transfer::Conditional(_) = last.transfer() {
                ask.before(&last, Value::Constant(last.address() + last.bytes().len() as u64), BRANCH);
            }
        })
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            if event.tag == BRANCH {
                let ip = batch.request(&event).map_or(0, |request| request.ip);
                self.pending.insert(batch.thread(), (ip, event.value));
            } else if let Some((ip, behind)) = self.pending.remove(&batch.thread()) {
                let branch = self.branches.entry(ip).or_default();
                let (taken, expected) = (event.value != behind, branch.counter >= 2);
                branch.wrong += u64::from(taken != expected);
                *if taken { &mut branch.taken } else { &mut branch.not_taken } += 1;
                branch.counter =
                    if taken { (branch.counter + 1).min(3) } else { branch.counter.saturating_sub(1) };
            }
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let mut branches: Vec<(u64, Branch)> = self.branches.drain().collect();
        branches.sort_by_key(|(ip, branch)| (std::cmp::Reverse(branch.wrong), *ip));
        let sum = |field: fn(&Branch) -> u64| branches.iter().map(|(_, branch)| field(branch)).sum();
        let totals = [
            ("taken", sum(|b| b.taken)),
            ("not taken", sum(|b| b.not_taken)),
            ("mispredicted", sum(|b| b.wrong)),
        ];
        let row = |(ip, b): &(u64, Branch)| Row {
            name: format!("{ip:#x}"),
            values: vec![b.taken, b.not_taken, b.wrong],
        };
        let rows = branches.iter().take(20).map(row).collect();
        Ok(Report::totals(totals).with_table(["taken", "not taken", "mispredicted"], rows))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    match run_tool(&command, &Options::default(), &mut Prediction::default()) {
        Ok((outcome, report)) => {
            eprint!("{report}");
            ExitCode::from(match outcome.exit {
                Exit::Code(code) => code as u8,
                Exit::Signal(signal) => 128 + signal as u8,
                Exit::RunsOn => 0,
            })
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_status() as u8)
        }
    }
}
