//! Rows of any length: a line keeps its way, and the time of its last use stands beside it.
//!
//! **What.** Tags, times, and for lines by their lowest bits the way that one of them had last. **Why this way.** A fully associative TLB of 72 entries is
//! nine registers to shift and to store again at each touch where the row is kept in recency order; here a hit is one comparison with the way
//! that the hint names, and one store. Only a miss looks at the whole row, for the oldest time. **Leaves out** an index for rows of thousands of ways: these
//! are searched from end to end where the hint is wrong.
//! Source: our own.

use super::{is_fetch, is_store, FetchTouches, Place};
use crate::kernel::{Kernel, Pass, Vectors, EMPTY};
use crate::touch::Touches;
use crate::StoreMiss;

/// Hints; few in tests, so that their streams share them.
const HINTS: usize = if cfg!(test) { 16 } else { 1 << 10 };

/// Tags that are compared before one asks whether the line was among them.
const STEP: usize = 16;

/// Rows of one or two caches.
pub(super) struct Timed {
    tags: Vec<u64>,
    /// Of the last uses; 0 where a way is empty.
    times: Vec<u64>,
    clock: u64,
    hints: Box<[u32; HINTS]>,
}

impl Timed {
    /// Empty rows of so many ways together.
    pub(super) fn new(ways: usize) -> Timed {
        Timed { tags: vec![EMPTY; ways], times: vec![0; ways], clock: 0, hints: Box::new([0; HINTS]) }
    }

    pub(super) fn empty(&mut self) {
        self.tags.fill(EMPTY);
        self.times.fill(0);
    }

    /// Touches the lines of `touches` in order, which become those that missed.
    pub(super) fn sweep(&mut self, kernel: Kernel, place: Place, touches: &mut Touches) {
        kernel.pass(Sweep { rows: self, place, touches });
    }
}

struct Sweep<'a> {
    rows: &'a mut Timed,
    place: Place<'a>,
    touches: &'a mut Touches,
}

impl Pass for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(self, _kernel: K) {
        let Sweep { rows: Timed { tags, times, clock, hints }, place, touches } = self;
        let Place { parts: [data, code], store_miss, fetches } = place;
        let code_start = if code.base == 0 { 0 } else { data.sets as usize * data.ways as usize };
        for index in 0..std::mem::take(&mut touches.len) {
            let (address, what) = (touches.address[index], touches.what[index]);
            let reference = touches.reference[index];
            if fetches == FetchTouches::Miss && is_fetch(what) {
                touches.push(address, what, reference);
                continue;
            }
            let (part, start) = if is_fetch(what) { (code, code_start) } else { (data, 0) };
            let line = address >> part.line_shift;
            let ways = part.ways as usize;
            // Nearly all such rows are the only ones of their cache.
            let set = if part.sets == 1 { 0 } else { (line % part.sets) as usize };
            let row = start + set * ways..start + (set + 1) * ways;
            let (tags, times) = (&mut tags[row.clone()], &mut times[row]);
            let hint = &mut hints[line as usize % HINTS];
            let mut way = *hint as usize;
            if tags.get(way) != Some(&line) {
                way = match position(tags, line) {
                    Some(way) => way,
                    None => {
                        touches.push(address, what, reference);
                        if store_miss == StoreMiss::Bypass && is_store(what) {
                            continue;
                        }
                        let oldest = times.iter().copied().fold(u64::MAX, u64::min);
                        let way = position(times, oldest).unwrap_or(0);
                        tags[way] = line;
                        way
                    }
                };
                *hint = way as u32;
            }
            *clock += 1;
            times[way] = *clock;
        }
    }
}

/// Where `word` stands first.
#[inline(always)]
fn position(words: &[u64], word: u64) -> Option<usize> {
    let (steps, rest) = words.as_chunks::<STEP>();
    for (number, step) in steps.iter().enumerate() {
        let found = step.iter().enumerate().fold(0, |found, (lane, &w)| found | u32::from(w == word) << lane);
        if found != 0 {
            return Some(number * STEP + found.trailing_zeros() as usize);
        }
    }
    rest.iter().position(|&w| w == word).map(|lane| steps.len() * STEP + lane)
}
