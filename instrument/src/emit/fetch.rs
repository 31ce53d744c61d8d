//! Code for a block's instruction lines, as the plan has numbered them.
//!
//! There are two ways. A stream that simulates the instruction cache inline notes each use
//! (`instruction_side`). Any other stream compares each line and its page with the last one of
//! their sets, and records the line if one of them differs.

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
    /// The record of a block's start, in full streams.
    pub(super) fn block_starts(&mut self, block: &BasicBlock) {
        if self.setting.stream != Stream::Full {
            return;
        }
        self.free_flags();
        let r = self.scratch(0);
        let hot = &mut self.buffer.hot;
        hot.load(r, context::RING_POSITION);
        hot.store_imm_at(r, 0, block.ip as u32);
        hot.store_imm_at(r, 4, (block.ip >> 32) as u32);
        hot.store_imm_at(r, 8, block.number << 8 | (RecordKind::Block as u32) << 4);
        hot.store_imm_at(r, 12, (block.end_ip() - block.ip) as u32);
        hot.advance(r, 16);
        hot.store(r, context::RING_POSITION);
        self.check_ring(r);
    }

    /// The block's uses of instruction lines and pages.
    pub(super) fn fetches(&mut self, block: &BasicBlock, plan: &BlockPlan) {
        let Stream::Filtered(filter) = self.setting.stream else { return };
        // One of the two lists is empty: a stream keeps the instruction side, or it does not.
        for line in &plan.uses {
            self.use_line(line, block.number, plan);
        }
        let code = Code::new(RecordKind::Fetch, filter.instruction.line_bytes).map_or(0x40, |c| c.0);
        for check in &plan.checks {
            self.check_line(check, block.number << 8 | u32::from(code), plan.fetch);
        }
    }

    /// Checks a line and its page against their sets' last ones; `what` is its record's.
    fn check_line(&mut self, check: &LineCheck, what: u32, mode: RecordMode) {
        let &LineCheck { address, line, page, line_is_new, page_is_new } = check;
        // The check was seen to fail mostly: record without it, and note line and page as the last
        // ones.
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
        // Cold: the line and its page are the last from now on, and recorded.
        let back = self.buffer.hot.len();
        self.lend_position();
        for last in [Some(line), page].into_iter().flatten() {
            self.buffer.cold.store_imm32(last.at, last.number);
        }
        self.record_line(address, what, back);
    }

    /// Cold: the record of a line, and back to `back`.
    fn record_line(&mut self, line: u64, what: u32, back: usize) {
        let r = reg::RAX;
        let cold = &mut self.buffer.cold;
        cold.store(r, context::TEMP);
        cold.load(r, context::RING_POSITION);
        cold.prefetch_write(r, 512);
        cold.store_imm_at(r, 0, line as u32);
        cold.store_imm_at(r, 4, (line >> 32) as u32);
        cold.store_imm_at(r, 8, what);
        cold.advance(r, 16);
        cold.store(r, context::RING_POSITION);
        cold.compare(r, context::RING_LIMIT);
        cold.load(r, context::TEMP);
        // The limit, then rax again, which changes no flags.
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
