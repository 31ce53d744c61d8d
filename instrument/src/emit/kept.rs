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
use crate::cache::{count_address, AddressMap, EXIT_RING};
use crate::heat::Way;
use crate::layout::{context, CONTEXTS};
use crate::memory::Shared;
use event::{Code, FetchFilter, Filter, RecordKind, SetFilter};

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

    /// `site << 8 | code` of a miss by `block`.
    fn what(&self, block: u32) -> u32 {
        let kind = match self.side {
            Side::Lines => RecordKind::Fetch,
            Side::Pages => RecordKind::FetchPage,
        };
        let sized = Code::new(kind, self.shape.line_bytes).filter(|_| kind == RecordKind::Fetch);
        block << 8 | u32::from(sized.map_or((kind as u8) << 4, |code| code.0))
    }
}

/// Numbers of lines and pages, from 1.
#[derive(Default)]
pub(crate) struct Numbers {
    lines: AddressMap<u32>,
    pages: AddressMap<u32>,
}

impl Numbers {
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
        let Use { kept, address, block, .. } = *used;
        let shared = self.cache.shared.clone();
        let contexts_offset = self.cache.layout.contexts_offset() as usize;
        let number = self.events.numbers.number(&kept, address, &shared, contexts_offset);
        let routine = self.cache.miss_routine(z, kept.ways);
        let last = kept.last(kept.set(address));
        d.free_flags();
        let miss = match used.way {
            Way::Always => {
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
                Some(d.use_cold(last, number, used.counter))
            }
        };
        let back = d.hot.len();
        let saved = miss.as_ref().is_some_and(|m| m.saved);
        if let Some(miss) = miss {
            d.link(Part::Cold, miss.back, Goal::Hot(back));
            let here = d.cold.len();
            d.cold.patch(miss.at, here);
        }
        d.miss_cold(number, kept.what(block), routine);
        if saved {
            d.cold.load(reg::RAX, context::TEMP);
        }
        let at = d.cold.jump();
        d.link(Part::Cold, at, Goal::Hot(back));
    }
}

/// Places in the cold code of a check that failed.
struct Behind {
    /// The jump to where the line is not in the cache.
    at: usize,
    /// The jump back.
    back: usize,
    /// rax waits in the context.
    saved: bool,
}

impl Draft {
    /// Cold: the set's last line is another one now. Flags are free.
    fn use_cold(&mut self, last: u32, number: u32, counter: u32) -> Behind {
        let free = (self.dead | self.spilled) & !FLAGS_BIT & !self.held.map_or(0, |r| 1 << r);
        let r = pick(free);
        self.cold.store_imm32(last, number);
        self.cold.increment(count_address(counter));
        if r.is_none() {
            self.cold.store(reg::RAX, context::TEMP);
        }
        let at = tick(&mut self.cold, r.unwrap_or(reg::RAX), number);
        self.cold.store(r.unwrap_or(reg::RAX), time(number));
        if r.is_none() {
            self.cold.load(reg::RAX, context::TEMP);
        }
        let back = self.cold.jump();
        Behind { at, back, saved: r.is_none() }
    }

    /// Cold: the line enters its set and is recorded. Flags are free.
    fn miss_cold(&mut self, number: u32, what: u32, routine: u64) {
        self.lend_position();
        self.cold.store_imm32(context::KEPT_NUMBER, number);
        self.cold.store_imm32(context::KEPT_WHAT, what);
        self.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.cold.call();
        self.link(Part::Cold, at, Goal::Address(routine));
        self.cold.load(reg::RSP, context::PROGRAM_STACK);
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

const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;

/// The shared routine behind a miss: the line whose number is in the context takes the place of the least recently used one of its set
/// of so many `ways`, and is recorded. A place that is still empty holds number 0, whose time is 0 always. Registers are
/// preserved, flags are free.
pub(crate) fn miss(code: &mut Assembler, ways: u32) {
    let saved = [reg::RAX, reg::RCX, reg::RDX, RSI, RDI, R8, R9];
    let slot = |n: usize| context::KEPT_SAVED + 8 * n as u32;
    saved.iter().enumerate().for_each(|(n, &r)| code.store(r, slot(n)));
    code.load32(reg::RAX, context::KEPT_NUMBER);
    code.mov_imm(R8, CONTEXTS + u64::from(context::KEPT_PLACES));
    code.mov(reg::RCX, reg::RAX);
    code.raw(&[0x48, 0xc1, 0xe1, 4]); // shl rcx, 4
    code.raw(&[0x49, 0x01, 0xc8]); // add r8, rcx
    code.raw(&[0x4d, 0x8b, 0x08]); // mov r9, [r8]
    code.raw(&[0x41, 0x8b, 0x50, 8]); // mov edx, [r8 + 8]
    code.raw(&[0x48, 0xc7, 0xc6, 0xff, 0xff, 0xff, 0xff]); // mov rsi, -1
    code.mov_imm(reg::RCX, ways.into());
    let again = code.len();
    code.raw(&[0x65, 0x44, 0x8b, 0x44, 0x8a, 0xfc]); // mov r8d, gs:[rdx + rcx*4 - 4]
    code.table(0x8b, R8, R8, context::KEPT_TIMES);
    code.raw(&[0x49, 0x39, 0xf0]); // cmp r8, rsi
    code.raw(&[0x73, 5]); // jae over the next two
    code.mov(RSI, R8);
    code.raw(&[0x89, 0xcf]); // mov edi, ecx
    code.raw(&[0xff, 0xc9]); // dec ecx
    let at = code.jump_if(5);
    code.patch(at, again);
    code.raw(&[0x65, 0x44, 0x8b, 0x44, 0xba, 0xfc]); // mov r8d, gs:[rdx + rdi*4 - 4]
    code.clear_table(R8, context::KEPT_TIMES);
    code.raw(&[0x65, 0x89, 0x44, 0xba, 0xfc]); // mov gs:[rdx + rdi*4 - 4], eax
    code.load(reg::RCX, context::KEPT_CLOCK);
    code.table(0x89, reg::RCX, reg::RAX, context::KEPT_TIMES);
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
    saved.iter().enumerate().for_each(|(n, &r)| code.load(r, slot(n)));
    code.raw(&[0xc3]); // ret
}
