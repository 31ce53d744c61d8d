//! One sweep over rows of a fixed length, compiled once for each kernel.
//!
//! **The problem.** A touch costs a few nanoseconds, so a mispredicted branch, a division or a wait
//! for memory at each touch would be most of it.
//!
//! **The idea.** Do one step for all touches before the next step, over columns. Then each loop is
//! short, has no branch that depends on a touch, and stores its results where the next loop reads
//! them:
//!
//! ```text
//! touches.address, .what          sixteen at a time
//!   | locate                      address -> row number, tag
//! scratch.row, .line | .narrow
//!   | sift (on trial)             drops touches of the line that their set used last
//!   | touch_all                   one row after the other, in program order
//! scratch.found                   bit of the lane where the tag was, 0 where it was missing
//!   | pack                        keeps the touches whose `found` is 0
//! touches                         what the next level is asked for
//! ```
//!
//! **Invariants.** Program order is kept throughout: a row's touches must follow each other, and
//! the next level depends on the order of its touches. `touches` is rewritten in place: what is
//! kept never lies behind what is read next. Where one tag does not fit into a narrow row nothing
//! was touched yet ([`Fit::TooLarge`]).

use super::rules::{FetchTouches, SweepRules};
use super::table::{Index, Table};
use crate::kernel::{Enters, EntersWhole, Fill, Located, MayEnter, Row, RowWork, Tag, TouchRow, Vectors};
use crate::row_map::RowMap;
use crate::scratch::Scratch;
use crate::touch::{held, is_fetch, is_store, lanes, lanes_mut, TouchStep, Touches, STEP, SWEEP};
use crate::StoreMiss;
use bytemuck::Pod;
use event::{Upcoming, RECORDS_OF_LINE};

/// Whether all line numbers fit into the tags of a row. If one does not, nothing was touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    TooLarge,
}

/// A sweep, ready to run on a kernel.
pub(super) struct RowSweep<'a, T, const LANES: usize> {
    pub(super) table: &'a mut Table<T, LANES>,
    pub(super) rules: SweepRules<'a>,
    pub(super) touches: &'a mut Touches,
    pub(super) scratch: &'a mut Scratch,
    /// Records that the thread receives next.
    pub(super) ahead: &'a mut Upcoming,
}

impl<T: Tag, const LANES: usize> RowWork<T, LANES> for RowSweep<'_, T, LANES>
where
    Row<T, LANES>: Pod,
{
    type Output = Fit;

    #[inline(always)]
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Fit {
        let RowSweep { table: Table { rows, index, front }, rules, touches, scratch, ahead } = self;
        if locate::<T, K>(kernel, *index, rules.maps, touches, scratch) == Fit::TooLarge {
            return Fit::TooLarge;
        }
        // The front drops touches, after which rows and tags no longer stand beside theirs: locate
        // again.
        if let Some(front) = front {
            if front.sifts(touches.len) {
                front.sift(kernel, scratch, touches);
                locate::<T, K>(kernel, *index, rules.maps, touches, scratch);
            }
        }
        LocatedSweep { rows: rows.rows_mut(), rules, touches, scratch, ahead }.touch(kernel);
        Fit::Fits
    }
}

/// Finds rows and tags.
#[inline(always)]
fn locate<T: Tag, K: Vectors>(
    kernel: K,
    index: Index,
    maps: &[RowMap; 2],
    touches: &Touches,
    scratch: &mut Scratch,
) -> Fit {
    // A local copy stays in registers, because no store can change it.
    let maps = *maps;
    match index {
        Index::Mask => locate_all::<T, K, true>(kernel, &maps, touches, scratch),
        Index::Modulo => locate_all::<T, K, false>(kernel, &maps, touches, scratch),
    }
}

/// Finds rows and tags where all numbers of sets are powers of two (`MASK`), or where one is not.
#[inline(always)]
fn locate_all<T: Tag, K: Vectors, const MASK: bool>(
    kernel: K,
    maps: &[RowMap; 2],
    touches: &Touches,
    scratch: &mut Scratch,
) -> Fit {
    let mut beyond = 0;
    for start in (0..touches.len).step_by(STEP) {
        let (step, rows) = (touches.step(start), lanes_mut(&mut scratch.row, start));
        let located = if MASK { kernel.locate(step, maps, rows) } else { locate_by_modulo(step, maps, rows) };
        // Of the two columns for tags only the one of this width is written.
        let tags = T::column(&mut scratch.line, &mut scratch.narrow);
        beyond |= T::keep(kernel, &located, lanes_mut(tags, start));
    }
    // One decision for the whole sweep.
    if beyond == 0 {
        Fit::Fits
    } else {
        Fit::TooLarge
    }
}

/// Touches that were located, and their rows.
struct LocatedSweep<'a, T, const LANES: usize> {
    rows: &'a mut [Row<T, LANES>],
    rules: SweepRules<'a>,
    touches: &'a mut Touches,
    scratch: &'a mut Scratch,
    ahead: &'a mut Upcoming,
}

impl<T: Tag, const LANES: usize> LocatedSweep<'_, T, LANES> {
    /// Touches all rows and keeps the misses. The kind of fill is chosen once for the sweep, not at
    /// each touch.
    #[inline(always)]
    fn touch<K: TouchRow<T, LANES>>(mut self, kernel: K) {
        let SweepRules { maps: &[data, code], store_miss, .. } = self.rules;
        // The rows of fetches lie behind those of data.
        let last = |row| if row < code.base { data.last } else { code.last };
        if store_miss == StoreMiss::Bypass {
            // A store that misses does not enter its line; a store that hits uses it.
            self.touch_all(kernel, |row, what| MayEnter {
                last: last(row),
                enters: u32::from(!is_store(what)).wrapping_neg(),
            });
        } else if data.last == code.last && data.last == 1 << (LANES - 1) {
            // Each lane is a way: the cheapest mask.
            let whole = EntersWhole::new(LANES);
            self.touch_all(kernel, |_, _| whole);
        } else if data.last == code.last {
            // Both caches have equally many ways: no need to find the cache of each row.
            self.touch_all(kernel, |_, _| Enters { last: data.last });
        } else {
            self.touch_all(kernel, |row, _| Enters { last: last(row) });
        }
        self.pack(kernel);
    }

    /// Touches one row after the other.
    #[inline(always)]
    fn touch_all<K, F>(&mut self, kernel: K, fill: impl Fn(u32, u32) -> F)
    where
        K: TouchRow<T, LANES>,
        F: Fill,
    {
        let Scratch { row, line, narrow, found, .. } = &mut *self.scratch;
        let (tags, whats) = (T::column(line, narrow), &self.touches.what);
        let len = self.touches.len.min(SWEEP);
        let whole = len - len % RECORDS_OF_LINE;
        // A local copy stays in registers.
        let mut ahead = *self.ahead;
        // As many touches as a host line holds records: one line of the records to come is asked
        // for meanwhile.
        for start in (0..whole).step_by(RECORDS_OF_LINE) {
            if let Some(address) = ahead.line() {
                kernel.prefetch_address(address);
            }
            for index in start..start + RECORDS_OF_LINE {
                let fill = fill(row[index], whats[index]);
                found[index] = kernel.touch_row(&mut self.rows[row[index] as usize], tags[index], fill);
            }
        }
        *self.ahead = ahead;
        for index in whole..len {
            let fill = fill(row[index], whats[index]);
            found[index] = kernel.touch_row(&mut self.rows[row[index] as usize], tags[index], fill);
        }
    }

    /// Keeps the touches that missed.
    #[inline(always)]
    fn pack<K: Vectors>(&mut self, kernel: K) {
        let len = std::mem::take(&mut self.touches.len);
        for start in (0..len).step_by(STEP) {
            // A copy of the step: its misses are written over this one or an earlier one.
            let copied = self.touches.copied(start);
            let step = copied.step();
            let mut missed = kernel.zeros(lanes(&self.scratch.found, start));
            if self.rules.fetches == FetchTouches::Missed {
                missed |= kernel.fetches(step.what);
            }
            // Lanes behind the last touch of the sweep hold nothing.
            kernel.keep(missed & held(len, start), step, self.touches);
        }
    }
}

/// Finds rows where the number of sets is no power of two.
#[inline(always)]
fn locate_by_modulo(step: TouchStep, maps: &[RowMap; 2], rows: &mut [u32; STEP]) -> Located {
    let mut located = Located { line: [0; STEP], quotient: [0; STEP] };
    for lane in 0..STEP {
        let map = &maps[usize::from(is_fetch(step.what[lane]))];
        let line = step.address[lane] >> map.line_shift;
        rows[lane] = map.base + (line % map.sets) as u32;
        located.line[lane] = line;
        located.quotient[lane] = line / map.sets;
    }
    located
}
