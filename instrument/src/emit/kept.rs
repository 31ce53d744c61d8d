//! The first level of the instruction side, kept beside the program: which code lines (and pages) are in it, and when each was used last.
//!
//! **What.** Code lines are known when code is translated, so each has a number, and a word with the time of its last use: 0 where it is not in
//! the cache. Behind the check of a set's last line, a use is a clock's next tick and one store; nothing is recorded. A line
//! that is not in the cache takes the place of its set's least recently used one, by a shared routine, and only that is a record.
//! **Why this way.** Half of the records of programs with much code were instruction lines, nearly all of them hits. True LRU needs no order to be
//! kept but the times, and the target can decide alone: nothing but instructions uses these caches. **Leaves out** the data side: its lines
//! are not known beforehand, and a table of those in the cache was measured to cost the program's own cache more than it saves.
//! Source: our own; `event::FetchFilter` says what the records mean.

use super::draft::{pick, Draft, Goal, Part, FLAGS_BIT};
use crate::assemble::{reg, Assembler};
use crate::cache::{AddressMap, EXIT_RING};
use crate::heat::Way;
use crate::layout::{context, CONTEXTS};
use crate::memory::Shared;
use event::{Code, FetchFilter, Filter, RecordKind, SetFilter, Stream};

/// Instruction cache or instruction TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Lines,
    Pages,
}

/// One of the two as it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) side: Side,
    pub(crate) shape: SetFilter,
    pub(crate) ways: u32,
}

impl Kept {
    /// What `filter` keeps of the instruction side.
    pub(crate) fn of(filter: &Filter) -> Option<(Kept, Option<Kept>)> {
        let FetchFilter::FirstLevel { line_ways, page_ways } = filter.fetches else { return None };
        let lines = Kept { side: Side::Lines, shape: filter.instruction, ways: line_ways };
        let pages = filter.instruction_page.map(|shape| Kept { side: Side::Pages, shape, ways: page_ways });
        Some((lines, pages))
    }

    pub(crate) fn set(&self, address: u64) -> u32 {
        (address / u64::from(self.shape.line_bytes) % u64::from(self.shape.sets)) as u32
    }

    /// Context offset of the number of a set's last line.
    fn last(&self, set: u32) -> u32 {
        match self.side {
            Side::Lines => context::INSTRUCTION_LINES + 4 * set,
            Side::Pages => context::INSTRUCTION_PAGES + 4 * set,
        }
    }

    /// Context offset of the numbers of a set's lines, 4 bytes each.
    pub(crate) fn row(&self, set: u32) -> u32 {
        let first = match self.side {
            Side::Lines => context::KEPT_LINES,
            Side::Pages => context::KEPT_PAGES,
        };
        first + 4 * set * self.ways
    }

    /// The code of a miss's record.
    fn code(&self) -> u8 {
        let kind = match self.side {
            Side::Lines => RecordKind::Fetch,
            Side::Pages => RecordKind::FetchPage,
        };
        let sized = Code::new(kind, self.shape.line_bytes).filter(|_| kind == RecordKind::Fetch);
        sized.map_or((kind as u8) << 4, |code| code.0)
    }
}

/// Numbers of lines and pages, from 1.
#[derive(Default)]
pub(crate) struct Numbers {
    lines: AddressMap<u32>,
    pages: AddressMap<u32>,
}

impl Numbers {
    /// All of them: lines, then pages, each with its number.
    pub(crate) fn numbered(&self) -> [Vec<(u64, u32)>; 2] {
        [&self.lines, &self.pages]
            .map(|numbers| numbers.iter().map(|(&address, &number)| (address, number)).collect())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lines.len() + self.pages.len()
    }

    /// The number of a line that lies at `address`; a new one is entered into the table that routines read.
    fn number(&mut self, kept: &Kept, address: u64, shared: &Shared, contexts_offset: usize) -> u32 {
        let next = self.count() as u32 + 1;
        let numbers = match kept.side {
            Side::Lines => &mut self.lines,
            Side::Pages => &mut self.pages,
        };
        *numbers.entry(address).or_insert_with(|| {
            let at = contexts_offset + (context::KEPT_PLACES + 16 * next) as usize;
            shared.write64(at, address);
            shared.write32(at + 8, kept.row(kept.set(address)));
            next
        })
    }
}

impl crate::translate::Translator {
    /// Numbers lines and pages as they were numbered before: those that are kept whole, in the order of their numbers.
    pub(super) fn renumber_kept(&mut self, lines: &[(u64, u32)], pages: &[(u64, u32)]) {
        let Stream::Filtered(filter) = self.events.stream else { return };
        let Some((line, page)) = Kept::of(&filter) else { return };
        let contexts_offset = self.cache.layout.contexts_offset() as usize;
        let of = |kept: Option<Kept>, list: &[(u64, u32)]| {
            list.iter().filter_map(|&(address, number)| Some((number, kept?, address))).collect::<Vec<_>>()
        };
        let mut all = of(Some(line), lines);
        all.extend(of(page, pages));
        all.sort_unstable_by_key(|numbered| numbered.0);
        for (_, kept, address) in all {
            self.events.numbers.number(&kept, address, &self.cache.shared, contexts_offset);
        }
    }
}

/// A use of a line by a block.
pub(crate) struct Use {
    pub(crate) kept: Kept,
    /// First byte of the line.
    pub(crate) address: u64,
    pub(crate) block: u32,
    pub(crate) way: Way,
    /// Counts the uses of other lines than the set's last.
    pub(crate) counter: u32,
}

impl crate::translate::Translator {
    /// Code for a use of an instruction line or page in zone `z`.
    pub(crate) fn use_kept(&mut self, d: &mut Draft, z: usize, used: &Use) {
        let Use { kept, address, way, .. } = *used;
        let shared = self.cache.shared.clone();
        let contexts_offset = self.cache.layout.contexts_offset() as usize;
        let number = self.events.numbers.number(&kept, address, &shared, contexts_offset);
        let routine = self.cache.use_routine(z, kept.ways, kept.code());
        let last = kept.last(kept.set(address));
        d.free_flags();
        let checked = match way {
            Way::Branchless | Way::Always => {
                let r = d.scratch(0);
                d.hot.store_imm32(last, number);
                let miss = tick(&mut d.hot, r, number);
                d.link(Part::Hot, miss, Goal::Cold(d.cold.len()));
                d.hot.store(r, time(number));
                None
            }
            Way::Checked => {
                d.hot.compare_imm32(last, number);
                let at = d.hot.jump_if(5);
                d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
                // Code that has run often has the common case in line, other code is as short as can be.
                self.events.tuning.is_some().then(|| d.use_cold(last, number))
            }
        };
        let back = Goal::Hot(d.hot.len());
        if let Some(Behind { absent, back: jump, .. }) = checked {
            d.link(Part::Cold, jump, back);
            let here = d.cold.len();
            d.cold.patch(absent, here);
        }
        if checked.is_some_and(|behind| behind.saved) {
            d.cold.load(reg::RAX, context::TEMP);
        }
        d.call_use((last, number), [used.block, used.counter], routine);
        let at = d.cold.jump();
        d.link(Part::Cold, at, back);
    }
}

/// Places in the cold code of a check that failed.
#[derive(Clone, Copy)]
struct Behind {
    /// The jump to where the line is not in the cache.
    absent: usize,
    /// The jump back.
    back: usize,
    /// rax waits in the context.
    saved: bool,
}

impl Draft {
    /// Cold: the set's last line is another one now. Flags are free.
    fn use_cold(&mut self, last: u32, number: u32) -> Behind {
        let r = pick((self.dead | self.spilled) & !FLAGS_BIT & !self.held.map_or(0, |r| 1 << r));
        let (r, saved) = (r.unwrap_or(reg::RAX), r.is_none());
        self.cold.store_imm32(last, number);
        if saved {
            self.cold.store(r, context::TEMP);
        }
        let absent = tick(&mut self.cold, r, number);
        self.cold.store(r, time(number));
        if saved {
            self.cold.load(r, context::TEMP);
        }
        let back = self.cold.jump();
        Behind { absent, back, saved }
    }

    /// Cold: a use by the shared routine. It is given the number; what it seldom needs to know it finds behind the call, in instructions that do
    /// nothing else: code that is read as data comes from afar.
    fn call_use(&mut self, (last, number): (u32, u32), words: [u32; 2], routine: u64) {
        self.lend_position();
        self.cold.store_imm32(last, number);
        self.cold.store(reg::RAX, slot(0));
        self.cold.mov_imm(reg::RAX, number.into());
        self.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.cold.call();
        self.link(Part::Cold, at, Goal::Address(routine));
        for word in words {
            self.cold.test_eax(word);
        }
        self.cold.pop_stack();
        self.take_position_back();
    }
}

/// Context offset of the time of a line's last use.
fn time(number: u32) -> u32 {
    context::KEPT_TIMES + 8 * number
}

/// The clock's next tick in `r`; the displacement of a jump that is taken where the line is not in the cache.
fn tick(code: &mut Assembler, r: u8, number: u32) -> usize {
    code.load(r, context::KEPT_CLOCK);
    code.advance(r, 1);
    code.compare_zero(time(number));
    code.store(r, context::KEPT_CLOCK);
    code.jump_if(4)
}

/// Of so many uses one is counted: a counter of a block that seldom runs is in no cache.
pub(crate) const COUNTED_EVERY: u8 = 16;

const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;

fn slot(n: usize) -> u32 {
    context::KEPT_SAVED + 8 * n as u32
}

/// The shared routine of uses of the line whose number is in eax, which is its set's last by now: counts, notes the time; a line that was not in the
/// cache enters, and is recorded with `code` as the low byte of `what`. rax comes back from its slot, other registers are preserved, flags are free.
pub(crate) fn routine(code: &mut Assembler, ways: u32, low: u8) {
    let saved = [reg::RAX, reg::RDX];
    let more = [reg::RCX, RSI, RDI, R8, R9];
    code.store(reg::RDX, slot(1));
    code.load(reg::RDX, context::KEPT_CLOCK);
    code.advance(reg::RDX, 1);
    code.store(reg::RDX, context::KEPT_CLOCK);
    code.raw(&[0xf6, 0xc2, COUNTED_EVERY - 1]); // test dl, imm8
    let most = code.jump_if(5);
    code.raw(&[0x48, 0x8b, 0x14, 0x24]); // mov rdx, [rsp]
    code.raw(&[0x8b, 0x52, 6]); // mov edx, [rdx + 6]: counter
    code.raw(&[0x65, 0x48, 0x83, 0x04, 0xd5]); // add qword gs:[rdx*8 + counters], 1
    code.imm32(context::COUNTERS);
    code.raw(&[1]);
    code.load(reg::RDX, context::KEPT_CLOCK);
    let here = code.len();
    code.patch(most, here);
    code.raw(&[0x65, 0x48, 0x83, 0x3c, 0xc5]); // cmp qword gs:[rax*8 + times], 0
    code.imm32(context::KEPT_TIMES);
    code.raw(&[0]);
    let absent = code.jump_if(4);
    code.table(0x89, reg::RDX, reg::RAX, context::KEPT_TIMES);
    finish(code, &saved);
    let here = code.len();
    code.patch(absent, here);
    more.iter().zip(2..).for_each(|(&r, n)| code.store(r, slot(n)));
    code.raw(&[0x48, 0x8b, 0x0c, 0x24]); // mov rcx, [rsp]
    code.raw(&[0x8b, 0x49, 1]); // mov ecx, [rcx + 1]: block
    code.raw(&[0xc1, 0xe1, 8]); // shl ecx, 8
    code.raw(&[0x81, 0xc9]); // or ecx, low
    code.imm32(low.into());
    code.raw(&[0x65, 0x89, 0x0c, 0x25]); // mov gs:[what], ecx
    code.imm32(context::KEPT_WHAT);
    code.mov_imm(R8, CONTEXTS + u64::from(context::KEPT_PLACES));
    code.raw(&[0x48, 0x8d, 0x14, 0x00]); // lea rdx, [rax + rax]
    code.raw(&[0x4d, 0x8d, 0x04, 0xd0]); // lea r8, [r8 + rdx*8]
    enter(code, ways);
    record(code);
    more.iter().zip(2..).for_each(|(&r, n)| code.load(r, slot(n)));
    finish(code, &saved);
}

fn finish(code: &mut Assembler, saved: &[u8]) {
    saved.iter().enumerate().for_each(|(n, &r)| code.load(r, slot(n)));
    code.raw(&[0xc3]); // ret
}

/// The line whose number is in eax and whose place is at r8 takes the way of its set's least recently used one. A way that is still empty
/// holds number 0, whose time is 0 always. Its address is in r9 afterwards.
fn enter(code: &mut Assembler, ways: u32) {
    code.raw(&[0x4d, 0x8b, 0x08]); // mov r9, [r8]
    code.raw(&[0x41, 0x8b, 0x50, 8]); // mov edx, [r8 + 8]: the set's row
    code.raw(&[0x48, 0xc7, 0xc6, 0xff, 0xff, 0xff, 0xff]); // mov rsi, -1
    code.mov_imm(reg::RCX, ways.into());
    let again = code.len();
    code.raw(&[0x65, 0x44, 0x8b, 0x44, 0x8a, 0xfc]); // mov r8d, gs:[rdx + rcx*4 - 4]
    code.table(0x8b, R8, R8, context::KEPT_TIMES);
    code.raw(&[0x49, 0x39, 0xf0]); // cmp r8, rsi
    code.raw(&[0x49, 0x0f, 0x42, 0xf0]); // cmovb rsi, r8
    code.raw(&[0x0f, 0x42, 0xf9]); // cmovb edi, ecx
    code.raw(&[0xff, 0xc9]); // dec ecx
    let at = code.jump_if(5);
    code.patch(at, again);
    code.raw(&[0x65, 0x44, 0x8b, 0x44, 0xba, 0xfc]); // mov r8d, gs:[rdx + rdi*4 - 4]
    code.clear_table(R8, context::KEPT_TIMES);
    code.raw(&[0x65, 0x89, 0x44, 0xba, 0xfc]); // mov gs:[rdx + rdi*4 - 4], eax
    code.load(reg::RCX, context::KEPT_CLOCK);
    code.table(0x89, reg::RCX, reg::RAX, context::KEPT_TIMES);
}

/// Appends the record of the line at r9.
fn record(code: &mut Assembler) {
    code.load(reg::RDX, context::RING_POSITION);
    code.store_at(R9, reg::RDX, 0);
    code.load32(reg::RCX, context::KEPT_WHAT);
    code.store32_at(reg::RCX, reg::RDX, 8);
    code.advance(reg::RDX, 16);
    code.store(reg::RDX, context::RING_POSITION);
    code.compare(reg::RDX, context::RING_LIMIT);
    let on = code.jump_if(2);
    code.store_imm32(context::EXIT, EXIT_RING);
    code.raw(&[0xcc]);
    let here = code.len();
    code.patch(on, here);
}
