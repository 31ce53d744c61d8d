//! Loops of one fragment: what holds scratch registers keeps them from turn to turn.
//!
//! **What.** A fragment that leads back to its own head, and is translated again because it runs
//! often, saves registers that none of its instructions touch before its head, and its own back
//! edge leads behind that: no register is saved, restored, saved in every turn, and the ring's
//! position stays in its register. **Why this way.** One fragment needs no agreement with another
//! one about who holds what. A back edge is a displacement like all others: when the fragment is
//! replaced or retired it is made to lead to a stub that restores everything and takes the normal
//! exit to the fragment's head ([`crate::cache::CodeCache::break_loops`]). **Leaves out** loops of
//! several fragments, code that may change, and what is translated for the first time, of which
//! most never runs long. Source: our own; loop-invariant code motion for saves and restores.

use super::emitter::Emitter;
use crate::code::assembler::reg;
use crate::code::buffer::{ExitForm, LoopHeader};
use crate::code::state_map::{pick, slot};
use crate::code::superblock::BasicBlock;
use crate::plan::block::Tier;
use crate::plan::liveness::Liveness;
use crate::target::layout::context;
use event::Stream;
use iced_x86::FlowControl;

/// A register for the address of a check, and one for its set.
const SCRATCH_REGISTERS: u32 = 2;

impl Emitter {
    /// Before the first block: the registers that a loop keeps.
    pub(super) fn begin_loop(&mut self, blocks: &[BasicBlock], liveness: &[Liveness]) {
        let pc = blocks[0].ip;
        let known = self.tier != Tier::Fresh && liveness.iter().all(|liveness| !liveness.uses.is_empty());
        let filtered = matches!(self.setting.stream, Stream::Filtered(_));
        let mut ends = blocks.iter().zip(liveness);
        if !known || !filtered || !ends.any(|(block, liveness)| leads_to(block, liveness, pc)) {
            return;
        }
        // Registers that no instruction of the loop touches can stay saved all the time.
        let touched = liveness.iter().fold(0, |touched, liveness| touched | liveness.touched[0]);
        let usable = !(touched | 1 << reg::RSP | 1 << reg::RAX);
        let free = self.dead & usable;
        let wanted = SCRATCH_REGISTERS + u32::from(self.tier == Tier::Appending);
        let mut missing = wanted.saturating_sub(free.count_ones());
        while let Some(r) = pick(usable & !free & !self.spilled).filter(|_| missing > 0) {
            self.buffer.hot.store(r, slot(r));
            self.spilled |= 1 << r;
            missing -= 1;
        }
        // Where something is always recorded, the ring's position stays in a register too.
        if self.tier == Tier::Appending {
            self.held = pick((self.spilled | free) & usable);
            self.held.iter().for_each(|&r| self.buffer.hot.load(r, context::RING_POSITION));
        }
        let (at, spilled, held, flags_dead) =
            (self.buffer.hot.len(), self.spilled, self.held, self.flags_dead);
        self.buffer.loop_header = Some(LoopHeader { pc, at, spilled, held, flags_dead });
    }

    /// The loop's header, if `target` is its head and all that it keeps is saved here.
    fn header_of(&self, target: u64) -> Option<LoopHeader> {
        let header = self.buffer.loop_header;
        header.filter(|header| header.pc == target && header.spilled & !self.spilled == 0)
    }

    /// The registers that stay saved on the way to `target`, where that is the next turn.
    pub(super) fn kept_on_the_way(&self, target: u64) -> u16 {
        self.header_of(target).map_or(0, |header| header.spilled)
    }

    /// The form of an exit to `target` that restores the registers `restore`, if it is a back edge:
    /// one to the next turn that needs no register to be saved again.
    pub(super) fn back_edge(&self, target: u64, restore: u16) -> Option<ExitForm> {
        let header = self.header_of(target)?;
        // Where another register holds the position, or none, it is loaded again.
        let load = header.held.filter(|_| self.held != header.held);
        Some(ExitForm::BackEdge { restore: restore & !header.spilled, load })
    }
}

/// Whether `block` ends with a branch to `pc`, the fragment's head, that is taken with registers as
/// they are. There must be code at `pc`: that of the fragment that is replaced.
fn leads_to(block: &BasicBlock, liveness: &Liveness, pc: u64) -> bool {
    block.last().is_some_and(|last| {
        let i = &last.i;
        let branches = i.is_jcc_short_or_near()
            || i.flow_control() == FlowControl::UnconditionalBranch && i.is_jmp_short_or_near();
        branches && i.near_branch_target() == pc && liveness.taken.has_code
    })
}
