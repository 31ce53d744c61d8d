//! Shared routines of the code cache: what a failed check does, once per register pair instead of once per site.
//!
//! Code out of line is cold, and cold code costs instruction cache and TLB misses: a site's own part is address, site and call. The call
//! is made on a stack of the context's own, so that the processor predicts the return: returning by a table was measured to cost a
//! misprediction per record, which is more than all the rest (sqlite 3.5 s against 2.2). The program's stack is never touched.

use crate::assemble::{Address, Assembler};
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

/// Appends a record, updates the filter, returns. Flags are free.
pub(crate) fn record(code: &mut Assembler, key: &RecordRoutine) {
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
    code.raw(&[0xc3]); // ret
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
