//! Writes files for `cg_annotate`, `cg_diff` and `cg_merge`.
//!
//! Both generations of these scripts require: the header's lines in a fixed order; a number for
//! every event on every line; a `summary:` at the end that is exactly the sum; UTF-8 without
//! control characters; demangled names, because they do not demangle. Cachegrind's events have its
//! names (`Ir`, `Dr`, `D1mr`); levels that it does not know have names of ours (`L2m`, `L3m`,
//! `DTm`). Levels that the machine lacks have no column. Source: the Valgrind manual, "Cachegrind:
//! the output file format".

use super::detail::Detail;
use super::measurement::Report;
use super::metric::Metric;
use crate::run::tally::Counts;
use present::terminal::printable;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Fields of metrics, with their events.
const EVENTS: &[(&str, &str)] = &[
    ("instructions", "Ir"),
    ("loads", "Dr"),
    ("stores", "Dw"),
    ("l1i_misses", "I1mr"),
    ("l1d_load_misses", "D1mr"),
    ("l1d_store_misses", "D1mw"),
    ("l2_misses", "L2m"),
    ("l3_misses", "L3m"),
    ("dtlb_misses", "DTm"),
    ("branch_mispredictions", "Bcm"),
];

/// The columns of a report, with their events.
pub(super) fn columns(report: &Report) -> Vec<(&'static Metric, &'static str)> {
    let event =
        |metric: &Metric| EVENTS.iter().find(|(field, _)| *field == metric.field).map(|(_, event)| *event);
    let present = report.metrics().filter(|metric| (metric.value)(&report.totals).is_some());
    present.filter_map(|metric| Some((metric, event(metric)?))).collect()
}

/// The values of all columns, as in ` 12 0 3`.
pub(super) fn costs(columns: &[(&Metric, &str)], counts: &Counts) -> String {
    columns.iter().fold(String::new(), |mut text, (metric, _)| {
        let _ = write!(text, " {}", (metric.value)(counts).unwrap_or(0));
        text
    })
}

/// The simulated machine, in a line.
pub(super) fn machine(report: &Report) -> String {
    let machine = report.machine.get("name").and_then(serde_json::Value::as_str).unwrap_or("?");
    format!("Machine: {}", printable(machine))
}

/// Whether any column has a number.
pub(super) fn is_something(columns: &[(&Metric, &str)], counts: &Counts) -> bool {
    columns.iter().any(|(metric, _)| (metric.value)(counts).unwrap_or(0) > 0)
}

/// The program and its arguments on a line.
pub(super) fn command(report: &Report) -> String {
    printable(&report.command.join(" "))
}

/// The report as a whole file.
pub fn show(report: &Report, detail: &Detail) -> String {
    let columns = columns(report);
    let mut out = format!("desc: {}\n", machine(report));
    let events: Vec<&str> = columns.iter().map(|(_, event)| *event).collect();
    let _ = writeln!(out, "cmd: {}\nevents: {}", command(report), events.join(" "));
    for (file, functions) in by_file(detail) {
        let _ = writeln!(out, "fl={}", printable(&detail.files[file as usize]));
        for (name, lines) in functions {
            let _ = writeln!(out, "fn={}", printable(name));
            for (line, counts) in lines.into_iter().filter(|(_, counts)| is_something(&columns, counts)) {
                let _ = writeln!(out, "{line}{}", costs(&columns, &counts));
            }
        }
    }
    let _ = writeln!(out, "summary:{}", costs(&columns, &report.totals));
    out
}

/// Costs by line.
type Lines = BTreeMap<u32, Counts>;

/// Costs by file, function and line. Functions of one name in one file are added up, because the
/// format cannot distinguish them.
fn by_file(detail: &Detail) -> BTreeMap<u32, BTreeMap<&str, Lines>> {
    let mut files: BTreeMap<u32, BTreeMap<&str, Lines>> = BTreeMap::new();
    for function in &detail.functions {
        for ((file, line), counts) in &function.lines {
            let lines = files.entry(*file).or_default().entry(&function.name).or_default();
            lines.entry(*line).or_default().add(counts);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::detail::Function;
    use crate::report::tests::count_report;

    #[test]
    fn lines_add_up_to_the_summary() {
        let report = count_report();
        let [main, rest] = [report.functions[0].counts, report.functions[1].counts];
        let function = |name: &str, place, counts| Function {
            name: name.into(),
            lines: BTreeMap::from([(place, counts)]),
            ..Function::default()
        };
        let detail = Detail {
            files: vec!["???".into(), "/src/a.c".into()],
            functions: vec![function("main", (1, 3), main), function("odd\nname", (0, 0), rest)],
            ..Detail::default()
        };
        let text = show(&report, &detail);
        let (head, body) = text.split_once("events: ").unwrap();
        assert!(head.starts_with("desc: ") && head.ends_with("cmd: prog --flag\n"), "{head}");
        let expected = "Ir Dr Dw\nfl=???\nfn=odd\\nname\n0 234567 100 100\nfl=/src/a.c\nfn=main\n\
                        3 1000000 2900 300\nsummary: 1234567 3000 400\n";
        assert_eq!(body, expected);
    }
}
