//! Records → touches of single lines, so that the sweeps behind know neither sizes nor kinds that need thought.
//!
//! **Why this way.** Nearly every record is already a touch: its code gives the highest offset in a line at which it is, and a vector
//! compares sixteen at once; only the others leave the fast loop, and those that cross into the next line come back to it at once. A `Modify` within one line is touched once: its store hits the line that
//! its load has just put in front.
//!
//! **Leaves out** everything that depends on cache contents.

use crate::kernel::{Kernel, Pass, Vectors};
use crate::touch::{Touches, STEP, SWEEP};
use crate::Levels;
use event::{Record, RecordKind, SIZES};

/// Touches waiting to be swept, and what is needed to make them.
pub(crate) struct Stage {
    pub(crate) touches: Box<Touches>,
    /// Number of the reference whose touches come next.
    pub(crate) reference: u32,
    pub(crate) line_bytes: u64,
    pub(crate) fetch_line_bytes: u64,
    pub(crate) fetches: Fetches,
    limits: Limits,
    kernel: Kernel,
}

/// Whether instruction lines are simulated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetches {
    Simulated,
    Ignored,
}

/// References are numbered from here after every drain.
pub(crate) const FIRST_REFERENCE: u32 = 1;

/// Which records are touches: those at an offset in their line that is at most `sizes[size] & masks[kind] | kinds[kind]`.
pub(crate) struct Limits {
    pub(crate) offset_mask: u32,
    pub(crate) sizes: [i32; 16],
    pub(crate) masks: [i32; 16],
    pub(crate) kinds: [i32; 16],
}

impl Limits {
    fn new(line_bytes: u64, fetches: Fetches) -> Limits {
        let size = |bytes: u32| (line_bytes as i64 - i64::from(bytes.max(1))).max(-1) as i32;
        // No offset is −1 or less; every offset is less than the largest number.
        let (mut masks, mut kinds) = ([0; 16], [-1; 16]);
        for kind in [RecordKind::Load, RecordKind::Store, RecordKind::Modify] {
            (masks[kind as usize], kinds[kind as usize]) = (-1, 0);
        }
        if fetches == Fetches::Simulated {
            kinds[RecordKind::Fetch as usize] = i32::MAX;
        }
        Limits { offset_mask: line_bytes as u32 - 1, sizes: SIZES.map(size), masks, kinds }
    }

    /// Whether `record` is a touch.
    #[inline(always)]
    pub(crate) fn hold(&self, record: &Record) -> bool {
        let (size, kind) = (record.what as usize & 15, (record.what >> 4) as usize & 15);
        let limit = self.sizes[size] & self.masks[kind] | self.kinds[kind];
        (record.address as u32 & self.offset_mask) as i32 <= limit
    }

    /// The line that `record` touches behind its first one, where it is a load or a store that touches two.
    #[inline(always)]
    fn second_line(&self, record: &Record) -> Option<u64> {
        let plain = [RecordKind::Load, RecordKind::Store].contains(&record.code().kind());
        let line_bytes = u64::from(self.offset_mask) + 1;
        let last = record.address.checked_add(u64::from(record.code().size_bytes().max(1)) - 1)?;
        let second = (record.address & !(line_bytes - 1)).checked_add(line_bytes)?;
        (plain && (second..=second + (line_bytes - 1)).contains(&last)).then_some(second)
    }
}

impl Stage {
    pub(crate) fn new(levels: &Levels) -> Stage {
        let line_bytes = u64::from(levels.data.line_bytes);
        let fetches = if levels.instruction.is_some() { Fetches::Simulated } else { Fetches::Ignored };
        Stage {
            touches: Touches::empty(),
            reference: FIRST_REFERENCE,
            line_bytes,
            fetch_line_bytes: levels.instruction.map_or(1, |geometry| geometry.line_bytes.into()),
            fetches,
            limits: Limits::new(line_bytes, fetches),
            kernel: Kernel::fastest(),
        }
    }

    /// Stages the leading `records` that are touches, as far as there is room, and returns how many they were.
    pub(crate) fn fill(&mut self, records: &[Record]) -> usize {
        let Stage { touches, reference, limits, kernel, .. } = self;
        let count = kernel.pass(Fill { records, limits, reference: *reference, touches });
        self.reference = self.reference.wrapping_add(count as u32);
        count
    }

    /// Whether there is no room for a step.
    pub(crate) fn is_full(&self) -> bool {
        self.touches.len > SWEEP - STEP
    }

    /// Stages one touch of the current reference; there must be room.
    pub(crate) fn push(&mut self, address: u64, what: u32) {
        self.touches.push(address, what, self.reference);
    }
}

/// All records of a step are touches.
const ALL: u32 = (1 << STEP) - 1;

struct Fill<'a> {
    records: &'a [Record],
    limits: &'a Limits,
    reference: u32,
    touches: &'a mut Touches,
}

impl Pass for Fill<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Vectors>(self, kernel: K) -> usize {
        let Fill { records, limits, reference, touches } = self;
        let mut count = 0;
        while touches.len <= SWEEP - STEP {
            let Some(step) = records[count..].first_chunk() else { break };
            let good = kernel.stage(step, limits, reference.wrapping_add(count as u32), touches);
            // The next step begins before it is known that this one is whole.
            if good == ALL {
                touches.len += STEP;
                count += STEP;
                continue;
            }
            let leading = good.trailing_ones() as usize;
            touches.len += leading;
            count += leading;
            // The next record is none; that it only crosses into the next line is common.
            let Some(second) = limits.second_line(&records[count]) else { return count };
            if touches.len + 2 > SWEEP {
                return count;
            }
            let Record { address, what, .. } = records[count];
            let reference = reference.wrapping_add(count as u32);
            touches.push(address, what, reference);
            touches.push(second, what, reference);
            count += 1;
        }
        for record in &records[count..] {
            if touches.len > SWEEP - STEP || !limits.hold(record) {
                break;
            }
            touches.push(record.address, record.what, reference.wrapping_add(count as u32));
            count += 1;
        }
        count
    }
}
