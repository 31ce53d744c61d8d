//! A trace in a terminal: a summary of each metric with its course, the phases, and the records.
//!
//! Rows are as wide as the terminal: metrics that have no room are named below. A course is drawn
//! with eight heights of blocks, from 0 to the largest value; each block is the mean of some
//! records.

use super::functions::{most, summed};
use super::summary::Summary;
use super::{mean, place, Phase, Shown};
use measure::trace::{Metric, Record, Trace};
use present::number::brief;
use present::terminal::{middle_cut, printable, Page};
use std::fmt::Write;

/// Widths of columns: a place, a phase, a number, a name at the end.
const PLACE: usize = 10;
const PHASE: usize = 5;
const NUMBER_MIN: usize = 7;
const NUMBER_MAX: usize = 16;
const FUNCTION: usize = 26;
/// The widest course, and the narrowest one that says anything.
const COURSE_MAX: usize = 60;
const COURSE_MIN: usize = 8;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The metrics that have room beside each other.
#[derive(Debug)]
pub struct Columns {
    /// Indices of metrics, with widths.
    metrics: Vec<(usize, usize)>,
    left_out: Vec<String>,
    functions: bool,
}

impl Columns {
    /// The columns of a table of this width.
    pub fn new(trace: &Trace, width: usize) -> Columns {
        let functions = trace.functions.is_some() && width >= PLACE + PHASE + NUMBER_MIN + 4 + FUNCTION;
        let mut room = width.saturating_sub(PLACE + 2 + PHASE + if functions { FUNCTION + 2 } else { 0 });
        let (mut metrics, mut left_out) = (Vec::new(), Vec::new());
        for (index, metric) in trace.header.metrics.iter().enumerate() {
            let wide = metric.name.chars().count().clamp(NUMBER_MIN, NUMBER_MAX);
            // The first metric is shown on the narrowest terminal.
            if left_out.is_empty() && (room >= wide + 2 || metrics.is_empty()) {
                metrics.push((index, wide));
                room = room.saturating_sub(wide + 2);
            } else {
                left_out.push(printable(&metric.name));
            }
        }
        Columns { metrics, left_out, functions }
    }

    /// The line of names; `first` is what rows begin with.
    pub fn head(&self, metrics: &[Metric], first: &str) -> String {
        let mut out = format!("{first:>PLACE$}  {:>PHASE$}", "phase");
        for &(index, wide) in &self.metrics {
            let _ = write!(out, "  {:>wide$}", middle_cut(&printable(&metrics[index].name), wide));
        }
        if self.functions {
            out += "  most instructions";
        }
        out + "\n"
    }

    /// The line of a record; `phase` is empty where phases are not known yet.
    pub fn row(&self, trace: &Trace, index: usize, phase: &str) -> String {
        let record = &trace.records[index];
        let mut out = format!("{:>PLACE$}  {phase:>PHASE$}", place(trace.header.interval.unit, record.start));
        for &(metric, wide) in &self.metrics {
            let _ = write!(out, "  {:>wide$}", number(record.values[metric].scaled()));
        }
        if self.functions {
            let sums = trace.functions.as_ref().map(|all| summed(all, index..index + 1)).unwrap_or_default();
            let whole: u64 = sums.iter().map(|(_, executed)| executed).sum();
            if let (Some(&(function, executed)), Some(functions)) = (most(sums, 1).first(), &trace.functions)
            {
                let share = 100.0 * executed as f64 / whole.max(1) as f64;
                let name = middle_cut(&printable(&functions.names[function as usize]), FUNCTION - 6);
                let _ = write!(out, "  {share:>3.0} % {name}");
            }
        }
        out + "\n"
    }

    /// A sentence about metrics without room; empty if all have.
    pub fn left_out(&self) -> String {
        match self.left_out.len() {
            0 => String::new(),
            _ => format!("(without room: {}; --metrics picks columns)\n", self.left_out.join(", ")),
        }
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| brief(value.round() as u64))
}

/// The whole table: the summary, then rows, which are records of `rows`. `every` says how many
/// records of the trace a row joins.
pub fn table(shown: &Shown, rows: &Trace, every: usize, page: &Page) -> String {
    let columns = Columns::new(&shown.trace, page.width);
    let mut out = summary(shown, page);
    out += "\n";
    out += &page.bold(columns.head(&rows.header.metrics, "start").trim_end());
    out += "\n";
    let mut before = None;
    for (index, record) in rows.records.iter().enumerate() {
        let phase = phase_at(&shown.phases, record);
        // A number stands where its phase begins.
        let is_new = before.replace(phase) != Some(phase);
        out += &columns.row(rows, index, &if is_new { phase.to_string() } else { String::new() });
    }
    if every > 1 {
        let _ = writeln!(out, "(a row is {every} records: --every 1 shows each)");
    }
    out + &columns.left_out()
}

/// The number of the phase in which a record begins.
fn phase_at(phases: &[Phase], record: &Record) -> usize {
    let phase = phases.iter().rev().find(|phase| phase.start <= record.start);
    phase.map_or(0, |phase| phase.number)
}

/// What the trace is, each metric in a line, and the phases.
pub fn summary(shown: &Shown, page: &Page) -> String {
    let trace = &shown.trace;
    let program = middle_cut(&printable(&shown.program()), page.width.saturating_sub(24));
    let mut out = format!("{}: {program}, {}\n", page.bold("lightfoot show"), shown.end());
    let _ = writeln!(out, "  {}\n", shown.about());
    let widest = trace.header.metrics.iter().map(|metric| metric.name.chars().count()).max().unwrap_or(6);
    let wide = widest.clamp(6, 24);
    let course_width = page.width.saturating_sub(wide + 4 * 9 + 4).min(COURSE_MAX);
    let course_width = if course_width < COURSE_MIN { 0 } else { course_width };
    let title = if course_width > 0 { "  course" } else { "" };
    let head = format!("  {:<wide$}{:>9}{:>9}{:>9}{:>9}{title}", "metric", "min", "median", "max", "total");
    out += &page.bold(&head);
    out += "\n";
    for (index, metric) in trace.header.metrics.iter().enumerate() {
        let Summary { min, median, max, total } = Summary::of(trace, index);
        let cell = |value: Option<u64>| value.map_or("-".into(), brief);
        let name = middle_cut(&printable(&metric.name), wide);
        let numbers = [min, median, max, total].map(|value| format!("{:>9}", cell(value))).concat();
        let line = format!("  {name:<wide$}{numbers}  {}", course(trace, index, course_width));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out + &phases(shown, page)
}

/// A line of blocks: the rate of a metric over the trace; a space where it was not counted.
fn course(trace: &Trace, metric: usize, width: usize) -> String {
    let count = trace.records.len();
    let blocks = width.min(count);
    let mean = |block: usize| mean(trace, block * count / blocks..(block + 1) * count / blocks, metric);
    let means: Vec<Option<f64>> = (0..blocks).map(mean).collect();
    let largest = means.iter().flatten().copied().fold(0.0, f64::max);
    let block = |mean: Option<f64>| match mean {
        None => ' ',
        Some(mean) if largest > 0.0 => BLOCKS[((mean / largest * 8.0).ceil() as usize).clamp(1, 8) - 1],
        Some(_) => BLOCKS[0],
    };
    means.into_iter().map(block).collect()
}

/// Each phase with the means of its intervals, and its functions if they were counted.
fn phases(shown: &Shown, page: &Page) -> String {
    let trace = &shown.trace;
    if shown.phases.len() < 2 && trace.functions.is_none() {
        return String::new();
    }
    // Functions of a phase stand on a line of their own, so they take no column here.
    let columns = Columns { functions: false, ..Columns::new(trace, page.width) };
    let head = format!("{:>PHASE$}  {:>PLACE$}", "phase", "from");
    let names = columns.head(&trace.header.metrics, "");
    let names = names.trim_end().split_at(PLACE + 2 + PHASE).1;
    let mut out = format!("\n{}\n", page.bold(&(head + names)));
    for phase in &shown.phases {
        let start = place(trace.header.interval.unit, phase.start);
        let _ = write!(out, "{:>PHASE$}  {start:>PLACE$}", phase.number);
        for &(metric, wide) in &columns.metrics {
            let mean = mean(trace, phase.records.clone(), metric);
            let _ = write!(out, "  {:>wide$}", number(mean));
        }
        out.push('\n');
        let tops: Vec<String> = phase
            .functions
            .iter()
            .map(|top| format!("{:.0} % {}", 100.0 * top.share, printable(&top.name)))
            .collect();
        if !tops.is_empty() {
            let indent = PHASE + 2;
            let _ =
                writeln!(out, "{:indent$}{}", "", cut(&tops.join(", "), page.width.saturating_sub(indent)));
        }
    }
    out + "(phases: means of an interval)\n"
}

/// The first characters of a line, with a sign where it is cut.
fn cut(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{shown, stepped};
    use super::super::{excerpt, joined};
    use super::*;

    fn page(width: usize) -> Page {
        Page { width, ..Page::PLAIN }
    }

    #[test]
    fn a_table_has_summary_phases_and_rows() {
        let shown = shown();
        let rows = joined(&shown.trace, 10);
        let out = table(&shown, &rows, 10, &page(100));
        let line = |start: &str| {
            out.lines()
                .find(|line| line.trim_start().starts_with(start))
                .unwrap_or_else(|| panic!("{start}: {out}"))
                .to_owned()
        };
        assert!(
            out.starts_with(
                "lightfoot show: prog <b>, exit status 3\n  61 records of 1,000 instructions, native\n"
            ),
            "{out}"
        );
        let words: Vec<String> = line("l1d-misses").split_whitespace().map(str::to_owned).collect();
        let total = stepped().sum(1).unwrap();
        assert_eq!(words[1..5], ["10", "500", "501", &brief(total)].map(String::from));
        assert!(words[5].starts_with("▁▁") && words[5].ends_with("██"), "{words:?}");
        assert_eq!(line("2 ").split_whitespace().collect::<Vec<_>>()[..4], ["2", "30.0k", "1,000", "500"]);
        assert!(out.contains("100 % f [prog], 0 % g</script> [prog]"), "{out}");
        let row = line("30.0k");
        assert_eq!(row.split_whitespace().take(4).collect::<Vec<_>>(), ["30.0k", "2", "10.0k", "5,005"]);
        assert!(row.ends_with("100 % g</script> [prog]"), "{row}");
        assert!(out.ends_with("(a row is 10 records: --every 1 shows each)\n"), "{out}");
    }

    #[test]
    fn lines_keep_to_the_width() {
        for width in [40, 60, 80, 132] {
            let shown = shown();
            let out = table(&shown, &shown.trace, 1, &page(width));
            let long = out
                .lines()
                .filter(|line| !line.starts_with('('))
                .find(|line| line.chars().count() > width.max(54));
            assert_eq!(long, None, "{width}");
        }
        let narrow = Columns::new(&stepped(), 30);
        assert_eq!(narrow.left_out(), "(without room: l1d-misses, fn:<x>; --metrics picks columns)\n");
    }

    #[test]
    fn what_was_not_counted_is_no_number() {
        let mut trace = excerpt(stepped(), &[1], &(0..u64::MAX)).unwrap();
        trace.functions = None;
        trace.records.iter_mut().for_each(|record| record.values[0].delta = None);
        let shown = Shown::new("t".into(), trace);
        let out = table(&shown, &shown.trace, 1, &page(80));
        assert!(out.contains("\n         0      1           -\n"), "{out}");
        // The total was read by itself.
        assert_eq!(
            out.lines().nth(4).unwrap().split_whitespace().collect::<Vec<_>>(),
            ["l1d-misses", "-", "-", "-", "15.8k"]
        );
    }
}
