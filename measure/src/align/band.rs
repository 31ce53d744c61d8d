//! Bands restrict the path of an alignment: for each record of one trace, a range of records of the
//! other.
//!
//! Both ends of the ranges never decrease, so the cells of an anti-diagonal are contiguous and a
//! band is as easy to sweep as the whole table.

use std::ops::Range;

/// A restriction of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Band {
    /// No restriction: the optimum.
    Whole,
    /// At most this share of the longer trace to either side of the straight line between the
    /// corners, and at least one record. For traces whose runs took different times.
    Slanted(f64),
    /// Fewer than this many records to either side of the diagonal, widened by the difference of
    /// the lengths (Sakoe and Chiba 1978).
    Parallel(usize),
}

/// The range of columns of each row. No range is empty, both ends never decrease, the first row
/// contains column 0 and the last row the last column.
pub(super) fn rows(band: Band, rows: usize, columns: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = (0..rows).map(|row| columns_of(band, row, rows, columns)).collect();
    connect(&mut out, columns);
    out
}

fn columns_of(band: Band, row: usize, rows: usize, columns: usize) -> Range<usize> {
    match band {
        Band::Whole => 0..columns,
        Band::Slanted(share) => {
            // The straight line between the corners, plus the band's width to either side.
            let slope = (columns - 1) as f64 / (rows.max(2) - 1) as f64;
            let centre = row as f64 * slope;
            let reach = (share.clamp(0.0, 1.0) * rows.max(columns) as f64).max(1.0).max(slope);
            let low = (centre - reach).ceil().max(0.0) as usize;
            low.min(columns - 1)..((centre + reach).floor() as usize + 1).min(columns)
        }
        Band::Parallel(window) => {
            let window = window.max(1);
            let low = (row + 1).saturating_sub(window + rows.saturating_sub(columns));
            low.min(columns - 1)..(row + window + columns.saturating_sub(rows)).min(columns)
        }
    }
}

/// Repairs the effects of rounding: ends never decrease, consecutive rows overlap or touch, and
/// both corners belong to the band.
fn connect(rows: &mut [Range<usize>], columns: usize) {
    let last = rows.len() - 1;
    // The corners belong to every band.
    rows[0].start = 0;
    rows[last].end = columns;
    for row in 1..rows.len() {
        rows[row].end = rows[row].end.max(rows[row - 1].end);
    }
    for row in (0..last).rev() {
        rows[row].start = rows[row].start.min(rows[row + 1].start);
        // A step advances by at most one column, so the next row must begin where this one still
        // is.
        rows[row].end = rows[row].end.max(rows[row + 1].start).max(rows[row].start + 1);
    }
    for row in 1..rows.len() {
        rows[row].end = rows[row].end.max(rows[row - 1].end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn band() -> impl Strategy<Value = Band> {
        let slanted = (0.0..1.2_f64).prop_map(Band::Slanted);
        prop_oneof![Just(Band::Whole), slanted, (0..50_usize).prop_map(Band::Parallel)]
    }

    proptest! {
        #[test]
        fn a_path_always_exists(band in band(), n in 1..60_usize, m in 1..60_usize) {
            let rows = rows(band, n, m);
            prop_assert_eq!((rows[0].start, rows[n - 1].end), (0, m));
            for row in &rows {
                prop_assert!(row.start < row.end && row.end <= m);
            }
            for pair in rows.windows(2) {
                prop_assert!(pair[0].start <= pair[1].start && pair[0].end <= pair[1].end);
                prop_assert!(pair[1].start <= pair[0].end);
            }
        }
    }

    #[test]
    fn a_tenth_is_a_tenth() {
        let rows = rows(Band::Slanted(0.1), 1000, 1000);
        assert_eq!(rows[500], 400..601);
        assert_eq!((rows[0].clone(), rows[999].clone()), (0..101, 899..1000));
        let cells: usize = rows.iter().map(|row| row.len()).sum();
        assert!((180_000..200_000).contains(&cells), "{cells}");
    }
}
