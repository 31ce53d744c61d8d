//! The kernel for any processor: search, then shift.

use super::row::Row;
use super::tag::Tag;
use super::touch_row::{Fill, TouchRow};
use super::vectors::Vectors;

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Vectors for Portable {}

impl<T: Tag, const LANES: usize> TouchRow<T, LANES> for Portable {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<T, LANES>, tag: T, fill: F) -> u32 {
        let tags = &mut row.0;
        // How far lanes move: to where the tag was, or to the last way if it enters.
        let (last, found) = match tags.iter().position(|&other| other == tag) {
            Some(way) => (way, 1 << way),
            None => match fill.moved(0) {
                0 => return 0,
                lanes => (31 - lanes.leading_zeros() as usize, 0),
            },
        };
        // All lanes are visited, so that the loop has a fixed length and becomes vector code.
        for lane in (1..LANES).rev() {
            if lane <= last {
                tags[lane] = tags[lane - 1];
            }
        }
        tags[0] = tag;
        found
    }
}
