//! Timelines: a panel for each metric of a trace, all on one axis of time, with phases marked.
//!
//! A value stands for an interval and is drawn as a step of that width. Each panel runs from 0 to
//! its own largest value. Intervals narrower than a pixel are drawn as the least and the largest
//! value of that pixel, so that a picture of any trace is small and hides no peak.

use crate::svg::{across, escaped, opening, round_step, text, COLOURS};
use std::fmt::Write;

/// A part of the axis with a name.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Where it begins and ends.
    pub extent: (f64, f64),
    /// At its top.
    pub name: String,
}

/// A panel.
#[derive(Clone, Debug)]
pub struct Row {
    /// Above it.
    pub name: String,
    /// One for each interval; `None` was not counted.
    pub values: Vec<Option<f64>>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// Above everything.
    pub title: &'a str,
    /// Under the last panel.
    pub axis: &'a str,
    /// Where intervals begin and end, in ascending order; values lie between two of them.
    pub edges: &'a [f64],
    /// Phases, in ascending order.
    pub phases: &'a [Phase],
    /// From top to bottom.
    pub rows: &'a [Row],
    /// Writes a place on the axis.
    pub place: fn(f64) -> String,
    /// Writes a value.
    pub value: fn(f64) -> String,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 58.0;
const PANEL_HEIGHT: f64 = 70.0;
const GAP: f64 = 26.0;

/// Draws a timeline.
pub fn timeline(plot: &Timeline<'_>) -> String {
    let bottom = TOP + plot.rows.len() as f64 * (PANEL_HEIGHT + GAP);
    let first = plot.edges.first().copied().unwrap_or(0.0);
    let last = plot.edges.last().copied().unwrap_or(1.0).max(first + 1e-9);
    let x = |place: f64| LEFT + (WIDTH - LEFT - RIGHT) * (place - first) / (last - first);
    let mut out = opening(plot.title, (WIDTH, bottom + 36.0), (12.0, 22.0));
    out += "<style>.s{fill:#888;fill-opacity:.13}</style>\n";
    if !plot.phases.is_empty() {
        text(&mut out, (LEFT - 6.0, TOP - 12.0), "end", "phase");
    }
    for (index, phase) in plot.phases.iter().enumerate() {
        let (from, to) = (x(phase.extent.0), x(phase.extent.1));
        if index % 2 == 1 {
            let (width, height) = (to - from, bottom - TOP + 6.0);
            let top = TOP - 6.0;
            let _ = writeln!(
                out,
                "<rect class=\"s\" x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
        // A name wider than its phase would lie over its neighbours.
        if 7.0 * phase.name.chars().count() as f64 <= to - from {
            text(&mut out, ((from + to) / 2.0, TOP - 12.0), "middle", &phase.name);
        }
    }
    for (index, row) in plot.rows.iter().enumerate() {
        let base = TOP + index as f64 * (PANEL_HEIGHT + GAP) + PANEL_HEIGHT + 14.0;
        panel(&mut out, plot, row, (base, COLOURS[index % 7]), x);
    }
    let step = round_step((last - first) / 6.0);
    for tick in (first / step).ceil() as i64..=(last / step).floor() as i64 {
        let place = tick as f64 * step;
        text(&mut out, (x(place), bottom + 14.0), "middle", &(plot.place)(place));
    }
    text(&mut out, (WIDTH - RIGHT, bottom + 30.0), "end", plot.axis);
    out + "</svg>\n"
}

fn panel(
    out: &mut String,
    plot: &Timeline<'_>,
    row: &Row,
    (base, colour): (f64, &str),
    x: impl Fn(f64) -> f64,
) {
    let largest = row.values.iter().flatten().copied().fold(0.0, f64::max);
    text(out, (LEFT, base - PANEL_HEIGHT - 4.0), "start", &row.name);
    text(out, (LEFT - 6.0, base - PANEL_HEIGHT + 9.0), "end", &(plot.value)(largest));
    text(out, (LEFT - 6.0, base), "end", "0");
    across(out, (LEFT, WIDTH - RIGHT), base);
    let y = |value: f64| base - PANEL_HEIGHT * if largest > 0.0 { value / largest } else { 0.0 };
    let mut points = String::new();
    for step in steps(plot.edges, &row.values, x) {
        match step {
            Some(Step { from, to, least, most }) => {
                let _ = write!(points, "{from:.1},{:.1} ", y(least));
                if most > least {
                    let _ = write!(points, "{from:.1},{:.1} ", y(most));
                }
                let _ = write!(points, "{to:.1},{:.1} ", y(most));
            }
            // What was not counted is a gap.
            None => line(out, &mut points, colour),
        }
    }
    line(out, &mut points, colour);
}

fn line(out: &mut String, points: &mut String, colour: &str) {
    if !points.is_empty() {
        let points = escaped(points.trim_end());
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\" points=\"{points}\"/>"
        );
    }
    points.clear();
}

/// What is drawn between two places.
struct Step {
    from: f64,
    to: f64,
    least: f64,
    most: f64,
}

/// The steps of a panel, at least a pixel wide; `None` where values are missing.
fn steps(edges: &[f64], values: &[Option<f64>], x: impl Fn(f64) -> f64) -> Vec<Option<Step>> {
    let mut steps: Vec<Option<Step>> = Vec::new();
    for (pair, value) in edges.windows(2).zip(values) {
        let Some(value) = *value else {
            steps.push(None);
            continue;
        };
        let (from, to) = (x(pair[0]), x(pair[1]));
        match steps.last_mut() {
            // The step before is narrower than a pixel: this value joins it.
            Some(Some(step)) if step.to - step.from < 1.0 => {
                (step.to, step.least, step.most) = (to, step.least.min(value), step.most.max(value));
            }
            _ => steps.push(Some(Step { from, to, least: value, most: value })),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: Vec<Option<f64>>) -> String {
        let edges: Vec<f64> = (0..=values.len()).map(|edge| edge as f64).collect();
        let half = values.len() as f64 / 2.0;
        let phase = |from, to, name: &str| Phase { extent: (from, to), name: name.into() };
        timeline(&Timeline {
            title: "a < b",
            axis: "records",
            edges: &edges,
            phases: &[phase(0.0, half, "1"), phase(half, 2.0 * half, "2")],
            rows: &[Row { name: "x & y".into(), values }],
            place: |place| format!("{place}"),
            value: |value| format!("{value}"),
        })
    }

    #[test]
    fn every_value_is_a_step_and_what_is_missing_a_gap() {
        let out = drawn(vec![Some(1.0), Some(4.0), None, Some(2.0)]);
        assert_eq!(out.matches("<polyline").count(), 2);
        assert!(out.contains("points=\"64.0,124.5 284.0,124.5 284.0,72.0 504.0,72.0\""), "{out}");
        assert!(out.contains(">x &amp; y<") && out.contains("a &lt; b") && out.contains(">4<"));
        assert_eq!((out.matches("<rect class=\"s\"").count(), out.matches("</svg>").count()), (1, 1));
    }

    #[test]
    fn a_long_trace_is_small_and_keeps_its_peak() {
        let mut values = vec![Some(1.0); 100_000];
        values[77_777] = Some(50.0);
        let out = drawn(values);
        assert!(out.len() < 60_000, "{} bytes", out.len());
        let top = format!(",{:.1} ", TOP + 14.0);
        assert!(out.contains(&top), "the peak touches the top of its panel");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let out = drawn(Vec::new());
        assert!(out.ends_with("</svg>\n") && !out.contains("NaN") && !out.contains("inf"), "{out}");
    }
}
