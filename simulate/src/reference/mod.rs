//! The slow twins: every fast path of this crate once more, as directly as it can be said.
//!
//! | twin | of |
//! |---|---|
//! | [`Naive`] | `Hierarchy`, write-backs included |
//! | [`NaiveRefined`] | `Refined` |
//! | [`NaiveDistances`] | `StackDistances` |
//! | [`NaivePerceptron`] | `Perceptron` |
//!
//! **Why this way.** They are meant to be right at a glance; every fast path is held against one by
//! a test over random machines and streams. **Cost.** About a microsecond per reference.

mod distance;
mod hierarchy;
mod perceptron;
mod refined;
mod walk;

pub use distance::NaiveDistances;
pub use hierarchy::{Found, Naive, NaiveCache};
pub use perceptron::NaivePerceptron;
pub use refined::NaiveRefined;
