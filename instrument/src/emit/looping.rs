//! Loops of one fragment: what holds scratch registers keeps them from turn to turn.
//!
//! **What.** A fragment that leads back to its own head, and is translated again because it runs often, saves registers that none of its
//! instructions touch before its head, and its own way back leads behind that: no register is saved, restored, saved in every turn, and the
//! ring's position stays in its register. **Why this way.** One fragment needs no agreement with another one about who holds what. The way
//! back is a displacement like all others: when the fragment is replaced or retired it is made to lead to a stub that restores everything and goes where
//! everybody else goes ([`crate::cache::CodeCache::break_loops`]). **Leaves out** loops of several fragments, code that may change, and what is
//! translated for the first time, of which most never runs long. Source: our own; loop-invariant code motion for saves and restores.

use super::draft::{pick, restore_registers, slot, Draft, Goal, Part};
use super::Facts;
use crate::assemble::{reg, Assembler};
use crate::cache::{count, Exit};
use crate::layout::context;
use crate::translate::{Piece, Translator};
use event::Stream;
use iced_x86::FlowControl;

/// Where turns after the first begin, and what is as it was left there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    /// Address of the fragment.
    pc: u64,
    /// Position in the hot part.
    at: usize,
    spilled: u16,
    /// The register with the ring's position.
    held: Option<u8>,
    flags_dead: bool,
}

/// A way back.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// Its displacement.
    at: usize,
    /// The way out that it is where the loop is broken, to the fragment that is replaced.
    exit: Exit,
    fragment: usize,
    /// What comes back for the next turn: registers, and the ring's position.
    restore: u16,
    load: Option<u8>,
}

/// A register for the address of a check, and one for its set.
const SCRATCH_REGISTERS: u32 = 2;

impl Translator {
    /// Before the first block: the registers that a loop keeps.
    pub(super) fn begin_loop(&mut self, d: &mut Draft, pieces: &[Piece], facts: &[Facts]) {
        let pc = pieces[0].ip;
        let known = self.events.tuning.is_some() && facts.iter().all(|facts| !facts.uses.is_empty());
        let filtered = matches!(self.events.stream, Stream::Filtered(_));
        if !known
            || !filtered
            || !pieces.iter().any(|piece| leads_to(piece, pc))
            || self.cache.find(pc).is_none()
        {
            return;
        }
        let touched = facts.iter().fold(0, |touched, facts| touched | facts.touched[0]);
        let usable = !(touched | 1 << reg::RSP | 1 << reg::RAX);
        let free = d.dead & usable;
        let wanted = SCRATCH_REGISTERS + u32::from(self.appends());
        let mut missing = wanted.saturating_sub(free.count_ones());
        while let Some(r) = pick(usable & !free & !d.spilled).filter(|_| missing > 0) {
            d.hot.store(r, slot(r));
            d.spilled |= 1 << r;
            missing -= 1;
        }
        if self.appends() {
            d.held = pick((d.spilled | free) & usable);
            d.held.iter().for_each(|&r| d.hot.load(r, context::RING_POSITION));
        }
        let (at, spilled, held, flags_dead) = (d.hot.len(), d.spilled, d.held, d.flags_dead);
        d.inner = Some(Inner { pc, at, spilled, held, flags_dead });
    }

    /// The registers that stay saved on the way to `target`, where that is the next turn.
    pub(super) fn kept_on_the_way(d: &Draft, target: u64) -> u16 {
        d.inner
            .filter(|inner| inner.pc == target && inner.spilled & !d.spilled == 0)
            .map_or(0, |inner| inner.spilled)
    }

    /// Takes the way out at `exit`, if it is one to the next turn that needs no register to be saved again.
    pub(super) fn turns(&mut self, d: &mut Draft, at: usize, exit: Exit) -> bool {
        let Some(inner) = d.inner.filter(|inner| inner.pc == exit.target && inner.spilled & !d.spilled == 0)
        else {
            return false;
        };
        let Some(fragment) = self.cache.find(exit.target) else { return false };
        let load = inner.held.filter(|_| d.held != inner.held);
        d.turns.push(Turn { at, exit, fragment, restore: exit.restore & !inner.spilled, load });
        true
    }

    /// Behind the fragment: for each way back its stub, and what is to be done before the next turn.
    pub(super) fn finish_turns(&mut self, d: &mut Draft, z: usize) {
        let Some(inner) = d.inner else { return };
        for turn in std::mem::take(&mut d.turns) {
            let stub = d.hot.len();
            let here = d.hot_base + stub as u64;
            let mut code = Assembler::default();
            let jump = self.cache.stub(&mut code, here, &turn.exit, turn.fragment);
            self.cache.arrives_by_stub(turn.fragment, z, here, jump);
            d.hot.raw(&code.bytes);
            d.edges.push((turn.at, stub));
            let at = d.hot.len();
            restore_registers(&mut d.hot, turn.restore);
            turn.load.iter().for_each(|&r| d.hot.load(r, context::RING_POSITION));
            turn.exit.counter.iter().for_each(|&counter| count(&mut d.hot, counter, inner.flags_dead));
            let goal = Goal::Hot(if d.hot.len() == at { inner.at } else { at });
            if goal == Goal::Hot(at) {
                let jump = d.hot.jump();
                d.link(Part::Hot, jump, Goal::Hot(inner.at));
            }
            d.link(Part::Hot, turn.at, goal);
        }
    }
}

/// Whether `piece` ends with a branch to `pc` that is taken with registers as they are.
fn leads_to(piece: &Piece, pc: u64) -> bool {
    piece.last().is_some_and(|last| {
        let i = &last.i;
        let branches = i.is_jcc_short_or_near()
            || i.flow_control() == FlowControl::UnconditionalBranch && i.is_jmp_short_or_near();
        branches && i.near_branch_target() == pc
    })
}
