//! Regular expressions by bitwise data parallelism.

pub mod compile;
pub mod kernel;
pub mod line;
mod literal;
pub mod map;
pub mod plan;
pub mod program;
pub mod reference;
pub mod regex;
pub mod transpose;

pub use regex::{Regex, RegexBuilder, RegexSet};
