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
//!
//! **Leaves out** TLBs of several sets: for these the filter of each set's last page drops enough
//! references, and costs the program less (simulating Golden Cove's 96 entries of 6 ways made bzip2
//! a quarter slower). Source: our own; `event::PageFilter` defines the records.

use super::emitter::Emitter;
use super::page_routine::{ask_host, handled};
use crate::code::assembler::{gpr, reg, Address, Assembler};
use crate::code::buffer::{Label, PageRoutine, PageUses, Routine, Section};
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::group::{Groups, Member, PageUse};
use crate::target::layout::context::{self, PAGE_CLOCK_STEP, PAGE_CLOCK_STEPS, PAGE_TIME_SHIFT};
use assembler::{Condition, Extend, Memory, Scale, Size};
use event::{Filter, Shape, Stream, WIDE_BYTES};

impl Emitter {
    /// The data TLB that generated code simulates for the stream, if any.
    pub(super) fn resident_pages(&self) -> Option<ResidentPages> {
        let Stream::Filtered(filter) = self.setting.stream else { return None };
        ResidentPages::of(&filter)
    }

    /// Emits the uses of the pages that are used with the check of this group of a block. Flags are
    /// free afterwards.
    pub(super) fn use_pages(&mut self, groups: &Groups, group: usize, filter: &Filter) {
        let Some(pages) = ResidentPages::of(filter) else { return };
        let Some(PageUse { members, low, last }) = groups.page_use(group) else { return };
        let first = members[0];
        self.free_flags();
        let avoid = first.address.registers();
        self.restore(avoid & !FLAGS_BIT);
        let pointer = self.scratch(avoid);
        let entry = self.scratch(avoid | 1 << pointer);
        // All bytes lie between the lowest and the highest one.
        let unknown = self.hinted(&first.at(low), (last - low + 1) as u32, (pointer, entry), &pages);
        self.buffer.link(Section::Hot, unknown, Label::Cold(self.buffer.cold.len()));
        let back = Label::Hot(self.buffer.hot.len());
        // Cold: the hint is wrong, or the bytes lie in two pages. Each member uses its pages by
        // itself, in the program's order.
        self.lend_position();
        for member in &members {
            self.use_pages_of(member, pointer, pages);
        }
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
    }

    /// Emits hot code that uses the page of `bytes` bytes at `lowest`, if they lie in one page and
    /// the hint is right. Returns the jump that is taken otherwise. Both registers and flags are
    /// free.
    fn hinted(
        &mut self,
        lowest: &Address,
        bytes: u32,
        (pointer, entry): (u8, u8),
        pages: &ResidentPages,
    ) -> usize {
        let code = &mut self.buffer.hot;
        code.lea(pointer, lowest);
        code.add_segment(pointer, lowest);
        code.extract(entry, pointer, context::MASK_PAGE_HINTS);
        let hint = Memory::at(gpr(entry)).plus(context::PAGE_HINTS as i32).gs();
        code.code().extend_into(Extend::ZeroByte, gpr(entry), hint);
        // The distance of the first byte from the start of that entry's page.
        code.add_table(pointer, entry, context::RESIDENT_PAGES);
        let unknown = jump_unless_within(code, pointer, bytes, pages);
        // Each pass through the fragment begins with its first use, which advances the clock. The
        // times of the other uses are later by their number. The low byte is the entry's number.
        let number = self.page_uses % PAGE_CLOCK_STEPS;
        self.page_uses += 1;
        code.load(pointer, context::PAGE_CLOCK);
        if number == 0 {
            code.code().lea(Size::Qword, gpr(pointer), Memory::at(gpr(pointer)).plus(PAGE_CLOCK_STEP as i32));
            code.store(pointer, context::PAGE_CLOCK);
        }
        let later = (number << PAGE_TIME_SHIFT) as i32;
        let time = Memory::at(gpr(pointer)).index(gpr(entry), Scale::One).plus(later);
        code.code().lea(Size::Qword, gpr(pointer), time);
        code.store_table(pointer, entry, context::RESIDENT_TIMES);
        unknown
    }

    fn section(&mut self, section: Section) -> &mut Assembler {
        match section {
            Section::Hot => &mut self.buffer.hot,
            Section::Cold => &mut self.buffer.cold,
        }
    }

    /// Emits cold code that uses a reference's pages by the shared routine. `pointer` and flags are
    /// free.
    fn use_pages_of(&mut self, member: &Member, pointer: u8, pages: ResidentPages) {
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
