//! The common part of `count` and `cache`: checks before the run, and the report after it.

use super::alone;
use super::complaint::complain;
use super::nameless;
use super::running;
use super::simulated::Simulated;
use super::thread::{self, OfThread};
use crate::cli::{By, Rep, Run, Shape, ShownMachine};
use crate::report::attached::Attached;
use crate::report::curve::Touched;
use crate::report::detail::{Detail, Part, PartLines};
use crate::report::layouts;
use crate::report::objects::Objects;
use crate::report::{
    call_rows, group, html, sortable, Engine, Kind, Metric, Order, ProcessRow, Report, View, SCHEMA,
};
use crate::run::block_order::region::Regions;
use crate::run::block_order::{Accumulator, BlockOrderAnalysis, BlockOrderFindings};
use crate::run::calls::Calls;
use crate::run::engine::{self, exit_signal};
use crate::run::hierarchy::Hierarchy;
use crate::run::images::{Images, Kept};
use crate::run::named::cache_folder;
use crate::run::native;
use crate::run::region_marker::RegionMarker;
use crate::run::sections::{Recorded, Sections};
use crate::run::tally::{tally, Attribution, Counts, Grain, Part as RegionPart, Tally};
use anyhow::Result;
use clap::ValueEnum;
use event::Stream;
use instrument::virtual_machine::{Layout, Processor, Repeats, ThreadOrder, VirtualMachine};
use instrument::{Aslr, CallRecords, Children, Command, Options, Outcome, Process, Threads};
use present::exit::{self, Failure, FAILURE, NEGATIVE};
use present::output::Destination;
use present::terminal::Page;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use symbol::Symbolizer;

/// The name of the column that sorts lines by their own counts plus those of code inlined there.
const INLINED: &str = "inlined";

/// The options of a run, after all checks.
pub(super) struct Prepared<'a> {
    pub(super) run: &'a Run,
    /// The program to run, with its arguments.
    pub(super) command: Command,
    destination: Destination,
    by: Vec<By>,
    sort: Option<&'static Metric>,
    order: Order,
    /// The machine that the program is shown.
    machine: Cell<VirtualMachine>,
}

/// All results of a run.
pub(super) struct Measured<'a> {
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
    pub(super) simulated: Option<Simulated<'a>>,
    /// The counts of each process image, if child processes are followed.
    pub(super) images: Option<Images<'a>>,
    /// Counts of each thread from its records; empty unless threads are counted separately.
    pub(super) threads: Vec<OfThread>,
    pub(super) machine: serde_json::Value,
    pub(super) followed: Followed,
    /// Misses by object, if the rows are data.
    pub(super) objects: Option<Objects>,
}

/// The results of block-order analysis.
#[derive(Default)]
pub(super) struct Followed {
    calls: Option<Calls>,
    touched: Option<Touched>,
    warnings: Vec<String>,
    /// Whether the region to count was never entered.
    never_opened: bool,
    symbols: Symbolizer,
}

/// What a run found in a region.
pub(super) struct InRegion<'h> {
    pub(super) outcome: Outcome,
    /// Misses by site and block.
    pub(super) counts: simulate::Counts,
    pub(super) images: Option<Images<'h>>,
    /// What a simulation read, of the whole run.
    pub(super) records: event::Counter,
    pub(super) followed: Followed,
}

impl Followed {
    /// Makes the results from an analysis; `misses` attributes the misses of its contexts.
    pub(super) fn new(
        found: BlockOrderFindings,
        misses: impl Fn(&simulate::Counts) -> Option<Attribution>,
        rep: Rep,
    ) -> Followed {
        let calls =
            found.called.as_ref().map(|called| Calls::new(called, misses(&called.counts).as_ref(), rep));
        let never_opened = found.region.as_ref().is_some_and(|region| region.never_opened);
        let mut warnings = found.region.map(|region| region.warnings).unwrap_or_default();
        warnings.extend(found.called.as_ref().and_then(|called| called.contexts.warning()));
        Followed { calls, touched: None, warnings, never_opened, symbols: found.symbols }
    }

    /// What is to be said of the regions that the program has passed.
    pub(super) fn of_regions(regions: &Regions) -> Followed {
        let (warnings, never_opened) = (regions.warnings(), regions.never_opened());
        Followed { warnings, never_opened, ..Followed::default() }
    }

    /// Adds the memory that was touched in each slice of time.
    pub(super) fn with_touched(self, touched: Option<Touched>) -> Followed {
        Followed { touched, ..self }
    }
}

/// Checks the options before the program runs.
pub(super) fn prepare<'a>(kind: Kind, run: &'a Run) -> Result<Prepared<'a>> {
    if run.follow_children {
        match (&run.region, run.format) {
            (Some(_), format) if format.shows_calls() => anyhow::bail!(
                "--region shows calls of the program alone: leave out --follow-children, or use text, json or csv"
            ),
            (_, format) if format.is_of_contexts() => {
                let name = format.name();
                anyhow::bail!("--format {name} shows calls, which are followed in the program alone: leave out --follow-children, or use html, callgrind or cachegrind")
            }
            _ => {}
        }
    }
    if matches!(run.format, Shape::Pprof | Shape::Otlp) && run.output.is_none() {
        let format = run.format.name();
        anyhow::bail!("--format {format} writes bytes that no terminal shows: name a file with -o FILE");
    }
    if let Some(data) = run.by.iter().find(|by| by.is_data()) {
        refuse_data(kind, run, *data)?;
    }
    alone::check_rows(run)?;
    let (sort, order) = match run.sort.as_deref() {
        Some(INLINED) if run.by.contains(&By::Line) => (None, Order::WithInlined),
        Some(INLINED) => anyhow::bail!("--sort inlined is for lines: add --by line"),
        column => (column.map(|column| sortable(kind, column)).transpose()?, Order::Own),
    };
    let destination = Destination::new(run.output.as_deref())?;
    let command = match (run.running.pid, &run.program[..]) {
        (Some(pid), _) => running::command_of(pid),
        (None, _) if run.running.window.is_some() => {
            anyhow::bail!("--for is for a running process: name it with --pid PID")
        }
        (None, [program, arguments @ ..]) => {
            Command { program: program.clone(), arguments: arguments.to_vec() }
        }
        (None, []) => anyhow::bail!("name a program to run, or a running process with --pid PID"),
    };
    let machine = Cell::new(virtual_machine(&run.shown)?);
    Ok(Prepared { run, command, destination, by: distinct(&run.by), sort, order, machine })
}

/// Refuses what rows of data cannot be combined with.
fn refuse_data(kind: Kind, run: &Run, by: By) -> Result<()> {
    let name = by.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    if kind == Kind::Count {
        anyhow::bail!("--by {name} counts misses: use lightfoot cache --by {name}");
    }
    if run.by.len() > 1 {
        anyhow::bail!("--by {name} stands alone: leave out the other rows");
    }
    let sees_others = run.running.pid.is_some_and(running::sees_other_files);
    let refused = [
        (sees_others, "--pid", "the process sees other files, in which its allocators are"),
        (run.shown.layouts.is_some(), "--layouts", "it reports one run"),
        (run.sort.is_some(), "--sort", "its rows are sorted by first-level misses"),
    ];
    for (is_given, option, why) in refused {
        if is_given {
            anyhow::bail!(
                "--by {name} cannot be combined with {option}, because {why}: leave one of them out"
            );
        }
    }
    if !matches!(run.format, Shape::Text | Shape::Json | Shape::Csv | Shape::Html) {
        let format = run.format.name();
        anyhow::bail!("--by {name} has no place in --format {format}: use text, json, csv or html");
    }
    Ok(())
}

/// The machine that the options describe.
fn virtual_machine(shown: &ShownMachine) -> Result<VirtualMachine> {
    let named = |name: &String| Processor::named(name).map_err(engine::failure);
    let processor = shown.virtual_cpu.as_ref().map(named).transpose()?;
    let repeats =
        if shown.repeatable || shown.layouts.is_some() { Repeats::Exactly } else { Repeats::AsNatively };
    let threads = if shown.turns { ThreadOrder::OneAtATime } else { ThreadOrder::AsNatively };
    Ok(VirtualMachine { processor, repeats, threads, ..VirtualMachine::default() })
}

/// The keys in the order of the command line, each once.
fn distinct(by: &[By]) -> Vec<By> {
    let is_first = |&(key, index): &(&By, usize)| !by[..index].contains(key);
    by.iter().zip(0..).filter(is_first).map(|(key, _)| *key).collect()
}

/// The error for a region that was never entered.
fn unopened(region: &str) -> anyhow::Error {
    let sentence = format!(
        "nothing was counted: the program never entered region {region}, name one that it enters or leave --region out"
    );
    Failure { status: NEGATIVE, sentence }.into()
}

impl Prepared<'_> {
    /// The options with which the engine runs the program.
    pub(super) fn options(&self, stream: Stream) -> Options {
        let children = match (self.run.follow_children, self.run.wait_all) {
            (false, _) => Children::Released,
            (true, false) => Children::Followed,
            (true, true) => Children::Awaited,
        };
        let aslr = if self.run.aslr { Aslr::On } else { Aslr::Off };
        let translations = if self.run.no_translation_cache { None } else { translations() };
        let threads = if self.by_thread() { Threads::Apart } else { Threads::Together };
        let calls = CallRecords::None;
        let (machine, running) = (self.machine.get(), running::running(&self.run.running));
        Options { aslr, stream, children, translations, threads, calls, machine, running }
    }

    /// Writes a report that is no table of `count` and `cache`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, text: String) -> Result<()> {
        self.destination.write(text)
    }

    /// The images of the run, if the report tells processes apart; `hierarchy` is simulated.
    pub(super) fn images<'h>(&self, hierarchy: Option<&'h Hierarchy>) -> Option<Images<'h>> {
        let kept = if self.run.format.shows_calls() { Kept::Parts } else { Kept::Sums };
        self.run.follow_children.then(|| Images::new(kept, self.run.rep, hierarchy))
    }

    /// Whether threads are counted separately.
    pub(super) fn by_thread(&self) -> bool {
        self.by == [By::Thread]
    }

    /// Whether the rows are data and not code.
    pub(super) fn by_data(&self) -> bool {
        self.by.iter().any(|by| by.is_data())
    }

    /// Whether the report needs block-order analysis, because counters and records do not suffice.
    pub(super) fn needs_course(&self) -> bool {
        self.follows_calls()
    }

    /// Runs the program and counts region `name` of it. The profile is that of the region.
    pub(super) fn run_region<'h>(
        &self,
        name: &str,
        (stream, recorded): (Stream, Recorded),
        hierarchy: Option<&'h Hierarchy>,
    ) -> Result<InRegion<'h>> {
        let marker = RegionMarker::new(name);
        let mut observer = Sections::new(recorded);
        let mut outcome =
            engine::run_marked(&self.command, &self.options(stream), &mut observer, marker.clone())?;
        let (sections, records) = observer.finish();
        let mut images = self.images(hierarchy);
        if let Some(images) = &mut images {
            sections.iter().for_each(|section| images.add(section.image, &section.part, &outcome.profile));
        }
        let parts: Vec<_> = sections.iter().map(|section| &section.part).collect();
        let counts = RegionPart::sum(&parts).narrow(&mut outcome.profile);
        let followed = Followed::of_regions(marker.borrow().regions());
        Ok(InRegion { outcome, counts, images, records, followed })
    }

    /// Whether calls are followed, which is possible for the program itself but not for its
    /// children.
    fn follows_calls(&self) -> bool {
        let wanted = self.run.format.shows_calls() || self.by == [By::Call];
        wanted && !self.run.follow_children && !self.by_data()
    }

    /// Whether source lines are shown whatever the rows are. A page about data shows none.
    fn is_annotated(&self) -> bool {
        self.run.format.is_annotated() && !self.by_data()
    }

    /// The block-order analysis that the options need; `sums` adds up the costs of contexts.
    pub(super) fn course(
        &self,
        course: BlockOrderAnalysis,
        sums: impl FnOnce() -> Accumulator,
    ) -> BlockOrderAnalysis {
        let course = match self.follows_calls() {
            true => course.with_calls(sums()),
            false => course,
        };
        match &self.run.region {
            Some(name) => course.within_region(name),
            None => course,
        }
    }

    /// Runs the program with block-order analysis. If a region is counted, the profile is that of
    /// the region.
    pub(super) fn run_course(&self, mut course: BlockOrderAnalysis) -> Result<(Outcome, BlockOrderFindings)> {
        let ran = engine::run_tool(&self.command, &self.options(Stream::Counts), &mut course);
        let found = course.finish();
        let mut outcome = ran?.0;
        if let Some(region) = &found.region {
            region.narrow(&mut outcome.profile, &found.counts.complex);
        }
        Ok((outcome, found))
    }

    /// Measures once, or once in each layout; makes the report of the first run, writes it, and
    /// returns the exit status.
    ///
    /// # Errors
    /// The errors of `measure` and of [`Prepared::finish`].
    pub(super) fn finish_layouts<'h>(&self, measure: impl Fn() -> Result<Measured<'h>>) -> Result<u8> {
        let first = measure()?;
        let count = self.run.shown.layouts.unwrap_or(1);
        let mut others = Vec::new();
        for number in 1..count {
            self.machine.set(VirtualMachine { layout: Layout(number), ..self.machine.get() });
            others.push(self.report(measure()?).totals);
        }
        self.finish(first, &others)
    }

    /// Makes the report, writes it, and returns the exit status. `others` are the totals of runs in
    /// other layouts.
    ///
    /// # Errors
    /// If the region to count was never entered; the report is written nevertheless.
    fn finish(&self, measured: Measured<'_>, others: &[Counts]) -> Result<u8> {
        let never_opened = measured.followed.never_opened;
        let mut report = self.report(measured);
        let runs: Vec<&Counts> = std::iter::once(&report.totals).chain(others).collect();
        let spreads = layouts::spreads(report.metrics(), &runs);
        report.layouts = spreads;
        let page = match self.destination {
            Destination::Stderr => Page::of_stderr(),
            _ => Page::PLAIN,
        };
        let view = View { format: self.run.format, by: &self.by, top: self.run.top, page };
        if let Err(error) = self.destination.write(&view.show(&report)?) {
            complain(&error);
            self.rescue(&report, view);
            return Ok(FAILURE);
        }
        match &self.run.region {
            // An interrupted program might still have entered the region.
            Some(name) if never_opened && !report.partial => Err(unopened(name)),
            _ => Ok(report.exit_status),
        }
    }

    /// Shows the report on standard error if its file cannot be written, so that it is not lost.
    fn rescue(&self, report: &Report, view: View<'_>) {
        if self.destination != Destination::Stderr {
            let view = View { format: Shape::Text, page: Page::of_stderr(), ..view };
            // If this fails too, there is no other place for the report.
            let _ = view.show(report).and_then(|text| Destination::Stderr.write(&text));
        }
    }

    fn report(&self, mut measured: Measured<'_>) -> Report {
        let followed = std::mem::take(&mut measured.followed);
        // The tally sums the counts by place and finds names; everything below arranges what it
        // found.
        let (mut symbols, calls) = (followed.symbols, followed.calls);
        let attached = Attached::new(running::running(&self.run.running), &measured.outcome);
        if let Some(attached) = attached {
            running::reach_files(attached.pid, &mut measured.outcome.profile.modules);
        }
        let outcome = &measured.outcome;
        symbols.name_generated(&outcome.profile.modules);
        symbols.keep_lines_in(if self.run.no_translation_cache { None } else { translations() });
        let (profile, how) = (&outcome.profile, (self.run.rep, self.grain()));
        let tally = match &measured.simulated {
            Some(simulated) => simulated.tally(profile, how, &mut symbols),
            None => tally(profile, None, how, &mut symbols),
        };
        let mut report = empty(&measured, self.run.rep);
        let words = std::iter::once(&self.command.program).chain(&self.command.arguments);
        report.command = words.map(|word| word.to_string_lossy().into_owned()).collect();
        report.attached = attached;
        if attached.is_some() {
            // The program's status is its own; the measurement succeeded.
            (report.exit_status, report.signal) = (0, None);
        }
        (report.sort, report.order) = (self.sort, self.order);
        report.fill(&tally, &symbols, &self.by, View::rows(self.run.format, self.run.top));
        if self.run.format == Shape::Json && self.by.contains(&By::Line) {
            report.add_source_text();
        }
        if let Some(images) = &measured.images {
            report.processes = Some(processes(&outcome.processes, images, tally.none));
        }
        if self.by_thread() {
            report.set_rows(thread::rows(outcome, &measured.threads, tally.none, self.run.rep));
        }
        if let Some(calls) = calls.as_ref().filter(|_| self.by == [By::Call]) {
            report.set_rows(call_rows::rows(calls, &symbols));
        }
        if let Some(simulated) = &measured.simulated {
            simulated.describe(&mut report);
        }
        report.objects = measured.objects.take();
        report.region.clone_from(&self.run.region);
        // The wall time covers the whole run, so it gives no rate for a region.
        report.instructions_per_s = match self.run.region {
            None => per_second(tally.totals.instructions, report.wall_s),
            Some(_) => None,
        };
        if self.run.region.is_some() {
            let reason = "the time of a region is not measured";
            report.null_reasons.insert("instructions_per_s".into(), reason.into());
        }
        report.warnings.clone_from(&outcome.warnings);
        report.warnings.extend(followed.warnings);
        report.warnings.extend(nameless::stripped(&tally, &symbols));
        report.warnings.extend(nameless::generated(&tally, &symbols, &outcome.profile.modules));
        // Annotated formats also show lines, calls, and the parts of single processes.
        if self.is_annotated() {
            let mut detail = Detail::new(&tally, &symbols);
            if let Some(calls) = &calls {
                detail.follow(calls, &outcome.profile, &mut symbols);
            }
            if let Some(images) = &measured.images {
                self.split(&mut detail, &report, (outcome, images), (&tally, &symbols));
                let unfollowed =
                    "calls and time are followed in the program alone: with --follow-children there are none";
                report.warnings.extend(self.run.format.shows_calls().then(|| unfollowed.to_owned()));
            }
            detail.touched = followed.touched;
            report.detail = Some(detail);
        }
        // Instructions without a known line share one row; the warning says how many they are.
        if self.by.contains(&By::Line) || self.is_annotated() {
            report.warnings.extend(nameless::lines(&tally));
        }
        symbols.keep_lines();
        // This may run the program once more, so it comes last.
        self.compare(&mut report);
        report
    }

    /// The grain at which the tally must keep counts.
    fn grain(&self) -> Grain {
        match (group::grain(&self.by), self.is_annotated()) {
            (Grain::Opcodes | Grain::LinesAndOpcodes, true) => Grain::LinesAndOpcodes,
            (_, true) => Grain::Lines,
            (grain, false) => grain,
        }
    }

    /// Adds the counts of processes to the data for annotated outputs: of those that the format
    /// shows, at the grain that it shows.
    fn split(
        &self,
        detail: &mut Detail,
        report: &Report,
        (outcome, images): (&Outcome, &Images<'_>),
        (tally, symbols): (&Tally, &Symbolizer),
    ) {
        detail.processes = report.processes.iter().flatten().map(Part::of).collect();
        let (shown, lines) = match self.run.format {
            Shape::Html => (html::processes_shown(report, &detail.processes), PartLines::Kept),
            _ => ((0..detail.processes.len()).collect(), PartLines::LeftOut),
        };
        for process in shown {
            for image in &outcome.processes[process].images {
                let Some(part) = images.part(*image) else { continue };
                let misses = images.misses(part);
                let cells = part.cells(&outcome.profile, misses.as_ref(), self.run.rep, tally);
                detail.add_to_process(process, lines, &cells, (tally, symbols));
            }
        }
    }

    fn compare(&self, report: &mut Report) {
        let native = match (self.run.compare_native, report.partial) {
            _ if report.attached.is_some() => Err("not measured: the program ran already".to_owned()),
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

/// The folder in which translations are kept for later runs, and lines and symbols within it.
pub(super) fn translations() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(own) = named("LIGHTFOOT_TRANSLATIONS") {
        return (own != "off").then(|| own.into());
    }
    Some(cache_folder()?.join("translations"))
}

/// A report without counts.
fn empty(measured: &Measured<'_>, rep: Rep) -> Report {
    let outcome = &measured.outcome;
    // The fields are named one by one, so that a new field has a value here or does not compile.
    Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        kind: measured.kind,
        command: Vec::new(),
        exit_status: if outcome.interrupted { exit::INTERRUPTED } else { outcome.exit.status() },
        signal: exit_signal(outcome.exit),
        partial: outcome.interrupted,
        rep,
        region: None,
        attached: None,
        machine: measured.machine.clone(),
        wall_s: outcome.wall.as_secs_f64(),
        instructions_per_s: None,
        native_wall_s: None,
        slowdown: None,
        engine: Engine::of(&outcome.stats),
        totals: Default::default(),
        cycles: None,
        write_backs: None,
        prefetched: None,
        traffic: None,
        conditional_branches: None,
        curve: None,
        null_reasons: BTreeMap::new(),
        warnings: Vec::new(),
        functions: Vec::new(),
        libraries: Vec::new(),
        opcodes: Vec::new(),
        by: None,
        rows: None,
        objects: None,
        sort: None,
        unnamed: 0,
        order: Order::Own,
        detail: None,
        processes: None,
        layouts: None,
    }
}

/// The counts of each process, over all programs that it executed.
fn processes(processes: &[Process], images: &Images<'_>, none: Counts) -> Vec<ProcessRow> {
    let row = |(index, process): (usize, &Process)| {
        let mut counts = none;
        process.images.iter().filter_map(|&image| images.sums(image)).for_each(|image| counts.add(image));
        ProcessRow {
            pid: process.pid,
            parent: process.parent.map(|parent| processes[parent].pid),
            place: index + 1,
            parent_place: process.parent.map(|parent| parent + 1),
            command: process.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            exit_status: process.exit.map(instrument::Exit::status),
            signal: process.exit.and_then(exit_signal),
            counts,
        }
    };
    processes.iter().enumerate().map(row).collect()
}

fn per_second(instructions: u64, wall_s: f64) -> Option<u64> {
    (wall_s > 0.0).then_some((instructions as f64 / wall_s) as u64)
}
