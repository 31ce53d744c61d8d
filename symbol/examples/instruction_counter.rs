//! Instructions by procedure: ATOM's first example, an instruction counter that walks over
//! procedures.
//!
//! Counters cost nothing while the program runs, so the counts are free and exact: `cargo run
//! --example instruction_counter -- /bin/ls`. Source: Srivastava and Eustace 1994, section 4.

use instrument::tool::{run_named, Counter, Instrumenter, Report, Row, Summary, Tool};
use instrument::{Command, Options};
use lightfoot_symbol::ProgramNames;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// What the counters count: instructions, and calls (entries into a procedure's first block).
const INSTRUCTIONS: u32 = 0;
const CALLS: u32 = 1;

/// Procedures that are shown.
const ROWS: usize = 20;

#[derive(Default)]
struct InstructionCounter {
    /// Names of procedures by number: instrumentation code writes them, the report reads them.
    procedures: Arc<Mutex<Vec<String>>>,
}

impl Tool for InstructionCounter {
    fn instrumenter(&mut self) -> Instrumenter {
        let procedures = self.procedures.clone();
        let mut numbers: HashMap<String, u64> = HashMap::new();
        Box::new(move |block, ask| {
            let Some(procedure) = block.procedure() else { return };
            let module = block.module().path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{} [{module}]", procedure.name);
            let next = numbers.len() as u64;
            let of = *numbers.entry(name.clone()).or_insert(next);
            if of == next {
                procedures.lock().unwrap().push(name);
            }
            ask.count_all(Counter { what: INSTRUCTIONS, of });
            if block.is_entry() {
                ask.count_block(Counter { what: CALLS, of });
            }
        })
    }

    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report> {
        let count = |what: u32, of: usize| summary.counter(Counter { what, of: of as u64 });
        let procedures = self.procedures.lock().unwrap();
        let row = |(of, name): (usize, &String)| Row {
            name: name.clone(),
            values: vec![count(INSTRUCTIONS, of), count(CALLS, of)],
        };
        let mut rows: Vec<Row> = procedures.iter().enumerate().map(row).collect();
        let sum = rows.iter().map(|row| row.values[0]).sum();
        rows.sort_by_key(|row| std::cmp::Reverse(row.values[0]));
        rows.truncate(ROWS);
        Ok(Report::totals([("instructions", sum)]).with_table(["instructions", "calls"], rows))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    let names = Box::new(ProgramNames::new());
    match run_named(&command, &Options::default(), names, &mut InstructionCounter::default()) {
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
