//! Line plots as SVG: a logarithmic x-axis of items or bytes, one line per series, each named at its end.
//!
//! The colours are those of the bar plots (Okabe and Ito 2008). Deliberately absent: scripts, fonts, error bars.

use std::fmt::Write;

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// x and y, both positive or zero, ascending in x.
    pub(super) points: Vec<(f64, f64)>,
}

/// How the y-axis runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// From 0.
    Linear,
    /// From the smallest value.
    Logarithmic,
}

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) axis: Axis,
    pub(super) series: Vec<Series>,
}

const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#b8a800"];
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
                let rough = self.y.1 / 6.0;
                let ten = 10f64.powf(rough.log10().floor());
                let step =
                    [1.0, 2.0, 5.0, 10.0].map(|f| f * ten).into_iter().find(|s| *s >= rough).unwrap_or(rough);
                (0..).map(|i| f64::from(i) * step).take_while(|y| *y <= self.y.1).collect()
            }
            Axis::Logarithmic => (-3..6)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * 10f64.powi(power)))
                .filter(|y| (self.y.0..=self.y.1).contains(y))
                .collect(),
        }
    }
}

/// Draws it.
pub(super) fn lines(plot: &Lines) -> String {
    let view = View::of(plot);
    let mut out = opening(plot);
    grid(&mut out, &view, plot);
    let mut labels: Vec<(f64, usize)> = Vec::new();
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
        labels.extend(places.last().map(|(_, y)| (*y, i)));
    }
    label(&mut out, labels, plot);
    out + "</svg>\n"
}

/// Names at the lines' ends, pushed apart where they would overlap.
fn label(out: &mut String, mut labels: Vec<(f64, usize)>, plot: &Lines) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP;
    for (y, i) in labels {
        let y = y.max(free);
        free = y + 14.0;
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 8.0,
            y + 4.0,
            escaped(&plot.series[i].name)
        );
    }
}

fn opening(plot: &Lines) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n<style>.p{{fill:#fff}}.t{{fill:#222}}.g{{stroke:#ccc}}\
         @media (prefers-color-scheme:dark){{.p{{fill:#161616}}.t{{fill:#ddd}}.g{{stroke:#444}}}}</style>\n\
         <rect class=\"p\" width=\"100%\" height=\"100%\"/>\n<text class=\"t\" x=\"{LEFT}\" y=\"22\" font-size=\"15\">{title}</text>\n\
         <text class=\"t\" x=\"{LEFT}\" y=\"38\">{y}</text>\n",
        title = escaped(&plot.title),
        y = escaped(plot.y),
    )
}

fn grid(out: &mut String, view: &View, plot: &Lines) {
    for value in view.ticks() {
        let (_, y) = view.place((view.x.0, value));
        let _ = writeln!(
            out,
            "<line class=\"g\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\n\
             <text class=\"t\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let mut powers: Vec<f64> =
        plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
    powers.sort_by(f64::total_cmp);
    powers.dedup();
    let every = powers.len().div_ceil(9).max(1);
    for &x in powers.iter().step_by(every) {
        let (at, _) = view.place((x, view.y.1));
        let _ = writeln!(
            out,
            "<text class=\"t\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            short(x)
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"t\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0,
        escaped(plot.x)
    );
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
