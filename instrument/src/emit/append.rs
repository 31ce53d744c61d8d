//! Records in line: the ring's position waits in a register while a block appends, and memory
//! learns of it once per block.
//!
//! A record is an address, two stores and no branch. Other readers of the position need the true
//! one: cold paths write it before they call a routine, and at a stop the host adds the records
//! that the state map calls pending. The limit is checked once per fragment, where its first block
//! has free flags; behind it the ring has room for all that two fragments can append. Source: our
//! own.

use super::emitter::Emitter;
use super::filter::{remember, tables};
use crate::code::assembler::{reg, Assembler};
use crate::code::buffer::{Label, RecordRoutine, Routine, Section};
use crate::code::fragment::EXIT_RING;
use crate::code::state_map::{pick, slot, FLAGS_BIT};
use crate::plan::group::Member;
use crate::target::layout::context;
use assembler::Condition;
use event::Filter;

/// After this many records the position is written to memory, so that displacements of records stay
/// within a signed byte.
const PENDING_MAX: u8 = 7;

impl Emitter {
    /// The register with the ring's position; loads it if none holds it. It is one that the rest of
    /// the block leaves alone, if there is one, and never rax, which flags need.
    pub(super) fn position(&mut self, avoid: u16) -> u8 {
        if let Some(r) = self.held {
            return r;
        }
        // Best is a register that is free already and stays untouched, so that nothing is saved
        // and nothing has to be given back before the block ends.
        let usable = !(avoid | FLAGS_BIT | 1 << reg::RSP | 1 << reg::RAX);
        let untouched = usable & !self.touched;
        let free = self.spilled | self.dead;
        let r = pick(free & untouched)
            .or_else(|| pick(untouched))
            .or_else(|| pick(usable))
            .expect("sixteen registers");
        if free >> r & 1 == 0 {
            self.buffer.hot.store(r, slot(r));
            self.spilled |= 1 << r;
        }
        self.buffer.hot.load(r, context::RING_POSITION);
        self.held = Some(r);
        r
    }

    /// Appends a record of the address in `pointer`.
    pub(super) fn append(&mut self, pointer: u8, what: u32) {
        let r = self.position(1 << pointer);
        // Records stand behind the position, which moves on once for all of them.
        self.buffer.hot.store_at(pointer, r, 16 * self.pending);
        self.buffer.hot.store_imm_at(r, 16 * self.pending + 8, what);
        self.appended();
    }

    /// Appends a record of a constant address.
    pub(super) fn append_constant(&mut self, address: u64, what: u32) {
        let r = self.position(0);
        let at = 16 * self.pending;
        // Most addresses of code need 64 bits; those that fit go by one store.
        match i32::try_from(address) {
            Ok(short) => self.buffer.hot.store_imm64_at(r, at, short),
            Err(_) => {
                self.buffer.hot.store_imm_at(r, at, address as u32);
                self.buffer.hot.store_imm_at(r, at + 4, (address >> 32) as u32);
            }
        }
        self.buffer.hot.store_imm_at(r, at + 8, what);
        self.appended();
    }

    fn appended(&mut self) {
        self.pending += 1;
        if self.pending == PENDING_MAX {
            self.commit();
        }
    }

    /// Makes the position in memory the true one. Touches no flags.
    pub(super) fn commit(&mut self) {
        let (Some(r), 1..) = (self.held, self.pending) else { return };
        self.buffer.hot.advance(r, 16 * self.pending as i8);
        self.buffer.hot.store(r, context::RING_POSITION);
        self.pending = 0;
    }

    /// Makes the position in memory the true one, and gives its register up.
    pub(super) fn let_go(&mut self) {
        self.commit();
        self.held = None;
    }

    /// Emitted in cold code before anything that uses the position in memory: adds the pending
    /// records to it.
    pub(super) fn lend_position(&mut self) {
        let (Some(r), 1..) = (self.held, self.pending) else { return };
        self.buffer.cold.advance(r, 16 * self.pending as i8);
        self.buffer.cold.store(r, context::RING_POSITION);
    }

    /// Emitted in cold code afterwards: loads the register with the position that hot code expects.
    pub(super) fn take_position_back(&mut self) {
        let Some(r) = self.held else { return };
        self.buffer.cold.load(r, context::RING_POSITION);
        // `lend_position` added the pending records to the position; hot code will count them
        // again.
        if self.pending > 0 {
            self.buffer.cold.advance(r, -16 * self.pending as i8);
        }
    }

    /// Leaves for the host when the ring's segment is full; flags become free.
    pub(super) fn check_limit(&mut self) {
        self.limit_due = false;
        self.free_flags();
        let r = self.position(0);
        // The observer has read these lines on another core, so the first store to each would wait.
        self.buffer.hot.prefetch_write(r, 512);
        self.buffer.hot.compare(r, context::RING_LIMIT);
        let at = self.buffer.hot.jump_if(Condition::AboveOrEqual);
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        let back = self.buffer.hot.len();
        // Cold: the host sees the true position, and gives another segment.
        self.lend_position();
        leave(&mut self.buffer.cold);
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(back));
    }
}

impl Emitter {
    /// Cold: the record of a reference whose check failed, by a shared routine for the registers
    /// `pointer` and `spare`: the shortest code there is, for code that has not run often yet. The
    /// call is made on the context's own stack.
    pub(super) fn call_cold(&mut self, member: &Member, pointer: u8, spare: u8, routine: RecordRoutine) {
        self.buffer.cold.lea(pointer, &member.address);
        self.buffer.cold.add_segment(pointer, &member.address);
        // The routine takes the address in one register and what to record in the other.
        self.buffer.cold.mov_imm(spare, u64::from(member.what));
        // The program's stack pointer waits on top of the other stack, from where one byte of code
        // brings it back.
        self.buffer.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.buffer.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.buffer.cold.call();
        self.buffer.want_routine(Section::Cold, at, Routine::Record(routine));
        self.buffer.cold.pop_stack();
    }

    /// Cold: records the members that the filter does not know. They are checked one by one,
    /// because the record of one member may make the filter know the next. `pointer` and `spare`
    /// are free, flags too.
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

    /// Cold: the records of a group whose check failed, and its line as its set's last. `pointer`
    /// and `spare` are free, flags too.
    pub(super) fn record_cold(&mut self, members: &[Member], pointer: u8, spare: u8, filter: &Filter) {
        let code = &mut self.buffer.cold;
        // The records, one behind the other, then the position behind all.
        code.load(spare, context::RING_POSITION);
        for (n, member) in members.iter().enumerate() {
            code.lea(pointer, &member.address);
            code.add_segment(pointer, &member.address);
            code.store_at(pointer, spare, 16 * n as u8);
            code.store_imm_at(spare, 16 * n as u8 + 8, member.what);
        }
        code.advance(spare, 16 * members.len() as i8);
        code.store(spare, context::RING_POSITION);
        code.compare(spare, context::RING_LIMIT);
        let on = code.jump_if(Condition::Below);
        leave(code);
        let here = code.len();
        code.patch(on, here);
        // All lie in the first one's line: it becomes its set's last, in each table.
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
    /// Leaves for the host when the position in `r` has passed the segment's limit. Needs free
    /// flags.
    pub(super) fn check_ring(&mut self, r: u8) {
        self.buffer.hot.compare(r, context::RING_LIMIT);
        let at = self.buffer.hot.jump_if(Condition::AboveOrEqual);
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        let back = self.buffer.hot.len();
        self.leave_ring(back);
    }

    /// Cold: hands the full segment over, and goes back to `back`.
    pub(super) fn leave_ring(&mut self, back: usize) {
        leave(&mut self.buffer.cold);
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(back));
    }
}

/// Hands the full segment over; goes on behind.
pub(super) fn leave(code: &mut Assembler) {
    code.store_imm32(context::EXIT, EXIT_RING);
    code.stop();
}
