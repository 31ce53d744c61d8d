//! Which data a program misses: simulated misses by object, by type and by field.
//!
//! People mend data, and a profile of code does not name it. The tool of this crate simulates the
//! references of a program as `lightfoot cache` does, and counts each miss for the object at its
//! address: blocks of a place of allocation, a variable, frames of a function, code of a file.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a program and a machine | misses by object | [`ObjectTool`] |
//! | addresses of another tool | what lies there at this time | [`ObjectMap`] |
//! | objects of another tool | the fields at some addresses | [`FieldNames`] |
//!
//! Programs that the program starts have address spaces and caches of their own, and the sums are
//! those of all; of a program that runs already, what it had before is memory of which nothing is
//! known.

#![forbid(unsafe_code)]

mod by_image;
mod debug;
mod field_names;
mod fields;
mod globals;
mod image;
mod locals;
mod map;
mod modules;
mod names;
mod order;
mod place;
mod recent;
mod region;
mod run_sites;
mod simulators;
mod tally;
mod tool;
mod typing;
mod uses;

pub use debug::layout::{Field, TypeLayout};
pub use field_names::{FieldNames, FieldPlace};
pub use map::{Earlier, ObjectKey, ObjectMap, Place};
pub use names::{FoundType, Frame, Named, Object, ObjectKind};
pub use order::{lines_now, propose, Proposal, Visits};
pub use tally::ObjectMisses;
pub use tool::{Found, ObjectTool};
pub use uses::Uses;
