//! A picture of a structure in memory: rows of half a line, a box for each field, as red as it is
//! hot; hatched boxes are holes, and heavy rules are where lines begin if a value does.

use super::types::TypeRow;
use present::page::text;
use present::terminal::middle_cut;
use std::fmt::Write;

/// A box of the picture.
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) size_bytes: u64,
    /// How hot it is, from 0 to 1; `None` for a hole.
    pub(super) heat: Option<f64>,
}

/// The widest picture, in its own units.
const WIDTH: u64 = 768;
/// Units of a row, and of a letter.
const ROW: u64 = 30;
const LETTER: u64 = 8;
/// Room for offsets on the left.
const MARGIN: u64 = 44;
/// Rows that are drawn: of a larger type its beginning.
const ROWS_MAX: u64 = 64;

/// The style of pictures.
pub(super) const STYLE: &str = "svg.definitions { position: absolute; width: 0; height: 0; } svg.memory { min-width: 40rem; max-width: 60rem; } .memory .field { fill: rgb(var(--heat)); stroke: var(--rule); } \
     .memory .hole { fill: url(#hatch); stroke: var(--rule); } .memory text { fill: var(--ink); font: 12px ui-monospace, \"DejaVu Sans Mono\", monospace; } \
     .memory text.at { fill: var(--faint); } .memory .line { stroke: var(--ink); stroke-width: 2; } .hatch { stroke: var(--faint); stroke-width: 1; }\n";

/// The pattern of holes, once in a page.
pub(super) const DEFINITIONS: &str = "<svg class=\"definitions\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"hatch\" d=\"M0 6L6 0\"/></pattern></defs></svg>\n";

/// The pieces of a type as it lies, by the heat of each field.
pub(super) fn pieces(row: &TypeRow, heat: impl Fn(usize) -> f64) -> Vec<Piece> {
    let fields = row.fields.iter().enumerate().filter_map(|(number, field)| {
        let (offset, size_bytes) = (field.offset?, field.size_bytes?);
        Some(Piece { name: field.name.clone(), offset, size_bytes, heat: Some(heat(number)) })
    });
    let holes = row.holes.iter().map(|hole| Piece {
        name: String::new(),
        offset: hole.offset,
        size_bytes: hole.size_bytes,
        heat: None,
    });
    fields.chain(holes).collect()
}

/// The picture of `pieces` in lines of `line_bytes`.
pub(super) fn svg(label: &str, pieces: &[Piece], line_bytes: u64) -> String {
    let row_bytes = (line_bytes / 2).max(8);
    let unit = (WIDTH - MARGIN) / row_bytes;
    let end = pieces.iter().map(|piece| piece.offset + piece.size_bytes).max().unwrap_or(0);
    let rows = end.div_ceil(row_bytes).min(ROWS_MAX);
    let mut out = format!(
        "<div class=\"scroll\"><svg class=\"memory\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {}\">",
        text(label),
        rows * ROW + 2
    );
    for piece in pieces {
        let mut from = piece.offset;
        let end = (piece.offset + piece.size_bytes).min(rows * row_bytes);
        while from < end {
            let to = end.min((from / row_bytes + 1) * row_bytes);
            part(&mut out, piece, from..to, row_bytes, unit);
            from = to;
        }
    }
    for row in 0..rows {
        let y = row * ROW + 1;
        let _ = write!(out, "<text class=\"at\" x=\"0\" y=\"{}\">{}</text>", y + 19, row * row_bytes);
        if (row * row_bytes).is_multiple_of(line_bytes) {
            let _ = write!(out, "<path class=\"line\" d=\"M{MARGIN} {y}H{}\"/>", MARGIN + row_bytes * unit);
        }
    }
    out += "</svg></div>\n";
    if end > rows * row_bytes {
        let _ = writeln!(
            out,
            "<p class=\"faint\">The picture shows the first {} of {end} bytes.</p>",
            rows * row_bytes
        );
    }
    out
}

/// One row's part of a piece.
fn part(out: &mut String, piece: &Piece, bytes: std::ops::Range<u64>, row_bytes: u64, unit: u64) {
    let (x, y) = (MARGIN + bytes.start % row_bytes * unit, bytes.start / row_bytes * ROW + 1);
    let width = (bytes.end - bytes.start) * unit;
    let (class, opacity) = match piece.heat {
        None => ("hole", 1.0),
        // The coldest field is white, and even the hottest one leaves its name readable.
        Some(heat) => ("field", heat.clamp(0.0, 1.0).sqrt() * 0.7),
    };
    let title = match piece.heat {
        None => format!("hole of {} bytes at {}", piece.size_bytes, piece.offset),
        Some(_) => format!("{}, {} bytes at {}", piece.name, piece.size_bytes, piece.offset),
    };
    let _ = write!(
        out,
        "<g><title>{}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill-opacity=\"{opacity:.3}\"/>",
        text(&title),
        ROW - 4
    );
    let room = (width / LETTER) as usize;
    if room >= 2 && piece.heat.is_some() {
        let name = middle_cut(&piece.name, room);
        let _ = write!(out, "<text x=\"{}\" y=\"{}\">{}</text>", x + 4, y + 18, text(&name));
    }
    out.push_str("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_at_rows_and_lines_are_ruled() {
        let piece =
            |name: &str, offset, size_bytes, heat| Piece { name: name.into(), offset, size_bytes, heat };
        let pieces = [piece("a<b", 0, 8, Some(1.0)), piece("", 8, 8, None), piece("long", 16, 80, Some(0.0))];
        let svg = svg("type T", &pieces, 64);
        // 16 to 32, 32 to 64, 64 to 96.
        assert_eq!(svg.matches("<title>long, 80 bytes at 16</title>").count(), 3, "{svg}");
        assert_eq!((svg.matches("class=\"line\"").count(), svg.matches("class=\"at\"").count()), (2, 3));
        assert!(svg.contains("hole of 8 bytes at 8") && svg.contains(">a&lt;b</text>"), "{svg}");
        assert!(svg.contains("fill-opacity=\"0.700\"") && svg.contains("fill-opacity=\"0.000\""), "{svg}");
    }
}
