//! Code for a block's instruction lines, as the plan has numbered them.
//!
//! If the stream simulates the instruction cache inline, the code notes each use
//! (`instruction_side`). Otherwise it compares each line and its page with the last ones of their
//! sets, and records the line if one of them differs.

use super::append::leave;
use super::emitter::Emitter;
use crate::code::assembler::reg;
use crate::code::buffer::{Label, Section};
use crate::code::superblock::BasicBlock;
use crate::plan::block::BlockPlan;
use crate::plan::instruction_cache::LineCheck;
use crate::plan::mode::RecordMode;
use crate::target::layout::context;
use assembler::Condition;
use event::{Code, RecordKind, Stream};

impl Emitter {
    /// Emits the record of a block's start, in full streams.
    pub(super) fn block_starts(&mut self, block: &BasicBlock) {
        if self.setting.stream != Stream::Full {
            return;
        }
        self.let_go();
        self.free_flags();
        let position = self.scratch(0);
        let hot = &mut self.buffer.hot;
        hot.load(position, context::RING_POSITION);
        hot.store_imm_at(position, 0, block.ip as u32);
        hot.store_imm_at(position, 4, (block.ip >> 32) as u32);
        hot.store_imm_at(position, 8, block.number << 8 | (RecordKind::Block as u32) << 4);
        hot.store_imm_at(position, 12, (block.end_ip() - block.ip) as u32);
        hot.advance(position, 16);
        hot.store(position, context::RING_POSITION);
        self.check_ring(position);
    }

    /// Emits the block's uses of instruction lines and pages.
    pub(super) fn fetches(&mut self, block: &BasicBlock, plan: &BlockPlan) {
        let Stream::Filtered(filter) = self.setting.stream else { return };
        // One of the two lists is empty: a stream simulates the instruction cache inline, or not.
        for line in &plan.uses {
            self.use_line(line, block.number, plan);
        }
        let code = Code::new(RecordKind::Fetch, filter.instruction.line_bytes).map_or(0x40, |code| code.0);
        for check in &plan.checks {
            self.check_line(check, block.number << 8 | u32::from(code), plan.fetch);
        }
    }

    /// Emits the comparison of a line and its page with the last ones of their sets. `what` is that
    /// of the line's record.
    fn check_line(&mut self, check: &LineCheck, what: u32, mode: RecordMode) {
        let &LineCheck { address, line, page, line_is_new, page_is_new } = check;
        // The check mostly fails: record without it, and make line and page the last ones.
        if mode != RecordMode::Checked {
            for last in [Some(line), page].into_iter().flatten() {
                self.buffer.hot.store_imm32(last.at, last.number);
            }
            return self.append_constant(address, what);
        }
        self.free_flags();
        // A line or page that this fragment itself has just made the last of its set needs no
        // check.
        let lines = Some(line).filter(|_| line_is_new);
        for last in lines.into_iter().chain(page.filter(|_| page_is_new)) {
            self.buffer.hot.compare_imm32(last.at, last.number);
            let at = self.buffer.hot.jump_if(Condition::NotEqual);
            self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        }
        // Cold: the line and its page become the last ones, and the line is recorded.
        let back = self.buffer.hot.len();
        self.lend_position();
        for last in [Some(line), page].into_iter().flatten() {
            self.buffer.cold.store_imm32(last.at, last.number);
        }
        self.record_line(address, what, back);
    }

    /// Emits cold code that records a line and returns to `back` in the hot section.
    fn record_line(&mut self, line: u64, what: u32, back: usize) {
        let position = reg::RAX;
        let cold = &mut self.buffer.cold;
        cold.store(position, context::TEMP);
        cold.load(position, context::RING_POSITION);
        cold.prefetch_write(position, 512);
        cold.store_imm_at(position, 0, line as u32);
        cold.store_imm_at(position, 4, (line >> 32) as u32);
        cold.store_imm_at(position, 8, what);
        cold.advance(position, 16);
        cold.store(position, context::RING_POSITION);
        cold.compare(position, context::RING_LIMIT);
        cold.load(position, context::TEMP);
        // Restoring rax changes no flags, so the comparison with the limit comes before it.
        let on = cold.jump_if(Condition::Below);
        // If no register holds the position, the code can jump straight back.
        if self.held.is_none() {
            self.buffer.link(Section::Cold, on, Label::Hot(back));
            return self.leave_ring(back);
        }
        leave(&mut self.buffer.cold);
        let here = self.buffer.cold.len();
        self.buffer.cold.patch(on, here);
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(back));
    }
}
