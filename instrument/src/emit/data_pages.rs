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
//! store of the time; only what the hint does not know is looked for among all entries, and only a
//! miss is recorded. True LRU needs no order to be kept but the times. There is no branch
//! that is hard to predict: which page it is does not matter, only whether it is a known one.
//!
//! ```text
//!   hint[bits]    an entry that may hold it    ◀──  hot:  entry = hint[bits]; page[entry] is it?
//!   page[entry]   minus the page's address                time[entry] = ++clock
//!   time[entry]   when it was used last        ◀──  else a routine: the entry that holds it, or the
//!                                                   oldest one and a record (miss)
//! ```
//!
//! As in the data filter, one `add` of a negative address and one unsigned comparison tell both
//! that it is another page and that the access reaches into the next one.
//!
//! # Invariants
//!
//! - Every data reference of the stream uses its pages here, complex ones too (`page_routine`).
//! - A hint may be wrong; what it names is compared.
//! - A time ends in the number of its entry, so that the least time names the oldest entry.
//! - The clock goes on by [`PAGE_CLOCK_STEP`] at the first use of each run through hot code, and at
//!   each use elsewhere; so times behind it, up to the next such step, are still unused. A load, an
//!   increment and a store of the clock at each use would make all uses wait for each other.
//! - An empty entry is minus an address that no program has.
//!
//! **Leaves out** TLBs of several sets: in front of these the filter of each set's last page drops
//! enough, and costs the program less (Golden Cove's 96 entries of 6 ways: keeping them whole made
//! bzip2 a quarter slower). Source: our own; `event::PageFilter` says what the records mean.

use super::emitter::Emitter;
use super::page_routine::{ask_host, handled};
use crate::code::assembler::{gpr, reg, Address, Assembler};
use crate::code::buffer::{Label, PageRoutine, PageUses, Routine, Section};
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::group::{Cover, Group, Member};
use crate::target::layout::context::{self, PAGE_CLOCK_STEP, PAGE_CLOCK_STEPS, PAGE_TIME_SHIFT};
use assembler::{Condition, Extend, Memory, Scale, Size};
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
        let unknown = self.hinted(&lowest, bytes, (a, b), &pages);
        self.buffer.link(Section::Hot, unknown, Label::Cold(self.buffer.cold.len()));
        let back = Label::Hot(self.buffer.hot.len());
        // Cold: the hint does not know the page, or there are two. Each member by itself, in the
        // program's order.
        self.lend_position();
        for member in group.members {
            self.use_pages_of(member, a, pages);
        }
        self.take_position_back();
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
    }

    /// Hot: uses the page of `bytes` at `lowest`, if it is one page and the hint knows it; the jump
    /// that is taken otherwise. Both registers and flags are free.
    fn hinted(&mut self, lowest: &Address, bytes: u32, (a, b): (u8, u8), pages: &ResidentPages) -> usize {
        let code = &mut self.buffer.hot;
        code.lea(a, lowest);
        code.add_segment(a, lowest);
        code.extract(b, a, context::MASK_PAGE_HINTS);
        let entry = Memory::at(gpr(b)).plus(context::PAGE_HINTS as i32).gs();
        code.code().extend_into(Extend::ZeroByte, gpr(b), entry);
        // How far behind the start of that entry's page it begins.
        code.add_table(a, b, context::RESIDENT_PAGES);
        let unknown = jump_unless_within(code, a, bytes, pages);
        // A fragment is run through from its first use on: that one sets the clock, and those
        // behind it are later by their number. A time ends in the number of its entry.
        let number = self.page_uses % PAGE_CLOCK_STEPS;
        self.page_uses += 1;
        code.load(a, context::PAGE_CLOCK);
        if number == 0 {
            code.code().lea(Size::Qword, gpr(a), Memory::at(gpr(a)).plus(PAGE_CLOCK_STEP as i32));
            code.store(a, context::PAGE_CLOCK);
        }
        let later = (number << PAGE_TIME_SHIFT) as i32;
        let time = Memory::at(gpr(a)).index(gpr(b), Scale::One).plus(later);
        code.code().lea(Size::Qword, gpr(a), time);
        code.store_table(a, b, context::RESIDENT_TIMES);
        unknown
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
        if let Some(uses) = handled(shape) {
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
