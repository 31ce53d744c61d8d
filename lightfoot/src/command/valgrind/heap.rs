//! DHAT and Massif: the heaps of processes in their files, and DHAT's sums in the log.
//!
//! DHAT may also follow copies (`--mode=copy`), or note events that the program tells of
//! (`--mode=ad-hoc`). **Leaves out** stacks and pages of Massif.

use super::names::expanded;
use super::requests::Requests;
use super::settings::{Settings, Tool};
use super::{end_as, files, log, logged, parent_of, said, traced, words_of};
use crate::command::heap;
use crate::report::heap::{HeapReport, Ran};
use crate::run::engine;
use ::heap::{Follows, HeapProfile, ImageHeaps};
use anyhow::Result;
use instrument::{Children, Command, Options, Outcome};
use present::number::grouped;

/// Runs a program under DHAT or Massif, and returns the exit status.
///
/// # Errors
/// When the program cannot be run, or a file cannot be written.
pub(super) fn run(tool: Tool, all: &Settings, command: &Command) -> Result<u8> {
    let children = if all.trace_children { Children::Followed } else { Children::Released };
    let options = Options { machine: all.machine, children, ..Options::default() };
    let massif = &all.massif;
    let mut heaps = match tool {
        // Functions that allocate for others take frames, too.
        Tool::Massif => {
            let frames = massif.depth + massif.allocating.len();
            ImageHeaps::new(frames, Follows::Blocks, Some(all.snapshots))
        }
        // The allocating function is a frame of Valgrind's, and none of ours.
        _ => ImageHeaps::new(all.callers.saturating_sub(1).max(1), all.follows, None),
    };
    let requests = Requests::new(tool, all);
    if requests.borrow().writes_at_once && !all.quiet {
        requests.borrow_mut().head = Some(log::head(&said(command), (tool, all), None));
    }
    let outcome = engine::run_heaps(command, &options, &mut heaps, requests.clone())?;
    let mut requests = requests.borrow_mut();
    requests.end_lines();
    for (number, index, image) in traced(&outcome.processes, all) {
        let mut profile = heaps.profile(image);
        if tool == Tool::Dhat && all.follows == Follows::Nothing {
            profile = requests.events.remove(&image).unwrap_or_default().finish(profile.instructions);
        }
        write((tool, all), (index, image, number), (command, &outcome, &profile), &mut requests)?;
    }
    Ok(end_as(outcome.exit))
}

/// Writes the file and the log of a process, by its index, its image, and the number of its files.
fn write(
    (tool, all): (Tool, &Settings),
    (index, image, number): (usize, u32, usize),
    (command, outcome, profile): (&Command, &Outcome, &HeapProfile),
    requests: &mut Requests,
) -> Result<()> {
    let process = &outcome.processes[index];
    let ran = Ran {
        command: words_of(index, process, command),
        pid: process.pid,
        exit_status: process.exit.unwrap_or(outcome.exit).status(),
        partial: outcome.interrupted,
    };
    let warnings = if index == 0 { &outcome.warnings[..] } else { &[] };
    let report = heap::report(ran, warnings, profile, &mut requests.symbols);
    let (named, otherwise, text, more) = match tool {
        Tool::Massif => (&all.massif_file, "massif.out.%p", report.massif(&all.massif), Vec::new()),
        _ => (&all.dhat_file, "dhat.out.%p", report.dhat(), totals(&report)),
    };
    let named = named.as_deref().unwrap_or(otherwise);
    files::put(&expanded(named, process.pid, number).map_err(anyhow::Error::msg)?, &text)?;
    let printed = match requests.printed.get(&process.pid) {
        Some(printed) if !requests.writes_at_once => printed.with_dumps(image, |_| Vec::new()),
        _ => Vec::new(),
    };
    let entry = log::Entry {
        is_begun: index == 0 && requests.head.is_none() && requests.writes_at_once,
        printed: &printed,
        dumped: Vec::new(),
        pid: process.pid,
        parent: parent_of(process, &outcome.processes),
        command: &logged(&report.ran.command),
        warnings: &report.warnings,
        counted: None,
        more,
        number,
    };
    log::write(&entry, (tool, all))
}

/// The lines of the log that readers of Valgrind's look for.
fn totals(report: &HeapReport) -> Vec<String> {
    let all = &report.total;
    let amount = |bytes, blocks| format!("{} bytes in {} blocks", grouped(bytes), grouped(blocks));
    let total = format!("Total:     {}", amount(all.bytes, all.blocks));
    match report.follows {
        Follows::Blocks => {}
        Follows::Copies => return vec![total],
        Follows::Nothing => {
            let (units, events) = (grouped(all.bytes), grouped(all.blocks));
            return vec![format!("Total:     {units} units in {events} events")];
        }
    }
    vec![
        total,
        format!("At t-gmax: {}", amount(all.peak_bytes, all.peak_blocks)),
        format!("At t-end:  {}", amount(all.end_bytes, all.end_blocks)),
        format!("Reads:     {} bytes", grouped(all.read_bytes)),
        format!("Writes:    {} bytes", grouped(all.written_bytes)),
    ]
}
