//! Records in line: the ring's position waits in a register while a block appends, and memory
//! learns of it once per block.
//!
//! A record is an address, two stores and no branch. Whoever else reads the position (routines out
//! of line, the host at a stop) is given the true one: cold paths write it before they call, a stop
//! adds what the state map says is pending. The limit is checked once per fragment, where its first
//! block has free flags; behind it the ring has room for all that two fragments can append. Source:
//! our own.

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

/// Records after which the position is written: their displacements stay short.
const PENDING_MAX: u8 = 7;

impl Emitter {
    /// The register with the ring's position: one that the rest of the block leaves alone, if there
    /// is one; never rax, which flags need.
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

    /// Appends a record of the address in `a`.
    pub(super) fn append(&mut self, a: u8, what: u32) {
        let r = self.position(1 << a);
        // Records stand behind the position, which moves on once for all of them.
        self.buffer.hot.store_at(a, r, 16 * self.pending);
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

    /// In cold code, before something that uses the position in memory.
    pub(super) fn lend_position(&mut self) {
        let (Some(r), 1..) = (self.held, self.pending) else { return };
        self.buffer.cold.advance(r, 16 * self.pending as i8);
        self.buffer.cold.store(r, context::RING_POSITION);
    }

    /// In cold code, behind it: the register is what hot code expects.
    pub(super) fn take_position_back(&mut self) {
        let Some(r) = self.held else { return };
        self.buffer.cold.load(r, context::RING_POSITION);
        // What is behind the position in hot code was made part of it before the call.
        if self.pending > 0 {
            self.buffer.cold.advance(r, -16 * self.pending as i8);
        }
    }

    /// Leaves for the host when the ring's segment is full; flags become free.
    pub(super) fn check_limit(&mut self) {
        self.limit_due = false;
        self.free_flags();
        let r = self.position(0);
        // The observer has read these lines on another core.
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
    /// `a` and `b`: the shortest code there is, for code that has not run often yet. The call is
    /// made on the context's own stack.
    pub(super) fn call_cold(&mut self, member: &Member, a: u8, b: u8, routine: RecordRoutine) {
        self.buffer.cold.lea(a, &member.address);
        self.buffer.cold.add_segment(a, &member.address);
        // The routine takes the address in one register and what to record in the other.
        self.buffer.cold.mov_imm(b, u64::from(member.what));
        // The program's stack pointer waits on top of the other stack, from where one byte of code
        // brings it back.
        self.buffer.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.buffer.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.buffer.cold.call();
        self.buffer.want_routine(Section::Cold, at, Routine::Record(routine));
        self.buffer.cold.pop_stack();
    }

    /// Cold: the records of references of which the filter does not know all, one after the other:
    /// it may know one of them only after that of another. `a` and `b` are free, flags too.
    pub(super) fn record_filter_misses(&mut self, members: &[Member], a: u8, b: u8, filter: &Filter) {
        for member in members {
            self.buffer.cold.lea(a, &member.address);
            self.buffer.cold.add_segment(a, &member.address);
            // A record before this one may have brought its line.
            let sizes = (filter.data.line_bytes, filter.last_pages().map(|page| page.line_bytes));
            let known = self.buffer.cold.jump_if_known((a, b), member.size_bytes, sizes, |code| {
                code.lea(a, &member.address);
                code.add_segment(a, &member.address);
            });
            self.record_cold(std::slice::from_ref(member), a, b, filter);
            let here = self.buffer.cold.len();
            known.into_iter().for_each(|at| self.buffer.cold.patch(at, here));
        }
    }

    /// Cold: the records of a group whose check failed, and its line as its set's last. `a` and `b`
    /// are free, flags too.
    pub(super) fn record_cold(&mut self, members: &[Member], a: u8, b: u8, filter: &Filter) {
        let code = &mut self.buffer.cold;
        // The records, one behind the other, then the position behind all.
        code.load(b, context::RING_POSITION);
        for (n, member) in members.iter().enumerate() {
            code.lea(a, &member.address);
            code.add_segment(a, &member.address);
            code.store_at(a, b, 16 * n as u8);
            code.store_imm_at(b, 16 * n as u8 + 8, member.what);
        }
        code.advance(b, 16 * members.len() as i8);
        code.store(b, context::RING_POSITION);
        code.compare(b, context::RING_LIMIT);
        let on = code.jump_if(Condition::Below);
        leave(code);
        let here = code.len();
        code.patch(on, here);
        // All lie in the first one's line: it becomes its set's last, in each table.
        let first = &members[0];
        let mut formed = members.len() == 1;
        for table in tables(filter, first.kind) {
            if !std::mem::take(&mut formed) {
                code.lea(a, &first.address);
                code.add_segment(a, &first.address);
            }
            remember(code, a, b, first.size_bytes, &table);
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
