//! The calls of one thread: reads its records, and lets its shadow stack follow them.

use super::events::Event;
use super::keys::Keys;
use super::stack::{CalleeKind, Collects, Costs, Known, ShadowStack};
use event::{Groups, Record, RecordKind, StateLayout};
use instrument::call::{is_word, CallEvent, CallReader, Ticks, Transfer};
use instrument::CallRecords;
use simulate::{IntervalMisses, MissIntervals, References};

/// What records of a batch mean to calls.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Words of transfers begin at this index of the batch.
    Words(u32),
    /// A complex reference has made this many instructions, loads and stores in addition.
    More([u64; 3]),
}

/// A batch of records that is divided at its transfers; the allocations are reused.
#[derive(Default)]
pub(super) struct Batch {
    /// The records without words of calls.
    pub(super) plain: Vec<Record>,
    /// The intervals of these records: one before each step, and one behind the last.
    pub(super) intervals: MissIntervals,
    steps: Vec<Step>,
}

/// How many instructions complex references count in addition to their executions.
pub type MoreInstructions = fn(&References) -> u64;

/// How complex references count.
#[derive(Clone, Copy)]
pub(super) struct Counting {
    pub(super) more: MoreInstructions,
    pub(super) layout: StateLayout,
}

/// The calls of one thread.
pub(super) struct ThreadCalls<const N: usize> {
    reader: CallReader,
    groups: Groups,
    /// The running sums when they were read last.
    last: Ticks,
    /// What the thread has counted.
    now: Costs<N>,
    pub(super) collects: Collects,
    /// Whether calls are not followed.
    pub(super) rests: bool,
    pub(super) stack: ShadowStack<N>,
}

impl<const N: usize> ThreadCalls<N> {
    pub(super) fn new(records: CallRecords) -> ThreadCalls<N> {
        ThreadCalls {
            reader: CallReader::new(records),
            groups: Groups::default(),
            last: Ticks::default(),
            now: [0; N],
            collects: Collects::No,
            rests: false,
            stack: ShadowStack::new(),
        }
    }

    /// What the thread has counted.
    pub(super) fn now(&self) -> Costs<N> {
        self.now
    }

    #[inline(always)]
    fn increase(&mut self, event: Event, more: u64) {
        if let Some(sum) = self.now.get_mut(event as usize) {
            *sum = sum.wrapping_add(more);
        }
    }

    /// Counts what happened since the running sums were read last.
    #[inline]
    pub(super) fn advance(&mut self, ticks: Ticks) {
        let last = std::mem::replace(&mut self.last, ticks);
        if self.collects == Collects::Yes {
            self.increase(Event::Ir, ticks.instructions.wrapping_sub(last.instructions));
            self.increase(Event::Dr, ticks.loads.wrapping_sub(last.loads));
            self.increase(Event::Dw, ticks.stores.wrapping_sub(last.stores));
        }
    }

    /// Divides a batch into plain records and steps, with an interval of records before each step.
    pub(super) fn divide(&mut self, records: &[Record], counting: &Counting, batch: &mut Batch) {
        let Batch { plain, intervals, steps } = batch;
        plain.clear();
        intervals.clear();
        steps.clear();
        let mut follows_word = false;
        for (record, at) in records.iter().zip(0..) {
            if is_word(record) {
                if !std::mem::replace(&mut follows_word, true) {
                    steps.push(Step::Words(at));
                    intervals.divide();
                }
                continue;
            }
            follows_word = false;
            plain.push(*record);
            intervals.add_record();
            if matches!(record.code().kind(), RecordKind::Complex | RecordKind::Payload) {
                if let Some(more) = self.complex(record, counting) {
                    steps.push(Step::More(more));
                    intervals.divide();
                }
            }
        }
    }

    /// Follows the steps of a batch, of which misses belong to the calls that are open until then.
    pub(super) fn follow_steps(&mut self, records: &[Record], batch: &Batch, keys: &mut Keys<'_>) {
        let mut misses = batch.intervals.misses().iter();
        for step in &batch.steps {
            misses.next().into_iter().for_each(|misses| self.missed(misses));
            match *step {
                Step::More(more) => self.more(more),
                Step::Words(at) => _ = self.follow_words(&records[at as usize..], keys),
            }
        }
        misses.for_each(|misses| self.missed(misses));
    }

    /// Follows a batch in one pass, where nothing is simulated; plain records are copied.
    pub(super) fn follow_records(
        &mut self,
        records: &[Record],
        counting: &Counting,
        plain: &mut Vec<Record>,
        keys: &mut Keys<'_>,
    ) {
        plain.clear();
        let mut at = self.follow_words(records, keys);
        while let Some(record) = records.get(at) {
            plain.push(*record);
            if let Some(more) = self.complex(record, counting) {
                self.more(more);
            }
            at += 1;
            at += self.follow_words(&records[at..], keys);
        }
    }

    /// Follows the words with which `records` begin; returns their number.
    #[inline(always)]
    fn follow_words(&mut self, records: &[Record], keys: &mut Keys<'_>) -> usize {
        let mut at = 0;
        while records.get(at).is_some_and(is_word) {
            let (event, words) = self.read(&records[at..]);
            if let Some(event) = event {
                self.follow(&event, keys);
            }
            at += words;
        }
        at
    }

    /// Reads the event with which `words` begin, or else their first word; returns how many were
    /// read.
    #[inline(always)]
    fn read(&mut self, words: &[Record]) -> (Option<CallEvent>, usize) {
        match self.reader.read_whole(words) {
            Some((event, count)) => (Some(event), count),
            None => (self.reader.read(&words[0]), 1),
        }
    }

    /// What a complex reference adds, which the running sums leave out, if `record` is its last.
    fn complex(&mut self, record: &Record, counting: &Counting) -> Option<[u64; 3]> {
        let event::Step::Whole(_, complex) = self.groups.push(record) else { return None };
        let (loads, stores) = complex.loads_and_stores(&counting.layout);
        let mut counts = References { loads, stores, ..References::default() };
        counts.execute(&complex);
        Some([(counting.more)(&counts), loads, stores])
    }

    fn more(&mut self, more: [u64; 3]) {
        if self.collects == Collects::Yes {
            let events = [Event::Ir, Event::Dr, Event::Dw];
            events.into_iter().zip(more).for_each(|(event, more)| self.increase(event, more));
        }
    }

    fn missed(&mut self, misses: &IntervalMisses) {
        if self.collects == Collects::No {
            return;
        }
        const OF_LEVELS: [[Event; 3]; 2] =
            [[Event::I1mr, Event::D1mr, Event::D1mw], [Event::ILmr, Event::DLmr, Event::DLmw]];
        for (events, misses) in OF_LEVELS.iter().zip(misses) {
            events.iter().zip(misses).for_each(|(event, more)| self.increase(*event, (*more).into()));
        }
    }

    /// Lets the shadow stack follow an event.
    #[inline(always)]
    fn follow(&mut self, event: &CallEvent, keys: &mut Keys<'_>) {
        self.advance(event.ticks);
        if self.rests {
            return;
        }
        match event.transfer {
            Transfer::Return => self.stack.give_back(event.stack, &self.now),
            Transfer::Call(target) => {
                let known = keys.find(event.block, target);
                self.stack.call(event.stack, known, &self.now, self.collects);
            }
            Transfer::Jump(target) => self.jump(event, target, keys),
        }
    }

    #[inline(always)]
    fn jump(&mut self, event: &CallEvent, target: u64, keys: &mut Keys<'_>) {
        // A long jump has set the stack pointer before it.
        self.stack.abandon(event.stack, &self.now);
        // Most indirect jumps are those of a `switch`.
        match self.stack.innermost() {
            Some(from) if !keys.is_within(from.edge, target) => self.leave(from, event.block, target, keys),
            _ => {}
        }
    }

    /// A jump out of the addresses of the innermost function.
    #[inline(never)]
    fn leave(&mut self, from: Known, block: u32, target: u64, keys: &mut Keys<'_>) {
        let ThreadCalls { stack, now, collects, .. } = self;
        let known = keys.find(block, target);
        if known.function == from.function {
            return;
        }
        // The function behind a stub or the resolver is called where that was.
        let in_place = |keys: &mut Keys<'_>| -> Known { keys.find(keys.block_of(from.edge), target) };
        match from.kind {
            CalleeKind::Function => stack.jump(known, now, *collects),
            CalleeKind::Stub => stack.replace(in_place(keys)),
            CalleeKind::Resolver => stack.succeed(in_place(keys), now, *collects),
        }
    }
}
