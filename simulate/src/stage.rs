//! Records → touches of single lines, so that the sweeps behind know neither sizes nor kinds that need thought.
//!
//! **What.** A touch is a [`Record`] whose kind is `Load`, `Store`, `Modify` or `Fetch`, whose address lies in the one line it touches, and
//! whose `extra` is the number of the reference it belongs to: touches of one reference have equal numbers, which is how a level
//! counts it once. **Why this way.** Nearly every record is already a touch: one table look-up and one comparison decide that, and only the others
//! leave the fast loop. A `Modify` within one line is touched once: its store hits the line that its load has just put in front.
//!
//! **Leaves out** everything that depends on cache contents.

use crate::bank::{touches, Touches, SWEEP};
use crate::Levels;
use event::{Record, RecordKind, SIZES};

/// Touches waiting to be swept, and what is needed to make them.
pub(crate) struct Stage {
    pub(crate) touches: Touches,
    pub(crate) len: usize,
    /// Number of the reference whose touches come next.
    pub(crate) reference: u32,
    pub(crate) line_bytes: u64,
    pub(crate) fetch_line_bytes: u64,
    pub(crate) fetches: Fetches,
    /// By code: the highest offset in a line at which such a record is a touch, −1 for none.
    limits: [i32; 256],
}

/// Whether instruction lines are simulated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetches {
    Simulated,
    Ignored,
}

/// References are numbered from here after every drain.
pub(crate) const FIRST_REFERENCE: u32 = 1;

impl Stage {
    pub(crate) fn new(levels: &Levels) -> Stage {
        let line_bytes = u64::from(levels.data.line_bytes);
        let fetches = if levels.instruction.is_some() { Fetches::Simulated } else { Fetches::Ignored };
        let mut limits = [-1; 256];
        for (code, limit) in limits.iter_mut().enumerate() {
            let size_bytes = i64::from(SIZES[code & 15].max(1));
            let kind = code >> 4;
            if kind <= RecordKind::Modify as usize {
                *limit = (line_bytes as i64 - size_bytes).max(-1) as i32;
            } else if kind == RecordKind::Fetch as usize && fetches == Fetches::Simulated {
                *limit = i32::MAX;
            }
        }
        Stage {
            touches: touches(),
            len: 0,
            reference: FIRST_REFERENCE,
            line_bytes,
            fetch_line_bytes: levels.instruction.map_or(1, |geometry| geometry.line_bytes.into()),
            fetches,
            limits,
        }
    }

    /// Stages the leading `records` that are touches, as far as there is room, and returns how many they were.
    pub(crate) fn fill(&mut self, records: &[Record]) -> usize {
        let room = &mut self.touches[self.len..];
        let mask = self.line_bytes as u32 - 1;
        let mut count = 0;
        for (record, touch) in records.iter().zip(room) {
            let offset = (record.address as u32 & mask) as i32;
            if offset > self.limits[record.code().0 as usize] {
                break;
            }
            *touch = Record { extra: self.reference.wrapping_add(count as u32), ..*record };
            count += 1;
        }
        self.len += count;
        self.reference = self.reference.wrapping_add(count as u32);
        count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == SWEEP
    }

    /// Stages one touch of the current reference; there must be room.
    pub(crate) fn push(&mut self, address: u64, what: u32) {
        self.touches[self.len] = Record { address, what, extra: self.reference };
        self.len += 1;
    }
}
