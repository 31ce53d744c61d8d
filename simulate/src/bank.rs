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
//! **Shapes.** Up to 8 ways: rows of 8 lanes of 8 bytes, one line of the host's cache; up to 16 ways: two; more: `any`, a plain
//! search. **Leaves out** dirtiness: see `traffic.rs`. Source: our own; Mattson et al. 1970 for the recency stack.

use crate::kernel::{Fill, Kernel, Row, TouchRow, Touched, Work, EMPTY};
use crate::{Geometry, StoreMiss};
use event::{Record, RecordKind};

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
    /// Number of sets.
    sets: u64,
    fill: Fill,
    ways: u32,
}

/// One cache or two.
pub(crate) struct Bank {
    selectors: [Selector; 16],
    rows: Rows,
    kernel: Kernel,
}

enum Rows {
    Eight(Vec<Row<8>>, Index),
    Sixteen(Vec<Row<16>>, Index),
    Any(Vec<u64>),
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
            selectors[RecordKind::Store as usize].fill.enters = 0;
        }
        let rows = match lanes {
            0..=8 => Rows::Eight(vec![Row([EMPTY; 8]); sets], index),
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
        let Bank { selectors, rows, kernel } = self;
        match rows {
            Rows::Eight(rows, index) => kernel.run(Sweep { rows, index: *index, selectors, touches, misses }),
            Rows::Sixteen(rows, index) => {
                kernel.run(Sweep { rows, index: *index, selectors, touches, misses })
            }
            Rows::Any(tags) => sweep_any(tags, selectors, touches, misses),
        }
    }
}

fn selector(geometry: Geometry, base: u32) -> Selector {
    let Geometry { sets, ways, line_bytes, .. } = geometry;
    let fill = Fill { last: 1 << (ways - 1).min(31), enters: u32::MAX };
    Selector { line_shift: line_bytes.trailing_zeros(), base, sets, fill, ways }
}

/// Index into the selectors: the record's kind.
#[inline(always)]
fn kind(touch: &Record) -> usize {
    (touch.what >> 4) as usize & 15
}

/// A sweep over rows of a fixed length, ready to run on a kernel.
struct Sweep<'a, const LANES: usize> {
    rows: &'a mut [Row<LANES>],
    index: Index,
    selectors: &'a [Selector; 16],
    touches: &'a [Record],
    misses: &'a mut [Record; SWEEP],
}

impl<const LANES: usize> Work<LANES> for Sweep<'_, LANES> {
    #[inline(always)]
    fn run<K: TouchRow<LANES>>(self, kernel: K) -> usize {
        match self.index {
            Index::Mask => self.touch_all(kernel, |line, sets| line & (sets - 1)),
            Index::Modulo => self.touch_all(kernel, |line, sets| line % sets),
        }
    }
}

impl<const LANES: usize> Sweep<'_, LANES> {
    #[inline(always)]
    fn touch_all<K: TouchRow<LANES>>(self, kernel: K, set: impl Fn(u64, u64) -> u64) -> usize {
        let mut count = 0;
        for touch in self.touches {
            let selector = &self.selectors[kind(touch)];
            let line = touch.address >> selector.line_shift;
            let row = &mut self.rows[selector.base as usize + set(line, selector.sets) as usize];
            self.misses[count & (SWEEP - 1)] = *touch;
            count += usize::from(kernel.touch_row(row, line, selector.fill) == Touched::Missed);
        }
        count
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
                if selector.fill.enters == 0 {
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
