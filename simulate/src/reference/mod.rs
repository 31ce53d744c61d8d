//! The slow twins: a second, direct implementation of every fast path of this crate.
//!
//! | twin | of |
//! |---|---|
//! | [`Naive`] | `Hierarchy`, including write-backs |
//! | [`NaiveRefined`] | `Refined` |
//! | [`NaiveDistances`] | `StackDistances` |
//! | [`NaivePerceptron`] | `Perceptron` |
//!
//! **Why this way.** A reader can see that they are right; tests over random machines and streams
//! compare every fast path with its twin. **Cost.** About a microsecond per reference.

mod distance;
mod hierarchy;
mod perceptron;
mod refined;
mod refined_level;
mod walk;

pub use distance::NaiveDistances;
pub use hierarchy::{Found, Naive, NaiveCache};
pub use perceptron::NaivePerceptron;
pub use refined::NaiveRefined;
