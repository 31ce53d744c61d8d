//! DHAT and Massif: the heap of a program in their files, and DHAT's sums in the log.
//!
//! DHAT may also follow copies (`--mode=copy`), or note events that the program tells of
//! (`--mode=ad-hoc`). **Leaves out** programs that the program starts; stacks and pages of Massif.

use super::names::expanded;
use super::requests::Requests;
use super::settings::{Settings, Tool};
use super::{end_as, files, log, one_line, said};
use crate::command::heap;
use crate::report::heap::HeapReport;
use crate::run::engine;
use ::heap::{Follows, HeapTool};
use anyhow::Result;
use instrument::{Command, Options};
use present::number::grouped;

/// Runs a program under DHAT or Massif, and returns the exit status.
///
/// # Errors
/// When the program cannot be run, or a file cannot be written.
pub(super) fn run(tool: Tool, all: &Settings, command: &Command) -> Result<u8> {
    let options = Options { machine: all.machine, ..Options::default() };
    let massif = &all.massif;
    let mut follower = match tool {
        // Functions that allocate for others take frames, too.
        Tool::Massif => HeapTool::new(massif.depth + massif.allocating.len()).with_snapshots(all.snapshots),
        // The allocating function is a frame of Valgrind's, and none of ours.
        _ => HeapTool::new(all.callers.saturating_sub(1).max(1)).following(all.follows),
    };
    let requests = Requests::new(tool, all);
    if requests.borrow().writes_at_once && !all.quiet {
        requests.borrow_mut().head = Some(log::head(&said(command), (tool, all), None));
    }
    let (outcome, _) = engine::run_marked_tool(command, &options, &mut follower, requests.clone())?;
    let mut requests = requests.borrow_mut();
    requests.end_lines();
    let mut profile = follower.into_profile().unwrap_or_default();
    if tool == Tool::Dhat && all.follows == Follows::Nothing {
        profile = std::mem::take(&mut requests.events).finish(profile.instructions);
    }
    let mut report = heap::report(command, &outcome, &profile);
    if all.trace_children {
        let why = "programs that it starts run without being followed: run them under this tool themselves";
        report.warnings.push(why.to_owned());
    }
    let (named, otherwise, text, more) = match tool {
        Tool::Massif => (&all.massif_file, "massif.out.%p", report.massif(massif), Vec::new()),
        _ => (&all.dhat_file, "dhat.out.%p", report.dhat(), totals(&report)),
    };
    let named = named.as_deref().unwrap_or(otherwise);
    let name = expanded(named, report.ran.pid, 1).map_err(anyhow::Error::msg)?;
    files::put(&name, &text)?;
    let entry = log::Entry {
        is_begun: requests.head.is_none() && requests.writes_at_once,
        printed: requests.printed.get(&report.ran.pid).map_or(&[][..], |printed| match all.log_file {
            Some(_) => &printed.lines,
            None => &[],
        }),
        dumped: Vec::new(),
        pid: report.ran.pid,
        parent: std::process::id(),
        command: &one_line(&report.ran.command.join(" ")),
        warnings: &report.warnings,
        counted: None,
        more,
        number: 1,
    };
    log::write(&entry, (tool, all))?;
    Ok(end_as(outcome.exit))
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
