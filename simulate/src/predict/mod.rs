//! Branch predictors by name: one file and one line in [`PREDICTORS`] for each.
//!
//! **Leaves out** targets of indirect branches and returns, and everything that TAGE adds: real
//! processors of today mispredict less. Records carry no branches; the caller feeds
//! [`Predictor::branch`].

mod gshare;
mod outcome;
pub(crate) mod perceptron;

pub use gshare::Gshare;
pub use outcome::{Outcome, Prediction};
pub use perceptron::Perceptron;

/// Any predictor.
#[derive(Clone, Debug)]
pub enum Predictor {
    /// Two-bit counters by address and history.
    Gshare(Gshare),
    /// Perceptrons.
    Perceptron(Perceptron),
}

/// A predictor by name.
#[derive(Clone, Copy, Debug)]
pub struct NamedPredictor {
    /// What `--predictor` accepts.
    pub name: &'static str,
    /// A new one.
    pub new: fn() -> Predictor,
}

/// All predictors; the first is the default.
pub const PREDICTORS: &[NamedPredictor] = &[
    NamedPredictor { name: "gshare", new: || Predictor::Gshare(Gshare::default()) },
    NamedPredictor { name: "perceptron", new: || Predictor::Perceptron(Perceptron::default()) },
];

impl Predictor {
    /// The conditional branch at `ip` is executed.
    pub fn branch(&mut self, ip: u64, outcome: Outcome) -> Prediction {
        match self {
            Predictor::Gshare(gshare) => gshare.branch(ip, outcome),
            Predictor::Perceptron(perceptron) => perceptron.branch(ip, outcome),
        }
    }
}
