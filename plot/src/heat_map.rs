//! Heat maps: a square of cells, whose colour is a difference and whose words are the numbers and
//! the verdict.

use crate::svg::{escaped, opening, text};
use std::fmt::Write;

/// One cell of a heat map.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Between -1 and 1; its colour. `None` is grey.
    pub shade: Option<f64>,
    /// Up to three lines of words.
    pub words: Vec<String>,
}

/// Draws a square of named rows and columns; `cells[row][column]`, `None` is left empty.
pub fn heat_map(title: &str, names: &[String], cells: &[Vec<Option<Cell>>]) -> String {
    let (left, top, side) = (150.0, 130.0, 92.0);
    let size = side * names.len() as f64;
    let mut out = opening(title, (left + size + 30.0, top + size + 40.0), (12.0, 20.0));
    for (index, name) in names.iter().enumerate() {
        let middle = side * (index as f64 + 0.5);
        text(&mut out, (left - 8.0, top + middle + 4.0), "end", name);
        let x = left + middle;
        let _ = writeln!(
            out,
            "<text class=\"t\" transform=\"translate({x:.1},{:.1}) rotate(-35)\">{}</text>",
            top - 8.0,
            escaped(name)
        );
    }
    for (row, cells) in cells.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                square(&mut out, cell, (left + side * column as f64, top + side * row as f64), side);
            }
        }
    }
    out + "</svg>\n"
}

fn square(out: &mut String, cell: &Cell, (x, y): (f64, f64), side: f64) {
    let colour = cell.shade.map_or("#bbbbbb".into(), colour);
    let inner = side - 2.0;
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{inner}\" height=\"{inner}\" fill=\"{colour}\"/>"
    );
    let first = y + side / 2.0 + 4.0 - 7.5 * (cell.words.len().max(1) - 1) as f64;
    for (index, words) in cell.words.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text fill=\"#111\" font-size=\"11\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x + side / 2.0,
            first + 15.0 * index as f64,
            escaped(words)
        );
    }
}

/// Orange below zero, white at it, blue above; all light enough for dark words.
fn colour(shade: f64) -> String {
    let strength = shade.abs().clamp(0.0, 1.0).sqrt();
    let end = if shade < 0.0 { [0xf0, 0x9a, 0x4a] } else { [0x6a, 0xb4, 0xe6] };
    let mix = end.map(|end: u8| (255.0 + (f64::from(end) - 255.0) * strength).round() as u8);
    format!("#{:02x}{:02x}{:02x}", mix[0], mix[1], mix[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_drawn() {
        let cell = |shade, words: &str| Some(Cell { shade, words: vec![words.into()] });
        let names = ["a<b".to_string(), "c".into()];
        let drawn = heat_map("t", &names, &[vec![cell(Some(-0.5), "x"), None], vec![None, cell(None, "y")]]);
        assert_eq!(drawn.matches("<rect").count(), 1 + 2);
        assert!(drawn.contains("a&lt;b") && drawn.contains("#bbbbbb") && drawn.contains(">x<"));
    }
}
