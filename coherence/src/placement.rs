//! On which core a thread runs.
//!
//! **Without a number of cores** each living thread has a core of its own: one that begins takes
//! the lowest core without a thread.
//!
//! **With K cores** threads share them. A thread that begins takes the core with the fewest living
//! threads. A core runs one turn of a round, so a thread whose core has had its turn runs in the
//! next round. It changes its core only if the machine is out of balance: if a core that is free in
//! this round has at least two active threads fewer than its own, as the schedulers of operating
//! systems move threads. *Active* threads are those that had a turn in this round or one of the two
//! before it; threads that wait count for nothing.
//!
//! ```text
//!   K = 2      round 1   round 2   round 3        C ends     round 4
//!   core 0        A         C         A                         A
//!   core 1        B         -         B                         B
//! ```
//!
//! **Leaves out** priorities, affinity that the program sets, and time: a turn is as long on every
//! core.

use std::num::NonZeroUsize;

/// The core of a thread that has none.
const NONE: usize = usize::MAX;

/// Rounds before the open one in which a turn makes a thread active.
const ACTIVE_ROUNDS: u64 = 2;

/// A thread.
#[derive(Clone, Copy, Debug)]
struct Seat {
    core: usize,
    /// The round of its last turn; 0 before it had one.
    last: u64,
}

/// Which thread is on which core.
#[derive(Debug)]
pub(crate) struct Placement {
    /// How many cores there are; as many as threads live if it is `None`.
    cores: Option<NonZeroUsize>,
    /// By the thread's number.
    seats: Vec<Seat>,
    /// For each core its living threads.
    living: Vec<Vec<u32>>,
    /// For each core the round of its last turn.
    taken: Vec<u64>,
    /// The number of the open round.
    round: u64,
    /// For each core all threads that ran on it, in the order of their first turns there.
    ran: Vec<Vec<u32>>,
    migrations: u64,
}

impl Placement {
    /// Places threads on this number of cores, or each on its own.
    pub(crate) fn new(cores: Option<NonZeroUsize>) -> Placement {
        let (seats, living, taken, ran) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut placement = Placement { cores, seats, living, taken, round: 1, ran, migrations: 0 };
        placement.grow(cores.map_or(0, NonZeroUsize::get));
        placement
    }

    /// The core of a thread. One that begins gets a core here.
    #[inline(always)]
    pub(crate) fn core_of(&mut self, thread: u32) -> usize {
        match self.seats.get(thread as usize) {
            Some(seat) if seat.core != NONE => seat.core,
            _ => self.begins(thread),
        }
    }

    #[cold]
    fn begins(&mut self, thread: u32) -> usize {
        let key = |core: &usize| (self.living[*core].len(), self.active(*core, thread), *core);
        let least = (0..self.living.len()).min_by_key(key);
        let may_grow = self.cores.is_none();
        let core = least.filter(|&core| !may_grow || self.living[core].is_empty());
        let core = core.unwrap_or(self.living.len());
        self.grow(core + 1);
        let index = thread as usize;
        if self.seats.len() <= index {
            self.seats.resize(index + 1, Seat { core: NONE, last: 0 });
        }
        self.seats[index] = Seat { core: NONE, last: 0 };
        self.sits(thread, core);
        core
    }

    /// A turn of a thread wants to join the open round. Returns whether its core is free; then it
    /// is the thread's.
    pub(crate) fn joins(&mut self, thread: u32) -> bool {
        let mut core = self.core_of(thread);
        if self.cores.is_some() && self.taken[core] == self.round {
            let Some(other) = self.idle(core, thread) else { return false };
            self.living[core].retain(|&own| own != thread);
            self.sits(thread, other);
            self.migrations += 1;
            core = other;
        }
        (self.taken[core], self.seats[thread as usize].last) = (self.round, self.round);
        true
    }

    /// The open round ends.
    pub(crate) fn round_over(&mut self) {
        self.round += 1;
    }

    /// A thread ends.
    pub(crate) fn ended(&mut self, thread: u32) {
        if let Some(seat) = self.seats.get_mut(thread as usize) {
            let core = std::mem::replace(&mut seat.core, NONE);
            if let Some(living) = self.living.get_mut(core) {
                living.retain(|&own| own != thread);
            }
        }
    }

    /// All threads end.
    pub(crate) fn all_ended(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.core = NONE);
        self.living.iter_mut().for_each(Vec::clear);
    }

    /// For each core the threads that ran on it, and how often a thread changed its core.
    pub(crate) fn finish(self) -> (Vec<Vec<u32>>, u64) {
        (self.ran, self.migrations)
    }

    /// The core to which a thread moves whose own core is taken.
    fn idle(&self, own: usize, thread: u32) -> Option<usize> {
        let free = (0..self.living.len()).filter(|&core| self.taken[core] != self.round);
        let least = free.map(|core| (self.active(core, thread), core)).min()?;
        (least.0 + 2 <= self.active(own, thread) + 1).then_some(least.1)
    }

    /// The active threads of a core but for one.
    fn active(&self, core: usize, but: u32) -> usize {
        let is_active = |thread: &&u32| {
            let last = self.seats[**thread as usize].last;
            **thread != but && last > 0 && last + ACTIVE_ROUNDS >= self.round
        };
        self.living[core].iter().filter(is_active).count()
    }

    fn sits(&mut self, thread: u32, core: usize) {
        self.seats[thread as usize].core = core;
        self.living[core].push(thread);
        if !self.ran[core].contains(&thread) {
            self.ran[core].push(thread);
        }
    }

    fn grow(&mut self, cores: usize) {
        if self.living.len() < cores {
            self.living.resize(cores, Vec::new());
            self.taken.resize(cores, 0);
            self.ran.resize(cores, Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The slow twin: the rules as sentences, on a list of all that happened.
    struct Naive {
        cores: usize,
        core_of: BTreeMap<u32, usize>,
        /// The threads of each round, with their cores.
        rounds: Vec<Vec<(u32, usize)>>,
        migrations: u64,
    }

    impl Naive {
        fn active(&self, core: usize, but: u32) -> usize {
            let recent = self.rounds.iter().rev().take(3);
            let is_seen = |thread: &u32| recent.clone().flatten().any(|turn| turn.0 == *thread);
            let living = self.core_of.iter().filter(|at| *at.1 == core && *at.0 != but);
            living.filter(|at| is_seen(at.0)).count()
        }

        fn is_taken(&self, core: usize) -> bool {
            self.rounds.last().unwrap().iter().any(|turn| turn.1 == core)
        }

        fn joins(&mut self, thread: u32) -> bool {
            if !self.core_of.contains_key(&thread) {
                let living = |core: usize| self.core_of.values().filter(|own| **own == core).count();
                let best = (0..self.cores).min_by_key(|&core| (living(core), self.active(core, thread)));
                // An earlier thread of this number is another one.
                self.rounds.iter_mut().for_each(|round| round.retain(|turn| turn.0 != thread));
                self.core_of.insert(thread, best.unwrap());
            }
            let mut core = self.core_of[&thread];
            if self.is_taken(core) {
                let free = (0..self.cores).filter(|&core| !self.is_taken(core));
                let Some(other) = free.min_by_key(|&core| self.active(core, thread)) else { return false };
                if self.active(core, thread) + 1 < self.active(other, thread) + 2 {
                    return false;
                }
                self.migrations += 1;
                core = other;
            }
            self.core_of.insert(thread, core);
            self.rounds.last_mut().unwrap().push((thread, core));
            true
        }
    }

    #[derive(Clone, Debug)]
    enum Happens {
        Turn(u32),
        Over,
        End(u32),
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            8 => (0u32..7).prop_map(Happens::Turn),
            2 => Just(Happens::Over),
            1 => (0u32..7).prop_map(Happens::End),
        ]
    }

    proptest! {
        #[test]
        fn threads_are_placed_as_the_slow_twin_places_them(
            cores in 1usize..5,
            all in prop::collection::vec(happens(), 1..120),
        ) {
            let mut placement = Placement::new(NonZeroUsize::new(cores));
            let mut naive =
                Naive { cores, core_of: BTreeMap::new(), rounds: vec![Vec::new()], migrations: 0 };
            for event in all {
                match event {
                    // A turn of a thread that is in the round ends the round, as one without a
                    // free core does.
                    Happens::Turn(thread) => {
                        let again = naive.rounds.last().unwrap().iter().any(|turn| turn.0 == thread);
                        let joined = !again && naive.joins(thread);
                        if !again {
                            prop_assert_eq!(placement.joins(thread), joined);
                        }
                        if !joined {
                            placement.round_over();
                            naive.rounds.push(Vec::new());
                            prop_assert!(placement.joins(thread) && naive.joins(thread));
                        }
                        prop_assert_eq!(placement.core_of(thread), naive.core_of[&thread]);
                    }
                    Happens::Over => {
                        placement.round_over();
                        naive.rounds.push(Vec::new());
                    }
                    Happens::End(thread) => {
                        placement.ended(thread);
                        naive.core_of.remove(&thread);
                    }
                }
            }
            prop_assert_eq!(placement.finish().1, naive.migrations);
        }

        #[test]
        fn with_a_core_for_each_thread_nobody_moves(
            all in prop::collection::vec(happens(), 1..120),
        ) {
            let (mut own, mut many) = (Placement::new(None), Placement::new(NonZeroUsize::new(7)));
            for event in all {
                match event {
                    Happens::Turn(thread) => {
                        for placement in [&mut own, &mut many] {
                            placement.round_over();
                            prop_assert!(placement.joins(thread));
                        }
                        prop_assert_eq!(own.core_of(thread), many.core_of(thread));
                    }
                    Happens::Over => {}
                    Happens::End(thread) => {
                        own.ended(thread);
                        many.ended(thread);
                    }
                }
            }
            prop_assert_eq!((own.finish().1, many.finish().1), (0, 0));
        }
    }

    fn round(placement: &mut Placement, threads: &[u32]) -> Vec<usize> {
        let cores = threads.iter().map(|&thread| {
            assert!(placement.joins(thread), "{thread}");
            placement.core_of(thread)
        });
        let cores = cores.collect();
        placement.round_over();
        cores
    }

    #[test]
    fn threads_in_balance_stay_and_others_move() {
        let mut placement = Placement::new(NonZeroUsize::new(2));
        assert_eq!(round(&mut placement, &[0, 1]), [0, 1]);
        assert_eq!(round(&mut placement, &[2]), [0]);
        assert_eq!(round(&mut placement, &[3]), [1]);
        // Core 0 has threads 0 and 2, core 1 has 1 and 3.
        for _ in 0..3 {
            assert_eq!(round(&mut placement, &[0, 1]), [0, 1]);
            assert_eq!(round(&mut placement, &[2, 3]), [0, 1]);
        }
        assert!(placement.joins(0) && !placement.joins(2), "2 waits for its core");
        placement.round_over();
        placement.ended(1);
        placement.ended(3);
        assert_eq!(round(&mut placement, &[2, 0]), [0, 1], "core 1 has no thread any more");
        assert_eq!(placement.finish(), (vec![vec![0, 2], vec![1, 3, 0]], 1));
    }
}
