//! `lightfoot study instrument`: the speed and the exactness of `count` and `cache` on seven
//! programs, compared with other tools.
//!
//! All tools run as child processes, by commands that a person could type; the result lists these
//! commands. Inputs are generated, and rounds of the tools are interleaved. A time is the wall time
//! of the whole command, including its report.
//!
//! **Leaves out** the memory that the other tools use, and programs with several threads:
//! cachegrind runs one thread at a time, so a ratio would flatter lightfoot.

mod claim;
mod contender;
mod exactness;
mod page;
mod program;
mod result;

use crate::host::host;
use crate::journal::Journal;
use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::race::{race, Entrant, Line, Times};
use crate::workshop::workshop;
use anyhow::Result;
use contender::{Contender, Pace, Tools, BBCOUNT, CACHEGRIND, CONTENDERS, COUNT, EMPTY, NATIVE, WITH_FORMER};
use present::date;
use program::{Program, PROGRAMS};
use result::{Findings, ProgramFindings, Timing};
use std::path::Path;

const START_UP_ROUNDS: usize = 21;
const START_UP_SECONDS: f64 = 5.0;
/// Rounds of this build against a former one, whose times differ little.
const FORMER_ROUNDS: usize = 9;
const FORMER_SECONDS: f64 = 40.0;

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let folder = workshop()?;
    let mut journal = Journal::open(options, "instrument", seconds(options.effort))?;
    let findings = measure(options, folder.path(), &mut journal)?;
    let files = page::write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary: page::summary(&findings), claims: claim::check(&findings), files })
}

/// Seconds of one program: all contenders in all rounds, and with a long input.
fn program_seconds(effort: Effort) -> [f64; 2] {
    match effort {
        Effort::Quick => [20.0, 0.0],
        Effort::Full => [150.0, 60.0],
    }
}

/// Seconds of the whole study.
fn seconds(effort: Effort) -> f64 {
    program_seconds(effort).iter().sum::<f64>() * PROGRAMS.len() as f64 + START_UP_SECONDS
}

fn measure(options: &Options, folder: &Path, journal: &mut Journal) -> Result<Findings> {
    let tools = Tools::new(folder)?;
    let mut findings = Findings {
        schema: 1,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        host: host(),
        ..Findings::default()
    };
    let [short, long] = program_seconds(options.effort);
    for program in PROGRAMS {
        let measured = journal.step(program.name, short, || Ok(one(program, &tools, options.effort)))?;
        findings.programs.push(measured);
    }
    findings.start_up = journal.step("start-up", START_UP_SECONDS, || Ok(start_up(&tools)))?;
    if tools.former().is_ok() {
        for program in PROGRAMS {
            let step = format!("{}, former build", program.name);
            let measured = journal
                .step(&step, FORMER_SECONDS, || Ok(against_former(program, &tools, options.effort)))?;
            findings.former.push(measured);
        }
    }
    if options.effort == Effort::Full {
        for program in PROGRAMS {
            let step = format!("{}, long input", program.name);
            findings.steady.push(journal.step(&step, long, || Ok(steady(program, &tools)))?);
        }
    }
    findings.conclude();
    Ok(findings)
}

fn scale(program: &Program, effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 1,
        Effort::Full => program.full,
    }
}

/// Races this build against a former one.
fn against_former(program: &Program, tools: &Tools, effort: Effort) -> ProgramFindings {
    with_line(program, tools, scale(program, effort), |line| {
        (timings(WITH_FORMER, tools, line, |_| FORMER_ROUNDS), None)
    })
}

/// Races everybody on one program.
fn one(program: &Program, tools: &Tools, effort: Effort) -> ProgramFindings {
    let scale = scale(program, effort);
    with_line(program, tools, scale, |line| {
        let timings = timings(CONTENDERS, tools, line, |pace| rounds(pace, effort));
        let exactness = Some(exactness::measure(tools, line, &timings));
        (timings, exactness)
    })
}

fn steady(program: &Program, tools: &Tools) -> ProgramFindings {
    let some: Vec<Contender> =
        CONTENDERS.iter().filter(|c| [NATIVE, EMPTY, COUNT, BBCOUNT].contains(&c.name)).copied().collect();
    with_line(program, tools, program.steady, |line| (timings(&some, tools, line, |_| 3), None))
}

fn with_line(
    program: &Program,
    tools: &Tools,
    scale: u32,
    measure: impl FnOnce(&Line) -> (Vec<Timing>, Option<result::Exactness>),
) -> ProgramFindings {
    let (missing, (timings, exactness)) = match program.line(&tools.folder, scale) {
        Ok(line) => (None, measure(&line)),
        Err(reason) => (Some(reason), (Vec::new(), None)),
    };
    ProgramFindings { name: program.name.to_owned(), missing, timings, exactness }
}

fn rounds(pace: Pace, effort: Effort) -> usize {
    match (pace, effort) {
        (Pace::Every, Effort::Quick) => 3,
        (Pace::Every | Pace::Most, Effort::Full) => 5,
        (Pace::Most, Effort::Quick) => 2,
        (Pace::Few, Effort::Quick) => 1,
        (Pace::FullOnly, Effort::Quick) => 0,
        (Pace::Few | Pace::FullOnly, Effort::Full) => 3,
    }
}

fn timings(
    contenders: &[Contender],
    tools: &Tools,
    line: &Line,
    rounds: impl Fn(Pace) -> usize,
) -> Vec<Timing> {
    let entrants: Vec<Entrant> = contenders
        .iter()
        .map(|contender| Entrant { line: (contender.line)(tools, line), rounds: rounds(contender.pace) })
        .collect();
    let times = race(&entrants);
    let timing = |((contender, entrant), times): ((&Contender, &Entrant), Times)| {
        Timing::new(contender.name, entrant.line.as_ref().ok().map(Line::shown), times)
    };
    contenders.iter().zip(&entrants).zip(times).map(timing).collect()
}

fn start_up(tools: &Tools) -> Vec<Timing> {
    let line = Line { words: vec!["/bin/true".into()], env: Vec::new(), folder: tools.folder.clone() };
    let names = [NATIVE, COUNT, CACHEGRIND];
    let some: Vec<Contender> = CONTENDERS.iter().filter(|c| names.contains(&c.name)).copied().collect();
    timings(&some, tools, &line, |pace| if pace == Pace::Every { START_UP_ROUNDS } else { 3 })
}
