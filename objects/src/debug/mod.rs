//! Types of data from DWARF: of variables, and of what a call has allocated.
//!
//! ```text
//! entries   descriptions of a unit as plain rows: parents, names, types, ranges
//! layout    a type as its fields: names, offsets, sizes
//! result    the type of what a call returned, by what the code does with it
//! function  the variables of a function, and where in its frame they are
//! generic   the type by which a function of a library was instantiated
//! ```

pub(crate) mod entries;
pub(crate) mod function;
pub(crate) mod generic;
pub(crate) mod layout;
pub(crate) mod result;
