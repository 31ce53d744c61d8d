//! Shared routines of the code cache: what a failed check does, once per register pair instead of once per site.
//!
//! Code out of line is cold, and cold code costs instruction cache and TLB misses: a site's own part is address, site and call. The call
//! is made on a stack of the context's own, so that the processor predicts the return: returning by a table was measured to cost a
//! misprediction per record, which is more than all the rest (sqlite 3.5 s against 2.2). The program's stack is never touched.

use super::plain;
use crate::assemble::{Address, Assembler};
use crate::cache::EXIT_RING;
use crate::layout::context;

/// A routine of the code cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Routine {
    /// What tuned code does where a check fails.
    Record(RecordRoutine),
    /// What plain code does with a reference.
    Plain(RecordRoutine),
    /// What plain code does with an instruction line; the register holds the program's stack pointer.
    Fetch(u8),
    /// The same at a fragment's head, which is counted.
    FetchHead(u8),
}

impl Routine {
    pub(crate) fn write(&self, code: &mut Assembler) {
        match self {
            Routine::Record(key) => record(code, key),
            Routine::Plain(key) => plain::reference(code, key),
            Routine::Fetch(b) => plain::fetch(code, *b, plain::Place::Inside),
            Routine::FetchHead(b) => plain::fetch(code, *b, plain::Place::Head),
        }
    }
}

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
pub(crate) struct Table {
    pub(crate) at: u32,
    pub(crate) mask: u32,
    pub(crate) bytes: u32,
    pub(crate) entering: Entering,
}

impl Table {
    /// Last lines of the data side.
    pub(crate) fn lines(bytes: u32, entering: Entering) -> Table {
        Table { at: context::DATA_LINES, mask: context::MASK_SET, bytes, entering }
    }

    /// Last pages of the data side.
    pub(crate) fn pages(bytes: u32) -> Table {
        let (at, mask) = (context::DATA_PAGES, context::MASK_PAGE_SET);
        Table { at, mask, bytes, entering: Entering::Enters }
    }
}

/// Appends a record, updates the filter, returns. Flags are free.
pub(crate) fn record(code: &mut Assembler, key: &RecordRoutine) {
    append(code, key);
    code.raw(&[0xc3]); // ret
}

/// The same as a part of a routine.
pub(crate) fn append(code: &mut Assembler, key: &RecordRoutine) {
    let (a, b) = (key.address, key.scratch);
    code.store(a, context::TEMP);
    code.store(b, context::TEMP + 8);
    code.load(b, context::RING_POSITION);
    code.store_at(a, b, 0);
    code.prefetch_write(b, 512);
    code.load32(a, context::TEMP + 8);
    code.store32_at(a, b, 8);
    code.advance(b, 16);
    code.store(b, context::RING_POSITION);
    remember(code, key, &Table::lines(key.line_bytes, key.entering));
    if key.page_bytes != 0 {
        remember(code, key, &Table::pages(key.page_bytes));
    }
    code.load(b, context::RING_POSITION);
    code.compare(b, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
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
