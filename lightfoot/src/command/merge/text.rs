//! The merged report for people and for spreadsheets.

use super::rows::Merged;
use super::spread::Spread;
use super::Report;
use crate::cli::Statistic;
use crate::report::Kind;
use present::csv::field;
use present::number::{brief, grouped, percent};
use present::terminal::{front_cut, middle_cut, printable, Page};

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
        match self.by {
            Some(_) => out += &self.table(&self.rows, top, page),
            None => out += &self.table(&self.functions, top, page),
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

    fn table(&self, rows: &[Merged], top: usize, page: &Page) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let reports = self.sources.len();
        let heading = format!(
            "{:>7} {:>9} {:>9} {:>9} {:>8} {:>7}  {}",
            "share",
            "median",
            "least",
            "most",
            "spread",
            "reports",
            self.by.as_ref().map_or("function".to_owned(), |by| by.join(", "))
        );
        let mut out = format!("\n{}\n", page.bold(&heading));
        let room = page.width.saturating_sub(57).max(24);
        for row in &rows[..top.min(rows.len())] {
            let spread = self.sorting_spread(row);
            let share = percent(spread.value(self.statistic), self.whole());
            let name = printable(&row.label());
            let cut = if name.starts_with('/') { front_cut } else { middle_cut };
            let seen = format!("{}/{reports}", row.reports);
            out += &format!("{share:>7} {} {seen:>7}  {}\n", ends(&spread), cut(&name, room));
        }
        if rows.len() > top {
            out += &format!("  ({} more with --top 0)\n", grouped((rows.len() - top) as u64));
        }
        out
    }

    /// A line for each row: its sum, mean, deviation, median, least and most of each column.
    pub(super) fn csv(&self, top: usize) -> String {
        const STATISTICS: [&str; 6] = ["sum", "mean", "deviation", "median", "least", "most"];
        let mut out = String::from("name,library,file,line,reports");
        for metric in &self.columns {
            out += &STATISTICS.map(|statistic| format!(",{}_{statistic}", metric.field)).concat();
        }
        let cells = |spread: &Spread| {
            format!(
                ",{},{},{},{},{},{}",
                spread.sum, spread.mean, spread.deviation, spread.median, spread.least, spread.most
            )
        };
        let reports = self.sources.len();
        out += &format!("\r\n(total),,,,{reports}{}\r\n", self.totals.iter().map(cells).collect::<String>());
        let rows = if self.by.is_some() { &self.rows } else { &self.functions };
        for row in &rows[..top.min(rows.len())] {
            let text = |text: &Option<String>| text.as_deref().map_or(String::new(), field);
            let line = row.line.map_or(String::new(), |line| line.to_string());
            let name = match &row.opcode {
                Some(opcode) => field(&format!("{} {opcode}", row.name)),
                None => field(&row.name),
            };
            let numbers = (0..self.columns.len()).map(|column| cells(&row.spread(column, reports)));
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
