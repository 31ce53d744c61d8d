//! Plots of lines over the tile size. Both axes are logarithmic.

use crate::svg::{across, opening, powers, text, COLOURS};
use std::fmt::Write;

/// A line: its name, and a value for each T that has one.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name, written at the end of the line.
    pub name: String,
    /// Pairs of T and a value; values of 0 and below are not drawn.
    pub points: Vec<(usize, f64)>,
}

const SIZE: (f64, f64) = (760.0, 420.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 46.0;

/// Draws lines over T.
pub fn lines(title: &str, unit: &str, lines: &[Line]) -> String {
    lines_over("T", title, unit, lines)
}

/// Draws lines over a quantity with another name.
pub fn lines_over(axis: &str, title: &str, unit: &str, lines: &[Line]) -> String {
    // A logarithmic axis has no place for values of 0 and below.
    let points = || lines.iter().flat_map(|line| line.points.iter().copied()).filter(|point| point.1 > 0.0);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let extent = range(&mut points().map(|point| point.0 as f64));
    let up = range(&mut points().map(|point| point.1));
    // A range without an extent is drawn in the middle. The first test also fails without any
    // points, when the range is infinite.
    let place = |value: f64, (low, high): (f64, f64)| match high > low && low > 0.0 {
        true => (value / low).ln() / (high / low).ln(),
        false => 0.5,
    };
    let x = |tile: usize| LEFT + (SIZE.0 - LEFT - RIGHT) * place(tile as f64, extent);
    let y = |value: f64| SIZE.1 - BOTTOM - (SIZE.1 - TOP - BOTTOM) * place(value, up);
    let mut out = opening(title, SIZE, (LEFT, 20.0));
    let mut tiles: Vec<usize> = points().map(|point| point.0).collect();
    tiles.sort_unstable();
    tiles.dedup();
    // The axis is labelled with the tiles of the lines and not with powers, because only these
    // tiles were measured.
    for tile in tiles {
        text(&mut out, (x(tile), SIZE.1 - BOTTOM + 18.0), "middle", &tile.to_string());
    }
    text(&mut out, (LEFT + (SIZE.0 - LEFT - RIGHT) / 2.0, SIZE.1 - 8.0), "middle", axis);
    for value in powers(up) {
        across(&mut out, (LEFT, SIZE.0 - RIGHT), y(value));
        text(&mut out, (LEFT - 6.0, y(value) + 4.0), "end", &short(value));
    }
    text(&mut out, (LEFT, TOP - 8.0), "end", unit);
    for (line, colour) in lines.iter().zip(COLOURS[..7].iter().cycle()) {
        let points: Vec<_> = line.points.iter().filter(|point| point.1 > 0.0).collect();
        let path: Vec<String> =
            points.iter().map(|(tile, value)| format!("{:.1},{:.1}", x(*tile), y(*value))).collect();
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            path.join(" ")
        );
        if let Some((tile, value)) = points.last() {
            text(&mut out, (x(*tile) + 6.0, y(*value) + 4.0), "start", &line.name);
        }
    }
    out + "</svg>\n"
}

/// The value with a unit, such as `1.5k` or `20M`.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{value}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named() {
        let line = |name: &str, points: &[(usize, f64)]| Line { name: name.into(), points: points.to_vec() };
        let drawn = lines("a < b", "misses", &[line("one", &[(8, 10.0), (64, 2000.0)]), line("none", &[])]);
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(drawn.contains(">one<") && drawn.contains(">64<") && drawn.contains(">2k<"), "{drawn}");
        assert!(!drawn.contains("NaN") && !lines("empty", "", &[]).contains("NaN"));
    }
}
