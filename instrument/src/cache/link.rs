//! Links: what leads to a fragment, and how it is led elsewhere.
//!
//! An exit whose target has no code yet leads through a cold stub to the host. When the target is
//! translated, every exit that waits for it is linked by rewriting one displacement, which is
//! atomic: it never crosses a line. Each place that leads to a fragment is noted, so that a
//! fragment that is replaced or retired needs no word of its own: the places are led to the new
//! one, or to the host.

use super::CodeCache;
use crate::code::assembler::Assembler;
use crate::code::counter::count;
use crate::code::fragment::{near, CodeExit, Incoming};
use crate::code::lookup;
use crate::code::state_map::restore_registers;

/// Where in a stub the place is that leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpForm {
    /// A displacement.
    Near(usize),
    /// An address, aligned.
    Far(usize),
}

impl CodeCache {
    /// Breaks the loops of fragments `from` up to `to`: their back edges take the normal exit to
    /// the fragment's head.
    pub(crate) fn break_loops(&self, from: usize, to: usize) {
        let start = self.back_edges.partition_point(|edge| edge.fragment < from);
        let broken = self.back_edges[start..].iter().take_while(|edge| edge.fragment < to);
        broken.for_each(|edge| self.shared.patch32(edge.offset, edge.displacement));
    }

    /// Links every exit that waits for fragment `f`.
    pub(crate) fn link_pending(&mut self, f: usize) {
        let mut waiting = self.pending.remove(&self.fragments[f].pc).unwrap_or(0);
        while waiting != 0 {
            let next = self.exits[waiting as usize].next;
            self.link(waiting, f);
            waiting = next;
        }
    }

    fn link(&mut self, number: u32, f: usize) {
        let exit = self.exits[number as usize];
        let z = exit.zone as usize;
        let body = self.fragments[f].body;
        let at = self.zones[z].address + u64::from(exit.patch);
        // Straight, if nothing is to be done on the way; otherwise by a stub at the end of the
        // zone.
        let goal = if exit.counter.is_none() && exit.restore == 0 && near(at + 4, body) {
            self.arrives(f, self.zones[z].offset + exit.patch as usize, at + 4);
            body
        } else {
            let mut code = std::mem::take(&mut self.scratch);
            code.clear();
            let here = self.zones[z].address + self.zones[z].hot_used;
            let at = self.stub(&mut code, here, &exit, f);
            self.arrives_by_stub(f, z, here, at);
            self.copy_in(z, code.bytes(), &[]);
            self.scratch = code;
            here
        };
        let displacement = goal.wrapping_sub(at + 4) as i64;
        self.shared.patch32(self.zones[z].offset + exit.patch as usize, displacement as i32);
    }

    /// Notes a displacement that leads to fragment `f`.
    pub(super) fn arrives(&mut self, f: usize, offset: usize, from: u64) {
        let next = std::mem::replace(&mut self.fragments[f].incoming, self.incoming.len() as u32);
        self.incoming.push(Incoming { offset, from, next });
    }

    /// Notes the jump of a stub that is placed at `here`, which leads to fragment `f`.
    pub(super) fn arrives_by_stub(&mut self, f: usize, z: usize, here: u64, form: JumpForm) {
        let offset = |at| self.zones[z].offset + (here - self.zones[z].address) as usize + at;
        match form {
            JumpForm::Near(at) => self.arrives(f, offset(at), here + at as u64 + 4),
            JumpForm::Far(at) => self.arrives(f, offset(at), 0),
        }
    }

    /// Everything that leads to fragment `old` leads to `new` from now on, but for what `new` is
    /// too far from. Each place changes at once: threads may run.
    pub(crate) fn redirect(&mut self, old: usize, new: usize) {
        self.break_loops(old, old + 1);
        let goal = self.fragments[new].body;
        let mut n = std::mem::take(&mut self.fragments[old].incoming);
        // Each place that could be led to the new fragment is the new one's from now on.
        while n != 0 {
            let next = self.incoming[n as usize].next;
            let owner = if self.lead(n, goal) { new } else { old };
            let rest = std::mem::replace(&mut self.fragments[owner].incoming, n);
            self.incoming[n as usize].next = rest;
            n = next;
        }
        // The lookup table leads to the old entry, which leads to the new body by now.
        if let Some(entry) = self.fragments[old].entry.take() {
            self.fragments[new].entry.get_or_insert(entry);
        }
        self.map.insert(self.fragments[new].pc, new as u32);
    }

    /// Makes a place lead to `goal`, if it can.
    fn lead(&self, incoming: u32, goal: u64) -> bool {
        let Incoming { offset, from, .. } = self.incoming[incoming as usize];
        if from == 0 {
            self.shared.write64(offset, goal);
        } else if near(from, goal) {
            self.shared.patch32(offset, goal.wrapping_sub(from) as i32);
        } else {
            return false;
        }
        true
    }

    /// The linked form of an exit: restore, count, jump. `here` is the final address of the code's
    /// end so far.
    pub(super) fn stub(&self, code: &mut Assembler, here: u64, exit: &CodeExit, f: usize) -> JumpForm {
        let start = code.len();
        // Restore, count, go on: threads may be led elsewhere by one store later.
        restore_registers(code, exit.restore);
        if let Some(counter) = exit.counter {
            count(code, counter, self.fragments[f].flags_dead);
        }
        let body = self.fragments[f].body;
        code.align_patch(here - start as u64, 1);
        let from = here + (code.len() - start) as u64 + 5;
        if near(from, body) {
            code.code().jump_by(body.wrapping_sub(from) as i32);
            return JumpForm::Near(code.len() - 4 - start);
        }
        /// `jmp [rip]`
        const JUMP_BYTES: usize = 6;
        // Too far for a displacement: an address behind the jump, aligned so that it is replaced
        // at once.
        while !(here + (code.len() - start + JUMP_BYTES) as u64).is_multiple_of(8) {
            code.code().nop();
        }
        JumpForm::Far(code.code().jump_to_address(body) - start)
    }

    /// Forgets fragment `f`: nothing new leads to it. Where threads run, its slot in the lookup
    /// table stays: another one may stand between reading its tag and its code. What is behind it
    /// checks itself, or leads to the host.
    pub(crate) fn forget(&mut self, f: usize) {
        let pc = self.fragments[f].pc;
        if self.map.get(&pc) == Some(&(f as u32)) {
            self.map.remove(&pc);
            if !self.parallel {
                self.unpublish(pc);
            }
        }
    }

    /// Forgets fragment `f` and makes all that leads to it lead to the host, who translates again.
    pub(crate) fn retire(&mut self, f: usize) {
        self.forget(f);
        self.break_loops(f, f + 1);
        let pc = self.fragments[f].pc;
        let exit = self.exits.len() as u32;
        let patch = f as u32;
        self.exits.push(CodeExit {
            target: pc,
            zone: 0,
            patch,
            counter: None,
            restore: 0,
            next: 0,
            stale: true,
        });
        // A stub that hands over, and everything that leads here leads there.
        let z = self.fragments[f].zone as usize;
        let mut code = Assembler::default();
        lookup::leave(&mut code, exit);
        let stub = self.zones[z].cold_address() + self.zones[z].cold_used;
        self.copy_in(z, &[], code.bytes());
        // With one thread its head alone is enough.
        if !self.parallel {
            return self.jump_from_head(f, stub);
        }
        let mut n = self.fragments[f].incoming;
        while n != 0 {
            self.lead(n, stub);
            n = self.incoming[n as usize].next;
        }
    }

    /// Rewrites the head of fragment `f`, which is no longer valid, into a jump. No thread may be
    /// about to run it.
    pub(crate) fn jump_from_head(&mut self, f: usize, to: u64) {
        let body = self.fragments[f].body;
        let mut jump = Assembler::default();
        if near(body + 5, to) {
            jump.code().jump_by(to.wrapping_sub(body + 5) as i32);
        } else {
            jump.code().jump_to_address(to);
        }
        let zone = &self.zones[self.fragments[f].zone as usize];
        self.shared.write(zone.offset + (body - zone.address) as usize, jump.bytes());
    }
}
