//! Dynamic memory: what a program asks the system for. ATOM's tool of that name follows `malloc`;
//! this one sees what is behind every allocator.
//!
//! Before each system call come its number and its first two arguments, in that order.

use lightfoot_instrument::tool::{
    run_tool, Batch, Instrumenter, Register, Report, Summary, Tool, Transfer, Value,
};
use lightfoot_instrument::{Command, Options};
use std::collections::HashMap;
use std::process::ExitCode;

const MMAP: u64 = 9;
const MUNMAP: u64 = 11;
const BRK: u64 = 12;
/// What comes before a call: the tag is the place in this list.
const REGISTERS: [Register; 3] = [Register::Rax, Register::Rdi, Register::Rsi];

#[derive(Default)]
struct DynamicMemory {
    /// Number and first argument of the call that a thread is about to make.
    partial: HashMap<u32, [u64; 2]>,
    /// How many, and their bytes.
    mapped: [u64; 2],
    unmapped: [u64; 2],
    lowest_break: Option<u64>,
    highest_break: u64,
}

impl DynamicMemory {
    fn call(&mut self, number: u64, first: u64, second: u64) {
        match number {
            MMAP => self.mapped = [self.mapped[0] + 1, self.mapped[1] + second],
            MUNMAP => self.unmapped = [self.unmapped[0] + 1, self.unmapped[1] + second],
            // A break of 0 asks where it is.
            BRK if first != 0 => {
                self.lowest_break.get_or_insert(first);
                self.highest_break = self.highest_break.max(first);
            }
            _ => {}
        }
    }
}

impl Tool for DynamicMemory {
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
                    let [number, first] = *partial;
                    self.call(number, first, event.value);
                }
                tag => partial[tag as usize] = event.value,
            }
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let grown = self.highest_break.saturating_sub(self.lowest_break.unwrap_or(0));
        Ok(Report::totals([
            ("mappings made", self.mapped[0]),
            ("bytes mapped", self.mapped[1]),
            ("mappings removed", self.unmapped[0]),
            ("bytes unmapped", self.unmapped[1]),
            ("bytes between first and highest break", grown),
        ]))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    match run_tool(&command, &Options::default(), &mut DynamicMemory::default()) {
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
