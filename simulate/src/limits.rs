//! Decides which records are touches of one line, by two look-ups and a comparison.
//!
//! A record of kind k and size s at offset o in its line is one touch where `o <= limit(k, s)`. The
//! limit is kept in three small tables, so that a vector looks up sixteen at once and no branch
//! depends on the kind:
//!
//! ```text
//! limit = sizes[s] & masks[k] | kinds[k]
//!   data:    masks = all ones, kinds = 0        the last offset at which s bytes fit the line
//!   fetches: masks = 0, kinds = largest number  any offset (-1 where they are ignored)
//!   others:  masks = 0, kinds = -1              no offset
//! ```

use event::{Record, RecordKind, SIZES, WIDE_BYTES};

/// Whether instruction lines are simulated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstructionSide {
    Simulated,
    Ignored,
}

/// Which records are touches: those at an offset in their line that is at most
/// `sizes[size] & masks[kind] | kinds[kind]`.
pub(crate) struct TouchLimits {
    pub(crate) offset_mask: u32,
    pub(crate) sizes: [i32; 16],
    pub(crate) masks: [i32; 16],
    pub(crate) kinds: [i32; 16],
}

impl TouchLimits {
    pub(crate) fn new(line_bytes: u64, fetches: InstructionSide) -> TouchLimits {
        // The last offset at which `bytes` fit into the line; −1 where they fit nowhere.
        let size = |bytes: u32| (line_bytes as i64 - i64::from(bytes.max(1))).max(-1) as i32;
        // No offset is −1 or less; every offset is less than the largest number.
        let (mut masks, mut kinds) = ([0; 16], [-1; 16]);
        for kind in [RecordKind::Load, RecordKind::Store, RecordKind::Modify] {
            (masks[kind as usize], kinds[kind as usize]) = (-1, 0);
        }
        if fetches == InstructionSide::Simulated {
            kinds[RecordKind::Fetch as usize] = i32::MAX;
        }
        TouchLimits { offset_mask: line_bytes as u32 - 1, sizes: SIZES.map(size), masks, kinds }
    }

    /// Whether `record` is a touch.
    #[inline(always)]
    pub(crate) fn hold(&self, record: &Record) -> bool {
        let (size, kind) = (record.what as usize & 15, (record.what >> 4) as usize & 15);
        let limit = self.sizes[size] & self.masks[kind] | self.kinds[kind];
        (record.address as u32 & self.offset_mask) as i32 <= limit
    }

    /// The line that `record` touches behind its first one, where it is a load or a store that
    /// touches two.
    #[inline(always)]
    pub(crate) fn second_line(&self, record: &Record) -> Option<u64> {
        let code = record.code();
        let plain =
            [RecordKind::Load, RecordKind::Store].contains(&code.kind()) && code.size_bytes() <= WIDE_BYTES;
        let line_bytes = u64::from(self.offset_mask) + 1;
        let last = record.address.checked_add(u64::from(record.code().size_bytes().max(1)) - 1)?;
        // The line behind the one of the first byte; the last byte must lie in it.
        let second = (record.address & !(line_bytes - 1)).checked_add(line_bytes)?;
        (plain && (second..=second + (line_bytes - 1)).contains(&last)).then_some(second)
    }
}
