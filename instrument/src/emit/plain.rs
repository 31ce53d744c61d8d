//! Plain code: what a reference does in a fragment that has not run often yet.
//!
//! Most code runs a few times, so what counts here is bytes: every byte is written, fetched once and rarely again. A reference is an address
//! and a call; check, record and filter are in a shared routine, which keeps the flags as well, so that nothing is saved at the
//! site. The call is made on the context's own stack. What the routine must know stands behind the call, in an instruction that does nothing: for
//! a data reference its `what`, for an instruction line the place of a descriptor. Of a fragment's head the routine counts the executions; the host
//! is told when there have been enough to translate the fragment again (see `heat`).

use super::draft::{Draft, Goal, Part, FLAGS_BIT};
use super::events::Group;
use super::routine::{self, Entering, RecordRoutine, Routine, Table};
use crate::assemble::{reg, Address, Assembler};
use crate::cache::{EXIT_HOT, EXIT_RING};
use crate::layout::context;
use crate::translate::Translator;
use event::{Filter, RecordKind, StoreFilter};

/// An instruction line of plain code.
pub(crate) struct Fetch {
    pub(crate) line: u64,
    /// Its place in the filter, and its number there.
    pub(crate) line_at: u32,
    pub(crate) number: u32,
    /// The same of its page.
    pub(crate) page: (u32, u32),
    /// `block << 8 | code`.
    pub(crate) what: u32,
}

/// Where an instruction line is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    Head,
}

/// Executions of a plain fragment after which it is tuned: translating it again takes as long as some hundred of its executions.
const HOT_EXECUTIONS: u32 = 256;

/// Offsets in a descriptor: line's place, its number, page's place, its number, address, `what`, the execution count's place.
mod descriptor {
    pub(super) const LINE_AT: i64 = 0;
    pub(super) const NUMBER: i64 = 4;
    pub(super) const PAGE_AT: i64 = 8;
    pub(super) const PAGE: i64 = 12;
    pub(super) const LINE: i64 = 16;
    pub(super) const WHAT: i64 = 24;
    pub(super) const HEAT_AT: i64 = 28;
}

impl Translator {
    /// The references of a group, one call each.
    pub(crate) fn plain_group(&mut self, d: &mut Draft, z: usize, group: &Group, filter: &Filter) {
        for member in &group.members {
            let avoid = member.address.registers() | 1 << reg::RAX;
            d.restore(member.address.registers() & !FLAGS_BIT);
            let a = d.scratch(avoid);
            let b = d.scratch(avoid | 1 << a);
            d.hot.lea(a, &member.address);
            if member.address.fs {
                d.hot.load(b, context::FS_BASE);
                d.hot.lea(a, &Address { index: Some(b), ..Address::based(a, 0) });
            }
            let enters = filter.stores == StoreFilter::LikeLoads || member.kind != RecordKind::Store;
            let key = RecordRoutine {
                address: a,
                scratch: b,
                size_bytes: member.size_bytes,
                line_bytes: filter.data.line_bytes,
                page_bytes: filter.data_page.map_or(0, |p| p.line_bytes),
                entering: if enters { Entering::Enters } else { Entering::Empties },
            };
            let routine = self.cache.routine(z, Routine::Plain(key));
            call(d, b, routine);
            d.hot.raw(&NOTHING);
            d.hot.imm32(member.what);
            d.hot.mov(reg::RSP, b);
        }
    }

    /// An instruction line.
    pub(crate) fn plain_fetch(&mut self, d: &mut Draft, z: usize, fetch: &Fetch) {
        let b = d.scratch(1 << reg::RAX | 1 << reg::RCX);
        let head = d.heat_at == 0;
        if head {
            d.heat_at = context::COUNTERS + 8 * self.new_counter();
        }
        let routine = if head { Routine::FetchHead(b) } else { Routine::Fetch(b) };
        call(d, b, self.cache.routine(z, routine));
        d.hot.raw(&NOTHING);
        let at = d.hot.len();
        d.hot.imm32(0);
        d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
        for word in [fetch.line_at, fetch.number, fetch.page.0, fetch.page.1] {
            d.cold.imm32(word);
        }
        d.cold.raw(&fetch.line.to_le_bytes());
        d.cold.imm32(fetch.what);
        d.cold.imm32(d.heat_at);
        d.hot.mov(reg::RSP, b);
    }
}

/// `nop dword [rip + …]`, without its displacement.
const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x05];

/// Calls `routine` on the context's own stack; the program's stack pointer waits in `b`.
fn call(d: &mut Draft, b: u8, routine: u64) {
    d.hot.mov(b, reg::RSP);
    d.hot.load(reg::RSP, context::OWN_STACK);
    let at = d.hot.call();
    d.link(Part::Hot, at, Goal::Address(routine));
}

/// Saves what a routine uses: `b`, rax, and the flags on the stack. Behind it the return address is at `[rsp + 8]`.
fn enter(code: &mut Assembler, b: u8) {
    code.store(b, context::PROGRAM_STACK);
    code.store(reg::RAX, context::ROUTINE_RAX);
    code.raw(&[0x9f, 0x0f, 0x90, 0xc0, 0x50]); // lahf; seto al; push rax
}

fn leave(code: &mut Assembler, b: u8) {
    code.raw(&[0x58, 0x04, 0x7f, 0x9e]); // pop rax; add al, 7fh; sahf
    code.load(reg::RAX, context::ROUTINE_RAX);
    code.load(b, context::PROGRAM_STACK);
    code.raw(&[0xc3]); // ret
}

/// A data reference: its address is in `key.address`, the program's stack pointer in `key.scratch`, `what` behind the call.
pub(super) fn reference(code: &mut Assembler, key: &RecordRoutine) {
    let b = key.scratch;
    enter(code, b);
    let mut failed = vec![check(code, key, &Table::lines(key.line_bytes, key.entering), key.size_bytes)];
    if key.page_bytes != 0 {
        failed.push(check(code, key, &Table::pages(key.page_bytes), 1));
    }
    leave(code, b);
    let here = code.len();
    failed.into_iter().for_each(|at| code.patch(at, here));
    code.load_program(b, &Address::based(reg::RSP, 8));
    code.half(0x8b, b, &Address::based(b, 3));
    routine::append(code, key);
    leave(code, b);
}

/// Jumps where the last line (page) of the address's set is another one; where the jump is.
fn check(code: &mut Assembler, key: &RecordRoutine, table: &Table, size_bytes: u32) -> usize {
    if size_bytes > table.bytes {
        return code.jump();
    }
    code.extract(key.scratch, key.address, table.mask);
    code.table(0x8b, reg::RAX, key.scratch, table.at);
    code.add(reg::RAX, key.address);
    code.compare_imm(reg::RAX, (table.bytes - size_bytes) as i32);
    code.jump_if(7)
}

/// An instruction line: the program's stack pointer is in `b`, the descriptor's place behind the call.
pub(super) fn fetch(code: &mut Assembler, b: u8, place: Place) {
    use descriptor::*;
    let (ax, cx) = (reg::RAX, reg::RCX);
    let field = |offset| Address::based(b, offset);
    enter(code, b);
    code.load_program(b, &Address::based(reg::RSP, 8));
    code.load_signed(ax, &field(3));
    code.lea(b, &Address { index: Some(ax), ..field(7) });
    if place == Place::Head {
        count(code, b);
    }
    let mut failed = Vec::new();
    for (at, number) in [(LINE_AT, NUMBER), (PAGE_AT, PAGE)] {
        code.half(0x8b, ax, &field(at));
        code.raw(&[0x65, 0x8b, 0x00]); // mov eax, gs:[rax]
        code.half(0x3b, ax, &field(number));
        failed.push(code.jump_if(5));
    }
    leave(code, b);
    let here = code.len();
    failed.into_iter().for_each(|at| code.patch(at, here));
    code.raw(&[0x51]); // push rcx
    for (at, number) in [(LINE_AT, NUMBER), (PAGE_AT, PAGE)] {
        code.half(0x8b, ax, &field(at));
        code.half(0x8b, cx, &field(number));
        code.raw(&[0x65, 0x89, 0x08]); // mov gs:[rax], ecx
    }
    code.load(ax, context::RING_POSITION);
    code.load_program(cx, &field(LINE));
    code.store_at(cx, ax, 0);
    code.half(0x8b, cx, &field(WHAT));
    code.store32_at(cx, ax, 8);
    code.advance(ax, 16);
    code.store(ax, context::RING_POSITION);
    code.compare(ax, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
    code.raw(&[0x59]); // pop rcx
    leave(code, b);
}

/// Counts an execution, and tells the host when there have been enough.
fn count(code: &mut Assembler, b: u8) {
    let (ax, field) = (reg::RAX, |offset| Address::based(b, offset));
    code.half(0x8b, ax, &field(descriptor::HEAT_AT));
    code.raw(&[0x65, 0x83, 0x00, 0x01]); // add dword gs:[rax], 1
    code.raw(&[0x65, 0x81, 0x38]); // cmp dword gs:[rax], …
    code.imm32(HOT_EXECUTIONS);
    let on = code.jump_if(5);
    code.half(0x8b, ax, &field(descriptor::WHAT));
    code.store(ax, context::TARGET);
    code.store_imm32(context::EXIT, EXIT_HOT);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
}
