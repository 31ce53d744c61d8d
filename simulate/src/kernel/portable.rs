//! The kernel for any processor: search, then shift.

use super::{Fill, Row, Tag, TouchRow, Touched};

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl<T: Tag, const LANES: usize> TouchRow<T, LANES> for Portable {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<T, LANES>, tag: T, fill: F) -> Touched {
        let tags = &mut row.0;
        let (last, touched) = match tags.iter().position(|&other| other == tag) {
            Some(way) => (way, Touched::Hit),
            None => match fill.moved(0) {
                0 => return Touched::Missed,
                lanes => (31 - lanes.leading_zeros() as usize, Touched::Missed),
            },
        };
        for lane in (1..LANES).rev() {
            if lane <= last {
                tags[lane] = tags[lane - 1];
            }
        }
        tags[0] = tag;
        touched
    }
}
