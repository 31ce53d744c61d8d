//! Emission: from a superblock, its facts and its plan, to a buffer of code.
//!
//! # The problem
//!
//! The program's instructions must behave as natively, with the program's registers, flags and
//! faults. Around them stand counters and records, which need registers and change flags
//! themselves.
//!
//! # The idea
//!
//! Instructions are copied byte for byte. Only `rip`-relative operands get other displacements, and
//! control transfers are rewritten, so programs of every instruction set run. The code before an
//! instruction is its *prologue*. It uses registers and flags that are dead, or saves others in the
//! thread's context and leaves them there until an instruction needs them ([`emitter`]). Code that
//! is seldom executed goes into the cold section.
//!
//! ```text
//!  hot section, of one block                    cold section
//!  ┌─ instruction k ────────────────────────┐
//!  │ use of instruction lines      (once)   │ ──▶ note the use, record a miss ─▶ back
//!  │ check of each group of references      │ ──▶ record                      ─▶ back
//!  │ check of the ring's limit     (once)   │ ──▶ hand over a full segment    ─▶ back
//!  │ the fragment's last counter   (once,   │
//!  │   where flags are free in the last     │
//!  │   block)                               │
//!  │ registers and flags that k needs       │
//!  │ instruction k itself                   │ ◀── an entry of the state map: what is saved where
//!  │ epilogue of a repeated instruction     │
//!  ├─ last instruction ─────────────────────┤
//!  │ the transfer: exits                    │ ──▶ stub of an exit whose target has no code
//!  └────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! - The program's stack is never touched: below its pointer there may be data (red zone).
//! - Every instruction that reads a register or flag finds the program's value.
//! - Each traversal of a fragment increments exactly one counter: that of a side exit, or the last.
//! - Each instruction that may fault (a copied instruction, a system call) has an entry in the
//!   state map. From it the host computes the program's own registers.
//!
//! The result is a [`CodeBuffer`](crate::code::buffer::CodeBuffer). **Leaves out** where other code
//! lies, which exits are linked, and why a reference is recorded in one mode and not in another.

mod append;
mod calls;
mod complex;
mod copy;
mod data;
mod data_pages;
pub(crate) mod emitter;
mod fetch;
mod filter;
mod instruction_side;
mod looping;
mod page_routine;
pub(crate) mod routine;
#[cfg(test)]
mod tests;
mod tool;
mod transfer;

use crate::code::counter::count;
use crate::code::decode::{Decoded, End};
use crate::code::register_use::{overwrites_flags, FLAGS};
use crate::code::state_map::{StateMapEntry, FLAGS_BIT};
use crate::code::superblock::{BasicBlock, Superblock};
use crate::plan::block::{BlockPlan, FragmentPlan};
use crate::plan::liveness::Liveness;
use crate::plan::mode::RecordMode;
use crate::target::trust::Trust;
use emitter::Emitter;
use event::Stream;
use transfer::BlockEnd;

impl Emitter {
    /// Emits a superblock into the buffer, whose sections will lie at these addresses.
    pub(crate) fn emit(
        &mut self,
        superblock: &Superblock,
        liveness: &[Liveness],
        plan: &FragmentPlan,
        bases: (u64, u64),
    ) {
        let blocks = superblock.blocks;
        self.begin(bases, plan.tier);
        (self.calls, self.weights) = (plan.calls, plan.weights);
        if superblock.trust == Trust::Generated {
            self.guard(superblock);
        }
        // At the head the facts before the first instruction hold.
        self.set_facts(&liveness[0], 0);
        if superblock.trust == Trust::Text {
            self.begin_loop(blocks, liveness);
        }
        let counters = plan.counters;
        for (index, (block, liveness)) in blocks.iter().zip(liveness).enumerate() {
            let is_last = index + 1 == blocks.len();
            let last = is_last.then_some(counters + blocks.len() as u32);
            let taken = counters + index as u32;
            let end = BlockEnd { block, liveness, steps: superblock.steps, taken, last };
            self.block(&end, &plan.blocks[index]);
            self.instructions_before += block.instructions.len() as u32;
        }
    }

    /// Sets the facts that hold before instruction `index`. If the block has none, nothing is free.
    fn set_facts(&mut self, liveness: &Liveness, index: usize) {
        self.flags_dead = liveness.flags_dead.get(index).copied().unwrap_or(false);
        self.dead = liveness.dead.get(index).copied().unwrap_or(0);
        self.touched = liveness.touched.get(index).copied().unwrap_or(0xffff);
    }

    /// Emits one block.
    fn block(&mut self, end: &BlockEnd, plan: &BlockPlan) {
        let &BlockEnd { block, liveness, last, .. } = end;
        // A block without known register uses never borrows a register.
        if liveness.uses.is_empty() {
            self.restore(!0);
        }
        // The ring must have room for the words of a transfer that is recorded.
        self.limit_due |= self.transfer_to_record(end).is_some();
        let size = block.instructions.len();
        for (index, decoded) in block.instructions.iter().enumerate() {
            self.set_facts(liveness, index);
            // This is the state at the first byte of the prologue.
            let before = StateMapEntry {
                spilled: self.spilled,
                pending: self.pending,
                ..self.clean_entry(block.number, index as u8)
            };
            // Registers that the prologue saves may stay saved until an instruction needs them.
            self.prologue(end, plan, index);
            self.give_back(decoded, liveness, index);
            // Code behind the block does not know how many records are pending.
            if index + 1 == size {
                self.commit();
            }
            self.buffer.state_map.push(StateMapEntry {
                counted_executing: self.counted,
                executing: self.spilled,
                pending_executing: self.pending,
                ..before
            });
            if index + 1 == size && block.end == End::Transfer {
                return self.transfer(end, decoded);
            }
            self.copy(decoded, liveness.uses.get(index));
            self.note_overwritten(decoded, liveness, index);
            self.epilogue(block, plan, index);
            self.tool_after(block, liveness, index);
        }
        // The block ends without a transfer: an exit follows, or the fragment's next block.
        if block.end != End::Transfer && block.next.is_none() {
            self.count_last(last);
            self.direct_exit(block.end_ip(), liveness.behind);
        }
    }

    /// Emits the prologue of instruction `index`.
    fn prologue(&mut self, end: &BlockEnd, plan: &BlockPlan, index: usize) {
        let block = end.block;
        if index == 0 {
            self.block_starts(block);
        }
        self.tool_before(block, index);
        self.references(block, plan, index);
        // The ring's limit is checked where flags are free, or else before the block's last
        // instruction; the fragment is counted where flags are free.
        if self.limit_due && (self.flags_free() || index + 1 == block.instructions.len()) {
            self.check_limit();
        }
        if let Some(counter) = end.last.filter(|_| !self.counted && self.flags_free()) {
            self.counted = true;
            count(&mut self.buffer.hot, counter, self.weights, true);
        }
        if index + 1 == block.instructions.len() {
            self.direct_transfer(end);
        }
    }

    /// Restores the registers and flags that instruction `index` needs.
    fn give_back(&mut self, decoded: &Decoded, liveness: &Liveness, index: usize) {
        let Some(uses) = liveness.uses.get(index) else { return };
        // A register that is written in part, or perhaps not at all, must hold the program's value.
        let flags = if needs_flags(decoded) { FLAGS_BIT } else { 0 };
        self.restore((uses.needs | uses.writes & !uses.kills) & !FLAGS_BIT | flags);
        // A register that the instruction overwrites can no longer hold the ring's position.
        if self.held.is_some_and(|register| uses.kills >> register & 1 != 0) {
            self.let_go();
        }
    }

    /// Notes that the registers and flags that instruction `index` has overwritten need no restore.
    fn note_overwritten(&mut self, decoded: &Decoded, liveness: &Liveness, index: usize) {
        let Some(uses) = liveness.uses.get(index) else { return };
        self.spilled &= !(uses.kills & !FLAGS_BIT);
        if overwrites_flags(decoded) {
            self.spilled &= !FLAGS_BIT;
        }
    }

    /// Emits the checks and records of the references that are made before instruction `index`: of
    /// instruction lines, and of data.
    fn references(&mut self, block: &BasicBlock, plan: &BlockPlan, index: usize) {
        if index == plan.fetch_at {
            self.fetches(block, plan);
        }
        for group in plan.groups.at(index) {
            match self.setting.stream {
                Stream::Filtered(filter) if filter.data.drops_nothing() => self.appended_group(&group),
                Stream::Filtered(filter) => {
                    match group.members[0].mode {
                        RecordMode::Checked => self.filtered(&group, &filter),
                        RecordMode::Branchless => self.written(&group, &filter),
                        RecordMode::Always => self.remembered(&group, &filter),
                    }
                    self.use_pages(&plan.groups, group.number, &filter);
                }
                Stream::Full => self.recorded(&group),
                Stream::Allocated | Stream::References => self.appended_group(&group),
                Stream::Counts | Stream::Nothing => {}
            }
        }
        for &(at, complex, site) in plan.complex.iter().filter(|planned| planned.0 == index) {
            self.complex_before(&block.instructions[at], complex, site);
        }
    }

    /// Emits the code behind instruction `index`: records that depend on its result.
    fn epilogue(&mut self, block: &BasicBlock, plan: &BlockPlan, index: usize) {
        for &(at, complex, site) in plan.complex.iter().filter(|planned| planned.0 == index) {
            self.complex_after(&block.instructions[at], complex, site);
        }
    }

    /// Increments the last counter, if no instruction of the last block had dead flags.
    fn count_last(&mut self, counter: Option<u32>) {
        if let Some(counter) = counter.filter(|_| !self.counted) {
            let free = self.flags_free();
            count(&mut self.buffer.hot, counter, self.weights, free);
            self.counted = true;
        }
    }
}

/// Whether `decoded` needs the program's status flags: it reads some of them, or changes only some.
fn needs_flags(decoded: &Decoded) -> bool {
    let touched = decoded.instruction.rflags_modified() & FLAGS;
    decoded.instruction.rflags_read() & FLAGS != 0 || touched != 0 && !overwrites_flags(decoded)
}
