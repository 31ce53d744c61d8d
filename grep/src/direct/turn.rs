//! Turns: any thread takes a piece, and results may be handed in in any order; they are written in
//! the order of the pieces.
//!
//! At most a few results wait, so memory stays bounded if the reader of the output is slow.

use super::printed::Printed;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks, even if another thread panicked: the state is consistent whenever the lock is free.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that threads share.
struct State<I> {
    pieces: I,
    /// The number of pieces that were taken.
    taken: usize,
    /// The number of results that were written.
    out: usize,
    /// The number of line ends of the first pieces, and the number of these pieces.
    lines: u64,
    counted: usize,
    ready: BTreeMap<usize, Printed>,
    spare: Vec<Printed>,
    exhausted: bool,
    stopped: bool,
}

/// The next task of the thread that writes.
pub(super) enum Turn {
    Write(Printed),
    Work(usize, Range<usize>),
    Finished,
}

/// Hands out pieces, and orders results.
pub(super) struct Turns<I> {
    state: Mutex<State<I>>,
    changed: Condvar,
    /// The most pieces between the first one that is not written yet and the last one that was
    /// taken.
    window: usize,
}

impl<I: Iterator<Item = Range<usize>>> Turns<I> {
    pub(super) fn new(pieces: I, threads: usize) -> Turns<I> {
        let state = State {
            pieces,
            taken: 0,
            out: 0,
            lines: 0,
            counted: 0,
            ready: BTreeMap::new(),
            spare: Vec::new(),
            exhausted: false,
            stopped: false,
        };
        Turns { state: Mutex::new(state), changed: Condvar::new(), window: 4 * threads }
    }

    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State<I>>,
        blocked: impl Fn(&State<I>) -> bool,
    ) -> MutexGuard<'s, State<I>> {
        while blocked(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Whether a piece may be taken, or the end may be found.
    fn has_room(&self, state: &State<I>) -> bool {
        !state.exhausted && (state.stopped || state.taken < state.out + self.window)
    }

    /// The next piece and its number; `None` at the end.
    pub(super) fn next(&self) -> Option<(usize, Range<usize>)> {
        self.piece(self.wait(lock(&self.state), |shared| !(shared.exhausted || self.has_room(shared))))
    }

    fn piece(&self, mut state: MutexGuard<'_, State<I>>) -> Option<(usize, Range<usize>)> {
        let piece = if state.stopped { None } else { state.pieces.next() };
        match piece {
            Some(piece) => {
                state.taken += 1;
                Some((state.taken - 1, piece))
            }
            None => {
                state.exhausted = true;
                drop(state);
                self.changed.notify_all();
                None
            }
        }
    }

    /// The number of line ends before piece `number`, which itself has `lines`.
    pub(super) fn lines_before(&self, number: usize, lines: u64) -> u64 {
        let mut state = self.wait(lock(&self.state), |shared| shared.counted != number);
        let before = state.lines;
        state.lines += lines;
        state.counted += 1;
        drop(state);
        self.changed.notify_all();
        before
    }

    /// A buffer that was used before, or a new one.
    pub(super) fn buffer(&self) -> Printed {
        lock(&self.state).spare.pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, printed: Printed) {
        lock(&self.state).spare.push(printed);
    }

    /// Hands in the result of piece `number`.
    pub(super) fn hand_in(&self, number: usize, printed: Printed) {
        lock(&self.state).ready.insert(number, printed);
        self.changed.notify_all();
    }

    /// The next task of the thread that writes: the next result in order, or else a piece.
    pub(super) fn turn(&self) -> Turn {
        let mut state = self.wait(lock(&self.state), |shared| {
            let finished = shared.exhausted && shared.out == shared.taken;
            !(shared.ready.contains_key(&shared.out) || finished || self.has_room(shared))
        });
        let number = state.out;
        if let Some(printed) = state.ready.remove(&number) {
            state.out += 1;
            drop(state);
            self.changed.notify_all();
            return Turn::Write(printed);
        }
        if state.exhausted {
            return Turn::Finished;
        }
        match self.piece(state) {
            Some((number, piece)) => Turn::Work(number, piece),
            None => self.turn(),
        }
    }

    /// Ends the handing out of pieces.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}
