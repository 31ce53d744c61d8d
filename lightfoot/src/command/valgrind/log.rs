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
        to_standard_error(&text);
        return Ok(());
    };
    let name = expanded(name, entry.pid, entry.number).map_err(anyhow::Error::msg)?;
    std::fs::write(&name, text).with_context(|| format!("cannot write {name}"))
}

/// Writes text of the log. Where it cannot be written nobody reads it; `eprint!` would panic, and
/// the program's own exit status would be lost.
pub(super) fn to_standard_error(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
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
    let [instruction_name, data_name] = form.names.map(|name| format!("{name}refs:"));
    let mut lines = vec![named(&instruction_name) + &grouped(instructions)];
    if !events.contains(&Event::I1mr) {
        return lines;
    }
    let (reads, writes) = (of(Event::Dr), of(Event::Dw));
    let [wide, read_wide, write_wide] = [instructions, reads, writes].map(|value| grouped(value).len());
    // Cachegrind sets its rates, which have no units, below its numbers.
    let gap = if form.tool == Tool::Cachegrind { "  " } else { "" };
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let row = |name: &str, [all, read, written]: [String; 3], [unit, first, second]: [&str; 3]| {
        let name = named(name);
        format!("{name}{all:>wide$}{unit} ({read:>read_wide$}{first}{gap}+ {written:>write_wide$}{second})")
    };
    let both = |name: &str, (read, written): (u64, u64)| {
        row(name, [read + written, read, written].map(grouped), [" ", " rd ", " wr"])
    };
    let rates =
        |name: &str, parts: [f64; 3]| row(name, parts.map(|part| format!("{part:.1}")), ["%", "%   ", "%  "]);
    let one = |name: &str, value: String| format!("{}{value:>wide$}", named(name));
    let rate = |value: u64| format!("{:.2}", percent(value, instructions));
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
        one("I1  misses:", grouped(fetches)),
        one("LLi misses:", grouped(last_fetches)),
        one("I1  miss rate:", rate(fetches)) + "%",
        one("LLi miss rate:", rate(last_fetches)) + "%",
        String::new(),
        both(&data_name, (reads, writes)),
        both("D1  misses:", first),
        both("LLd misses:", last),
        rates("D1  miss rate:", of_data(first)),
        rates("LLd miss rate:", of_data(last)),
        String::new(),
        both("LL refs:", (fetches + first.0, first.1)),
        both("LL misses:", (last_fetches + last.0, last.1)),
        rates("LL miss rate:", of_last),
    ]);
    lines
}
