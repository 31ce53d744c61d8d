//! Drops touches of the line that was used last in its set: they hit and change nothing in a row.
//!
//! **The problem.** A walk down a column misses the first level at every step and hits the line
//! that each outer set used last; its rows are many lines of the host's cache, so each of these
//! hits costs a miss of ours.
//!
//! **The idea.** A separate table holds the last tag of each set: 4 or 8 bytes a set instead of a
//! row. It is searched before the rows, and touches that find their own tag there are dropped. If
//! few touches do, the search costs more than it saves. So it is used on trial, and switched off
//! for a while if the trial fails:
//!
//! ```text
//! On: 8192 touches --half or more dropped--> On again
//!                  --fewer--> Off: eight times as many touches pass --> On, table emptied
//! ```
//!
//! **Invariant.** While the table is on, it holds the tag that each set used last, or nothing; an
//! empty entry drops nothing, so emptying it is always exact.
//!
//! **Leaves out** stores that do not allocate. Source: Mattson et al. 1970 (a re-reference of a
//! stack's top changes nothing).

use crate::kernel::{Tag, Vectors};
use crate::scratch::Scratch;
use crate::touch::{held, lanes, Touches, STEP, SWEEP};

/// Number of touches of a trial; few in tests, so that their streams see many trials.
const TRIAL: usize = if cfg!(test) { 64 } else { 1 << 13 };
/// After a failed trial, this many times as many touches (or sets, if these are more) pass without
/// the table.
const REST: usize = 8;

/// The last tag of each set.
pub(crate) struct Front<T> {
    last: Vec<T>,
    trial: Trial,
}

/// Whether the table is in use.
#[derive(Clone, Copy)]
enum Trial {
    On { touches: usize, hits: usize },
    Off { touches: usize },
}

impl<T: Tag> Front<T> {
    pub(crate) fn new(sets: usize) -> Front<T> {
        Front { last: vec![T::EMPTY; sets], trial: Trial::On { touches: 0, hits: 0 } }
    }

    /// Empties the sets `noted`; all sets if that is `None`.
    pub(crate) fn empty(&mut self, noted: Option<&[u32]>) {
        match noted {
            Some(noted) => noted.iter().for_each(|&set| self.last[set as usize] = T::EMPTY),
            None => self.last.fill(T::EMPTY),
        }
        self.trial = Trial::On { touches: 0, hits: 0 };
    }

    /// Whether the table is to be used for the next `count` touches. A table that was switched off
    /// begins empty.
    pub(crate) fn sifts(&mut self, count: usize) -> bool {
        match &mut self.trial {
            // A trial is over: the table pays where at least half of the touches were dropped.
            Trial::On { touches, hits } if *touches >= TRIAL => {
                self.trial = if *hits * 2 >= *touches {
                    Trial::On { touches: 0, hits: 0 }
                } else {
                    Trial::Off { touches: 0 }
                };
            }
            // The rest is over. Nobody kept the table meanwhile, so it is emptied, which is always
            // exact.
            Trial::Off { touches } if *touches >= REST * TRIAL.max(self.last.len()) => {
                self.last.fill(T::EMPTY);
                self.trial = Trial::On { touches: 0, hits: 0 };
            }
            Trial::Off { touches } => *touches += count,
            Trial::On { .. } => {}
        }
        matches!(self.trial, Trial::On { .. })
    }

    /// Drops the touches that use their set's last line; `scratch` has their rows and tags.
    #[inline(always)]
    pub(crate) fn sift<K: Vectors>(&mut self, kernel: K, scratch: &mut Scratch, touches: &mut Touches) {
        let Scratch { row, line, narrow, former, found } = scratch;
        let (tags, former) = (T::column(line, narrow), T::column(former, found));
        let lasts = &mut self.last[..];
        let len = std::mem::take(&mut touches.len).min(SWEEP);
        // Exchanges each tag with its set's last one. Touches of one set follow each other, so this
        // loop is not a vector's.
        for index in 0..len {
            former[index] = std::mem::replace(&mut lasts[row[index] as usize], tags[index]);
        }
        for start in (0..len).step_by(STEP) {
            // A touch that found its own tag hits the front of its row and changes nothing: drop
            // it.
            let new = T::differ(kernel, lanes(tags, start), lanes(former, start)) & held(len, start);
            kernel.keep(new, touches.copied(start).step(), touches);
        }
        if let Trial::On { touches: all, hits } = &mut self.trial {
            *all += len;
            *hits += len - touches.len;
        }
    }
}
