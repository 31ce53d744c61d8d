//! One complex reference: a [`Shape`] and its run-time values, to and from records, and what it
//! touches.
//!
//! **What.** [`Complex::encode`] is what generated code does, [`Complex::decode`] its inverse, and
//! [`Complex::references`] expands to the plain references that `event`'s definition asks for, in
//! its order. **Why this way.** Everything is arithmetic on at most ten words, so that the
//! expansion is a pure function that a single-stepping reference can be held against. **Leaves
//! out** reading target memory: all that is needed is in the values.
//!
//! **Cost.** One call of `emit` per element; nothing is allocated. Source: `shape.rs` and the
//! crate's definition.

use crate::shape::{AddressWidth, MaskedLayout, Segment, StateFormat, StringOperation};
use crate::{
    Access, Malformed, Record, RecordKind, Shape, StateLayout, COMPLEX_CODE, PAYLOAD_CODE, VALUES_MAX,
};

/// A complex reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complex {
    /// What was known when code was generated.
    pub shape: Shape,
    /// Run-time values, [`Shape::values`] of them; the rest 0.
    pub values: [u64; VALUES_MAX],
}

impl Complex {
    /// A complex reference from its values, in the order of `shape.rs`.
    ///
    /// # Panics
    /// When `values` are not as many as the shape has.
    pub fn new(shape: Shape, values: &[u64]) -> Complex {
        assert_eq!(values.len(), shape.values());
        let mut all = [0; VALUES_MAX];
        all[..values.len()].copy_from_slice(values);
        Complex { shape, values: all }
    }

    /// Appends the group of records that generated code would write for `site`.
    pub fn encode(&self, site: u32, out: &mut Vec<Record>) {
        let what = site << 8;
        out.push(Record {
            address: self.values[0],
            what: what | u32::from(COMPLEX_CODE),
            extra: self.shape.extra(),
        });
        for (index, &address) in self.values[..self.shape.values()].iter().enumerate().skip(1) {
            out.push(Record { address, what: what | u32::from(PAYLOAD_CODE), extra: index as u32 });
        }
    }

    /// The reference that `group` (a `Complex` record and all its payloads) holds.
    ///
    /// # Errors
    /// When the group is not one that [`Complex::encode`] writes.
    pub fn decode(group: &[Record]) -> Result<Complex, Malformed> {
        let first = group.first().ok_or(Malformed::NotComplex)?;
        let shape = group_shape(first)?;
        if group.len() != shape.values() {
            return Err(Malformed::Values(group.len(), shape.values()));
        }
        let mut values = [0; VALUES_MAX];
        values[0] = first.address;
        let what = first.what & !0xff | u32::from(PAYLOAD_CODE);
        for (index, record) in group.iter().enumerate().skip(1) {
            if record.what != what || record.extra != index as u32 {
                return Err(Malformed::Payload(index));
            }
            values[index] = record.address;
        }
        Ok(Complex { shape, values })
    }

    /// Iterations of a repeated string instruction (0 is possible); 1 for everything else.
    pub fn iterations(&self) -> u64 {
        match self.shape {
            Shape::String { .. } => self.string_walk().1,
            _ => 1,
        }
    }

    /// Whether it repeats until its count is used up, once at least: a repeated `movs`, `stos` or
    /// `lods`. What compares may end before.
    pub fn runs_its_count_down(&self) -> bool {
        use StringOperation::{Lods, Movs, Stos};
        matches!(self.shape, Shape::String { operation: Movs | Stos | Lods, .. }) && self.iterations() > 0
    }

    /// Bytes that the reference walks over where its length is a run-time value: an operation on a
    /// string, a tile. 0 where the shape alone bounds it. A record that was not written by
    /// generated code can claim any number.
    pub fn walked_bytes(&self) -> u64 {
        match self.shape {
            Shape::String { element_bytes, .. } => self.iterations().saturating_mul(element_bytes.into()),
            Shape::Tile { .. } => (self.values[2] & 0xff) * (self.values[3] & 0xffff),
            _ => 0,
        }
    }

    /// How many loads and stores it makes, without walking over a string. Cost: at most 255 calls,
    /// for a tile.
    pub fn loads_and_stores(&self, layout: &StateLayout) -> (u64, u64) {
        let (mut loads, mut stores) = (0, 0);
        match self.shape {
            Shape::String { operation, .. } => {
                use StringOperation::*;
                let (load, store) = match operation {
                    Movs => (1, 1),
                    Stos => (0, 1),
                    Lods | Scas => (1, 0),
                    Cmps => (2, 0),
                };
                let iterations = self.iterations();
                (loads, stores) = (iterations.saturating_mul(load), iterations.saturating_mul(store));
            }
            _ => self.references(layout, |_, _, access| match access {
                Access::Load => loads += 1,
                Access::Store => stores += 1,
                Access::Prefetch => {}
            }),
        }
        (loads, stores)
    }

    /// Calls `emit(address, size_bytes, access)` for each reference, in the order of the
    /// definition.
    pub fn references(&self, layout: &StateLayout, mut emit: impl FnMut(u64, u32, Access)) {
        let [base, second, third, fourth, ..] = self.values;
        match self.shape {
            Shape::String { .. } => self.string(&mut emit),
            Shape::Masked { .. } => {
                if let Some((address, size_bytes, access)) = masked_reference(self.shape, base, second) {
                    emit(address, size_bytes, access);
                }
            }
            Shape::Gather { .. } => self.gather(&mut emit),
            Shape::State { direction, format } => {
                let size_bytes = match format {
                    StateFormat::Standard => layout.standard_bytes(second),
                    StateFormat::Compact => layout.compact_bytes(second, second),
                    StateFormat::Restore if third >> 63 != 0 => layout.compact_bytes(third, second),
                    StateFormat::Restore => layout.standard_bytes(second),
                };
                emit(base, size_bytes, direction.access());
            }
            Shape::Sized { direction, size_bytes } => emit(base, u32::from(size_bytes), direction.access()),
            Shape::Tile { direction } => {
                // Rows and row bytes are architecturally below 256 and 65536; damaged values must
                // not loop for ever.
                for row in 0..third & 0xff {
                    let address = base.wrapping_add(second.wrapping_mul(row));
                    if fourth & 0xffff > 0 {
                        emit(address, fourth as u32 & 0xffff, direction.access());
                    }
                }
            }
        }
    }

    /// The references in stretches: calls `emit(references, times)` where `references` follow each
    /// other `times` over, each of them always within one aligned block of `line_bytes`, a power of
    /// two. Where an iteration of a string instruction leaves its blocks, or a reference crosses
    /// from one to the next, a stretch of its own begins. Cost: one call per block that a string
    /// instruction walks over, not per element.
    pub fn stretches(
        &self,
        layout: &StateLayout,
        line_bytes: u64,
        mut emit: impl FnMut(&[(u64, u32, Access)], u64),
    ) {
        let Shape::String { operation, element_bytes, .. } = self.shape else {
            return self.references(layout, |address, size_bytes, access| {
                emit(&[(address, size_bytes, access)], 1);
            });
        };
        // From block to block of memory, not from element to element.
        let (step, iterations) = self.string_walk();
        let size_bytes = u32::from(element_bytes);
        let mut iteration = 0;
        while iteration < iterations {
            let (source, destination) = self.string_addresses(step, iteration);
            // How long source and destination stay within their blocks; the shorter stay ends the
            // stretch.
            let stays = [
                self.stay((source, source.wrapping_sub(self.source_base())), step, line_bytes),
                self.stay((destination, destination), step, line_bytes),
            ];
            let source = (source, size_bytes, Access::Load);
            use StringOperation::*;
            let (pair, count) = match operation {
                Movs => ([source, (destination, size_bytes, Access::Store)], 2),
                Cmps => ([source, (destination, size_bytes, Access::Load)], 2),
                Stos => ([(destination, size_bytes, Access::Store); 2], 1),
                Scas => ([(destination, size_bytes, Access::Load); 2], 1),
                Lods => ([source; 2], 1),
            };
            let references = &pair[..count];
            let stay = match operation {
                Movs | Cmps => stays[0].min(stays[1]),
                Lods => stays[0],
                Stos | Scas => stays[1],
            };
            let times = stay.min(iterations - iteration);
            emit(references, times);
            iteration += times;
        }
    }

    /// Iterations, this one included, in which the reference at `address` stays within its block; 1
    /// where it crosses into the next. `offset` is the address without its segment's base, which
    /// wraps where addresses have 32 bits.
    fn stay(&self, (address, offset): (u64, u64), step: u64, line_bytes: u64) -> u64 {
        let Shape::String { element_bytes, width, .. } = self.shape else { return 1 };
        let (in_block, bytes) = (address & (line_bytes - 1), u64::from(element_bytes));
        let Some(behind) = (line_bytes - in_block).checked_sub(bytes) else { return 1 };
        if (step as i64) < 0 {
            return in_block.min(offset) / bytes + 1;
        }
        behind.min(width.mask() - offset) / bytes + 1
    }

    /// Source and destination of an iteration.
    fn string_addresses(&self, step: u64, iteration: u64) -> (u64, u64) {
        let Shape::String { width, .. } = self.shape else { return (0, 0) };
        let (offset, mask) = (step.wrapping_mul(iteration), width.mask());
        let source = (self.values[0].wrapping_add(offset) & mask).wrapping_add(self.source_base());
        (source, self.values[1].wrapping_add(offset) & mask)
    }

    /// The base of the source's segment.
    fn source_base(&self) -> u64 {
        let based = matches!(self.shape, Shape::String { segment: Segment::Based, .. });
        if based {
            self.values[3]
        } else {
            0
        }
    }

    /// Step of an iteration and number of iterations.
    fn string_walk(&self) -> (u64, u64) {
        let Shape::String { operation, element_bytes, width, .. } = self.shape else { return (0, 0) };
        let before = self.values[usize::from(operation != StringOperation::Lods)];
        let moved = self.values[2].wrapping_sub(before);
        let moved = match width {
            AddressWidth::Bits64 => moved as i64,
            AddressWidth::Bits32 => i64::from(moved as i32),
        };
        let step = i64::from(element_bytes) * moved.signum();
        (step as u64, moved.unsigned_abs() / u64::from(element_bytes))
    }

    fn string(&self, emit: &mut impl FnMut(u64, u32, Access)) {
        let Shape::String { operation, element_bytes, .. } = self.shape else { return };
        let (step, iterations) = self.string_walk();
        let size_bytes = u32::from(element_bytes);
        for iteration in 0..iterations {
            let (source, destination) = self.string_addresses(step, iteration);
            use StringOperation::*;
            if matches!(operation, Movs | Lods | Cmps) {
                emit(source, size_bytes, Access::Load);
            }
            match operation {
                Movs | Stos => emit(destination, size_bytes, Access::Store),
                Scas | Cmps => emit(destination, size_bytes, Access::Load),
                Lods => {}
            }
        }
    }

    fn gather(&self, emit: &mut impl FnMut(u64, u32, Access)) {
        let Shape::Gather { direction, scale, index_bytes, element_bytes, count, width } = self.shape else {
            return;
        };
        let indices = &self.values[2..];
        for element in (0..usize::from(count)).filter(|&element| self.values[1] >> element & 1 != 0) {
            let index = match index_bytes {
                4 => (indices[element / 2] >> (element % 2 * 32)) as i32 as u64,
                _ => indices[element],
            };
            let address = self.values[0].wrapping_add(index.wrapping_mul(u64::from(scale))) & width.mask();
            emit(address, u32::from(element_bytes), direction.access());
        }
    }
}

impl AddressWidth {
    fn mask(self) -> u64 {
        match self {
            AddressWidth::Bits64 => u64::MAX,
            AddressWidth::Bits32 => u64::from(u32::MAX),
        }
    }
}

/// The shape that a group's first record names.
///
/// # Errors
/// When `first` does not start a group, or names no shape.
pub fn group_shape(first: &Record) -> Result<Shape, Malformed> {
    if first.code().kind() != RecordKind::Complex || first.code().0 != COMPLEX_CODE {
        return Err(Malformed::NotComplex);
    }
    Shape::from_extra(first.extra)
}

/// The reference that a masked access of `shape` makes with its two values; none where no element
/// is enabled, or the shape is another one. Far cheaper than a [`Complex`], because string
/// functions of a C library compare under masks all the time.
pub fn masked_reference(shape: Shape, base: u64, mask: u64) -> Option<(u64, u32, Access)> {
    let Shape::Masked { direction, layout, element_bytes, count } = shape else { return None };
    let (skip_bytes, size_bytes) = masked_span(layout, element_bytes, mask & low_bits(count));
    (size_bytes > 0).then(|| (base.wrapping_add(skip_bytes), size_bytes, direction.access()))
}

fn low_bits(count: u8) -> u64 {
    u64::MAX >> (64 - u32::from(count))
}

/// First byte from the base, and size, of what a masked access touches.
fn masked_span(layout: MaskedLayout, element_bytes: u8, mask: u64) -> (u64, u32) {
    if mask == 0 {
        return (0, 0);
    }
    let (first, past_last) = match layout {
        MaskedLayout::InPlace => (mask.trailing_zeros(), 64 - mask.leading_zeros()),
        MaskedLayout::Packed => (0, mask.count_ones()),
        MaskedLayout::Broadcast => (0, 1),
    };
    (u64::from(first) * u64::from(element_bytes), (past_last - first) * u32::from(element_bytes))
}
