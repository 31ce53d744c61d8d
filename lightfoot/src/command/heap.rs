//! `lightfoot heap`: the blocks of a program by the place that allocated them.

use crate::cli::{Heap, HeapFormat, HeapSort};
use crate::report::heap::{HeapReport, Ran, SiteRow};
use crate::run::engine;
use anyhow::Result;
use heap::{Follows, HeapProfile, HeapTool};
use instrument::{Command, Options};
use present::exit;
use present::output::Destination;
use present::terminal::Page;
use symbol::Symbolizer;

/// Places that the text shows.
const ROWS: usize = 10;

pub(super) fn run(options: &Heap) -> Result<u8> {
    let destination = Destination::new(options.output.as_deref())?;
    let Some((program, arguments)) = options.program.split_first() else {
        anyhow::bail!("heap needs a program to run: lightfoot heap -- PROGRAM ARGUMENTS");
    };
    let command = Command { program: program.clone(), arguments: arguments.to_vec() };
    let mut tool = HeapTool::new(options.frames);
    let (outcome, _) = engine::run_tool(&command, &Options::default(), &mut tool)?;
    let words = std::iter::once(&command.program).chain(&command.arguments);
    let ran = Ran {
        command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
        pid: outcome.processes.first().map_or(0, |process| process.pid),
        exit_status: outcome.exit.status(),
        partial: outcome.interrupted,
    };
    let heap = tool.into_profile().unwrap_or_default();
    let mut report = report(ran, &outcome.warnings, &heap, &mut Symbolizer::new());
    report.sort_by(match options.sort {
        HeapSort::Total => |site: &SiteRow| site.bytes,
        HeapSort::Peak => |site: &SiteRow| site.peak_bytes,
        HeapSort::Blocks => |site: &SiteRow| site.blocks,
        HeapSort::Reads => |site: &SiteRow| site.read_bytes,
        HeapSort::Writes => |site: &SiteRow| site.written_bytes,
        HeapSort::Lifetime => SiteRow::life,
    });
    let rows =
        |otherwise: usize| options.top.map_or(otherwise, |top| if top == 0 { usize::MAX } else { top });
    let text = match options.format {
        HeapFormat::Text => {
            let page = if options.output.is_some() { Page::PLAIN } else { Page::of_stderr() };
            report.text(rows(ROWS), &page)
        }
        HeapFormat::Csv => report.csv(rows(usize::MAX)),
        HeapFormat::Json => {
            report.sites.truncate(rows(usize::MAX));
            report.json()
        }
        HeapFormat::Dhat => report.dhat(),
    };
    destination.write(text)?;
    Ok(if outcome.interrupted { exit::INTERRUPTED } else { outcome.exit.status() })
}

/// The report of a program that has run, and of its heap.
pub(super) fn report(
    ran: Ran,
    warnings: &[String],
    heap: &HeapProfile,
    symbols: &mut Symbolizer,
) -> HeapReport {
    let mut warnings = warnings.to_vec();
    warnings.extend(doubts(heap, ran.command.first().map_or("", String::as_str)));
    HeapReport::new(ran, heap, warnings, symbols)
}

/// What a user should know about the numbers.
fn doubts(heap: &HeapProfile, program: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    if !heap.has_allocator && heap.follows == Follows::Copies {
        doubts.push(format!(
            "neither {program} nor its libraries have a function named memcpy or memmove; the C library's debug \
             information (libc6-dbg) names those that it chooses by the processor: install it"
        ));
    } else if !heap.has_allocator {
        doubts.push(format!(
            "neither {program} nor its libraries have a function named malloc or operator new: link the C library \
             dynamically, or keep the symbols of a static allocator (build without strip)"
        ));
    }
    if heap.lost > 0 {
        doubts.push(format!(
            "{} allocations by posix_memalign are missing: their addresses were not seen; use aligned_alloc",
            heap.lost
        ));
    }
    doubts
}
