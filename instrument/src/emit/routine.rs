//! Shared routines of the code cache: what a failed check does, once per register pair instead of once per site. Code that is tuned
//! because it runs often has the same in line (`append.rs`).
//!
//! Code out of line is cold, and cold code costs instruction cache and TLB misses: a site's own part is address, site and call. The call
//! is made on a stack of the context's own, so that the processor predicts the return: returning by a table was measured to cost a
//! misprediction per record, which is more than all the rest (sqlite 3.5 s against 2.2). The program's stack is never touched.

use crate::assemble::Assembler;
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

/// When a routine records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum When {
    /// In any case.
    Always,
    /// Where the filter does not know the reference.
    News,
}

/// What a record routine is specialised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordRoutine {
    /// Holds the linear address.
    pub(crate) address: u8,
    /// Holds `site << 8 | code`.
    pub(crate) scratch: u8,
    pub(crate) size_bytes: u32,
    pub(crate) line_bytes: u32,
    /// 0: no page filter.
    pub(crate) page_bytes: u32,
    /// Sets of the line filter, and of the page filter.
    pub(crate) sets: [u32; 2],
    pub(crate) entering: Entering,
    pub(crate) when: When,
}

impl RecordRoutine {
    /// What differs within an image, in few low bits: every reference of a translation looks its routine up, and the hash is a simple one.
    pub(crate) fn key(&self) -> u64 {
        let registers = u64::from(self.address) << 4 | u64::from(self.scratch);
        u64::from(self.size_bytes) << 10 | registers << 2 | (self.when as u64) << 1 | self.entering as u64
    }
}

/// One of the two tables of last lines and last pages.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) at: u32,
    pub(crate) mask: u32,
    pub(crate) bytes: u32,
    pub(crate) entering: Entering,
    /// Sets, where the code that looks one up shall name them itself; 0: the context's mask does.
    pub(crate) sets: u32,
}

impl Table {
    /// Last lines of the data side.
    pub(crate) fn lines(bytes: u32, entering: Entering) -> Table {
        Table { at: context::DATA_LINES, mask: context::MASK_SET, bytes, entering, sets: 0 }
    }

    /// Last pages of the data side.
    pub(crate) fn pages(bytes: u32) -> Table {
        let (at, mask) = (context::DATA_PAGES, context::MASK_PAGE_SET);
        Table { at, mask, bytes, entering: Entering::Enters, sets: 0 }
    }
}

/// Appends a record, updates the filter, returns. Flags are free.
pub(crate) fn record(code: &mut Assembler, key: &RecordRoutine) {
    let (a, b) = (key.address, key.scratch);
    code.store(a, context::TEMP);
    code.store(b, context::TEMP + 8);
    let known = if key.when == When::News { jump_if_known(code, key) } else { None };
    code.load(b, context::RING_POSITION);
    code.store_at(a, b, 0);
    code.prefetch_write(b, 512);
    code.load32(a, context::TEMP + 8);
    code.store32_at(a, b, 8);
    code.advance(b, 16);
    code.store(b, context::RING_POSITION);
    let [lines, pages] = key.sets;
    remember(code, key, &Table { sets: lines, ..Table::lines(key.line_bytes, key.entering) });
    if key.page_bytes != 0 {
        remember(code, key, &Table { sets: pages, ..Table::pages(key.page_bytes) });
    }
    code.load(b, context::RING_POSITION);
    code.compare(b, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
    known.into_iter().for_each(|at| code.patch(at, here));
    code.raw(&[0xc3]); // ret
}

/// Where the filter knows the reference, the displacement of a jump; else its address is in the register again.
fn jump_if_known(code: &mut Assembler, key: &RecordRoutine) -> Option<usize> {
    let &RecordRoutine { address: a, scratch: b, size_bytes, line_bytes, page_bytes, .. } = key;
    let pages = (page_bytes != 0).then_some(page_bytes);
    let known =
        code.jump_if_known((a, b), size_bytes, (line_bytes, pages), |code| code.load(a, context::TEMP));
    code.load(a, context::TEMP);
    known
}

/// The address in TEMP becomes its set's last, or its set is emptied.
fn remember(code: &mut Assembler, key: &RecordRoutine, table: &Table) {
    code.load(key.address, context::TEMP);
    super::append::remember(code, key.address, key.scratch, key.size_bytes, table);
}
