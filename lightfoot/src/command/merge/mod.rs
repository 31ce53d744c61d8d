//! `lightfoot merge REPORT…`: reports of several runs become one report, with the sum, the mean and
//! the spread of every number.
//!
//! Ten runs of a program have one number with its spread in each row; the processes of a build have
//! their sum. Rows are matched as `diff` matches them ([`rows`]), and a report without a row counts
//! as 0 there. The merged report is a report: `diff` compares it, and `merge` merges it again.
//! Rows of data, miss curves and processes are matched by more than names ([`data`]).
//! Reports are read one at a time. **Leaves out** what adds up to nothing: machines of other sizes
//! (refused), parts of cycles, fields that are used together.

mod check;
mod data;
mod json;
mod page;
mod rows;
mod spread;
mod text;

use super::diff::read::{Mapped, Programs, Read, Row};
use crate::cli::{Merge, MergeFormat, Statistic};
use crate::report::{sortable, Kind, Metric, CACHE_METRICS, COUNT_METRICS, L1D};
use anyhow::Result;
use data::{Curve, Objects, Processes};
use present::exit::{refused, Failure, USAGE};
use present::output::{print, Destination};
use present::terminal::Page;
use rows::{Merged, Table};
use serde_json::Value;
use spread::Spread;
use std::path::PathBuf;

/// What is known of one of the reports.
struct Source {
    path: PathBuf,
    command: Vec<String>,
    partial: bool,
    wall_s: Option<f64>,
    /// The totals, in the order of the columns.
    totals: Vec<u64>,
}

/// A merged report.
struct Report {
    statistic: Statistic,
    kind: Kind,
    rep: String,
    region: Option<String>,
    machine: Value,
    /// The columns that all reports have.
    columns: Vec<&'static Metric>,
    /// The columns whose sum sorts the rows.
    sorted_by: Vec<usize>,
    /// The column that the user named.
    sort: Option<String>,
    sources: Vec<Source>,
    totals: Vec<Spread>,
    functions: Vec<Merged>,
    libraries: Vec<Merged>,
    opcodes: Vec<Merged>,
    by: Option<Vec<String>>,
    rows: Vec<Merged>,
    /// Rows of data.
    objects: Option<Objects>,
    curve: Option<Curve>,
    processes: Option<Processes>,
    warnings: Vec<String>,
}

pub(super) fn run(options: &Merge) -> Result<u8> {
    let destination = options.output.as_deref().map(|path| Destination::new(Some(path))).transpose()?;
    let report = Report::new(options)?;
    let out = match options.format {
        MergeFormat::Text => {
            let page = if destination.is_some() { Page::PLAIN } else { Page::of_stdout() };
            report.text(shown(options.top, 20), &page)
        }
        MergeFormat::Json => report.json(shown(options.top, usize::MAX))?,
        MergeFormat::Csv => report.csv(shown(options.top, usize::MAX)),
        MergeFormat::Html => report.page(shown(options.top, 200)),
    };
    match destination {
        Some(destination) => destination.write(out)?,
        None => print(&out)?,
    }
    Ok(0)
}

/// The number of rows to show.
fn shown(top: Option<usize>, default: usize) -> usize {
    top.map_or(default, |top| if top == 0 { usize::MAX } else { top })
}

impl Report {
    fn new(options: &Merge) -> Result<Report> {
        let [others @ .., last] = options.reports.as_slice() else {
            return Err(refused("give the reports to merge".into()));
        };
        let last = Read::open(last)?;
        let kind = if last.kind == "cache" { Kind::Cache } else { Kind::Count };
        let columns: Vec<&'static Metric> = COUNT_METRICS
            .iter()
            .chain(if kind == Kind::Cache { CACHE_METRICS } else { &[] })
            .filter(|metric| last.totals.has(metric.field))
            .collect();
        let sort = options.sort.clone().or_else(|| last.sorted_by.clone());
        let sorted_by = sorting(sort.as_deref(), kind, &columns)?;
        let reports = options.reports.len();
        let fields: Vec<&'static str> = sorted_by.iter().map(|column| columns[*column].field).collect();
        let has_data = last.objects.is_some();
        let mut report = Report {
            objects: has_data.then(|| Objects::new(reports, options.statistic, &fields)),
            curve: Curve::new(&last, reports),
            processes: Processes::new(&last, reports, options.statistic, &columns, &fields),
            statistic: options.statistic,
            kind,
            rep: last.rep.clone(),
            region: last.region.clone(),
            machine: last.machine.clone(),
            columns,
            sorted_by,
            sort,
            sources: Vec::new(),
            totals: Vec::new(),
            functions: Vec::new(),
            libraries: Vec::new(),
            opcodes: Vec::new(),
            by: last.by.clone().filter(|_| last.rows.is_some() || has_data),
            rows: Vec::new(),
            warnings: Vec::new(),
        };
        report.fill(others, last, options)?;
        Ok(report)
    }

    /// Adds all reports, the last one first; the others are read one at a time.
    fn fill(&mut self, others: &[PathBuf], mut last: Read, options: &Merge) -> Result<()> {
        let fields: Vec<String> = self.columns.iter().map(|metric| metric.field.to_owned()).collect();
        // Behind the columns of all tables stands one that rows of calls alone have.
        let own: Vec<String> = fields.iter().cloned().chain(["calls".to_owned()]).collect();
        let mapped = Mapped { paths: &options.map_path, names: &options.map_name };
        let mut tables = [(); 4].map(|()| Table::new(&own, others.len() + 1));
        let programs = if options.any_program { Programs::Any } else { Programs::One };
        self.add(others.len(), &last, &mapped, &mut tables);
        // From here on only what the report is about is needed, not its rows.
        for rows in [&mut last.functions, &mut last.libraries, &mut last.opcodes] {
            *rows = Vec::new();
        }
        (last.rows, last.objects) = (None, None);
        for (index, path) in others.iter().enumerate().rev() {
            let read = Read::open(path)?;
            read.comparable(&last, programs)?;
            check::of_one_machine(&read, &last)?;
            check::of_one_shape(&read, &last, &fields)?;
            self.add(index, &read, &mapped, &mut tables);
        }
        self.sources.reverse();
        for column in 0..self.columns.len() {
            let values: Vec<u64> = self.sources.iter().map(|source| source.totals[column]).collect();
            self.totals.push(Spread::of(&values));
        }
        for table in &mut tables {
            table.sort(|row| self.weight(row));
        }
        [self.functions, self.libraries, self.opcodes, self.rows] = tables.map(|table| table.rows);
        Ok(())
    }

    /// Adds one report.
    fn add(&mut self, index: usize, read: &Read, mapped: &Mapped<'_>, tables: &mut [Table; 4]) {
        self.warnings.extend(check::doubts(read));
        let rows: [&[Row]; 4] =
            [&read.functions, &read.libraries, &read.opcodes, read.rows.as_deref().unwrap_or_default()];
        for (table, rows) in tables.iter_mut().zip(rows) {
            self.warnings.extend(table.add(index, rows, mapped));
        }
        if let Some(objects) = &mut self.objects {
            objects.add(index, read, mapped);
        }
        let all_of = |what: &str, option: &str| {
            format!(
                "the {what} of other reports are left out, because {} has none of this shape: make all with {option}",
                read.path.display()
            )
        };
        if self.curve.as_mut().is_some_and(|curve| !curve.add(index, read)) {
            self.curve = None;
            self.warnings.push(all_of("miss curves", "--curves"));
        }
        if self.processes.as_mut().is_some_and(|processes| !processes.add(index, read, mapped)) {
            self.processes = None;
            self.warnings.push(all_of("processes", "--follow-children"));
        }
        self.sources.push(Source {
            path: read.path.clone(),
            command: read.command.clone(),
            partial: read.partial,
            wall_s: read.wall_s,
            totals: self.columns.iter().map(|metric| read.totals.get(metric.field)).collect(),
        });
    }

    /// How often the calls of a row were made, if rows are calls.
    fn calls(&self, row: &Merged) -> Option<Spread> {
        let is_call = self.by.as_ref().is_some_and(|by| by.iter().any(|by| by == "call"));
        is_call.then(|| row.spread(self.columns.len(), self.sources.len()))
    }

    /// The number by which rows are sorted.
    fn weight(&self, row: &Merged) -> u64 {
        self.sorted_by
            .iter()
            .map(|column| row.spread(*column, self.sources.len()).value(self.statistic))
            .fold(0, u64::saturating_add)
    }

    /// The number of which rows have shares: that of the totals.
    fn whole(&self) -> u64 {
        let values = self.sorted_by.iter().map(|column| self.totals[*column].value(self.statistic));
        values.fold(0, u64::saturating_add)
    }

    /// The numbers that sort the rows, of one row.
    fn sorting_spread(&self, row: &Merged) -> Spread {
        row.spread_of_sum(&self.sorted_by, self.sources.len())
    }

    /// The name of the column that sorts the rows.
    fn sorted_label(&self) -> &'static str {
        match self.sorted_by.as_slice() {
            [column] => self.columns[*column].label,
            columns if columns.iter().any(|column| self.columns[*column].field == "l1i_misses") => {
                "first-level misses"
            }
            _ => L1D.label,
        }
    }
}

/// The columns whose sum sorts the rows: the one that the user named, else instructions, or
/// first-level misses.
fn sorting(sort: Option<&str>, kind: Kind, columns: &[&'static Metric]) -> Result<Vec<usize>> {
    let fields: &[&str] = match (sort, kind) {
        (Some(column), _) => {
            let found = sortable(kind, column)
                .map_err(|error| Failure { status: USAGE, sentence: error.to_string() })?;
            match found.field {
                "l1d_misses" => &["l1d_load_misses", "l1d_store_misses"],
                field => &[field],
            }
        }
        (None, Kind::Count) => &["instructions"],
        (None, Kind::Cache) => &["l1i_misses", "l1d_load_misses", "l1d_store_misses"],
    };
    let places: Vec<usize> =
        fields.iter().filter_map(|field| columns.iter().position(|metric| metric.field == *field)).collect();
    match (places.is_empty(), sort) {
        (true, Some(column)) => Err(refused(format!("the reports have no column {column}"))),
        // A machine without first-level caches.
        (true, None) => Ok(vec![0]),
        (false, _) => Ok(places),
    }
}
