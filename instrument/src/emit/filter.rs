//! Code for the data filter: its two tables of last lines and last pages.
//!
//! The filter (see `event::Filter`) keeps minus the address of each set's last line. One `add`
//! against it yields the offset of the access in that line, and one unsigned comparison with
//! `line − size` answers both "another line" and "crosses into the next". Records of what would not
//! have needed one are allowed, a filter entry that is untrue is not; whatever bypasses the filter
//! empties it. These are the words for it; what is checked and when is in `data`. Source: our own.

use crate::code::assembler::{Address, Assembler};
use crate::code::buffer::Entering;
use crate::target::layout::context;
use assembler::Condition;
use event::{Filter, RecordKind, StoreFilter};

/// One of the two tables of last lines and last pages.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) at: u32,
    pub(super) mask: u32,
    pub(super) bytes: u32,
    pub(super) entering: Entering,
    /// Sets, where the code that looks one up shall name them itself; 0: the context's mask does.
    pub(super) sets: u32,
}

impl Table {
    /// Last lines of the data side.
    pub(super) fn lines(bytes: u32, entering: Entering) -> Table {
        Table { at: context::DATA_LINES, mask: context::MASK_SET, bytes, entering, sets: 0 }
    }

    /// Last pages of the data side.
    pub(super) fn pages(bytes: u32) -> Table {
        let (at, mask) = (context::DATA_PAGES, context::MASK_PAGE_SET);
        Table { at, mask, bytes, entering: Entering::Enters, sets: 0 }
    }
}

/// What a recorded reference of `kind` does to the filter.
pub(super) fn entering(filter: &Filter, kind: RecordKind) -> Entering {
    if filter.stores == StoreFilter::LikeLoads || kind != RecordKind::Store {
        Entering::Enters
    } else {
        Entering::Empties
    }
}

/// The tables of last lines and pages that a reference of `kind` is remembered in.
pub(super) fn tables(filter: &Filter, kind: RecordKind) -> impl Iterator<Item = Table> {
    let lines =
        Table { sets: filter.data.sets, ..Table::lines(filter.data.line_bytes, entering(filter, kind)) };
    let pages = filter.last_pages().map(|page| Table { sets: page.sets, ..Table::pages(page.line_bytes) });
    std::iter::once(lines).chain(pages)
}

/// Sets that a signed byte numbers.
const SMALL_SETS_MAX: u32 = 128;

impl Assembler {
    /// What the address in `a` is behind the start of its set's last line or page. Flags are free.
    pub(super) fn behind_last(&mut self, a: u8, set: u8, table: &Table) {
        if (1..=SMALL_SETS_MAX).contains(&table.sets) {
            // Shorter than the other form, and one load less.
            self.rotate(set, a, table.bytes.trailing_zeros() as u8);
            self.and_small(set, (table.sets - 1) as u8);
        } else {
            self.extract(set, a, table.mask);
        }
        self.add_table(a, set, table.at);
    }

    /// The displacement of a jump that is taken where the filter knows `size_bytes` at the address
    /// in `a`; none where it never can. `again` puts the address into `a` once more. `a` and `b`
    /// are free afterwards, flags too.
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
        // Known, if both its line and its page are.
        self.behind_last(a, b, &Table::lines(line, Entering::Enters));
        self.compare_imm(a, line as i32 - size_bytes as i32);
        let Some(page) = page else { return Some(self.jump_if(Condition::BelowOrEqual)) };
        let filter_misses = self.jump_if(Condition::Above);
        again(self);
        self.behind_last(a, b, &Table::pages(page));
        self.compare_imm(a, page as i32 - 1);
        let known = self.jump_if(Condition::BelowOrEqual);
        let here = self.len();
        self.patch(filter_misses, here);
        Some(known)
    }
}

/// What an appended reference does to a filter table: its line (page) becomes the set's last, or
/// the set is emptied; where the access crosses into the next line, that one's set is emptied
/// (first, so that nothing is lost where it does not cross). In a table of one set the line that
/// the access ends in is the last. `b` is free, flags too.
pub(super) fn remember(code: &mut Assembler, a: u8, b: u8, size_bytes: u32, table: &Table) {
    if size_bytes > table.bytes {
        return forget_lines(code, a, b, size_bytes, table);
    }
    // With one set, what is used last is the line in which the access ends.
    if table.sets == 1 {
        code.lea(a, &Address::based(a, i64::from(size_bytes.max(1)) - 1));
    } else if size_bytes > 1 {
        code.lea(b, &Address::based(a, i64::from(size_bytes) - 1));
        code.extract(b, b, table.mask);
        code.clear_table(b, table.at);
    }
    // Its own set: minus the line's address, or nothing.
    code.extract(b, a, table.mask);
    if table.entering == Entering::Enters {
        code.and_imm(a, -(table.bytes as i32));
        code.negate(a);
        code.store_table(a, b, table.at);
    } else {
        code.clear_table(b, table.at);
    }
}

/// What an appended reference that is longer than a line does to a filter table: all sets that it
/// may touch are emptied.
pub(super) fn forget_lines(code: &mut Assembler, a: u8, b: u8, size_bytes: u32, table: &Table) {
    for offset in (0..size_bytes).step_by(table.bytes as usize).chain([size_bytes - 1]) {
        // Each line that may be touched, by an address in it.
        code.lea(b, &Address::based(a, i64::from(offset)));
        code.extract(b, b, table.mask);
        code.clear_table(b, table.at);
    }
}
