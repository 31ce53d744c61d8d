//! The calls of one thread: reads its records, and lets its shadow stack follow them.

use super::batch::Batch;
use super::events::Event;
use super::jumps::{JumpCounts, JumpRecords};
use super::keys::{EdgeTable, Keys, ALWAYS};
use super::stack::{CalleeKind, Collects, Costs, Known, ShadowStack, NO_STUB};
use event::{Groups, Record, RecordKind, StateLayout};
use instrument::call::{is_word, stub_number, CallEvent, CallReader, StubTargets, Ticks, Transfer};
use instrument::CallRecords;
use simulate::{IntervalMisses, References};

/// How many instructions complex references count in addition to their executions.
pub type MoreInstructions = fn(&References) -> u64;

/// The lower byte of the word of a return.
const RETURN: u32 = (RecordKind::Tool as u32) << 4 | 3;
/// The lower byte of the word with loads and stores.
const REFERENCES: u32 = (RecordKind::Tool as u32) << 4 | 4;
/// The lower byte of the word of a direct call.
const DIRECT_CALL: u32 = (RecordKind::Tool as u32) << 4 | 6;

/// Most stubs that jump to each other.
const STUBS_MAX: usize = 4;

/// How many events have running sums.
const SUMS: usize = 3;

/// How complex references count.
#[derive(Clone, Copy)]
pub(super) struct Counting {
    pub(super) more: MoreInstructions,
    pub(super) layout: StateLayout,
}

/// Where a transfer comes from: passed on in registers, which an event would not be.
#[derive(Clone, Copy)]
struct From {
    block: u32,
    /// The low half of the stack pointer before it.
    pointer: u32,
}

/// The calls of one thread.
pub(super) struct ThreadCalls<const N: usize> {
    reader: CallReader,
    groups: Groups,
    /// The running sums when they were read last.
    last: Ticks,
    /// What the thread has counted.
    now: Costs<N>,
    /// What it has counted beside its running sums: instructions, loads and stores.
    beside: [u64; SUMS],
    collects: Collects,
    /// Whether calls are not followed.
    pub(super) rests: bool,
    pub(super) stack: ShadowStack<N>,
    /// Jumps that are no calls.
    pub(super) jumps: JumpCounts,
    /// Where stubs jump whose jumps are not recorded.
    stubs: StubTargets,
    /// The number of the state of `stubs`, which no other state of any thread has.
    bound: u64,
}

impl<const N: usize> ThreadCalls<N> {
    /// A thread whose stubs have jumped nowhere. `bound` is the number of this state.
    pub(super) fn new((records, jumps): (CallRecords, JumpRecords), bound: u64) -> ThreadCalls<N> {
        ThreadCalls {
            reader: CallReader::new(records),
            groups: Groups::default(),
            last: Ticks::default(),
            now: [0; N],
            beside: [0; SUMS],
            collects: Collects::No,
            rests: false,
            stack: ShadowStack::new(),
            jumps: JumpCounts::new(jumps),
            stubs: StubTargets::default(),
            bound,
        }
    }

    /// Notes where stubs jump while calls are not followed.
    pub(super) fn pass(&mut self, records: &[Record], table: &mut EdgeTable) {
        records.iter().for_each(|record| self.stubs.follow(record));
        self.bound = table.next_binding();
    }

    /// What the thread has counted.
    pub(super) fn now(&self) -> Costs<N> {
        self.now
    }

    /// Sets whether the thread counts.
    pub(super) fn collect(&mut self, collects: Collects) {
        self.collects = collects;
        let sums = self.counted_sums(self.last);
        for (beside, (now, sum)) in self.beside.iter_mut().zip(self.now.iter().zip(sums)) {
            *beside = now.wrapping_sub(sum);
        }
    }

    /// The running sums, as far as they are counted.
    #[inline(always)]
    fn counted_sums(&self, ticks: Ticks) -> [u64; SUMS] {
        // What nobody collects is masked, which is cheaper than a branch.
        let mask = u64::from(self.collects == Collects::Yes).wrapping_neg();
        [ticks.instructions & mask, ticks.loads & mask, ticks.stores & mask]
    }

    #[inline(always)]
    fn increase(&mut self, event: Event, more: u64) {
        let index = event as usize;
        for sum in [self.now.get_mut(index), self.beside.get_mut(index)].into_iter().flatten() {
            *sum = sum.wrapping_add(more);
        }
    }

    /// Counts what happened until the running sums were these; returns what the thread has counted.
    /// It does not wait for what was counted before: it adds to no former result.
    #[inline(always)]
    pub(super) fn advance(&mut self, ticks: Ticks) -> Costs<N> {
        let (sums, before) = (self.counted_sums(ticks), self.now);
        let now = std::array::from_fn(|event| match sums.get(event) {
            Some(sum) => self.beside[event].wrapping_add(*sum),
            None => before[event],
        });
        self.now.iter_mut().zip(&now).take(SUMS).for_each(|(own, now)| *own = *now);
        self.last = ticks;
        now
    }

    /// Divides a batch into plain records and steps.
    pub(super) fn divide(&mut self, records: &[Record], counting: &Counting, batch: &mut Batch) {
        batch.divide(records, |record| self.complex(record, counting));
    }

    /// Follows the steps of a batch, of which misses belong to the calls that are open until then.
    pub(super) fn follow_steps(&mut self, records: &[Record], batch: &Batch, keys: &mut Keys<'_>) {
        let misses = batch.misses();
        let steps = batch.steps();
        for (step, misses) in steps.iter().zip(misses) {
            self.missed(misses);
            match batch.more_of(step) {
                None => _ = self.follow_words(&records[step.at as usize..], keys),
                Some(more) => self.more(more),
            }
        }
        misses[steps.len()..].iter().for_each(|misses| self.missed(misses));
    }

    /// Follows a batch in one pass, where instructions are the only event. It copies plain
    /// records.
    pub(super) fn follow_records(
        &mut self,
        records: &[Record],
        counting: &Counting,
        batch: &mut Batch,
        keys: &mut Keys<'_>,
    ) {
        batch.begin(records.len());
        let mut at = 0;
        loop {
            at += self.follow_words(&records[at..], keys);
            let Some(record) = records.get(at) else { break };
            batch.push(record);
            // Most complex references are masked ones, which count no instruction in addition, and
            // their loads and stores are no events here.
            if self.groups.masked(&records[at..]).is_some() {
                batch.push(&records[at + 1]);
                at += 2;
            } else {
                if let Some(more) = self.complex(record, counting) {
                    self.more(more);
                }
                at += 1;
            }
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
        loop {
            at += self.follow_frequent(&words[at..], keys);
            let Some((event, count)) = self.read(&words[at..]) else { break };
            at += count;
            self.advance(event.ticks);
            self.follow(&event, keys);
        }
        match at {
            0 => self.follow_word(&words[0], keys),
            _ => at,
        }
    }

    /// Follows the direct calls and returns with which `words` begin; returns the number of words.
    /// Most transfers are of these kinds, and it takes half the time to follow them without an
    /// event between. A call that returns before any other transfer needs no frame.
    #[inline(always)]
    fn follow_frequent(&mut self, words: &[Record], keys: &mut Keys<'_>) -> usize {
        let mut at = 0;
        while let Some((word, ticks)) = self.frequent(&words[at..]) {
            let now = self.advance(ticks);
            at += Self::WORDS;
            if word.what & 0xff == RETURN {
                self.stack.give_back(word.extra, &now);
                continue;
            }
            let (block, pointer) = (word.what >> 8, word.extra);
            let Some(called) = keys.called(block, self.bound) else {
                self.direct_call(block, pointer, keys);
                continue;
            };
            let next = self.frequent(&words[at..]);
            let own = |word: &Record| word.what & 0xff == RETURN && word.extra == pointer.wrapping_sub(8);
            let end = next.filter(|(word, _)| own(word));
            if let Some((_, ticks)) = end.filter(|_| self.stack.has_room_for(called.1)) {
                self.stack.abandon(pointer, &now);
                let then = self.advance(ticks);
                self.stack.call_and_return(called.1, (&now, &then), self.collects);
                at += Self::WORDS;
            } else {
                self.stack.call_through(pointer, called, &now, self.collects);
            }
        }
        at
    }

    /// How many words a direct call or a return has: a second one if references are counted.
    const WORDS: usize = if N > 1 { 2 } else { 1 };

    /// The direct call or return with which `words` begin, with its sums, if all of it is there.
    #[inline(always)]
    fn frequent<'w>(&mut self, words: &'w [Record]) -> Option<(&'w Record, Ticks)> {
        let word = words.first().filter(|word| matches!(word.what & 0xff, RETURN | DIRECT_CALL))?;
        if N == 1 {
            return Some((word, Ticks { instructions: word.address, ..Ticks::default() }));
        }
        let sums = words.get(1).filter(|sums| sums.what & 0xff == REFERENCES)?;
        Some((word, self.reader.read_sums(word, sums)))
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

    /// Follows a direct call by a block, and notes what it opens.
    #[inline(never)]
    fn direct_call(&mut self, block: u32, pointer: u32, keys: &mut Keys<'_>) {
        let Some(target) = keys.direct_target(block) else { return };
        let known = keys.find(block, target);
        if let Some(opened) = self.opened(known, target, keys) {
            keys.note_called(block, opened, if known.is_stub() { self.bound } else { ALWAYS });
        }
        self.call(pointer, known, target, keys);
    }

    /// What a call of an address by its edge opens: of a stub whose jump has led somewhere before,
    /// the edge to the function behind.
    #[inline(always)]
    fn opened(&self, known: Known, address: u64, keys: &Keys<'_>) -> Option<(u32, Known)> {
        if !known.is_stub() {
            return Some((NO_STUB, known));
        }
        let target = self.stubs.get(stub_number(address))?;
        let behind = keys.behind_stub(known.edge, target)?;
        (!behind.is_stub()).then_some((known.edge, behind))
    }

    /// Follows a call of an address by its edge.
    #[inline(always)]
    fn call(&mut self, pointer: u32, known: Known, target: u64, keys: &mut Keys<'_>) {
        match self.opened(known, target, keys) {
            Some(opened) => self.stack.call_through(pointer, opened, &self.now, self.collects),
            None => {
                self.stack.call(pointer, known, &self.now, self.collects);
                self.go_through(known.edge, keys);
            }
        }
    }

    /// Replaces the innermost frame, which the edge `first` to a stub has, by that of the function
    /// to which the stub is known to jump.
    #[inline(never)]
    fn go_through(&mut self, first: u32, keys: &mut Keys<'_>) {
        let mut stub = first;
        for _ in 0..STUBS_MAX {
            let Some(target) = self.stubs.get(keys.stub_of(stub)) else { return };
            // A stub that has not been bound jumps to its own second half.
            if keys.is_within(stub, target) {
                return;
            }
            let behind = keys.behind_stub(stub, target).unwrap_or_else(|| {
                let known = keys.find(keys.block_of(stub), target);
                keys.note_behind_stub(stub, target, known);
                known
            });
            self.stack.replace((first, behind));
            if !behind.is_stub() {
                return;
            }
            stub = behind.edge;
        }
    }

    /// Follows the record of a stub's jump, which says that the stub leads elsewhere than before,
    /// or that the transfer to it has no record.
    #[cold]
    #[inline(never)]
    fn stub_jump(&mut self, from: From, (number, target): (u32, u64), keys: &mut Keys<'_>) {
        self.stack.abandon(from.pointer, &self.now);
        if self.leads_where_it_did((number, target), keys) {
            return;
        }
        let passed = self.stack.innermost_stub().and_then(|first| self.passed(first, number, keys));
        self.bind((number, target), keys.table);
        match passed {
            Some(stub) => {
                // The innermost frame may be that of a function to which the stub led before. Stubs
                // before this one have jumped already.
                self.stack.replace((NO_STUB, keys.known(stub)));
                self.go_through(stub, keys);
            }
            None => self.jump(from, target, keys),
        }
    }

    /// Whether the innermost frame is the one that the stub's jump to this target would give it.
    fn leads_where_it_did(&self, (number, target): (u32, u64), keys: &Keys<'_>) -> bool {
        let Some((stub, known)) = self.stack.innermost_behind() else { return false };
        self.stubs.get(number) == Some(target)
            && keys.stub_of(stub) == number
            && !known.is_stub()
            && keys.behind_stub(stub, target) == Some(known)
    }

    /// Notes where the stub with this number jumps from now on. Calls through stubs are then found
    /// anew.
    fn bind(&mut self, (number, target): (u32, u64), table: &mut EdgeTable) {
        if self.stubs.get(number) != Some(target) {
            self.stubs.set(number, target);
            self.bound = table.next_binding();
        }
    }

    /// The edge to the stub with this number, if a call of the stub behind the edge `first` is
    /// known to lead through it.
    fn passed(&self, first: u32, number: u32, keys: &Keys<'_>) -> Option<u32> {
        let behind = |stub: &u32| {
            let target = self.stubs.get(keys.stub_of(*stub))?;
            let behind = keys.behind_stub(*stub, target)?;
            behind.is_stub().then_some(behind.edge)
        };
        let mut stubs = std::iter::successors(Some(first), behind).take(STUBS_MAX);
        stubs.find(|&stub| keys.stub_of(stub) == number)
    }

    /// Follows one word, with which an event may end; returns the number of words.
    #[cold]
    #[inline(never)]
    fn follow_word(&mut self, word: &Record, keys: &mut Keys<'_>) -> usize {
        if let Some(event) = self.reader.read(word) {
            self.advance(event.ticks);
            match event.transfer {
                _ if !self.rests => self.follow(&event, keys),
                Transfer::StubJump { stub, target } => self.bind((stub, target), keys.table),
                _ => {}
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
        let any = misses.as_flattened().iter().fold(0, |any, more| any | more);
        if any == 0 || self.collects == Collects::No {
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
        let from = From { block: event.block, pointer: event.stack };
        match event.transfer {
            Transfer::Return => self.stack.give_back(from.pointer, &self.now),
            Transfer::Call(target) => {
                let known = keys.find(from.block, target);
                self.call(from.pointer, known, target, keys);
            }
            Transfer::DirectCall => self.direct_call(from.block, from.pointer, keys),
            Transfer::Jump(target) => self.jump(from, target, keys),
            Transfer::StubJump { stub, target } => self.stub_jump(from, (stub, target), keys),
            Transfer::DirectJump => {
                let Some(target) = keys.direct_target(from.block) else { return };
                self.jump(from, target, keys);
            }
        }
    }

    #[inline(always)]
    fn jump(&mut self, from: From, target: u64, keys: &mut Keys<'_>) {
        // A long jump has set the stack pointer before it.
        self.stack.abandon(from.pointer, &self.now);
        match self.stack.innermost() {
            Some(open) => self.jump_from(open, from.block, target, keys),
            None => self.begin(from, target, keys),
        }
    }

    /// A jump while the innermost open call is `from`.
    #[inline(always)]
    fn jump_from(&mut self, from: Known, block: u32, target: u64, keys: &mut Keys<'_>) {
        // Most indirect jumps are those of a `switch`.
        if !keys.is_within(from.edge, target) {
            return self.leave(from, block, target, keys);
        }
        self.stays(block, target);
        if from.is_stub() && keys.stub_of(from.edge) == stub_number(target) {
            // The second half of a stub may lead to its first.
            self.go_through(from.edge, keys);
        }
    }

    /// A jump to another function where no call is open: a call that nothing returns from.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, from: From, target: u64, keys: &mut Keys<'_>) {
        let known = keys.find(from.block, target);
        if keys.begins_function(known.edge) {
            // The slot is the one to which the stack pointer points.
            self.call(from.pointer.wrapping_add(8), known, target, keys);
        } else {
            self.stays(from.block, target);
        }
    }

    /// Counts a jump that may stay within its function.
    #[inline(always)]
    fn stays(&mut self, block: u32, target: u64) {
        if self.collects == Collects::Yes {
            self.jumps.count(block, target);
        }
    }

    /// A jump out of the addresses of the innermost function.
    #[inline(never)]
    fn leave(&mut self, from: Known, block: u32, target: u64, keys: &mut Keys<'_>) {
        self.leave_for(from, block, target, keys);
        if let Some(stub) = self.stack.innermost().filter(|top| top.is_stub()) {
            self.go_through(stub.edge, keys);
        }
    }

    fn leave_for(&mut self, from: Known, block: u32, target: u64, keys: &mut Keys<'_>) {
        let ThreadCalls { stack, now, collects, .. } = self;
        let through = from.edge;
        if let Some(known) = keys.behind_stub(from.edge, target) {
            return stack.replace((through, known));
        }
        let known = keys.find(block, target);
        if known.function() == from.function() {
            return self.stays(block, target);
        }
        // The function behind a stub or the resolver is called where that was.
        let in_place = |keys: &mut Keys<'_>| -> Known { keys.find(keys.block_of(from.edge), target) };
        match from.kind() {
            CalleeKind::Function => stack.jump(known, now, *collects),
            CalleeKind::Stub => {
                let known = in_place(keys);
                keys.note_behind_stub(from.edge, target, known);
                stack.replace((through, known));
            }
            CalleeKind::Resolver => stack.succeed(in_place(keys), now, *collects),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_words_are_whole_events() {
        for (what, transfer) in [(RETURN, Transfer::Return), (DIRECT_CALL, Transfer::DirectCall)] {
            let word = Record { address: 9, what: 7 << 8 | what, extra: 5 };
            let event = CallReader::new(CallRecords::Instructions).read(&word);
            let ticks = Ticks { instructions: 9, ..Ticks::default() };
            assert_eq!(event, Some(CallEvent { transfer, block: 7, stack: 5, ticks }));
        }
    }
}
