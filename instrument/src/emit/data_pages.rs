//! Code for uses of data pages, where the target keeps the first-level data TLB whole.
//!
//! # The problem
//!
//! A filter that knows the last page alone lets every change of the page through: half of all
//! references of a compressor, whose tables take turns. Under a TLB of one set no larger filter is
//! exact, because the order of the pages decides what is replaced.
//!
//! # The idea
//!
//! The whole TLB stands in the thread's context: the pages that it holds, and the time of each
//! one's last use. Pages are not known when code is translated, so a hint, found by some bits of
//! the address, says which entry may hold it. A use is a look at the hint, one comparison and one
//! store of the time; only what the hint does not know is looked for among the ways of its set, and
//! only a miss is recorded. True LRU needs no order to be kept but the times. There is no branch
//! that is hard to predict: which page it is does not matter, only whether it is a known one.
//!
//! ```text
//!   last[set]     minus the set's last page    ◀──  hot, of several sets: that one? nothing to do
//!   hint[bits]    an entry that may hold it    ◀──  hot, of one set; else cold:
//!   page[entry]   minus the page's address          page[hint] is it? time[hint] = ++clock
//!   time[entry]   when it was used last             routine: the entry of its set that holds it,
//!                                                   or the oldest one and a record (miss)
//! ```
//!
//! As in the data filter, one `add` of a negative address and one unsigned comparison tell both
//! that it is another page and that the access reaches into the next one.
//!
//! # Invariants
//!
//! - With several sets, the entry of a set's last page has the highest time of its set.
//! - Every data reference of the stream uses its pages here, complex ones too (`page_routine`).
//! - A hint may be wrong; what it names is compared.
//! - The clock goes on by [`PAGE_CLOCK_STEP`] at the first use of each run through hot code, and at
//!   each use elsewhere; so times behind it, up to the next such step, are still unused. A load, an
//!   increment and a store of the clock at each use would make all uses wait for each other.
//! - An empty entry is minus an address that no program has.
//!
//! **Leaves out** TLBs whose sets are no power of two, or with more entries than a byte can name.
//! Source: our own; `event::PageFilter` says what the records mean.

use super::emitter::Emitter;
use super::filter::Table;
use crate::code::assembler::{gpr, reg, Address, Assembler};
use crate::code::buffer::{Label, PageRoutine, PageUses, Routine, Section};
use crate::code::fragment::EXIT_PAGES;
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::block::Tier;
use crate::plan::group::{Cover, Group, Member};
use crate::target::layout::context::{self, PAGE_CLOCK_STEP};
use assembler::{Condition, Extend, Memory, Size};
use event::{Filter, Shape, Stream, WIDE_BYTES};

impl Emitter {
    /// The data TLB that the stream keeps.
    pub(super) fn resident_pages(&self) -> Option<ResidentPages> {
        let Stream::Filtered(filter) = self.setting.stream else { return None };
        ResidentPages::of(&filter)
    }

    /// A group uses its pages. Flags are free afterwards.
    pub(super) fn use_pages(&mut self, group: &Group, filter: &Filter) {
        let Some(pages) = ResidentPages::of(filter) else { return };
        let first = group.members[0];
        self.free_flags();
        let avoid = first.address.registers();
        self.restore(avoid & !FLAGS_BIT);
        let a = self.scratch(avoid);
        let b = self.scratch(avoid | 1 << a);
        // All bytes of the group lie between its lowest and its highest one.
        let (low, bytes) = match group.cover {
            Cover::First => (first.address.displacement, first.size_bytes),
            Cover::Ends(low, high) => (low, (high - low + 1) as u32),
        };
        let lowest = first.at(low);
        let unknown = match pages.sets {
            1 => self.hinted(Section::Hot, &lowest, bytes, (a, b), &pages),
            _ => self.last_of_set(&lowest, bytes, (a, b), &pages),
        };
        self.buffer.link(Section::Hot, unknown, Label::Cold(self.buffer.cold.len()));
        let back = Label::Hot(self.buffer.hot.len());
        // Cold: in one page that the hint knows. Code that has run often has this in line.
        if pages.sets > 1 && self.tier != Tier::Fresh {
            let unknown = self.hinted(Section::Cold, &lowest, bytes, (a, b), &pages);
            self.becomes_last(&lowest, (a, b), &pages);
            let at = self.buffer.cold.jump();
            self.buffer.link(Section::Cold, at, back);
            let here = self.buffer.cold.len();
            self.buffer.cold.patch(unknown, here);
        }
        // Each member by itself, in the program's order.
        self.lend_position();
        for member in group.members {
            self.use_pages_of(member, a, pages);
        }
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
    }

    /// Hot: a jump that is taken unless `bytes` at `lowest` lie in the page that was used last in
    /// its set. Both registers and flags are free.
    fn last_of_set(
        &mut self,
        lowest: &Address,
        bytes: u32,
        (a, b): (u8, u8),
        pages: &ResidentPages,
    ) -> usize {
        let hot = &mut self.buffer.hot;
        hot.lea(a, lowest);
        hot.add_segment(a, lowest);
        hot.behind_last(a, b, &Table { sets: pages.sets, ..Table::pages(pages.page_bytes) });
        jump_unless_within(hot, a, bytes, pages)
    }

    /// Uses the page of `bytes` at `lowest`, if it is one page and the hint knows it; the jump that
    /// is taken otherwise. Both registers and flags are free.
    fn hinted(
        &mut self,
        section: Section,
        lowest: &Address,
        bytes: u32,
        (a, b): (u8, u8),
        pages: &ResidentPages,
    ) -> usize {
        let code = self.section(section);
        code.lea(a, lowest);
        code.add_segment(a, lowest);
        code.extract(b, a, context::MASK_PAGE_HINTS);
        let entry = Memory::at(gpr(b)).plus(context::PAGE_HINTS as i32).gs();
        code.code().extend_into(Extend::ZeroByte, gpr(b), entry);
        // How far behind the start of that entry's page it begins.
        code.add_table(a, b, context::RESIDENT_PAGES);
        let unknown = jump_unless_within(code, a, bytes, pages);
        // Hot code is run through from its first use on: that one sets the clock, and those behind
        // it are later by their number.
        let number = match section {
            Section::Hot => {
                self.page_uses += 1;
                (self.page_uses - 1) % PAGE_CLOCK_STEP
            }
            Section::Cold => 0,
        };
        let code = self.section(section);
        code.load(a, context::PAGE_CLOCK);
        if number == 0 {
            code.advance(a, PAGE_CLOCK_STEP as i8);
            code.store(a, context::PAGE_CLOCK);
        } else {
            code.advance(a, number as i8);
        }
        code.store_table(a, b, context::RESIDENT_TIMES);
        unknown
    }

    /// Cold: the page of `lowest` becomes its set's last. Both registers and flags are free.
    fn becomes_last(&mut self, lowest: &Address, (a, b): (u8, u8), pages: &ResidentPages) {
        let cold = &mut self.buffer.cold;
        cold.lea(a, lowest);
        cold.add_segment(a, lowest);
        cold.extract(b, a, context::MASK_PAGE_SET);
        cold.and_imm(a, -(pages.page_bytes as i32));
        cold.negate(a);
        cold.store_table(a, b, context::DATA_PAGES);
    }

    fn section(&mut self, section: Section) -> &mut Assembler {
        match section {
            Section::Hot => &mut self.buffer.hot,
            Section::Cold => &mut self.buffer.cold,
        }
    }

    /// Cold: a reference uses its pages by the shared routine. `a` and flags are free.
    fn use_pages_of(&mut self, member: &Member, a: u8, pages: ResidentPages) {
        let cold = &mut self.buffer.cold;
        cold.lea(a, &member.address);
        cold.add_segment(a, &member.address);
        name_bytes(cold, a, member.size_bytes);
        self.call_pages(Section::Cold, member.what, routine_of(member.size_bytes, pages));
    }

    /// Calls a routine that uses pages, for a reference with the site of `what`. Touches no flags
    /// and no register but as the routine does.
    fn call_pages(&mut self, section: Section, what: u32, routine: PageRoutine) {
        let code = self.section(section);
        code.store_imm32(context::PAGE_WHAT, page_what(what));
        code.store(reg::RSP, context::PROGRAM_STACK);
        code.load(reg::RSP, context::OWN_STACK);
        let at = code.call();
        code.pop_stack();
        self.buffer.want_routine(section, at, Routine::UsePages(routine));
    }

    /// A complex reference, whose values are the last ones in the ring, uses its pages.
    pub(super) fn use_pages_of_complex(&mut self, shape: Shape, site: u32) {
        let Some(pages) = self.resident_pages() else { return };
        // What depends on a state area's layout, on segments or on pointers of 32 bits is rare
        // enough for the host.
        if let Some(uses) = super::page_routine::handled(shape) {
            return self.call_pages(Section::Hot, site << 8, PageRoutine { pages, uses });
        }
        let hot = &mut self.buffer.hot;
        hot.store_imm32(context::PAGE_WHAT, page_what(site << 8));
        ask_host(hot, shape);
    }

    /// A reference of `size_bytes`, whose address is the last one in the ring, uses its pages. `a`
    /// is free.
    pub(super) fn use_pages_of_recorded(&mut self, a: u8, size_bytes: u32, site: u32) {
        let Some(pages) = self.resident_pages() else { return };
        let hot = &mut self.buffer.hot;
        hot.load(a, context::RING_POSITION);
        hot.code().mov_from(Size::Qword, gpr(a), Memory::at(gpr(a)).plus(-16).gs());
        name_bytes(hot, a, size_bytes);
        self.call_pages(Section::Hot, site << 8, routine_of(size_bytes, pages));
    }
}

/// Has the host use the pages of the complex reference that the ring holds last. Touches no flags.
pub(super) fn ask_host(code: &mut Assembler, shape: Shape) {
    code.store_imm32(context::PAGE_GROUP, 16 * shape.values() as u32);
    code.store_imm32(context::EXIT, EXIT_PAGES);
    code.stop();
}

/// Tells a routine of `size_bytes` at the address in `a`, which is free afterwards.
fn name_bytes(code: &mut Assembler, a: u8, size_bytes: u32) {
    code.store(a, context::PAGE_FIRST);
    code.lea(a, &Address::based(a, i64::from(size_bytes.max(1)) - 1));
    code.store(a, context::PAGE_LAST);
}

fn routine_of(size_bytes: u32, pages: ResidentPages) -> PageRoutine {
    let uses = if size_bytes > WIDE_BYTES { PageUses::Wide } else { PageUses::Reference };
    PageRoutine { pages, uses }
}

/// A jump that is taken unless `bytes` that begin so far behind a page's start as `a` says lie in
/// that page.
fn jump_unless_within(code: &mut Assembler, a: u8, bytes: u32, pages: &ResidentPages) -> usize {
    if bytes > pages.page_bytes {
        return code.jump();
    }
    code.compare_imm(a, (pages.page_bytes - bytes) as i32);
    code.jump_if(Condition::Above)
}
