//! Input and output: calls of `read` and `write` by descriptor, and the bytes that they ask for.
//! ATOM's tool of that name.
//!
//! Before each system call come its number, its descriptor and its length, in that order.

use lightfoot_instrument::tool::{
    run_tool, Batch, Instrumenter, Register, Report, Row, Summary, Tool, Transfer, Value,
};
use lightfoot_instrument::{Command, Options};
use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;

const READ: u64 = 0;
const WRITE: u64 = 1;
/// What comes before a call: the tag is the place in this list.
const REGISTERS: [Register; 3] = [Register::Rax, Register::Rdi, Register::Rdx];

#[derive(Default)]
struct InputOutput {
    /// Number and descriptor of the call that a thread is about to make.
    partial: HashMap<u32, [u64; 2]>,
    /// Reads, their bytes, writes, their bytes, by descriptor.
    descriptors: BTreeMap<u64, [u64; 4]>,
}

impl InputOutput {
    fn call(&mut self, number: u64, descriptor: u64, bytes: u64) {
        let at = match number {
            READ => 0,
            WRITE => 2,
            _ => return,
        };
        let counts = self.descriptors.entry(descriptor).or_default();
        counts[at] += 1;
        counts[at + 1] += bytes;
    }
}

impl Tool for InputOutput {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            for i in block.instructions().filter(|i| i.transfer() == Transfer::SystemCall) {
                for (tag, register) in REGISTERS.into_iter().enumerate() {
                    ask.before(&i, Value::Register(register), tag as u32);
                }
            }
        })
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            let partial = self.partial.entry(batch.thread()).or_default();
            match event.tag {
                2 => {
                    let [number, descriptor] = *partial;
                    self.call(number, descriptor, event.value);
                }
                tag => partial[tag as usize] = event.value,
            }
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let sum = |column: usize| self.descriptors.values().map(|counts| counts[column]).sum();
        let totals =
            [("reads", sum(0)), ("bytes asked for", sum(1)), ("writes", sum(2)), ("bytes offered", sum(3))];
        let row = |(descriptor, counts): (&u64, &[u64; 4])| Row {
            name: format!("{descriptor}"),
            values: counts.to_vec(),
        };
        let rows = self.descriptors.iter().map(row).collect();
        Ok(Report::totals(totals).with_table(["reads", "bytes asked for", "writes", "bytes offered"], rows))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    match run_tool(&command, &Options::default(), &mut InputOutput::default()) {
        Ok((outcome, report)) => {
            eprint!("{report}");
            ExitCode::from(outcome.exit.status())
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_status() as u8)
        }
    }
}
