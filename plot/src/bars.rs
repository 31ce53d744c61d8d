//! Bar plots: horizontal bars in groups on a logarithmic axis that starts at 1, because what is
//! plotted is ratios. Every bar carries its number.

use crate::svg::{opening, text, COLOURS};
use std::fmt::Write;

/// One group of bars.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the bars are about.
    pub label: String,
    /// One per series; `None` was not measured.
    pub values: Vec<Option<f64>>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Above everything.
    pub title: String,
    /// Names of the bars in each group.
    pub series: Vec<String>,
    /// From top to bottom.
    pub groups: Vec<Group>,
}

/// Series that have a colour of their own.
const SERIES: usize = 6;
const WIDTH: f64 = 760.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 64.0;
const BAR: f64 = 13.0;
const GAP: f64 = 14.0;

/// Draws it.
pub fn bars(plot: &Bars) -> String {
    let values = plot.groups.iter().flat_map(|group| group.values.iter().flatten().copied());
    let largest = values.fold(10.0_f64, f64::max);
    let scale = |value: f64| (WIDTH - LEFT - RIGHT) * value.max(1.0).log10() / largest.log10();
    let group_height = BAR * plot.series.len() as f64 + GAP;
    let bottom = TOP + group_height * plot.groups.len() as f64;
    let mut out = opening(&plot.title, (WIDTH, bottom + 30.0), (LEFT, 22.0));
    out += &axis(largest, bottom, scale);
    out += &legend(&plot.series);
    for (index, group) in plot.groups.iter().enumerate() {
        let top = TOP + group_height * index as f64 + GAP / 2.0;
        let middle = top + BAR * plot.series.len() as f64 / 2.0 + 4.0;
        text(&mut out, (LEFT - 8.0, middle), "end", &group.label);
        for (series, value) in group.values.iter().enumerate() {
            let y = top + BAR * series as f64;
            bar(&mut out, (y, COLOURS[series % SERIES]), *value, scale);
        }
    }
    out + "</svg>\n"
}

fn axis(largest: f64, bottom: f64, scale: impl Fn(f64) -> f64) -> String {
    let mut out = String::new();
    for value in
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0].into_iter().filter(|v| *v <= largest)
    {
        let x = LEFT + scale(value);
        let _ =
            writeln!(out, "<line class=\"g\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>");
        text(&mut out, (x, bottom + 18.0), "middle", &format!("{value}\u{d7}"));
    }
    out
}

fn legend(series: &[String]) -> String {
    let mut out = String::new();
    let mut x = LEFT;
    for (name, colour) in series.iter().zip(COLOURS[..SERIES].iter().cycle()) {
        let _ = writeln!(out, "<rect x=\"{x:.1}\" y=\"36\" width=\"11\" height=\"11\" fill=\"{colour}\"/>");
        text(&mut out, (x + 16.0, 46.0), "start", name);
        x += 34.0 + 6.6 * name.chars().count() as f64;
    }
    out
}

fn bar(out: &mut String, (y, colour): (f64, &str), value: Option<f64>, scale: impl Fn(f64) -> f64) {
    let Some(value) = value else {
        return text(out, (LEFT + 5.0, y + 10.0), "start", "not measured");
    };
    let width = scale(value).max(1.0);
    let height = BAR - 2.0;
    let _ = writeln!(
        out,
        "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
    );
    text(out, (LEFT + width + 5.0, y + 10.0), "start", &format!("{value:.1}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_bar_with_its_number() {
        let plot = Bars {
            title: "a < b".into(),
            series: vec!["one".into(), "two".into()],
            groups: vec![Group { label: "x".into(), values: vec![Some(3.25), None] }],
        };
        let drawn = bars(&plot);
        assert!(drawn.contains(">3.2<") && drawn.contains(">not measured<"), "{drawn}");
        assert!(drawn.contains("a &lt; b"));
        assert_eq!(drawn.matches("<rect").count(), 1 + 2 + 1);
        assert_eq!(drawn.matches("<svg").count(), drawn.matches("</svg>").count());
    }
}
