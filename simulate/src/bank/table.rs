//! The rows of a bank whose sets have at most sixteen ways.

use crate::front::Front;
use crate::kernel::{Row, RowVec, Tag};
use bytemuck::Pod;

/// Rows of a fixed length, and the rule by which the row of a set is found.
pub(super) struct Table<T, const LANES: usize> {
    pub(super) rows: RowVec<T, LANES>,
    pub(super) index: Index,
    /// The last tag of each set; only for outer levels that every missing line enters.
    pub(super) front: Option<Front<T>>,
}

/// The rule by which the set of a line is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    Mask,
    Modulo,
}

impl<T: Tag + Pod, const LANES: usize> Table<T, LANES>
where
    Row<T, LANES>: Pod,
{
    pub(super) fn new(sets: usize, index: Index) -> Table<T, LANES> {
        let mut rows = RowVec::zeroed(sets);
        // Rows of zeros are empty already, and stay unused.
        if bytemuck::bytes_of(&T::EMPTY).iter().any(|&byte| byte != 0) {
            rows.rows_mut().fill(Row([T::EMPTY; LANES]));
        }
        Table { rows, index, front: None }
    }

    pub(super) fn add_front(&mut self) {
        self.front = Some(Front::new(self.rows.rows().len()));
    }

    /// Empties the rows `noted`; all rows if that is `None`.
    pub(super) fn empty(&mut self, noted: Option<&[u32]>) {
        let empty = Row([T::EMPTY; LANES]);
        let rows = self.rows.rows_mut();
        match noted {
            // Notes repeat rows that were touched often: to write one twice costs less than to
            // look for it.
            Some(noted) => noted.iter().for_each(|&row| rows[row as usize] = empty),
            None => rows.fill(empty),
        }
        self.front.iter_mut().for_each(|front| front.empty(noted));
    }
}
