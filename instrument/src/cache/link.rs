//! Links exits to fragments, and redirects them later.
//!
//! # The problem
//!
//! An exit may be linked long after its fragment was placed, and a linked exit may have to lead to
//! another fragment (a tuned one) or back to the host (retired code). Other threads may execute the
//! very bytes that change.
//!
//! # The idea
//!
//! While threads run, only two kinds of fields are rewritten: displacements of 32 bits that do not
//! cross a line, and aligned addresses of 64 bits. The processor reads each of them as a whole, so
//! one store suffices. The cache notes every field that leads to a fragment ([`Incoming`]). To
//! replace or retire a fragment, it walks that list and leaves the fragment's own code as it is.
//! If only one thread has ever run, the head of a retired fragment simply becomes a jump.
//!
//! ```text
//!   waiting    fragment ──▶ cold stub: exit number, int3            the host translates and links
//!
//!   linked     fragment ─────────────────────────▶ body     nothing to restore or to count
//!
//!              fragment ──▶ stub: restore registers,
//!                           count, jump ─────────▶ body     a side exit, saved registers, far code
//!
//!   retired    fragment ──▶ (stub) ──▶ cold stub: stale exit        the host translates again
//! ```

use super::CodeCache;
use crate::code::assembler::Assembler;
use crate::code::counter::count;
use crate::code::fragment::{near, CodeExit, Incoming};
use crate::code::lookup;
use crate::code::state_map::restore_registers;
use crate::room::make_room;

/// How a stub jumps to its fragment, with the position in the stub of the field that holds the
/// destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpForm {
    /// A jump by a displacement, which stands at this position.
    Near(usize),
    /// A jump through an aligned address, which stands at this position.
    Far(usize),
}

impl CodeCache {
    /// Breaks the loops of fragments `from` up to `to`: their back edges take the normal exit to
    /// the fragment's head.
    pub(crate) fn break_loops(&self, from: usize, to: usize) {
        // Back edges are noted in the order of their fragments.
        let start = self.back_edges.partition_point(|edge| edge.fragment < from);
        let broken = self.back_edges[start..].iter().take_while(|edge| edge.fragment < to);
        broken.for_each(|edge| self.shared.patch32(edge.offset, edge.displacement));
    }

    /// Links every exit that waits for this fragment.
    pub(crate) fn link_pending(&mut self, fragment_index: usize) {
        let mut waiting = self.pending.remove(&self.fragments[fragment_index].pc).unwrap_or(0);
        while waiting != 0 {
            let next = self.exits[waiting as usize].next;
            self.link(waiting, fragment_index);
            waiting = next;
        }
    }

    /// Makes exit `number` lead to the fragment.
    fn link(&mut self, number: u32, fragment_index: usize) {
        let exit = self.exits[number as usize];
        let zone_index = exit.zone as usize;
        let body = self.fragments[fragment_index].body;
        let at = self.zones[zone_index].address + u64::from(exit.patch);
        // The exit jumps straight to the body if nothing must be restored or counted and the body
        // is near. Otherwise it jumps to a new stub at the end of the zone.
        let destination = if exit.counter.is_none() && exit.restore == 0 && near(at + 4, body) {
            self.arrives(fragment_index, self.zones[zone_index].offset + exit.patch as usize, at + 4);
            body
        } else {
            let mut code = std::mem::take(&mut self.scratch);
            code.clear();
            let here = self.zones[zone_index].address + self.zones[zone_index].hot_used;
            let at = self.stub(&mut code, here, &exit, fragment_index);
            self.arrives_by_stub(fragment_index, zone_index, here, at);
            self.copy_in(zone_index, code.bytes(), &[]);
            self.scratch = code;
            here
        };
        // This store links the exit. A thread that still sees the old value goes to the cold stub
        // and asks the host, which is correct too.
        let displacement = destination.wrapping_sub(at + 4) as i64;
        self.shared.patch32(self.zones[zone_index].offset + exit.patch as usize, displacement as i32);
    }

    /// Notes a displacement that leads to the fragment: it lies at `offset` of the shared file and
    /// is relative to address `from`.
    pub(super) fn arrives(&mut self, fragment_index: usize, offset: usize, from: u64) {
        let next =
            std::mem::replace(&mut self.fragments[fragment_index].incoming, self.incoming.len() as u32);
        make_room(&mut self.incoming, 1);
        self.incoming.push(Incoming { offset, from, next });
    }

    /// Notes the jump of a stub that is placed at `here`, which leads to the fragment.
    pub(super) fn arrives_by_stub(
        &mut self,
        fragment_index: usize,
        zone_index: usize,
        here: u64,
        form: JumpForm,
    ) {
        let offset =
            |at| self.zones[zone_index].offset + (here - self.zones[zone_index].address) as usize + at;
        match form {
            JumpForm::Near(at) => self.arrives(fragment_index, offset(at), here + at as u64 + 4),
            JumpForm::Far(at) => self.arrives(fragment_index, offset(at), 0),
        }
    }

    /// Redirects every place that leads to fragment `old` to fragment `new`, except places too far
    /// from `new`. Each place changes by one store, so threads may run meanwhile.
    pub(crate) fn redirect(&mut self, old: usize, new: usize) {
        self.break_loops(old, old + 1);
        let destination = self.fragments[new].body;
        let mut place = std::mem::take(&mut self.fragments[old].incoming);
        // Each place moves to the list of the fragment to which it leads now: `new`, or `old` if
        // `new` is out of the place's reach.
        while place != 0 {
            let next = self.incoming[place as usize].next;
            let owner = if self.lead(place, destination) { new } else { old };
            let rest = std::mem::replace(&mut self.fragments[owner].incoming, place);
            self.incoming[place as usize].next = rest;
            place = next;
        }
        // The lookup table leads to the old fragment's entry. The jump of that entry is one of the
        // places above, so the entry leads to the new fragment now.
        if let Some(entry) = self.fragments[old].entry.take() {
            self.fragments[new].entry.get_or_insert(entry);
        }
        self.map.insert(self.fragments[new].pc, new as u32);
    }

    /// Makes a place lead to `destination`; returns whether the place can reach it.
    fn lead(&self, incoming: u32, destination: u64) -> bool {
        let Incoming { offset, from, .. } = self.incoming[incoming as usize];
        // An aligned address reaches everything; a displacement reaches 2 GB.
        if from == 0 {
            self.shared.write64(offset, destination);
        } else if near(from, destination) {
            self.shared.patch32(offset, destination.wrapping_sub(from) as i32);
        } else {
            return false;
        }
        true
    }

    /// Appends the stub of a linked exit to `code`: restore registers, count, jump. `here` is the
    /// final address of the present end of `code`.
    pub(super) fn stub(
        &self,
        code: &mut Assembler,
        here: u64,
        exit: &CodeExit,
        fragment_index: usize,
    ) -> JumpForm {
        let start = code.len();
        // The stub ends with the one field that a later redirection replaces.
        restore_registers(code, exit.restore);
        if let Some(counter) = exit.counter {
            let flags_dead = self.fragments[fragment_index].flags_dead;
            count(code, counter, self.weights_of(counter), flags_dead);
        }
        let body = self.fragments[fragment_index].body;
        code.align_patch(here - start as u64, 1);
        let from = here + (code.len() - start) as u64 + 5;
        if near(from, body) {
            code.code().jump_by(body.wrapping_sub(from) as i32);
            return JumpForm::Near(code.len() - 4 - start);
        }
        /// `jmp [rip]`
        const JUMP_BYTES: usize = 6;
        // The body is too far for a displacement, so the jump reads an address that stands behind
        // it. The address is aligned, so that one store replaces it.
        while !(here + (code.len() - start + JUMP_BYTES) as u64).is_multiple_of(8) {
            code.code().nop();
        }
        JumpForm::Far(code.code().jump_to_address(body) - start)
    }

    /// Removes the fragment from the map, so that no new link leads to it. In a program with
    /// threads its slot of the lookup table stays, because another thread may stand between reading
    /// the slot's tag and its code; the code behind the slot checks itself or leads to the host.
    pub(crate) fn forget(&mut self, fragment_index: usize) {
        let pc = self.fragments[fragment_index].pc;
        if self.map.get(&pc) == Some(&(fragment_index as u32)) {
            self.map.remove(&pc);
            if !self.parallel {
                self.unpublish(pc);
            }
        }
    }

    /// Removes the fragment from the map and redirects every place that leads to it to the host,
    /// which translates the code again.
    pub(crate) fn retire(&mut self, fragment_index: usize) {
        self.forget(fragment_index);
        self.break_loops(fragment_index, fragment_index + 1);
        let pc = self.fragments[fragment_index].pc;
        let exit = self.exits.len() as u32;
        let patch = fragment_index as u32;
        // A stale exit names the fragment in place of a displacement.
        self.exits.push(CodeExit {
            target: pc,
            zone: 0,
            patch,
            counter: None,
            restore: 0,
            next: 0,
            stale: true,
        });
        // A cold stub hands the stale exit's number to the host. Every place will lead to this
        // stub.
        let zone_index = self.fragments[fragment_index].zone as usize;
        let mut code = Assembler::default();
        lookup::leave(&mut code, exit);
        let stub = self.zones[zone_index].cold_address() + self.zones[zone_index].cold_used;
        self.copy_in(zone_index, &[], code.bytes());
        // If only one thread has ever run, it is enough to overwrite the head.
        if !self.parallel {
            return self.jump_from_head(fragment_index, stub);
        }
        let mut place = self.fragments[fragment_index].incoming;
        while place != 0 {
            self.lead(place, stub);
            place = self.incoming[place as usize].next;
        }
    }

    /// Overwrites the head of a fragment that is no longer valid with a jump to `to`. No thread may
    /// be executing that head.
    pub(crate) fn jump_from_head(&mut self, fragment_index: usize, to: u64) {
        let body = self.fragments[fragment_index].body;
        let mut jump = Assembler::default();
        if near(body + 5, to) {
            jump.code().jump_by(to.wrapping_sub(body + 5) as i32);
        } else {
            jump.code().jump_to_address(to);
        }
        let zone = &self.zones[self.fragments[fragment_index].zone as usize];
        self.shared.write(zone.offset + (body - zone.address) as usize, jump.bytes());
    }
}
