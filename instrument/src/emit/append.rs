//! Records in line: the ring's position waits in a register while a block appends, and memory learns of it once per block.
//!
//! A record is an address, two stores and no branch. Whoever else reads the position (routines out of line, the host at a stop) is given the
//! true one: cold paths write it before they call, a stop adds what its bound says is pending. The limit is checked once per
//! fragment, where its first block has free flags; behind it the ring has room for all that two fragments can append. Source: our own.

use super::data::tables;
use super::draft::{pick, slot, Draft, Goal, Part, FLAGS_BIT};
use super::group::Member;
use super::routine::{Entering, Table};
use crate::assemble::{reg, Address, Assembler};
use crate::cache::EXIT_RING;
use crate::layout::context;
use event::Filter;

/// Records after which the position is written: their displacements stay short.
const PENDING_MAX: u8 = 7;

impl Draft {
    /// The register with the ring's position: one that the rest of the block leaves alone, if there is one; never rax, which flags need.
    pub(crate) fn position(&mut self, avoid: u16) -> u8 {
        if let Some(r) = self.held {
            return r;
        }
        let usable = !(avoid | FLAGS_BIT | 1 << reg::RSP | 1 << reg::RAX);
        let untouched = usable & !self.touched;
        let free = self.spilled | self.dead;
        let r = pick(free & untouched)
            .or_else(|| pick(untouched))
            .or_else(|| pick(usable))
            .expect("sixteen registers");
        if free >> r & 1 == 0 {
            self.hot.store(r, slot(r));
            self.spilled |= 1 << r;
        }
        self.hot.load(r, context::RING_POSITION);
        self.held = Some(r);
        r
    }

    /// Appends a record of the address in `a`.
    pub(crate) fn append(&mut self, a: u8, what: u32) {
        let r = self.position(1 << a);
        self.hot.store_at(a, r, 16 * self.pending);
        self.hot.store_imm_at(r, 16 * self.pending + 8, what);
        self.appended();
    }

    /// Appends a record of a constant address.
    pub(crate) fn append_constant(&mut self, address: u64, what: u32) {
        let r = self.position(0);
        let at = 16 * self.pending;
        match i32::try_from(address) {
            Ok(short) => self.hot.store_imm64_at(r, at, short),
            Err(_) => {
                self.hot.store_imm_at(r, at, address as u32);
                self.hot.store_imm_at(r, at + 4, (address >> 32) as u32);
            }
        }
        self.hot.store_imm_at(r, at + 8, what);
        self.appended();
    }

    fn appended(&mut self) {
        self.pending += 1;
        if self.pending == PENDING_MAX {
            self.commit();
        }
    }

    /// Makes the position in memory the true one. Touches no flags.
    pub(crate) fn commit(&mut self) {
        let (Some(r), 1..) = (self.held, self.pending) else { return };
        self.hot.advance(r, 16 * self.pending as i8);
        self.hot.store(r, context::RING_POSITION);
        self.pending = 0;
    }

    /// The same, and gives the register up.
    pub(crate) fn let_go(&mut self) {
        self.commit();
        self.held = None;
    }

    /// In cold code, before something that uses the position in memory.
    pub(crate) fn lend_position(&mut self) {
        let (Some(r), 1..) = (self.held, self.pending) else { return };
        self.cold.advance(r, 16 * self.pending as i8);
        self.cold.store(r, context::RING_POSITION);
    }

    /// In cold code, behind it: the register is what hot code expects.
    pub(crate) fn take_position_back(&mut self) {
        let Some(r) = self.held else { return };
        self.cold.load(r, context::RING_POSITION);
        if self.pending > 0 {
            self.cold.advance(r, -16 * self.pending as i8);
        }
    }

    /// Leaves for the host when the ring's segment is full; flags become free.
    pub(crate) fn check_limit(&mut self) {
        self.limit_due = false;
        self.free_flags();
        let r = self.position(0);
        // The observer has read these lines on another core.
        self.hot.prefetch_write(r, 512);
        self.hot.compare(r, context::RING_LIMIT);
        let at = self.hot.jump_if(3);
        self.link(Part::Hot, at, Goal::Cold(self.cold.len()));
        let back = self.hot.len();
        self.lend_position();
        leave(&mut self.cold);
        self.take_position_back();
        let at = self.cold.jump();
        self.link(Part::Cold, at, Goal::Hot(back));
    }
}

impl Draft {
    /// Cold: the record of a reference whose check failed, by a shared routine for the registers `a` and `b`: the shortest code there is, for
    /// code that has not run often yet. The call is made on the context's own stack.
    pub(crate) fn call_cold(&mut self, member: &Member, a: u8, b: u8, routine: u64) {
        self.cold.lea(a, &member.address);
        super::add_segment(&mut self.cold, a, &member.address);
        self.cold.mov_imm(b, u64::from(member.what));
        self.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.cold.call();
        self.link(Part::Cold, at, Goal::Address(routine));
        self.cold.pop_stack();
    }

    /// Cold: the records of references of which the filter does not know all, one after the other: it may know one of them only after that of
    /// another. `a` and `b` are free, flags too.
    pub(crate) fn record_news(&mut self, members: &[Member], a: u8, b: u8, filter: &Filter) {
        for member in members {
            self.cold.lea(a, &member.address);
            super::add_segment(&mut self.cold, a, &member.address);
            let sizes = (filter.data.line_bytes, filter.data_page.map(|page| page.line_bytes));
            let known = self.cold.jump_if_known((a, b), member.size_bytes, sizes, |code| {
                code.lea(a, &member.address);
                super::add_segment(code, a, &member.address);
            });
            self.record_cold(std::slice::from_ref(member), a, b, filter);
            let here = self.cold.len();
            known.into_iter().for_each(|at| self.cold.patch(at, here));
        }
    }

    /// Cold: the records of a group whose check failed, and its line as its set's last. `a` and `b` are free, flags too.
    pub(crate) fn record_cold(&mut self, members: &[Member], a: u8, b: u8, filter: &Filter) {
        let code = &mut self.cold;
        code.load(b, context::RING_POSITION);
        for (n, member) in members.iter().enumerate() {
            code.lea(a, &member.address);
            super::add_segment(code, a, &member.address);
            code.store_at(a, b, 16 * n as u8);
            code.store_imm_at(b, 16 * n as u8 + 8, member.what);
        }
        code.advance(b, 16 * members.len() as i8);
        code.store(b, context::RING_POSITION);
        code.compare(b, context::RING_LIMIT);
        let on = code.jump_if(2);
        leave(code);
        let here = code.len();
        code.patch(on, here);
        let first = &members[0];
        let mut formed = members.len() == 1;
        for table in tables(filter, first.kind) {
            if !std::mem::take(&mut formed) {
                code.lea(a, &first.address);
                super::add_segment(code, a, &first.address);
            }
            remember(code, a, b, first.size_bytes, &table);
        }
    }
}

impl Assembler {
    /// The displacement of a jump that is taken where the filter knows `size_bytes` at the address in `a`; none where it never can. `again`
    /// puts the address into `a` once more. `a` and `b` are free afterwards, flags too.
    pub(super) fn jump_if_known(
        &mut self,
        (a, b): (u8, u8),
        size_bytes: u32,
        (line, page): (u32, Option<u32>),
        again: impl FnOnce(&mut Assembler),
    ) -> Option<usize> {
        if size_bytes > line {
            return None;
        }
        self.behind_last(a, b, &Table::lines(line, Entering::Enters));
        self.compare_imm(a, line as i32 - size_bytes as i32);
        let Some(page) = page else { return Some(self.jump_if(6)) };
        let news = self.jump_if(7);
        again(self);
        self.behind_last(a, b, &Table::pages(page));
        self.compare_imm(a, page as i32 - 1);
        let known = self.jump_if(6);
        let here = self.len();
        self.patch(news, here);
        Some(known)
    }
}

/// Hands the full segment over; goes on behind.
fn leave(code: &mut Assembler) {
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
}

/// What an appended reference does to a filter table: its line (page) becomes the set's last, or the set is emptied; where the access crosses
/// into the next line, that one's set is emptied (first, so that nothing is lost where it does not cross). In a table of one set the line
/// that the access ends in is the last. `b` is free, flags too.
pub(crate) fn remember(code: &mut Assembler, a: u8, b: u8, size_bytes: u32, table: &Table) {
    if size_bytes > table.bytes {
        return forget_lines(code, a, b, size_bytes, table);
    }
    if table.sets == 1 {
        code.lea(a, &Address::based(a, i64::from(size_bytes.max(1)) - 1));
    } else if size_bytes > 1 {
        code.lea(b, &Address::based(a, i64::from(size_bytes) - 1));
        code.extract(b, b, table.mask);
        code.clear_table(b, table.at);
    }
    code.extract(b, a, table.mask);
    if table.entering == Entering::Enters {
        code.and_imm(a, -(table.bytes as i32));
        code.negate(a);
        code.table(0x89, a, b, table.at);
    } else {
        code.clear_table(b, table.at);
    }
}

/// The same where an access is longer than a line: all that it may touch are emptied.
pub(crate) fn forget_lines(code: &mut Assembler, a: u8, b: u8, size_bytes: u32, table: &Table) {
    for offset in (0..size_bytes).step_by(table.bytes as usize).chain([size_bytes - 1]) {
        code.lea(b, &Address::based(a, i64::from(offset)));
        code.extract(b, b, table.mask);
        code.clear_table(b, table.at);
    }
}
