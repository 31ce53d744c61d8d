//! Requests of instrumentation code: counters and events.
//!
//! **Counters** cost nothing while the program runs. The engine counts the exits of superblocks in
//! any case, and the executions of blocks, instructions and branches follow from these counts by
//! addition. **Events** cost one record each. Requests are checked when they are made; the first
//! one that cannot be fulfilled ends the run with a sentence that says why. **Leaves out** events
//! behind control transfers, because generated code behind a transfer never runs: request an event
//! at the start of the target block instead.

use super::view::{InstructionView, Register, Transfer};
use crate::code::event_request::{EventRequest, EventRequests, Source, When};
use crate::plan::references;
use std::collections::HashMap;

/// The name of a counter: two numbers with a meaning that the tool chooses. Requests with the same
/// name add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter {
    /// What is counted, for example 0 for "taken" and 1 for "not taken".
    pub what: u32,
    /// The object whose occurrences are counted, for example the address of a branch or an opcode.
    pub of: u64,
}

/// The value that an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The linear address of the instruction's listed reference with this index, as the instruction
    /// forms it.
    Address(usize),
    /// The value of a general register.
    Register(Register),
    /// This number.
    Constant(u64),
    /// The number of instructions that the thread has executed since its beginning or exec. The
    /// tool must ask for running sums: [`Tool::sums`](crate::tool::Tool::sums).
    Instructions,
}

/// The most events before, and the most after, one instruction. Generated code checks once for all
/// of them that the ring has room, and the slack at the end of a segment must hold them.
pub(crate) const EVENTS_MAX: usize = 64;
/// The most addresses that are computed before an instruction and recorded after it.
const STASHED_MAX: usize = 16;

/// What a counter adds up in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The number of times that the block was entered.
    Executions,
    /// The number of retired instructions of the block.
    Instructions,
    /// The number of times that the instruction with this index retired.
    Instruction(u8),
    /// The number of times that the conditional branch at the block's end was taken.
    Taken,
    /// The number of times that the conditional branch at the block's end was not taken.
    NotTaken,
}

/// Collects the requests of instrumentation code for one block.
#[derive(Default)]
pub struct Requests {
    /// Number of instructions of the block.
    instructions: usize,
    /// How the last instruction transfers control.
    last: Option<Transfer>,
    /// Address of the block, for messages.
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

    /// Counts the retired instructions of the block.
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

    /// Requests an event each time that control reaches the block. The event carries `value` and
    /// `tag`.
    pub fn at_start(&mut self, value: Value, tag: u32) {
        let source = match value {
            Value::Address(_) => {
                let block = self.block;
                return self.refuse(format!(
                    "the start of the block at {block:#x} is no instruction with an address"
                ));
            }
            Value::Register(register) => Source::Register(register as u8),
            Value::Constant(value) => Source::Constant(value),
            Value::Instructions => Source::Instructions,
        };
        self.events.push(EventRequest { index: 0, when: When::Before, source, tag, number: 0 });
    }

    /// Requests an event each time before `instruction` executes, even if it then faults. The event
    /// carries `value` and `tag`.
    pub fn before(&mut self, instruction: &InstructionView<'_>, value: Value, tag: u32) {
        self.event(instruction, When::Before, value, tag);
    }

    /// Requests an event each time that `instruction` has retired. It carries `tag` and `value`: of
    /// a register the value after the instruction, of a reference the address that it used.
    pub fn after(&mut self, instruction: &InstructionView<'_>, value: Value, tag: u32) {
        if !matches!(instruction.transfer(), Transfer::None) {
            let why = format!(
                "{instruction:?} is a control transfer: nothing stands after it; ask at the start of blocks"
            );
            return self.refuse(why);
        }
        self.event(instruction, When::After, value, tag);
    }

    /// Adds an event, if its value can be recorded.
    fn event(&mut self, instruction: &InstructionView<'_>, when: When, value: Value, tag: u32) {
        if !self.own(instruction) {
            return;
        }
        let source = match value {
            Value::Register(register) => Source::Register(register as u8),
            Value::Constant(value) => Source::Constant(value),
            Value::Instructions => Source::Instructions,
            Value::Address(nth) => {
                let place = instruction.template(nth).map(|template| template.form);
                match place.and_then(|form| references::address(&instruction.decoded.instruction, form)) {
                    Some(address) => Source::Address(address),
                    None => {
                        return self
                            .refuse(format!("{instruction:?} has no reference number {nth} with an address"))
                    }
                }
            }
        };
        self.events.push(EventRequest { index: instruction.index, when, source, tag, number: 0 });
    }

    /// Whether `instruction` belongs to the block; refuses the request otherwise.
    fn own(&mut self, instruction: &InstructionView<'_>) -> bool {
        let own = instruction.index < self.instructions;
        if !own {
            self.refuse(format!("{instruction:?} does not belong to the block at {:#x}", self.block));
        }
        own
    }

    /// Stores why the run must end, unless an earlier request has already failed.
    fn refuse(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }

    /// Takes the requested events, sorted by instruction, those before it first.
    pub(crate) fn events(&mut self) -> EventRequests {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| (event.index, event.when));
        for group in events.chunk_by_mut(|left, right| (left.index, left.when) == (right.index, right.when)) {
            if group.len() > EVENTS_MAX {
                let block = self.block;
                self.refuse(format!("more than {EVENTS_MAX} events at one place in the block at {block:#x}"));
            }
            // An instruction may change the registers of its own addresses, so addresses that are
            // recorded after it are computed before it and wait in slots of the context.
            let waiting = group.iter_mut().filter(|event| event.when == When::After);
            let mut slot = 0;
            for event in waiting {
                if let Source::Address(address) = event.source {
                    event.source = Source::Stashed(address, slot);
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

/// All counters that were requested in a run. A name has a number; `entries` holds (number of the
/// name, number of the block, what to add up).
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

    /// The values of all counters after the run, sorted by name.
    pub(crate) fn totals(&self, profile: &crate::Profile) -> Vec<(Counter, u64)> {
        let mut cuts: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
        // If a signal or fault ends a block early, fewer instructions retire than its executions
        // imply: `cut` lists the first instruction that did not retire, and the number of times.
        for &(block, first_lost, times) in &profile.cut {
            cuts.entry(block).or_default().push((first_lost, times));
        }
        let mut totals = vec![0u64; self.names.len()];
        for &(number, block, counted) in &self.entries {
            let Some(counts) = profile.blocks.get(block as usize) else { continue };
            let lost = |index: u32| -> u64 {
                cuts.get(&block).map_or(0, |cuts| {
                    cuts.iter().filter(|&&(first, _)| first <= index).map(|&(_, times)| times).sum()
                })
            };
            totals[number as usize] += match counted {
                Counted::Executions => counts.executions,
                Counted::Instructions => (0..counts.count).map(|index| counts.executions - lost(index)).sum(),
                Counted::Instruction(index) => counts.executions - lost(index.into()),
                Counted::Taken => counts.taken,
                Counted::NotTaken => counts.executions - lost(counts.count - 1) - counts.taken,
            };
        }
        let mut named: Vec<_> = self.names.iter().copied().zip(totals).collect();
        named.sort_unstable();
        named
    }
}
