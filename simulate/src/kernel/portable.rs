//! The kernel for any processor: search, then shift.

use super::{Fill, Row, TouchRow, Touched};

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl<const LANES: usize> TouchRow<LANES> for Portable {
    #[inline(always)]
    fn touch_row(self, row: &mut Row<LANES>, line: u64, fill: Fill) -> Touched {
        let tags = &mut row.0;
        let (last, touched) = match tags.iter().position(|&tag| tag == line) {
            Some(way) => (way, Touched::Hit),
            None if fill.enters == 0 => return Touched::Missed,
            None => (fill.last.trailing_zeros() as usize, Touched::Missed),
        };
        for lane in (1..LANES).rev() {
            if lane <= last {
                tags[lane] = tags[lane - 1];
            }
        }
        tags[0] = line;
        touched
    }
}
