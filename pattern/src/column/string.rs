//! Rows that hold a string without which nothing matches, found where values lie.
//!
//! Values of one row behind the other are one text: a rare string is found in it at the speed of
//! memory, without a look at the offsets. A hit leads to its row by steps that double, and counts
//! if it ends within the row. Where hits are dense the search is given up, and streams go on.
//!
//! Views mostly point at strings in the order of their rows, with little between them: a file's
//! page, or what a builder wrote. Such a stretch is one text as well. **Leaves out** views in
//! another order, as those of a dictionary are.

use super::rows::{parts, INLINE_BYTES};
use crate::bits::Bitmap;
use crate::literal::finder::Finder;
use crate::literal::required::rarest;
use crate::plan::expression::has_rare_string;
use regex_syntax::hir::{Hir, HirKind};

/// With fewer bytes to a hit, streams over all rows are faster.
const SPARSE_BYTES: usize = 4 << 10;
/// So many hits more than the bytes so far allow are let pass.
const SLACK_HITS: usize = 16;
/// Shorter stretches of views are not worth a search of their own.
const STRETCH_BYTES: usize = 4 << 10;
/// Rows of one stretch at most: where they begin stays in the second-level cache.
const STRETCH_ROWS: usize = 16 << 10;

/// A string that every match holds.
#[derive(Debug)]
pub(super) struct RowString {
    finder: Finder,
    /// The expression is the string.
    is_whole: bool,
}

impl RowString {
    /// The string of an expression, where looking for it is likely to be worth it.
    pub(super) fn new(hir: &Hir) -> Option<RowString> {
        if let HirKind::Literal(literal) = hir.kind() {
            let finder = Finder::new(&literal.0);
            return Some(RowString { finder, is_whole: true });
        }
        let string = rarest(hir).filter(|_| has_rare_string(hir))?;
        Some(RowString { finder: Finder::new(string), is_whole: false })
    }

    /// Sets the bits of matching rows, of which `confirm` decides those that hold the string, up to
    /// where the string is dense; the first row that was not searched.
    pub(super) fn run<O: Copy + Into<i64>>(
        &self,
        values: &[u8],
        offsets: &[O],
        confirm: &dyn Fn(&[u8]) -> bool,
        out: &mut Bitmap,
    ) -> usize {
        let offset = |row: usize| offsets[row].into() as usize;
        let rows = offsets.len() - 1;
        let first = offset(0);
        let text = &values[..offset(rows)];
        let (mut at, mut row, mut spent) = (first, 0, 0);
        while let Some(found) = self.finder.find(text, at) {
            row = row_of(found, row, rows, &offset);
            let (start, end) = (offset(row), offset(row + 1));
            if found + self.finder.string().len() > end {
                // The string stands across two rows.
                at = found + 1;
                continue;
            }
            if self.is_whole || confirm(&values[start..end]) {
                out.set(row, true);
            }
            at = end;
            spent += SPARSE_BYTES;
            if spent > at - first + SLACK_HITS * SPARSE_BYTES {
                return row + 1;
            }
        }
        rows
    }

    /// Sets the bits of matching rows of views, as [`RowString::run`] does for rows with offsets;
    /// the first row that was not searched.
    pub(super) fn run_views(
        &self,
        views: &[[u8; 16]],
        buffers: &[&[u8]],
        confirm: &dyn Fn(&[u8]) -> bool,
        out: &mut Bitmap,
    ) -> usize {
        let mut stretch = Stretch::default();
        let (mut first, mut searched, mut hits) = (0, 0, 0);
        while first < views.len() {
            stretch.fill(&views[first..]);
            let rows = stretch.starts.len();
            if stretch.is_short() && first + rows < views.len() {
                return first;
            }
            let text = buffers.get(stretch.buffer).map_or(&[][..], |buffer| &buffer[..stretch.end]);
            let (mut at, mut row) = (stretch.starts[0], 0);
            while let Some(found) = self.finder.find(text, at) {
                row = row_of(found, row, rows - 1, &|row| stretch.starts[row]);
                let bytes = parts(&views[first + row]).0;
                let (start, end) = (stretch.starts[row], stretch.starts[row] + bytes);
                if bytes <= INLINE_BYTES || found + self.finder.string().len() > end {
                    // The string stands across two rows, or between them.
                    at = found + 1;
                    continue;
                }
                if self.is_whole || confirm(&text[start..end]) {
                    out.set(first + row, true);
                }
                at = end;
                hits += 1;
                if hits > (searched + at - stretch.starts[0]) / SPARSE_BYTES + SLACK_HITS {
                    if stretch.has_inline {
                        self.run_inline(&views[first..=first + row], first, confirm, out);
                    }
                    return first + row + 1;
                }
            }
            if stretch.has_inline {
                self.run_inline(&views[first..first + rows], first, confirm, out);
            }
            searched += stretch.strings();
            first += rows;
        }
        views.len()
    }

    /// Sets the bits of matching rows whose strings lie in the views, the first one being `first`.
    fn run_inline(
        &self,
        views: &[[u8; 16]],
        first: usize,
        confirm: &dyn Fn(&[u8]) -> bool,
        out: &mut Bitmap,
    ) {
        let string = self.finder.string();
        if string.len() > INLINE_BYTES {
            return;
        }
        for (row, view) in views.iter().enumerate() {
            let bytes = parts(view).0;
            if bytes > INLINE_BYTES || bytes < string.len() {
                continue;
            }
            let text = &view[4..4 + bytes];
            let is_there = string.is_empty() || text.windows(string.len()).any(|window| window == string);
            if is_there && (self.is_whole || confirm(text)) {
                out.set(first + row, true);
            }
        }
    }
}

/// Rows whose strings lie one behind the other in one buffer, but for those in the views.
#[derive(Default)]
pub(super) struct Stretch {
    pub(super) buffer: usize,
    /// Where each row's string begins; rows in views take no bytes.
    pub(super) starts: Vec<usize>,
    /// Where the last string ends.
    pub(super) end: usize,
    /// Whether a view holds its string.
    pub(super) has_inline: bool,
}

impl Stretch {
    /// The longest stretch that begins with the first view; at least one row.
    pub(super) fn fill(&mut self, views: &[[u8; 16]]) {
        self.starts.clear();
        let (mut buffer, mut gaps) = (None, 0);
        (self.end, self.has_inline) = (0, false);
        for view in &views[..views.len().min(STRETCH_ROWS)] {
            let (bytes, number, offset) = parts(view);
            if bytes > INLINE_BYTES {
                let gap = offset.wrapping_sub(self.end);
                let follows = buffer == Some(number) && offset >= self.end;
                // As many bytes between strings as there are in them would be read for nothing.
                if buffer.is_some() && (!follows || gaps + gap > self.strings() + STRETCH_BYTES) {
                    break;
                }
                if buffer.is_none() {
                    self.starts.fill(offset);
                    buffer = Some(number);
                } else {
                    gaps += gap;
                }
                self.starts.push(offset);
                self.end = offset + bytes;
            } else {
                self.starts.push(self.end);
                self.has_inline = true;
            }
        }
        self.buffer = buffer.map_or(usize::MAX, |buffer| buffer as usize);
    }

    /// Whether so little lies together that it is not worth a search of its own.
    pub(super) fn is_short(&self) -> bool {
        self.strings() < STRETCH_BYTES && self.starts.len() < STRETCH_ROWS
    }

    /// The bytes from the first string to the end of the last one.
    pub(super) fn strings(&self) -> usize {
        self.end - self.starts.first().copied().unwrap_or(0).min(self.end)
    }
}

/// The row that holds byte `at`, which lies in `row` or behind it.
pub(super) fn row_of(at: usize, row: usize, rows: usize, offset: &impl Fn(usize) -> usize) -> usize {
    // Doubles the distance while the row there begins before the byte, then halves it.
    let (mut low, mut step) = (row, 1);
    while low + step <= rows && offset(low + step) <= at {
        low += step;
        step *= 2;
    }
    while step > 0 {
        if low + step <= rows && offset(low + step) <= at {
            low += step;
        }
        step /= 2;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Views of strings in two buffers, in order and out of it, with bytes between them.
    #[test]
    fn stretches_of_views_are_searched() {
        let texts: Vec<String> = (0..900u32)
            .map(|row| {
                let filler = "x".repeat((row.wrapping_mul(0x9E37_79B9) >> 26) as usize);
                let needle = if row % 41 == 3 { "needle" } else { "need" };
                format!("{}{needle}{filler}", &filler[..filler.len() / 2])
            })
            .collect();
        for (gap, order, kept) in [(0, 1, 1), (3, 1, 1), (40, 1, 1), (900, 1, 1), (0, 7, 1), (0, 1, 9)] {
            let (mut buffers, mut views) = (vec![Vec::new(); 2], Vec::new());
            for at in 0..texts.len() {
                let text = texts[at * order % texts.len()].as_bytes();
                let number = usize::from(at >= 500);
                let mut view = [0; 16];
                view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
                if text.len() <= INLINE_BYTES {
                    view[4..4 + text.len()].copy_from_slice(text);
                } else {
                    // Between strings lies what is looked for, and begins in front of the next one.
                    let between = b"needle".iter().cycle().take(gap);
                    buffers[number].extend(between);
                    view[8..12].copy_from_slice(&(number as u32).to_le_bytes());
                    view[12..].copy_from_slice(&(buffers[number].len() as u32).to_le_bytes());
                    buffers[number].extend_from_slice(text);
                }
                if at % kept == 0 {
                    views.push(view);
                }
            }
            if order != 1 {
                views.reverse();
            }
            let buffers: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
            let row_of_view = |view: &[u8; 16]| {
                let (slice, start, end) = super::super::rows::place(view, &buffers);
                slice[start..end].to_vec()
            };
            for pattern in ["needle", "needlex*$", "eneedle", "needl"] {
                let hir = regex_syntax::parse(pattern).unwrap();
                let Some(string) = RowString::new(&hir) else { continue };
                let regex = regex::bytes::Regex::new(pattern).unwrap();
                let mut rows = Bitmap::zeros(views.len());
                let confirm = |row: &[u8]| regex.is_match(row);
                let searched = string.run_views(&views, &buffers, &confirm, &mut rows);
                for (row, view) in views.iter().enumerate() {
                    let expected = row < searched && regex.is_match(&row_of_view(view));
                    assert_eq!(rows.get(row), expected, "{pattern} {gap} {order} row {row} of {searched}");
                }
                let is_searched = order == 1 && gap < 900 && kept == 1;
                assert!(
                    searched == views.len() || !is_searched,
                    "{pattern} {gap} {order} {kept}: {searched}"
                );
            }
        }
    }

    #[test]
    fn a_byte_leads_to_its_row() {
        let offsets = [3usize, 3, 4, 4, 4, 90, 91, 91, 200, 200];
        for at in 3..200 {
            let expected = (0..9).find(|&row| offsets[row] <= at && at < offsets[row + 1]).unwrap();
            for row in 0..=expected {
                assert_eq!(row_of(at, row, 9, &|row| offsets[row]), expected, "{at} from {row}");
            }
        }
    }
}
