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
//! one's last use. Pages are not known when code is translated, so a hint, found by the lowest bits
//! of the page's number, says which entry may hold it. A use is a look at the hint and one store of
//! the time; only what the hint does not know is looked for among the ways of its set, and only a
//! miss is recorded. True LRU needs no order to be kept but the times.
//!
//! ```text
//!   last page        minus its address          ◀──  hot:  same page as the last use? nothing to do
//!   hint[n & 1023]   an entry that may hold n   ◀──  cold: entry = hint; holds it? time = ++clock
//!   page[entry]      n, 0: empty                     routine: the entry of n in its set, else the
//!   time[entry]      when it was used last                    oldest one, and a record (miss)
//! ```
//!
//! # Invariants
//!
//! - The entry of the last page has the highest time.
//! - Every data reference of the stream uses its pages here, complex ones too (`page_routine`).
//! - A hint may be wrong; what it names is compared.
//!
//! A number is a page's number plus 1, so that a context of zeros holds no page. **Leaves out**
//! TLBs whose sets are no power of two, or with more entries than a byte can name. Source: our own;
//! `event::PageFilter` says what the records mean.

use super::emitter::Emitter;
use crate::code::assembler::{gpr, in_context_table, reg, Address, Assembler};
use crate::code::buffer::{Label, PageRoutine, PageUses, Routine, Section};
use crate::code::fragment::EXIT_PAGES;
use crate::code::resident_pages::{page_what, ResidentPages};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::block::Tier;
use crate::plan::group::{Cover, Group, Member};
use crate::target::layout::context;
use assembler::{Alu, Condition, Extend, Gpr, Memory, Shift, Size};
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
        // Hot: in the page that was used last, all of them?
        let hot = &mut self.buffer.hot;
        hot.lea(a, &lowest);
        hot.add_segment(a, &lowest);
        hot.add_context(a, context::DATA_PAGES);
        hot.compare_imm(a, pages.page_bytes as i32 - bytes.min(pages.page_bytes) as i32);
        let at = if bytes > pages.page_bytes { hot.jump() } else { hot.jump_if(Condition::Above) };
        self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
        let back = Label::Hot(self.buffer.hot.len());
        // Cold: in one page that the hint knows. Code that has run often has this in line.
        if self.tier != Tier::Fresh {
            let unknown = hinted(&mut self.buffer.cold, &lowest, bytes, (a, b), &pages);
            let at = self.buffer.cold.jump();
            self.buffer.link(Section::Cold, at, back);
            let here = self.buffer.cold.len();
            unknown.into_iter().for_each(|at| self.buffer.cold.patch(at, here));
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
        let code = match section {
            Section::Hot => &mut self.buffer.hot,
            Section::Cold => &mut self.buffer.cold,
        };
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

/// Uses the page of `bytes` at `lowest`, if it is one page and the hint knows it; the jumps that
/// are taken otherwise. Both registers and flags are free.
fn hinted(
    code: &mut Assembler,
    lowest: &Address,
    bytes: u32,
    (a, b): (u8, u8),
    pages: &ResidentPages,
) -> Vec<usize> {
    let page_bytes = i64::from(pages.page_bytes);
    code.lea(a, lowest);
    code.add_segment(a, lowest);
    // The numbers of the first and of the last byte's page.
    code.lea(b, &Address::based(a, page_bytes + i64::from(bytes.max(1)) - 1));
    code.lea(a, &Address::based(a, page_bytes));
    code.code().shift(Shift::Right, Size::Qword, gpr(b), pages.shift());
    code.code().shift(Shift::Right, Size::Qword, gpr(a), pages.shift());
    code.registers(Alu::Cmp, a, b);
    let crosses = code.jump_if(Condition::NotEqual);
    hint(code, gpr(b));
    code.code().alu(Alu::Cmp, Size::Qword, in_context_table(b, context::RESIDENT_PAGES), gpr(a));
    let unknown = code.jump_if(Condition::NotEqual);
    // It becomes the last one, now: minus its address is what the check adds.
    code.code().negate(Size::Qword, gpr(a));
    code.advance(a, 1);
    code.code().shift(Shift::Left, Size::Qword, gpr(a), pages.shift());
    code.store(a, context::DATA_PAGES);
    code.load(a, context::PAGE_CLOCK);
    code.advance(a, 1);
    code.store(a, context::PAGE_CLOCK);
    code.store_table(a, b, context::RESIDENT_TIMES);
    vec![crosses, unknown]
}

/// `number`, a page's, becomes the entry that may hold it.
pub(super) fn hint(code: &mut Assembler, number: Gpr) {
    let mask = context::PAGE_HINTS_COUNT as i32 - 1;
    code.code().alu_immediate(Alu::And, Size::Dword, number, mask);
    let entry = Memory::at(number).plus(context::PAGE_HINTS as i32).gs();
    code.code().extend_into(Extend::ZeroByte, number, entry);
}
