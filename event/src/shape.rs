//! The shapes of references that one record cannot hold: repeated strings, masks, gathers, state
//! areas, odd sizes, tiles.
//!
//! **What.** A [`Complex`](crate::Complex) is a [`Shape`] (all that is known when code is
//! generated) and up to [`VALUES_MAX`] run-time values of 64 bits. In a stream it is a group of
//! consecutive records of one thread:
//!
//! | record | `address` | `what` | `extra` |
//! |---|---|---|---|
//! | first | value 0 | site << 8 \| [`COMPLEX_CODE`] | [`Shape::extra`] |
//! | i = 1 … k | value i | site << 8 \| [`PAYLOAD_CODE`] | i |
//!
//! `extra` of the first record holds the kind in bits 0..8, k = values − 1 in 8..16, parameters in
//! 16..32.
//!
//! **Why this way.** Generated code then writes constants and one 8-byte register per record and
//! does no arithmetic, so that it needs no flags (they live on after `repe cmps`). Every record
//! says by its low byte whether it continues a group, so a reader finds the next group after
//! damage.
//!
//! | shape | values |
//! |---|---|
//! | `String` | rsi before, rdi before, rdi after (`lods`: rsi after); a based segment's base |
//! | `Masked` | linear address of element 0, mask: bit i enables element i |
//! | `Gather` | linear address of index 0, mask, the index register's low bytes, 8 per value |
//! | `State` | address, edx:eax & XCR0; to restore, the area's XCOMP_BV (at address + 520) |
//! | `Sized` | address |
//! | `Tile` | linear address of row 0, stride register, rows, bytes per row |
//!
//! Bits of a mask from `count` up are ignored. The address of index 0 is segment base + base +
//! displacement.
//!
//! `String` is emitted after execution (a signal or fault in the middle: for the iterations that
//! were made; the restarted instruction then emits the rest), all others before. **Leaves out**
//! which sizes XSAVE's components have: that is the processor's, see
//! [`StateLayout`](crate::StateLayout). Source: our own; Intel SDM volumes 1 (13.4, 13.8) and 2 for
//! the operations.

use crate::{Access, RecordKind};

/// Low byte of `what` of the first record of a group.
pub const COMPLEX_CODE: u8 = (RecordKind::Complex as u8) << 4;
/// Low byte of `what` of the other records of a group.
pub const PAYLOAD_CODE: u8 = (RecordKind::Payload as u8) << 4;
/// Most values that a shape has (a gather with 64 bytes of indices).
pub const VALUES_MAX: usize = 10;

/// A repeated string instruction's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringOperation {
    /// Load `[rsi]`, store `[rdi]`.
    Movs,
    /// Store `[rdi]`.
    Stos,
    /// Load `[rsi]`.
    Lods,
    /// Load `[rdi]`.
    Scas,
    /// Load `[rsi]`, load `[rdi]`.
    Cmps,
}

/// Bits of an address computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressWidth {
    /// The default.
    Bits64,
    /// With an address-size prefix: offsets wrap at 2^32, before the segment base is added.
    Bits32,
}

/// Whether a string's source has an `fs` or `gs` prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// No prefix: the base is 0 and not a value of the group.
    Flat,
    /// The last value of the group is the base.
    Based,
}

/// What a complex reference does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Reads.
    Load,
    /// Writes.
    Store,
}

impl Direction {
    /// The [`Access`] that this direction is.
    pub fn access(self) -> Access {
        match self {
            Direction::Load => Access::Load,
            Direction::Store => Access::Store,
        }
    }
}

/// Where the elements of a masked access lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskedLayout {
    /// Element i at base + i × size: masked moves, `vmaskmov`, `maskmovdqu`, masked operands.
    InPlace,
    /// Enabled elements one after the other from base: `vpcompress` to and `vpexpand` from memory.
    Packed,
    /// One element at base, read when any element is enabled: embedded and explicit broadcasts
    /// under a mask.
    Broadcast,
}

/// How an XSAVE area is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateFormat {
    /// `xsave`, `xsaveopt`.
    Standard,
    /// `xsavec`.
    Compact,
    /// `xrstor`: bit 63 of the value XCOMP_BV says which.
    Restore,
}

/// The part of a complex reference that is known when code is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A repeated string instruction.
    String {
        /// What one iteration does.
        operation: StringOperation,
        /// 1, 2, 4 or 8.
        element_bytes: u8,
        /// 32 with an address-size prefix.
        width: AddressWidth,
        /// Whether the source has a segment base.
        segment: Segment,
    },
    /// A masked vector access.
    Masked {
        /// Load or store.
        direction: Direction,
        /// Where elements lie.
        layout: MaskedLayout,
        /// Bytes of an element in memory: 1, 2, 4, 8, 16 or 32.
        element_bytes: u8,
        /// Elements, 1 to 64.
        count: u8,
    },
    /// A gather or scatter: element i at `base + index[i] × scale`.
    Gather {
        /// Load for a gather, store for a scatter.
        direction: Direction,
        /// 1, 2, 4 or 8.
        scale: u8,
        /// 4 or 8; indices are signed.
        index_bytes: u8,
        /// 4 or 8.
        element_bytes: u8,
        /// Elements, 1 to 16.
        count: u8,
        /// 32 with an address-size prefix (then value 0 must be without segment base).
        width: AddressWidth,
    },
    /// The XSAVE family (`fxsave` is a plain record of 512 bytes).
    State {
        /// Load or store.
        direction: Direction,
        /// Layout.
        format: StateFormat,
    },
    /// One access of a size that has no code.
    Sized {
        /// Load or store.
        direction: Direction,
        /// Up to 32767.
        size_bytes: u16,
    },
    /// `tileloadd`, `tilestored`: a reference per row.
    Tile {
        /// Load or store.
        direction: Direction,
    },
}

/// Why a group of records is not a complex reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first record is not of kind `Complex`.
    NotComplex,
    /// `extra` of the first record names no shape.
    UnknownShape(u32),
    /// The group has this many values; the shape needs that many.
    Values(usize, usize),
    /// The record with this index is not the payload that it should be.
    Payload(usize),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::NotComplex => write!(f, "the group does not start with a complex record"),
            Malformed::UnknownShape(extra) => write!(f, "{extra:#x} names no shape of a complex reference"),
            Malformed::Values(have, need) => write!(f, "the group has {have} values, its shape needs {need}"),
            Malformed::Payload(index) => {
                write!(f, "record {index} of the group is not payload {index} of the same site")
            }
        }
    }
}

impl std::error::Error for Malformed {}

/// The 16 parameter bits of a shape, filled and emptied from the low end.
#[derive(Default)]
struct Fields {
    bits: u32,
    at: u32,
}

impl Fields {
    fn put(mut self, field: u32, width: u32) -> Fields {
        assert!(field < 1 << width, "{field} does not fit into {width} bits");
        self.bits |= field << self.at;
        self.at += width;
        assert!(self.at <= 16);
        self
    }

    fn take(&mut self, width: u32) -> u32 {
        let field = (self.bits >> self.at) & ((1 << width) - 1);
        self.at += width;
        field
    }

    /// A power of two by its logarithm.
    fn put_power(self, bytes: u8, width: u32) -> Fields {
        assert!(bytes.is_power_of_two());
        self.put(bytes.trailing_zeros(), width)
    }

    fn take_power(&mut self, width: u32) -> u8 {
        1 << self.take(width)
    }

    fn put_direction(self, direction: Direction) -> Fields {
        self.put(u32::from(direction == Direction::Store), 1)
    }

    fn take_direction(&mut self) -> Direction {
        [Direction::Load, Direction::Store][self.take(1) as usize]
    }

    fn put_width(self, width: AddressWidth) -> Fields {
        self.put(u32::from(width == AddressWidth::Bits32), 1)
    }

    fn take_width(&mut self) -> AddressWidth {
        [AddressWidth::Bits64, AddressWidth::Bits32][self.take(1) as usize]
    }
}

impl Shape {
    /// The bits that [`Shape::extra`] of frequent masked accesses has, and those that it may have
    /// in addition: in place or packed, with elements of up to eight bytes. Whatever has the former
    /// and no others than the latter is such a shape.
    pub const MASKED_EXTRA: (u32, u32) = (1 | 1 << 8, 0b1111_1101_1011 << 16);

    /// Values of a group of this shape: its records.
    pub fn values(self) -> usize {
        match self {
            Shape::String { segment: Segment::Flat, .. } => 3,
            Shape::String { segment: Segment::Based, .. } => 4,
            Shape::Masked { .. } => 2,
            Shape::Gather { index_bytes, count, .. } => {
                2 + (usize::from(index_bytes) * usize::from(count)).div_ceil(8)
            }
            Shape::State { format: StateFormat::Restore, .. } => 3,
            Shape::State { .. } => 2,
            Shape::Sized { .. } => 1,
            Shape::Tile { .. } => 4,
        }
    }

    /// `extra` of the first record: a constant for generated code.
    ///
    /// # Panics
    /// When a size or count is not one that the field's documentation names.
    pub fn extra(self) -> u32 {
        let (kind, fields) = match self {
            Shape::String { operation, element_bytes, width, segment } => {
                let fields = Fields::default().put(operation as u32, 3).put_power(element_bytes, 2);
                (0, fields.put_width(width).put(u32::from(segment == Segment::Based), 1))
            }
            Shape::Masked { direction, layout, element_bytes, count } => {
                let fields = Fields::default().put_direction(direction).put(layout as u32, 2);
                (1, fields.put_power(element_bytes, 3).put(u32::from(count) - 1, 6))
            }
            Shape::Gather { direction, scale, index_bytes, element_bytes, count, width } => {
                let fields = Fields::default().put_direction(direction).put_power(scale, 2);
                let fields = fields.put_power(index_bytes / 4, 1).put_power(element_bytes / 4, 1);
                (2, fields.put(u32::from(count) - 1, 4).put_width(width))
            }
            Shape::State { direction, format } => {
                (3, Fields::default().put_direction(direction).put(format as u32, 2))
            }
            Shape::Sized { direction, size_bytes } => {
                (4, Fields::default().put_direction(direction).put(u32::from(size_bytes), 15))
            }
            Shape::Tile { direction } => (5, Fields::default().put_direction(direction)),
        };
        kind | (self.values() as u32 - 1) << 8 | fields.bits << 16
    }

    /// The shape that `extra` names; the inverse of [`Shape::extra`].
    ///
    /// # Errors
    /// [`Malformed::UnknownShape`] for every value that `extra` never returns.
    pub fn from_extra(extra: u32) -> Result<Shape, Malformed> {
        let mut fields = Fields { bits: extra >> 16, at: 0 };
        let shape = Shape::take(extra & 0xff, &mut fields).ok_or(Malformed::UnknownShape(extra))?;
        // Unused bits, sizes out of range and a wrong k all show here.
        if shape.is_valid() && shape.extra() == extra {
            Ok(shape)
        } else {
            Err(Malformed::UnknownShape(extra))
        }
    }

    fn take(kind: u32, fields: &mut Fields) -> Option<Shape> {
        use StringOperation::*;
        // Fields are taken in the order in which `extra` put them. An initialiser runs its fields
        // in the order of this source text, so reordering them would change the encoding.
        Some(match kind {
            0 => Shape::String {
                // Three bits hold eight numbers and there are five operations, so `get` refuses the
                // others.
                operation: *[Movs, Stos, Lods, Scas, Cmps].get(fields.take(3) as usize)?,
                element_bytes: fields.take_power(2),
                width: fields.take_width(),
                segment: [Segment::Flat, Segment::Based][fields.take(1) as usize],
            },
            1 => Shape::Masked {
                direction: fields.take_direction(),
                layout: *[MaskedLayout::InPlace, MaskedLayout::Packed, MaskedLayout::Broadcast]
                    .get(fields.take(2) as usize)?,
                element_bytes: fields.take_power(3),
                count: fields.take(6) as u8 + 1,
            },
            2 => Shape::Gather {
                direction: fields.take_direction(),
                scale: fields.take_power(2),
                index_bytes: 4 * fields.take_power(1),
                element_bytes: 4 * fields.take_power(1),
                count: fields.take(4) as u8 + 1,
                width: fields.take_width(),
            },
            3 => Shape::State {
                direction: fields.take_direction(),
                format: *[StateFormat::Standard, StateFormat::Compact, StateFormat::Restore]
                    .get(fields.take(2) as usize)?,
            },
            4 => Shape::Sized { direction: fields.take_direction(), size_bytes: fields.take(15) as u16 },
            5 => Shape::Tile { direction: fields.take_direction() },
            _ => return None,
        })
    }

    /// Whether counts and sizes are such as their documentation names.
    fn is_valid(self) -> bool {
        match self {
            Shape::Masked { element_bytes, .. } => element_bytes <= 32,
            Shape::Gather { index_bytes, count, .. } => usize::from(index_bytes) * usize::from(count) <= 64,
            Shape::Sized { size_bytes, .. } => size_bytes > 0,
            _ => true,
        }
    }
}
