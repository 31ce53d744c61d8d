//! What instrumentation code can ask for, and how it is kept.
//!
//! **Counters** cost nothing while the program runs: the engine counts how a superblock is left
//! anyway, and how often a block ran, an instruction retired or a branch was taken follows by
//! addition afterwards. **Events** cost a record each. Requests are checked when they are made; the
//! first one that cannot be met ends the run with its sentence. **Leaves out** events after control
//! transfers: whatever stood behind one would not run; a block's start does (ask there).

use super::view::{InstructionView, Register, Transfer};
use crate::code::event_request::{EventRequest, EventRequests, Source, When};
use crate::plan::references;
use std::collections::HashMap;

/// A counter's name: what it counts, and of which thing (an address, an opcode, …), as the tool
/// likes. Requests with the same name add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter {
    /// What is counted.
    pub what: u32,
    /// Of which thing.
    pub of: u64,
}

/// What an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The linear address of the instruction's n-th listed reference, as the instruction forms it.
    Address(usize),
    /// A general register.
    Register(Register),
    /// This number.
    Constant(u64),
}

/// Most events before, and most after, one instruction: what a ring's slack holds between two
/// checks, with room to spare.
pub(crate) const EVENTS_MAX: usize = 64;
/// Addresses of one instruction that can wait for its end.
const STASHED_MAX: usize = 16;

/// What a counter of a block adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Times that the block was entered.
    Executions,
    /// Instructions of the block that retired.
    Instructions,
    /// Times that this instruction retired.
    Instruction(u8),
    /// Times that the branch at its end was taken.
    Taken,
    /// Times that it was not.
    NotTaken,
}

/// The requests for one block.
#[derive(Default)]
pub struct Requests {
    /// Instructions of the block, and where the last one leads.
    instructions: usize,
    last: Option<Transfer>,
    block: u64,
    events: Vec<EventRequest>,
    pub(crate) counters: Vec<(Counter, Counted)>,
    pub(crate) fault: Option<String>,
}

impl Requests {
    pub(crate) fn new(block: u64, instructions: usize, last: Option<Transfer>) -> Requests {
        Requests { block, instructions, last, ..Requests::default() }
    }

    /// Counts how often the block is entered.
    pub fn count_block(&mut self, counter: Counter) {
        self.counters.push((counter, Counted::Executions));
    }

    /// Counts every instruction of the block, when it retires.
    pub fn count_all(&mut self, counter: Counter) {
        self.counters.push((counter, Counted::Instructions));
    }

    /// Counts how often `instruction` retires.
    pub fn count(&mut self, instruction: &InstructionView<'_>, counter: Counter) {
        if self.own(instruction) {
            self.counters.push((counter, Counted::Instruction(instruction.index as u8)));
        }
    }

    /// Counts how often the conditional branch at the block's end is taken.
    pub fn count_taken(&mut self, counter: Counter) {
        self.count_branch(counter, Counted::Taken);
    }

    /// Counts how often the conditional branch at the block's end is not taken.
    pub fn count_not_taken(&mut self, counter: Counter) {
        self.count_branch(counter, Counted::NotTaken);
    }

    fn count_branch(&mut self, counter: Counter, counted: Counted) {
        if matches!(self.last, Some(Transfer::Conditional(_))) {
            return self.counters.push((counter, counted));
        }
        let block = self.block;
        self.refuse(format!(
            "the block at {block:#x} does not end with a conditional branch that could be counted"
        ));
    }

    /// An event each time that control reaches the block. `tag` comes back with it.
    pub fn at_start(&mut self, value: Value, tag: u32) {
        let source = match value {
            Value::Address(_) => {
                let block = self.block;
                return self.refuse(format!(
                    "the start of the block at {block:#x} is no instruction with an address"
                ));
            }
            Value::Register(r) => Source::Register(r as u8),
            Value::Constant(value) => Source::Constant(value),
        };
        self.events.push(EventRequest { index: 0, when: When::Before, source, tag, number: 0 });
    }

    /// An event each time that `instruction` is attempted, before it is.
    pub fn before(&mut self, instruction: &InstructionView<'_>, value: Value, tag: u32) {
        self.event(instruction, When::Before, value, tag);
    }

    /// An event each time that `instruction` has retired. Registers are then as it left them;
    /// addresses are those that it used.
    pub fn after(&mut self, instruction: &InstructionView<'_>, value: Value, tag: u32) {
        if !matches!(instruction.transfer(), Transfer::None) {
            let why = format!(
                "{instruction:?} is a control transfer: nothing stands after it; ask at the start of blocks"
            );
            return self.refuse(why);
        }
        self.event(instruction, When::After, value, tag);
    }

    fn event(&mut self, instruction: &InstructionView<'_>, when: When, value: Value, tag: u32) {
        if !self.own(instruction) {
            return;
        }
        let source = match value {
            Value::Register(r) => Source::Register(r as u8),
            Value::Constant(value) => Source::Constant(value),
            Value::Address(n) => {
                let place = instruction.template(n).map(|t| t.form);
                match place.and_then(|p| references::address(&instruction.decoded.i, p)) {
                    Some(address) => Source::Address(address),
                    None => {
                        return self
                            .refuse(format!("{instruction:?} has no reference number {n} with an address"))
                    }
                }
            }
        };
        self.events.push(EventRequest { index: instruction.index, when, source, tag, number: 0 });
    }

    fn own(&mut self, instruction: &InstructionView<'_>) -> bool {
        let own = instruction.index < self.instructions;
        if !own {
            self.refuse(format!("{instruction:?} does not belong to the block at {:#x}", self.block));
        }
        own
    }

    fn refuse(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }

    /// The events in order.
    pub(crate) fn events(&mut self) -> EventRequests {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|a| (a.index, a.when));
        for group in events.chunk_by_mut(|a, b| (a.index, a.when) == (b.index, b.when)) {
            if group.len() > EVENTS_MAX {
                let block = self.block;
                self.refuse(format!("more than {EVENTS_MAX} events at one place in the block at {block:#x}"));
            }
            let waiting = group.iter_mut().filter(|a| a.when == When::After);
            let mut slot = 0;
            for asked in waiting {
                if let Source::Address(address) = asked.source {
                    asked.source = Source::Stashed(address, slot);
                    slot += 1;
                }
            }
            if usize::from(slot) > STASHED_MAX {
                let block = self.block;
                self.refuse(format!(
                    "more than {STASHED_MAX} addresses after one instruction of the block at {block:#x}"
                ));
            }
        }
        EventRequests(events)
    }
}

/// All counters of a run: (name, block, what), names by number.
#[derive(Default)]
pub(crate) struct ToolCounters {
    numbers: HashMap<Counter, u32>,
    names: Vec<Counter>,
    entries: Vec<(u32, u32, Counted)>,
}

impl ToolCounters {
    pub(crate) fn add(&mut self, block: u32, counter: Counter, counted: Counted) {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(counter).or_insert(next);
        if number == next {
            self.names.push(counter);
        }
        self.entries.push((number, block, counted));
    }

    /// What they came to, by name.
    pub(crate) fn totals(&self, profile: &crate::Profile) -> Vec<(Counter, u64)> {
        let mut cuts: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
        for &(block, first_lost, times) in &profile.cut {
            cuts.entry(block).or_default().push((first_lost, times));
        }
        let mut totals = vec![0u64; self.names.len()];
        for &(number, block, counted) in &self.entries {
            let Some(b) = profile.blocks.get(block as usize) else { continue };
            let lost = |k: u32| -> u64 {
                cuts.get(&block)
                    .map_or(0, |c| c.iter().filter(|&&(first, _)| first <= k).map(|&(_, n)| n).sum())
            };
            totals[number as usize] += match counted {
                Counted::Executions => b.executions,
                Counted::Instructions => (0..b.count).map(|k| b.executions - lost(k)).sum(),
                Counted::Instruction(k) => b.executions - lost(k.into()),
                Counted::Taken => b.taken,
                Counted::NotTaken => b.executions - lost(b.count - 1) - b.taken,
            };
        }
        let mut named: Vec<_> = self.names.iter().copied().zip(totals).collect();
        named.sort_unstable();
        named
    }
}
