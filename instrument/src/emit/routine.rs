//! Shared routines of the code cache: what a failed check does, once per register pair instead of once per site.
//!
//! Code out of line is cold, and cold code costs instruction cache and TLB misses: a site's own part is three instructions (address, site,
//! jump), everything else stands here. A routine returns by a table with one word per site. Nothing touches the program's stack.

use crate::assemble::{reg, Address, Assembler};
use crate::cache::EXIT_RING;
use crate::layout::context;

/// What a recorded reference does to the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entering {
    /// Its line becomes its set's last.
    Enters,
    /// Its set is emptied.
    Empties,
}

/// What a record routine is specialised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordRoutine {
    /// Holds the linear address.
    pub(crate) address: u8,
    /// Holds `site << 8 | code`.
    pub(crate) scratch: u8,
    pub(crate) size_bytes: u32,
    pub(crate) line_bytes: u32,
    /// 0: no page filter.
    pub(crate) page_bytes: u32,
    pub(crate) entering: Entering,
}

/// One of the two tables of last lines and last pages.
#[derive(Clone, Copy)]
struct Table {
    at: u32,
    mask: u32,
    bytes: u32,
    entering: Entering,
}

/// Appends a record, updates the filter, returns by the table at `returns`. Flags are free.
pub(crate) fn record(code: &mut Assembler, key: &RecordRoutine, returns: u64) {
    let (a, b) = (key.address, key.scratch);
    code.store(a, context::TEMP);
    code.store(b, context::TEMP + 8);
    code.load(b, context::RING_POSITION);
    code.store_at(a, b, 0);
    code.load32(a, context::TEMP + 8);
    code.store32_at(a, b, 8);
    code.advance(b, 16);
    code.store(b, context::RING_POSITION);
    let lines = Table {
        at: context::DATA_LINES,
        mask: context::MASK_SET,
        bytes: key.line_bytes,
        entering: key.entering,
    };
    remember(code, key, &lines);
    if key.page_bytes != 0 {
        let pages = Table {
            at: context::DATA_PAGES,
            mask: context::MASK_PAGE_SET,
            bytes: key.page_bytes,
            entering: Entering::Enters,
        };
        remember(code, key, &pages);
    }
    code.load(b, context::RING_POSITION);
    code.compare(b, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
    code.load32(b, context::TEMP + 8);
    code.shift_right(b, 8);
    code.jump_table(b, returns);
}

/// Enters the line (page) of the address in TEMP into the filter; the next one's set is emptied where the access crosses.
fn remember(code: &mut Assembler, key: &RecordRoutine, table: &Table) {
    let (a, b, size) = (key.address, key.scratch, key.size_bytes);
    code.load(a, context::TEMP);
    if size > table.bytes {
        for offset in (0..size).step_by(table.bytes as usize).chain([size - 1]) {
            code.lea(b, &Address::based(a, i64::from(offset)));
            code.extract(b, b, table.mask);
            code.clear_table(b, table.at);
        }
        return;
    }
    code.extract(b, a, table.mask);
    if table.entering == Entering::Enters {
        code.and_imm(a, -(table.bytes as i32));
        code.negate(a);
        code.table(0x89, a, b, table.at);
        if size > 1 {
            code.load(a, context::TEMP);
        }
    } else {
        code.clear_table(b, table.at);
    }
    if size > 1 {
        code.lea(b, &Address::based(a, i64::from(size) - 1));
        code.xor(a, b);
        code.and_imm(a, -(table.bytes as i32));
        let same = code.jump_if(4);
        code.extract(b, b, table.mask);
        code.clear_table(b, table.at);
        let here = code.len();
        code.patch(same, here);
    }
}

/// Records the instruction line of the check whose offset in the table at `checks` is in the context. Flags are free.
///
/// A check: line (8 bytes), what, number, filter slot of the line, filter slot of the page, page number (4 each), 4 unused,
/// return address (8).
pub(crate) fn fetch(code: &mut Assembler, checks: u64) {
    let (ax, cx, dx) = (reg::RAX, reg::RCX, reg::RDX);
    for (r, slot) in [(ax, 0), (cx, 8), (dx, 16)] {
        code.store(r, context::TEMP + slot);
    }
    code.load32(ax, context::CHECK);
    code.load(cx, context::RING_POSITION);
    field(code, dx, checks, Width::Eight);
    code.store_at(dx, cx, 0);
    field(code, dx, checks + 8, Width::Four);
    code.store32_at(dx, cx, 8);
    code.advance(cx, 16);
    code.store(cx, context::RING_POSITION);
    for (slot, value) in [(16, 12), (20, 24)] {
        field(code, cx, checks + slot, Width::Four);
        field(code, dx, checks + value, Width::Four);
        code.store32_at(dx, cx, 0);
    }
    code.load(cx, context::RING_POSITION);
    code.compare(cx, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
    field(code, cx, checks + 32, Width::Eight);
    code.store(cx, context::RETURN);
    for (r, slot) in [(dx, 16), (cx, 8), (ax, 0)] {
        code.load(r, context::TEMP + slot);
    }
    code.jump_context(context::RETURN);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Four,
    Eight,
}

/// `mov r, [rax + table]`
fn field(code: &mut Assembler, r: u8, table: u64, width: Width) {
    if width == Width::Eight {
        code.raw(&[0x48]);
    }
    code.raw(&[0x8b, 0x80 | r << 3]);
    code.imm32(table as u32);
}
