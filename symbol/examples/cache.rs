//! ATOM's cache simulator: a direct-mapped data cache of 8 KB with lines of 32 bytes, and who
//! missed in it.
//!
//! Every load and store sends its address; analysis code looks it up while the program runs on. The
//! paper counts the whole program; with names, each procedure and its line that misses most are
//! shown too: `cargo run --example cache -- /bin/ls`. Prefetches and references whose number only
//! the run knows (repeated string instructions) are left out. Source: Srivastava and Eustace 1994,
//! Figures 2 and 3.

use instrument::tool::{run_named, Batch, Instrumenter, Report, Row, Summary, Tool, Value};
use instrument::{Command, Options};
use lightfoot_symbol::ProgramNames;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

const CACHE_BYTES: u64 = 8 << 10;
const LINE_BYTES: u64 = 32;
const LINES: usize = (CACHE_BYTES / LINE_BYTES) as usize;

/// Procedures that are shown.
const ROWS: usize = 20;

/// Where a reference was asked for.
struct Place {
    procedure: String,
    line: Option<String>,
}

/// References and misses.
#[derive(Clone, Copy, Default)]
struct Counts {
    references: u64,
    misses: u64,
}

/// What a procedure did, and its source line that missed most.
#[derive(Default)]
struct Procedure {
    sum: Counts,
    worst: Option<(String, u64)>,
}

impl Procedure {
    fn add(&mut self, place: &Place, counts: Counts) {
        self.sum.references += counts.references;
        self.sum.misses += counts.misses;
        let most = self.worst.as_ref().map(|(_, misses)| *misses);
        if let Some(line) = place.line.as_ref().filter(|_| most.is_none_or(|most| most < counts.misses)) {
            self.worst = Some((line.clone(), counts.misses));
        }
    }

    fn row(&self, name: &str) -> Row {
        let name = match &self.worst {
            Some((line, _)) => format!("{name}, most at {line}"),
            None => name.to_owned(),
        };
        Row { name, values: vec![self.sum.references, self.sum.misses] }
    }
}

struct Cache {
    /// The line that each place of the cache holds.
    tags: Vec<u64>,
    /// Instrumentation code numbers instructions; an event's tag is its instruction's number.
    places: Arc<Mutex<Vec<Place>>>,
    counts: Vec<Counts>,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { tags: vec![u64::MAX; LINES], places: Arc::default(), counts: Vec::new() }
    }
}

impl Tool for Cache {
    fn instrumenter(&mut self) -> Instrumenter {
        let places = self.places.clone();
        Box::new(move |block, ask| {
            let procedure = block.procedure().map_or("?", |procedure| &procedure.name);
            for instruction in block.instructions().filter(|i| i.is_load() || i.is_store()) {
                let line = block.line(&instruction);
                let line = line.map(|line| format!("{}:{}", line.file, line.line));
                let mut places = places.lock().unwrap();
                let number = places.len() as u32;
                places.push(Place { procedure: procedure.to_owned(), line });
                for reference in 0..instruction.touches().len() {
                    ask.before(&instruction, Value::Address(reference), number);
                }
            }
        })
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            let number = event.tag as usize;
            if self.counts.len() <= number {
                self.counts.resize(number + 1, Counts::default());
            }
            let line = event.value / LINE_BYTES;
            let held = &mut self.tags[line as usize % LINES];
            self.counts[number].references += 1;
            self.counts[number].misses += u64::from(*held != line);
            *held = line;
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let places = self.places.lock().unwrap();
        let mut procedures: HashMap<&str, Procedure> = HashMap::new();
        for (place, counts) in places.iter().zip(&self.counts) {
            procedures.entry(&place.procedure).or_default().add(place, *counts);
        }
        let sum = |field: fn(&Counts) -> u64| self.counts.iter().map(field).sum();
        let totals =
            [("references", sum(|counts| counts.references)), ("misses", sum(|counts| counts.misses))];
        let mut rows: Vec<Row> = procedures.iter().map(|(name, procedure)| procedure.row(name)).collect();
        rows.sort_by(|a, b| b.values[1].cmp(&a.values[1]).then_with(|| a.name.cmp(&b.name)));
        rows.truncate(ROWS);
        Ok(Report::totals(totals).with_table(["references", "misses"], rows))
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
    match run_named(&command, &Options::default(), names, &mut Cache::default()) {
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
