//! Mispredicted branches, from the order in which blocks run.
//!
//! **What.** A conditional branch went to its target or not as the next block of its thread says,
//! and each thread's predictor is asked what it had expected. **Why this way.** How often a branch
//! is taken follows from counters; whether it was predicted depends on the order of outcomes.
//! **Leaves out** targets of indirect branches and returns.
//!
//! A signal handler that runs between a branch and the block it goes to hides the outcome; such
//! branches are counted apart, not guessed.

use instrument::tool::{BlockView, Transfer};
use simulate::{Outcome, Prediction, Predictor};

/// A conditional branch at the end of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    /// Its own address.
    pub(crate) ip: u64,
    /// The address behind it.
    pub(crate) next: u64,
    /// Where it may go.
    pub(crate) target: u64,
}

/// What was found of branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Conditional branches whose outcome was seen.
    pub resolved: u64,
    /// Those whose outcome a signal hid.
    pub hidden: u64,
    /// Mispredictions, by index into [`instrument::Profile::blocks`].
    pub mispredicted: Vec<u64>,
}

/// What one thread has of its own.
#[derive(Default)]
pub(super) struct Thread {
    predictor: Option<Predictor>,
    pending: Option<(u32, Branch)>,
}

impl Predicted {
    /// Thread `thread` enters block `number` at `address`: the branch before it is decided.
    pub(super) fn block(
        &mut self,
        thread: &mut Thread,
        new: fn() -> Predictor,
        address: u64,
        number: u32,
        ends: Option<Branch>,
    ) {
        if let Some((block, branch)) = thread.pending.take() {
            match branch.outcome(address) {
                None => self.hidden += 1,
                Some(outcome) => {
                    self.resolved += 1;
                    let predictor = thread.predictor.get_or_insert_with(new);
                    let wrong = predictor.branch(branch.ip, outcome) == Prediction::Wrong;
                    let block = block as usize;
                    if self.mispredicted.len() <= block {
                        self.mispredicted.resize(block + 1, 0);
                    }
                    self.mispredicted[block] += u64::from(wrong);
                }
            }
        }
        thread.pending = ends.map(|branch| (number, branch));
    }
}

impl Thread {
    /// Whether an outcome is still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Branch {
    /// The one at the end of `block`.
    pub(crate) fn of(block: &BlockView<'_>) -> Option<Branch> {
        let last = block.last()?;
        let Transfer::Conditional(target) = last.transfer() else { return None };
        Some(Branch { ip: last.address(), next: last.address() + last.bytes().len() as u64, target })
    }

    /// The outcome when control comes to `address`; `None` where it came there by other means.
    pub(crate) fn outcome(&self, address: u64) -> Option<Outcome> {
        match address {
            _ if address == self.next => Some(Outcome::NotTaken),
            _ if address == self.target => Some(Outcome::Taken),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_hides_an_outcome() {
        let branch = Branch { ip: 0x10, next: 0x12, target: 0x40 };
        let (mut predicted, mut thread) = (Predicted::default(), Thread::default());
        let new = simulate::PREDICTORS[0].new;
        for address in [0x12, 0x40, 0x77] {
            predicted.block(&mut thread, new, 0, 3, Some(branch));
            predicted.block(&mut thread, new, address, 4, None);
        }
        assert_eq!((predicted.resolved, predicted.hidden), (2, 1));
    }
}
