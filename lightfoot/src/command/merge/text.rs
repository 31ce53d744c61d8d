//! The merged report for people and for spreadsheets.

use super::rows::{base, Merged};
use super::spread::Spread;
use super::Report;
use crate::cli::Statistic;
use crate::report::Kind;
use present::csv::field;
use present::number::{brief, grouped, percent};
use present::terminal::{front_cut, middle_cut, printable, Page};

/// The statistics of a number in CSV.
pub(super) const STATISTICS: [&str; 6] = ["sum", "mean", "deviation", "median", "least", "most"];

/// The cells of [`STATISTICS`], with a comma before each.
pub(super) fn statistics(spread: &Spread) -> String {
    let Spread { sum, mean, deviation, median, least, most } = spread;
    format!(",{sum},{mean},{deviation},{median},{least},{most}")
}

/// A row for people.
pub(super) struct Line {
    pub(super) name: String,
    /// Its name where there is little room.
    pub(super) place: String,
    /// What stands in a line of source.
    pub(super) code: Option<String>,
    /// The statistics of what sorts the rows.
    pub(super) spread: Spread,
    /// The number of reports that have it.
    pub(super) reports: usize,
}

impl Report {
    /// Totals with their spread, and tables with the first `top` rows.
    pub(super) fn text(&self, top: usize, page: &Page) -> String {
        let mut out = format!("{}: {}\n", page.bold("lightfoot merge"), self.title());
        out += &format!(
            "  {:<16} {:>15} {:>9} {:>9} {:>9} {:>8}\n",
            "",
            self.statistic_name(),
            "median",
            "least",
            "most",
            "spread"
        );
        for (metric, spread) in self.columns.iter().zip(&self.totals) {
            let value = grouped(spread.value(self.statistic));
            out += &format!("  {:<16} {value:>15} {}\n", metric.label, ends(spread));
        }
        let (name, lines) = self.lines();
        let share = |spread: &Spread| percent(spread.value(self.statistic), self.whole());
        out += &self.table(("share", &share), &name, &lines[..], top, page);
        if let Some(processes) = &self.processes {
            out += &self.table(("share", &share), "process", &processes.lines(), top, page);
        }
        if let Some(curve) = &self.curve {
            let misses = |spread: &Spread| brief(spread.value(self.statistic));
            let title = "data misses of caches of other sizes";
            out += &self.table((self.statistic_name(), &misses), title, &curve.lines(), usize::MAX, page);
        }
        out += &page.sentence(
            "  ",
            &format!("share: of {}; spread: most less least, of the mean", self.sorted_label()),
        );
        for warning in &self.warnings {
            out += &page.sentence("warning: ", &printable(warning));
        }
        out
    }

    /// The rows that the reports are of, with what they are.
    pub(super) fn lines(&self) -> (String, Vec<Line>) {
        let rows = match (&self.by, &self.objects) {
            (Some(by), Some(objects)) => {
                return (by.join(", "), objects.lines(by.first().map_or("", |by| by)))
            }
            (Some(_), None) => &self.rows,
            (None, _) => &self.functions,
        };
        let name = self.by.as_ref().map_or("function".to_owned(), |by| by.join(", "));
        (name, rows.iter().map(|row| self.line(row)).collect())
    }

    pub(super) fn line(&self, row: &Merged) -> Line {
        let name = row.label();
        // The end of a path says most, and a narrow screen has room for little else.
        let place = match (&row.file, row.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => name.clone(),
        };
        Line { name, place, code: row.text.clone(), spread: self.sorting_spread(row), reports: row.reports }
    }

    /// The first `top` rows of a table, with a heading and a text of the number that comes first.
    fn table(
        &self,
        (first, of): (&str, &dyn Fn(&Spread) -> String),
        title: &str,
        rows: &[Line],
        top: usize,
        page: &Page,
    ) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let reports = self.sources.len();
        let heading = format!(
            "{:>7} {:>9} {:>9} {:>9} {:>8} {:>7}  {title}",
            first, "median", "least", "most", "spread", "reports",
        );
        let mut out = format!("\n{}\n", page.bold(&heading));
        let room = page.width.saturating_sub(57).max(24);
        for Line { name, spread, reports: seen, .. } in &rows[..top.min(rows.len())] {
            let share = of(spread);
            let name = printable(name);
            let cut = if name.starts_with('/') { front_cut } else { middle_cut };
            let seen = format!("{seen}/{reports}");
            out += &format!("{share:>7} {} {seen:>7}  {}\n", ends(spread), cut(&name, room));
        }
        if rows.len() > top {
            out += &format!("  ({} more with --top 0)\n", grouped((rows.len() - top) as u64));
        }
        out
    }

    /// A line for each row: its sum, mean, deviation, median, least and most of each column.
    pub(super) fn csv(&self, top: usize) -> String {
        if let (Some(objects), Some(by)) = (&self.objects, &self.by) {
            return objects.csv(by.first().map_or("", |by| by), top);
        }
        let mut out = String::from("name,library,file,line,reports");
        for metric in &self.columns {
            out += &STATISTICS.map(|statistic| format!(",{}_{statistic}", metric.field)).concat();
        }
        let is_call = self.rows.first().is_some_and(|row| self.calls(row).is_some());
        if is_call {
            out += &STATISTICS.map(|statistic| format!(",calls_{statistic}")).concat();
        }
        let reports = self.sources.len();
        out += &format!(
            "\r\n(total),,,,{reports}{}{}\r\n",
            self.totals.iter().map(statistics).collect::<String>(),
            if is_call { ",".repeat(STATISTICS.len()) } else { String::new() }
        );
        let rows = if self.by.is_some() { &self.rows } else { &self.functions };
        for row in &rows[..top.min(rows.len())] {
            let text = |text: &Option<String>| text.as_deref().map_or(String::new(), field);
            let line = row.line.map_or(String::new(), |line| line.to_string());
            let name = match &row.opcode {
                Some(opcode) => field(&format!("{} {opcode}", row.name)),
                None => field(&row.name),
            };
            let columns = self.columns.len() + usize::from(is_call);
            let numbers = (0..columns).map(|column| statistics(&row.spread(column, reports)));
            out += &format!(
                "{name},{},{},{line},{}{}\r\n",
                text(&row.library),
                text(&row.file),
                row.reports,
                numbers.collect::<String>()
            );
        }
        out
    }

    /// What was merged, in words.
    pub(super) fn title(&self) -> String {
        let reports = self.sources.len();
        let kind = if self.kind == Kind::Cache { "cache" } else { "count" };
        let mut programs: Vec<&str> =
            self.sources.iter().filter_map(|source| source.command.first()?.rsplit('/').next()).collect();
        programs.sort_unstable();
        programs.dedup();
        let of = match programs.as_slice() {
            [program] => printable(program),
            programs => format!("{} programs", programs.len()),
        };
        let region = self.region.iter().map(|region| format!(", region {}", printable(region)));
        let plural = if reports == 1 { "" } else { "s" };
        format!(
            "{} of {reports} report{plural} of {kind}, {of}{}",
            self.statistic_name(),
            region.collect::<String>()
        )
    }

    pub(super) fn statistic_name(&self) -> &'static str {
        match self.statistic {
            Statistic::Sum => "sum",
            Statistic::Mean => "mean",
            Statistic::Median => "median",
        }
    }
}

/// Median, least, most and their distance.
fn ends(spread: &Spread) -> String {
    let [median, least, most] = [spread.median, spread.least, spread.most].map(brief);
    format!("{median:>9} {least:>9} {most:>9} {:>8}", distance(spread))
}

/// The distance of most and least in percent of the mean.
pub(super) fn distance(spread: &Spread) -> String {
    match spread.percent() {
        Some(percent) if percent > 0.0 && percent < 0.1 => format!("{percent:.3} %"),
        Some(percent) if percent > 0.0 => format!("{percent:.1} %"),
        _ => "=".into(),
    }
}
