//! Plots of correlations as SVG: heat maps of verdicts, and lines over a share of added instructions.
//!
//! Small, self-contained, readable by day and by night, like the other plots. A cell's colour is the difference, its words are the numbers and the verdict, so that
//! nothing is told by colour alone. Lines are drawn over both axes as they are (correlations may be negative). Colours: Okabe and Ito 2008.

use super::svg::{escaped, text};
use std::fmt::Write;

const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999"];

/// One cell of a heat map.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Between -1 and 1; its colour. `None` is grey.
    pub shade: Option<f64>,
    /// Up to three lines of words.
    pub words: Vec<String>,
}

/// Draws a square of named rows and columns; `cells[row][column]`, `None` is left empty.
pub fn heat_map(title: &str, names: &[String], cells: &[Vec<Option<Cell>>]) -> String {
    let (left, top, side) = (150.0, 130.0, 92.0);
    let size = side * names.len() as f64;
    let mut out = opening(title, left + size + 30.0, top + size + 40.0, 20.0);
    for (index, name) in names.iter().enumerate() {
        let middle = side * (index as f64 + 0.5);
        text(&mut out, (left - 8.0, top + middle + 4.0), "end", name);
        let x = left + middle;
        let _ = writeln!(
            out,
            "<text class=\"t\" transform=\"translate({x:.1},{:.1}) rotate(-35)\">{}</text>",
            top - 8.0,
            escaped(name)
        );
    }
    for (row, cells) in cells.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                square(&mut out, cell, (left + side * column as f64, top + side * row as f64), side);
            }
        }
    }
    out + "</svg>\n"
}

fn square(out: &mut String, cell: &Cell, (x, y): (f64, f64), side: f64) {
    let colour = cell.shade.map_or("#bbbbbb".into(), colour);
    let inner = side - 2.0;
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{inner}\" height=\"{inner}\" fill=\"{colour}\"/>"
    );
    let first = y + side / 2.0 + 4.0 - 7.5 * (cell.words.len().max(1) - 1) as f64;
    for (index, words) in cell.words.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text fill=\"#111\" font-size=\"11\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x + side / 2.0,
            first + 15.0 * index as f64,
            escaped(words)
        );
    }
}

/// Orange below zero, white at it, blue above; all light enough for dark words.
fn colour(shade: f64) -> String {
    let strength = shade.abs().clamp(0.0, 1.0).sqrt();
    let end = if shade < 0.0 { [0xf0, 0x9a, 0x4a] } else { [0x6a, 0xb4, 0xe6] };
    let mix = end.map(|end: u8| (255.0 + (f64::from(end) - 255.0) * strength).round() as u8);
    format!("#{:02x}{:02x}{:02x}", mix[0], mix[1], mix[2])
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// At its end.
    pub name: String,
    /// From left to right; a gap where the second is not finite.
    pub points: Vec<(f64, f64)>,
}

/// What a plot of curves shows.
#[derive(Clone, Debug)]
pub struct Curves {
    /// Above everything.
    pub title: String,
    /// Names of the axes.
    pub axes: [String; 2],
    /// Range of the second axis.
    pub range: (f64, f64),
    /// The lines.
    pub curves: Vec<Curve>,
}

const WIDTH: f64 = 780.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 54.0;
const BOTTOM: f64 = 48.0;

/// Draws curves.
pub fn curves(plot: &Curves) -> String {
    let across = extent(plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)));
    let place =
        |value: f64, (low, high): (f64, f64)| if high > low { (value - low) / (high - low) } else { 0.5 };
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * place(value, across);
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place(value, plot.range);
    let mut out = opening(&plot.title, WIDTH, HEIGHT, 22.0);
    for value in ticks(plot.range) {
        let _ = writeln!(
            out,
            "<line class=\"g\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
            WIDTH - RIGHT,
            y = y(value)
        );
        text(&mut out, (LEFT - 6.0, y(value) + 4.0), "end", &shown(value));
    }
    for value in ticks(across) {
        text(&mut out, (x(value), HEIGHT - BOTTOM + 17.0), "middle", &shown(value));
    }
    text(&mut out, (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 10.0), "middle", &plot.axes[0]);
    text(&mut out, (LEFT, TOP - 6.0), "middle", &plot.axes[1]);
    let mut names = Vec::new();
    for (curve, colour) in plot.curves.iter().zip(COLOURS.iter().cycle()) {
        for piece in curve.points.split(|point| !point.1.is_finite()).filter(|piece| !piece.is_empty()) {
            let points: Vec<String> =
                piece.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" points=\"{}\"/>",
                points.join(" ")
            );
            for point in piece.iter().filter(|_| curve.points.len() < 80) {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                    x(point.0),
                    y(point.1)
                );
            }
        }
        if let Some(last) = curve.points.iter().rev().find(|point| point.1.is_finite()) {
            names.push((y(last.1), &curve.name, *colour));
        }
    }
    out += &legend(names);
    out + "</svg>\n"
}

/// Names at the ends of lines, pushed apart so that they can be read.
fn legend(mut names: Vec<(f64, &String, &str)>) -> String {
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out = String::new();
    let mut free = TOP;
    for (y, name, colour) in names {
        let y = y.max(free);
        free = y + 14.0;
        let x = WIDTH - RIGHT + 8.0;
        let _ = writeln!(
            out,
            "<text fill=\"{colour}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + 4.0,
            escaped(name)
        );
    }
    out
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high {
        (low, high)
    } else {
        (0.0, 1.0)
    }
}

/// Four to ten round values in a range.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    if high <= low {
        return vec![low];
    }
    let rough = (high - low) / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

/// Without digits that say nothing.
fn shown(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.to_owned()
    }
}

fn opening(title: &str, width: f64, height: f64, y: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<style>\
         .p{{fill:#fff}}.t{{fill:#222}}.g{{stroke:#ccc}}\
         @media (prefers-color-scheme:dark){{.p{{fill:#161616}}.t{{fill:#ddd}}.g{{stroke:#444}}}}</style>\n\
         <rect class=\"p\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"t\" x=\"12\" y=\"{y}\" font-size=\"15\">{title}</text>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_and_every_line_is_drawn() {
        let cell = |shade, words: &str| Some(Cell { shade, words: vec![words.into()] });
        let names = ["a<b".to_string(), "c".into()];
        let drawn = heat_map("t", &names, &[vec![cell(Some(-0.5), "x"), None], vec![None, cell(None, "y")]]);
        assert_eq!(drawn.matches("<rect").count(), 1 + 2);
        assert!(drawn.contains("a&lt;b") && drawn.contains("#bbbbbb") && drawn.contains(">x<"));
        let curve = |points: &[(f64, f64)]| Curve { name: "one".into(), points: points.to_vec() };
        let plot = Curves {
            title: "t".into(),
            axes: ["x".into(), "y".into()],
            range: (-1.0, 1.0),
            curves: vec![curve(&[(0.0, 0.5), (1.0, f64::NAN), (2.0, 0.7), (3.0, -0.2)]), curve(&[])],
        };
        let drawn = curves(&plot);
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn ticks_are_round() {
        let close =
            |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(&ticks((0.0, 1.0)), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]));
        assert!(close(&ticks((-1.0, 1.0)), &[-1.0, -0.5, 0.0, 0.5, 1.0]));
        assert_eq!(ticks((2.0, 2.0)), [2.0]);
        assert_eq!((shown(0.5), shown(-0.0), shown(3.0)), ("0.5".into(), "0".into(), "3".into()));
    }
}
