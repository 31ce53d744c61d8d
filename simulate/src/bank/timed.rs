//! Rows of any length: a line keeps its way, and each way has the time of its last use.
//!
//! **The problem.** A fully associative TLB of 72 entries in recency order is nine registers to
//! shift and to store again at each touch.
//!
//! **The idea.** Tags stay where they are; each way has the time of its last use, and a table of
//! hints, indexed by the line's lowest bits, names the way that one such line had last. A hit is
//! then one comparison and one store:
//!
//! ```text
//! line --low bits--> hints[..] = way;  tags[way] == line?
//!     yes: times[way] = now
//!     no:  search the row; where it is not there, the oldest time's way takes the line
//! ```
//!
//! **Invariants.** A tag occurs in its set at most once. Times grow, and 0 is that of an empty way,
//! so empty ways are taken first. A hint may be wrong: it is checked at each use. **Leaves out** an
//! index for rows of thousands of ways: they are searched from end to end if the hint is wrong.
//! Source: our own.

use super::rules::{FetchTouches, SweepRules};
use crate::kernel::{Kernel, Pass, Vectors, EMPTY};
use crate::touch::{is_fetch, is_store, Touches};
use crate::StoreMiss;

/// Number of hints; few in tests, so that lines share them.
const HINTS: usize = if cfg!(test) { 16 } else { 1 << 10 };

/// Tags that are compared between two branches of a search.
const COMPARED: usize = 16;

/// Rows of one or two caches.
pub(super) struct Timed {
    tags: Vec<u64>,
    /// The time of each way's last use; 0 for an empty way.
    times: Vec<u64>,
    clock: u64,
    hints: Box<[u32; HINTS]>,
}

impl Timed {
    /// Empty rows of `ways` ways, all sets together.
    pub(super) fn new(ways: usize) -> Timed {
        Timed { tags: vec![EMPTY; ways], times: vec![0; ways], clock: 0, hints: Box::new([0; HINTS]) }
    }

    pub(super) fn empty(&mut self) {
        self.tags.fill(EMPTY);
        self.times.fill(0);
    }

    /// Touches the lines of `touches` in order, which become those that missed.
    pub(super) fn sweep(&mut self, kernel: Kernel, rules: SweepRules, touches: &mut Touches) {
        kernel.pass(TimedSweep { rows: self, rules, touches });
    }
}

struct TimedSweep<'a> {
    rows: &'a mut Timed,
    rules: SweepRules<'a>,
    touches: &'a mut Touches,
}

impl Pass for TimedSweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Vectors>(self, _kernel: K) {
        let TimedSweep { rows: Timed { tags, times, clock, hints }, rules, touches } = self;
        let SweepRules { maps: [data, code], store_miss, fetches } = rules;
        let code_start = if code.base == 0 { 0 } else { data.sets as usize * data.ways as usize };
        for index in 0..std::mem::take(&mut touches.len) {
            // A miss is written at or before the place from which it was read.
            let (address, what) = (touches.address[index], touches.what[index]);
            let reference = touches.reference[index];
            if fetches == FetchTouches::Missed && is_fetch(what) {
                touches.push(address, what, reference);
                continue;
            }
            let (map, start) = if is_fetch(what) { (code, code_start) } else { (data, 0) };
            let line = address >> map.line_shift;
            let ways = map.ways as usize;
            // Nearly all such rows are the only ones of their cache.
            let set = if map.sets == 1 { 0 } else { (line % map.sets) as usize };
            let row = start + set * ways..start + (set + 1) * ways;
            let (tags, times) = (&mut tags[row.clone()], &mut times[row]);
            // Try the hinted way; if it no longer holds the line, search the row; if no way holds
            // it, take the way with the oldest use.
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
                        // Times of uses differ, so the first way with the oldest one is the only
                        // one, or an empty one.
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

/// The first index of `word`. Sixteen comparisons become one mask and one branch.
#[inline(always)]
fn position(words: &[u64], word: u64) -> Option<usize> {
    let (steps, rest) = words.as_chunks::<COMPARED>();
    for (number, step) in steps.iter().enumerate() {
        let found = step.iter().enumerate().fold(0, |found, (lane, &w)| found | u32::from(w == word) << lane);
        if found != 0 {
            return Some(number * COMPARED + found.trailing_zeros() as usize);
        }
    }
    rest.iter().position(|&w| w == word).map(|lane| steps.len() * COMPARED + lane)
}
