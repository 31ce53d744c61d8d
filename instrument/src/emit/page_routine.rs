//! Shared routines that look up pages in the simulated first-level data TLB (`data_pages`).
//!
//! A routine gets the bytes of one reference or of many, and uses their pages in order:
//!
//! ```text
//!   page ──▶ hint's entry holds it? ── yes ───────────────────────────▶ entry's time = ++clock
//!                  │ no                                                        ▲
//!                  ├─ no held page has this hint ─┐                            │
//!                  └─ search all entries ─ found ─┼────────▶ set the hint ─────┤
//!                           │ not found           ▼                            │
//!                           └──────────▶ miss: replace the oldest entry, ──────┘
//!                                        record the page, set the hint
//! ```
//!
//! A complex reference is read from the ring, where its values were just written:
//!
//! | reference | pages used |
//! |---|---|
//! | masked | pages of the bytes from the first enabled element to the last |
//! | sized | pages of all its bytes |
//! | gather, tile | pages of each enabled lane, of each row |
//! | repeat, forwards | pages of each element |
//! | repeat, backwards; elements across pages | the host looks them up (`image::resident_pages`) |
//!
//! A repeat with two operands uses the pages of both in turn. The routine uses both pages only when
//! one of the operands enters its next page: the uses in between do not change the order of the
//! two.
//!
//! **Invariant.** The routine restores all registers and, behind a repeat, flags. **Leaves out**
//! state areas. Source: our own.

use super::append::leave;
use crate::code::assembler::{in_context, in_context_table, reg, Assembler};
use crate::code::buffer::{PageRoutine, PageUses};
use crate::code::fragment::EXIT_PAGES;
use crate::code::resident_pages::ResidentPages;
use crate::target::layout::context;
use assembler::{Alu, Condition, Extend, Gpr, Memory, Scale, Shift, Size};
use event::{AddressWidth, MaskedLayout, Segment, Shape, StringOperation, WIDE_BYTES};

/// The routine's kind for a complex reference of this shape; `None` if the host must look up its
/// pages.
pub(super) fn handled(shape: Shape) -> Option<PageUses> {
    let handled = match shape {
        Shape::Masked { .. } | Shape::Sized { .. } | Shape::Tile { .. } => true,
        Shape::Gather { width, .. } => width == AddressWidth::Bits64,
        Shape::String { width, segment, .. } => width == AddressWidth::Bits64 && segment == Segment::Flat,
        Shape::State { .. } => false,
    };
    handled.then_some(PageUses::Complex(shape))
}

/// Emits a stop at which the host looks up the pages of the last complex reference in the ring.
/// Changes no flags.
pub(super) fn ask_host(code: &mut Assembler, shape: Shape) {
    code.store_imm32(context::PAGE_GROUP, 16 * shape.values() as u32);
    code.store_imm32(context::EXIT, EXIT_PAGES);
    code.stop();
}

/// The registers that a routine uses. rax comes first, because saving flags uses it.
const USED: [Gpr; 9] =
    [Gpr::RAX, Gpr::RCX, Gpr::RDX, Gpr::RSI, Gpr::RDI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];

/// The registers that a routine uses for these uses: loops over lanes, rows and elements take all.
fn used(uses: PageUses) -> &'static [Gpr] {
    match uses {
        PageUses::Reference | PageUses::Wide => &USED[..6],
        PageUses::Complex(_) => &USED,
    }
}

/// A value of the group that ends at rdx, counted from the end: 1 is the last value.
fn value(back: usize) -> Memory {
    Memory::at(Gpr::RDX).plus(-16 * back as i32).gs()
}

/// Emits the routine: it saves the registers that it uses, looks the pages up, records those that
/// miss, and restores the registers.
pub(super) fn write(code: &mut Assembler, routine: &PageRoutine) {
    let pages = &routine.pages;
    let slot = |index: usize| context::PAGE_SAVED + 8 * index as u32;
    let used = used(routine.uses);
    for (index, register) in used.iter().enumerate() {
        code.store(register.number(), slot(index));
    }
    // Flags may be live behind a repeated string instruction. `lahf` saves all status flags but
    // overflow, and `seto` saves that one.
    let flags_live = matches!(routine.uses, PageUses::Complex(Shape::String { .. }));
    if flags_live {
        code.code().flags_to_ah();
        code.code().set_if(Condition::Overflow, Gpr::RAX);
        code.store(reg::RAX, context::PAGE_FLAGS);
    }
    match routine.uses {
        PageUses::Reference | PageUses::Wide => {
            code.load(reg::RAX, context::PAGE_FIRST);
            code.load(Gpr::R8.number(), context::PAGE_LAST);
            negated_pages(code, pages);
            use_range(code, pages, Counting::of(routine.uses == PageUses::Wide));
        }
        PageUses::Complex(shape) => {
            code.load(reg::RDX, context::RING_POSITION);
            complex(code, pages, shape);
        }
    }
    // Adding 0x7f to 0 or 1 in al sets the overflow flag again; then `sahf` sets the others.
    if flags_live {
        code.load(reg::RAX, context::PAGE_FLAGS);
        code.code().alu_immediate(Alu::Add, Size::Byte, Gpr::RAX, 0x7f);
        code.code().ah_to_flags();
    }
    for (index, register) in used.iter().enumerate() {
        code.load(register.number(), slot(index));
    }
    code.code().ret();
}

/// Emits the uses of the pages of the group that ends at rdx.
fn complex(code: &mut Assembler, pages: &ResidentPages, shape: Shape) {
    match shape {
        Shape::Masked { layout, element_bytes, count, .. } => {
            masked(code, pages, layout, (element_bytes, count));
        }
        Shape::Sized { size_bytes, .. } => {
            code.code().mov_from(Size::Qword, Gpr::RAX, value(1));
            past(code, Gpr::R8, Gpr::RAX, i32::from(size_bytes) - 1);
            pages_of(code, pages);
            use_range(code, pages, Counting::of(u32::from(size_bytes) > WIDE_BYTES));
        }
        Shape::Gather { scale, index_bytes, element_bytes, count, .. } => {
            gather(code, pages, (scale, index_bytes, element_bytes, count), shape.values());
        }
        Shape::Tile { .. } => tile(code, pages),
        Shape::String { operation, element_bytes, .. } => {
            string(code, pages, shape, operation, element_bytes);
        }
        Shape::State { .. } => {}
    }
}

/// Emits `to = from + bytes`.
fn past(code: &mut Assembler, to: Gpr, from: Gpr, bytes: i32) {
    code.code().lea(Size::Qword, to, Memory::at(from).plus(bytes));
}

/// Replaces the addresses of the first and last byte, in rax and r8, by the negated addresses of
/// their pages; a miss is recorded with the address of the first byte.
fn pages_of(code: &mut Assembler, pages: &ResidentPages) {
    code.store(reg::RAX, context::PAGE_FIRST);
    negated_pages(code, pages);
}

/// Replaces the addresses in rax and r8 by the negated addresses of their pages.
fn negated_pages(code: &mut Assembler, pages: &ResidentPages) {
    for register in [Gpr::RAX, Gpr::R8] {
        code.and_imm(register.number(), -(pages.page_bytes as i32));
        code.negate(register.number());
    }
}

/// How misses of several pages are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// As one record: the pages belong to one reference, which has at most two.
    Together,
    /// As one record for each page.
    Apart,
}

impl Counting {
    fn of(apart: bool) -> Counting {
        if apart {
            Counting::Apart
        } else {
            Counting::Together
        }
    }
}

/// The negated page address of the entry with this number.
fn entry(number: Gpr) -> Memory {
    in_context_table(number.number(), context::RESIDENT_PAGES)
}

/// The time of the last use of the entry with this number.
fn time(number: Gpr) -> Memory {
    in_context_table(number.number(), context::RESIDENT_TIMES)
}

/// Computes in `to` the index of the hint and the count of the page whose negated address is in
/// `minus`.
fn hint_index(code: &mut Assembler, to: Gpr, minus: Gpr, pages: &ResidentPages) {
    code.code().mov(Size::Qword, to, minus);
    code.negate(to.number());
    code.code().shift(Shift::Right, Size::Qword, to, pages.shift());
    let mask = context::PAGE_HINTS_COUNT as i32 - 1;
    code.code().alu_immediate(Alu::And, Size::Dword, to, mask);
}

/// Finds the least recently used entry; its number is in rcx afterwards. Uses rdx, rsi and rdi.
///
/// A program with many misses would spend most of them comparing the times of all entries. So each
/// group of entries keeps its least time. Times only grow, so that a group's true least time is
/// never below the one it keeps, and is that one as long as the entry has it. The least of all
/// groups therefore names the oldest entry, or a group that was used since and is compared again.
///
/// Each group is compared at most once. The program can write to the context, and words of its own
/// could name groups in circles: the number of comparisons is bounded, and then any entry leaves.
fn oldest(code: &mut Assembler, pages: &ResidentPages) {
    code.store_imm32(context::RESIDENT_TRIES, pages.groups() + 1);
    let again = code.len();
    let groups = (0..pages.groups()).map(|group| in_context(context::RESIDENT_LEAST + 8 * group));
    least(code, &[Gpr::RCX, Gpr::RDX, Gpr::RSI, Gpr::RDI], groups);
    // The low byte of a time is the number of its entry.
    code.code().extend_into(Extend::ZeroByte, Gpr::RDI, Gpr::RCX);
    code.code().alu(Alu::Cmp, Size::Qword, time(Gpr::RDI), Gpr::RCX);
    let known = code.jump_if(Condition::Equal);
    least_of_group(code);
    code.code().decrement(Size::Dword, in_context(context::RESIDENT_TRIES));
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    let here = code.len();
    code.patch(known, here);
    code.code().mov(Size::Dword, Gpr::RCX, Gpr::RDI);
    // The entry gets its next time now, which ends the wait of the next miss for this group.
    code.load(Gpr::RSI.number(), context::PAGE_CLOCK);
    let next = Memory::at(Gpr::RSI).index(Gpr::RCX, Scale::One).plus(context::PAGE_CLOCK_STEP as i32);
    code.code().lea(Size::Qword, Gpr::RSI, next);
    code.code().mov(Size::Qword, time(Gpr::RCX), Gpr::RSI);
    least_of_group(code);
}

/// Emits the comparison of the times of the group whose entry is in rdi, and keeps the least. Uses
/// rdx and rsi; the group's first entry is in rdi afterwards.
fn least_of_group(code: &mut Assembler) {
    // A word is kept for eight times, so a group's first entry is the place of its word in bytes.
    const { assert!(context::RESIDENT_GROUP == 8) };
    code.code().alu_immediate(Alu::And, Size::Dword, Gpr::RDI, -(context::RESIDENT_GROUP as i32));
    let times = (0..context::RESIDENT_GROUP as i32).map(|entry| time(Gpr::RDI).plus(8 * entry));
    least(code, &[Gpr::RDX, Gpr::RSI], times);
    let group = Memory::at(Gpr::RDI).plus(context::RESIDENT_LEAST as i32).gs();
    code.code().mov(Size::Qword, group, Gpr::RDX);
}

/// Emits the least of the words into the first of `registers`, and changes the others.
fn least(code: &mut Assembler, registers: &[Gpr], words: impl Iterator<Item = Memory>) {
    // The registers take turns, so that no comparison waits for the one before.
    let mut used = 0;
    for (&register, word) in registers.iter().cycle().zip(words) {
        if used < registers.len() {
            code.code().mov_from(Size::Qword, register, word);
            used += 1;
            continue;
        }
        code.code().alu_from(Alu::Cmp, Size::Qword, register, word);
        code.code().mov_if(Condition::Above, Size::Qword, register, word);
    }
    let mut distance = 1;
    while distance < used {
        for first in (0..used - distance).step_by(2 * distance) {
            let (one, other) = (registers[first], registers[first + distance]);
            code.registers(Alu::Cmp, one.number(), other.number());
            code.code().mov_if(Condition::Above, Size::Qword, one, other);
        }
        distance *= 2;
    }
}

/// Emits the uses of all pages from rax to r8, which hold negated page addresses. Overwrites rcx,
/// rdx, rsi and rdi.
fn use_range(code: &mut Assembler, pages: &ResidentPages, counting: Counting) {
    if counting == Counting::Together {
        code.store_imm32(context::PAGE_MISSED, 0);
    }
    let next = code.len();
    // rsi is the index of the page's hint and count, and rcx the number of the entry that may hold
    // the page.
    let hint = Memory::at(Gpr::RSI).plus(context::PAGE_HINTS as i32).gs();
    let count = Memory::at(Gpr::RSI).plus(context::PAGE_COUNTS as i32).gs();
    hint_index(code, Gpr::RSI, Gpr::RAX, pages);
    code.code().extend_into(Extend::ZeroByte, Gpr::RCX, hint);
    code.code().alu(Alu::Cmp, Size::Qword, entry(Gpr::RCX), Gpr::RAX);
    let hit = code.jump_if(Condition::Equal);
    // If no entry's page has this hint, no entry holds the page. Otherwise search all entries.
    code.code().alu_immediate(Alu::Cmp, Size::Byte, count, 0);
    let absent = code.jump_if(Condition::Equal);
    code.mov_imm(reg::RCX, pages.entries.into());
    let again = code.len();
    code.code().decrement(Size::Dword, Gpr::RCX);
    code.code().alu(Alu::Cmp, Size::Qword, entry(Gpr::RCX), Gpr::RAX);
    let found = code.jump_if(Condition::Equal);
    code.code().test(Size::Dword, Gpr::RCX, Gpr::RCX);
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    // A miss: the page replaces that of the oldest entry. The counts of both hints change.
    let here = code.len();
    code.patch(absent, here);
    oldest(code, pages);
    hint_index(code, Gpr::RSI, Gpr::RAX, pages);
    code.code().increment(Size::Byte, count);
    code.code().mov_from(Size::Qword, Gpr::RDI, entry(Gpr::RCX));
    hint_index(code, Gpr::RSI, Gpr::RDI, pages);
    code.code().decrement(Size::Byte, count);
    code.code().mov(Size::Qword, entry(Gpr::RCX), Gpr::RAX);
    record(code, counting);
    let here = code.len();
    code.patch(found, here);
    hint_index(code, Gpr::RSI, Gpr::RAX, pages);
    code.code().mov(Size::Byte, hint, Gpr::RCX);
    // The entry is used now: its time becomes the clock's next one.
    let here = code.len();
    code.patch(hit, here);
    code.load(Gpr::RSI.number(), context::PAGE_CLOCK);
    past(code, Gpr::RSI, Gpr::RSI, context::PAGE_CLOCK_STEP as i32);
    code.store(Gpr::RSI.number(), context::PAGE_CLOCK);
    code.registers(Alu::Add, Gpr::RSI.number(), reg::RCX);
    code.code().mov(Size::Qword, time(Gpr::RCX), Gpr::RSI);
    code.registers(Alu::Cmp, reg::RAX, Gpr::R8.number());
    let last = code.jump_if(Condition::Equal);
    code.code().alu_immediate(Alu::Sub, Size::Qword, Gpr::RAX, pages.page_bytes as i32);
    let at = code.jump();
    code.patch(at, next);
    let here = code.len();
    code.patch(last, here);
    if counting == Counting::Together {
        hand_full_segment_over(code);
    }
}

/// Emits the record of a miss of the page whose negated address is in rax. Overwrites rdx and rsi.
fn record(code: &mut Assembler, counting: Counting) {
    code.load(reg::RDX, context::RING_POSITION);
    let mut second = None;
    if counting == Counting::Together {
        code.compare_imm32(context::PAGE_MISSED, 0);
        let first = code.jump_if(Condition::Equal);
        // The reference's first page has missed too: its record gets a mark that stands for both.
        code.code().mov_to_immediate(Size::Dword, Memory::at(Gpr::RDX).plus(-4).gs(), 1);
        second = Some(code.jump());
        let here = code.len();
        code.patch(first, here);
        code.store_imm32(context::PAGE_MISSED, 1);
    }
    // The reference's first byte in the page: that of the reference, or that of a later page.
    code.code().mov(Size::Qword, Gpr::RSI, Gpr::RAX);
    code.negate(Gpr::RSI.number());
    let first = in_context(context::PAGE_FIRST);
    code.code().alu_from(Alu::Cmp, Size::Qword, Gpr::RSI, first);
    code.code().mov_if(Condition::Below, Size::Qword, Gpr::RSI, first);
    code.store_at(Gpr::RSI.number(), reg::RDX, 0);
    code.load32(Gpr::RSI.number(), context::PAGE_WHAT);
    code.store32_at(Gpr::RSI.number(), reg::RDX, 8);
    code.store_imm_at(reg::RDX, 12, 0);
    code.advance(reg::RDX, 16);
    code.store(reg::RDX, context::RING_POSITION);
    match counting {
        Counting::Together => {}
        Counting::Apart => hand_full_segment_over(code),
    }
    let here = code.len();
    second.into_iter().for_each(|at| code.patch(at, here));
}

/// Emits a stop for the host that is taken if the segment is full. Overwrites rdx.
fn hand_full_segment_over(code: &mut Assembler) {
    code.load(reg::RDX, context::RING_POSITION);
    code.compare(reg::RDX, context::RING_LIMIT);
    let on = code.jump_if(Condition::Below);
    leave(code);
    let here = code.len();
    code.patch(on, here);
}

/// Emits the uses of a masked reference. It counts as one reference of at most 64 bytes, or as none
/// if its mask is empty.
fn masked(
    code: &mut Assembler,
    pages: &ResidentPages,
    layout: MaskedLayout,
    (element_bytes, count): (u8, u8),
) {
    code.code().mov_from(Size::Qword, Gpr::RAX, value(2));
    code.code().mov_from(Size::Qword, Gpr::RCX, value(1));
    // Mask bits beyond the elements have no meaning, so they are cleared.
    let beyond = 64 - count;
    if beyond > 0 {
        code.code().shift(Shift::Left, Size::Qword, Gpr::RCX, beyond);
        code.code().shift(Shift::Right, Size::Qword, Gpr::RCX, beyond);
    }
    code.code().test(Size::Qword, Gpr::RCX, Gpr::RCX);
    let empty = code.jump_if(Condition::Equal);
    let element = Scale::power(element_bytes.trailing_zeros() as u8);
    let last = i32::from(element_bytes) - 1;
    match layout {
        MaskedLayout::InPlace => {
            code.code().highest_bit(Size::Qword, Gpr::R8, Gpr::RCX);
            code.code().lowest_bit(Size::Qword, Gpr::RCX, Gpr::RCX);
            let end = Memory::at(Gpr::RAX).index(Gpr::R8, element).plus(last);
            code.code().lea(Size::Qword, Gpr::R8, end);
            code.code().lea(Size::Qword, Gpr::RAX, Memory::at(Gpr::RAX).index(Gpr::RCX, element));
        }
        MaskedLayout::Packed => {
            code.code().count_ones(Size::Qword, Gpr::R8, Gpr::RCX);
            let end = Memory::at(Gpr::RAX).index(Gpr::R8, element).plus(-1);
            code.code().lea(Size::Qword, Gpr::R8, end);
        }
        MaskedLayout::Broadcast => past(code, Gpr::R8, Gpr::RAX, last),
    }
    pages_of(code, pages);
    use_range(code, pages, Counting::Together);
    let here = code.len();
    code.patch(empty, here);
}

/// Emits a loop over the lanes of a gather, whose indices are still in the context. r9 holds the
/// base, r10 the mask, r11 the lane's number.
fn gather(
    code: &mut Assembler,
    pages: &ResidentPages,
    (scale, index_bytes, element_bytes, count): (u8, u8, u8, u8),
    values: usize,
) {
    code.code().mov_from(Size::Qword, Gpr::R9, value(values));
    code.code().mov_from(Size::Qword, Gpr::R10, value(values - 1));
    code.mov_imm(Gpr::R11.number(), 0);
    let again = code.len();
    // Lane r11 is skipped if its mask bit, the lowest one of r10, is clear.
    code.code().test_immediate(Size::Byte, Gpr::R10, 1);
    let absent = code.jump_if(Condition::Equal);
    let index = Memory::absolute(context::VECTOR as i32);
    if index_bytes == 4 {
        let index = index.index(Gpr::R11, Scale::Four).gs();
        code.code().extend_into(Extend::SignDword, Gpr::RAX, index);
    } else {
        code.code().mov_from(Size::Qword, Gpr::RAX, index.index(Gpr::R11, Scale::Eight).gs());
    }
    // The lane's element lies at base + index × scale, from rax to r8.
    let lane = Memory::at(Gpr::R9).index(Gpr::RAX, Scale::power(scale.trailing_zeros() as u8));
    code.code().lea(Size::Qword, Gpr::RAX, lane);
    past(code, Gpr::R8, Gpr::RAX, i32::from(element_bytes) - 1);
    pages_of(code, pages);
    use_range(code, pages, Counting::Together);
    let here = code.len();
    code.patch(absent, here);
    // The next lane.
    code.code().shift(Shift::Right, Size::Qword, Gpr::R10, 1);
    code.code().increment(Size::Dword, Gpr::R11);
    code.compare_imm(Gpr::R11.number(), count.into());
    let at = code.jump_if(Condition::Below);
    code.patch(at, again);
}

/// Emits a loop over the rows of a tile. r9 holds the address of the row, r10 the number of rows
/// that remain, r11 the bytes of a row.
fn tile(code: &mut Assembler, pages: &ResidentPages) {
    code.code().mov_from(Size::Qword, Gpr::R9, value(4));
    code.code().mov_from(Size::Qword, Gpr::R10, value(2));
    code.code().mov_from(Size::Qword, Gpr::R11, value(1));
    code.code().mov_from(Size::Qword, Gpr::RAX, value(3));
    code.store(reg::RAX, context::PAGE_STRIDE);
    code.code().test(Size::Dword, Gpr::R11, Gpr::R11);
    let no_bytes = code.jump_if(Condition::Equal);
    code.code().test(Size::Dword, Gpr::R10, Gpr::R10);
    let no_rows = code.jump_if(Condition::Equal);
    let again = code.len();
    code.code().mov(Size::Qword, Gpr::RAX, Gpr::R9);
    let end = Memory::at(Gpr::R9).index(Gpr::R11, Scale::One).plus(-1);
    code.code().lea(Size::Qword, Gpr::R8, end);
    pages_of(code, pages);
    use_range(code, pages, Counting::Together);
    code.code().alu_from(Alu::Add, Size::Qword, Gpr::R9, in_context(context::PAGE_STRIDE));
    code.code().decrement(Size::Dword, Gpr::R10);
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    let here = code.len();
    code.patch(no_bytes, here);
    code.patch(no_rows, here);
}

/// Emits the uses of a repeated string instruction. Its values are its pointers before it, and the
/// pointer behind it that every operation moves.
fn string(
    code: &mut Assembler,
    pages: &ResidentPages,
    shape: Shape,
    operation: StringOperation,
    element_bytes: u8,
) {
    use StringOperation::{Cmps, Lods, Movs, Scas, Stos};
    let (source, destination) = match operation {
        Movs | Cmps => (true, true),
        Lods => (true, false),
        Stos | Scas => (false, true),
    };
    // r9 is the source, r10 the destination, r11 the number of bytes.
    code.code().mov_from(Size::Qword, Gpr::R9, value(3));
    code.code().mov_from(Size::Qword, Gpr::R10, value(2));
    code.code().mov_from(Size::Qword, Gpr::R11, value(1));
    let moved = if operation == Lods { Gpr::R9 } else { Gpr::R10 };
    code.code().alu(Alu::Sub, Size::Qword, Gpr::R11, moved);
    let nothing = code.jump_if(Condition::Equal);
    let backwards = code.jump_if(Condition::Sign);
    let mut odd = vec![backwards];
    if element_bytes > 1 {
        // An element across two pages counts one miss for both; the host handles such repeats.
        for (used, pointer) in [(source, Gpr::R9), (destination, Gpr::R10)] {
            if used {
                code.code().test_immediate(Size::Byte, pointer, i32::from(element_bytes) - 1);
                odd.push(code.jump_if(Condition::NotEqual));
            }
        }
    }
    let again = code.len();
    for (used, pointer) in [(source, Gpr::R9), (destination, Gpr::R10)] {
        if used {
            code.code().mov(Size::Qword, Gpr::RAX, pointer);
            code.code().mov(Size::Qword, Gpr::R8, pointer);
            pages_of(code, pages);
            use_range(code, pages, Counting::Apart);
        }
    }
    // Advance by rax bytes, to where the first of the operands enters its next page.
    code.code().mov(Size::Qword, Gpr::RAX, Gpr::R11);
    for (used, pointer) in [(source, Gpr::R9), (destination, Gpr::R10)] {
        if used {
            code.code().mov(Size::Dword, Gpr::RCX, pointer);
            code.code().alu_immediate(Alu::And, Size::Dword, Gpr::RCX, pages.page_bytes as i32 - 1);
            code.negate(reg::RCX);
            past(code, Gpr::RCX, Gpr::RCX, pages.page_bytes as i32);
            code.registers(Alu::Cmp, reg::RCX, reg::RAX);
            code.code().mov_if(Condition::Below, Size::Qword, Gpr::RAX, Gpr::RCX);
        }
    }
    code.registers(Alu::Add, Gpr::R9.number(), reg::RAX);
    code.registers(Alu::Add, Gpr::R10.number(), reg::RAX);
    code.registers(Alu::Sub, Gpr::R11.number(), reg::RAX);
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    let done = code.jump();
    let here = code.len();
    odd.into_iter().for_each(|at| code.patch(at, here));
    ask_host(code, shape);
    let here = code.len();
    code.patch(nothing, here);
    code.patch(done, here);
}
