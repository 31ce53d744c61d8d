//! Results for people: a line for each benchmark, or all of its events.

use super::compare::{change, Comparison};
use super::results::{Row, TITLES};
use present::number::{brief, grouped};
use present::terminal::{middle_cut, printable, WIDTH};

/// The width of names, beyond which a name has a line of its own.
const NAME_WIDTH: usize = 26;

/// A column: its heading, its event, its width, and how its counts are written.
type Column = (&'static str, &'static str, usize, fn(u64) -> String);

/// The columns of a line.
const COLUMNS: &[Column] = &[
    ("instructions", "instructions", 15, grouped),
    ("L1I", "l1i_misses", 7, brief),
    ("L1D", "l1d_misses", 7, brief),
    ("L2", "l2_misses", 7, brief),
    ("L3", "l3_misses", 7, brief),
    ("cycles", "estimated_cycles", 8, brief),
];
/// The columns of a line beside a baseline, which also show changes of the first and the last.
const COMPARED: &[Column] = &[
    ("instructions", "instructions", 15, grouped),
    ("L1D", "l1d_misses", 7, brief),
    ("L2", "l2_misses", 7, brief),
    ("cycles", "estimated_cycles", 8, brief),
];
/// Events whose changes have a column.
const CHANGES: &[&str] = &["instructions", "estimated_cycles"];
const CHANGE_WIDTH: usize = 10;

/// A line for each benchmark.
pub(super) fn lines(compared: &Comparison<'_>) -> String {
    let columns = if compared.baseline.is_some() { COMPARED } else { COLUMNS };
    let columns: Vec<&Column> = columns.iter().filter(|(_, event, ..)| is_counted(compared, event)).collect();
    let shows_change = |event: &str| compared.baseline.is_some() && CHANGES.contains(&event);
    let mut out = format!("{:<NAME_WIDTH$}", "");
    for (heading, event, width, _) in &columns {
        out += &format!("{heading:>width$}");
        out += &if shows_change(event) { format!("{:>CHANGE_WIDTH$}", "change") } else { String::new() };
    }
    out.push('\n');
    // The name of a program stands above its benchmarks.
    let mut program = None;
    for row in &compared.results.benchmarks {
        if program.replace((&row.package, &row.program)) != Some((&row.package, &row.program)) {
            out += &format!("{}\n", printable(&row.program));
        }
        out += &name(&row.name);
        for (_, event, width, write) in &columns {
            let Some((before, now)) = compared.pair(row, event) else {
                out += &format!("{:>width$}", "-");
                continue;
            };
            out += &format!("{:>width$}", write(now));
            if shows_change(event) {
                out += &format!("{:>CHANGE_WIDTH$}", change(before, now));
            }
        }
        out.push('\n');
    }
    out + &foot(compared)
}

/// A name in its column, or on a line of its own.
fn name(name: &str) -> String {
    let shown = middle_cut(&printable(name), WIDTH - 2);
    match shown.chars().count() + 2 < NAME_WIDTH {
        true => format!("  {shown:<0$}", NAME_WIDTH - 2),
        false => format!("  {shown}\n{:<NAME_WIDTH$}", ""),
    }
}

fn is_counted(compared: &Comparison<'_>, event: &str) -> bool {
    compared.results.benchmarks.iter().any(|row| row.events.contains_key(event))
}

/// All events of each benchmark.
pub(super) fn details(compared: &Comparison<'_>) -> String {
    let mut out = String::new();
    for row in &compared.results.benchmarks {
        out += &format!("{} {}{}\n", printable(&row.program), printable(&row.name), place(row));
        for (event, title) in TITLES {
            let Some((before, now)) = compared.pair(row, event) else { continue };
            out += &format!("  {title:<18}{:>18}", grouped(now));
            if compared.baseline.is_some() {
                let shown = before.map_or_else(String::new, grouped);
                out += &format!("{shown:>18}{:>CHANGE_WIDTH$}", change(before, now));
            }
            out.push('\n');
        }
    }
    out + &foot(compared)
}

/// Where a benchmark is written.
fn place(row: &Row) -> String {
    match row.file.is_empty() {
        true => String::new(),
        false => format!("  ({}:{})", printable(&row.file), row.line),
    }
}

/// What was counted, what is gone, and the limits that are exceeded.
pub(super) fn foot(compared: &Comparison<'_>) -> String {
    let mut out = String::new();
    for row in &compared.gone {
        out += &format!("gone: {} {}\n", printable(&row.program), printable(&row.name));
    }
    out += &format!("{}\n", summary(compared));
    for exceeded in &compared.exceeded {
        out += &format!("worse: {}\n", printable(&exceeded.sentence));
    }
    out
}

/// What was counted and how, in a sentence.
pub(super) fn summary(compared: &Comparison<'_>) -> String {
    let results = compared.results;
    let number = results.benchmarks.len() as u64;
    let mut out = format!("{} benchmark{}", grouped(number), if number == 1 { "" } else { "s" });
    match &results.machine {
        Some(machine) => {
            out += &format!(", caches of {machine}, {}", if results.cold { "cold" } else { "warm" })
        }
        None => out += ", without caches",
    }
    if let Some(processor) = &results.virtual_cpu {
        out += &format!(", shown {processor}");
    }
    if let Some(baseline) = compared.baseline {
        let rows = || results.benchmarks.iter();
        let new = rows().filter(|row| compared.before(row).is_none()).count() as u64;
        let differ = rows().filter(|row| compared.differs(row)).count() as u64 - new;
        out += &match differ {
            0 => format!("; none differs from baseline {baseline}"),
            1 => format!("; 1 differs from baseline {baseline}"),
            _ => format!("; {} differ from baseline {baseline}", grouped(differ)),
        };
        out += &match new {
            0 => String::new(),
            _ => format!(", {} new", grouped(new)),
        };
    }
    out
}
