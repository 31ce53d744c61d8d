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

use crate::ask::{of_tag, LOCK};
use crate::turn::{Turn, STEP};
use event::{Record, RecordKind};
use instrument::TurnStart;

/// Simulates records of a thread.
pub(crate) trait Simulates {
    /// A turn of a thread wants to join the open round. Returns whether the thread has a core
    /// that no other turn of the round has.
    fn joins(&mut self, thread: u32) -> bool;

    /// The round is simulated, and the next one open.
    fn round_over(&mut self);

    /// Simulates records from an index on, until so many plain references are made. Asks before
    /// each instruction that compares or exchanges at an address whether the thread may; where it
    /// may not, it stops. Returns the index of the first record that was not simulated.
    fn simulate(
        &mut self,
        thread: u32,
        records: &[Record],
        from: usize,
        most: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> usize;

    /// The core whose hits of the thread may be made in steps beside those of others, if there is
    /// one.
    fn core_for_steps(&mut self, thread: u32) -> Option<usize>;

    /// Makes steps of turns, in turn from one of them on, as long as these are plain hits and no
    /// turn makes its last record. Returns the turn that does not go on so, and how many references
    /// of its step it has made.
    fn steps(&mut self, turns: &mut [Turn], from: usize) -> (usize, usize);
}

/// The round that is being collected.
#[derive(Default)]
pub(crate) struct Rounds {
    turns: Vec<Turn>,
    /// Buffers of former turns.
    spare: Vec<Vec<Record>>,
}

impl Rounds {
    /// The turn of a thread begins.
    pub(crate) fn turn(&mut self, thread: u32, start: TurnStart, caches: &mut impl Simulates) {
        let again = self.turns.iter().any(|turn| turn.thread == thread);
        if start == TurnStart::Waited || again || !caches.joins(thread) {
            self.end(caches);
            caches.joins(thread);
        }
        let records = self.spare.pop().unwrap_or_default();
        self.turns.push(Turn { thread, core: usize::MAX, records, at: 0, locks: Vec::new() });
    }

    /// Takes records of a thread: of the last turn, or of a thread without turns.
    pub(crate) fn records(&mut self, thread: u32, records: &[Record], caches: &mut impl Simulates) {
        match self.turns.last_mut() {
            Some(turn) if turn.thread == thread => turn.take(records),
            _ => {
                self.end(caches);
                caches.simulate(thread, records, 0, usize::MAX, &mut |_| true);
            }
        }
    }

    /// Simulates the round.
    pub(crate) fn end(&mut self, caches: &mut impl Simulates) {
        if let [alone] = &mut self.turns[..] {
            caches.simulate(alone.thread, &alone.records, 0, usize::MAX, &mut |_| true);
        } else {
            self.in_steps(caches);
        }
        for mut turn in self.turns.drain(..) {
            turn.records.clear();
            self.spare.push(turn.records);
        }
        caches.round_over();
    }

    /// Lets each turn make a step, until all are through. The first turn never waits, so each
    /// pass makes progress.
    fn in_steps(&mut self, caches: &mut impl Simulates) {
        for turn in &mut self.turns {
            turn.core = caches.core_for_steps(turn.thread).unwrap_or(usize::MAX);
        }
        let (mut first, mut next) = (0, 0);
        while first < self.turns.len() {
            let (stopped, made) = caches.steps(&mut self.turns[first..], next - first);
            let turn = first + stopped;
            self.step(turn, STEP - made, caches);
            while self.turns.get(first).is_some_and(Turn::is_over) {
                first += 1;
            }
            next = if turn + 1 < self.turns.len() { first.max(turn + 1) } else { first };
        }
    }

    /// Lets one turn make so many references, or those before a lock that it has to wait for.
    fn step(&mut self, turn: usize, most: usize, caches: &mut impl Simulates) {
        let (before, rest) = self.turns.split_at_mut(turn);
        let Turn { thread, records, at, locks, .. } = &mut rest[0];
        if *at == records.len() {
            return;
        }
        *at = caches.simulate(*thread, records, *at, most, &mut |address| {
            let may = !before.iter().any(|other| other.has_left(address));
            if may {
                locks.iter_mut().filter(|lock| lock.0 == address).for_each(|lock| lock.1 -= 1);
            }
            may
        });
    }
}

impl Turn {
    fn take(&mut self, records: &[Record]) {
        const TOOL: u8 = RecordKind::Tool as u8;
        for record in records.iter().filter(|record| record.what as u8 >> 4 == TOOL) {
            if of_tag(record.extra).0 == LOCK {
                match self.locks.iter_mut().find(|lock| lock.0 == record.address) {
                    Some(lock) => lock.1 += 1,
                    None => self.locks.push((record.address, 1)),
                }
            }
        }
        self.records.extend_from_slice(records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes which thread makes which reference; each reference counts as a step's.
    #[derive(Default)]
    struct Order(Vec<(u32, usize)>, bool);

    impl Simulates for Order {
        fn joins(&mut self, thread: u32) -> bool {
            // Threads 8 and above share a core.
            let is_free = thread < 8 || !self.1;
            self.1 |= thread >= 8;
            is_free
        }

        fn round_over(&mut self) {
            self.1 = false;
        }

        fn simulate(
            &mut self,
            thread: u32,
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
                    self.0.push((thread, record.site()));
                    left -= 1;
                }
            }
            records.len()
        }

        fn core_for_steps(&mut self, _thread: u32) -> Option<usize> {
            None
        }

        fn steps(&mut self, _turns: &mut [Turn], from: usize) -> (usize, usize) {
            (from, 0)
        }
    }

    fn loads(numbers: std::ops::Range<u32>) -> Vec<Record> {
        numbers.map(|number| Record::new(RecordKind::Load, 8, number, 0).unwrap()).collect()
    }

    fn lock(address: u64) -> Record {
        Record { address, what: (RecordKind::Tool as u32) << 4, extra: LOCK }
    }

    fn order(turns: &[(u32, TurnStart, Vec<Record>)]) -> Vec<(u32, usize)> {
        let (mut rounds, mut order) = (Rounds::default(), Order::default());
        for (thread, start, records) in turns {
            rounds.turn(*thread, *start, &mut order);
            records.chunks(2).for_each(|part| rounds.records(*thread, part, &mut order));
        }
        rounds.end(&mut order);
        order.0
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
        let turns = [(8, Waited, loads(0..2)), (1, GoesOn, loads(0..2)), (9, GoesOn, loads(0..1))];
        assert_eq!(order(&turns), [(8, 0), (1, 0), (8, 1), (1, 1), (9, 0)]);
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
        let (mut rounds, mut order) = (Rounds::default(), Order::default());
        rounds.turn(1, Waited, &mut order);
        rounds.records(1, &loads(0..2), &mut order);
        rounds.records(7, &loads(0..1), &mut order);
        assert_eq!(order.0, [(1, 0), (1, 1), (7, 0)]);
    }
}
