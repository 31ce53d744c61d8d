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
    /// Whether the beginning has been written to standard error.
    pub(super) is_begun: bool,
    /// The lines that the program has printed by requests, if they are yet to be written.
    pub(super) printed: &'a [String],
    /// Lines about the last part, if the log tells of parts.
    pub(super) dumped: Vec<String>,
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
    let mut text = String::new();
    if !all.quiet && !entry.is_begun {
        text += &marked(entry.pid, &head(entry.command, (tool, all), Some(entry.parent)));
    }
    entry.printed.iter().for_each(|line| _ = writeln!(text, "{line}"));
    if !all.quiet {
        // The head ends with an empty line, and so does what the program has written since.
        let since = entry.is_begun || !entry.printed.is_empty();
        let empty: &[String] = if since { &[String::new()] } else { &[] };
        text += &marked(entry.pid, empty);
        entry.dumped.iter().for_each(|line| _ = writeln!(text, "{line}"));
        text += &marked(entry.pid, &found(entry, (tool, all)));
    }
    let Some(name) = &all.log_file else {
        eprint!("{text}");
        return Ok(());
    };
    let name = expanded(name, entry.pid, entry.number).map_err(anyhow::Error::msg)?;
    std::fs::write(&name, text).with_context(|| format!("cannot write {name}"))
}

/// Lines of the log, each behind the number of the process.
pub(super) fn marked(pid: i32, lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "=={pid}== {line}");
        text
    })
}

/// The beginning of the log. `parent` is the number of the process's parent; files name it.
pub(super) fn head(command: &str, (tool, all): (Tool, &Settings), parent: Option<u32>) -> Vec<String> {
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
        format!("Command: {command}"),
    ];
    let parent = parent.filter(|_| all.log_file.is_some());
    lines.extend(parent.map(|parent| format!("Parent PID: {parent}")));
    lines.push(String::new());
    lines
}

/// What was found.
fn found(entry: &Entry<'_>, (tool, all): (Tool, &Settings)) -> Vec<String> {
    let mut lines: Vec<String> = entry.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    if let Some((events, counted)) = &entry.counted {
        if tool == Tool::Callgrind {
            let names: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
            let values: Vec<String> = events.iter().map(|&event| counted.get(event).to_string()).collect();
            lines.push(format!("Events    : {}", names.join(" ")));
            lines.push(format!("Collected : {}", values.join(" ")));
            lines.push(String::new());
        }
        // Cachegrind has written two spaces less since 3.22.
        let narrow = tool == Tool::Cachegrind && !all.is_before(3, 22);
        let form = Form { names: if narrow { ["I ", "D "] } else { ["I   ", "D   "] }, tool };
        lines.extend(table(events, counted, &form));
    }
    lines.extend(entry.more.iter().cloned());
    lines
}

/// What differs between the tables of tools and versions.
struct Form {
    /// What stands before `refs:`.
    names: [&'static str; 2],
    tool: Tool,
}

/// A line of the table: what stands before the number, in a column of its own.
fn named(name: &str) -> String {
    format!("{name:<14} ")
}

/// References and misses by level and kind, in columns that are as wide as their first numbers.
fn table(events: &[Event], counted: &Events, form: &Form) -> Vec<String> {
    let of = |event| counted.get(event);
    let instructions = of(Event::Ir);
    let [instruction_name, data_name] = form.names.map(|name| named(&format!("{name}refs:")));
    let mut lines = vec![format!("{instruction_name}{}", grouped(instructions))];
    if !events.contains(&Event::I1mr) {
        return lines;
    }
    let (reads, writes) = (of(Event::Dr), of(Event::Dw));
    let [wide, read_wide, write_wide] = [instructions, reads, writes].map(|value| grouped(value).len());
    // Cachegrind sets its rates, which have no units, below its numbers.
    let gap = if form.tool == Tool::Cachegrind { "  " } else { "" };
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let one = |name: &str, value: u64| format!("{}{:>wide$}", named(name), grouped(value));
    let rate = |name: &str, value: u64| format!("{}{:>wide$.2}%", named(name), percent(value, instructions));
    let both = |read: u64, written: u64| {
        let (all, read, written) = (grouped(read + written), grouped(read), grouped(written));
        format!("{all:>wide$}  ({read:>read_wide$} rd {gap}+ {written:>write_wide$} wr)")
    };
    let rates = |name: &str, [part, read, written]: [f64; 3]| {
        let name = named(name);
        format!("{name}{part:>wide$.1}% ({read:>read_wide$.1}%   {gap}+ {written:>write_wide$.1}%  )")
    };
    let (fetches, last_fetches) = (of(Event::I1mr), of(Event::ILmr));
    let (first, last) = ((of(Event::D1mr), of(Event::D1mw)), (of(Event::DLmr), of(Event::DLmw)));
    let of_data = |(read, written): (u64, u64)| {
        [percent(read + written, reads + writes), percent(read, reads), percent(written, writes)]
    };
    let of_last = [
        percent(last_fetches + last.0 + last.1, instructions + reads + writes),
        percent(last_fetches + last.0, instructions + reads),
        percent(last.1, writes),
    ];
    lines.extend([
        one("I1  misses:", fetches),
        one("LLi misses:", last_fetches),
        rate("I1  miss rate:", fetches),
        rate("LLi miss rate:", last_fetches),
        String::new(),
        format!("{data_name}{}", both(reads, writes)),
        named("D1  misses:") + &both(first.0, first.1),
        named("LLd misses:") + &both(last.0, last.1),
        rates("D1  miss rate:", of_data(first)),
        rates("LLd miss rate:", of_data(last)),
        String::new(),
        named("LL refs:") + &both(fetches + first.0, first.1),
        named("LL misses:") + &both(last_fetches + last.0, last.1),
        rates("LL miss rate:", of_last),
    ]);
    lines
}
