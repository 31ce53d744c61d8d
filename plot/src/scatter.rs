//! Scatter plots over two logarithmic axes with one scale, such as predictions over measurements.
//! The diagonal is where both are equal.

use crate::svg::{across, escaped, names, opening, powers, text, COLOURS};
use std::fmt::Write;

/// Points of one colour.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The name, beside the plot.
    pub name: String,
    /// Points with their names, which a pointer shows. A point without positive values is left out.
    pub points: Vec<(f64, f64, String)>,
}

/// The contents of a scatter plot.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// The title, above the plot.
    pub title: String,
    /// Names of the axes.
    pub axes: [String; 2],
    /// The points.
    pub clouds: Vec<Cloud>,
}

const SIDE: f64 = 520.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 48.0;

/// Draws a scatter plot.
pub fn scatter(plot: &Scatter) -> String {
    let positive = |point: &&(f64, f64, String)| point.0 > 0.0 && point.1 > 0.0;
    let values = plot.clouds.iter().flat_map(|cloud| cloud.points.iter().filter(positive));
    let extent = values
        .flat_map(|point| [point.0, point.1])
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    // A plot without points shows a decade.
    let (low, high) = if extent.0 < extent.1 { extent } else { (1.0, 10.0) };
    let place = |value: f64| SIDE * (value / low).ln() / (high / low).ln();
    let (x, y) = (|value: f64| LEFT + place(value), |value: f64| TOP + SIDE - place(value));
    let size = (LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM);
    let mut out = opening(&plot.title, size, (12.0, 22.0));
    for value in powers((low, high)) {
        across(&mut out, (LEFT, LEFT + SIDE), y(value));
        text(&mut out, (LEFT - 6.0, y(value) + 4.0), "end", &format!("{value}"));
        text(&mut out, (x(value), TOP + SIDE + 17.0), "middle", &format!("{value}"));
    }
    text(&mut out, (LEFT + SIDE / 2.0, TOP + SIDE + 38.0), "middle", &plot.axes[0]);
    text(&mut out, (LEFT, TOP - 8.0), "middle", &plot.axes[1]);
    let _ = writeln!(
        out,
        "<line class=\"g\" x1=\"{LEFT}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{TOP}\"/>",
        TOP + SIDE,
        LEFT + SIDE
    );
    let mut legend = Vec::new();
    for (number, cloud) in plot.clouds.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        // When the colours are used up, points are rings.
        let fill = if number < COLOURS.len() { colour } else { "none" };
        for (across, up, name) in cloud.points.iter().filter(positive) {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\"><title>{}</title></circle>",
                x(*across),
                y(*up),
                escaped(name)
            );
        }
        legend.push((TOP + 14.0 * number as f64, cloud.name.as_str(), colour));
    }
    out + &names(legend, LEFT + SIDE + 12.0, TOP) + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_where_their_values_are_and_have_names() {
        let points = vec![(1.0, 1.0, "a<b".into()), (100.0, 10.0, "c".into()), (0.0, 5.0, "none".into())];
        let clouds = vec![Cloud { name: "all".into(), points }];
        let plot = Scatter { title: "t".into(), axes: ["x".into(), "y".into()], clouds };
        let svg = scatter(&plot);
        assert!(svg.contains("cx=\"70.0\" cy=\"570.0\""), "{svg}");
        assert!(svg.contains("cx=\"590.0\" cy=\"310.0\"") && svg.contains("a&lt;b"), "{svg}");
        assert!(!svg.contains("none</title>") && svg.ends_with("</svg>\n"), "{svg}");
        let empty = scatter(&Scatter { clouds: Vec::new(), ..plot });
        assert!(!empty.contains("NaN") && !empty.contains("circle"), "{empty}");
    }
}
