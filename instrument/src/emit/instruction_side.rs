//! The inline instruction cache: which code lines (and pages) are in the first level, and when each
//! was used last.
//!
//! # The problem
//!
//! Every block uses instruction lines. If each use were recorded, half of the records of a program
//! with much code would be such uses; nearly all of them are hits, which no simulator needs.
//!
//! # The idea
//!
//! Code lines are known when code is translated, so each has a number, and a word with the time of
//! its last use: 0 where it is not in the cache. A hit is a tick of a clock and one store. A miss
//! takes the way of its set that was used least recently, and only a miss is recorded. True LRU
//! needs no order to be kept but the times, and the target can decide alone, because nothing but
//! instructions uses these caches.
//!
//! ```text
//!   in the thread's context                            in line, for the line of number n
//!   last[set]   number of the set's last line   ◀───   cmp last[set], n ── equal ──▶ nothing to do
//!   time[n]     0: absent; else last use        ◀───   clock += 1; time[n] = clock   (hit)
//!   row[set][w] numbers of the lines in the set        routine: the way with the least time (miss)
//!   place[n]    address and row, for misses
//! ```
//!
//! # Invariants
//!
//! - A line's time is 0 exactly where no way of its set holds its number.
//! - The time of a set's last line may be old: nothing else of the set was used since, so it is the
//!   youngest of them in any case.
//! - Number 0 is no line and its time stays 0: an empty way holds it, and is taken first.
//!
//! **Leaves out** the data side: its lines are not known beforehand, and a table of those in the
//! cache was measured to cost the program's own cache more than it saves. Source: our own;
//! `event::FetchFilter` says what the records mean.

use super::append::leave;
use super::emitter::Emitter;
use crate::code::assembler::{in_context, in_context_table, reg, Assembler};
use crate::code::buffer::{Label, Routine, Section};
use crate::code::state_map::{pick, FLAGS_BIT};
use crate::plan::block::{BlockPlan, Tier};
use crate::plan::instruction_cache::{LineUse, COUNTED_EVERY};
use crate::plan::mode::RecordMode;
use crate::target::layout::{context, CONTEXTS};
use assembler::{Alu, Condition, Gpr, Memory, Scale, Shift, Size};

impl Emitter {
    /// Code for a use of an instruction line or page by a block.
    pub(super) fn use_line(&mut self, line: &LineUse, block: u32, plan: &BlockPlan) {
        let &LineUse { cache, address, number } = line;
        let last = cache.last(cache.set(address));
        self.free_flags();
        // Hot: if the line is its set's last, nothing else of the set was used since, and its time
        // need not change.
        let checked = match plan.fetch {
            // Tuned code that mostly finds another line than the last: noted at once.
            RecordMode::Branchless | RecordMode::Always => {
                let r = self.scratch(0);
                self.buffer.hot.store_imm32(last, number);
                let miss = tick(&mut self.buffer.hot, r, number);
                self.buffer.link(Section::Hot, miss, Label::Cold(self.buffer.cold.len()));
                self.buffer.hot.store(r, time(number));
                None
            }
            RecordMode::Checked => {
                self.buffer.hot.compare_imm32(last, number);
                let at = self.buffer.hot.jump_if(Condition::NotEqual);
                self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
                // Code that has run often has the common case in line, other code is as short as
                // can be.
                (self.tier != Tier::Fresh).then(|| self.use_cold(last, number))
            }
        };
        // Cold: the shared routine, where the common case was not handled in line.
        let back = Label::Hot(self.buffer.hot.len());
        if let Some(Behind { absent, back: jump, .. }) = checked {
            self.buffer.link(Section::Cold, jump, back);
            let here = self.buffer.cold.len();
            self.buffer.cold.patch(absent, here);
        }
        if checked.is_some_and(|behind| behind.saved) {
            self.buffer.cold.load(reg::RAX, context::TEMP);
        }
        // A line of this cache that misses takes a way of its set, and is recorded.
        let routine = Routine::UseLine(cache.ways, cache.code());
        self.call_use((last, number), [block, plan.failures], routine);
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
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

impl Emitter {
    /// Cold: the set's last line is another one now. Flags are free.
    fn use_cold(&mut self, last: u32, number: u32) -> Behind {
        // Any free register can hold the clock; if there is none, rax does, and its value waits in
        // the context.
        let r = pick((self.dead | self.spilled) & !FLAGS_BIT & !self.held.map_or(0, |r| 1 << r));
        let (r, saved) = (r.unwrap_or(reg::RAX), r.is_none());
        self.buffer.cold.store_imm32(last, number);
        if saved {
            self.buffer.cold.store(r, context::TEMP);
        }
        // A line that is in the cache has a time that is not 0: it gets the clock's next one.
        let absent = tick(&mut self.buffer.cold, r, number);
        self.buffer.cold.store(r, time(number));
        if saved {
            self.buffer.cold.load(r, context::TEMP);
        }
        let back = self.buffer.cold.jump();
        Behind { absent, back, saved }
    }

    /// Cold: a use by the shared routine. It is given the number; what it seldom needs to know it
    /// finds behind the call, in instructions that do nothing else: code that is read as data comes
    /// from afar.
    fn call_use(&mut self, (last, number): (u32, u32), words: [u32; 2], routine: Routine) {
        self.lend_position();
        self.buffer.cold.store_imm32(last, number);
        // rax brings the number, and comes back from its slot.
        self.buffer.cold.store(reg::RAX, saved_slot(0));
        self.buffer.cold.mov_imm(reg::RAX, number.into());
        self.buffer.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.buffer.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.buffer.cold.call();
        self.buffer.want_routine(Section::Cold, at, routine);
        // `test eax, word` changes nothing but flags, which are free: data among code.
        for word in words {
            self.buffer.cold.test_eax(word);
        }
        self.buffer.cold.pop_stack();
        self.take_position_back();
    }
}

/// Context offset of the time of a line's last use.
fn time(number: u32) -> u32 {
    context::KEPT_TIMES + 8 * number
}

/// The clock's next tick in `r`; the displacement of a jump that is taken where the line is not in
/// the cache.
fn tick(code: &mut Assembler, r: u8, number: u32) -> usize {
    code.load(r, context::KEPT_CLOCK);
    code.advance(r, 1);
    code.compare_zero(time(number));
    code.store(r, context::KEPT_CLOCK);
    code.jump_if(Condition::Equal)
}

const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;

fn saved_slot(n: usize) -> u32 {
    context::KEPT_SAVED + 8 * n as u32
}

/// The shared routine of uses of the line whose number is in eax, which is its set's last by now:
/// counts, notes the time; a line that was not in the cache enters, and is recorded with `code` as
/// the low byte of `what`. rax comes back from its slot, other registers are preserved, flags are
/// free.
pub(super) fn routine(code: &mut Assembler, ways: u32, low: u8) {
    let saved = [reg::RAX, reg::RDX];
    let more = [reg::RCX, RSI, RDI, R8, R9];
    // The clock ticks once for each use.
    code.store(reg::RDX, saved_slot(1));
    code.load(reg::RDX, context::KEPT_CLOCK);
    code.advance(reg::RDX, 1);
    code.store(reg::RDX, context::KEPT_CLOCK);
    // One use in [`COUNTED_EVERY`] is counted, in the block's counter, whose number stands behind
    // the call.
    code.code().test_immediate(Size::Byte, Gpr::RDX, i32::from(COUNTED_EVERY) - 1);
    let most = code.jump_if(Condition::NotEqual);
    load_behind_call(code, Gpr::RDX, COUNTER_BEHIND_CALL);
    let counter = in_context_table(reg::RDX, context::COUNTERS);
    code.code().alu_immediate(Alu::Add, Size::Qword, counter, 1);
    code.load(reg::RDX, context::KEPT_CLOCK);
    let here = code.len();
    code.patch(most, here);
    // A time that is not 0: the line is in the cache, and is used now.
    let time = in_context_table(reg::RAX, context::KEPT_TIMES);
    code.code().alu_immediate(Alu::Cmp, Size::Qword, time, 0);
    let absent = code.jump_if(Condition::Equal);
    code.store_table(reg::RDX, reg::RAX, context::KEPT_TIMES);
    finish(code, &saved);
    let here = code.len();
    code.patch(absent, here);
    // A miss. What its record says: the block and the kind.
    more.iter().zip(2..).for_each(|(&r, n)| code.store(r, saved_slot(n)));
    load_behind_call(code, Gpr::RCX, BLOCK_BEHIND_CALL);
    code.code().shift(Shift::Left, Size::Dword, Gpr::RCX, 8);
    code.code().alu_immediate(Alu::Or, Size::Dword, Gpr::RCX, low.into());
    code.code().mov(Size::Dword, in_context(context::KEPT_WHAT), Gpr::RCX);
    // Address and row of the line stand in the first context, 16 bytes a number.
    code.mov_imm(R8, CONTEXTS + u64::from(context::KEPT_PLACES));
    let twice = Memory::at(Gpr::RAX).index(Gpr::RAX, Scale::One);
    code.code().lea(Size::Qword, Gpr::RDX, twice);
    code.code().lea(Size::Qword, Gpr::R8, Memory::at(Gpr::R8).index(Gpr::RDX, Scale::Eight));
    enter(code, ways);
    record(code);
    more.iter().zip(2..).for_each(|(&r, n)| code.load(r, saved_slot(n)));
    finish(code, &saved);
}

/// Where the immediates of the two instructions behind a call of [`routine`] stand, seen from where
/// it returns.
const BLOCK_BEHIND_CALL: i32 = 1;
const COUNTER_BEHIND_CALL: i32 = 6;

/// Four bytes of the code that called the routine.
fn load_behind_call(code: &mut Assembler, to: Gpr, distance: i32) {
    // On top of the stack is the address behind the call.
    code.code().mov_from(Size::Qword, to, Memory::at(Gpr::RSP));
    code.code().mov_from(Size::Dword, to, Memory::at(to).plus(distance));
}

/// `gs:[rdx + number*4 - 4]`: a way of the row at rdx, counted from 1.
fn way(number: Gpr) -> Memory {
    Memory::at(Gpr::RDX).index(number, Scale::Four).plus(-4).gs()
}

fn finish(code: &mut Assembler, saved: &[u8]) {
    saved.iter().enumerate().for_each(|(n, &r)| code.load(r, saved_slot(n)));
    code.code().ret();
}

/// The line whose number is in eax and whose place is at r8 takes the way of its set's least
/// recently used one. A way that is still empty holds number 0, whose time is 0 always. Its address
/// is in r9 afterwards.
fn enter(code: &mut Assembler, ways: u32) {
    code.code().mov_from(Size::Qword, Gpr::R9, Memory::at(Gpr::R8));
    // The set's row.
    code.code().mov_from(Size::Dword, Gpr::RDX, Memory::at(Gpr::R8).plus(8));
    // The way with the smallest time, from the last way to the first: rsi holds that time, rdi the
    // way.
    code.mov_imm(RSI, u64::MAX);
    code.mov_imm(reg::RCX, ways.into());
    let again = code.len();
    code.code().mov_from(Size::Dword, Gpr::R8, way(Gpr::RCX));
    code.load_table(R8, R8, context::KEPT_TIMES);
    code.registers(Alu::Cmp, R8, RSI);
    code.code().mov_if(Condition::Below, Size::Qword, Gpr::RSI, Gpr::R8);
    code.code().mov_if(Condition::Below, Size::Dword, Gpr::RDI, Gpr::RCX);
    code.code().decrement(Size::Dword, Gpr::RCX);
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    // The line that was there is out: its time becomes 0. The new one takes its way.
    code.code().mov_from(Size::Dword, Gpr::R8, way(Gpr::RDI));
    code.clear_table(R8, context::KEPT_TIMES);
    code.code().mov(Size::Dword, way(Gpr::RDI), Gpr::RAX);
    code.load(reg::RCX, context::KEPT_CLOCK);
    code.store_table(reg::RCX, reg::RAX, context::KEPT_TIMES);
}

/// Appends the record of the line at r9.
fn record(code: &mut Assembler) {
    // The position in memory is the true one: the code before the call has written it.
    code.load(reg::RDX, context::RING_POSITION);
    code.store_at(R9, reg::RDX, 0);
    code.load32(reg::RCX, context::KEPT_WHAT);
    code.store32_at(reg::RCX, reg::RDX, 8);
    code.advance(reg::RDX, 16);
    code.store(reg::RDX, context::RING_POSITION);
    code.compare(reg::RDX, context::RING_LIMIT);
    let on = code.jump_if(Condition::Below);
    leave(code);
    let here = code.len();
    code.patch(on, here);
}
