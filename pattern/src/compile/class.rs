//! Classes of bytes as streams: boolean logic over the eight basis streams.
//!
//! A set of bytes is a table of 16 high by 16 low halves. Rows that are equal share one stream for
//! their low halves, so `[a-z]` is `high 6 ∧ low 1–F ∨ high 7 ∧ low 0–A`, and single bytes with the
//! same high half share that. Sets with many different rows are decision diagrams over all eight
//! bits instead; the builder shares equal subdiagrams in both. Source: Cameron et al. 2014, section
//! 2.

use crate::program::{Builder, Value};

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ByteSet([u16; 16]);

impl ByteSet {
    pub(super) const EMPTY: ByteSet = ByteSet([0; 16]);

    pub(super) fn single(byte: u8) -> ByteSet {
        ByteSet::EMPTY.with(byte..=byte)
    }

    pub(super) fn with(mut self, range: std::ops::RangeInclusive<u8>) -> ByteSet {
        range.for_each(|byte| self.0[usize::from(byte >> 4)] |= 1 << (byte & 15));
        self
    }

    pub(super) fn without(mut self, byte: u8) -> ByteSet {
        self.0[usize::from(byte >> 4)] &= !(1 << (byte & 15));
        self
    }

    pub(super) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 4)] >> (byte & 15) & 1 == 1
    }

    pub(super) fn is_empty(self) -> bool {
        self == ByteSet::EMPTY
    }

    pub(super) fn is_subset(self, of: ByteSet) -> bool {
        self.0.iter().zip(of.0).all(|(&own, other)| own & !other == 0)
    }

    pub(super) fn is_disjoint(self, other: ByteSet) -> bool {
        self.0.iter().zip(other.0).all(|(&own, other)| own & other == 0)
    }

    pub(super) fn or(mut self, other: ByteSet) -> ByteSet {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
        self
    }
}

/// The stream of the bytes in `set`.
pub(super) fn stream(builder: &mut Builder, set: ByteSet) -> Value {
    delayed(builder, set, 0)
}

/// The stream of the positions `delay` bytes behind the bytes in `set`.
pub(super) fn delayed(builder: &mut Builder, set: ByteSet, delay: u8) -> Value {
    let mut rows: Vec<u16> = set.0.iter().copied().filter(|&row| row != 0).collect();
    rows.sort_unstable();
    rows.dedup();
    if rows.len() <= 3 {
        by_halves(builder, set, &rows, delay)
    } else {
        diagram(builder, 8, &|byte| set.contains(byte as u8), 0, delay)
    }
}

fn by_halves(builder: &mut Builder, set: ByteSet, rows: &[u16], delay: u8) -> Value {
    let mut union = builder.zero();
    for &row in rows {
        let high = half(builder, (4, delay), &|half| set.0[half] == row);
        let low = half(builder, (0, delay), &|half| row >> half & 1 == 1);
        let both = builder.and(high, low);
        union = builder.or(union, both);
    }
    union
}

/// The stream of bytes with a certain low (bit 0 on) or high (bit 4 on) half; `place` is that first
/// bit and the delay.
fn half(builder: &mut Builder, place: (u8, u8), holds: &dyn Fn(usize) -> bool) -> Value {
    fn node(
        builder: &mut Builder,
        place: (u8, u8),
        bits: u8,
        holds: &dyn Fn(usize) -> bool,
        at: usize,
    ) -> Value {
        let size = 1usize << bits;
        if (at..at + size).all(holds) {
            return builder.ones();
        }
        if !(at..at + size).any(holds) {
            return builder.zero();
        }
        let no = node(builder, place, bits - 1, holds, at);
        let yes = node(builder, place, bits - 1, holds, at + size / 2);
        let bit = builder.basis(place.0 + bits - 1, place.1);
        builder.choose(bit, yes, no)
    }
    node(builder, place, 4, holds, 0)
}

/// A decision diagram over bits `bits - 1` to 0 for the values from `at` on.
fn diagram(builder: &mut Builder, bits: u8, holds: &dyn Fn(usize) -> bool, at: usize, delay: u8) -> Value {
    let size = 1usize << bits;
    let count = (at..at + size).filter(|&value| holds(value)).count();
    if count == 0 {
        return builder.zero();
    }
    if count == size {
        return builder.ones();
    }
    let no = diagram(builder, bits - 1, holds, at, delay);
    let yes = diagram(builder, bits - 1, holds, at + size / 2, delay);
    let bit = builder.basis(bits - 1, delay);
    builder.choose(bit, yes, no)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::evaluate;

    #[test]
    fn streams_are_the_sets() {
        let all: Vec<u8> = (0..=255).collect();
        let letters = ByteSet::EMPTY.with(b'a'..=b'z');
        let word = letters.with(b'A'..=b'Z').with(b'0'..=b'9').with(b'_'..=b'_');
        let odd = (0..128).fold(ByteSet::EMPTY, |set, half| set.with(2 * half + 1..=2 * half + 1));
        let scattered =
            [3, 17, 99, 128, 200, 255].iter().fold(ByteSet::EMPTY, |set, &byte| set.with(byte..=byte));
        for set in [
            ByteSet::EMPTY,
            letters,
            word,
            odd,
            scattered,
            ByteSet::single(b'\n'),
            ByteSet::EMPTY.with(0..=255),
        ] {
            let mut builder = Builder::new(b'\n');
            let output = stream(&mut builder, set);
            let program = builder.finish(output);
            program.verify().unwrap();
            let expected: Vec<bool> = all.iter().map(|&byte| set.contains(byte)).collect();
            assert_eq!(evaluate(&program, &all), expected, "{set:?}");
        }
    }
}
