//! The merged report as a page that opens offline. It needs no script.
//!
//! A bar beside each number has the range from 0 to the most of its table or row: its light part
//! ends at the least number, its full one spans from the least to the most, and a line stands at
//! the median.

use super::spread::Spread;
use super::text::{distance, Line};
use super::Report;
use present::number::{brief, grouped, percent, seconds};
use present::page::{text, Page};
use std::fmt::Write;

const STYLE: &str = "svg.range { width: 7rem; height: .8rem; display: inline-block; vertical-align: -.1rem; } .range .sure { fill: var(--c0); opacity: .35; } \
     .range .open { fill: var(--c1); } .range .median { stroke: var(--ink); stroke-width: 1.5; }\n";

/// Headings of the statistics.
const HEADINGS: &str = "<th class=\"wide\">median</th><th class=\"wide\">least</th><th class=\"wide\">most</th><th>spread</th><th class=\"wide\">0 to most</th>";

impl Report {
    /// The page with the first `top` rows of each table.
    pub(super) fn page(&self, top: usize) -> String {
        let title = format!("lightfoot merge: {}", self.title());
        let mut body = format!(
            "<h1><small>lightfoot merge</small> {}</h1>\n<div class=\"tiles\">\n",
            text(&self.title())
        );
        for column in &self.sorted_by {
            let spread = &self.totals[*column];
            let value = grouped(spread.value(self.statistic));
            let label = self.columns[*column].label;
            let _ = writeln!(
                body,
                "<div class=\"tile\"><small>{label}</small><b>{value}</b>{}</div>",
                distance(spread)
            );
        }
        body += "</div>\n";
        for warning in &self.warnings {
            let _ = writeln!(body, "<p class=\"warn\">{}</p>", text(warning));
        }
        body += &self.totals_section();
        let label = self.sorted_label();
        let share = |spread: &Spread| percent(spread.value(self.statistic), self.whole());
        let share: (&str, &dyn Fn(&Spread) -> String) = ("share", &share);
        if self.by.is_some() {
            body += &self.section(share, &self.by_name(), label, &self.lines().1, top);
        }
        if let Some(curve) = &self.curve {
            let misses = |spread: &Spread| brief(spread.value(self.statistic));
            let first = (self.statistic_name(), &misses as &dyn Fn(&Spread) -> String);
            body += &self.section(first, "Caches of other sizes", "data misses", &curve.lines(), usize::MAX);
        }
        if let Some(processes) = &self.processes {
            body += &self.section(share, "Processes", label, &processes.lines(), top);
        }
        for (title, rows) in [("Functions", &self.functions), ("Libraries", &self.libraries)] {
            let lines: Vec<Line> = rows[..].iter().map(|row| self.line(row)).collect();
            body += &self.section(share, title, label, &lines, top);
        }
        body += &self.sources_section();
        Page { title: &title, body: &body, style: STYLE, script: None }.html()
    }

    fn by_name(&self) -> String {
        self.by.as_ref().map_or(String::new(), |by| format!("Rows by {}", by.join(", ")))
    }

    fn totals_section(&self) -> String {
        let statistic = self.statistic_name();
        let mut out = format!("<section><h2>Totals</h2><div class=\"scroll\"><table><thead><tr><th class=\"name\">column</th><th>{statistic}</th><th class=\"wide\">mean</th><th class=\"wide\">deviation</th>{HEADINGS}</tr></thead><tbody>\n");
        for (metric, spread) in self.columns.iter().zip(&self.totals) {
            let _ = writeln!(
                out,
                "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"wide\">{}</td><td class=\"wide\">{}</td>{}</tr>",
                metric.label,
                grouped(spread.value(self.statistic)),
                tenths(spread.mean),
                tenths(spread.deviation),
                cells(spread, spread.most)
            );
        }
        out + "</tbody></table></div><p class=\"faint\">Spread: the most less the least, of the mean. A bar is full from the least to the most; the line is the median.</p></section>\n"
    }

    /// A table with a heading and a text of the number that comes first.
    fn section(
        &self,
        (first, of): (&str, &dyn Fn(&Spread) -> String),
        title: &str,
        label: &str,
        rows: &[Line],
        top: usize,
    ) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let shown = &rows[..top.min(rows.len())];
        let most = shown.iter().map(|row| row.spread.most).max().unwrap_or(0);
        let mut out = format!("<section><h2>{title}: {label}</h2><div class=\"scroll tall\"><table><thead><tr><th>{first}</th>{HEADINGS}<th class=\"wide\">reports</th><th class=\"name\">{title}</th></tr></thead><tbody>\n");
        for Line { name, place, code, spread, reports } in shown {
            let code =
                code.as_ref().map_or(String::new(), |code| format!("<br><small>{}</small>", text(code)));
            let _ = writeln!(
                out,
                "<tr><td>{}</td>{}<td class=\"wide\">{reports}/{}</td><td class=\"name\" title=\"{}\">{}{code}</td></tr>",
                of(spread),
                cells(spread, most),
                self.sources.len(),
                text(name),
                text(place)
            );
        }
        out += "</tbody></table></div>";
        if rows.len() > shown.len() {
            let _ = write!(
                out,
                "<p class=\"faint\">{} more with --top 0</p>",
                grouped((rows.len() - shown.len()) as u64)
            );
        }
        out + "</section>\n"
    }

    fn sources_section(&self) -> String {
        let columns: String =
            self.sorted_by.iter().map(|column| format!("<th>{}</th>", self.columns[*column].label)).collect();
        let mut out = format!("<section><h2>Reports</h2><div class=\"scroll tall\"><table><thead><tr>{columns}<th class=\"wide\">time</th><th class=\"name\">report</th></tr></thead><tbody>\n");
        for source in &self.sources {
            let numbers: String = self
                .sorted_by
                .iter()
                .map(|column| format!("<td>{}</td>", grouped(source.totals[*column])))
                .collect();
            let time = source.wall_s.map_or("–".to_owned(), seconds);
            let _ = writeln!(
                out,
                "<tr>{numbers}<td class=\"wide\">{time}</td><td class=\"name\">{}<br><small>{}</small></td></tr>",
                text(&source.path.to_string_lossy()),
                text(&source.command.join(" "))
            );
        }
        out + "</tbody></table></div></section>\n"
    }
}

/// A number with one decimal and thousands separators.
fn tenths(number: f64) -> String {
    let tenths = (number * 10.0).round() as u64;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// The cells of the statistics, with a bar from 0 to `whole`.
fn cells(spread: &Spread, whole: u64) -> String {
    let [median, least, most] = [spread.median, spread.least, spread.most].map(brief);
    format!(
        "<td class=\"wide\">{median}</td><td class=\"wide\">{least}</td><td class=\"wide\">{most}</td><td>{}</td><td class=\"wide\">{}</td>",
        distance(spread),
        range(spread, whole)
    )
}

/// The bar.
fn range(spread: &Spread, whole: u64) -> String {
    let at = |value: u64| if whole == 0 { 0.0 } else { value as f64 * 100.0 / whole as f64 };
    let (least, median, most) = (at(spread.least), at(spread.median), at(spread.most));
    format!(
        "<svg class=\"range\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} to {}\"><rect class=\"sure\" width=\"{least:.2}\" height=\"10\"/>\
         <rect class=\"open\" x=\"{least:.2}\" width=\"{:.2}\" height=\"10\"/><path class=\"median\" d=\"M{median:.2} 0V10\"/></svg>",
        brief(spread.least),
        brief(spread.most),
        most - least
    )
}
