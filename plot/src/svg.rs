//! What all plots share: the frame, words, the grid, names beside their lines, and steps of round
//! size.

use std::fmt::Write;

/// Enough for any plot here; each takes the first few.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#b8a800"];

/// What a picture begins with: its frame, and the title at `place`.
pub(crate) fn opening(title: &str, (width, height): (f64, f64), (x, y): (f64, f64)) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<style>\
         .p{{fill:#fff}}.t{{fill:#222}}.g{{stroke:#ccc}}\
         @media (prefers-color-scheme:dark){{.p{{fill:#161616}}.t{{fill:#ddd}}.g{{stroke:#444}}}}</style>\n\
         <rect class=\"p\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"t\" x=\"{x}\" y=\"{y}\" font-size=\"15\">{title}</text>\n"
    )
}

/// Words at a place, anchored at `start`, `middle` or `end`.
pub(crate) fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = escaped(text);
    let _ =
        writeln!(out, "<text class=\"t\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

/// A line of the grid, from `left` to `right`.
pub(crate) fn across(out: &mut String, (left, right): (f64, f64), y: f64) {
    let _ = writeln!(out, "<line class=\"g\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>");
}

/// Names in the colours of their lines, at the lines' ends from `left` on; pushed down where they
/// would overlap.
pub(crate) fn names<'a>(mut names: Vec<(f64, &'a str, &'a str)>, left: f64, top: f64) -> String {
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut out, mut free) = (String::new(), top);
    for (y, name, colour) in names {
        let y = y.max(free);
        free = y + 14.0;
        let (below, name) = (y + 4.0, escaped(name));
        let _ = writeln!(out, "<text fill=\"{colour}\" x=\"{left:.1}\" y=\"{below:.1}\">{name}</text>");
    }
    out
}

/// With the characters that mean something in XML written as entities.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// About six steps of a round size.
pub(crate) fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
    step.unwrap_or(rough)
}

/// 1, 2 and 5 times powers of ten within the range.
pub(crate) fn powers((low, high): (f64, f64)) -> Vec<f64> {
    if !(low > 0.0 && low.is_finite()) {
        return Vec::new();
    }
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    all.filter(|value| (low..=high).contains(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!([0.11, 0.3, 1.0, 7.0, 20.0].map(round_step), [0.2, 0.5, 1.0, 10.0, 20.0]);
        assert_eq!(powers((0.9, 30.0)), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert!(powers((0.0, 1.0)).is_empty() && powers((f64::INFINITY, 1.0)).is_empty());
    }

    #[test]
    fn names_do_not_overlap() {
        let drawn = names(vec![(50.0, "b", "red"), (49.0, "<a", "blue")], 10.0, 20.0);
        assert_eq!(
            drawn,
            "<text fill=\"blue\" x=\"10.0\" y=\"53.0\">&lt;a</text>\n<text fill=\"red\" x=\"10.0\" y=\"67.0\">b</text>\n"
        );
    }
}
