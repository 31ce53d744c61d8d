//! Counters of fragment exits in the thread's context, and the code that increments them.

use super::assembler::Assembler;
use crate::target::layout::context;

/// Context offset of counter `number`.
pub(crate) fn count_address(number: u32) -> u32 {
    context::COUNTERS + 8 * number
}

/// Emits an increment of counter `number`. If flags are live, it works in rax, which leaves them
/// alone, and saves and restores rax.
pub(crate) fn count(code: &mut Assembler, number: u32, flags_free: bool) {
    let at = count_address(number);
    if flags_free {
        return code.increment(at);
    }
    code.store(0, context::TEMP);
    count_in_rax(code, number);
    code.load(0, context::TEMP);
}

/// Emits an increment of counter `number` that leaves flags alone and overwrites rax. The caller
/// has saved rax.
pub(crate) fn count_in_rax(code: &mut Assembler, number: u32) {
    let at = count_address(number);
    code.load(0, at);
    code.advance(0, 1);
    code.store(0, at);
}
