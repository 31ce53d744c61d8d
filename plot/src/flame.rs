//! Flame graphs: calls from bottom to top, each as wide as its share of the whole.
//!
//! A box is a function in its calling context, and the boxes on it are what it called, by name. A
//! box that would be narrower than a third of a pixel is left out with all that lies on it. The
//! number of a box is shown when the pointer rests on it. Colour tells neighbours apart and means
//! nothing else. **Leaves out** zooming, which takes a script. Source: Gregg 2016, "The Flame
//! Graph".

use crate::svg::{escaped, opening, text};
use std::fmt::Write;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// In its box.
    pub name: String,
    /// What it cost with all that it called.
    pub inclusive: u64,
    /// What it called.
    pub calls: Vec<Call>,
}

const WIDTH: f64 = 1200.0;
const SIDE: f64 = 10.0;
const TOP: f64 = 48.0;
const ROW: f64 = 17.0;
const LETTER: f64 = 6.7;
const NARROWEST: f64 = 0.34;

/// Draws a flame graph. `what` names the costs, and `amount` writes one.
pub fn flame(title: &str, what: &str, whole: &Call, amount: fn(u64) -> String) -> String {
    let scale = (WIDTH - 2.0 * SIDE) / whole.inclusive.max(1) as f64;
    let depth = depth(whole, scale);
    let bottom = TOP + ROW * depth as f64;
    let mut out = opening(title, (WIDTH, bottom + 28.0), (SIDE, 24.0));
    out += "<style>.b{stroke:#fff;stroke-width:.6}.n{fill:#111;pointer-events:none}\
            @media (prefers-color-scheme:dark){.b{stroke:#161616}}</style>\n";
    let frame = Frame { what, whole: whole.inclusive.max(1), scale, bottom, amount };
    frame.boxes(&mut out, whole, (SIDE, 0));
    text(&mut out, (SIDE, bottom + 18.0), "start", &format!("width: {what}, {}", amount(whole.inclusive)));
    out + "</svg>\n"
}

/// Rows that are wide enough to be drawn.
fn depth(call: &Call, scale: f64) -> usize {
    let wide = call.calls.iter().filter(|call| call.inclusive as f64 * scale >= NARROWEST);
    1 + wide.map(|call| depth(call, scale)).max().unwrap_or(0)
}

/// What all boxes share.
struct Frame<'a> {
    what: &'a str,
    whole: u64,
    scale: f64,
    bottom: f64,
    amount: fn(u64) -> String,
}

impl Frame<'_> {
    fn boxes(&self, out: &mut String, call: &Call, (left, row): (f64, usize)) {
        let width = call.inclusive as f64 * self.scale;
        if width < NARROWEST {
            return;
        }
        let y = self.bottom - ROW * (row + 1) as f64;
        let (name, colour) = (escaped(&call.name), colour(&call.name));
        let share = 100.0 * call.inclusive as f64 / self.whole as f64;
        let _ = writeln!(
            out,
            "<g><title>{name}: {} {}, {share:.2} %</title><rect class=\"b\" x=\"{left:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{:.1}\" rx=\"1\" fill=\"{colour}\"/>",
            (self.amount)(call.inclusive),
            escaped(self.what),
            ROW - 1.0
        );
        let letters = ((width - 6.0) / LETTER) as usize;
        if letters >= 3 {
            let shown = cut(&call.name, letters);
            let (x, y) = (left + 3.0, y + 12.0);
            let _ = writeln!(out, "<text class=\"n\" x=\"{x:.2}\" y=\"{y:.1}\">{}</text>", escaped(&shown));
        }
        *out += "</g>\n";
        let mut left = left;
        for inner in &call.calls {
            self.boxes(out, inner, (left, row + 1));
            left += inner.inclusive as f64 * self.scale;
        }
    }
}

/// The first letters of a name, with a sign where it is cut.
fn cut(name: &str, letters: usize) -> String {
    match name.chars().count() > letters {
        true => name.chars().take(letters - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// A warm colour that depends on the name alone, light enough for dark words.
fn colour(name: &str) -> String {
    let mixed =
        name.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let part = |shift: u32, range: u32| (mixed >> shift & 0xff) % range;
    format!("#{:02x}{:02x}{:02x}", 232 + part(0, 16), 140 + part(8, 80), 70 + part(16, 50))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, inclusive: u64, calls: Vec<Call>) -> Call {
        Call { name: name.into(), inclusive, calls }
    }

    #[test]
    fn boxes_are_as_wide_as_their_shares() {
        let whole = call(
            "all",
            1000,
            vec![call("a<b>", 750, vec![call("leaf", 500, vec![])]), call("c", 250, vec![])],
        );
        let drawn = flame("t", "loads", &whole, |amount| amount.to_string());
        assert_eq!(drawn.matches("<rect class=\"b\"").count(), 4);
        assert!(drawn.contains("<title>a&lt;b&gt;: 750 loads, 75.00 %</title>"), "{drawn}");
        assert!(
            drawn.contains("x=\"895.00\"") && drawn.contains("width=\"295.00\""),
            "c begins where a ends"
        );
        assert_eq!(drawn.matches("<g>").count(), drawn.matches("</g>").count());
    }

    #[test]
    fn what_nobody_sees_is_left_out() {
        let whole = call("all", 1_000_000, vec![call("tiny", 3, vec![call("below", 3, vec![])])]);
        let drawn = flame("t", "x", &whole, |amount| amount.to_string());
        assert_eq!(drawn.matches("<rect class=\"b\"").count(), 1);
        assert!(flame("t", "x", &call("none", 0, vec![]), |amount| amount.to_string()).ends_with("</svg>\n"));
    }

    #[test]
    fn names_are_cut_to_their_boxes() {
        assert_eq!((cut("short", 5), cut("longer", 4)), ("short".to_owned(), "lon…".to_owned()));
    }
}
