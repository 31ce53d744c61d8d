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
    #[inline(always)]
    pub(super) fn advance(&mut self, ticks: Ticks) {
        // What nobody collects is 0 times what happened, which is cheaper than a branch.
        let collects = u64::from(self.collects == Collects::Yes);
        let more = |now: u64, last: u64| now.wrapping_sub(last).wrapping_mul(collects);
        self.increase(Event::Ir, more(ticks.instructions, self.last.instructions));
        self.last.instructions = ticks.instructions;
        if N > 1 {
            self.increase(Event::Dr, more(ticks.loads, self.last.loads));
            self.increase(Event::Dw, more(ticks.stores, self.last.stores));
            (self.last.loads, self.last.stores) = (ticks.loads, ticks.stores);
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

    /// Follows a batch in one pass, where instructions are the only event. It copies plain
    /// records.
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
            // Most complex references are masked ones, which count no instruction in addition, and
            // their loads and stores are no events here.
            if self.groups.masked(&records[at..]).is_some() {
                plain.extend_from_slice(&records[at..at + 2]);
                at += 2;
            } else {
                plain.push(*record);
                if let Some(more) = self.complex(record, counting) {
                    self.more(more);
                }
                at += 1;
            }
            at += self.follow_words(&records[at..], keys);
        }
    }

    /// Follows the words with which `records` begin; returns their number.
    #[inline(always)]
    fn follow_words(&mut self, records: &[Record], keys: &mut Keys<'_>) -> usize {
        let mut at = 0;
        while records.get(at).is_some_and(is_word) {
            at += match self.rests || self.reader.is_within() {
                true => self.follow_word(&records[at], keys),
                false => self.follow_whole(&records[at..], keys),
            };
        }
        at
    }

    /// Follows whole events with which `words` begin, or else the first word; returns how many
    /// words were read.
    #[inline(always)]
    fn follow_whole(&mut self, words: &[Record], keys: &mut Keys<'_>) -> usize {
        let mut at = 0;
        while let Some((event, count)) = self.read(&words[at..]) {
            at += count;
            self.advance(event.ticks);
            match event.transfer {
                Transfer::DirectCall => at += self.direct_call(&event, &words[at..], keys),
                _ => self.follow(&event, keys),
            }
        }
        match at {
            0 => self.follow_word(&words[0], keys),
            _ => at,
        }
    }

    /// Reads the event with which `words` begin, if all of its words are there.
    #[inline(always)]
    fn read(&mut self, words: &[Record]) -> Option<(CallEvent, usize)> {
        words.first().filter(|word| is_word(word))?;
        match N {
            1 => self.reader.read_whole::<false>(words),
            _ => self.reader.read_whole::<true>(words),
        }
    }

    /// Follows a direct call; `words` are those behind it. Returns how many of them were followed
    /// too.
    #[inline(always)]
    fn direct_call(&mut self, event: &CallEvent, words: &[Record], keys: &mut Keys<'_>) -> usize {
        let Some(known) = keys.direct(event.block) else { return 0 };
        if known.kind == CalleeKind::Stub {
            if let Some((behind, jump, count)) = self.jump_of_stub(event, known, words, keys) {
                self.stack.call(event.stack, behind, &self.now, self.collects);
                self.advance(jump.ticks);
                return count;
            }
        }
        self.stack.call(event.stack, known, &self.now, self.collects);
        0
    }

    /// The jump of the stub that a call has just entered, with the edge that takes the place of the
    /// stub's, if the stub has jumped there before. Opening that edge at once is the same as
    /// opening the stub's and replacing it.
    #[inline(always)]
    fn jump_of_stub(
        &mut self,
        call: &CallEvent,
        stub: Known,
        words: &[Record],
        keys: &Keys<'_>,
    ) -> Option<(Known, CallEvent, usize)> {
        let (jump, count) = self.read(words).filter(|(jump, _)| jump.stack == call.stack.wrapping_sub(8))?;
        let Transfer::Jump(target) = jump.transfer else { return None };
        Some((keys.behind_stub(stub.edge, target)?, jump, count))
    }

    /// Follows one word, with which an event may end; returns the number of words.
    #[cold]
    #[inline(never)]
    fn follow_word(&mut self, word: &Record, keys: &mut Keys<'_>) -> usize {
        if let Some(event) = self.reader.read(word) {
            self.advance(event.ticks);
            if !self.rests {
                self.follow(&event, keys);
            }
        }
        1
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
        // Most intervals are short and have no miss.
        if self.collects == Collects::No || *misses == IntervalMisses::default() {
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
        match event.transfer {
            Transfer::Return => self.stack.give_back(event.stack, &self.now),
            Transfer::Call(target) => {
                let known = keys.find(event.block, target);
                self.stack.call(event.stack, known, &self.now, self.collects);
            }
            Transfer::DirectCall => _ = self.direct_call(event, &[], keys),
            Transfer::Jump(target) => self.jump(event, target, keys),
            Transfer::DirectJump => {
                let Some(target) = keys.direct_target(event.block) else { return };
                self.jump(event, target, keys);
            }
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
        if let Some(known) = keys.behind_stub(from.edge, target) {
            return stack.replace(known);
        }
        let known = keys.find(block, target);
        if known.function == from.function {
            return;
        }
        // The function behind a stub or the resolver is called where that was.
        let in_place = |keys: &mut Keys<'_>| -> Known { keys.find(keys.block_of(from.edge), target) };
        match from.kind {
            CalleeKind::Function => stack.jump(known, now, *collects),
            CalleeKind::Stub => {
                let known = in_place(keys);
                keys.note_behind_stub(from.edge, target, known);
                stack.replace(known);
            }
            CalleeKind::Resolver => stack.succeed(in_place(keys), now, *collects),
        }
    }
}
