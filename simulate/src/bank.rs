//! Rows of tags in recency order, searched in sweeps: the simulator's hot loops.
//!
//! **What.** A [`Bank`] is one cache, or the two caches of a split level side by side. [`Bank::sweep`] takes touches of single lines in
//! program order and hands back those that missed, in order; the next level sweeps these.
//!
//! **Why this way.** A row holds a set's line numbers, most recent first, so that hit and miss are one operation: shift the lanes up to
//! where the line was found (or the last way) by one and put the line in front. There is no branch on hit or miss to mispredict, the
//! miss list grows by 0 or 1, and neither sites nor counters are touched. Which of the two caches a touch goes to comes from a table indexed by the
//! record's kind, so fetches and data mix freely.
//!
//! **Shapes.** Up to 8 ways: rows of 8 lanes of 8 bytes, one line of the host's cache; up to 16 ways: two, or one with lanes of 4 bytes where a
//! quotient by the number of sets fits (if one day it does not, the rows are widened); more: `any`, a plain search. **Leaves out** dirtiness: see `traffic`. Source: our own; Mattson et al. 1970 for the recency stack.

use crate::kernel::{Enters, Fill, Kernel, MayEnter, Row, Tag, TouchRow, Touched, Work, EMPTY};
use crate::{Geometry, StoreMiss};
use event::{Record, RecordKind};

/// Bytes of a way from which on 32 bits name every line that a program on Linux has (its addresses end at 2^47).
const NARROW_BYTES: u64 = 1 << 15;

/// Touches of one sweep at most.
pub(crate) const SWEEP: usize = 1024;

/// A buffer of touches.
pub(crate) type Touches = Box<[Record; SWEEP]>;

/// An empty buffer.
pub(crate) fn touches() -> Touches {
    Box::new([Record::default(); SWEEP])
}

/// Where touches of one kind go, and what they do.
#[derive(Clone, Copy, Default)]
struct Selector {
    /// Logarithm of the line size.
    line_shift: u32,
    /// First row of the cache.
    base: u32,
    /// Number of sets, and its logarithm where it is a power of two.
    sets: u64,
    set_shift: u32,
    /// The last way's bit, and all ones where a missing line enters, else 0.
    last: u32,
    enters: u32,
    ways: u32,
}

/// One cache or two.
pub(crate) struct Bank {
    selectors: [Selector; 16],
    rows: Rows,
    kernel: Kernel,
}

enum Rows {
    Eight(Vec<Row<u64, 8>>, Index),
    Sixteen(Vec<Row<u64, 16>>, Index),
    /// Of one cache, as long as no line number is too large.
    Narrow(Vec<Row<u32, 16>>, Index),
    Any(Vec<u64>),
}

/// How far a sweep came.
struct Swept {
    /// Touches made; fewer than asked for where a line number did not fit.
    touched: usize,
    missed: usize,
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
        let fetch = instruction.map_or(selector(data, 0), |geometry| selector(geometry, data.sets as u32));
        let mut selectors = [selector(data, 0); 16];
        selectors[RecordKind::Fetch as usize] = fetch;
        if stores == Stores::Write && data.store_miss == StoreMiss::Bypass {
            selectors[RecordKind::Store as usize].enters = 0;
        }
        let rows = match lanes {
            0..=8 => Rows::Eight(vec![Row([EMPTY; 8]); sets], index),
            9..=16 if instruction.is_none() && data.sets * u64::from(data.line_bytes) >= NARROW_BYTES => {
                Rows::Narrow(vec![Row([u32::EMPTY; 16]); sets], index)
            }
            9..=16 => Rows::Sixteen(vec![Row([EMPTY; 16]); sets], index),
            _ => {
                let words = geometries.iter().map(|geometry| geometry.sets as usize * geometry.ways as usize);
                Rows::Any(vec![EMPTY; words.sum()])
            }
        };
        Bank { selectors, rows, kernel: Kernel::fastest() }
    }

    /// Touches the lines of `touches` in order, copies those that missed to `misses`, and returns how many they are.
    ///
    /// # Panics
    /// When there are more than [`SWEEP`] touches.
    pub(crate) fn sweep(&mut self, touches: &[Record], misses: &mut [Record; SWEEP]) -> usize {
        assert!(touches.len() <= SWEEP);
        if let Rows::Narrow(..) = self.rows {
            let Swept { touched, missed } = self.sweep_rows(touches, misses, 0);
            if touched == touches.len() {
                return missed;
            }
            self.widen();
            return self.sweep_rows(&touches[touched..], misses, missed).missed;
        }
        self.sweep_rows(touches, misses, 0).missed
    }

    /// Sweeps behind `missed` misses that are there already.
    fn sweep_rows(&mut self, touches: &[Record], misses: &mut [Record; SWEEP], missed: usize) -> Swept {
        let Bank { selectors, rows, kernel } = self;
        match rows {
            &mut Rows::Eight(ref mut rows, index) => {
                kernel.run(Sweep { rows, index, selectors, touches, misses, missed })
            }
            &mut Rows::Sixteen(ref mut rows, index) => {
                kernel.run(Sweep { rows, index, selectors, touches, misses, missed })
            }
            &mut Rows::Narrow(ref mut rows, index) => {
                kernel.run(Sweep { rows, index, selectors, touches, misses, missed })
            }
            Rows::Any(tags) => {
                Swept { touched: touches.len(), missed: sweep_any(tags, selectors, touches, misses) }
            }
        }
    }

    /// Makes room for any line number: narrow tags become line numbers. Happens once, if ever.
    #[cold]
    fn widen(&mut self) {
        let Rows::Narrow(narrow, index) = &self.rows else { return };
        let sets = self.selectors[0].sets;
        let line = |set: usize, tag: u32| match tag {
            u32::EMPTY => EMPTY,
            tag => u64::from(tag) * sets + set as u64,
        };
        let rows = narrow.iter().enumerate().map(|(set, row)| Row(row.0.map(|tag| line(set, tag))));
        self.rows = Rows::Sixteen(rows.collect(), *index);
    }
}

fn selector(geometry: Geometry, base: u32) -> Selector {
    let Geometry { sets, ways, line_bytes, .. } = geometry;
    let last = 1 << (ways - 1).min(31);
    Selector {
        line_shift: line_bytes.trailing_zeros(),
        base,
        sets,
        set_shift: sets.trailing_zeros(),
        last,
        enters: u32::MAX,
        ways,
    }
}

/// Index into the selectors: the record's kind.
#[inline(always)]
fn kind(touch: &Record) -> usize {
    (touch.what >> 4) as usize & 15
}

/// A sweep over rows of a fixed length, ready to run on a kernel.
struct Sweep<'a, T, const LANES: usize> {
    rows: &'a mut [Row<T, LANES>],
    index: Index,
    selectors: &'a [Selector; 16],
    touches: &'a [Record],
    misses: &'a mut [Record; SWEEP],
    missed: usize,
}

impl<T: Tag, const LANES: usize> Work<T, LANES> for Sweep<'_, T, LANES> {
    type Output = Swept;

    #[inline(always)]
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Swept {
        match self.index {
            Index::Mask => self
                .split_by(kernel, |line, selector| (line & (selector.sets - 1), line >> selector.set_shift)),
            Index::Modulo => {
                self.split_by(kernel, |line, selector| (line % selector.sets, line / selector.sets))
            }
        }
    }
}

impl<T: Tag, const LANES: usize> Sweep<'_, T, LANES> {
    /// `split` cuts a line number into set and quotient.
    #[inline(always)]
    fn split_by<K, S>(self, kernel: K, split: S) -> Swept
    where
        K: TouchRow<T, LANES>,
        S: Fn(u64, &Selector) -> (u64, u64),
    {
        // Where every line enters there is nothing to select, and no branch for the compiler to make of it.
        if self.selectors.iter().all(|selector| selector.enters == u32::MAX) {
            self.touch_all(kernel, split, |selector| Enters { last: selector.last })
        } else {
            self.touch_all(kernel, split, |&Selector { last, enters, .. }| MayEnter { last, enters })
        }
    }

    #[inline(always)]
    fn touch_all<K, S, F>(self, kernel: K, split: S, fill: impl Fn(&Selector) -> F) -> Swept
    where
        K: TouchRow<T, LANES>,
        S: Fn(u64, &Selector) -> (u64, u64),
        F: Fill,
    {
        let mut missed = self.missed;
        for (touched, touch) in self.touches.iter().enumerate() {
            let selector = &self.selectors[kind(touch)];
            let line = touch.address >> selector.line_shift;
            let (set, quotient) = split(line, selector);
            let Some(tag) = T::new(line, quotient) else { return Swept { touched, missed } };
            let row = &mut self.rows[selector.base as usize + set as usize];
            self.misses[missed & (SWEEP - 1)] = *touch;
            missed += usize::from(kernel.touch_row(row, tag, fill(selector)) == Touched::Missed);
        }
        Swept { touched: self.touches.len(), missed }
    }
}

/// The same for rows of any length: a search, and a rotation.
fn sweep_any(
    tags: &mut [u64],
    selectors: &[Selector; 16],
    touches: &[Record],
    misses: &mut [Record; SWEEP],
) -> usize {
    let (data, fetch) = (&selectors[0], &selectors[RecordKind::Fetch as usize]);
    let fetch_base = if fetch.base == 0 { 0 } else { data.sets as usize * data.ways as usize };
    let mut count = 0;
    for touch in touches {
        let selector = &selectors[kind(touch)];
        let base = if selector.base == 0 { 0 } else { fetch_base };
        let line = touch.address >> selector.line_shift;
        let ways = selector.ways as usize;
        let start = base + (line % selector.sets) as usize * ways;
        let row = &mut tags[start..start + ways];
        let found = row.iter().position(|&tag| tag == line);
        let last = match found {
            Some(way) => way,
            None => {
                misses[count] = *touch;
                count += 1;
                if selector.enters == 0 {
                    continue;
                }
                ways - 1
            }
        };
        row.copy_within(..last, 1);
        row[0] = line;
    }
    count
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
        prop::collection::vec(touch, 0..600)
    }

    proptest! {
        /// Every kernel, and the search over rows of any length, find the same misses.
        #[test]
        fn kernels_agree(data in geometry(), instruction in prop::option::of(geometry()), stream in stream()) {
            let sweep = |bank: &mut Bank| {
                let mut misses = touches();
                let count = bank.sweep(&stream, &mut misses);
                misses[..count].to_vec()
            };
            let bank = || Bank::new(data, instruction, Stores::Write);
            let words = data.sets * u64::from(data.ways)
                + instruction.map_or(0, |geometry| geometry.sets * u64::from(geometry.ways));
            let expected = sweep(&mut Bank { rows: Rows::Any(vec![EMPTY; words as usize]), ..bank() });
            for kernel in Kernel::all() {
                prop_assert_eq!(&sweep(&mut Bank { kernel, ..bank() }), &expected, "{:?}", kernel);
                if instruction.is_none() {
                    let index = if data.sets.is_power_of_two() { Index::Mask } else { Index::Modulo };
                    let rows = Rows::Narrow(vec![Row([u32::EMPTY; 16]); data.sets as usize], index);
                    prop_assert_eq!(&sweep(&mut Bank { kernel, rows, ..bank() }), &expected, "{:?}", kernel);
                }
            }
        }
    }
}
