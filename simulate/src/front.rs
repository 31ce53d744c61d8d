//! Which touches use the line that was used last in their set: they hit, and change nothing in a row of recency order.
//!
//! **What.** The last tag of each set, in a table of its own, looked at before the rows. **Why this way.** A walk down a column misses the
//! first level at every step and hits the same line of each outer set as before; its rows are many host lines, its last tags few. Where
//! most touches are not of that kind the look costs more than it saves, so it is taken on trial, and given up for a while.
//!
//! **Leaves out** stores that do not allocate. Source: Mattson et al. 1970 (a re-reference of a stack's top changes nothing).

use crate::bank::Scratch;
use crate::kernel::{Tag, Vectors};
use crate::touch::{held, lanes, Touches, STEP, SWEEP};

/// Touches of a trial (few in tests, so that their streams see many), and how often as many, or as there are sets, pass without one after it
/// failed.
const TRIAL: usize = if cfg!(test) { 64 } else { 1 << 13 };
const REST: usize = 8;

/// The last tag of each set.
pub(crate) struct Front<T> {
    last: Vec<T>,
    trial: Trial,
}

/// Whether the table is looked at.
#[derive(Clone, Copy)]
enum Trial {
    On { touches: usize, hits: usize },
    Off { touches: usize },
}

impl<T: Tag> Front<T> {
    pub(crate) fn new(sets: usize) -> Front<T> {
        Front { last: vec![T::EMPTY; sets], trial: Trial::On { touches: 0, hits: 0 } }
    }

    /// As new, where no other sets than `noted` were touched (`None`: any may have been).
    pub(crate) fn empty(&mut self, noted: Option<&[u32]>) {
        match noted {
            Some(noted) => noted.iter().for_each(|&set| self.last[set as usize] = T::EMPTY),
            None => self.last.fill(T::EMPTY),
        }
        self.trial = Trial::On { touches: 0, hits: 0 };
    }

    /// Whether the next `count` touches are to be sifted. A table that was not kept for a while begins anew.
    pub(crate) fn sifts(&mut self, count: usize) -> bool {
        match &mut self.trial {
            Trial::On { touches, hits } if *touches >= TRIAL => {
                self.trial = if *hits * 2 >= *touches {
                    Trial::On { touches: 0, hits: 0 }
                } else {
                    Trial::Off { touches: 0 }
                };
            }
            Trial::Off { touches } if *touches >= REST * TRIAL.max(self.last.len()) => {
                self.last.fill(T::EMPTY);
                self.trial = Trial::On { touches: 0, hits: 0 };
            }
            Trial::Off { touches } => *touches += count,
            Trial::On { .. } => {}
        }
        matches!(self.trial, Trial::On { .. })
    }

    /// Leaves of the touches, found in `scratch`, those that do not use their set's last line.
    #[inline(always)]
    pub(crate) fn sift<K: Vectors>(&mut self, kernel: K, scratch: &mut Scratch, touches: &mut Touches) {
        let Scratch { row, line, narrow, former, found } = scratch;
        let (tags, former) = (T::column(line, narrow), T::column(former, found));
        let lasts = &mut self.last[..];
        let len = std::mem::take(&mut touches.len).min(SWEEP);
        for index in 0..len {
            former[index] = std::mem::replace(&mut lasts[row[index] as usize], tags[index]);
        }
        for start in (0..len).step_by(STEP) {
            let new = T::differ(kernel, lanes(tags, start), lanes(former, start)) & held(len, start);
            kernel.keep(new, touches.copied(start).step(), touches);
        }
        if let Trial::On { touches: all, hits } = &mut self.trial {
            *all += len;
            *hits += len - touches.len;
        }
    }
}
