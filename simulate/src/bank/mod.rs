//! Rows of tags in recency order, searched in sweeps: the simulator's hot loops.
//!
//! **What.** A [`Bank`] is one cache, or the two caches of a split level side by side.
//! [`Bank::sweep`] takes touches of single lines in program order and leaves those that missed, in
//! order; the next level sweeps these.
//!
//! **The problem.** Whether a touch hits cannot be predicted, and a simulation has billions of
//! touches: one mispredicted branch at each would take longer than all else.
//!
//! **The idea.** A row holds a set's line numbers, most recent first, so that hit and miss are one
//! operation: move the lanes up to where the line was found (or the last way) by one and put the
//! line in front. There is no branch on hit or miss to mispredict:
//!
//! ```text
//! row of a set with 4 ways     17  42   5   9
//! touch of 5: a hit             5  17  42   9    lanes up to the 5 move
//! touch of 8: a miss            8   5  17  42    all lanes move, the 9 leaves the cache
//! ```
//!
//! Which of the two caches a touch goes to comes from its kind, so fetches and data mix freely:
//!
//! ```text
//! rows   0 .. data sets            data cache                 RowMap { base: 0, .. }
//!        data sets .. all sets     instruction cache          RowMap { base: data sets, .. }
//! ```
//!
//! The next records are in the cache of another core, which has written them. They are prefetched
//! while rows are touched: a read of them, even one whose value is not needed, would delay the row
//! touches behind it.
//!
//! **Invariants.**
//!
//! 1. Each cache has a line in one row only, and there at most once; lanes behind the last way
//!    stay empty.
//! 2. Touches keep their program order within a sweep and from sweep to sweep.
//! 3. `noted` lists every row that was touched since the bank was empty, or it is longer than
//!    [`NOTED_MAX`] and nothing is concluded from it.
//! 4. A sweep touches all of its lines or, where one does not fit into narrow rows, none.
//!
//! **Shapes.** Up to 8 ways: rows of 8 lanes of 8 bytes, one line of the host's cache. Up to 16
//! ways: two such lines, or one with lanes of 4 bytes where the quotient of a line number by the
//! number of sets fits; the first one that does not fit widens the rows. More ways: `timed`.
//!
//! **Files.** `sweep` is the loop, `table` its rows, `timed` the search over rows of any length,
//! `rules` what both know of the caches. **Leaves out** dirtiness: see `traffic`. Source: our own;
//! Mattson et al. 1970 for the recency stack.

mod rules;
mod sweep;
mod table;
mod timed;

use crate::front::Front;
use crate::kernel::{Kernel, Row, Tag, EMPTY};
use crate::row_map::RowMap;
use crate::scratch::Scratch;
use crate::touch::{Touches, SWEEP};
use crate::{FetchTlb, Geometry, StoreMiss};
use event::Upcoming;
use rules::{FetchTouches, SweepRules};
use sweep::{Fit, RowSweep};
use table::{Index, Table};
use timed::Timed;

/// Most touches whose rows are noted for [`Bank::empty`]: beyond these all rows are emptied. Few in
/// tests, so that their streams see both.
const NOTED_MAX: usize = if cfg!(test) { 256 } else { 16 << 10 };

/// Bytes of a way from which on 32 bits name every line that a program on Linux has (its addresses
/// end at 2^47).
const NARROW_BYTES: u64 = 1 << 15;

/// The contents of one cache, or of the two caches of a split level.
pub(crate) struct Bank {
    /// How data and fetches map to rows (equal where there is one cache).
    maps: [RowMap; 2],
    store_miss: StoreMiss,
    fetches: FetchTouches,
    rows: Rows,
    kernel: Kernel,
    /// Rows that were touched, until there are more than [`NOTED_MAX`].
    noted: Vec<u32>,
}

/// Rows of the length that the caches need.
enum Rows {
    Eight(Table<u64, 8>),
    Sixteen(Table<u64, 16>),
    /// Rows whose caches have large ways, as long as no line number is too large.
    Narrow(Table<u32, 16>),
    Any(Timed),
}

/// Which stores are writes to a level; behind a level that allocates they arrive as fills.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    Write,
    Fill,
}

impl Bank {
    /// An empty bank. `data` serves all touches except fetches, which `instruction` serves; without
    /// `instruction`, `data` serves fetches too.
    pub(crate) fn new(data: Geometry, instruction: Option<Geometry>, stores: Stores) -> Bank {
        // Both caches share one table: its rows are as long as the one with more ways needs, and
        // their sets are found by one rule, the cheap mask only where it serves both.
        let mut geometries = vec![data];
        geometries.extend(instruction);
        let lanes = geometries.iter().map(|geometry| geometry.ways).max().unwrap_or(1);
        let power = geometries.iter().all(|geometry| geometry.sets.is_power_of_two());
        let index = if power { Index::Mask } else { Index::Modulo };
        let sets: usize = geometries.iter().map(|geometry| geometry.sets as usize).sum();
        // Without a second map fetches go to the rows of data.
        let first = RowMap::new(data, 0);
        let maps = [first, instruction.map_or(first, |geometry| RowMap::new(geometry, data.sets as u32))];
        // Fills arrive for lines that a nearer level has allocated, so they allocate here too.
        let store_miss = if stores == Stores::Write { data.store_miss } else { StoreMiss::Allocate };
        // The shortest rows that hold the ways: shorter rows are fewer lines of the host's cache. A
        // narrow tag is a quotient by the number of sets: small ways leave quotients beyond 32
        // bits.
        let large = |geometry: &Geometry| geometry.sets * u64::from(geometry.line_bytes) >= NARROW_BYTES;
        let rows = match lanes {
            0..=8 => Rows::Eight(Table::new(sets, index)),
            9..=16 if geometries.iter().all(large) => Rows::Narrow(Table::new(sets, index)),
            9..=16 => Rows::Sixteen(Table::new(sets, index)),
            _ => {
                let words = geometries.iter().map(|geometry| geometry.sets as usize * geometry.ways as usize);
                Rows::Any(Timed::new(words.sum()))
            }
        };
        let fetches = FetchTouches::LookedUp;
        Bank { maps, store_miss, fetches, rows, kernel: Kernel::fastest(), noted: Vec::new() }
    }

    /// A bank for `data` only, whose fetches have already missed: all of them are returned as
    /// misses.
    pub(crate) fn passing_fetches(data: Geometry, stores: Stores) -> Bank {
        // An unused row with the same number of ways, so that no touch asks which cache it goes to.
        let one = Geometry { sets: 1, ..data };
        Bank { fetches: FetchTouches::Missed, ..Bank::new(data, Some(one), stores) }
    }

    /// A bank for a level behind another, whose touches often use the line that was used last in
    /// their set.
    pub(crate) fn outer(geometry: Geometry, stores: Stores) -> Bank {
        Bank::new(geometry, None, stores).behind_another()
    }

    /// The second-level TLB behind the two first-level ones.
    pub(crate) fn outer_tlb(data: Geometry, fetches: FetchTlb) -> Bank {
        match fetches {
            FetchTlb::Absent => Bank::passing_fetches(data, Stores::Fill),
            fetches => Bank::new(data, fetches.own(), Stores::Fill).behind_another(),
        }
    }

    fn behind_another(self) -> Bank {
        let mut bank = self;
        // A front drops touches of the line that their set used last. A store that bypasses leaves
        // no such line, so there the front would drop misses.
        if bank.store_miss == StoreMiss::Allocate {
            match &mut bank.rows {
                Rows::Eight(table) => table.add_front(),
                Rows::Sixteen(table) => table.add_front(),
                Rows::Narrow(table) => table.add_front(),
                Rows::Any(_) => {}
            }
        }
        bank
    }

    /// Touches the lines of `touches` in order, and keeps those that missed in `touches`.
    pub(crate) fn sweep(&mut self, scratch: &mut Scratch, touches: &mut Touches) {
        self.sweep_reading(scratch, touches, &mut Upcoming::default());
    }

    /// Sweeps like [`Bank::sweep`], and prefetches records that the thread receives next: a line of
    /// them for as many touches as it holds records.
    pub(crate) fn sweep_reading(
        &mut self,
        scratch: &mut Scratch,
        touches: &mut Touches,
        ahead: &mut Upcoming,
    ) {
        let len = touches.len.min(SWEEP);
        // A sweep that does not fit has touched nothing: it is done again on wider rows.
        if self.sweep_rows(scratch, touches, ahead) == Fit::TooLarge {
            self.widen();
            self.sweep_rows(scratch, touches, ahead);
        }
        // The sweep left the numbers of its rows in `scratch`. `Rows::Any` leaves none there: what
        // is noted then is some other sweep's, and emptying these rows does not read it.
        if self.noted.len() <= NOTED_MAX {
            self.noted.extend_from_slice(&scratch.row[..len]);
        }
    }

    /// Empties the cache. Emptying a large bank of which little was used is cheap, while a new bank
    /// needs memory that the system must first clear.
    pub(crate) fn empty(&mut self) {
        // Once the list is full, rows may be missing from it: any row may have been touched.
        let few = self.noted.len() <= NOTED_MAX;
        let noted = few.then_some(&self.noted[..]);
        match &mut self.rows {
            Rows::Eight(table) => table.empty(noted),
            Rows::Sixteen(table) => table.empty(noted),
            Rows::Narrow(table) => table.empty(noted),
            Rows::Any(rows) => rows.empty(),
        }
        self.noted.clear();
    }

    fn sweep_rows(&mut self, scratch: &mut Scratch, touches: &mut Touches, ahead: &mut Upcoming) -> Fit {
        let Bank { maps, store_miss, fetches, rows, kernel, .. } = self;
        // One arm for each shape: the loop is compiled for its row length and width of tags, so
        // neither is tested at each touch.
        let rules = SweepRules { maps, store_miss: *store_miss, fetches: *fetches };
        match rows {
            Rows::Eight(table) => kernel.run(RowSweep { table, rules, touches, scratch, ahead }),
            Rows::Sixteen(table) => kernel.run(RowSweep { table, rules, touches, scratch, ahead }),
            Rows::Narrow(table) => kernel.run(RowSweep { table, rules, touches, scratch, ahead }),
            Rows::Any(rows) => {
                rows.sweep(*kernel, rules, touches);
                Fit::Fits
            }
        }
    }

    /// Replaces narrow tags by line numbers, for which any line fits. This happens at most once.
    #[cold]
    fn widen(&mut self) {
        let Rows::Narrow(narrow) = &self.rows else { return };
        let [data, code] = self.maps;
        // A narrow tag is the inverted quotient by the number of sets of its cache, and the set is
        // the remainder. The rows of fetches, if they have their own, lie behind those of data.
        let line = |row: usize, tag: u32| {
            let map = if row < data.sets as usize { data } else { code };
            match tag {
                u32::EMPTY => EMPTY,
                tag => u64::from(!tag) * map.sets + (row as u64 - u64::from(map.base)),
            }
        };
        let mut wide = Table::new(narrow.rows.rows().len(), narrow.index);
        for (number, (row, new)) in narrow.rows.rows().iter().zip(wide.rows.rows_mut()).enumerate() {
            *new = Row(row.0.map(|tag| line(number, tag)));
        }
        // The front holds narrow tags. It begins anew, which is exact: empty entries drop nothing.
        wide.front = narrow.front.as_ref().map(|_| Front::new(narrow.rows.rows().len()));
        self.rows = Rows::Sixteen(wide);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::touch::is_fetch;
    use event::{Record, RecordKind};
    use proptest::prelude::*;

    fn geometry() -> impl Strategy<Value = Geometry> {
        let sets = prop_oneof![Just(1u64), Just(4), Just(8), 1u64..12];
        (sets, 1u32..=16, any::<bool>()).prop_map(|(sets, ways, bypass)| {
            let geometry = Geometry::cache(sets * u64::from(ways) * 32, ways, 32);
            if bypass {
                geometry.bypassing()
            } else {
                geometry
            }
        })
    }

    fn stream() -> impl Strategy<Value = Vec<Record>> {
        let kinds = vec![RecordKind::Load, RecordKind::Store, RecordKind::Modify, RecordKind::Fetch];
        let address = prop_oneof![9 => 0u64..8192, 1 => any::<u64>()];
        let touch = (prop::sample::select(kinds), address).prop_map(|(kind, address)| Record {
            address,
            what: (kind as u32) << 4,
            extra: 0,
        });
        prop::collection::vec(touch, 0..1200)
    }

    /// A bank with narrow rows of the same number, and without a front.
    fn narrow_rows(bank: Bank) -> Bank {
        let [data, code] = bank.maps;
        let sets = data.sets + if code.base == 0 { 0 } else { code.sets };
        let power = bank.maps.iter().all(|map| map.sets.is_power_of_two());
        let index = if power { Index::Mask } else { Index::Modulo };
        Bank { rows: Rows::Narrow(Table::new(sets as usize, index)), ..bank }
    }

    /// What misses.
    fn swept(bank: &mut Bank, stream: &[Record], batch: usize) -> Vec<(u64, u32, u32)> {
        let (mut touches, mut scratch) = (Touches::empty(), Scratch::new());
        let mut all = Vec::new();
        for stream in stream.chunks(batch) {
            touches.len = 0;
            for (number, touch) in stream.iter().enumerate() {
                touches.push(touch.address, touch.what, number as u32);
            }
            bank.sweep(&mut scratch, &mut touches);
            let len = touches.len;
            let whats = touches.what[..len].iter().zip(&touches.reference[..len]);
            all.extend(touches.address[..len].iter().zip(whats).map(|(&a, (&w, &r))| (a, w, r)));
        }
        all
    }

    proptest! {
        /// A bank that was emptied misses what a new one misses.
        #[test]
        fn an_emptied_bank_is_as_new(data in geometry(), instruction in prop::option::of(geometry()), former in stream(), stream in stream(), batch in 1..=SWEEP) {
            let bank = || match instruction {
                Some(_) => Bank::new(data, instruction, Stores::Write),
                None => Bank::outer(data, Stores::Write),
            };
            let index = if data.sets.is_power_of_two() { Index::Mask } else { Index::Modulo };
            let mut table = Table::new(data.sets as usize, index);
            if data.store_miss == StoreMiss::Allocate {
                table.add_front();
            }
            let narrow = Bank { rows: Rows::Narrow(table), ..Bank::outer(data, Stores::Write) };
            let mut banks = vec![bank()];
            banks.extend(instruction.is_none().then_some(narrow));
            banks.extend(instruction.map(|_| narrow_rows(bank())));
            for mut used in banks {
                swept(&mut used, &former, batch);
                used.empty();
                prop_assert_eq!(swept(&mut used, &stream, batch), swept(&mut bank(), &stream, batch));
            }
        }

        /// Where fetches have missed already, all of them miss, and the others as if there were
        /// none.
        #[test]
        fn passing_fetches_leaves_data_as_it_is(data in geometry(), stream in stream(), batch in 1..=SWEEP) {
            let misses = |bank: &mut Bank, stream: &[Record]| -> Vec<(u64, u32)> {
                swept(bank, stream, batch).into_iter().map(|(address, what, _)| (address, what)).collect()
            };
            let (fetches, others): (Vec<Record>, Vec<Record>) = stream.iter().partition(|touch| is_fetch(touch.what));
            let expected = misses(&mut Bank::new(data, None, Stores::Write), &others);
            for kernel in Kernel::all() {
                let mut bank = Bank { kernel, ..Bank::passing_fetches(data, Stores::Write) };
                let (passed, missed): (Vec<_>, Vec<_>) =
                    misses(&mut bank, &stream).into_iter().partition(|&(_, what)| is_fetch(what));
                prop_assert_eq!(&missed, &expected, "{:?}", kernel);
                prop_assert!(passed.into_iter().eq(fetches.iter().map(|touch| (touch.address, touch.what))));
            }
        }

        /// Every kernel, and the search over rows of any length, find the same misses.
        #[test]
        fn kernels_agree(data in geometry(), instruction in prop::option::of(geometry()), stream in stream(), batch in 1..=SWEEP) {
            let bank = || match instruction {
                Some(_) => Bank::new(data, instruction, Stores::Write),
                None => Bank::outer(data, Stores::Write),
            };
            let words = data.sets * u64::from(data.ways)
                + instruction.map_or(0, |geometry| geometry.sets * u64::from(geometry.ways));
            let sweep = |bank: &mut Bank| swept(bank, &stream, batch);
            let expected = sweep(&mut Bank { rows: Rows::Any(Timed::new(words as usize)), ..bank() });
            for kernel in Kernel::all() {
                prop_assert_eq!(&sweep(&mut Bank { kernel, ..bank() }), &expected, "{:?}", kernel);
                let narrow = narrow_rows(bank());
                prop_assert_eq!(&sweep(&mut Bank { kernel, ..narrow }), &expected, "{:?}", kernel);
                if instruction.is_none() {
                    let index = if data.sets.is_power_of_two() { Index::Mask } else { Index::Modulo };
                    let mut table = Table::new(data.sets as usize, index);
                    if data.store_miss == StoreMiss::Allocate {
                        table.add_front();
                    }
                    let rows = Rows::Narrow(table);
                    prop_assert_eq!(&sweep(&mut Bank { kernel, rows, ..bank() }), &expected, "{:?}", kernel);
                }
            }
        }
    }
}
