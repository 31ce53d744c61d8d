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
//! The jump of a stub of the linkage table is passed over if the last record is that of the
//! transfer to the stub, and the cell of the stub has the jump's target:
//!
//! ```text
//!   sum of the last record = sum before the stub, and cell = target? ──yes──────▶ the transfer
//!                                    └─no─▶ cell = target ─▶ words (cold) ───────────▲
//! ```
//!
//! **Leaves out** which fragments record (`plan`), and what the words
//! mean (`call`).

use super::emitter::Emitter;
use super::transfer::BlockEnd;
use crate::call::CallRecords;
use crate::call::{self, stub_cell, stub_number, CALL, DIRECT_CALL, DIRECT_JUMP, JUMP};
use crate::call::{REFERENCES, RETURN, STUB_JUMP, STUB_TARGET, TARGET};
use crate::code::assembler::{gpr, reg, Assembler};
use crate::code::buffer::{Label, Section};
use crate::code::counter::tick_address;
use crate::plan::block::{recorded_transfer, RecordedTransfer};
use crate::target::layout::context;
use assembler::{Alu, Condition, Gpr, Memory, Scale, Size};
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
        if kind == RecordedTransfer::IndirectJump && end.block.is_stub {
            return self.stub_jump(end);
        }
        // Most jumps by a register or memory are those of a `switch`.
        let function = end.block.jumps_within.as_ref().filter(|_| kind == RecordedTransfer::IndirectJump);
        let inside = function.map(|function| self.jump_if_within(function));
        let added = self.not_yet_added();
        let words = Words { block: end.block.number, first, added, calls: self.calls };
        words.emit(&mut self.buffer.hot, (TARGET, 0));
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

    /// What the fragment has not yet added to the running sums.
    fn not_yet_added(&self) -> [u16; 3] {
        if self.counted {
            [0; 3]
        } else {
            self.weights
        }
    }

    /// Emits the jump of a stub with its target in rcx, as far as it is recorded. Changes rax and
    /// rdx, and no flags.
    fn stub_jump(&mut self, end: &BlockEnd) {
        let added = self.not_yet_added();
        let number = stub_number(end.block.ip);
        let cell = context::STUBS + 8 * stub_cell(number) as u32;
        let words = Words { block: end.block.number, first: STUB_JUMP, added, calls: self.calls };
        let hot = &mut self.buffer.hot;
        hot.store(reg::RCX, context::TEMP);
        // rax is 0 if the last words are those of the transfer to this block: the sum that they
        // have plus this block's instructions is the present sum.
        hot.load(reg::RAX, context::RING_POSITION);
        hot.load_at(reg::RAX, reg::RAX, -16 * words.with_sums() as i32);
        hot.not(reg::RAX);
        hot.load(reg::RDX, tick_address(0));
        let own = i32::from(added[0]) - end.block.instructions.len() as i32 + 1;
        let unknown = Memory::at(Gpr::RAX).index(Gpr::RDX, Scale::One).plus(own);
        hot.code().lea(Size::Qword, Gpr::RAX, unknown);
        // rdx is 0 if the cell has the complement of the target.
        hot.load(reg::RDX, cell);
        let changed = Memory::at(Gpr::RDX).index(Gpr::RCX, Scale::One).plus(1);
        hot.code().lea(Size::Qword, Gpr::RDX, changed);
        for difference in [reg::RAX, reg::RDX] {
            let hot = &mut self.buffer.hot;
            hot.mov(reg::RCX, difference);
            let equal = hot.code().short_jump_if_rcx_zero();
            let recorded = hot.jump();
            hot.code().land_short(equal);
            self.buffer.link(Section::Hot, recorded, Label::Cold(self.buffer.cold.len()));
        }
        self.buffer.hot.load(reg::RCX, context::TEMP);
        let back = self.buffer.hot.len();
        let cold = &mut self.buffer.cold;
        cold.load(reg::RCX, context::TEMP);
        cold.mov(reg::RDX, reg::RCX);
        cold.not(reg::RDX);
        cold.store(reg::RDX, cell);
        words.emit(cold, (STUB_TARGET, number));
        let done = cold.jump();
        self.buffer.link(Section::Cold, done, Label::Hot(back));
    }

    /// The words with sums that each transfer has.
    fn words(&self) -> impl Iterator<Item = (usize, u32)> {
        WORDS.into_iter().take(words_with_sums(self.calls))
    }
}

/// How many words of a transfer have sums.
fn words_with_sums(calls: CallRecords) -> usize {
    match calls {
        CallRecords::References => 2,
        CallRecords::Instructions | CallRecords::None => 1,
    }
}

/// The words of a call, jump or return by a register or memory.
struct Words {
    /// The block that ends with it.
    block: u32,
    /// The size code of the first word.
    first: u32,
    /// What the fragment has not yet added to the running sums.
    added: [u16; 3],
    calls: CallRecords,
}

impl Words {
    /// How many of them have sums.
    fn with_sums(&self) -> usize {
        words_with_sums(self.calls)
    }

    /// Emits the words. rcx has the target, whose word has this size code and this `extra`; returns
    /// have no such word. Changes rax and rdx.
    fn emit(&self, code: &mut Assembler, (target, extra): (u32, u32)) {
        code.load(reg::RDX, context::RING_POSITION);
        for (first_sum, size_code) in WORDS.into_iter().take(self.with_sums()) {
            let size_code = if first_sum == 0 { self.first } else { size_code };
            let what = call::what(self.block, size_code);
            word(code, (reg::RDX, 0), reg::RAX, first_sum, self.added, what);
            code.advance(reg::RDX, 16);
        }
        if self.first != RETURN {
            code.store_at(reg::RCX, reg::RDX, 0);
            code.store_imm_at(reg::RDX, 8, call::what(self.block, target));
            if target == STUB_TARGET {
                code.store_imm_at(reg::RDX, 12, extra);
            }
            code.advance(reg::RDX, 16);
        }
        code.store(reg::RDX, context::RING_POSITION);
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
