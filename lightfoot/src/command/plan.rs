//! `lightfoot plan`: spreads software metrics over runs until no run disturbs the program.
//!
//! A trial is `--repeats` runs with a set of metrics, each with an environment of another size,
//! compared with baselines in the same environments. So the effect of memory layout is part of the
//! spread and is not mistaken for an effect of instrumentation. `measure::plan` chooses the sets.

use crate::cli::{Format, Plan};
use crate::run::hierarchy::Hierarchy;
use crate::trace::metric::Spec;
use crate::trace::{self, Request};
use anyhow::{Context, Result};
use instrument::Command;
use measure::perturb::{perturb, Options, Verdict};
use measure::plan::{plan, Trial};
use measure::trace::{Layout, Trace};
use present::csv::field;
use present::exit;
use present::output::{print, replace};
use present::terminal::printable_lines;
use serde::Serialize;
use std::fmt::Write;

/// The variable whose length moves the program's stack, and the difference in bytes between the
/// environments of two runs.
const PADDING: (&str, usize) = ("LIGHTFOOT_PADDING", 528);

/// The result of the command, as JSON has it.
#[derive(Debug, Serialize)]
struct Answer {
    schema: u32,
    verified: bool,
    trials: usize,
    runs_of_the_program: usize,
    /// Whether the trials were used up before everything was tested.
    exhausted: bool,
    runs: Vec<Row>,
    /// Pairs that disturb.
    conflicts: Vec<[String; 2]>,
}

/// One run of the plan.
#[derive(Debug, Serialize)]
struct Row {
    metrics: Vec<String>,
    layout: String,
    /// The verdict; null if the run is untested.
    verdict: Option<Verdict>,
}

pub(super) fn run(options: &Plan) -> Result<u8> {
    let metrics = Spec::list(&options.metrics)?;
    if metrics.is_empty() {
        anyhow::bail!("no metric to plan for: give some with --metrics fn:NAME,fn:NAME");
    }
    let repeats = options.repeats as usize;
    // The budget counts runs of the program. A trial takes `repeats` of them, and so do the
    // baselines.
    let trials = (options.budget as usize).saturating_sub(repeats) / repeats;
    if trials == 0 {
        let least = 2 * repeats;
        anyhow::bail!(
            "--budget {}: baselines and one trial take {least} runs of the program (--repeats {repeats} each)",
            options.budget
        );
    }
    let mut bench = Bench { options, metrics, baseline: Vec::new(), ran: 0 };
    // Baselines come first: the search compares every trial with them.
    bench.baseline = bench.traces(Vec::new(), Layout::Packed)?;
    let count = bench.metrics.len();
    let found = plan(&mut bench, count, options.layouts.len().max(1), trials)?;
    let name = |index: &usize| bench.metrics[*index].to_string();
    let row = |run: &measure::plan::Run| Row {
        metrics: run.metrics.iter().map(name).collect(),
        layout: layout_name(bench.layout(run.layout)),
        verdict: run.verdict,
    };
    let answer = Answer {
        schema: 1,
        verified: found.is_verified(),
        trials: found.trials,
        runs_of_the_program: bench.ran,
        exhausted: found.exhausted,
        runs: found.runs.iter().map(row).collect(),
        conflicts: found.conflicts.iter().map(|(first, second)| [name(first), name(second)]).collect(),
    };
    let shown = match options.format {
        Format::Json => serde_json::to_string_pretty(&answer)? + "\n",
        Format::Csv => csv(&answer),
        Format::Text => printable_lines(&text(&answer)),
    };
    match &options.output {
        Some(path) => replace(path, shown).with_context(|| format!("cannot write {}", path.display()))?,
        None => print(&shown)?,
    }
    // The command passes on the exit status of the last baseline, in which nothing was added to the
    // program.
    let last = bench.baseline.last().and_then(|trace| trace.end.as_ref());
    Ok(last.and_then(|end| end.exit_status).unwrap_or(exit::FAILURE))
}

/// Makes trials by running the program.
struct Bench<'a> {
    options: &'a Plan,
    metrics: Vec<Spec>,
    baseline: Vec<Trace>,
    ran: usize,
}

impl Bench<'_> {
    fn layout(&self, index: usize) -> Layout {
        self.options.layouts.get(index).copied().unwrap_or(Layout::Packed)
    }

    /// One run for each environment.
    fn traces(&mut self, software: Vec<Spec>, layout: Layout) -> Result<Vec<Trace>> {
        let request = Request { software, layout, ..request(self.options)? };
        let mut traces = Vec::new();
        for repeat in 0..self.options.repeats as usize {
            // No other thread of this process is running here that could be reading the
            // environment.
            std::env::set_var(PADDING.0, "x".repeat(repeat * PADDING.1));
            let interrupts = instrument::interrupts();
            let trace = trace::run(&request)?;
            self.ran += 1;
            // A program that handles Ctrl-C ends one run; its user means all of them.
            let is_interrupted = trace.end.as_ref().is_some_and(|end| end.interrupted);
            if is_interrupted || instrument::interrupts() > interrupts {
                let sentence = format!("interrupted after {} runs of the program", self.ran);
                return Err(exit::Failure { status: exit::INTERRUPTED, sentence }.into());
            }
            traces.push(trace);
        }
        Ok(traces)
    }
}

impl Trial for Bench<'_> {
    type Error = anyhow::Error;

    fn measure(&mut self, metrics: &[usize], layout: usize) -> Result<Verdict> {
        let software = metrics.iter().map(|&index| self.metrics[index].clone()).collect();
        let runs = self.traces(software, self.layout(layout))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let report = perturb(&self.baseline, &runs, &Options { threads, ..Options::default() })?;
        let verdict = report.verdict();
        present::tell!(
            "lightfoot: {} ({}): {}",
            metrics.iter().map(|&index| self.metrics[index].to_string()).collect::<Vec<_>>().join(" "),
            layout_name(self.layout(layout)),
            verdict.words()
        );
        Ok(verdict)
    }
}

fn request(options: &Plan) -> Result<Request> {
    let command = Command { program: options.program[0].clone(), arguments: options.program[1..].to_vec() };
    let mut request = Request::simulated(command, options.every, Hierarchy::plain(&options.hierarchy)?);
    request.engine = options.engine.into();
    let hardware = options.hardware.as_deref().unwrap_or_default();
    request.hardware = hardware.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Ok(request)
}

fn layout_name(layout: Layout) -> String {
    match layout {
        Layout::Packed => "packed".into(),
        Layout::Line => "line".into(),
        Layout::Page => "page".into(),
        Layout::Seed(seed) => format!("seed:{seed}"),
    }
}

fn words(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Undisturbed) => "verified",
        Some(Verdict::Disturbed) => "disturbs",
        Some(Verdict::CannotTell) => "tried, cannot tell",
        None => "untested",
    }
}

fn text(answer: &Answer) -> String {
    let runs = answer.runs.len();
    let mut out = format!(
        "{runs} run{}, {}; {} sets tried in {} runs of the program\n\n",
        if runs == 1 { "" } else { "s" },
        if answer.verified { "all verified" } else { "not all verified" },
        answer.trials,
        answer.runs_of_the_program
    );
    for (row, number) in answer.runs.iter().zip(1..) {
        let verdict = words(row.verdict);
        let _ = writeln!(out, "  {number}. {} (layout {}): {verdict}", row.metrics.join(" "), row.layout);
    }
    if !answer.conflicts.is_empty() {
        out += "\nNot to be measured together:\n";
        answer.conflicts.iter().for_each(|[first, second]| out += &format!("  {first} and {second}\n"));
    }
    if answer.exhausted {
        out += "\nnote: the budget ended before everything was tried; a larger --budget verifies more\n";
    }
    out
}

/// A metric's name in quotes.
fn quoted(metric: &str) -> String {
    let field = field(metric);
    if field.starts_with('"') {
        field
    } else {
        format!("\"{field}\"")
    }
}

fn csv(answer: &Answer) -> String {
    let mut out = String::from("run,metric,layout,verdict\n");
    for (row, number) in answer.runs.iter().zip(1..) {
        for metric in &row.metrics {
            let _ = writeln!(out, "{number},{},{},{}", quoted(metric), row.layout, words(row.verdict));
        }
    }
    out
}
