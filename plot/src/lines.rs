//! Lines over a logarithmic axis of items or bytes, each named at its end.

use crate::svg::{across, escaped, names, opening, powers, round_step, text, COLOURS};
use std::fmt::Write;

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// At its end.
    pub name: String,
    /// x and y, both positive or zero, ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// How the y-axis runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// From 0.
    Linear,
    /// From the smallest value.
    Logarithmic,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Above everything.
    pub title: String,
    /// Name of the first axis.
    pub x: &'static str,
    /// Name of the second.
    pub y: &'static str,
    /// How the second runs.
    pub axis: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 50.0;

/// The window onto the data.
struct View {
    x: (f64, f64),
    y: (f64, f64),
    axis: Axis,
}

impl View {
    fn of(plot: &Lines) -> View {
        let points = || plot.series.iter().flat_map(|series| series.points.iter().copied());
        let x = points().fold((f64::MAX, 1.0_f64), |(low, high), (x, _)| (low.min(x), high.max(x)));
        let high = points().fold(0.1_f64, |high, (_, y)| high.max(y));
        let low = match plot.axis {
            Axis::Linear => 0.0,
            Axis::Logarithmic => points().map(|(_, y)| y).filter(|y| *y > 0.0).fold(high, f64::min) * 0.9,
        };
        View { x: (x.0.min(x.1), x.1), y: (low, high * 1.05), axis: plot.axis }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = (x / self.x.0).ln() / (self.x.1 / self.x.0).ln().max(1e-9);
        let up = match self.axis {
            Axis::Linear => y / self.y.1,
            Axis::Logarithmic => (y.max(self.y.0) / self.y.0).ln() / (self.y.1 / self.y.0).ln(),
        };
        (LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))
    }

    /// Values to draw a grid line at.
    fn ticks(&self) -> Vec<f64> {
        match self.axis {
            Axis::Linear => {
                let step = round_step(self.y.1 / 6.0);
                (0..).map(|i| f64::from(i) * step).take_while(|y| *y <= self.y.1).collect()
            }
            Axis::Logarithmic => powers(self.y),
        }
    }
}

/// Draws it.
pub fn lines(plot: &Lines) -> String {
    let view = View::of(plot);
    let mut out = opening(&plot.title, (WIDTH, HEIGHT), (LEFT, 22.0));
    let _ = writeln!(out, "<text class=\"t\" x=\"{LEFT}\" y=\"38\">{}</text>", escaped(plot.y));
    grid(&mut out, &view, plot);
    let mut ends = Vec::new();
    for (i, series) in plot.series.iter().enumerate() {
        let places: Vec<(f64, f64)> = series.points.iter().map(|&point| view.place(point)).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = COLOURS[i % COLOURS.len()];
        // When the colours are used up they begin again, dashed.
        let dash = if i < COLOURS.len() { "" } else { " stroke-dasharray=\"6 4\"" };
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
            path.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>");
        }
        ends.extend(places.last().map(|(_, y)| (*y, series.name.as_str(), colour)));
    }
    out += &names(ends, WIDTH - RIGHT + 8.0, TOP);
    out + "</svg>\n"
}

fn grid(out: &mut String, view: &View, plot: &Lines) {
    for value in view.ticks() {
        let (_, y) = view.place((view.x.0, value));
        across(out, (LEFT, WIDTH - RIGHT), y);
        text(out, (LEFT - 6.0, y + 4.0), "end", &value.to_string());
    }
    let mut items: Vec<f64> =
        plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
    items.sort_unstable_by(f64::total_cmp);
    items.dedup();
    let every = items.len().div_ceil(9).max(1);
    for &x in items.iter().step_by(every) {
        let (at, _) = view.place((x, view.y.1));
        text(out, (at, HEIGHT - BOTTOM + 18.0), "middle", &short(x));
    }
    text(out, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0), "middle", plot.x);
}

/// 1024 as 1K.
fn short(x: f64) -> String {
    match x {
        x if x >= 1024.0 * 1024.0 * 1024.0 => format!("{}G", x / (1024.0 * 1024.0 * 1024.0)),
        x if x >= 1024.0 * 1024.0 => format!("{}M", x / (1024.0 * 1024.0)),
        x if x >= 1024.0 => format!("{}K", x / 1024.0),
        x => format!("{x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_a_line_with_its_name() {
        let series =
            |name: &str, y| Series { name: name.into(), points: vec![(128.0, y), (1024.0, 2.0 * y)] };
        for axis in [Axis::Linear, Axis::Logarithmic] {
            let drawn = lines(&Lines {
                title: "a < b".into(),
                x: "items",
                y: "ns",
                axis,
                series: vec![series("one", 1.0), series("two", 3.0)],
            });
            assert_eq!(drawn.matches("<polyline").count(), 2);
            assert!(
                drawn.contains(">one<") && drawn.contains("a &lt; b") && drawn.contains(">1K<"),
                "{drawn}"
            );
            assert!(!drawn.contains("NaN"));
        }
    }
}
