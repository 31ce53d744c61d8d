//! The inline instruction cache: which code lines (and pages) are in the first level, and when each
//! was used last.
//!
//! # The problem
//!
//! Every block uses instruction lines. In a program with much code, half of all records would be
//! such uses. Nearly all of them are hits, which a simulator need not see.
//!
//! # The idea
//!
//! Code lines are known when code is translated, so each one gets a number, and a word with the
//! time of its last use, which is 0 if the line is not in the cache. A hit advances a clock and
//! stores the time. A miss replaces the least recently used way of its set, and only a miss is
//! recorded. True LRU needs nothing but the times. Only instructions use these caches, so the
//! target can simulate them without the host.
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
//! - A line's time is 0 if and only if no way of its set holds its number.
//! - The time of a set's last line may be out of date: no other line of the set was used since, so
//!   the line is the most recently used one in any case.
//! - Number 0 is no line and its time stays 0. Empty ways hold it, so they are replaced first.
//!
//! **Leaves out** data: its lines are not known at translation, and in measurements a table of them
//! cost the program's own cache more than it saved. Source: our own; `event::FetchFilter` defines
//! the records.

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
    /// Emits the use of an instruction line or page by a block.
    pub(super) fn use_line(&mut self, line: &LineUse, block: u32, plan: &BlockPlan) {
        let &LineUse { cache, address, number } = line;
        let last = cache.last(cache.set(address));
        self.free_flags();
        // Hot: if the line is the last one of its set, its time need not change.
        let checked = match plan.fetch {
            // In tuned code whose check mostly fails, each use is noted without a check.
            RecordMode::Branchless | RecordMode::Always => {
                let clock = self.scratch(0);
                self.buffer.hot.store_imm32(last, number);
                let miss = tick(&mut self.buffer.hot, clock, number);
                self.buffer.link(Section::Hot, miss, Label::Cold(self.buffer.cold.len()));
                self.buffer.hot.store(clock, time(number));
                None
            }
            RecordMode::Checked => {
                self.buffer.hot.compare_imm32(last, number);
                let at = self.buffer.hot.jump_if(Condition::NotEqual);
                self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
                // Code that has run often handles a hit itself; other code is as short as possible.
                (self.tier != Tier::Fresh).then(|| self.use_cold(last, number))
            }
        };
        // Cold: the shared routine handles a miss, and in short code a hit too.
        let back = Label::Hot(self.buffer.hot.len());
        if let Some(Behind { absent, back: jump, .. }) = checked {
            self.buffer.link(Section::Cold, jump, back);
            let here = self.buffer.cold.len();
            self.buffer.cold.patch(absent, here);
        }
        if checked.is_some_and(|behind| behind.saved) {
            self.buffer.cold.load(reg::RAX, context::TEMP);
        }
        // The routine is the same for all lines of caches with this number of ways and record code.
        let routine = Routine::UseLine(cache.ways, cache.code());
        self.call_use((last, number), [block, plan.failures], routine);
        let at = self.buffer.cold.jump();
        self.buffer.link(Section::Cold, at, back);
    }
}

/// Places in the cold code of a check that failed.
#[derive(Clone, Copy)]
struct Behind {
    /// The jump that is taken if the line is not in the cache.
    absent: usize,
    /// The jump back to hot code.
    back: usize,
    /// Whether the context holds rax.
    saved: bool,
}

impl Emitter {
    /// Emits cold code that makes the line the last one of its set, and notes its time if the line
    /// is in the cache. Flags are free.
    fn use_cold(&mut self, last: u32, number: u32) -> Behind {
        // Any free register can hold the clock. If there is none, rax is saved in the context.
        let clock =
            pick((self.dead | self.spilled) & !FLAGS_BIT & !self.held.map_or(0, |position| 1 << position));
        let (clock, saved) = (clock.unwrap_or(reg::RAX), clock.is_none());
        self.buffer.cold.store_imm32(last, number);
        if saved {
            self.buffer.cold.store(clock, context::TEMP);
        }
        // A line in the cache has a time other than 0, and gets the clock's next time.
        let absent = tick(&mut self.buffer.cold, clock, number);
        self.buffer.cold.store(clock, time(number));
        if saved {
            self.buffer.cold.load(clock, context::TEMP);
        }
        let back = self.buffer.cold.jump();
        Behind { absent, back, saved }
    }

    /// Emits cold code that calls the shared routine for a use. rax passes the number. The routine
    /// seldom needs the two `words`, so they stand behind the call as immediates of instructions
    /// that do nothing else: reading code as data is slow.
    fn call_use(&mut self, (last, number): (u32, u32), words: [u32; 2], routine: Routine) {
        self.lend_position();
        self.buffer.cold.store_imm32(last, number);
        // rax passes the number; the routine restores rax from its slot.
        self.buffer.cold.store(reg::RAX, saved_slot(0));
        self.buffer.cold.mov_imm(reg::RAX, number.into());
        self.buffer.cold.store(reg::RSP, context::PROGRAM_STACK);
        self.buffer.cold.load(reg::RSP, context::OWN_STACK);
        let at = self.buffer.cold.call();
        self.buffer.want_routine(Section::Cold, at, routine);
        // `test eax, word` changes only flags, which are free, so its immediate can hold data.
        for word in words {
            self.buffer.cold.test_eax(word);
        }
        self.buffer.cold.pop_stack();
        self.take_position_back();
    }
}

/// Context offset of the time of a line's last use.
fn time(number: u32) -> u32 {
    context::FETCH_TIMES + 8 * number
}

/// Emits code that advances the clock and loads it into the register `clock`. Returns the
/// displacement of a jump that is taken if the line is not in the cache.
fn tick(code: &mut Assembler, clock: u8, number: u32) -> usize {
    code.load(clock, context::FETCH_CLOCK);
    code.advance(clock, 1);
    code.compare_zero(time(number));
    code.store(clock, context::FETCH_CLOCK);
    code.jump_if(Condition::Equal)
}

const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;

/// Context offset of the slot for a saved register of the routine.
fn saved_slot(index: usize) -> u32 {
    context::FETCH_SAVED + 8 * index as u32
}

/// Emits the shared routine for a use of the line whose number is in eax. The caller has already
/// made the line the last one of its set. The routine counts the use and stores the time. A line
/// that was not in the cache replaces another one, and is recorded with `low` as the low byte of
/// `what`. The routine restores rax from its slot and preserves all other registers; flags are
/// free.
pub(super) fn routine(code: &mut Assembler, ways: u32, low: u8) {
    let saved = [reg::RAX, reg::RDX];
    let more = [reg::RCX, RSI, RDI, R8, R9];
    // The clock advances by one for each use.
    code.store(reg::RDX, saved_slot(1));
    code.load(reg::RDX, context::FETCH_CLOCK);
    code.advance(reg::RDX, 1);
    code.store(reg::RDX, context::FETCH_CLOCK);
    // One use in [`COUNTED_EVERY`] increments the block's counter, whose number stands behind the
    // call.
    code.code().test_immediate(Size::Byte, Gpr::RDX, i32::from(COUNTED_EVERY) - 1);
    let most = code.jump_if(Condition::NotEqual);
    load_behind_call(code, Gpr::RDX, COUNTER_BEHIND_CALL);
    let counter = in_context_table(reg::RDX, context::COUNTERS);
    code.code().alu_immediate(Alu::Add, Size::Qword, counter, 1);
    code.load(reg::RDX, context::FETCH_CLOCK);
    let here = code.len();
    code.patch(most, here);
    // If the time is not 0, the line is in the cache: store the new time.
    let time = in_context_table(reg::RAX, context::FETCH_TIMES);
    code.code().alu_immediate(Alu::Cmp, Size::Qword, time, 0);
    let absent = code.jump_if(Condition::Equal);
    code.store_table(reg::RDX, reg::RAX, context::FETCH_TIMES);
    finish(code, &saved);
    let here = code.len();
    code.patch(absent, here);
    // A miss: compose the word `what` of its record from the block and the kind.
    more.iter().zip(2..).for_each(|(&register, index)| code.store(register, saved_slot(index)));
    load_behind_call(code, Gpr::RCX, BLOCK_BEHIND_CALL);
    code.code().shift(Shift::Left, Size::Dword, Gpr::RCX, 8);
    code.code().alu_immediate(Alu::Or, Size::Dword, Gpr::RCX, low.into());
    code.code().mov(Size::Dword, in_context(context::FETCH_WHAT), Gpr::RCX);
    // The first context holds the address and the row of each line, 16 bytes for each number.
    code.mov_imm(R8, CONTEXTS + u64::from(context::FETCH_PLACES));
    let twice = Memory::at(Gpr::RAX).index(Gpr::RAX, Scale::One);
    code.code().lea(Size::Qword, Gpr::RDX, twice);
    code.code().lea(Size::Qword, Gpr::R8, Memory::at(Gpr::R8).index(Gpr::RDX, Scale::Eight));
    enter(code, ways);
    record(code);
    more.iter().zip(2..).for_each(|(&register, index)| code.load(register, saved_slot(index)));
    finish(code, &saved);
}

/// Distance from the return address of [`routine`] to the immediate that holds the block's number.
const BLOCK_BEHIND_CALL: i32 = 1;
/// Distance from the return address of [`routine`] to the immediate that holds the counter's
/// number.
const COUNTER_BEHIND_CALL: i32 = 6;

/// Loads four bytes of the code behind the call of the routine into `to`.
fn load_behind_call(code: &mut Assembler, to: Gpr, distance: i32) {
    // The return address is on top of the stack.
    code.code().mov_from(Size::Qword, to, Memory::at(Gpr::RSP));
    code.code().mov_from(Size::Dword, to, Memory::at(to).plus(distance));
}

/// `gs:[rdx + number*4 - 4]`: a way of the row at rdx; the first way has number 1.
fn way(number: Gpr) -> Memory {
    Memory::at(Gpr::RDX).index(number, Scale::Four).plus(-4).gs()
}

fn finish(code: &mut Assembler, saved: &[u8]) {
    saved.iter().enumerate().for_each(|(index, &register)| code.load(register, saved_slot(index)));
    code.code().ret();
}

/// Emits the replacement of the least recently used line of a set. The new line's number is in eax,
/// and r8 addresses its entry in the table of places. The line's address is in r9 afterwards. An
/// empty way holds number 0, whose time is always 0, so it is replaced first.
fn enter(code: &mut Assembler, ways: u32) {
    code.code().mov_from(Size::Qword, Gpr::R9, Memory::at(Gpr::R8));
    // rdx becomes the context offset of the set's row.
    code.code().mov_from(Size::Dword, Gpr::RDX, Memory::at(Gpr::R8).plus(8));
    // Find the way with the least time, from the last way to the first: rsi holds that time, rdi
    // the way's number.
    code.mov_imm(RSI, u64::MAX);
    code.mov_imm(reg::RCX, ways.into());
    let again = code.len();
    code.code().mov_from(Size::Dword, Gpr::R8, way(Gpr::RCX));
    code.load_table(R8, R8, context::FETCH_TIMES);
    code.registers(Alu::Cmp, R8, RSI);
    code.code().mov_if(Condition::Below, Size::Qword, Gpr::RSI, Gpr::R8);
    code.code().mov_if(Condition::Below, Size::Dword, Gpr::RDI, Gpr::RCX);
    code.code().decrement(Size::Dword, Gpr::RCX);
    let at = code.jump_if(Condition::NotEqual);
    code.patch(at, again);
    // The replaced line's time becomes 0, because it has left the cache.
    code.code().mov_from(Size::Dword, Gpr::R8, way(Gpr::RDI));
    code.clear_table(R8, context::FETCH_TIMES);
    code.code().mov(Size::Dword, way(Gpr::RDI), Gpr::RAX);
    code.load(reg::RCX, context::FETCH_CLOCK);
    code.store_table(reg::RCX, reg::RAX, context::FETCH_TIMES);
}

/// Emits the record of the line whose address is in r9.
fn record(code: &mut Assembler) {
    // The code before the call has written the ring's position to memory.
    code.load(reg::RDX, context::RING_POSITION);
    code.store_at(R9, reg::RDX, 0);
    code.load32(reg::RCX, context::FETCH_WHAT);
    code.store32_at(reg::RCX, reg::RDX, 8);
    code.advance(reg::RDX, 16);
    code.store(reg::RDX, context::RING_POSITION);
    code.compare(reg::RDX, context::RING_LIMIT);
    let on = code.jump_if(Condition::Below);
    leave(code);
    let here = code.len();
    code.patch(on, here);
}
