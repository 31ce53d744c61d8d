//! The log of a run, in the form that readers of Valgrind's log expect.

use super::names::expanded;
use super::settings::{Settings, Tool};
use crate::run::tally::{Event, Events};
use anyhow::{Context, Result};
use present::number::grouped;
use std::fmt::Write;

/// What a log says about a process.
pub(super) struct Entry<'a> {
    pub(super) pid: i32,
    pub(super) parent: u32,
    pub(super) command: &'a str,
    pub(super) warnings: &'a [String],
    /// The events that were counted, and how often.
    pub(super) counted: Option<(&'a [Event], Events)>,
    /// What else was found.
    pub(super) more: Vec<String>,
    /// The number of the file, from 1.
    pub(super) number: usize,
}

/// Writes the log of a process to standard error or to its file.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(entry: &Entry<'_>, (tool, all): (Tool, &Settings)) -> Result<()> {
    let text = if all.quiet { String::new() } else { text(entry, tool, all) };
    let Some(name) = &all.log_file else {
        eprint!("{text}");
        return Ok(());
    };
    let name = expanded(name, entry.pid, entry.number).map_err(anyhow::Error::msg)?;
    std::fs::write(&name, text).with_context(|| format!("cannot write {name}"))
}

fn text(entry: &Entry<'_>, tool: Tool, all: &Settings) -> String {
    let mut lines = vec![
        match tool {
            Tool::Callgrind => "Callgrind, as lightfoot counts it".to_owned(),
            Tool::Cachegrind => "Cachegrind, as lightfoot counts it".to_owned(),
            Tool::Dhat => "DHAT, as lightfoot counts it".to_owned(),
            Tool::Massif => "Massif, as lightfoot counts it".to_owned(),
            Tool::Lackey => "Lackey, as lightfoot counts it".to_owned(),
            Tool::Nothing => "Nulgrind, as lightfoot runs it".to_owned(),
        },
        "Licence: MIT or Apache-2.0".to_owned(),
        format!("Using lightfoot-{} in the manner of Valgrind-{}", env!("CARGO_PKG_VERSION"), all.version),
        format!("Command: {}", entry.command),
    ];
    lines.extend(all.log_file.iter().map(|_| format!("Parent PID: {}", entry.parent)));
    lines.push(String::new());
    lines.extend(entry.warnings.iter().map(|warning| format!("warning: {warning}")));
    if let Some((events, counted)) = &entry.counted {
        if tool == Tool::Callgrind {
            let names: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
            let values: Vec<String> = events.iter().map(|&event| counted.get(event).to_string()).collect();
            lines.push(format!("Events    : {}", names.join(" ")));
            lines.push(format!("Collected : {}", values.join(" ")));
            lines.push(String::new());
        }
        lines.extend(table(events, counted));
    }
    lines.extend(entry.more.iter().cloned());
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "=={}== {line}", entry.pid);
        text
    })
}

/// References and misses by level and kind.
fn table(events: &[Event], counted: &Events) -> Vec<String> {
    let of = |event| counted.get(event);
    let instructions = of(Event::Ir);
    let mut lines = vec![format!("I refs:        {}", grouped(instructions))];
    if !events.contains(&Event::I1mr) {
        return lines;
    }
    let rate = |part: u64, whole: u64| format!("{:.2}%", 100.0 * part as f64 / whole.max(1) as f64);
    let both = |reads: u64, writes: u64| {
        format!("{}  ({} rd + {} wr)", grouped(reads + writes), grouped(reads), grouped(writes))
    };
    let (fetches, last_fetches) = (of(Event::I1mr), of(Event::ILmr));
    let (reads, writes) = (of(Event::Dr), of(Event::Dw));
    let (first, last) = ((of(Event::D1mr), of(Event::D1mw)), (of(Event::DLmr), of(Event::DLmw)));
    lines.extend([
        format!("I1  misses:    {}", grouped(fetches)),
        format!("LLi misses:    {}", grouped(last_fetches)),
        format!("I1  miss rate: {}", rate(fetches, instructions)),
        format!("LLi miss rate: {}", rate(last_fetches, instructions)),
        String::new(),
        format!("D refs:        {}", both(reads, writes)),
        format!("D1  misses:    {}", both(first.0, first.1)),
        format!("LLd misses:    {}", both(last.0, last.1)),
        format!("D1  miss rate: {}", rate(first.0 + first.1, reads + writes)),
        format!("LLd miss rate: {}", rate(last.0 + last.1, reads + writes)),
        String::new(),
        format!("LL refs:       {}", both(fetches + first.0, first.1)),
        format!("LL misses:     {}", both(last_fetches + last.0, last.1)),
        format!("LL miss rate:  {}", rate(last_fetches + last.0 + last.1, instructions + reads + writes)),
    ]);
    lines
}
