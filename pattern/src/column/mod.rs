//! Columns of strings, as Arrow and the engines on top of it keep them: which rows match, where,
//! and what is in their groups.

mod error;
mod expression;
mod extract;
mod gather;
mod in_place;
mod output;
mod program;
mod rows;
mod set;
mod string;

pub use crate::bits::Bitmap;
pub use error::ColumnError;
pub use expression::ColumnRegex;
pub use extract::Occurrences;
pub use output::StringColumn;
pub use rows::Column;
pub use set::ColumnRegexSet;
