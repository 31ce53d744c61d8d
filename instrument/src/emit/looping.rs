//! Loops of one fragment: registers that hold scratch values keep them from turn to turn.
//!
//! # The problem
//!
//! A fragment borrows registers for its checks and gives them back before it leaves. If the
//! fragment leads back to its own head, each turn saves and restores the same registers again.
//!
//! # The idea
//!
//! The registers that no instruction of the loop touches are saved once, before the loop. The back
//! edge leads behind these saves, to the *header*, so the registers stay saved and the ring's
//! position stays in its register. It is loop-invariant code motion for saves and restores.
//!
//! ```text
//!    entry:   save r8, r9                  only when control comes from outside
//!    header:  checks use r8 and r9  ◀──┐
//!             ...                      │   back edge: nothing to save, nothing to restore
//!             jne ─────────────────────┘
//!    exit:    restore r8, r9
//! ```
//!
//! # Invariants
//!
//! - What the header finds saved ([`LoopHeader::spilled`]) is saved at every back edge.
//! - A back edge is one displacement. When the fragment is replaced or retired, the cache makes it
//!   lead to a stub that restores everything and takes the normal exit to the fragment's head
//!   ([`crate::cache::CodeCache::break_loops`]).
//!
//! Only code that is translated again is treated so: most fresh code never runs long. **Leaves
//! out** loops of several fragments, which would have to agree about registers, and code that may
//! change. Source: our own.

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

/// Registers that a check needs: one for the address, one for the set.
const SCRATCH_REGISTERS: u32 = 2;

impl Emitter {
    /// Emitted before the first block: saves the registers that the loop keeps, and begins the
    /// loop's header.
    pub(super) fn begin_loop(&mut self, blocks: &[BasicBlock], liveness: &[Liveness]) {
        let pc = blocks[0].ip;
        // Only tuned code whose registers are known and that checks references gains anything.
        let known = self.tier != Tier::Fresh && liveness.iter().all(|liveness| !liveness.uses.is_empty());
        let filtered = matches!(self.setting.stream, Stream::Filtered(_));
        let mut ends = blocks.iter().zip(liveness);
        if !known || !filtered || !ends.any(|(block, liveness)| leads_to(block, liveness, pc)) {
            return;
        }
        // Registers that no instruction of the loop touches can stay saved for all turns. rax is
        // left out because flags are saved by way of it.
        let touched = liveness.iter().fold(0, |touched, liveness| touched | liveness.touched[0]);
        let usable = !(touched | 1 << reg::RSP | 1 << reg::RAX);
        let free = self.dead & usable;
        // Dead registers serve without being saved; save only as many more as are missing.
        let wanted = SCRATCH_REGISTERS + u32::from(self.tier == Tier::Appending);
        let mut missing = wanted.saturating_sub(free.count_ones());
        while let Some(r) = pick(usable & !free & !self.spilled).filter(|_| missing > 0) {
            self.buffer.hot.store(r, slot(r));
            self.spilled |= 1 << r;
            missing -= 1;
        }
        // Code that appends records keeps the ring's position in a register too.
        if self.tier == Tier::Appending {
            self.held = pick((self.spilled | free) & usable);
            self.held.iter().for_each(|&r| self.buffer.hot.load(r, context::RING_POSITION));
        }
        // The header begins here: a back edge must bring exactly this state.
        let (at, spilled, held, flags_dead) =
            (self.buffer.hot.len(), self.spilled, self.held, self.flags_dead);
        self.buffer.loop_header = Some(LoopHeader { pc, at, spilled, held, flags_dead });
    }

    /// The loop's header, if `target` is the loop's head and every register that the header finds
    /// saved is saved here as well.
    fn header_of(&self, target: u64) -> Option<LoopHeader> {
        let header = self.buffer.loop_header;
        header.filter(|header| header.pc == target && header.spilled & !self.spilled == 0)
    }

    /// The registers that stay saved on the way to `target`: those of the header if `target` is the
    /// loop's head, else none.
    pub(super) fn kept_on_the_way(&self, target: u64) -> u16 {
        self.header_of(target).map_or(0, |header| header.spilled)
    }

    /// The form of an exit to `target` that restores the registers `restore`, if it is a back edge:
    /// one to the next turn that needs no register to be saved again.
    pub(super) fn back_edge(&self, target: u64, restore: u16) -> Option<ExitForm> {
        let header = self.header_of(target)?;
        // If the position is not in the header's register any more, the way to the header loads it.
        let load = header.held.filter(|_| self.held != header.held);
        Some(ExitForm::BackEdge { restore: restore & !header.spilled, load })
    }
}

/// Whether `block` ends with a direct branch to `pc`, the fragment's head. The map must know code
/// at `pc`, namely the fragment that this one replaces: the broken form of the back edge leads
/// there.
fn leads_to(block: &BasicBlock, liveness: &Liveness, pc: u64) -> bool {
    block.last().is_some_and(|last| {
        let i = &last.instruction;
        let branches = i.is_jcc_short_or_near()
            || i.flow_control() == FlowControl::UnconditionalBranch && i.is_jmp_short_or_near();
        branches && i.near_branch_target() == pc && liveness.taken.has_code
    })
}
