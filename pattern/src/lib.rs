//! Regular expressions by bitwise data parallelism.

pub mod line;
pub mod map;
pub mod plan;
pub mod regex;

pub use regex::{Regex, RegexBuilder, RegexSet};
