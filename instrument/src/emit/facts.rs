//! What is known of a fragment before it is emitted: at each instruction, which registers and flags nobody needs any more.
//!
//! Backwards from each block's end. What lies behind it is known where that is the fragment's next block or code that has a fragment: what is
//! dead at a fragment's head is noted with it. So code that is translated again, by when nearly all that it leads to is there, knows the most.
//! **Why.** Without it a block's last third needs all registers and flags: a scratch register costs two memory accesses, flags ten
//! instructions. What is known so holds while the other code stays what it is: when a file's text changes, all of it is translated again
//! ([`Translator::retire_code`]). **Leaves out** what lies behind indirect transfers, system calls and code without a fragment: there everything lives; and
//! generated code, which may become other code. Source: Aho et al. 2006, section 9.2.5.

use crate::decode::End;
use crate::emit::draft::FLAGS_BIT;
use crate::liveness;
use crate::translate::{Piece, Translator};
use iced_x86::FlowControl;

/// What is known of a block.
#[derive(Default)]
pub(crate) struct Facts {
    /// Status flags dead before instruction k.
    pub(crate) flags_dead: Vec<bool>,
    /// Register use of instruction k; empty where no scratch is ever needed.
    pub(crate) uses: Vec<liveness::Use>,
    /// Registers dead before instruction k.
    pub(crate) dead: Vec<u16>,
    /// Registers that instructions k … touch.
    pub(crate) touched: Vec<u16>,
}

impl Facts {
    /// Knows nothing; its tables keep their room.
    fn clear(&mut self) {
        self.flags_dead.clear();
        self.uses.clear();
        self.dead.clear();
        self.touched.clear();
    }

    /// Registers and flags that are dead at the block's head.
    fn dead_at_head(&self) -> u16 {
        let registers = self.dead.first().map_or(0, |dead| dead & !FLAGS_BIT);
        let flags = self.flags_dead.first().is_some_and(|&dead| dead);
        registers | if flags { FLAGS_BIT } else { 0 }
    }
}

impl Translator {
    /// Learns the facts of all blocks of a fragment; the registers and flags that are dead at its head.
    pub(super) fn learn_facts(&mut self, pieces: &[Piece], facts: &mut [Facts]) -> u16 {
        let mut dead = 0;
        for (piece, facts) in pieces.iter().zip(facts).rev() {
            dead = self.dead_behind(piece, dead);
            self.learn(piece, facts, dead);
            dead = facts.dead_at_head();
        }
        dead
    }

    /// What is dead behind `piece`, where `next` is dead at the head of the fragment's next block.
    fn dead_behind(&self, piece: &Piece, next: u16) -> u16 {
        let Some(last) = piece.last() else { return 0 };
        let behind = |pc: u64| if piece.next.is_some() { next } else { self.dead_at(pc) };
        let i = &last.i;
        if piece.end != End::Transfer {
            return behind(i.next_ip());
        }
        match i.flow_control() {
            FlowControl::ConditionalBranch => self.dead_at(i.near_branch_target()) & behind(i.next_ip()),
            FlowControl::UnconditionalBranch if i.is_jmp_short_or_near() => behind(i.near_branch_target()),
            FlowControl::Call if i.is_call_near() => self.dead_at(i.near_branch_target()),
            _ => 0,
        }
    }

    /// Registers and flags that the code at `pc` is known not to need.
    pub(super) fn dead_at(&self, pc: u64) -> u16 {
        self.cache.find(pc).map_or(0, |f| self.cache.fragments[f].dead)
    }

    fn learn(&mut self, piece: &Piece, facts: &mut Facts, dead_behind: u16) {
        facts.clear();
        let flags = if dead_behind & FLAGS_BIT != 0 { 0 } else { liveness::FLAGS };
        liveness::dead_flags(&piece.instructions, flags, &mut facts.flags_dead);
        if !self.events.needs_scratch(&self.shapes, piece) {
            return;
        }
        let n = piece.instructions.len();
        let uses = piece.instructions.iter().map(|d| liveness::register_use(&mut self.factory, d));
        facts.uses.extend(uses);
        facts.dead.resize(n, 0);
        facts.touched.resize(n + 1, 0);
        let mut live = !(dead_behind & !FLAGS_BIT);
        for k in (0..n).rev() {
            let u = facts.uses[k];
            live = (live | piece.events.needed_after(k)) & !u.kills | u.needs | piece.events.needed_before(k);
            facts.dead[k] = !live;
            facts.touched[k] = facts.touched[k + 1] | u.needs | u.kills;
        }
    }
}
