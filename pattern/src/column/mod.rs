//! Columns of strings in Arrow's layout: which rows match, where, what their groups hold, and rows
//! with matches replaced.
//!
//! Engines of tables keep a column of strings as values and offsets, or as views. A [`Column`]
//! borrows those slices, a [`ColumnRegex`] searches its rows, and a [`ColumnRegexSet`] does so for
//! many patterns at once. Each row is a haystack by itself, with the answers of one call of the
//! `regex` crate's bytes API.
//!
//! ```
//! use lightfoot_pattern::column::{Column, ColumnRegex, Occurrences};
//!
//! let column = Column::new(b"GET /a?u=1GET /bPOST /?u=22", &[0, 10, 16, 27])?;
//! let regex = ColumnRegex::new(r"u=(\d+)$")?;
//! assert_eq!(regex.scan(&column).ones().collect::<Vec<_>>(), [0, 2]);
//! assert_eq!(regex.first_spans(&column), [Some(7..10), None, Some(7..11)]);
//! assert_eq!(regex.extract(&column, 1)?.row(2), Some(&b"22"[..]));
//! let hidden = regex.replace(&column, b"u=?", Occurrences::All);
//! assert_eq!(hidden.row(2), Some(&b"POST /?u=?"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | rows | how they are searched |
//! |---|---|
//! | values and offsets | where they lie: a program reads where rows end from a stream beside the text |
//! | views whose strings lie one behind the other | where those lie, as far as they do |
//! | other views, and strings within views | copied to blocks in the first-level cache, a separator behind each |
//! | of an expression that needs a rare string | by that string, where values lie one behind the other, as views mostly do too |
//! | of an expression without a program, or few | one by one, by the automaton |
//! | for groups of an expression that begins with `^` | one by one, where one pass decides |
//! | for groups of an expression that begins with a string | those that match, in one pass behind that string |
//!
//! **Leaves out** dictionaries and runs, whose values are columns to be searched once, and threads:
//! parts of a column are columns, and an expression may be used by many threads.

mod anchored;
mod behind_string;
mod error;
mod expression;
mod extract;
mod gather;
mod in_place;
mod in_views;
mod on_card;
mod one_pass;
mod output;
mod program;
mod replacement;
mod rows;
mod set;
mod steps;
mod string;

pub use crate::bits::Bitmap;
pub use error::ColumnError;
pub use expression::ColumnRegex;
pub use extract::Occurrences;
pub use on_card::{ColumnOnCard, RegexOnCard};
pub use output::StringColumn;
pub use rows::Column;
pub use set::ColumnRegexSet;
