//! The order in which references of several threads reach the caches.
//!
//! **The problem.** The engine runs threads one at a time, in turns of thousands of instructions,
//! because each change of turns costs microseconds. On several cores they would run at the same
//! time, and a line that two of them write would move to and fro within a turn.
//!
//! **The idea.** Turns that nothing has held up could as well have run at the same time. So the
//! records of a *round* are kept: turns of different threads, each of which goes on where its
//! thread's last turn ended for its length alone. Then the round is simulated in steps: each thread
//! makes two references, in the order of the turns, until all are through.
//!
//! ```text
//!   the engine:   A A A A A A│B B B B B B│A A A …        a turn ends after N instructions
//!   the caches:   A B A B A B A B A B A B│A …            a round
//! ```
//!
//! Two things keep their order. A thread that has waited, or has just begun, begins a new round: it
//! may depend on all that came before. And instructions that compare or exchange in one step, as
//! locks are taken, stay in the order in which they ran on each address: a thread stops at such an
//! instruction until the turns before have made all of theirs there. So threads that take a lock in
//! turn are in its section in turn. A round has one turn of each core at most
//! ([`crate::placement`]), so a thread whose core has had its turn begins a new round. **Leaves
//! out** flags that are written and read by plain instructions: a thread may read such a flag
//! before the block that writes it is simulated.
//!
//! **Out of order.** Most references are hits of lines that no other turn of the round touches, or
//! that none writes: nobody else can see when they happen. So a turn makes these at once, up to the
//! first reference that is of another kind, and only such references are made in the order of the
//! steps. The numbers are those of a round in which every step has its place, which tests compare.

use crate::placement::Placement;
use event::Record;
use instrument::TurnStart;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Whose records a turn has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) thread: u32,
    pub(crate) core: usize,
    /// The number in the run of the image's first site.
    pub(crate) first_site: u32,
}

/// A turn whose records are kept.
#[derive(Debug)]
pub(crate) struct Turn {
    who: Who,
    records: Vec<Record>,
    /// The first record that was not simulated.
    at: usize,
    /// The step that is to be made next, of which this many references are left.
    step: u64,
    left: usize,
    /// Addresses that it compares or exchanges, and how often it has not yet.
    locks: Vec<(u64, u32)>,
}

/// References that a thread makes in a step: about as many as a basic block has.
pub(crate) const STEP: usize = 2;

/// Simulates records of a thread.
pub(crate) trait Simulates {
    /// The lines of a round are to be found out.
    fn round_begins(&mut self);

    /// Notes the lines that the records of a turn touch, and tells the addresses that it compares or
    /// exchanges. Turns are numbered in their order.
    fn surveys(&mut self, turn: usize, records: &[Record], locks: impl FnMut(u64));

    /// Simulates records of a turn from an index on as long as they are plain references of which
    /// no other turn of the round can see when they are made. Returns how many it has made.
    fn ahead(&mut self, turn: usize, who: Who, records: &[Record], from: usize) -> usize;

    /// Simulates records from an index on, until so many plain references are made. Asks before
    /// each instruction that compares or exchanges at an address whether the thread may; where it
    /// may not, it stops. Returns the index of the first record that was not simulated.
    fn simulate(
        &mut self,
        who: Who,
        records: &[Record],
        from: usize,
        most: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> usize;
}

/// The round that is being collected.
pub(crate) struct Rounds {
    pub(crate) placement: Placement,
    turns: Vec<Turn>,
    /// Buffers of former turns.
    spare: Vec<Vec<Record>>,
}

impl Rounds {
    /// No round yet, of threads that are placed so.
    pub(crate) fn new(placement: Placement) -> Rounds {
        Rounds { placement, turns: Vec::new(), spare: Vec::new() }
    }

    /// The turn of a thread begins.
    pub(crate) fn turn(&mut self, thread: u32, start: TurnStart, caches: &mut impl Simulates) {
        let again = self.turns.iter().any(|turn| turn.who.thread == thread);
        if start == TurnStart::Waited || again || !self.placement.joins(thread) {
            self.end(caches);
            self.placement.joins(thread);
        }
        let records = self.spare.pop().unwrap_or_default();
        let who = Who { thread, core: self.placement.core_of(thread), first_site: 0 };
        self.turns.push(Turn { who, records, at: 0, step: 0, left: STEP, locks: Vec::new() });
    }

    /// Takes records of a thread, of the last turn or of a thread without turns, whose sites are
    /// numbered from `first_site` on.
    pub(crate) fn records(
        &mut self,
        thread: u32,
        records: &[Record],
        first_site: u32,
        caches: &mut impl Simulates,
    ) {
        match self.turns.last_mut() {
            Some(turn) if turn.who.thread == thread => {
                turn.who.first_site = first_site;
                turn.records.extend_from_slice(records);
            }
            _ => {
                self.end(caches);
                let who = Who { thread, core: self.placement.core_of(thread), first_site };
                caches.simulate(who, records, 0, usize::MAX, &mut |_| true);
            }
        }
    }

    /// Simulates the round.
    pub(crate) fn end(&mut self, caches: &mut impl Simulates) {
        if let [alone] = &self.turns[..] {
            caches.simulate(alone.who, &alone.records, 0, usize::MAX, &mut |_| true);
        } else if !self.turns.is_empty() {
            self.in_steps(caches);
        }
        for mut turn in self.turns.drain(..) {
            turn.records.clear();
            self.spare.push(turn.records);
        }
        self.placement.round_over();
    }

    /// Lets each turn make a step, until all are through; but what nobody can see is made at once.
    fn in_steps(&mut self, caches: &mut impl Simulates) {
        caches.round_begins();
        for (number, turn) in self.turns.iter_mut().enumerate() {
            let Turn { records, locks, .. } = turn;
            caches.surveys(number, records, |address| {
                match locks.iter_mut().find(|lock| lock.0 == address) {
                    Some(lock) => lock.1 += 1,
                    None => locks.push((address, 1)),
                }
            });
        }
        let mut queue = BinaryHeap::with_capacity(self.turns.len());
        for (number, turn) in self.turns.iter_mut().enumerate() {
            turn.goes_ahead(number, caches);
            if !turn.is_over() {
                queue.push(Reverse((turn.step, number)));
            }
        }
        // The first turn never waits, so each pass makes progress.
        while let Some(Reverse((_, number))) = queue.pop() {
            let has_made = self.step(number, caches);
            let turn = &mut self.turns[number];
            turn.goes_ahead(number, caches);
            if turn.is_over() {
                continue;
            }
            // A turn that waits asks again when another one has made a step.
            if let Some(Reverse((next, _))) = queue.peek().filter(|_| !has_made) {
                turn.step = turn.step.max(*next);
            }
            queue.push(Reverse((turn.step, number)));
        }
    }

    /// Lets one turn make a step, or the part of it before a lock that it has to wait for. Returns
    /// whether it has made anything.
    fn step(&mut self, number: usize, caches: &mut impl Simulates) -> bool {
        let (before, rest) = self.turns.split_at_mut(number);
        let Turn { who, records, at, step, left, locks } = &mut rest[0];
        let from = *at;
        *at = caches.simulate(*who, records, from, *left, &mut |address| {
            let may = !before.iter().any(|other| other.has_left(address));
            if may {
                locks.iter_mut().filter(|lock| lock.0 == address).for_each(|lock| lock.1 -= 1);
            }
            may
        });
        (*step, *left) = (*step + 1, STEP);
        *at > from
    }
}

impl Turn {
    /// Makes what nobody can see, and counts the steps that it takes.
    fn goes_ahead(&mut self, number: usize, caches: &mut impl Simulates) {
        let made = caches.ahead(number, self.who, &self.records, self.at);
        self.at += made;
        let of_step = STEP - self.left + made;
        self.step += (of_step / STEP) as u64;
        self.left = STEP - of_step % STEP;
    }

    fn is_over(&self) -> bool {
        self.at == self.records.len()
    }

    /// Whether the turn has yet to compare or exchange at an address.
    fn has_left(&self, address: u64) -> bool {
        self.locks.iter().any(|lock| *lock == (address, lock.1) && lock.1 > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::LOCK;
    use event::RecordKind;
    use std::num::NonZeroUsize;

    /// Notes which thread makes which reference; each reference counts as a step's.
    #[derive(Default)]
    struct Order(Vec<(u32, usize)>);

    impl Simulates for Order {
        fn round_begins(&mut self) {}

        fn surveys(&mut self, _: usize, records: &[Record], locks: impl FnMut(u64)) {
            let is_lock = |record: &&Record| record.code().kind() == RecordKind::Tool;
            records.iter().filter(is_lock).map(|record| record.address).for_each(locks);
        }

        fn ahead(&mut self, _: usize, _: Who, _: &[Record], _: usize) -> usize {
            0
        }

        fn simulate(
            &mut self,
            who: Who,
            records: &[Record],
            from: usize,
            most: usize,
            may_lock: &mut impl FnMut(u64) -> bool,
        ) -> usize {
            let mut left = most.div_ceil(STEP);
            for (at, record) in records.iter().enumerate().skip(from) {
                let is_lock = record.code().kind() == RecordKind::Tool;
                if left == 0 || is_lock && !may_lock(record.address) {
                    return at;
                }
                if !is_lock {
                    self.0.push((who.thread, record.site()));
                    left -= 1;
                }
            }
            records.len()
        }
    }

    fn loads(numbers: std::ops::Range<u32>) -> Vec<Record> {
        numbers.map(|number| Record::new(RecordKind::Load, 8, number, 0).unwrap()).collect()
    }

    fn lock(address: u64) -> Record {
        Record { address, what: (RecordKind::Tool as u32) << 4, extra: LOCK }
    }

    fn order_on(cores: Option<usize>, turns: &[(u32, TurnStart, Vec<Record>)]) -> Vec<(u32, usize)> {
        let cores = cores.and_then(NonZeroUsize::new);
        let (mut rounds, mut order) = (Rounds::new(Placement::new(cores)), Order::default());
        for (thread, start, records) in turns {
            rounds.turn(*thread, *start, &mut order);
            records.chunks(2).for_each(|part| rounds.records(*thread, part, 0, &mut order));
        }
        rounds.end(&mut order);
        order.0
    }

    fn order(turns: &[(u32, TurnStart, Vec<Record>)]) -> Vec<(u32, usize)> {
        order_on(None, turns)
    }

    use TurnStart::{GoesOn, Waited};

    #[test]
    fn turns_of_a_round_run_step_by_step() {
        let turns = [(1, Waited, loads(0..3)), (2, GoesOn, loads(0..2)), (1, GoesOn, loads(3..4))];
        assert_eq!(order(&turns), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_thread_that_waited_comes_behind_all_before() {
        let turns = [(1, Waited, loads(0..2)), (2, Waited, loads(0..2)), (1, GoesOn, loads(2..3))];
        assert_eq!(order(&turns), [(1, 0), (1, 1), (2, 0), (1, 2), (2, 1)]);
    }

    #[test]
    fn turns_of_one_core_are_in_different_rounds() {
        // Threads 0 and 2 are on one core, thread 1 is on the other.
        let first = [(0, Waited, loads(0..1)), (1, Waited, loads(0..1)), (2, Waited, loads(0..1))];
        let then = [(0, Waited, loads(1..3)), (1, GoesOn, loads(1..3)), (2, GoesOn, loads(1..2))];
        let made = order_on(Some(2), &[first, then].concat());
        assert_eq!(made, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 1)]);
    }

    #[test]
    fn locks_are_taken_in_the_order_in_which_they_were() {
        let locking = |address| [loads(0..2), vec![lock(address)], loads(2..3)].concat();
        let behind = |address| [loads(0..1), vec![lock(address)], loads(1..3)].concat();
        let same = [(1, Waited, locking(8)), (2, GoesOn, behind(8))];
        assert_eq!(order(&same), [(1, 0), (2, 0), (1, 1), (1, 2), (2, 1), (2, 2)]);
        let other = [(1, Waited, locking(8)), (2, GoesOn, behind(9))];
        assert_eq!(order(&other), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
        // The first turn takes the lock twice, so the second one waits for both.
        let twice = [(1, Waited, [locking(8), locking(8)].concat()), (2, GoesOn, behind(8))];
        let first = order(&twice).iter().position(|&made| made == (2, 1));
        assert_eq!(first, Some(7), "behind all six references of the first turn");
    }

    #[test]
    fn records_of_a_thread_without_a_turn_end_the_round() {
        let (mut rounds, mut order) = (Rounds::new(Placement::new(None)), Order::default());
        rounds.turn(1, Waited, &mut order);
        rounds.records(1, &loads(0..2), 0, &mut order);
        rounds.records(7, &loads(0..1), 0, &mut order);
        assert_eq!(order.0, [(1, 0), (1, 1), (7, 0)]);
    }
}
