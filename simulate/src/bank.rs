//! Rows of tags in recency order, searched in sweeps: the simulator's hot loops.
//!
//! **What.** A [`Bank`] is one cache, or the two caches of a split level side by side. [`Bank::sweep`] takes touches of single lines in
//! program order and hands back those that missed, in order; the next level sweeps these.
//!
//! **Why this way.** A row holds a set's line numbers, most recent first, so that hit and miss are one operation: move the lanes up to
//! where the line was found (or the last way) by one and put the line in front. There is no branch on hit or miss to mispredict: a sweep
//! finds all rows and tags, touches row after row, and packs what missed. Which of the two caches a touch goes to comes from its
//! kind, so fetches and data mix freely. The records that come next lie in another core's cache: they are prefetched while rows are touched, because
//! a read of them, even one whose value nobody needs, holds up the row touches behind it.
//!
//! **Shapes.** Up to 8 ways: rows of 8 lanes of 8 bytes, one line of the host's cache; up to 16 ways: two, or one with lanes of 4 bytes where a
//! quotient by the number of sets fits (if one day it does not, the rows are widened); more: `timed`. **Leaves out** dirtiness: see `traffic`.
//! Source: our own; Mattson et al. 1970 for the recency stack.

mod timed;

use crate::front::Front;
use crate::kernel::{
    Enters, EntersWhole, Fill, Kernel, Located, MayEnter, Row, Tag, TouchRow, Vectors, Work, EMPTY,
};
use crate::touch::{held, lanes, lanes_mut, Step, Touches, STEP, SWEEP};
use crate::{Geometry, StoreMiss};
use event::{Record, RecordKind};
use timed::Timed;

/// Most touches whose rows are noted for [`Bank::empty`]: beyond these all rows are emptied. Few in tests, so that their streams see both.
const NOTED_MAX: usize = if cfg!(test) { 256 } else { 16 << 10 };

/// Bytes of a way from which on 32 bits name every line that a program on Linux has (its addresses end at 2^47).
const NARROW_BYTES: u64 = 1 << 15;

/// Records in a line of the host's cache.
const RECORDS_OF_LINE: usize = 64 / size_of::<Record>();

/// One of a bank's caches.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Logarithm of the line size.
    pub(crate) line_shift: u32,
    /// First row of the cache.
    pub(crate) base: u32,
    /// Number of sets, and its logarithm where it is a power of two.
    pub(crate) sets: u64,
    pub(crate) set_shift: u32,
    /// The last way's bit.
    last: u32,
    ways: u32,
}

/// One cache or two.
pub(crate) struct Bank {
    /// Of data, and of fetches (the same where there is one cache).
    parts: [Part; 2],
    store_miss: StoreMiss,
    fetches: FetchTouches,
    rows: Rows,
    kernel: Kernel,
    /// Rows that were touched; of no use once there are more than [`NOTED_MAX`].
    noted: Vec<u32>,
}

/// Where a sweep's touches go: rows and tags, and in which lane each was found. Shared by banks, so that it stays in the host's first level.
pub(crate) struct Scratch {
    pub(crate) row: [u32; SWEEP],
    pub(crate) line: [u64; SWEEP],
    pub(crate) narrow: [u32; SWEEP],
    /// Tags that were last in their sets; narrow ones lie in `found`.
    pub(crate) former: [u64; SWEEP],
    pub(crate) found: [u32; SWEEP],
}

impl Scratch {
    pub(crate) fn new() -> Box<Scratch> {
        let (row, narrow, found) = ([0; SWEEP], [0; SWEEP], [0; SWEEP]);
        Box::new(Scratch { row, line: [0; SWEEP], narrow, former: [0; SWEEP], found })
    }
}

enum Rows {
    Eight(Table<u64, 8>),
    Sixteen(Table<u64, 16>),
    /// Of one cache, as long as no line number is too large.
    Narrow(Table<u32, 16>),
    Any(Timed),
}

/// Rows of a fixed length, and how a set's is found.
struct Table<T, const LANES: usize> {
    rows: Vec<Row<T, LANES>>,
    index: Index,
    /// Behind another level, where every line enters.
    front: Option<Front<T>>,
}

impl<T: Tag, const LANES: usize> Table<T, LANES> {
    fn new(sets: usize, index: Index) -> Table<T, LANES> {
        Table { rows: vec![Row([T::EMPTY; LANES]); sets], index, front: None }
    }

    fn add_front(&mut self) {
        self.front = Some(Front::new(self.rows.len()));
    }

    /// As new, where no other rows than `noted` were touched (`None`: any may have been).
    fn empty(&mut self, noted: Option<&[u32]>) {
        let empty = Row([T::EMPTY; LANES]);
        match noted {
            Some(noted) => noted.iter().for_each(|&row| self.rows[row as usize] = empty),
            None => self.rows.fill(empty),
        }
        self.front.iter_mut().for_each(|front| front.empty(noted));
    }
}

/// How a set is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Mask,
    Modulo,
}

/// Which stores are writes to a level; behind a level that allocates they arrive as fills.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    Write,
    Fill,
}

impl Bank {
    /// `data` serves every kind of touch but fetches, which `instruction` serves (the same rows where there is none of its own).
    pub(crate) fn new(data: Geometry, instruction: Option<Geometry>, stores: Stores) -> Bank {
        let mut geometries = vec![data];
        geometries.extend(instruction);
        let lanes = geometries.iter().map(|geometry| geometry.ways).max().unwrap_or(1);
        let power = geometries.iter().all(|geometry| geometry.sets.is_power_of_two());
        let index = if power { Index::Mask } else { Index::Modulo };
        let sets: usize = geometries.iter().map(|geometry| geometry.sets as usize).sum();
        let first = part(data, 0);
        let parts = [first, instruction.map_or(first, |geometry| part(geometry, data.sets as u32))];
        let store_miss = if stores == Stores::Write { data.store_miss } else { StoreMiss::Allocate };
        let rows = match lanes {
            0..=8 => Rows::Eight(Table::new(sets, index)),
            9..=16 if instruction.is_none() && data.sets * u64::from(data.line_bytes) >= NARROW_BYTES => {
                Rows::Narrow(Table::new(sets, index))
            }
            9..=16 => Rows::Sixteen(Table::new(sets, index)),
            _ => {
                let words = geometries.iter().map(|geometry| geometry.sets as usize * geometry.ways as usize);
                Rows::Any(Timed::new(words.sum()))
            }
        };
        let fetches = FetchTouches::Found;
        Bank { parts, store_miss, fetches, rows, kernel: Kernel::fastest(), noted: Vec::new() }
    }

    /// The same for `data` alone, where each fetch has missed already: it is handed back.
    pub(crate) fn passing_fetches(data: Geometry, stores: Stores) -> Bank {
        // A row whose tags nobody uses, of as many ways, so that a touch need not ask which part it goes to.
        let one = Geometry { sets: 1, ..data };
        Bank { fetches: FetchTouches::Miss, ..Bank::new(data, Some(one), stores) }
    }

    /// The same for a level behind another, whose touches often use the line that was used last in their set.
    pub(crate) fn outer(geometry: Geometry, stores: Stores) -> Bank {
        let mut bank = Bank::new(geometry, None, stores);
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

    /// Touches the lines of `touches` in order, and leaves those that missed.
    pub(crate) fn sweep(&mut self, scratch: &mut Scratch, touches: &mut Touches) {
        self.sweep_reading(scratch, touches, &[]);
    }

    /// The same, while the records that are staged next come into this core's cache: another core has written them.
    pub(crate) fn sweep_reading(&mut self, scratch: &mut Scratch, touches: &mut Touches, ahead: &[Record]) {
        let len = touches.len.min(SWEEP);
        if self.sweep_rows(scratch, touches, ahead) == Fit::TooLarge {
            self.widen();
            self.sweep_rows(scratch, touches, ahead);
        }
        if self.noted.len() <= NOTED_MAX {
            self.noted.extend_from_slice(&scratch.row[..len]);
        }
    }

    /// Forgets every line. A large bank of which little was used costs little to empty; a new one costs memory that nobody has touched yet.
    pub(crate) fn empty(&mut self) {
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

    fn sweep_rows(&mut self, scratch: &mut Scratch, touches: &mut Touches, ahead: &[Record]) -> Fit {
        let Bank { parts, store_miss, fetches, rows, kernel, .. } = self;
        let place = Place { parts, store_miss: *store_miss, fetches: *fetches };
        match rows {
            Rows::Eight(table) => kernel.run(Sweep { table, place, touches, scratch, ahead }),
            Rows::Sixteen(table) => kernel.run(Sweep { table, place, touches, scratch, ahead }),
            Rows::Narrow(table) => kernel.run(Sweep { table, place, touches, scratch, ahead }),
            Rows::Any(rows) => {
                rows.sweep(*kernel, place, touches);
                Fit::Fits
            }
        }
    }

    /// Makes room for any line number: narrow tags become line numbers. Happens once, if ever.
    #[cold]
    fn widen(&mut self) {
        let Rows::Narrow(narrow) = &self.rows else { return };
        let sets = self.parts[0].sets;
        let line = |set: usize, tag: u32| match tag {
            u32::EMPTY => EMPTY,
            tag => u64::from(tag) * sets + set as u64,
        };
        let rows = narrow.rows.iter().enumerate().map(|(set, row)| Row(row.0.map(|tag| line(set, tag))));
        let front = narrow.front.as_ref().map(|_| Front::new(narrow.rows.len()));
        self.rows = Rows::Sixteen(Table { rows: rows.collect(), index: narrow.index, front });
    }
}

/// What becomes of fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchTouches {
    /// They are looked up as others are.
    Found,
    /// They miss: all of them have missed where the program runs.
    Miss,
}

/// Whether all line numbers fit into a row's tags; where one does not, nothing was touched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Fits,
    TooLarge,
}

fn part(geometry: Geometry, base: u32) -> Part {
    let Geometry { sets, ways, line_bytes, .. } = geometry;
    let (line_shift, set_shift) = (line_bytes.trailing_zeros(), sets.trailing_zeros());
    Part { line_shift, base, sets, set_shift, last: 1 << (ways - 1).min(31), ways }
}

#[inline(always)]
pub(crate) fn is_fetch(what: u32) -> bool {
    (what >> 4) & 15 == RecordKind::Fetch as u32
}

#[inline(always)]
fn is_store(what: u32) -> bool {
    (what >> 4) & 15 == RecordKind::Store as u32
}

/// What a bank's caches are like.
#[derive(Clone, Copy)]
struct Place<'a> {
    parts: &'a [Part; 2],
    store_miss: StoreMiss,
    fetches: FetchTouches,
}

/// A sweep over rows of a fixed length, ready to run on a kernel.
struct Sweep<'a, T, const LANES: usize> {
    table: &'a mut Table<T, LANES>,
    place: Place<'a>,
    touches: &'a mut Touches,
    scratch: &'a mut Scratch,
    ahead: &'a [Record],
}

impl<T: Tag, const LANES: usize> Work<T, LANES> for Sweep<'_, T, LANES> {
    type Output = Fit;

    #[inline(always)]
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Fit {
        let Sweep { table: Table { rows, index, front }, place, touches, scratch, ahead } = self;
        if locate::<T, K>(kernel, *index, place.parts, touches, scratch) == Fit::TooLarge {
            return Fit::TooLarge;
        }
        if let Some(front) = front {
            if front.sifts(touches.len) {
                front.sift(kernel, scratch, touches);
                locate::<T, K>(kernel, *index, place.parts, touches, scratch);
            }
        }
        Rest { rows, place, touches, scratch, ahead }.touch(kernel);
        Fit::Fits
    }
}

/// Finds rows and tags.
#[inline(always)]
fn locate<T: Tag, K: Vectors>(
    kernel: K,
    index: Index,
    parts: &[Part; 2],
    touches: &Touches,
    scratch: &mut Scratch,
) -> Fit {
    // A copy, which nothing that is written can change: it stays in registers, and so does what is located where the loop has one way to do it.
    let parts = *parts;
    match index {
        Index::Mask => locate_all::<T, K, true>(kernel, &parts, touches, scratch),
        Index::Modulo => locate_all::<T, K, false>(kernel, &parts, touches, scratch),
    }
}

/// The same where the number of sets is a power of two (`MASK`) or not.
#[inline(always)]
fn locate_all<T: Tag, K: Vectors, const MASK: bool>(
    kernel: K,
    parts: &[Part; 2],
    touches: &Touches,
    scratch: &mut Scratch,
) -> Fit {
    let mut beyond = 0;
    for start in (0..touches.len).step_by(STEP) {
        let (step, rows) = (touches.step(start), lanes_mut(&mut scratch.row, start));
        let located =
            if MASK { kernel.locate(step, parts, rows) } else { locate_by_modulo(step, parts, rows) };
        let tags = T::column(&mut scratch.line, &mut scratch.narrow);
        beyond |= T::keep(kernel, &located, lanes_mut(tags, start));
    }
    if beyond == 0 {
        Fit::Fits
    } else {
        Fit::TooLarge
    }
}

/// Touches that were located, and their rows.
struct Rest<'a, T, const LANES: usize> {
    rows: &'a mut [Row<T, LANES>],
    place: Place<'a>,
    touches: &'a mut Touches,
    scratch: &'a mut Scratch,
    ahead: &'a [Record],
}

impl<T: Tag, const LANES: usize> Rest<'_, T, LANES> {
    #[inline(always)]
    fn touch<K: TouchRow<T, LANES>>(mut self, kernel: K) {
        let Place { parts: &[data, code], store_miss, .. } = self.place;
        let last = |row| if row < code.base { data.last } else { code.last };
        if store_miss == StoreMiss::Bypass {
            // A store's line enters where it is there already, and nothing else of it does.
            self.touch_all(kernel, |row, what| MayEnter {
                last: last(row),
                enters: u32::from(!is_store(what)).wrapping_neg(),
            });
        } else if data.last == code.last && data.last == 1 << (LANES - 1) {
            let whole = EntersWhole::new(LANES);
            self.touch_all(kernel, |_, _| whole);
        } else if data.last == code.last {
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
        for start in (0..whole).step_by(RECORDS_OF_LINE) {
            if let Some(record) = self.ahead.get(start) {
                kernel.prefetch(record);
            }
            for index in start..start + RECORDS_OF_LINE {
                let fill = fill(row[index], whats[index]);
                found[index] = kernel.touch_row(&mut self.rows[row[index] as usize], tags[index], fill);
            }
        }
        for index in whole..len {
            let fill = fill(row[index], whats[index]);
            found[index] = kernel.touch_row(&mut self.rows[row[index] as usize], tags[index], fill);
        }
    }

    /// Leaves what missed.
    #[inline(always)]
    fn pack<K: Vectors>(&mut self, kernel: K) {
        let len = std::mem::take(&mut self.touches.len);
        for start in (0..len).step_by(STEP) {
            let copied = self.touches.copied(start);
            let step = copied.step();
            let mut missed = kernel.zeros(lanes(&self.scratch.found, start));
            if self.place.fetches == FetchTouches::Miss {
                missed |= kernel.fetches(step.what);
            }
            kernel.keep(missed & held(len, start), step, self.touches);
        }
    }
}

/// Finds rows where the number of sets is no power of two.
#[inline(always)]
fn locate_by_modulo(step: Step, parts: &[Part; 2], rows: &mut [u32; STEP]) -> Located {
    let mut located = Located { line: [0; STEP], quotient: [0; STEP] };
    for lane in 0..STEP {
        let part = &parts[usize::from(is_fetch(step.what[lane]))];
        let line = step.address[lane] >> part.line_shift;
        rows[lane] = part.base + (line % part.sets) as u32;
        located.line[lane] = line;
        located.quotient[lane] = line / part.sets;
    }
    located
}

#[cfg(test)]
mod tests {
    use super::*;
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
            for mut used in banks {
                swept(&mut used, &former, batch);
                used.empty();
                prop_assert_eq!(swept(&mut used, &stream, batch), swept(&mut bank(), &stream, batch));
            }
        }

        /// Where fetches have missed already, all of them miss, and the others as if there were none.
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
