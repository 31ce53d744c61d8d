//! Calls a benchmark, with marks around the call that counts.

use crate::request::start;
use region::{region_begin, region_end};
use std::hint::black_box;

/// How often a benchmark is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passes {
    /// Once, to see that it works.
    Once,
    /// Once to warm up, then between marks.
    WarmThenMarked,
    /// Twice between marks, of which the second pair counts. So the code of the marks is warm too.
    MarkedTwice,
    /// Once, between marks.
    Marked,
}

/// Calls the routine of a benchmark.
#[derive(Debug)]
pub struct Bencher {
    passes: Passes,
    called: bool,
}

impl Bencher {
    pub(crate) fn new(passes: Passes) -> Bencher {
        Bencher { passes, called: false }
    }

    /// Whether the benchmark has called a routine.
    pub(crate) fn has_called(&self) -> bool {
        self.called
    }

    /// Counts `routine` with the input that `input` makes. Making the input and dropping the output
    /// are not counted.
    pub fn measure<I, O>(&mut self, mut input: impl FnMut() -> I, mut routine: impl FnMut(I) -> O) {
        self.called = true;
        match self.passes {
            Passes::Once | Passes::WarmThenMarked => drop(black_box(routine(black_box(input())))),
            Passes::MarkedTwice => drop(black_box(marked(black_box(input()), &mut routine))),
            Passes::Marked => {}
        }
        if self.passes == Passes::Once {
            return;
        }
        let input = black_box(input());
        start();
        drop(black_box(marked(input, &mut routine)));
    }
}

/// Calls a routine between marks. The routine is one that the compiler does not know, so that none
/// of its work moves to the other side of a mark.
#[inline(never)]
fn marked<I, O>(input: I, routine: &mut dyn FnMut(I) -> O) -> O {
    let routine = black_box(routine);
    region_begin!("benchmark");
    let output = routine(input);
    region_end!("benchmark");
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_has_an_input_of_its_own() {
        let all = [Passes::Once, Passes::WarmThenMarked, Passes::MarkedTwice, Passes::Marked];
        for (passes, calls) in all.into_iter().zip([1, 2, 2, 1]) {
            let (mut made, mut called) = (0, Vec::new());
            let mut bencher = Bencher::new(passes);
            assert!(!bencher.has_called());
            let input = || {
                made += 1;
                made
            };
            bencher.measure(input, |input| called.push(input));
            assert!(bencher.has_called());
            assert_eq!(called, (1..=calls).collect::<Vec<_>>(), "{passes:?}");
        }
    }
}
