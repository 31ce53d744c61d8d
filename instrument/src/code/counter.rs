//! Counters of fragment exits and running sums in the thread's context, and the code that advances
//! them.

use super::assembler::{gpr, in_context, Assembler};
use crate::target::layout::context;
use assembler::{Alu, Memory, Size};

/// What one traversal of a fragment up to an exit adds to the thread's running sums: instructions,
/// loads and stores. All are 0 where nobody asked for sums.
pub(crate) type Weights = [u16; 3];

/// Context offset of counter `number`.
pub(crate) fn count_address(number: u32) -> u32 {
    context::COUNTERS + 8 * number
}

/// Context offset of the running sum with this index.
pub(crate) fn tick_address(index: usize) -> u32 {
    context::TICKS + 8 * index as u32
}

/// Emits an increment of counter `number`, and adds `weights` to the running sums. If flags are
/// live, it works in rax, which leaves them alone, and saves and restores rax.
pub(crate) fn count(code: &mut Assembler, number: u32, weights: Weights, flags_free: bool) {
    if flags_free {
        code.increment(count_address(number));
        for (index, weight) in advancing(weights) {
            code.code().alu_immediate(Alu::Add, Size::Qword, in_context(tick_address(index)), weight);
        }
        return;
    }
    code.store(0, context::TEMP);
    count_in_rax(code, number, weights);
    code.load(0, context::TEMP);
}

/// Emits what [`count`] does, leaves flags alone and overwrites rax. The caller has saved rax.
pub(crate) fn count_in_rax(code: &mut Assembler, number: u32, weights: Weights) {
    let mut add = |at: u32, more: i32| {
        code.load(0, at);
        code.code().lea(Size::Qword, gpr(0), Memory::at(gpr(0)).plus(more));
        code.store(0, at);
    };
    add(count_address(number), 1);
    advancing(weights).for_each(|(index, weight)| add(tick_address(index), weight));
}

/// The running sums that advance, with what is added to them.
fn advancing(weights: Weights) -> impl Iterator<Item = (usize, i32)> {
    weights.into_iter().map(i32::from).enumerate().filter(|(_, weight)| *weight != 0)
}
