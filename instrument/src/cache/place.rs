//! Places a fragment's code: everything that emission left open is closed here.
//!
//! The order is that of the notes in the buffer, so that the same code and the same numbers come of
//! the same program: routines, then exits, then stubs of exits, then back edges.

use super::{BackEdge, CodeCache};
use crate::code::assembler::Assembler;
use crate::code::buffer::{CodeBuffer, ExitForm, Label, Routine, Section, WantedExit};
use crate::code::counter::count;
use crate::code::fragment::{near, CodeExit, Fragment};
use crate::code::state_map::{restore_registers, StateMapEntry};
use crate::target::layout::context;

impl CodeCache {
    /// Final addresses of the next fragment's sections in zone `z`.
    pub(crate) fn bases(&self, z: usize) -> (u64, u64) {
        let zone = &self.zones[z];
        (zone.address + zone.hot_used, zone.cold_address() + zone.cold_used)
    }

    /// Places `buffer`, which was begun at [`CodeCache::bases`], as `fragment`; its number. Nothing
    /// leads to it yet. `write` writes a routine that the zone does not have.
    pub(crate) fn place(
        &mut self,
        buffer: &mut CodeBuffer,
        fragment: Fragment,
        write: impl Fn(&mut Assembler, &Routine),
    ) -> usize {
        let z = fragment.zone as usize;
        // Routines first: their addresses are known, or they are written now.
        for n in 0..buffer.routines.len() {
            let (section, at, routine) = buffer.routines[n];
            let address = self.routine(z, &routine, &write);
            buffer.lead(section, at, address);
        }
        // Then exits, and what that appends: stubs, then back edges.
        self.close_exits(z, buffer);
        self.close_back_edges(z, buffer);
        // Nothing moves any more.
        buffer.resolve_labels();
        let zone = &mut self.zones[z];
        let at = zone.hot_used as u32;
        zone.state_map.extend(buffer.state_map.iter().map(|e| StateMapEntry { at: e.at + at, ..*e }));
        self.copy_in(z, buffer.hot.bytes(), buffer.cold.bytes());
        self.fragments.push(fragment);
        self.fragments.len() - 1
    }

    /// Enters a line of the instruction side that is kept whole into the table that routines read.
    pub(crate) fn enter_line(&self, number: u32, address: u64, row: u32) {
        let at = self.layout.contexts_offset() as usize + (context::KEPT_PLACES + 16 * number) as usize;
        self.shared.write64(at, address);
        self.shared.write32(at + 8, row);
    }

    /// The exit that a fragment in zone `z` wants, as the cache keeps it.
    fn exit(&self, z: usize, wanted: &WantedExit) -> CodeExit {
        let &WantedExit { at, target, counter, restore, .. } = wanted;
        let patch = self.zones[z].hot_used as u32 + at as u32;
        CodeExit { target, zone: z as u32, patch, counter, restore, next: 0, stale: false }
    }

    /// Gives waiting exits their numbers, and links the others: straight where nothing is to be
    /// done on the way, by a stub behind the fragment where something is.
    fn close_exits(&mut self, z: usize, buffer: &mut CodeBuffer) {
        for n in 0..buffer.exits.len() {
            let wanted = buffer.exits[n];
            let number = self.exits.len() as u32;
            match wanted.form {
                ExitForm::Stale(number_at) => {
                    let patch = self.fragments.len() as u32;
                    self.exits.push(CodeExit { patch, stale: true, ..self.exit(z, &wanted) });
                    buffer.cold.set_displacement(number_at, number as i32);
                }
                ExitForm::Waiting(number_at) => {
                    let next = self.pending.insert(wanted.target, number).unwrap_or(0);
                    self.exits.push(CodeExit { next, ..self.exit(z, &wanted) });
                    buffer.cold.set_displacement(number_at, number as i32);
                }
                ExitForm::Linked => self.link_or_stub(z, buffer, n),
                ExitForm::BackEdge { .. } => {}
            }
        }
        // Stubs follow the fragment, in the order of their exits.
        let mut stubbed = std::mem::take(&mut self.stubbed);
        for (n, f) in stubbed.drain(..) {
            let wanted = buffer.exits[n];
            buffer.link(Section::Hot, wanted.at, Label::Hot(buffer.hot.len()));
            self.append_stub(z, buffer, &wanted, f);
        }
        self.stubbed = stubbed;
    }

    /// Leads exit `n` of the buffer straight to its target's code, or notes that it needs a stub.
    fn link_or_stub(&mut self, z: usize, buffer: &mut CodeBuffer, n: usize) {
        let WantedExit { at, target, counter, restore, .. } = buffer.exits[n];
        let f = self.find(target).expect("emission was told that there is code");
        // Something is to be counted or restored on the way, or the way is too far.
        let (body, from) = (self.fragments[f].body, buffer.hot_base + at as u64);
        if counter.is_some() || restore != 0 || !near(from, body) {
            return self.stubbed.push((n, f));
        }
        let offset = self.zones[z].offset + self.zones[z].hot_used as usize + at;
        self.arrives(f, offset, from + 4);
        buffer.lead(Section::Hot, at, body);
    }

    /// Appends the stub by which an exit leads to fragment `f`, and notes that it leads there.
    fn append_stub(&mut self, z: usize, buffer: &mut CodeBuffer, wanted: &WantedExit, f: usize) {
        let here = buffer.hot_end();
        let exit = self.exit(z, wanted);
        let form = self.stub(&mut buffer.hot, here, &exit, f);
        self.arrives_by_stub(f, z, here, form);
    }

    /// Behind the fragment: for each back edge the stub that it takes when the loop is broken, and
    /// what is to be done before the next turn.
    fn close_back_edges(&mut self, z: usize, buffer: &mut CodeBuffer) {
        let Some(header) = buffer.loop_header else { return };
        for n in 0..buffer.exits.len() {
            let wanted = buffer.exits[n];
            let ExitForm::BackEdge { restore, load } = wanted.form else { continue };
            // The stub leads to the fragment that this one replaces, as everything does until then.
            let f = self.find(header.pc).expect("a loop is known because it was translated before");
            let stub = buffer.hot.len();
            self.append_stub(z, buffer, &wanted, f);
            self.back_edges.push(BackEdge {
                fragment: self.fragments.len(),
                offset: self.zones[z].offset + self.zones[z].hot_used as usize + wanted.at,
                displacement: stub as i32 - wanted.at as i32 - 4,
            });
            // The way to the next turn; straight where nothing comes back and nothing is counted.
            let way = buffer.hot.len();
            restore_registers(&mut buffer.hot, restore);
            load.iter().for_each(|&r| buffer.hot.load(r, context::RING_POSITION));
            wanted.counter.iter().for_each(|&counter| count(&mut buffer.hot, counter, header.flags_dead));
            let is_straight = buffer.hot.len() == way;
            if !is_straight {
                let jump = buffer.hot.jump();
                buffer.link(Section::Hot, jump, Label::Hot(header.at));
            }
            buffer.link(Section::Hot, wanted.at, Label::Hot(if is_straight { header.at } else { way }));
        }
    }
}
