//! What a conditional branch did, and whether that was expected.

/// Whether a branch went where it was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// It did.
    Right,
    /// It did not.
    Wrong,
}

/// Which way a conditional branch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// To its target.
    Taken,
    /// To the next instruction.
    NotTaken,
}
