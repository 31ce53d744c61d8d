//! Code for uses of data pages, if generated code simulates the whole first-level data TLB.
//!
//! # The problem
//!
//! A filter that remembers only the last page passes every change of the page: half of all
//! references of a compressor that alternates between tables. For a TLB of one set no larger filter
//! is exact, because the order of the pages decides which one is replaced.
//!
//! # The idea
//!
//! The thread's context holds the whole TLB: its pages, and the time of each page's last use. Pages
//! are not known when code is translated. So some bits of the address select a hint, which names
//! the entry that may hold the page. A use reads the hint, compares once, and stores the time. If
//! the hint is wrong, a routine searches all entries; only a miss is recorded. True LRU needs
//! nothing but the times. No branch is hard to predict, because branches do not depend on which
//! page is used, only on whether the hint is right.
//!
//! ```text
//!   hint[bits]    entry that may hold the page  ◀── hot code: entry = hint[bits]
//!   page[entry]   minus the page's address      ◀── compare; if equal, time[entry] = ++clock
//!   time[entry]   time of its last use          ◀── else a routine: search all entries, or replace
//!                                                   the oldest one and record the miss
//! ```
//!
//! As in the data filter, one `add` of a negative address and one unsigned comparison detect both
//! another page and an access that reaches into the next page.
//!
//! Nine of ten references are to a line that the data filter knows. Beside the filter's lines stand
//! the entries of their pages, so such a reference needs neither hint nor comparison:
//!
//! ```text
//!   line[set]     minus the last line's address  ◀── the filter's check
//!   named[set]    entry of that line's page      ◀── if it knows the line, time[named] = ++clock
//! ```
//!
//! # Invariants
//!
//! - Every data reference of the stream uses its pages here, complex ones too (`page_routine`).
//! - A hint may be wrong, because the entry that it names is always compared.
//! - The low byte of a time is the number of its entry, so the least time names the oldest entry.
//! - The clock advances by [`PAGE_CLOCK_STEP`] at the first use of each pass through hot code, and
//!   at each use elsewhere. So the times from the clock up to the next step are unused, and the
//!   other uses of the pass take them. If each use loaded, incremented and stored the clock, all
//!   uses would wait for each other.
//! - An empty entry holds minus an address that no program has.
//! - The page of each line in the data filter is in the entry that its set names. So whoever makes
//!   a line the last one of its set uses the line's page next and names the entry, and a page that
//!   leaves the TLB takes its lines out of the filter ([`page_routine`](super::page_routine)).
//!
//! **Leaves out** TLBs of several sets: for these the filter of each set's last page drops enough
//! references, and costs the program less (simulating Golden Cove's 96 entries of 6 ways made bzip2
//! a quarter slower). Source: our own; `event::PageFilter` defines the records.

use super::emitter::Emitter;
use super::page_routine::{ask_host, handled};
use crate::code::assembler::{gpr, reg, Address, Assembler};
use crate::code::buffer::{Label, PageRoutine, PageUses, Routine, Section};
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::plan::group::{Cover, Group, Member};
use crate::target::layout::context::{self, PAGE_CLOCK_STEP, PAGE_CLOCK_STEPS, PAGE_TIME_SHIFT};
use assembler::{Alu, Condition, Extend, Memory, Scale, Size};
use event::{Filter, Shape, Stream, WIDE_BYTES};

impl Emitter {
    /// The data TLB that generated code simulates for the stream, if any.
    pub(super) fn resident_pages(&self) -> Option<ResidentPages> {
        let Stream::Filtered(filter) = self.setting.stream else { return None };
        ResidentPages::of(&filter)
    }

    /// The number of the fragment's next use of pages in hot code, among those that share a time
    /// of the clock; 0 if no data TLB is simulated.
    pub(super) fn number_page_use(&mut self, pages: Option<ResidentPages>) -> u32 {
        let number = self.page_uses % PAGE_CLOCK_STEPS;
        self.page_uses += u32::from(pages.is_some());
        number
    }

    /// Emits hot code that replaces the number of a set of the data filter by the entry of its last
    /// line's page.
    pub(super) fn load_entry(&mut self, set: u8) {
        let entry = Memory::at(gpr(set)).plus(context::LINE_ENTRIES as i32).gs();
        self.buffer.hot.code().extend_into(Extend::ZeroByte, gpr(set), entry);
    }

    /// Emits a jump to the cold code that is emitted next, unless the page of this set's last line
    /// is that of `entry`.
    pub(super) fn jump_unless_entry_of(&mut self, set: u8, entry: u8) {
        let other = Memory::at(gpr(set)).plus(context::LINE_ENTRIES as i32).gs();
        self.buffer.hot.code().alu(Alu::Cmp, Size::Byte, other, gpr(entry));
        let at = self.buffer.hot.jump_if(Condition::NotEqual);
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
    }

    /// Emits the uses of a group's pages in hot code, after its references were recorded. Flags are
    /// free.
    pub(super) fn use_pages(&mut self, group: &Group, filter: &Filter) {
        let Some(pages) = ResidentPages::of(filter) else { return };
        let first = group.members[0];
        let avoid = first.address.registers();
        let pointer = self.scratch(avoid);
        let entry = self.scratch(avoid | 1 << pointer);
        let number = self.number_page_use(Some(pages));
        let unknown = self.hinted(Section::Hot, group, (pointer, entry), (number, &pages));
        self.buffer.link(Section::Hot, unknown, Label::Cold(self.buffer.cold.len()));
        self.name_entry(Section::Hot, &first.address, (pointer, entry), &pages);
        let back = Label::Hot(self.buffer.hot.len());
        // Cold: the hint is wrong, or the bytes lie in two pages. Each member uses its pages by
        // itself, in the program's order.
        self.lend_position();
        group.members.iter().for_each(|member| self.use_pages_of(member, pointer, pages));
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
    }

    /// Emits the uses of a group's pages in cold code, after its references were recorded. Both
    /// registers and flags are free.
    pub(super) fn use_pages_cold(
        &mut self,
        group: &Group,
        (pointer, entry): (u8, u8),
        number: u32,
        pages: ResidentPages,
    ) {
        let first = group.members[0];
        let unknown = self.hinted(Section::Cold, group, (pointer, entry), (number, &pages));
        match group.cover {
            Cover::First => self.name_entry(Section::Cold, &first.address, (pointer, entry), &pages),
            Cover::Ends(low, high) => {
                for end in [low, high] {
                    self.name_entry(Section::Cold, &first.at(end), (pointer, entry), &pages);
                }
            }
        }
        let done = self.buffer.cold.jump();
        let here = self.buffer.cold.len();
        self.buffer.cold.patch(unknown, here);
        // The hint is wrong, or the bytes lie in two pages.
        group.members.iter().for_each(|member| self.use_pages_of(member, pointer, pages));
        let here = self.buffer.cold.len();
        self.buffer.cold.patch(done, here);
    }

    /// Emits code that uses the page of a group's bytes, if they lie in one page and the hint is
    /// right. Returns the jump that is taken otherwise; else the second register holds the entry.
    /// Both registers and flags are free.
    fn hinted(
        &mut self,
        section: Section,
        group: &Group,
        (pointer, entry): (u8, u8),
        (number, pages): (u32, &ResidentPages),
    ) -> usize {
        let (low, last) = group.bytes();
        let lowest = group.members[0].at(low);
        let code = self.section(section);
        code.lea(pointer, &lowest);
        code.add_segment(pointer, &lowest);
        code.extract(entry, pointer, context::MASK_PAGE_HINTS);
        let hint = Memory::at(gpr(entry)).plus(context::PAGE_HINTS as i32).gs();
        code.code().extend_into(Extend::ZeroByte, gpr(entry), hint);
        // The distance of the first byte from the start of that entry's page.
        code.add_table(pointer, entry, context::RESIDENT_PAGES);
        let unknown = jump_unless_within(code, pointer, (last - low + 1) as u32, pages);
        self.stamp(section, number, (pointer, entry));
        unknown
    }

    /// Emits the store of the time of a use into its entry. `spare` is free afterwards.
    ///
    /// Each pass through the fragment begins with its first use, which advances the clock. The
    /// times of the other uses are later by their number. The low byte is the entry's number.
    pub(super) fn stamp(&mut self, section: Section, number: u32, (spare, entry): (u8, u8)) {
        let code = self.section(section);
        code.load(spare, context::PAGE_CLOCK);
        if number == 0 {
            code.code().lea(Size::Qword, gpr(spare), Memory::at(gpr(spare)).plus(PAGE_CLOCK_STEP as i32));
            code.store(spare, context::PAGE_CLOCK);
        }
        let later = (number << PAGE_TIME_SHIFT) as i32;
        let time = Memory::at(gpr(spare)).index(gpr(entry), Scale::One).plus(later);
        code.code().lea(Size::Qword, gpr(spare), time);
        code.store_table(spare, entry, context::RESIDENT_TIMES);
    }

    /// Emits code by which the line of `address`, if it is the last one of its set, names the entry
    /// of its page. `pointer` and flags are free.
    fn name_entry(
        &mut self,
        section: Section,
        address: &Address,
        (pointer, entry): (u8, u8),
        pages: &ResidentPages,
    ) {
        let code = self.section(section);
        code.lea(pointer, address);
        code.add_segment(pointer, address);
        code.set_of_line(pointer, pointer, pages);
        let named = Memory::at(gpr(pointer)).plus(context::LINE_ENTRIES as i32).gs();
        code.code().mov(Size::Byte, named, gpr(entry));
    }

    fn section(&mut self, section: Section) -> &mut Assembler {
        match section {
            Section::Hot => &mut self.buffer.hot,
            Section::Cold => &mut self.buffer.cold,
        }
    }

    /// Emits cold code that uses a reference's pages by the shared routine. `pointer` and flags are
    /// free.
    pub(super) fn use_pages_of(&mut self, member: &Member, pointer: u8, pages: ResidentPages) {
        let cold = &mut self.buffer.cold;
        cold.lea(pointer, &member.address);
        cold.add_segment(pointer, &member.address);
        name_bytes(cold, pointer, member.size_bytes);
        self.call_pages(Section::Cold, member.what, routine_of(member.size_bytes, pages));
    }

    /// Emits a call of a routine that uses pages, for a reference with the site of `what`. The call
    /// itself changes no flags and no registers.
    fn call_pages(&mut self, section: Section, what: u32, routine: PageRoutine) {
        let code = self.section(section);
        code.store_imm32(context::PAGE_WHAT, page_what(what));
        code.store(reg::RSP, context::PROGRAM_STACK);
        code.load(reg::RSP, context::OWN_STACK);
        let at = code.call();
        code.pop_stack();
        self.buffer.want_routine(section, at, Routine::UsePages(routine));
    }

    /// Emits the uses of the pages of a complex reference, whose values are the last ones in the
    /// ring.
    pub(super) fn use_pages_of_complex(&mut self, shape: Shape, site: u32) {
        let Some(pages) = self.resident_pages() else { return };
        // References that depend on a state area's layout, on segments or on pointers of 32 bits
        // are rare, so the host looks up their pages.
        if let Some(uses) = handled(shape) {
            return self.call_pages(Section::Hot, site << 8, PageRoutine { pages, uses });
        }
        let hot = &mut self.buffer.hot;
        hot.store_imm32(context::PAGE_WHAT, page_what(site << 8));
        ask_host(hot, shape);
    }

    /// Emits the uses of the pages of a reference of `size_bytes`, whose address is the last one in
    /// the ring. `pointer` is free.
    pub(super) fn use_pages_of_recorded(&mut self, pointer: u8, size_bytes: u32, site: u32) {
        let Some(pages) = self.resident_pages() else { return };
        let hot = &mut self.buffer.hot;
        hot.load(pointer, context::RING_POSITION);
        hot.code().mov_from(Size::Qword, gpr(pointer), Memory::at(gpr(pointer)).plus(-16).gs());
        name_bytes(hot, pointer, size_bytes);
        self.call_pages(Section::Hot, site << 8, routine_of(size_bytes, pages));
    }
}

impl Assembler {
    /// Emits the number of the set of the data filter to which the address in `from` belongs.
    pub(super) fn set_of_line(&mut self, to: u8, from: u8, pages: &ResidentPages) {
        const { assert!(context::NAMED_SETS_MAX <= 128) };
        self.rotate(to, from, pages.lines.line_bytes.trailing_zeros() as u8);
        self.and_small(to, (pages.lines.sets - 1) as u8);
    }
}

/// Emits stores of a routine's arguments: the first and the last of `size_bytes` bytes at the
/// address in `pointer`, which is free afterwards.
fn name_bytes(code: &mut Assembler, pointer: u8, size_bytes: u32) {
    code.store(pointer, context::PAGE_FIRST);
    code.lea(pointer, &Address::based(pointer, i64::from(size_bytes.max(1)) - 1));
    code.store(pointer, context::PAGE_LAST);
}

fn routine_of(size_bytes: u32, pages: ResidentPages) -> PageRoutine {
    let uses = if size_bytes > WIDE_BYTES { PageUses::Wide } else { PageUses::Reference };
    PageRoutine { pages, uses }
}

/// Emits a jump that is taken unless `bytes` bytes, which begin `offset` bytes behind a page's
/// start, lie in that page.
fn jump_unless_within(code: &mut Assembler, offset: u8, bytes: u32, pages: &ResidentPages) -> usize {
    if bytes > pages.page_bytes {
        return code.jump();
    }
    code.compare_imm(offset, (pages.page_bytes - bytes) as i32);
    code.jump_if(Condition::Above)
}
