//! Writes a report as CSV: a header, the totals, one line for each process that was followed and
//! for each row. Quoting follows RFC 4180; a null number is an empty field.

use super::measurement::Report;
use super::process::ProcessRow;
use super::row::Row;
use crate::cli::By;
use crate::run::tally::Counts;
use present::csv::field;

/// The report as a whole file.
pub fn show(report: &Report, by: &[By], rows: usize) -> String {
    if let Some(objects) = &report.objects {
        return objects.csv(by, rows);
    }
    let (line_columns, opcode_column) = extra(by);
    let header: Vec<&str> = ["name", "library", "address"]
        .into_iter()
        .chain(line_columns.iter().copied())
        .chain(opcode_column.iter().copied())
        .chain(by.contains(&By::Call).then_some("calls"))
        .chain(report.metrics().map(|metric| metric.field))
        .collect();
    let mut out = header.join(",") + "\r\n";
    let total = Row { name: "(total)".into(), counts: report.totals, ..Row::default() };
    let processes: Vec<Row> = report.processes.iter().flatten().map(process).collect();
    for row in std::iter::once(&total).chain(&processes).chain(report.rows(by).iter().take(rows)) {
        out += &line(report, by, row);
    }
    out
}

/// The row of a process; these come between the total, which is their sum, and the other rows.
fn process(process: &ProcessRow) -> Row {
    let of = process.parent_place.map(|parent| format!(" of {parent}")).unwrap_or_default();
    let name = format!("(process {}{of})", process.place);
    Row { name, library: process.command.first().cloned(), counts: process.counts, ..Row::default() }
}

/// Columns that only tables of lines, or of opcodes combined with another key, have.
fn extra(by: &[By]) -> (&'static [&'static str], Option<&'static str>) {
    let lines: &[&str] = if by.contains(&By::Line) { &["file", "line"] } else { &[] };
    (lines, (by.len() > 1 && by.contains(&By::Opcode)).then_some("opcode"))
}

fn line(report: &Report, by: &[By], row: &Row) -> String {
    let address = row.address.map(|address| format!("{address:#x}")).unwrap_or_default();
    let mut fields = vec![field(&row.name), field(row.library.as_deref().unwrap_or_default()), address];
    let (lines, opcode) = extra(by);
    if !lines.is_empty() {
        fields.push(field(row.file.as_deref().unwrap_or_default()));
        fields.push(row.line.map(|line| line.to_string()).unwrap_or_default());
    }
    fields.extend(opcode.map(|_| row.opcode.clone().unwrap_or_default()));
    fields.extend(by.contains(&By::Call).then(|| row.calls.map_or(String::new(), |calls| calls.to_string())));
    let number = |value: fn(&Counts) -> Option<u64>| {
        value(&row.counts).map(|number| number.to_string()).unwrap_or_default()
    };
    fields.extend(report.metrics().map(|metric| number(metric.value)));
    fields.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_total() {
        let report = crate::report::tests::count_report();
        let text = show(&report, &[By::Function], usize::MAX);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "name,library,address,instructions,blocks,loads,stores");
        assert_eq!(lines[1], "(total),,,1234567,1000,3000,400");
        assert_eq!(lines[2], "main,/usr/bin/prog,0x1139,1000000,900,2900,300");
        assert_eq!(lines.len(), 4);
    }
}
