//! What merged reports have besides rows of code: rows of data, the miss curve, processes.
//!
//! Their rows are known by more than a name, so they have a table of their own ([`table`]), whose
//! rows keep all fields of the report that they are from.

mod objects;
mod parts;
mod table;

pub(super) use objects::{has_page, Objects};
pub(super) use parts::{Curve, Processes};

use table::{Adding, Column};

/// A column of numbers that add up.
const fn count(field: &'static str) -> Column {
    Column { field, adding: Adding::Count }
}
