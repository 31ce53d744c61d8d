//! Places a fragment's code: closes everything that emission left open, then copies the code.
//!
//! ```text
//!    buffer, as emission leaves it          zone, after it was placed
//!    ┌──────────────────────────┐           ┌─────────────────────────────────────┐
//!    │ hot section              │    ──▶    │ hot section                         │
//!    └──────────────────────────┘           │ stubs of exits whose target exists  │
//!                                           │ for each back edge: a stub that     │
//!                                           │ breaks the loop, and the code back  │
//!                                           │ to the loop's header                │
//!                                           └─────────────────────────────────────┘
//!    ┌──────────────────────────┐           ┌─────────────────────────────────────┐
//!    │ cold section             │    ──▶    │ cold section with exit numbers      │
//!    └──────────────────────────┘           └─────────────────────────────────────┘
//! ```
//!
//! The steps follow the order of the notes in the buffer, so the same program always gets the same
//! code and the same numbers: routines, exits, stubs, back edges. Labels come last, because stubs
//! and back edges add some.

use super::{BackEdge, CodeCache};
use crate::code::assembler::Assembler;
use crate::code::buffer::{CodeBuffer, ExitForm, Label, Routine, Section, WantedExit};
use crate::code::counter::count;
use crate::code::fragment::{near, CodeExit, Fragment};
use crate::code::state_map::{restore_registers, StateMapEntry};
use crate::room::make_room;
use crate::target::layout::context;

impl CodeCache {
    /// Final addresses of the next fragment's sections in a zone.
    pub(crate) fn bases(&self, zone_index: usize) -> (u64, u64) {
        let zone = &self.zones[zone_index];
        (zone.address + zone.hot_used, zone.cold_address() + zone.cold_used)
    }

    /// Places `buffer`, which was begun at [`CodeCache::bases`], as `fragment`, and returns the
    /// fragment's index. No jump leads to it yet. `write` emits a routine that the zone does not
    /// have.
    pub(crate) fn place(
        &mut self,
        buffer: &mut CodeBuffer,
        fragment: Fragment,
        write: impl Fn(&mut Assembler, &Routine),
    ) -> usize {
        let zone_index = fragment.zone as usize;
        // Routines come first: those that do not exist yet are written now, into a part of the zone
        // where this fragment does not lie.
        for index in 0..buffer.routines.len() {
            let (section, at, routine) = buffer.routines[index];
            let address = self.routine(zone_index, &routine, &write);
            buffer.lead(section, at, address);
        }
        // Exits come next. Both steps append code to the hot section: stubs, then back edges' code.
        self.close_exits(zone_index, buffer);
        self.close_back_edges(zone_index, buffer);
        // Now all positions are final.
        buffer.resolve_labels();
        let zone = &mut self.zones[zone_index];
        let at = zone.hot_used as u32;
        // The buffer counts positions from its own start, the zone from the zone's start.
        let entries = buffer.state_map.iter().map(|entry| StateMapEntry { at: entry.at + at, ..*entry });
        zone.state_map.extend(entries);
        self.copy_in(zone_index, buffer.hot.bytes(), buffer.cold.bytes());
        make_room(&mut self.fragments, 1);
        self.fragments.push(fragment);
        self.fragments.len() - 1
    }

    /// Enters a line of the inline instruction cache into the table that routines read.
    pub(crate) fn enter_line(&self, number: u32, address: u64, row: u32) {
        let at = self.layout.contexts_offset() as usize + (context::FETCH_PLACES + 16 * number) as usize;
        self.shared.write64(at, address);
        self.shared.write32(at + 8, row);
    }

    /// The cache's form of an exit that the buffer wants, for a fragment in this zone.
    fn exit(&self, zone_index: usize, wanted: &WantedExit) -> CodeExit {
        let &WantedExit { at, target, counter, restore, .. } = wanted;
        let patch = self.zones[zone_index].hot_used as u32 + at as u32;
        CodeExit { target, zone: zone_index as u32, patch, counter, restore, next: 0, stale: false }
    }

    /// Gives numbers to waiting exits, and links the others: straight, or by a stub behind the
    /// fragment if there is something to restore or count.
    fn close_exits(&mut self, zone_index: usize, buffer: &mut CodeBuffer) {
        make_room(&mut self.exits, buffer.exits.len());
        for index in 0..buffer.exits.len() {
            let wanted = buffer.exits[index];
            let number = self.exits.len() as u32;
            match wanted.form {
                ExitForm::Stale(number_at) => {
                    // A failed check names this fragment, which will get the next index.
                    let patch = self.fragments.len() as u32;
                    self.exits.push(CodeExit { patch, stale: true, ..self.exit(zone_index, &wanted) });
                    buffer.cold.set_displacement(number_at, number as i32);
                }
                ExitForm::Waiting(number_at) => {
                    // The exit becomes the head of the list of exits that wait for this target.
                    let next = self.pending.insert(wanted.target, number).unwrap_or(0);
                    self.exits.push(CodeExit { next, ..self.exit(zone_index, &wanted) });
                    buffer.cold.set_displacement(number_at, number as i32);
                }
                ExitForm::Linked => self.link_or_stub(zone_index, buffer, index),
                ExitForm::BackEdge { .. } => {}
            }
        }
        // Stubs follow the fragment, in the order of their exits.
        let mut stubbed = std::mem::take(&mut self.stubbed);
        for (exit_index, fragment_index) in stubbed.drain(..) {
            let wanted = buffer.exits[exit_index];
            buffer.link(Section::Hot, wanted.at, Label::Hot(buffer.hot.len()));
            self.append_stub(zone_index, buffer, &wanted, fragment_index);
        }
        self.stubbed = stubbed;
    }

    /// Leads exit `n` of the buffer straight to its target's code, or notes that it needs a stub.
    fn link_or_stub(&mut self, zone_index: usize, buffer: &mut CodeBuffer, exit_index: usize) {
        let WantedExit { at, target, counter, restore, .. } = buffer.exits[exit_index];
        let fragment_index = self.find(target).expect("emission was told that there is code");
        // A stub is needed to count, to restore, or to reach a far target.
        let (body, from) = (self.fragments[fragment_index].body, buffer.hot_base + at as u64);
        if counter.is_some() || restore != 0 || !near(from, body) {
            return self.stubbed.push((exit_index, fragment_index));
        }
        let offset = self.zones[zone_index].offset + self.zones[zone_index].hot_used as usize + at;
        self.arrives(fragment_index, offset, from + 4);
        buffer.lead(Section::Hot, at, body);
    }

    /// Appends the stub by which an exit leads to the fragment, and notes the stub's jump as a
    /// place that leads there.
    fn append_stub(
        &mut self,
        zone_index: usize,
        buffer: &mut CodeBuffer,
        wanted: &WantedExit,
        fragment_index: usize,
    ) {
        let here = buffer.hot_end();
        let exit = self.exit(zone_index, wanted);
        let form = self.stub(&mut buffer.hot, here, &exit, fragment_index);
        self.arrives_by_stub(fragment_index, zone_index, here, form);
    }

    /// Appends, for each back edge, the stub that it takes when the loop is broken, and the code
    /// that leads to the next iteration.
    fn close_back_edges(&mut self, zone_index: usize, buffer: &mut CodeBuffer) {
        let Some(header) = buffer.loop_header else { return };
        for index in 0..buffer.exits.len() {
            let wanted = buffer.exits[index];
            let ExitForm::BackEdge { restore, load } = wanted.form else { continue };
            // The stub leads to the fragment that this one will replace, because the map does not
            // know the new one yet; the replacement redirects it with all other places.
            let fragment_index =
                self.find(header.pc).expect("a loop is known because it was translated before");
            let stub = buffer.hot.len();
            self.append_stub(zone_index, buffer, &wanted, fragment_index);
            self.back_edges.push(BackEdge {
                fragment: self.fragments.len(),
                offset: self.zones[zone_index].offset + self.zones[zone_index].hot_used as usize + wanted.at,
                displacement: stub as i32 - wanted.at as i32 - 4,
            });
            // The path to the next iteration restores registers, loads the ring's position and
            // counts. If nothing of this is needed, the back edge leads straight to the header.
            let path = buffer.hot.len();
            restore_registers(&mut buffer.hot, restore);
            load.iter().for_each(|&register| buffer.hot.load(register, context::RING_POSITION));
            if let Some(counter) = wanted.counter {
                count(&mut buffer.hot, counter, self.weights_of(counter), header.flags_dead);
            }
            let is_straight = buffer.hot.len() == path;
            if !is_straight {
                let jump = buffer.hot.jump();
                buffer.link(Section::Hot, jump, Label::Hot(header.at));
            }
            buffer.link(Section::Hot, wanted.at, Label::Hot(if is_straight { header.at } else { path }));
        }
    }
}
