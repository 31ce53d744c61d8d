//! Code that records calls, returns and jumps, with the thread's running sums.
//!
//! Each of them ends its fragment, behind all records of the traversal:
//!
//! ```text
//!   … where flags are free in the last block: check of the ring's limit
//!   last instruction: direct ones    words in the prologue, behind other pending records
//!                     others         words once the target is in rcx
//!                     the transfer
//! ```
//!
//! The fragment's own weights may not have been added to the running sums yet; then the words
//! contain them all the same. A jump by a register or memory whose target lies within its own
//! function is passed over:
//!
//! ```text
//!   flags to rax (if live) ─▶ target − start < bytes? ──yes──▶ flags back ──▶ the transfer
//!                                    └─no─▶ flags back ─▶ words ─────────────────▲
//! ```
//!
//! **Leaves out** which fragments record (`plan`), and what the words
//! mean (`call`).

use super::emitter::Emitter;
use super::transfer::BlockEnd;
use crate::call::CallRecords;
use crate::call::{self, CALL, DIRECT_CALL, DIRECT_JUMP, JUMP, REFERENCES, RETURN, TARGET};
use crate::code::assembler::{gpr, reg, Assembler};
use crate::code::counter::tick_address;
use crate::plan::block::{recorded_transfer, RecordedTransfer};
use crate::target::layout::context;
use assembler::{Alu, Condition, Gpr, Memory, Size};
use std::ops::Range;

/// The sums that each word has: their indices, and the size code that `first` may replace.
const WORDS: [(usize, u32); 2] = [(0, 0), (1, REFERENCES)];

impl Emitter {
    /// How the block's end is recorded, if it is.
    pub(super) fn transfer_to_record(&self, end: &BlockEnd) -> Option<RecordedTransfer> {
        end.last.filter(|_| self.calls != CallRecords::None)?;
        recorded_transfer(end.block)
    }

    /// Emits the words of a direct call or jump before it. They leave out its target, which is
    /// always the same.
    pub(super) fn direct_transfer(&mut self, end: &BlockEnd) {
        let first = match self.transfer_to_record(end) {
            Some(RecordedTransfer::DirectCall(_)) => DIRECT_CALL,
            Some(RecordedTransfer::DirectJump(_)) => DIRECT_JUMP,
            _ => return,
        };
        let block = end.block.number;
        for (first_sum, code) in self.words() {
            let code = if first_sum == 0 { first } else { code };
            let position = self.position(0);
            let value = self.scratch(1 << position);
            let at = 16 * self.pending;
            let added = if self.counted { [0; 3] } else { self.weights };
            word(&mut self.buffer.hot, (position, at), value, first_sum, added, call::what(block, code));
            self.appended();
        }
    }

    /// Emits the words of an indirect transfer. rax and rdx are free; for a call or jump, rcx holds
    /// the target. Flags stay as they are.
    pub(super) fn indirect_transfer(&mut self, end: &BlockEnd) {
        let Some(kind) = self.transfer_to_record(end) else { return };
        let first = match kind {
            RecordedTransfer::DirectCall(_) | RecordedTransfer::DirectJump(_) => return,
            RecordedTransfer::IndirectCall => CALL,
            RecordedTransfer::IndirectJump => JUMP,
            RecordedTransfer::Return => RETURN,
        };
        // Most jumps by a register or memory are those of a `switch`.
        let function = end.block.jumps_within.as_ref().filter(|_| kind == RecordedTransfer::IndirectJump);
        let inside = function.map(|function| self.jump_if_within(function));
        self.indirect_words(end, first);
        if let Some(inside) = inside {
            self.land_within(inside);
        }
    }

    /// Emits a jump for targets in rcx that lie within a function; returns its place. Uses rdx, and
    /// rax for flags that are live; both are free.
    fn jump_if_within(&mut self, function: &Range<u64>) -> usize {
        self.keep_flags();
        let code = &mut self.buffer.hot;
        code.mov_imm(reg::RDX, function.start.wrapping_neg());
        code.registers(Alu::Add, reg::RDX, reg::RCX);
        code.compare_imm(reg::RDX, (function.end - function.start) as i32);
        let inside = code.jump_if(Condition::Below);
        self.return_flags();
        inside
    }

    /// Emits where the jump at `inside` leads, behind the code that it passes over.
    fn land_within(&mut self, inside: usize) {
        if self.flags_free() {
            let code = &mut self.buffer.hot;
            return code.patch(inside, code.len());
        }
        let done = self.buffer.hot.jump();
        self.buffer.hot.patch(inside, self.buffer.hot.len());
        self.return_flags();
        self.buffer.hot.patch(done, self.buffer.hot.len());
    }

    /// Moves flags that are live to rax.
    fn keep_flags(&mut self) {
        if !self.flags_free() {
            self.buffer.hot.code().flags_to_ah();
            self.buffer.hot.code().set_if(Condition::Overflow, Gpr::RAX);
        }
    }

    /// Moves them back.
    fn return_flags(&mut self) {
        if !self.flags_free() {
            // The sum overflows if al is 1, which restores the overflow flag.
            self.buffer.hot.code().alu_immediate(Alu::Add, Size::Byte, Gpr::RAX, 0x7f);
            self.buffer.hot.code().ah_to_flags();
        }
    }

    /// Emits the words of an indirect transfer, the first of which has the size code `first`.
    fn indirect_words(&mut self, end: &BlockEnd, first: u32) {
        let block = end.block.number;
        let added = if self.counted { [0; 3] } else { self.weights };
        let words = self.words();
        let code = &mut self.buffer.hot;
        code.load(reg::RDX, context::RING_POSITION);
        for (first_sum, size_code) in words {
            let size_code = if first_sum == 0 { first } else { size_code };
            word(code, (reg::RDX, 0), reg::RAX, first_sum, added, call::what(block, size_code));
            code.advance(reg::RDX, 16);
        }
        if first != RETURN {
            code.store_at(reg::RCX, reg::RDX, 0);
            code.store_imm_at(reg::RDX, 8, call::what(block, TARGET));
            code.advance(reg::RDX, 16);
        }
        code.store(reg::RDX, context::RING_POSITION);
    }

    /// The words with sums that each transfer has.
    fn words(&self) -> impl Iterator<Item = (usize, u32)> {
        let count = if self.calls == CallRecords::References { 2 } else { 1 };
        WORDS.into_iter().take(count)
    }
}

/// Emits a word at `[position + at]`: sum `first_sum` in its address, and in `extra` the low half
/// of the stack pointer or of the sum of stores. `value` is overwritten.
fn word(
    code: &mut Assembler,
    (position, at): (u8, u8),
    value: u8,
    first_sum: usize,
    added: [u16; 3],
    what: u32,
) {
    let load = |code: &mut Assembler, sum: usize| {
        code.load(value, tick_address(sum));
        if added[sum] != 0 {
            let advanced = Memory::at(gpr(value)).plus(added[sum].into());
            code.code().lea(Size::Qword, gpr(value), advanced);
        }
    };
    load(code, first_sum);
    code.store_at(value, position, at);
    code.store_imm_at(position, at + 8, what);
    if first_sum == 0 {
        return code.store32_at(reg::RSP, position, at + 12);
    }
    load(code, first_sum + 1);
    code.store32_at(value, position, at + 12);
}
