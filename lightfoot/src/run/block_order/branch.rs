//! Mispredicted branches, from the order in which blocks run.
//!
//! **What.** The next block of a thread shows whether a conditional branch was taken, and the
//! thread's predictor says what it expected. **Why this way.** Counters tell how often a branch is
//! taken, but whether it was predicted depends on the order of outcomes. **Leaves out** targets of
//! indirect branches and returns.
//!
//! A signal handler that runs between a branch and its successor hides the outcome; such branches
//! are counted separately, not guessed.

use super::region::State;
use instrument::tool::{BlockView, Transfer};
use simulate::{Outcome, Prediction, Predictor};

/// A conditional branch at the end of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    /// Address of the branch.
    pub(crate) ip: u64,
    /// The address behind it.
    pub(crate) next: u64,
    /// Address of its target.
    pub(crate) target: u64,
}

/// The results of branch prediction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Number of conditional branches whose outcome was seen.
    pub resolved: u64,
    /// Number of conditional branches whose outcome was hidden by a signal.
    pub hidden: u64,
    /// Mispredictions, by index into [`instrument::Profile::blocks`].
    pub mispredicted: Vec<u64>,
}

/// The state of one thread.
#[derive(Default)]
pub(super) struct Thread {
    predictor: Option<Predictor>,
    pending: Option<(u32, Branch, State)>,
}

impl Predicted {
    /// Thread `thread` enters block `number` at `address`, which decides the branch before it. A
    /// branch outside of the region that is counted trains the predictor and counts for nothing.
    pub(super) fn block(
        &mut self,
        thread: &mut Thread,
        new: fn() -> Predictor,
        address: u64,
        number: u32,
        (ends, state): (Option<Branch>, State),
    ) {
        if let Some((block, branch, state)) = thread.pending.take() {
            let counted = u64::from(state == State::Open);
            match branch.outcome(address) {
                None => self.hidden += counted,
                Some(outcome) => {
                    self.resolved += counted;
                    let predictor = thread.predictor.get_or_insert_with(new);
                    let wrong = predictor.branch(branch.ip, outcome) == Prediction::Wrong;
                    let block = block as usize;
                    if self.mispredicted.len() <= block {
                        self.mispredicted.resize(block + 1, 0);
                    }
                    self.mispredicted[block] += counted * u64::from(wrong);
                }
            }
        }
        thread.pending = ends.map(|branch| (number, branch, state));
    }
}

impl Thread {
    /// Whether the outcome of the last branch is still unknown.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Branch {
    /// The conditional branch at the end of `block`, if there is one.
    pub(crate) fn of(block: &BlockView<'_>) -> Option<Branch> {
        let last = block.last()?;
        let Transfer::Conditional(target) = last.transfer() else { return None };
        Some(Branch { ip: last.address(), next: last.address() + last.bytes().len() as u64, target })
    }

    /// The outcome if control arrives at `address`; `None` if it came there by other means.
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
            predicted.block(&mut thread, new, 0, 3, (Some(branch), State::Open));
            predicted.block(&mut thread, new, address, 4, (None, State::Open));
        }
        assert_eq!((predicted.resolved, predicted.hidden), (2, 1));
    }

    #[test]
    fn branches_outside_of_the_region_train_and_do_not_count() {
        let branch = Branch { ip: 0x10, next: 0x12, target: 0x40 };
        let (mut predicted, mut thread) = (Predicted::default(), Thread::default());
        let new = simulate::PREDICTORS[0].new;
        let mut pass = |predicted: &mut Predicted, state: State| {
            predicted.block(&mut thread, new, 0, 3, (Some(branch), state));
            predicted.block(&mut thread, new, 0x40, 4, (None, state));
        };
        (0..100).for_each(|_| pass(&mut predicted, State::Closed));
        assert_eq!((predicted.resolved, predicted.hidden), (0, 0));
        assert_eq!(predicted.mispredicted.iter().sum::<u64>(), 0, "{predicted:?}");
        (0..100).for_each(|_| pass(&mut predicted, State::Open));
        assert_eq!(predicted.resolved, 100);
        assert_eq!(predicted.mispredicted.iter().sum::<u64>(), 0, "it was learnt outside");
    }
}
