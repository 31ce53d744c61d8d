//! Shared routines of the code cache: the code behind a failed check, once for each pair of
//! registers instead of once for each site. Tuned code has this code itself (`append.rs`).
//!
//! Cold code costs misses of the instruction cache and TLB, so each site has as little of it as
//! possible: the address, the site's number and a call. The call uses a stack in the context, so
//! that the processor predicts the return. Returns by a jump through a table cost a misprediction
//! for each record, which is more than all the rest (sqlite 3.5 s against 2.2 s). The program's
//! stack is never touched.

use super::append::leave;
use super::filter::{remember, Table};
use super::{instruction_side, page_routine};
use crate::code::assembler::Assembler;
use crate::code::buffer::{RecordRoutine, RecordWhen, Routine};
use crate::target::layout::context;
use assembler::Condition;

/// Emits a routine that a fragment needs for the first time. The routines of the last row exist
/// from the beginning.
pub(crate) fn write(code: &mut Assembler, routine: &Routine) {
    match routine {
        Routine::Record(key) => record(code, key),
        Routine::UsePages(key) => page_routine::write(code, key),
        &Routine::UseLine(ways, low) => instruction_side::routine(code, ways, low),
        Routine::HandOver | Routine::Probe | Routine::ClearFilter => {}
    }
}

/// Emits the routine that appends a record and updates the filter. Flags are free.
fn record(code: &mut Assembler, key: &RecordRoutine) {
    let (pointer, spare) = (key.address, key.scratch);
    // The address and the record's `what` wait in the context while their registers are used.
    code.store(pointer, context::TEMP);
    code.store(spare, context::TEMP + 8);
    let known = if key.when == RecordWhen::FilterMiss { jump_if_known(code, key) } else { None };
    // Append the record.
    code.load(spare, context::RING_POSITION);
    code.store_at(pointer, spare, 0);
    code.prefetch_write(spare, 512);
    code.load32(pointer, context::TEMP + 8);
    code.store32_at(pointer, spare, 8);
    code.advance(spare, 16);
    code.store(spare, context::RING_POSITION);
    // The reference's line and page become the last ones of their sets.
    let [lines, pages] = key.sets;
    note(code, key, &Table { sets: lines, ..Table::lines(key.line_bytes, key.entering) });
    if key.page_bytes != 0 {
        note(code, key, &Table { sets: pages, ..Table::pages(key.page_bytes) });
    }
    code.load(spare, context::RING_POSITION);
    code.compare(spare, context::RING_LIMIT);
    // A full segment is handed over here, while the context's stack is in use.
    let on = code.jump_if(Condition::Below);
    leave(code);
    let here = code.len();
    code.patch(on, here);
    known.into_iter().for_each(|at| code.patch(at, here));
    code.code().ret();
}

/// Emits a jump that is taken if the filter knows the reference, and returns its displacement.
/// Where it is not taken, the register holds the address again.
fn jump_if_known(code: &mut Assembler, key: &RecordRoutine) -> Option<usize> {
    let &RecordRoutine { address: pointer, scratch: spare, size_bytes, line_bytes, page_bytes, .. } = key;
    let pages = (page_bytes != 0).then_some(page_bytes);
    let known = code.jump_if_known((pointer, spare), size_bytes, (line_bytes, pages), |code| {
        code.load(pointer, context::TEMP)
    });
    code.load(pointer, context::TEMP);
    known
}

/// Emits the change of a filter table for the address in `TEMP`.
fn note(code: &mut Assembler, key: &RecordRoutine, table: &Table) {
    code.load(key.address, context::TEMP);
    remember(code, key.address, key.scratch, key.size_bytes, table);
}
