//! `lightfoot cache`: counts the misses of a program in a simulated memory hierarchy. It
//! corresponds to the second tool of ATOM.

use super::coherence;
use super::measure::{self, Followed, InRegion, Measured, Prepared};
use super::simulated::Simulated;
use super::thread::OfThread;
use crate::cli::{By, Cache, Shape};
use crate::report::curve::{Curve, Touched};
use crate::report::objects::Objects;
use crate::report::Kind;
use crate::run::block_order::branch::Predicted;
use crate::run::block_order::{Accumulator, BlockOrderAnalysis};
use crate::run::complex::complete;
use crate::run::distances::{Counted, Distances};
use crate::run::engine;
use crate::run::hierarchy::Hierarchy;
use crate::run::images::Images;
use crate::run::observe::{SimulatedRun, Simulator};
use crate::run::region_marker::RegionMarker;
use crate::run::sections::Recorded;
use crate::run::simulation::{Simulated as Run, Simulation};
use crate::run::tally::Part;
use anyhow::{Context, Result};
use event::{Counter, FetchFilter, Filter, PageFilter, RecordKind, SetFilter, Stream};
use instrument::mark::SharedMarker;
use instrument::{EndedImage, Outcome};
use objects::{Found, ObjectTool};
use serde_json::{json, Value};
use simulate::distance::CurveSizes;
use simulate::{plan_levels, Counts, Levels, StreamPlan, WriteBacks, PREDICTORS};

pub(super) fn run(options: &Cache) -> Result<u8> {
    if let (Some(quantum), None) = (options.run.shown.quantum, options.coherence) {
        anyhow::bail!(
            "--quantum {quantum} ends turns of --coherence and of lightfoot count --turns: leave it out"
        );
    }
    if options.coherence.is_some() {
        coherence::check(options)?;
    } else if options.cores.is_some() {
        anyhow::bail!(
            "--cores places the threads of --coherence on cores: add --coherence, or leave out --cores"
        );
    }
    let prepared = measure::prepare(Kind::Cache, &options.run)?;
    if options.branches && options.run.follow_children {
        anyhow::bail!("--branches follows the program alone: leave out --follow-children, or --branches");
    }
    if options.branches && prepared.by_thread() {
        anyhow::bail!("--branches does not tell threads apart: leave out --by thread, or --branches");
    }
    if options.curves && !matches!(options.run.format, Shape::Text | Shape::Json | Shape::Html) {
        anyhow::bail!("--curves has no place in this --format: use text, json or html");
    }
    // What the options exclude is refused above, before the machine is read; what the machine
    // cannot do is refused below, before the program runs.
    let hierarchy = Hierarchy::new(&options.hierarchy)?;
    if let Some(by) = options.coherence {
        return coherence::run(options, by, &prepared, &hierarchy);
    }
    if prepared.by_thread() && !hierarchy.levels.is_plain() {
        anyhow::bail!("--by thread needs LRU, independent levels, no prefetchers and pages of one size");
    }
    if prepared.by_data() {
        refuse_beside_data(options, &hierarchy)?;
    } else if options.objects.all_references() {
        anyhow::bail!("--accesses and --type are about data: add --by object, --by type or --by field");
    }
    if options.objects.type_name.is_some() && options.run.by != [By::Field] {
        anyhow::bail!("--type shows the fields of a type: add --by field");
    }
    prepared.finish_layouts(|| measured(options, &prepared, &hierarchy))
}

/// Refuses what this command's options ask for besides rows of data.
fn refuse_beside_data(options: &Cache, hierarchy: &Hierarchy) -> Result<()> {
    let asked = [
        (options.branches, "--branches"),
        (options.curves, "--curves"),
        (options.write_backs, "--write-backs"),
    ];
    for (is_given, option) in asked {
        if is_given {
            anyhow::bail!("{option} has no place beside rows of data: leave it or --by out");
        }
    }
    // The bytes used of a line are those before the first level has dropped it.
    if options.objects.all_references() && !Levels::data_only(hierarchy.levels.data).is_plain() {
        anyhow::bail!("--accesses and --type need an L1D with LRU and no prefetcher: leave them out");
    }
    Ok(())
}

fn measured<'h>(options: &Cache, prepared: &Prepared<'_>, hierarchy: &'h Hierarchy) -> Result<Measured<'h>> {
    let plan = Plan::new(options, hierarchy)?;
    let Ran { mut outcome, counts, images, threads, predicted, curve, records, followed, objects } =
        simulate(options, prepared, hierarchy, &plan)?;
    // Complex references that the simulation counted are not in the engine's profile yet.
    complete(&mut outcome.profile, &counts.complex);
    outcome.warnings.extend(hierarchy.warnings.iter().cloned());
    if counts.damaged > 0 {
        outcome
            .warnings
            .push(format!("{} records could not be read: misses are lower bounds", counts.damaged));
    }
    if let Some(hidden) = predicted.as_ref().map(|predicted| predicted.hidden).filter(|&hidden| hidden > 0) {
        let warning = format!("{hidden} branches were followed by a signal handler or an end: not predicted");
        outcome.warnings.push(warning);
    }
    let of_thread = |(number, counts): &(u32, Counts)| {
        let misses = hierarchy.attribution(counts, None).total();
        OfThread::new(*number, &counts.complex, Some(misses))
    };
    let threads = threads.iter().map(of_thread).collect();
    let mut machine = serde_json::to_value(&hierarchy.machine)?;
    machine["simulation"] = simulation(options, &plan, &records);
    let simulated = Some(Simulated { hierarchy, counts, predicted, curve });
    let kind = Kind::Cache;
    Ok(Measured { kind, outcome, simulated, images, threads, machine, followed, objects })
}

/// A stream with every reference of data, for machines whose first level of code generated code
/// keeps as it keeps it in the stream `plain`; no block is recorded then.
fn all_references(plain: &Stream) -> StreamPlan {
    const WHY: &str = "accesses and bytes used of fetched lines need every reference";
    match plain {
        Stream::Filtered(filter) if filter.fetches != FetchFilter::LastOfSet => {
            let pages = PageFilter::LastOfSet;
            let filter = Filter { data: SetFilter::NOTHING, data_page: None, pages, ..*filter };
            StreamPlan { stream: Stream::Filtered(filter), why: format!("all references of data: {WHY}") }
        }
        _ => StreamPlan { stream: Stream::Full, why: format!("full stream: {WHY}") },
    }
}

/// The streams and sizes of a simulation.
struct Plan {
    stream: StreamPlan,
    sizes: Option<CurveSizes>,
}

impl Plan {
    fn new(options: &Cache, hierarchy: &Hierarchy) -> Result<Plan> {
        let stream = plan_levels(&hierarchy.levels, write_backs(options));
        if options.objects.all_references() {
            return Ok(Plan { stream: all_references(&stream.stream), sizes: None });
        }
        let is_of_data = options.run.by.iter().any(|by| by.is_data());
        if !options.curves && (options.run.format != Shape::Html || is_of_data) {
            return Ok(Plan { stream, sizes: None });
        }
        let (sizes, served) = CurveSizes::beside(&hierarchy.levels, &stream.stream)?;
        let stream = match served == stream.stream {
            true => stream,
            false => {
                let why =
                    "full stream: stores do not enter the filter, and the caches of a curve allocate them";
                StreamPlan { stream: served, why: why.into() }
            }
        };
        Ok(Plan { stream, sizes: Some(sizes) })
    }

    /// Creates the simulation with empty caches.
    fn simulation(&self, hierarchy: &Hierarchy, options: &Cache) -> Result<Simulation> {
        let simulation = Simulation::new(&hierarchy.levels, write_backs(options))?;
        let simulation = simulation.from_stream(self.stream.stream);
        let counted = if options.run.region.is_some() { Counted::Odd } else { Counted::All };
        Ok(match &self.sizes {
            Some(sizes) => simulation.with_distances(
                Distances::start(sizes.clone(), counted).context("cannot start a thread for --curves")?,
            ),
            None => simulation,
        })
    }
}

/// The kinds of records that a simulation reads, by their names in the report.
const RECORD_KINDS: &[(&str, RecordKind)] = &[
    ("loads", RecordKind::Load),
    ("stores", RecordKind::Store),
    ("modifies", RecordKind::Modify),
    ("prefetches", RecordKind::Prefetch),
    ("fetches", RecordKind::Fetch),
    ("blocks", RecordKind::Block),
    ("complex", RecordKind::Complex),
    ("payloads", RecordKind::Payload),
    ("fetch_pages", RecordKind::FetchPage),
    ("data_pages", RecordKind::DataPage),
];

/// How the machine was simulated: options beyond its description, and the stream that they needed.
fn simulation(options: &Cache, plan: &Plan, records: &Counter) -> Value {
    let by_kind = RECORD_KINDS.iter().map(|(name, kind)| ((*name).to_owned(), records.count(*kind).into()));
    json!({
        "stream": plan.stream.why,
        "records": Value::Object(by_kind.collect()),
        "huge_pages": options.hierarchy.huge_pages,
        "pages": options.hierarchy.pages,
        "predictor": options.branches.then_some(&options.predictor),
    })
}

fn write_backs(options: &Cache) -> WriteBacks {
    if options.write_backs {
        WriteBacks::Counted
    } else {
        WriteBacks::Ignored
    }
}

/// The results of a run.
struct Ran<'a> {
    outcome: Outcome,
    counts: Counts,
    images: Option<Images<'a>>,
    threads: Vec<(u32, Counts)>,
    predicted: Option<Predicted>,
    curve: Option<Curve>,
    /// What the simulation read.
    records: Counter,
    followed: Followed,
    objects: Option<Objects>,
}

impl Ran<'_> {
    /// A run without results beyond its counts.
    fn plain(outcome: Outcome, counts: Counts, records: Counter) -> Ran<'static> {
        Ran {
            outcome,
            counts,
            records,
            images: None,
            threads: Vec::new(),
            predicted: None,
            curve: None,
            followed: Followed::default(),
            objects: None,
        }
    }
}

/// Runs the program, and counts its misses by object.
fn by_data<'a>(
    options: &Cache,
    prepared: &Prepared<'_>,
    hierarchy: &'a Hierarchy,
    plan: &Plan,
) -> Result<Ran<'a>> {
    let stream = plan.stream.stream;
    let (mut images, mut parts) = (prepared.images(Some(hierarchy)), Vec::new());
    let in_region = options.run.region.is_some();
    let on_image = |image: &EndedImage<'_>, counts: &Counts| match in_region {
        true => parts.extend(Part::of_region(image, counts).map(|part| (image.number, part))),
        false => images.iter_mut().for_each(|images| images.note(image, Some(counts))),
    };
    let mut tool = ObjectTool::new(&hierarchy.levels, stream, options.objects.frames).with_images(on_image);
    if let Some(pid) = options.run.running.pid {
        tool = tool.of_running(pid);
    }
    let by_object = options.run.by == [By::Object];
    if !by_object {
        tool = tool.with_types();
    }
    if options.objects.all_references() {
        tool = tool.with_accesses();
    }
    let marker = options.run.region.as_deref().map(RegionMarker::new);
    if marker.is_some() {
        tool = tool.within_region();
    }
    let (engine, shared) = (prepared.options(stream), marker.clone().map(|marker| marker as SharedMarker));
    let mut outcome = engine::run_objects(&prepared.command, &engine, &mut tool, shared)?;
    let Found { mut counts, records, objects: named } = tool.into_found();
    let followed = marker.map(|marker| {
        if let Some(images) = &mut images {
            parts.iter().for_each(|(image, part)| images.add(*image, part, &outcome.profile));
        }
        let all: Vec<&Part> = parts.iter().map(|(_, part)| part).collect();
        counts = Counts { damaged: counts.damaged, ..Part::sum(&all).narrow(&mut outcome.profile) };
        Followed::of_regions(marker.borrow().regions())
    });
    // A program that ran before may allocate nothing meanwhile.
    if !named.has_allocator && options.run.running.pid.is_none() {
        outcome.warnings.push(
            "no function named malloc or operator new was found: heap blocks are no objects; link the C library \
             dynamically, or keep the symbols of a static allocator"
                .into(),
        );
    }
    let objects = Objects::new(&named, hierarchy);
    let objects = if by_object { objects } else { objects.with_types(&named, hierarchy) };
    let objects = Some(match &options.objects.type_name {
        Some(name) => objects.of_type(name)?,
        None => objects,
    });
    let followed = followed.unwrap_or_default();
    Ok(Ran { objects, images, followed, ..Ran::plain(outcome, counts, records) })
}

fn simulate<'a>(
    options: &Cache,
    prepared: &Prepared<'_>,
    hierarchy: &'a Hierarchy,
    plan: &Plan,
) -> Result<Ran<'a>> {
    if prepared.by_data() {
        return by_data(options, prepared, hierarchy, plan);
    }
    let stream = plan.stream.stream;
    let simulation = plan.simulation(hierarchy, options)?;
    let curve = |found| Some(Curve::new(hierarchy, plan.sizes.as_ref()?, &found?));
    let curve_of_region = options.run.region.is_some() && plan.sizes.is_some();
    if options.branches || prepared.needs_course() || curve_of_region {
        // The curve uses the same stream, which may record more than the hierarchy needs.
        let spare = Simulation::new(&hierarchy.levels, write_backs(options))?.from_stream(stream);
        let mut course = BlockOrderAnalysis::new(Accumulator::Simulated(Box::new(simulation)), stream);
        if options.branches {
            let named = PREDICTORS.iter().find(|predictor| predictor.name == options.predictor);
            let predictor = named.context("the command line names a predictor")?.new;
            course = course.with_branches(predictor);
        }
        if options.run.format == Shape::Html {
            course = course.with_working_set(hierarchy.levels.data.line_bytes);
        }
        let course = prepared.course(course, || Accumulator::Simulated(Box::new(spare)));
        let (outcome, mut found) = prepared.run_course(course)?;
        let (counts, predicted) = (std::mem::take(&mut found.counts), found.predicted.take());
        let curve = curve(found.curve.take());
        let records = std::mem::take(&mut found.records);
        let touched = found.touched.take().map(|touched| Touched::new(&touched, hierarchy, &stream));
        let attribution = |counts: &simulate::Counts| Some(hierarchy.attribution(counts, None));
        let followed = Followed::new(found, attribution, prepared.run.rep);
        let followed = followed.with_touched(touched);
        return Ok(Ran { predicted, curve, followed, ..Ran::plain(outcome, counts, records) });
    }
    // A region is counted at the speed of the whole, unless a curve is wanted of it.
    if let Some(name) = &options.run.region {
        let recorded = Recorded::Simulated(Box::new(simulation));
        let InRegion { outcome, counts, images, records, followed } =
            prepared.run_region(name, (stream, recorded), Some(hierarchy))?;
        return Ok(Ran { images, followed, ..Ran::plain(outcome, counts, records) });
    }
    // Without branches, calls or a region, the simulation takes the stream directly. This is
    // faster, and it tells images and threads apart, which block-order analysis does not.
    let options = prepared.options(stream);
    let simulation = simulation.with_threads(options.threads);
    let mut simulator = Simulator::new(simulation, prepared.images(Some(hierarchy)));
    let outcome = engine::run(&prepared.command, &options, &mut simulator);
    let SimulatedRun { counts, simulated: Run { threads, curve: found, .. }, images } = simulator.finish();
    let mut outcome = outcome?;
    let records = std::mem::take(&mut outcome.records);
    Ok(Ran { images, threads, curve: curve(found), ..Ran::plain(outcome, counts, records) })
}
