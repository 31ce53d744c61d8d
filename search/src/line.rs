//! A cache line as a value: 64 aligned bytes that can be read as lanes of 8, 16, 32, 64 or 128
//! bits.
//!
//! Every layout is a slice of [`Line`]s and nothing else. The same representation is searched,
//! written to files and read back, so nothing has to be converted, and alignment is a property of
//! the type. Lanes have the byte order of the machine; files are little endian and refused on other
//! machines (see `file`).
//!
//! This is one of the few files with `unsafe`, which is needed to read a line as lanes; it does not
//! depend on the lines' contents.

/// Bytes of a line of memory, the unit of layouts and of queries.
pub const LINE_BYTES: usize = 64;

/// 64 bytes, aligned to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE_BYTES]);

/// Lane types: every bit pattern is a value, no padding, size divides 64 and alignment divides 64.
///
/// # Safety
/// An implementor must have these properties: slices of lines are reinterpreted as slices of lanes.
pub(crate) unsafe trait Plain: Copy + 'static {}
// SAFETY: an unsigned integer has no invalid bit pattern, no padding, and a power-of-two size of at
// most 16 bytes.
unsafe impl Plain for u8 {}
// SAFETY: every bit pattern is a u16, which has two bytes and no padding.
unsafe impl Plain for u16 {}
// SAFETY: every bit pattern is a u32, which has four bytes and no padding.
unsafe impl Plain for u32 {}
// SAFETY: every bit pattern is a u64, which has eight bytes and no padding.
unsafe impl Plain for u64 {}
// SAFETY: every bit pattern is a u128, which has sixteen bytes and no padding.
unsafe impl Plain for u128 {}

impl Line {
    /// All bits set: padding; no key is greater.
    pub(crate) const PADDING: Line = Line([0xFF; LINE_BYTES]);
    /// All bits clear.
    pub(crate) const ZERO: Line = Line([0; LINE_BYTES]);

    /// The line's bytes.
    #[inline(always)]
    pub(crate) fn u8s(&self) -> &[u8; 64] {
        &self.0
    }

    /// The line as 32 lanes of 16 bits.
    #[inline(always)]
    pub(crate) fn u16s(&self) -> &[u16; 32] {
        // SAFETY: same size, smaller alignment, and every bit pattern is a u16.
        unsafe { &*(&raw const self.0).cast() }
    }

    /// The line as 16 lanes of 32 bits.
    #[inline(always)]
    pub(crate) fn u32s(&self) -> &[u32; 16] {
        // SAFETY: same size, smaller alignment, and every bit pattern is a u32.
        unsafe { &*(&raw const self.0).cast() }
    }

    /// The line as 8 lanes of 64 bits.
    #[inline(always)]
    pub(crate) fn u64s(&self) -> &[u64; 8] {
        // SAFETY: same size, smaller alignment, and every bit pattern is a u64.
        unsafe { &*(&raw const self.0).cast() }
    }
}

/// `lines` as one flat slice of lanes.
#[inline(always)]
pub(crate) fn lanes<T: Plain>(lines: &[Line]) -> &[T] {
    let count = size_of_val(lines) / size_of::<T>();
    // SAFETY: a line is aligned to 64 and made of whole lanes, and `Plain` promises that any bytes
    // are lanes.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), count) }
}

/// `lines` as one flat mutable slice of lanes.
#[inline(always)]
pub(crate) fn lanes_mut<T: Plain>(lines: &mut [Line]) -> &mut [T] {
    let count = size_of_val(lines) / size_of::<T>();
    // SAFETY: a line is aligned to 64 and made of whole lanes; the exclusive borrow of the lines is
    // handed on, and any lanes are valid lines.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), count) }
}

/// A slice of lines for loops that keep places of lines as distances in bytes, so that a place is
/// an address without another multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<'a> {
    lines: &'a [Line],
}

/// The place of a line in a [`Level`]: its distance in bytes from the first one.
///
/// **Invariant.** The distance is a multiple of [`LINE_BYTES`]: it starts at 0, and a step
/// multiplies it and adds such a multiple. A multiple that overflows stays one, because
/// [`LINE_BYTES`] is a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl<'a> Level<'a> {
    /// The level of these lines.
    pub(crate) fn of(lines: &'a [Line]) -> Level<'a> {
        Level { lines }
    }

    /// The line at a place.
    ///
    /// # Panics
    /// When the place is behind the last line.
    #[inline(always)]
    pub(crate) fn at(self, place: Place) -> &'a Line {
        assert!(place.0 < size_of_val(self.lines), "a place is inside its level");
        // SAFETY: the place is a multiple of a line's bytes, and it was checked to begin inside the
        // slice, which is made of whole lines.
        unsafe { &*self.lines.as_ptr().byte_add(place.0) }
    }

    /// The lines.
    #[inline(always)]
    pub(crate) fn lines(self) -> &'a [Line] {
        self.lines
    }
}

impl Place {
    /// The first line's place.
    pub(crate) const FIRST: Place = Place(0);

    /// The place of child `child` of the node at this place, where each node has `fanout` children.
    #[inline(always)]
    pub(crate) fn child(self, fanout: usize, child: usize) -> Place {
        Place(self.0.wrapping_mul(fanout).wrapping_add(child.wrapping_mul(LINE_BYTES)))
    }

    /// The number of the line at this place.
    #[inline(always)]
    pub(crate) fn number(self) -> usize {
        self.0 / LINE_BYTES
    }

    /// The rank of the first of the lanes at this place, with `per_line` lanes in a line.
    #[inline(always)]
    pub(crate) fn first_lane<T>(self) -> usize {
        self.0 / size_of::<T>()
    }
}

/// A slice of lanes as the bytes that a file holds.
#[cfg(feature = "std")]
pub(crate) fn bytes_of<T: Plain>(lanes: &[T]) -> &[u8] {
    // SAFETY: `Plain` has no padding, so every byte is initialised; u8 has alignment 1.
    unsafe { core::slice::from_raw_parts(lanes.as_ptr().cast(), size_of_val(lanes)) }
}

/// `bytes` as lines; `None` unless they start on a 64-byte boundary and are whole lines.
pub(crate) fn lines_of(bytes: &[u8]) -> Option<&[Line]> {
    if !(bytes.as_ptr() as usize).is_multiple_of(LINE_BYTES) || !bytes.len().is_multiple_of(LINE_BYTES) {
        return None;
    }
    // SAFETY: alignment and length were just checked, and any 64 bytes are a line.
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / LINE_BYTES) })
}

/// Number of whole lines that hold `count` lanes of type `T`.
pub(crate) const fn lines_for<T>(count: usize) -> usize {
    count.div_ceil(LINE_BYTES / size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_see_what_was_written() {
        let mut lines = [Line::ZERO; 2];
        lanes_mut::<u32>(&mut lines)[17] = 0x0102_0304;
        assert_eq!(lines[1].u32s()[1], 0x0102_0304);
        assert_eq!(lanes::<u64>(&lines).len(), 16);
        assert_eq!(lines_for::<u32>(17), 2);
        assert_eq!(lines_for::<u128>(0), 0);
    }

    #[test]
    fn misaligned_bytes_are_not_lines() {
        let lines = [Line::PADDING; 2];
        let bytes: &[u8] = lanes(&lines);
        assert!(lines_of(bytes).is_some());
        assert!(lines_of(&bytes[1..65]).is_none());
        assert!(lines_of(&bytes[..63]).is_none());
    }
}
