//! `lightfoot cache --coherence`: caches of several cores that are kept coherent.

use super::measure::Prepared;
use crate::cli::{By, Cache, Shape, SharedBy};
use crate::report::coherence::{CoherenceReport, CoherentRun, Placed};
use crate::run::engine;
use crate::run::hierarchy::Hierarchy;
use anyhow::{bail, Result};
use coherence::{CoherenceTool, PrivateLevels};
use event::Stream;
use instrument::virtual_machine::ThreadOrder;
use present::exit;
use present::terminal::Page;
use simulate::{Geometry, Sharing, StoreMiss};
use std::num::NonZeroUsize;

/// Rows that the text shows.
const ROWS: usize = 10;
/// The longest line whose bytes fit the words of crate `coherence`.
const LINE_BYTES_MAX: u32 = 128;
/// Instructions of a turn, unless a number is given.
const QUANTUM: u32 = 10_000;

/// Refuses options that do not go together with `--coherence`.
pub(super) fn check(options: &Cache) -> Result<()> {
    let run = &options.run;
    let excluded = [
        ("--branches", options.branches),
        ("--write-backs", options.write_backs),
        ("--curves", options.curves),
        ("--huge-pages", !options.hierarchy.huge_pages.is_empty()),
        ("--pages", options.hierarchy.pages != "virtual"),
        ("--region", run.region.is_some()),
        ("--sort", run.sort.is_some()),
        ("--by", run.by != [By::Function]),
        ("--follow-children", run.follow_children),
        ("--compare-native", run.compare_native),
        ("--layouts", run.shown.layouts.is_some()),
        ("--turns", run.shown.turns),
        ("--pid", run.running.pid.is_some()),
    ];
    if let Some((option, _)) = excluded.iter().find(|excluded| excluded.1) {
        let why = match *option {
            "--by" => "its rows are chosen by --coherence=line, object or source",
            "--turns" => "it runs threads in turns of --quantum instructions",
            "--write-backs" => "it counts write-backs of private levels in any case",
            _ => "it does not count that",
        };
        bail!("--coherence does not go with {option}: {why}; leave out one of the two");
    }
    if !matches!(run.format, Shape::Text | Shape::Json | Shape::Csv) {
        bail!("--coherence has no --format {}: use text, json or csv", run.format.name());
    }
    Ok(())
}

/// The private levels of a machine, with their names and sizes.
fn private_levels(hierarchy: &Hierarchy) -> Result<(PrivateLevels, Vec<(String, u64)>)> {
    let levels = &hierarchy.levels;
    let first = levels.data;
    if !levels.is_plain() || first.store_miss == StoreMiss::Bypass {
        bail!(
            "--coherence needs LRU, independent levels, stores that allocate, no prefetchers and pages of one size, \
             and machine {} has others: choose another, or give levels with --l1d, --l2 and --l3",
            hierarchy.machine.name
        );
    }
    if first.line_bytes > LINE_BYTES_MAX {
        bail!("--coherence knows lines of up to {LINE_BYTES_MAX} bytes, and L1D has {}", first.line_bytes);
    }
    let private = levels.outer.iter().filter(|outer| outer.sharing == Sharing::PerThread);
    let private: Vec<Geometry> = private.map(|outer| outer.geometry).collect();
    let second = private.first().copied();
    if private.len() > 1 || second.is_some_and(|second| second.line_bytes != first.line_bytes) {
        bail!(
            "--coherence knows at most two private levels, with lines of one length, and machine {} has others",
            hierarchy.machine.name
        );
    }
    let size_bytes =
        |geometry: Geometry| geometry.sets * u64::from(geometry.ways) * u64::from(geometry.line_bytes);
    let mut named = vec![("L1D".to_owned(), size_bytes(first))];
    named.extend(second.map(|second| ("L2".to_owned(), size_bytes(second))));
    Ok((PrivateLevels { first, second }, named))
}

/// Runs the program, and writes the report.
pub(super) fn run(
    options: &Cache,
    by: SharedBy,
    prepared: &Prepared<'_>,
    hierarchy: &Hierarchy,
) -> Result<u8> {
    let (private, levels) = private_levels(hierarchy)?;
    let quantum = options.run.shown.quantum.unwrap_or(QUANTUM);
    let mut engine = prepared.options(Stream::References);
    engine.machine.threads = ThreadOrder::InTurnsOf(quantum);
    let cores = options.cores.and_then(|cores| NonZeroUsize::new(cores.into()));
    let mut tool = CoherenceTool::new(private, cores);
    let (outcome, _) = engine::run_tool(&prepared.command, &engine, &mut tool)?;
    let found = tool.into_profile().unwrap_or_default();
    let words = std::iter::once(&prepared.command.program).chain(&prepared.command.arguments);
    let ran = CoherentRun {
        command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_status: if outcome.interrupted { exit::INTERRUPTED } else { outcome.exit.status() },
        partial: outcome.interrupted,
        machine: hierarchy.machine.name.clone(),
        levels,
        quantum,
        placed: cores.map(|cores| Placed { cores: cores.get(), migrations: found.migrations }),
        instructions: outcome.profile.instructions_retired(),
        wall_s: outcome.wall.as_secs_f64(),
    };
    let status = ran.exit_status;
    let mut warnings = outcome.warnings.clone();
    warnings.extend(hierarchy.warnings.iter().cloned());
    if found.damaged > 0 {
        warnings.push(format!("{} records could not be read: misses are lower bounds", found.damaged));
    }
    let report = CoherenceReport::new(ran, &found, &outcome.profile, warnings);
    let top = options.run.top;
    let rows = |otherwise: usize| top.map_or(otherwise, |top| if top == 0 { usize::MAX } else { top });
    let text = match options.run.format {
        Shape::Json => report.json(rows(usize::MAX)),
        Shape::Csv => report.csv(by, rows(usize::MAX)),
        _ => {
            let page = if options.run.output.is_some() { Page::PLAIN } else { Page::of_stderr() };
            report.text(by, rows(ROWS), &page)
        }
    };
    prepared.write(text)?;
    Ok(status)
}
