//! Emission: from a superblock, what is known of it and what it records, to a buffer of code.
//!
//! # The problem
//!
//! The program's instructions must behave as natively, with the program's registers, flags and
//! faults. Around them stand counters and records, which need registers and change flags
//! themselves.
//!
//! # The idea
//!
//! Instructions are copied byte for byte; only operands that are relative to themselves are
//! re-displaced and control transfers rewritten, so every instruction set runs. What goes around an
//! instruction is its *prologue*. It borrows registers and flags that are dead, or saves others in
//! the thread's context and leaves them there until an instruction needs them ([`emitter`]). What
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
//!  │ instruction k itself                   │ ◀── an entry of the state map says what waits where
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
//! - What may fault (the copied instruction, a system call) has an entry in the state map from
//!   which the host can make the thread's registers the program's own.
//!
//! The result is a [`CodeBuffer`](crate::code::buffer::CodeBuffer). Nothing here knows where other
//! code lies, which exits are linked, or why a reference is recorded as it is.

mod append;
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
use crate::target::layout::context;
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
        if superblock.trust == Trust::Generated {
            self.guard(superblock);
        }
        // The head's facts are those before the first instruction.
        self.stand_before(&liveness[0], 0);
        if superblock.trust == Trust::Text {
            self.begin_loop(blocks, liveness);
        }
        let counters = plan.counters;
        for (n, (block, liveness)) in blocks.iter().zip(liveness).enumerate() {
            let is_last = n + 1 == blocks.len();
            let last = is_last.then_some(counters + blocks.len() as u32);
            let taken = counters + n as u32;
            let end = BlockEnd { block, liveness, steps: superblock.steps, taken, last };
            self.block(&end, &plan.blocks[n]);
        }
    }

    /// Takes over the facts before instruction `k`; where none were learned, nothing is free.
    fn stand_before(&mut self, liveness: &Liveness, k: usize) {
        self.flags_dead = liveness.flags_dead.get(k).copied().unwrap_or(false);
        self.dead = liveness.dead.get(k).copied().unwrap_or(0);
        self.touched = liveness.touched.get(k).copied().unwrap_or(0xffff);
    }

    /// Emits one block.
    fn block(&mut self, end: &BlockEnd, plan: &BlockPlan) {
        let &BlockEnd { block, liveness, last, .. } = end;
        // A block without known register uses never borrows a register.
        if liveness.uses.is_empty() {
            self.restore(!0);
        }
        let size = block.instructions.len();
        for (k, decoded) in block.instructions.iter().enumerate() {
            self.stand_before(liveness, k);
            // A stop at the prologue's first byte is before everything that follows here.
            let before = StateMapEntry {
                spilled: self.spilled,
                pending: self.pending,
                ..self.clean_entry(block.number, k as u8)
            };
            // Registers that the prologue borrows may stay borrowed until an instruction needs
            // them.
            self.prologue(end, plan, k);
            self.give_back(decoded, liveness, k);
            // The code that comes next does not know how many records are pending.
            if k + 1 == size {
                self.commit();
            }
            self.buffer.state_map.push(StateMapEntry {
                counted_executing: self.counted,
                executing: self.spilled,
                pending_executing: self.pending,
                ..before
            });
            if k + 1 == size && block.end == End::Transfer {
                return self.transfer(end, decoded);
            }
            self.copy(decoded, liveness.uses.get(k));
            self.note_overwritten(decoded, liveness, k);
            self.epilogue(block, plan, k);
            self.tool_after(block, liveness, k);
        }
        // The block was cut: what comes next is an exit, or the fragment's next block.
        if block.end != End::Transfer && block.next.is_none() {
            self.count_last(last);
            self.direct_exit(block.end_ip(), liveness.behind);
        }
    }

    /// Everything that goes before instruction `k`.
    fn prologue(&mut self, end: &BlockEnd, plan: &BlockPlan, k: usize) {
        let block = end.block;
        if k == 0 {
            self.block_starts(block);
        }
        self.tool_before(block, k);
        self.references(block, plan, k);
        // The ring's limit is checked where flags are free, or else before the block's last
        // instruction; the fragment is counted where flags are free.
        if self.limit_due && (self.flags_free() || k + 1 == block.instructions.len()) {
            self.check_limit();
        }
        if let Some(counter) = end.last.filter(|_| !self.counted && self.flags_free()) {
            self.counted = true;
            self.buffer.hot.increment(context::COUNTERS + 8 * counter);
        }
    }

    /// Gives the program the registers and flags that instruction `k` needs to find.
    fn give_back(&mut self, decoded: &Decoded, liveness: &Liveness, k: usize) {
        let Some(uses) = liveness.uses.get(k) else { return };
        // A register that is written in part, or may stay as it is, must hold its own value.
        let flags = if needs_flags(decoded) { FLAGS_BIT } else { 0 };
        self.restore((uses.needs | uses.writes & !uses.kills) & !FLAGS_BIT | flags);
        // A register that the instruction overwrites can no longer hold the ring's position.
        if self.held.is_some_and(|r| uses.kills >> r & 1 != 0) {
            self.let_go();
        }
    }

    /// Notes that registers and flags that instruction `k` has overwritten hold the program's
    /// values again, without a restore.
    fn note_overwritten(&mut self, decoded: &Decoded, liveness: &Liveness, k: usize) {
        let Some(uses) = liveness.uses.get(k) else { return };
        self.spilled &= !(uses.kills & !FLAGS_BIT);
        if overwrites_flags(decoded) {
            self.spilled &= !FLAGS_BIT;
        }
    }

    /// The references before which instruction `k` stands: of instruction lines, of data.
    fn references(&mut self, block: &BasicBlock, plan: &BlockPlan, k: usize) {
        if k == plan.fetch_at {
            self.fetches(block, plan);
        }
        for group in plan.groups.at(k) {
            match self.setting.stream {
                Stream::Filtered(filter) => {
                    match group.members[0].mode {
                        RecordMode::Checked => self.filtered(&group, &filter),
                        RecordMode::Branchless => self.written(&group, &filter),
                        RecordMode::Always => self.remembered(&group, &filter),
                    }
                    self.use_pages(&group, &filter);
                }
                Stream::Full => self.recorded(&group),
                Stream::Counts | Stream::Nothing => {}
            }
        }
        for &(at, complex, site) in plan.complex.iter().filter(|c| c.0 == k) {
            self.complex_before(&block.instructions[at], complex, site);
        }
    }

    /// Emits the code behind instruction `k`: records that depend on what it did.
    fn epilogue(&mut self, block: &BasicBlock, plan: &BlockPlan, k: usize) {
        for &(at, complex, site) in plan.complex.iter().filter(|c| c.0 == k) {
            self.complex_after(&block.instructions[at], complex, site);
        }
    }

    /// The last counter, where no instruction of the last block offered dead flags.
    fn count_last(&mut self, counter: Option<u32>) {
        if let Some(counter) = counter.filter(|_| !self.counted) {
            let free = self.flags_free();
            count(&mut self.buffer.hot, counter, free);
            self.counted = true;
        }
    }
}

/// Whether `decoded` must find the program's status flags (reads some, or leaves some untouched).
fn needs_flags(decoded: &Decoded) -> bool {
    let touched = decoded.instruction.rflags_modified() & FLAGS;
    decoded.instruction.rflags_read() & FLAGS != 0 || touched != 0 && !overwrites_flags(decoded)
}
