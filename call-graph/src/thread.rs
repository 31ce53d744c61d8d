//! The calls of one thread: reads its records, and lets its shadow stack follow them.

use super::events::Event;
use super::keys::Keys;
use super::stack::{CalleeKind, Collects, Costs, Known, ShadowStack};
use event::{Groups, Record, RecordKind, StateLayout};
use instrument::call::{is_word, CallEvent, CallReader, Ticks, Transfer};
use instrument::CallRecords;
use simulate::{MissSide, RecordMiss, References};

/// What a record means to calls.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Transfer(CallEvent),
    /// A complex reference has made this many instructions, loads and stores in addition.
    More([u64; 3]),
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

    /// Divides a batch into plain records and steps, each with the number of plain records before
    /// it.
    pub(super) fn divide(
        &mut self,
        records: &[Record],
        counting: &Counting,
        (plain, steps): (&mut Vec<Record>, &mut Vec<(u32, Step)>),
    ) {
        let mut at = 0;
        while let Some(record) = records.get(at) {
            if is_word(record) {
                let (event, words) = self.read(&records[at..]);
                steps.extend(event.map(|event| (plain.len() as u32, Step::Transfer(event))));
                at += words;
                continue;
            }
            at += 1;
            plain.push(*record);
            if matches!(record.code().kind(), RecordKind::Complex | RecordKind::Payload) {
                let more = self.complex(record, counting);
                steps.extend(more.map(|more| (plain.len() as u32, Step::More(more))));
            }
        }
    }

    /// Follows steps, of which misses belong to the calls that are open until then.
    pub(super) fn follow_steps(
        &mut self,
        steps: impl Iterator<Item = (u32, Step)>,
        misses: &[RecordMiss],
        keys: &mut Keys<'_>,
    ) {
        let mut misses = misses.iter().peekable();
        for (behind, step) in steps {
            while let Some(miss) = misses.next_if(|miss| miss.record < behind) {
                self.missed(miss);
            }
            match step {
                Step::More(more) => self.more(more),
                Step::Transfer(event) => self.follow(&event, keys),
            }
        }
        misses.for_each(|miss| self.missed(miss));
    }

    /// Follows a batch in one pass, where nothing is simulated; plain records are copied.
    pub(super) fn follow_records(
        &mut self,
        records: &[Record],
        counting: &Counting,
        plain: &mut Vec<Record>,
        keys: &mut Keys<'_>,
    ) {
        let mut at = 0;
        while let Some(record) = records.get(at) {
            if is_word(record) {
                let (event, words) = self.read(&records[at..]);
                if let Some(event) = event {
                    self.follow(&event, keys);
                }
                at += words;
                continue;
            }
            at += 1;
            plain.push(*record);
            if let Some(more) = self.complex(record, counting) {
                self.more(more);
            }
        }
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

    fn missed(&mut self, miss: &RecordMiss) {
        let event = match (miss.level, miss.side) {
            (0, MissSide::Fetch) => Event::I1mr,
            (0, MissSide::Load) => Event::D1mr,
            (0, MissSide::Store) => Event::D1mw,
            (1, MissSide::Fetch) => Event::ILmr,
            (1, MissSide::Load) => Event::DLmr,
            (1, MissSide::Store) => Event::DLmw,
            _ => return,
        };
        if self.collects == Collects::Yes {
            self.increase(event, 1);
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

    fn jump(&mut self, event: &CallEvent, target: u64, keys: &mut Keys<'_>) {
        let ThreadCalls { stack, now, collects, .. } = self;
        // A long jump has set the stack pointer before it.
        stack.abandon(event.stack, now);
        let Some(from) = stack.innermost() else { return };
        // Most indirect jumps are those of a `switch`.
        if keys.is_within(from.edge, target) {
            return;
        }
        let known = keys.find(event.block, target);
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
