//! Code for the data filter: its two tables of last lines and last pages.
//!
//! The filter (see `event::Filter`) keeps minus the address of each set's last line. One `add` of
//! that value gives the offset of the access in that line, and one unsigned comparison with
//! `line − size` detects both "another line" and "crosses into the next line":
//!
//! ```text
//!   line of 64 bytes at 0x1000, access of 8 bytes at …
//!     0x1010   offset 0x10  ≤ 56   the filter knows it
//!     0x103c   offset 0x3c  > 56   it crosses into the next line
//!     0x2010   offset 0x1010 > 56  it is in another line
//!     0x0ff0   offset 2⁶⁴ − 16     it is in another line
//! ```
//!
//! **Invariant.** A reference may be recorded without need, but the filter may never know a line
//! that was not the last one of its set. So references that bypass the filter empty it. **Leaves
//! out** which references are checked, and when (`data`). Source: our own.

use crate::code::assembler::{Address, Assembler};
use crate::code::buffer::Entering;
use crate::target::layout::context;
use assembler::Condition;
use event::{Filter, RecordKind, StoreFilter};

/// The table of last lines or the table of last pages.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Context offset of the table.
    pub(super) at: u32,
    /// Context offset of the mask that selects a set.
    pub(super) mask: u32,
    /// Bytes of a line or page.
    pub(super) bytes: u32,
    /// How a recorded reference changes the table.
    pub(super) entering: Entering,
    /// The number of sets, if the code contains it as a constant; 0 if it uses the context's mask.
    pub(super) sets: u32,
}

impl Table {
    /// The table of last lines of data.
    pub(super) fn lines(bytes: u32, entering: Entering) -> Table {
        Table { at: context::DATA_LINES, mask: context::MASK_SET, bytes, entering, sets: 0 }
    }

    /// The table of last pages of data.
    pub(super) fn pages(bytes: u32) -> Table {
        let (at, mask) = (context::DATA_PAGES, context::MASK_PAGE_SET);
        Table { at, mask, bytes, entering: Entering::Enters, sets: 0 }
    }
}

/// How a recorded reference of `kind` changes the filter.
pub(super) fn entering(filter: &Filter, kind: RecordKind) -> Entering {
    if filter.stores == StoreFilter::LikeLoads || kind != RecordKind::Store {
        Entering::Enters
    } else {
        Entering::Empties
    }
}

/// The tables that a recorded reference of `kind` changes.
pub(super) fn tables(filter: &Filter, kind: RecordKind) -> impl Iterator<Item = Table> {
    let lines =
        Table { sets: filter.data.sets, ..Table::lines(filter.data.line_bytes, entering(filter, kind)) };
    let pages = filter.last_pages().map(|page| Table { sets: page.sets, ..Table::pages(page.line_bytes) });
    std::iter::once(lines).chain(pages)
}

/// The most sets of a table whose sets a signed byte can number.
const SMALL_SETS_MAX: u32 = 128;

impl Assembler {
    /// Emits the subtraction of the start of the set's last line or page from the address in
    /// `pointer`. The set is that of the address. Flags are free.
    pub(super) fn behind_last(&mut self, pointer: u8, set: u8, table: &Table) {
        if (1..=SMALL_SETS_MAX).contains(&table.sets) {
            // This form is shorter than the other one, and has one load less.
            self.rotate(set, pointer, table.bytes.trailing_zeros() as u8);
            self.and_small(set, (table.sets - 1) as u8);
        } else {
            self.extract(set, pointer, table.mask);
        }
        self.add_table(pointer, set, table.at);
    }

    /// Emits a jump that is taken if the filter knows `size_bytes` at the address in `pointer`, and
    /// returns its displacement; `None` if the filter can never know an access of this size.
    /// `again` emits the computation of the address in `pointer` once more. `pointer`, `set` and
    /// flags are free afterwards.
    pub(super) fn jump_if_known(
        &mut self,
        (pointer, set): (u8, u8),
        size_bytes: u32,
        (line, page): (u32, Option<u32>),
        again: impl FnOnce(&mut Assembler),
    ) -> Option<usize> {
        if size_bytes > line {
            return None;
        }
        // The filter must know both the line and the page.
        self.behind_last(pointer, set, &Table::lines(line, Entering::Enters));
        self.compare_imm(pointer, line as i32 - size_bytes as i32);
        let Some(page) = page else { return Some(self.jump_if(Condition::BelowOrEqual)) };
        let filter_misses = self.jump_if(Condition::Above);
        again(self);
        self.behind_last(pointer, set, &Table::pages(page));
        self.compare_imm(pointer, page as i32 - 1);
        let known = self.jump_if(Condition::BelowOrEqual);
        let here = self.len();
        self.patch(filter_misses, here);
        Some(known)
    }
}

/// Emits the change of a filter table after a recorded reference: the reference's line (or page)
/// becomes the last one of its set, or the set becomes empty. If the access crosses into the next
/// line, the set of that line becomes empty. That set is emptied first, so that nothing is lost if
/// the access does not cross. In a table of one set, the line in which the access ends becomes the
/// last. `spare` and flags are free.
pub(super) fn remember(code: &mut Assembler, pointer: u8, spare: u8, size_bytes: u32, table: &Table) {
    if size_bytes > table.bytes {
        return forget_lines(code, pointer, spare, size_bytes, table);
    }
    // With one set, the last line is the one in which the access ends.
    if table.sets == 1 {
        code.lea(pointer, &Address::based(pointer, i64::from(size_bytes.max(1)) - 1));
    } else if size_bytes > 1 {
        code.lea(spare, &Address::based(pointer, i64::from(size_bytes) - 1));
        code.extract(spare, spare, table.mask);
        code.clear_table(spare, table.at);
    }
    // The set of its own line gets minus the line's address, or becomes empty.
    code.extract(spare, pointer, table.mask);
    if table.entering == Entering::Enters {
        code.and_imm(pointer, -(table.bytes as i32));
        code.negate(pointer);
        code.store_table(pointer, spare, table.at);
    } else {
        code.clear_table(spare, table.at);
    }
}

/// Emits the change of a filter table after a reference that is longer than a line: all sets that
/// the reference may touch become empty. `spare` is free.
pub(super) fn forget_lines(code: &mut Assembler, pointer: u8, spare: u8, size_bytes: u32, table: &Table) {
    for offset in (0..size_bytes).step_by(table.bytes as usize).chain([size_bytes - 1]) {
        // Take one address in each line that the reference may touch.
        code.lea(spare, &Address::based(pointer, i64::from(offset)));
        code.extract(spare, spare, table.mask);
        code.clear_table(spare, table.at);
    }
}
