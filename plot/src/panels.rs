//! Panels: small plots of one series each, in rows and columns that share an axis.
//!
//! Rows compare what lies above each other at one moment, columns compare two runs: the form of
//! Figure 5 of Mytkowicz et al. 2007. All panels of a row have one range, so that heights compare.
//! A series with more points than pixels is drawn as its least and largest value of each pixel.

use crate::svg::{across, opening, text, COLOURS};
use std::fmt::Write;

/// Rows and columns of series.
#[derive(Clone, Debug)]
pub struct Panels {
    /// Above everything.
    pub title: String,
    /// Above each column.
    pub columns: Vec<String>,
    /// Under the last row.
    pub axis: String,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// A row of panels.
#[derive(Clone, Debug)]
pub struct Row {
    /// At its left.
    pub name: String,
    /// One series a column; an empty one leaves its panel empty.
    pub series: Vec<Vec<f64>>,
}

const WIDTH: f64 = 780.0;
const PANEL_HEIGHT: f64 = 110.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 62.0;
const GAP: f64 = 18.0;

/// Draws panels.
pub fn panels(plot: &Panels) -> String {
    let (rows, columns) = (plot.rows.len() as f64, plot.columns.len().max(1) as f64);
    let panel_width = (WIDTH - LEFT - GAP * columns) / columns;
    let height = TOP + rows * (PANEL_HEIGHT + GAP) + 20.0;
    let left = |column: usize| LEFT + column as f64 * (panel_width + GAP);
    let mut out = opening(&plot.title, (WIDTH, height), (12.0, 22.0));
    for (column, name) in plot.columns.iter().enumerate() {
        text(&mut out, (left(column) + panel_width / 2.0, TOP - 10.0), "middle", name);
        text(&mut out, (left(column) + panel_width / 2.0, height - 10.0), "middle", &plot.axis);
    }
    for (index, row) in plot.rows.iter().enumerate() {
        let bottom = TOP + index as f64 * (PANEL_HEIGHT + GAP) + PANEL_HEIGHT;
        let largest = row.series.iter().flatten().copied().fold(0.0, f64::max);
        text(&mut out, (LEFT - 8.0, bottom - PANEL_HEIGHT / 2.0), "end", &row.name);
        text(&mut out, (LEFT - 8.0, bottom - PANEL_HEIGHT + 10.0), "end", &format!("{largest:.0}"));
        text(&mut out, (LEFT - 8.0, bottom), "end", "0");
        for (column, series) in row.series.iter().enumerate() {
            across(&mut out, (left(column), left(column) + panel_width), bottom);
            let colour = COLOURS[index % 7];
            let place = (left(column), bottom, panel_width);
            line(&mut out, series, largest, place, colour);
        }
    }
    out + "</svg>\n"
}

/// One series, in a panel of this width whose lower left corner is at `(left, bottom)`.
fn line(
    out: &mut String,
    series: &[f64],
    largest: f64,
    (left, bottom, width): (f64, f64, f64),
    colour: &str,
) {
    if series.is_empty() {
        return;
    }
    let pixels = (width as usize).max(1);
    let y = |value: f64| bottom - PANEL_HEIGHT * if largest > 0.0 { value / largest } else { 0.0 };
    let mut points = String::new();
    for pixel in 0..pixels.min(series.len()) {
        let parts = pixels.min(series.len());
        let part = &series[pixel * series.len() / parts..(pixel + 1) * series.len() / parts];
        let x = left + width * pixel as f64 / parts as f64;
        let least = part.iter().copied().fold(f64::INFINITY, f64::min);
        let most = part.iter().copied().fold(0.0, f64::max);
        let _ = write!(points, "{x:.1},{:.1} ", y(least));
        if most > least {
            let _ = write!(points, "{x:.1},{:.1} ", y(most));
        }
    }
    let points = points.trim_end();
    let _ =
        writeln!(out, "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1\" points=\"{points}\"/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_a_panel_and_a_row_has_one_range() {
        let rows = vec![
            Row { name: "L1".into(), series: vec![vec![1.0, 4.0], vec![2.0; 5000]] },
            Row { name: "S".into(), series: vec![Vec::new(), vec![3.0]] },
        ];
        let columns = vec!["Good".into(), "Perturbed".into()];
        let plot = Panels { title: "a < b".into(), columns, axis: "record".into(), rows };
        let drawn = panels(&plot);
        assert_eq!(drawn.matches("<polyline").count(), 3);
        assert!(drawn.contains(">Good<") && drawn.contains(">Perturbed<") && drawn.contains("a &lt; b"));
        assert!(drawn.len() < 20_000, "5000 points are drawn as pixels: {} bytes", drawn.len());
        // The first row's range is 0 to 4, so 2 lies half way up.
        let half = TOP + PANEL_HEIGHT / 2.0;
        assert!(drawn.contains(&format!(",{half:.1}")), "{drawn}");
    }
}
