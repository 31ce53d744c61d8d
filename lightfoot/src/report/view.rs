//! Formats of a report, and the number of rows that each shows.

use super::measurement::Report;
use super::objects::Top;
use super::{cachegrind, callgrind, csv, firefox, flame, html, otlp, pprof, speedscope, text};
use crate::cli::{By, Shape};

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The format.
    pub format: Shape,
    /// The key of the rows.
    pub by: &'a [By],
    /// The number of rows; `None` for the format's default.
    pub top: Option<usize>,
    /// The page for text.
    pub page: present::terminal::Page,
}

impl View<'_> {
    /// The number of rows of each table that a format shows; `top` is the number that the user
    /// asked for.
    pub fn rows(format: Shape, top: Option<usize>) -> usize {
        rows_shown(top, if format == Shape::Text { 20 } else { usize::MAX })
    }

    /// The report's bytes.
    ///
    /// # Errors
    /// When it cannot be put in JSON, which would be a defect.
    pub fn show(&self, report: &Report) -> anyhow::Result<Vec<u8>> {
        let text = match self.format {
            Shape::Text => text::show(report, self.by, View::rows(self.format, self.top), &self.page),
            Shape::Csv => csv::show(report, self.by, View::rows(self.format, self.top)),
            Shape::Cachegrind => cachegrind::show(report, report.detail()),
            Shape::Firefox => firefox::show(report, report.detail()),
            Shape::Speedscope => speedscope::show(report, report.detail()),
            Shape::Flamegraph => flame::show(report, report.detail()),
            Shape::Otlp => return Ok(otlp::show(report, report.detail())),
            Shape::Pprof => return Ok(pprof::show(report, report.detail())),
            Shape::Html => match &report.objects {
                Some(objects) => {
                    let title = format!("lightfoot: {}", report.command.join(" "));
                    let top = Top { title: &title, head: &html::head(report) };
                    objects.html(top, self.by, rows_shown(self.top, 200))
                }
                None => html::show(report, report.detail())?,
            },
            Shape::Callgrind => callgrind::show(report, report.detail()),
            Shape::Json => {
                let rows = View::rows(self.format, self.top);
                // Copying a hundred thousand rows would take longer than writing them.
                let cut = (rows < usize::MAX).then(|| report.with_at_most(rows));
                serde_json::to_string_pretty(cut.as_ref().unwrap_or(report))? + "\n"
            }
        };
        Ok(text.into_bytes())
    }
}

fn rows_shown(top: Option<usize>, default: usize) -> usize {
    match top {
        None => default,
        Some(0) => usize::MAX,
        Some(rows) => rows,
    }
}
