//! What `count` and `cache` share: before the run everything that can be refused is refused, after it the report is made and written.

use super::complain;
use crate::branches::Predicted;
use crate::cli::{self, Format, Rep, Run};
use crate::exit::{self, FAILURE};
use crate::hierarchy::Hierarchy;
use crate::native;
use crate::report::output::Destination;
use crate::report::terminal::Page;
use crate::report::{number, Engine, Kind, ProcessRow, Report, View, SCHEMA};
use crate::symbol::Symbolizer;
use crate::tally::{tally, Attribution, Tally};
use anyhow::Result;
use event::Stream;
use instrument::{Aslr, Children, Command, Effort, Options, Outcome, Process};
use simulate::Counts;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// A library matters for warnings when at least one instruction in this many is its own.
const STRIPPED_SHARE: u64 = 20;

/// Everything that was checked before the run.
pub(super) struct Prepared<'a> {
    run: &'a Run,
    /// What to run.
    pub(super) command: Command,
    destination: Destination,
}

/// Everything that the run gave.
pub(super) struct Measured {
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
    pub(super) simulated: Option<Simulated>,
    pub(super) machine: serde_json::Value,
}

/// What a simulation adds.
pub(super) struct Simulated {
    pub(super) hierarchy: Hierarchy,
    pub(super) counts: Counts,
    pub(super) predicted: Option<Predicted>,
}

impl Simulated {
    fn attribution(&self) -> Attribution {
        self.hierarchy.attribution(&self.counts, self.predicted.as_ref())
    }

    /// Puts what belongs to no row into the report, or why it is not there.
    fn describe(&self, report: &mut Report) {
        report.null_reasons.extend(self.hierarchy.null_reasons());
        report.write_backs = self.hierarchy.write_backs(&self.counts);
        report.conditional_branches = self.predicted.as_ref().map(|predicted| predicted.resolved);
        let wrong = report.totals.misses.and_then(|misses| misses.branch_mispredictions);
        report.cycles = self.hierarchy.cycles(&self.counts, report.totals.instructions, wrong);
        let no_model = format!("machine {} declares no cycle model", self.hierarchy.machine.name);
        let missing = [
            ("write_backs", report.write_backs.is_none(), "not counted: run with --write-backs"),
            ("conditional_branches", self.predicted.is_none(), "not counted: run with --branches"),
            ("branch_mispredictions", self.predicted.is_none(), "not counted: run with --branches"),
            ("cycles", report.cycles.is_none(), &no_model),
        ];
        for (field, _, reason) in missing.into_iter().filter(|(_, missing, _)| *missing) {
            report.null_reasons.insert(field.into(), reason.into());
        }
    }
}

/// Refuses what cannot work before the program runs.
pub(super) fn prepare<'a>(run: &'a Run, all: &[OsString]) -> Result<Prepared<'a>> {
    cli::refuse_option(&run.program, all)?;
    let destination = Destination::new(run.output.as_deref())?;
    let command = Command { program: run.program[0].clone(), arguments: run.program[1..].to_vec() };
    Ok(Prepared { run, command, destination })
}

impl Prepared<'_> {
    /// How the engine is to run the program.
    pub(super) fn options(&self, stream: Stream) -> Options {
        let children = if self.run.follow_children { Children::Followed } else { Children::Released };
        Options { aslr: if self.run.aslr { Aslr::On } else { Aslr::Off }, stream, children }
    }

    /// Makes the report, writes it, and gives the exit status.
    pub(super) fn finish(&self, measured: &Measured) -> Result<u8> {
        let report = self.report(measured);
        let page = match self.destination {
            Destination::Stderr => Page::of_stderr(),
            _ => Page::PLAIN,
        };
        let view = View { format: self.run.format, by: self.run.by, top: self.run.top, page };
        if let Err(error) = self.destination.write(&view.show(&report)?) {
            complain(&error);
            self.rescue(&report, view);
            return Ok(FAILURE);
        }
        Ok(report.exit_status)
    }

    /// The report could not be written where it belongs: what was measured is shown rather than lost.
    fn rescue(&self, report: &Report, view: View) {
        if self.destination != Destination::Stderr {
            let view = View { format: Format::Text, page: Page::of_stderr(), ..view };
            // There is no third place to go to.
            let _ = view.show(report).and_then(|text| Destination::Stderr.write(&text));
        }
    }

    fn report(&self, measured: &Measured) -> Report {
        let outcome = &measured.outcome;
        let mut symbols = Symbolizer::new();
        let attribution = measured.simulated.as_ref().map(Simulated::attribution);
        let tally = tally(&outcome.profile, attribution.as_ref(), self.run.rep, &mut symbols);
        let mut report = empty(measured, self.run.rep);
        report.command = self.run.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        report.fill(&tally, &symbols);
        if self.run.follow_children {
            report.processes = Some(processes(&outcome.processes, &tally));
        }
        if let Some(simulated) = &measured.simulated {
            simulated.describe(&mut report);
        }
        report.instructions_per_s = per_second(tally.totals.instructions, report.wall_s);
        report.warnings.clone_from(&outcome.warnings);
        report.warnings.extend(stripped(&tally, &symbols));
        self.compare(&mut report);
        report
    }

    fn compare(&self, report: &mut Report) {
        let native = match (self.run.compare_native, report.partial) {
            (false, _) => Err("not measured: run with --compare-native".to_owned()),
            (true, true) => Err("not measured: the run was interrupted".to_owned()),
            (true, false) => native::wall_s(&self.command).map_err(|error| format!("not measured: {error}")),
        };
        match native {
            Ok(wall_s) => {
                report.native_wall_s = Some(wall_s);
                report.slowdown = (wall_s > 0.0).then(|| report.wall_s / wall_s);
            }
            Err(reason) => {
                for field in ["native_wall_s", "slowdown"] {
                    report.null_reasons.insert(field.into(), reason.clone());
                }
            }
        }
    }
}

/// A report without counts.
fn empty(measured: &Measured, rep: Rep) -> Report {
    let outcome = &measured.outcome;
    Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        kind: measured.kind,
        command: Vec::new(),
        exit_status: if outcome.interrupted { exit::INTERRUPTED } else { exit::of_program(outcome.exit) },
        signal: exit::signal(outcome.exit),
        partial: outcome.interrupted,
        rep,
        machine: measured.machine.clone(),
        wall_s: outcome.wall.as_secs_f64(),
        instructions_per_s: None,
        native_wall_s: None,
        slowdown: None,
        engine: engine(&outcome.effort),
        totals: Default::default(),
        cycles: None,
        write_backs: None,
        conditional_branches: None,
        null_reasons: BTreeMap::new(),
        warnings: Vec::new(),
        functions: Vec::new(),
        libraries: Vec::new(),
        opcodes: Vec::new(),
        processes: None,
    }
}

/// What each process counted, over all that it executed.
fn processes(processes: &[Process], tally: &Tally) -> Vec<ProcessRow> {
    let row = |(index, process): (usize, &Process)| {
        let mut counts = tally.none;
        process
            .images
            .iter()
            .filter_map(|&image| tally.images.get(image as usize))
            .for_each(|image| counts.add(image));
        ProcessRow {
            pid: process.pid,
            parent: process.parent.map(|parent| processes[parent].pid),
            place: index + 1,
            parent_place: process.parent.map(|parent| parent + 1),
            command: process.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            exit_status: process.exit.map(exit::of_program),
            signal: process.exit.and_then(exit::signal),
            counts,
        }
    };
    processes.iter().enumerate().map(row).collect()
}

fn engine(effort: &Effort) -> Engine {
    Engine {
        fragments: effort.fragments,
        code_bytes: effort.code_bytes,
        stops: effort.exits + effort.lookups + effort.segments + effort.system_calls + effort.signals,
        translating_s: effort.translating.as_secs_f64(),
        waiting_s: effort.waiting.as_secs_f64(),
    }
}

fn per_second(instructions: u64, wall_s: f64) -> Option<u64> {
    (wall_s > 0.0).then_some((instructions as f64 / wall_s) as u64)
}

/// One sentence about the files that name only their exported functions, where much of the work is theirs.
fn stripped(tally: &Tally, symbols: &Symbolizer) -> Option<String> {
    let heavy = tally.libraries.iter().filter(|(index, counts)| {
        symbols.libraries()[*index].is_stripped()
            && counts.instructions * STRIPPED_SHARE >= tally.totals.instructions.max(1)
    });
    let share = |part| number::percent(part, tally.totals.instructions);
    let named: Vec<String> = heavy
        .map(|(index, counts)| {
            format!("{} ({})", symbols.libraries()[*index].name(), share(counts.instructions))
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "no symbol table in {}: functions it does not export are named by address; install its debug symbols or build without strip",
            named.join(", ")
        )
    })
}
