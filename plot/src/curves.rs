//! Plots of curves over two linear axes, whose values may be negative, such as correlations and
//! shares.

use crate::svg::{across, names, opening, round_step, text, COLOURS};
use std::fmt::Write;

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name, written at the end of the curve.
    pub name: String,
    /// Points from left to right. The curve has a gap where the second value is not finite.
    pub points: Vec<(f64, f64)>,
}

/// The contents of a plot of curves.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The title, above the plot.
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
    let extent = extent(plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)));
    // A range without an extent, such as that of a single point, is drawn in the middle.
    let place =
        |value: f64, (low, high): (f64, f64)| if high > low { (value - low) / (high - low) } else { 0.5 };
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * place(value, extent);
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place(value, plot.range);
    let mut out = opening(&plot.title, (WIDTH, HEIGHT), (12.0, 22.0));
    for value in ticks(plot.range) {
        across(&mut out, (LEFT, WIDTH - RIGHT), y(value));
        text(&mut out, (LEFT - 6.0, y(value) + 4.0), "end", &shown(value));
    }
    for value in ticks(extent) {
        text(&mut out, (x(value), HEIGHT - BOTTOM + 17.0), "middle", &shown(value));
    }
    text(&mut out, (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 10.0), "middle", &plot.axes[0]);
    text(&mut out, (LEFT, TOP - 6.0), "middle", &plot.axes[1]);
    // Names stand at the ends of their curves. They are placed together at last, so that names of
    // near ends do not overlap.
    let mut ends = Vec::new();
    for (curve, colour) in plot.curves.iter().zip(COLOURS[..7].iter().cycle()) {
        // A value that is not finite leaves a gap: a line across it would show values that nobody
        // measured.
        for piece in curve.points.split(|point| !point.1.is_finite()).filter(|piece| !piece.is_empty()) {
            let points: Vec<String> =
                piece.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" points=\"{}\"/>",
                points.join(" ")
            );
            // Circles show the single values as long as they do not cover the line.
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
            ends.push((y(last.1), curve.name.as_str(), *colour));
        }
    }
    out += &names(ends, WIDTH - RIGHT + 8.0, TOP);
    out + "</svg>\n"
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
    let step = round_step((high - low) / 6.0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

/// The value with up to four decimal places and no trailing zeros.
fn shown(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn() {
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
