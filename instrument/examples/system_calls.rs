//! System calls: how often each was made, by number. ATOM's tool of that name.

use lightfoot_instrument::tool::{
    run_tool, Batch, Instrumenter, Register, Report, Row, Summary, Tool, Transfer, Value,
};
use lightfoot_instrument::{Command, Exit, Options};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Names of the most common; the table of all is the kernel's `unistd_64.h`.
const NAMES: &[(u64, &str)] = &[
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (5, "fstat"),
    (9, "mmap"),
    (10, "mprotect"),
    (11, "munmap"),
    (12, "brk"),
    (17, "pread64"),
    (59, "execve"),
    (202, "futex"),
    (231, "exit_group"),
    (257, "openat"),
];

#[derive(Default)]
struct SystemCalls(BTreeMap<u64, u64>);

impl Tool for SystemCalls {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            for i in block.instructions().filter(|i| i.transfer() == Transfer::SystemCall) {
                ask.before(&i, Value::Register(Register::Rax), 0);
            }
        })
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            *self.0.entry(event.value).or_default() += 1;
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let name =
            |number: u64| NAMES.iter().find(|(known, _)| *known == number).map_or("", |(_, name)| name);
        let row = |(number, times): (&u64, &u64)| Row {
            name: format!("{number} {}", name(*number)),
            values: vec![*times],
        };
        let rows = self.0.iter().map(row).collect();
        Ok(Report::totals([("system calls", self.0.values().sum())]).with_table(["times"], rows))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    match run_tool(&command, &Options::default(), &mut SystemCalls::default()) {
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
