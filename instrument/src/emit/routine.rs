//! Shared routines of the code cache: the code behind a failed check, once per pair of registers
//! instead of once per site. Code that is tuned because it runs often has this in line
//! (`append.rs`).
//!
//! Code out of line is cold, and cold code costs instruction cache and TLB misses: a site's own
//! part is address, site and call. The call is made on a stack of the context's own, so that the
//! processor predicts the return: returning by a table was measured to cost a misprediction per
//! record, which is more than all the rest (sqlite 3.5 s against 2.2). The program's stack is never
//! touched.

use super::append::leave;
use super::filter::{remember, Table};
use super::{instruction_side, page_routine};
use crate::code::assembler::Assembler;
use crate::code::buffer::{RecordRoutine, RecordWhen, Routine};
use crate::target::layout::context;
use assembler::Condition;

/// Writes a routine that is made when a fragment first wants it; the others are there from the
/// beginning.
pub(crate) fn write(code: &mut Assembler, routine: &Routine) {
    match routine {
        Routine::Record(key) => record(code, key),
        Routine::UsePages(key) => page_routine::write(code, key),
        &Routine::UseLine(ways, low) => instruction_side::routine(code, ways, low),
        Routine::HandOver | Routine::Probe | Routine::ClearFilter => {}
    }
}

/// Appends a record, updates the filter, returns. Flags are free.
fn record(code: &mut Assembler, key: &RecordRoutine) {
    let (pointer, spare) = (key.address, key.scratch);
    // Address and what to record wait in the context while registers are used.
    code.store(pointer, context::TEMP);
    code.store(spare, context::TEMP + 8);
    let known = if key.when == RecordWhen::FilterMiss { jump_if_known(code, key) } else { None };
    // The record.
    code.load(spare, context::RING_POSITION);
    code.store_at(pointer, spare, 0);
    code.prefetch_write(spare, 512);
    code.load32(pointer, context::TEMP + 8);
    code.store32_at(pointer, spare, 8);
    code.advance(spare, 16);
    code.store(spare, context::RING_POSITION);
    // Its line, and its page, become their sets' last.
    let [lines, pages] = key.sets;
    note(code, key, &Table { sets: lines, ..Table::lines(key.line_bytes, key.entering) });
    if key.page_bytes != 0 {
        note(code, key, &Table { sets: pages, ..Table::pages(key.page_bytes) });
    }
    code.load(spare, context::RING_POSITION);
    code.compare(spare, context::RING_LIMIT);
    // A full segment is handed over here, on the context's stack.
    let on = code.jump_if(Condition::Below);
    leave(code);
    let here = code.len();
    code.patch(on, here);
    known.into_iter().for_each(|at| code.patch(at, here));
    code.code().ret();
}

/// Where the filter knows the reference, the displacement of a jump; else its address is in the
/// register again.
fn jump_if_known(code: &mut Assembler, key: &RecordRoutine) -> Option<usize> {
    let &RecordRoutine { address: pointer, scratch: spare, size_bytes, line_bytes, page_bytes, .. } = key;
    let pages = (page_bytes != 0).then_some(page_bytes);
    let known = code.jump_if_known((pointer, spare), size_bytes, (line_bytes, pages), |code| {
        code.load(pointer, context::TEMP)
    });
    code.load(pointer, context::TEMP);
    known
}

/// The address in TEMP becomes its set's last, or its set is emptied.
fn note(code: &mut Assembler, key: &RecordRoutine, table: &Table) {
    code.load(key.address, context::TEMP);
    remember(code, key.address, key.scratch, key.size_bytes, table);
}
