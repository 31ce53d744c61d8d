//! Loops of one fragment: registers that hold scratch values keep them from one iteration to the
//! next.
//!
//! # The problem
//!
//! A fragment saves registers for its checks and restores them before it leaves. If the fragment
//! leads back to its own head, each iteration saves and restores the same registers again.
//!
//! # The idea
//!
//! The registers that no instruction of the loop touches are saved once, before the loop. The back
//! edge leads behind these saves, to the *header*, so the registers stay saved and the ring's
//! position stays in its register. This is loop-invariant code motion of saves and restores.
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
//! - Every register that is saved at the header ([`LoopHeader::spilled`]) is saved at every back
//!   edge.
//! - A back edge is one displacement. When the fragment is replaced or retired, the cache makes it
//!   lead to a stub that restores everything and takes the normal exit to the fragment's head
//!   ([`crate::cache::CodeCache::break_loops`]).
//!
//! Only code that is translated again has a header, because most new code never runs long. **Leaves
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
    /// Emits the saves of the registers that the loop keeps, before the first block, and begins the
    /// loop's header.
    pub(super) fn begin_loop(&mut self, blocks: &[BasicBlock], liveness: &[Liveness]) {
        let pc = blocks[0].ip;
        // Only tuned code that checks references, and whose register uses are known, gains.
        let known = self.tier != Tier::Fresh && liveness.iter().all(|liveness| !liveness.uses.is_empty());
        let filtered = matches!(self.setting.stream, Stream::Filtered(_));
        let mut ends = blocks.iter().zip(liveness);
        if !known || !filtered || !ends.any(|(block, liveness)| leads_to(block, liveness, pc)) {
            return;
        }
        // Registers that no instruction of the loop touches can stay saved for all iterations. rax
        // is left out because saving flags uses it.
        let touched = liveness.iter().fold(0, |touched, liveness| touched | liveness.touched[0]);
        let usable = !(touched | 1 << reg::RSP | 1 << reg::RAX);
        let free = self.dead & usable;
        // Dead registers need no save; only the missing number of others is saved.
        let wanted = SCRATCH_REGISTERS + u32::from(self.tier == Tier::Appending);
        let mut missing = wanted.saturating_sub(free.count_ones());
        while let Some(register) = pick(usable & !free & !self.spilled).filter(|_| missing > 0) {
            self.buffer.hot.store(register, slot(register));
            self.spilled |= 1 << register;
            missing -= 1;
        }
        // Code that appends records keeps the ring's position in a register too.
        if self.tier == Tier::Appending {
            self.held = pick((self.spilled | free) & usable);
            self.held.iter().for_each(|&register| self.buffer.hot.load(register, context::RING_POSITION));
        }
        // The header begins here: every back edge must arrive with exactly this state.
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

    /// The registers that an exit to `target` leaves saved: those of the header if `target` is the
    /// loop's head, else none.
    pub(super) fn kept_saved_for(&self, target: u64) -> u16 {
        self.header_of(target).map_or(0, |header| header.spilled)
    }

    /// The form of an exit to `target` that restores the registers `restore`, if it is a back edge,
    /// that is, if every register that the header expects saved is saved.
    pub(super) fn back_edge(&self, target: u64, restore: u16) -> Option<ExitForm> {
        let header = self.header_of(target)?;
        // If the header's register no longer holds the position, the back edge's code loads it.
        let load = header.held.filter(|_| self.held != header.held);
        Some(ExitForm::BackEdge { restore: restore & !header.spilled, load })
    }
}

/// Whether `block` ends with a direct branch to `pc`, the fragment's head. The map must know code
/// at `pc`, namely the fragment that this one replaces: the broken form of the back edge leads
/// there.
fn leads_to(block: &BasicBlock, liveness: &Liveness, pc: u64) -> bool {
    block.last().is_some_and(|last| {
        let instruction = &last.instruction;
        let branches = instruction.is_jcc_short_or_near()
            || instruction.flow_control() == FlowControl::UnconditionalBranch
                && instruction.is_jmp_short_or_near();
        branches && instruction.near_branch_target() == pc && liveness.taken.has_code
    })
}
