//! Inline records: a register holds the ring's position while a block appends, and the position is
//! written to memory once per block.
//!
//! ```text
//!   register ─▶ position      pending records            limit     slack
//!               ▼             ▼                          ▼         ▼
//!   ring   ─────┼─────────────┬──────────────────────────┼─────────┐
//!               │ rec │ rec   │ free                     │ free    │
//! ```
//!
//! A record takes the computation of an address, two stores and no branch. All other readers of the
//! position in memory need it to include pending records: cold paths add them before they call a
//! routine, and at a stop the host adds those that the state map calls pending. The limit is
//! checked once per fragment, where flags are free in its first block; behind the limit the ring
//! has room for the records of two fragments. Source: our own.

use super::emitter::Emitter;
use super::filter::{remember, tables};
use crate::code::assembler::{reg, Assembler};
use crate::code::buffer::{Label, RecordRoutine, Routine, Section};
use crate::code::hand_over;
use crate::code::state_map::{pick, slot, FLAGS_BIT};
use crate::plan::group::Member;
use crate::target::layout::context;
use assembler::Condition;
use event::Filter;

/// After this number of pending records the position is written to memory, so that the
/// displacements of records fit into a signed byte.
const PENDING_MAX: u8 = 7;

impl Emitter {
    /// The register with the ring's position; if there is none, loads the position into one. It
    /// prefers a register that the rest of the block does not touch, and never takes rax, because
    /// saving flags needs it.
    pub(super) fn position(&mut self, avoid: u16) -> u8 {
        if let Some(register) = self.held {
            return register;
        }
        // A register that is already free and stays untouched is best: nothing must be saved, and
        // nothing must be restored before the block ends.
        let usable = !(avoid | FLAGS_BIT | 1 << reg::RSP | 1 << reg::RAX);
        let untouched = usable & !self.touched;
        let free = self.spilled | self.dead;
        let register = pick(free & untouched)
            .or_else(|| pick(untouched))
            .or_else(|| pick(usable))
            .expect("sixteen registers");
        if free >> register & 1 == 0 {
            self.buffer.hot.store(register, slot(register));
            self.spilled |= 1 << register;
        }
        self.buffer.hot.load(register, context::RING_POSITION);
        self.held = Some(register);
        register
    }

    /// Appends a record of the address in `pointer`.
    pub(super) fn append(&mut self, pointer: u8, what: u32) {
        let position = self.position(1 << pointer);
        // Records are written behind the position; the position advances once for all of them.
        self.buffer.hot.store_at(pointer, position, 16 * self.pending);
        self.buffer.hot.store_imm_at(position, 16 * self.pending + 8, what);
        self.appended();
    }

    /// Appends a record of a constant address.
    pub(super) fn append_constant(&mut self, address: u64, what: u32) {
        let position = self.position(0);
        let at = 16 * self.pending;
        // Most addresses of code need 64 bits and two stores; a short one needs one.
        match i32::try_from(address) {
            Ok(short) => self.buffer.hot.store_imm64_at(position, at, short),
            Err(_) => {
                self.buffer.hot.store_imm_at(position, at, address as u32);
                self.buffer.hot.store_imm_at(position, at + 4, (address >> 32) as u32);
            }
        }
        self.buffer.hot.store_imm_at(position, at + 8, what);
        self.appended();
    }

    /// Notes one more pending record.
    pub(super) fn appended(&mut self) {
        self.pending += 1;
        if self.pending == PENDING_MAX {
            self.commit();
        }
    }

    /// Adds the pending records to the position, in the register and in memory. Changes no flags.
    pub(super) fn commit(&mut self) {
        let (Some(position), 1..) = (self.held, self.pending) else { return };
        self.buffer.hot.advance(position, 16 * self.pending as i8);
        self.buffer.hot.store(position, context::RING_POSITION);
        self.pending = 0;
    }

    /// Writes the position to memory, and frees its register.
    pub(super) fn let_go(&mut self) {
        self.commit();
        self.held = None;
    }

    /// Emits cold code that adds the pending records to the position in memory, for code that uses
    /// it.
    pub(super) fn lend_position(&mut self) {
        let (Some(position), 1..) = (self.held, self.pending) else { return };
        self.buffer.cold.advance(position, 16 * self.pending as i8);
        self.buffer.cold.store(position, context::RING_POSITION);
    }

    /// Emits cold code that loads the position back into its register, as hot code expects it.
    pub(super) fn take_position_back(&mut self) {
        let Some(position) = self.held else { return };
        self.buffer.cold.load(position, context::RING_POSITION);
        // `lend_position` has added the pending records; hot code still regards them as pending.
        if self.pending > 0 {
            self.buffer.cold.advance(position, -16 * self.pending as i8);
        }
    }

    /// Emits the check of the ring's limit: if the segment is full, the code stops for the host.
    /// Flags are free afterwards.
    pub(super) fn check_limit(&mut self) {
        self.limit_due = false;
        self.free_flags();
        let position = self.position(0);
        // The observer has read these lines on another core, so a store without a prefetch would
        // wait.
        self.buffer.hot.prefetch_write(position, 512);
        self.buffer.hot.compare(position, context::RING_LIMIT);
        let at = self.buffer.hot.jump_if(Condition::AboveOrEqual);
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        let back = self.buffer.hot.len();
        // Cold: the host takes the segment up to the position in memory, and provides another one.
        self.lend_position();
        leave(&mut self.buffer.cold);
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(back));
    }
}

impl Emitter {
    /// Emits cold code that records a reference whose check failed, by a call of a shared routine.
    /// This is the shortest form, for code that has not run often yet. The routine uses the
    /// registers `pointer` and `spare`, and the call uses the context's own stack.
    pub(super) fn call_cold(&mut self, member: &Member, pointer: u8, spare: u8, routine: RecordRoutine) {
        self.buffer.cold.lea(pointer, &member.address);
        self.buffer.cold.add_segment(pointer, &member.address);
        // The routine expects the address in one register and the record's `what` in the other.
        self.buffer.cold.mov_imm(spare, u64::from(member.what));
        // The program's stack pointer lies on top of the other stack, so that `pop rsp` restores
        // it.
        self.buffer.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.buffer.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.buffer.cold.call();
        self.buffer.want_routine(Section::Cold, at, Routine::Record(routine));
        self.buffer.cold.pop_stack();
    }

    /// Emits cold code that records the members that the filter does not know. It checks them one
    /// by one, because the record of one member may make the filter know the next. `pointer`,
    /// `spare` and flags are free.
    pub(super) fn record_filter_misses(
        &mut self,
        members: &[Member],
        pointer: u8,
        spare: u8,
        filter: &Filter,
    ) {
        for member in members {
            self.buffer.cold.lea(pointer, &member.address);
            self.buffer.cold.add_segment(pointer, &member.address);
            // A record of an earlier member may have made this member's line the last of its set.
            let sizes = (filter.data.line_bytes, filter.last_pages().map(|page| page.line_bytes));
            let known = self.buffer.cold.jump_if_known((pointer, spare), member.size_bytes, sizes, |code| {
                code.lea(pointer, &member.address);
                code.add_segment(pointer, &member.address);
            });
            self.record_cold(std::slice::from_ref(member), pointer, spare, filter);
            let here = self.buffer.cold.len();
            known.into_iter().for_each(|at| self.buffer.cold.patch(at, here));
        }
    }

    /// Emits cold code that records a group whose check failed, and makes its line the last of its
    /// set. `pointer`, `spare` and flags are free.
    pub(super) fn record_cold(&mut self, members: &[Member], pointer: u8, spare: u8, filter: &Filter) {
        let code = &mut self.buffer.cold;
        // Write the records one behind the other, then advance the position behind all of them.
        code.load(spare, context::RING_POSITION);
        for (index, member) in members.iter().enumerate() {
            code.lea(pointer, &member.address);
            code.add_segment(pointer, &member.address);
            code.store_at(pointer, spare, 16 * index as u8);
            code.store_imm_at(spare, 16 * index as u8 + 8, member.what);
        }
        code.advance(spare, 16 * members.len() as i8);
        code.store(spare, context::RING_POSITION);
        code.compare(spare, context::RING_LIMIT);
        let on = code.jump_if(Condition::Below);
        leave(code);
        let here = code.len();
        code.patch(on, here);
        // All members lie in the line of the first one, which becomes the last of its set in each
        // table.
        let first = &members[0];
        let mut formed = members.len() == 1;
        for table in tables(filter, first.kind) {
            if !std::mem::take(&mut formed) {
                code.lea(pointer, &first.address);
                code.add_segment(pointer, &first.address);
            }
            remember(code, pointer, spare, first.size_bytes, &table);
        }
    }
}

impl Emitter {
    /// Emits a stop for the host that is taken when `position` has passed the segment's limit.
    /// Needs free flags.
    pub(super) fn check_ring(&mut self, position: u8) {
        self.buffer.hot.compare(position, context::RING_LIMIT);
        let at = self.buffer.hot.jump_if(Condition::AboveOrEqual);
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        let back = self.buffer.hot.len();
        self.leave_ring(back);
    }

    /// Emits cold code that hands the full segment over and returns to `back` in the hot section.
    pub(super) fn leave_ring(&mut self, back: usize) {
        leave(&mut self.buffer.cold);
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(back));
    }
}

/// Emits a stop that hands the full segment over; the code behind it runs next.
pub(super) fn leave(code: &mut Assembler) {
    hand_over::leave_full_ring(code);
}
