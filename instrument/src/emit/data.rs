//! Code for data references. There are five forms of a group of references:
//!
//! | stream and record mode | method | code |
//! |---|---|---|
//! | filtered, `Checked` | `filtered` | a check; records out of line if it fails |
//! | filtered, `Branchless` | `written` | records are written; the position advances if needed |
//! | filtered, `Always` | `remembered` | records without a check |
//! | full | `recorded` | records without a filter |
//! | allocated | `appended_group` | records without a filter, behind one check of the ring |
//!
//! The check costs five instructions if the filter knows the line (`filter` explains it). Code
//! whose checks fail often is translated again with another record mode (`plan::hotness`). Source:
//! our own.

use super::emitter::Emitter;
use super::filter::{entering, remember, tables, Table};
use crate::code::assembler::{Address, Assembler};
use crate::code::buffer::{Entering, Label, RecordRoutine, RecordWhen, Section};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::block::Tier;
use crate::plan::group::{Cover, Group, Member};
use crate::target::layout::context;
use assembler::{Alu, Condition};
use event::Filter;

impl Emitter {
    /// Emits the check of a group against the filter, and its records out of line.
    pub(super) fn filtered(&mut self, group: &Group, filter: &Filter) {
        let first = group.members[0];
        // The check changes flags, and needs one register for the address and one for the set.
        self.free_flags();
        let avoid = first.address.registers();
        self.restore(avoid & !FLAGS_BIT);
        let pointer = self.scratch(avoid);
        let set = self.scratch(avoid | 1 << pointer);
        // Hot: one check, or two for the lines of a near group's ends.
        match group.cover {
            Cover::First => {
                self.check_data_line(&first.address, first.size_bytes, (pointer, set), filter);
                self.check_data_page(&first.address, 1, (pointer, set), filter);
            }
            // One page check stands for both ends. If they lie in two pages, it fails, and each
            // member is checked by itself.
            Cover::Ends(low, high) => {
                self.check_data_line(&first.at(low), 1, (pointer, set), filter);
                self.check_data_line(&first.at(high), 1, (pointer, set), filter);
                self.check_data_page(&first.at(low), (high - low + 1) as u32, (pointer, set), filter);
            }
        }
        // Cold: the code behind a failed check.
        self.lend_position();
        // Code that has run often has its own records; other code calls shared routines.
        if self.tier != Tier::Fresh {
            match group.cover {
                Cover::First => self.record_cold(group.members, pointer, set, filter),
                Cover::Ends(..) => self.record_filter_misses(group.members, pointer, set, filter),
            }
        } else {
            for member in group.members {
                let routine = record_routine(member, group.cover, (pointer, set), filter);
                self.call_cold(member, pointer, set, routine);
            }
        }
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, Label::Hot(self.buffer.hot.len()));
    }

    /// Emits a jump to the cold code that is emitted next, unless the filter knows the line of
    /// `size_bytes` at `address`. Flags and both registers are free.
    fn check_data_line(
        &mut self,
        address: &Address,
        size_bytes: u32,
        (pointer, set): (u8, u8),
        filter: &Filter,
    ) {
        let line = filter.data.line_bytes;
        self.buffer.hot.lea(pointer, address);
        self.buffer.hot.add_segment(pointer, address);
        let lines = Table { sets: filter.data.sets, ..Table::lines(line, Entering::Enters) };
        // The access's distance from the start of its set's last line. If it is more than `line −
        // size`, the access is in another line or reaches into the next one.
        self.buffer.hot.behind_last(pointer, set, &lines);
        self.buffer.hot.compare_imm(pointer, line as i32 - size_bytes.min(line) as i32);
        // An access longer than a line is always recorded.
        let at = if size_bytes > line {
            self.buffer.hot.jump()
        } else {
            self.buffer.hot.jump_if(Condition::Above)
        };
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
    }

    /// Emits a jump to the cold code that is emitted next, unless `bytes` bytes at `address` lie in
    /// one page that the filter knows, or no TLB is simulated. Flags and both registers are free.
    fn check_data_page(&mut self, address: &Address, bytes: u32, (pointer, set): (u8, u8), filter: &Filter) {
        let Some(page) = filter.last_pages() else { return };
        self.buffer.hot.lea(pointer, address);
        self.buffer.hot.add_segment(pointer, address);
        let pages = Table { sets: page.sets, ..Table::pages(page.line_bytes) };
        self.buffer.hot.behind_last(pointer, set, &pages);
        // More bytes than a page always reach into the next one.
        let at = match page.line_bytes.checked_sub(bytes) {
            Some(most) => {
                self.buffer.hot.compare_imm(pointer, most as i32);
                self.buffer.hot.jump_if(Condition::Above)
            }
            None => self.buffer.hot.jump(),
        };
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
    }
}

/// The routine that records `member`: always, or only if the filter does not know it.
fn record_routine(
    member: &Member,
    cover: Cover,
    (address, scratch): (u8, u8),
    filter: &Filter,
) -> RecordRoutine {
    RecordRoutine {
        address,
        scratch,
        size_bytes: member.size_bytes,
        line_bytes: filter.data.line_bytes,
        page_bytes: filter.last_pages().map_or(0, |page| page.line_bytes),
        sets: [filter.data.sets, filter.last_pages().map_or(0, |page| page.sets)],
        entering: entering(filter, member.kind),
        when: if cover == Cover::First { RecordWhen::Always } else { RecordWhen::FilterMiss },
    }
}

impl Emitter {
    /// Emits a group's records and no change of the filter. Returns the register that holds the
    /// address, if the group has one member only.
    fn append_group(&mut self, group: &Group) -> Option<u8> {
        let avoid = group.members[0].address.registers();
        // Adding the segment's base changes flags.
        if group.members[0].address.fs {
            self.free_flags();
        }
        self.restore(avoid & !FLAGS_BIT);
        self.position(avoid);
        for member in group.members.iter() {
            let pointer = self.scratch(avoid);
            self.buffer.hot.lea(pointer, &member.address);
            self.buffer.hot.add_segment(pointer, &member.address);
            self.append(pointer, member.what);
            if group.members.len() == 1 {
                return Some(pointer);
            }
        }
        None
    }

    /// Emits a group's records where nothing is filtered and no block is recorded.
    pub(super) fn appended_group(&mut self, group: &Group) {
        self.append_group(group);
    }

    /// Emits a group's records, and makes its line (and page) the last one of its set.
    pub(super) fn remembered(&mut self, group: &Group, filter: &Filter) {
        let first = group.members[0];
        let avoid = first.address.registers();
        self.free_flags();
        // Records come first; then the first member's line becomes the last one of its set. The
        // address of a single member is still in its register.
        let mut formed = self.append_group(group);
        let pointer = formed.unwrap_or_else(|| self.scratch(avoid));
        let spare = self.scratch(avoid | 1 << pointer);
        for table in tables(filter, first.kind) {
            if formed.take().is_none() {
                self.buffer.hot.lea(pointer, &first.address);
                self.buffer.hot.add_segment(pointer, &first.address);
            }
            remember(&mut self.buffer.hot, pointer, spare, first.size_bytes, &table);
        }
    }

    /// Emits a group's records without a branch. They are always written behind the ring's
    /// position, but the position advances only if the filter does not know the line (and page):
    ///
    /// ```text
    ///   known    = all bits set if the filter knows the line, else 0
    ///   position += bytes + (known & −bytes)          0, or the bytes of all records
    /// ```
    ///
    /// Afterwards the filter knows the line, and the position in memory includes all records.
    pub(super) fn written(&mut self, group: &Group, filter: &Filter) {
        let first = group.members[0];
        let avoid = first.address.registers();
        self.free_flags();
        self.restore(avoid & !FLAGS_BIT);
        // Write the pending records' position first: the new records follow it directly.
        self.commit();
        let position = self.position(avoid);
        let pointer = self.scratch(avoid);
        let line_known = self.scratch(avoid | 1 << pointer);
        // The loop runs backwards, so that the first member's address remains in the register.
        for (index, member) in group.members.iter().enumerate().rev() {
            self.buffer.hot.lea(pointer, &member.address);
            self.buffer.hot.add_segment(pointer, &member.address);
            self.buffer.hot.store_at(pointer, position, 16 * index as u8);
            self.buffer.hot.store_imm_at(position, 16 * index as u8 + 8, member.what);
        }
        // Set all bits of `line_known` if the filter knows the line and the page.
        let line = filter.data.line_bytes as i32 - first.size_bytes as i32;
        self.known(pointer, line_known, context::MASK_SET, context::DATA_LINES, line);
        if let Some(page) = filter.last_pages() {
            let page_known = self.scratch(avoid | 1 << pointer | 1 << line_known);
            self.known(
                pointer,
                page_known,
                context::MASK_PAGE_SET,
                context::DATA_PAGES,
                page.line_bytes as i32 - 1,
            );
            self.buffer.hot.registers(Alu::And, line_known, page_known);
        }
        // Advance by the bytes of all records, or by 0 if the filter knows the line and the page.
        let bytes = 16 * group.members.len() as i32;
        self.buffer.hot.and_imm(line_known, -bytes);
        let on = Address { index: Some(line_known), ..Address::based(position, bytes.into()) };
        self.buffer.hot.lea(position, &on);
        self.buffer.hot.store(position, context::RING_POSITION);
        let mut formed = true;
        for table in tables(filter, first.kind) {
            if !std::mem::take(&mut formed) {
                self.buffer.hot.lea(pointer, &first.address);
                self.buffer.hot.add_segment(pointer, &first.address);
            }
            remember(&mut self.buffer.hot, pointer, line_known, first.size_bytes, &table);
        }
    }

    /// Emits code that sets all bits of `known` if the address in `pointer` is at most `offset_max`
    /// bytes behind the start of its set's last line, and clears them otherwise.
    fn known(&mut self, pointer: u8, known: u8, mask: u32, table: u32, offset_max: i32) {
        self.buffer.hot.extract(known, pointer, mask);
        self.buffer.hot.load_table(known, known, table);
        self.buffer.hot.registers(Alu::Add, known, pointer);
        // The comparison sets the carry if the distance is small enough.
        self.buffer.hot.compare_imm(known, offset_max + 1);
        self.buffer.hot.spread_carry(known);
    }

    /// Emits a group's records for full streams.
    pub(super) fn recorded(&mut self, group: &Group) {
        // A tool's events may wait behind the position in a register.
        self.let_go();
        self.free_flags();
        let avoid = group.members[0].address.registers();
        self.restore(avoid & !FLAGS_BIT);
        // Full streams record everything; the ring's limit is checked behind each group.
        let pointer = self.scratch(avoid);
        let position = self.scratch(avoid | 1 << pointer);
        record_members(&mut self.buffer.hot, group, pointer, position);
        self.check_ring(position);
    }
}

/// Emits one record for each member, and stores the new position in the context.
fn record_members(code: &mut Assembler, group: &Group, pointer: u8, position: u8) {
    code.load(position, context::RING_POSITION);
    for (index, member) in group.members.iter().enumerate() {
        code.lea(pointer, &member.address);
        code.add_segment(pointer, &member.address);
        code.store_at(pointer, position, 16 * index as u8);
        code.store_imm_at(position, 16 * index as u8 + 8, member.what);
    }
    code.advance(position, 16 * group.members.len() as i8);
    code.store(position, context::RING_POSITION);
}
