//! A linear map from keys to buckets, by one multiplication.
//!
//! `(query − min) · multiplier`, read as a fixed-point number: the whole part is the bucket, the
//! fraction orders keys inside it. The map never decreases, and `d` leading bits of the fraction
//! tell every two keys of a bucket apart exactly when `multiplier ≥ 2^(BITS−d)`, that is when a
//! bucket spans at most 2^d values. This is interpolation whose error is not estimated but absent:
//! the bucket *is* the guess, and every key of the guess is in the bucket.
//!
//! Queries below `min` are treated as `min`; queries above the largest key are treated as one more
//! than it, which is still inside the map.

use crate::lane::Lane;

/// Maps lanes to `buckets` buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale<L: Lane> {
    min: L,
    /// One more than the largest key's distance from `min` (the distance itself when there is no
    /// room for more).
    beyond: L,
    multiplier: u64,
    buckets: usize,
}

impl<L: Lane> Scale<L> {
    /// A map of the keys `min ..= max` to `wanted` buckets, or fewer if there are fewer different
    /// values.
    pub(crate) fn new(min: L, max: L, wanted: usize) -> Scale<L> {
        let span = max.minus(min);
        let values = span.widen() as u128 + 1;
        let buckets = (wanted.max(1) as u128).min(values) as usize;
        let (above, below) = ((buckets as u128) << L::BITS, values + 1);
        // Division of 64 bits takes a fraction of the time of 128, and one is done for each cell.
        let multiplier = match (u64::try_from(above), u64::try_from(below)) {
            (Ok(above), Ok(below)) => above / below,
            _ => (above / below) as u64,
        };
        let beyond = if span < L::MAX { L::narrow(span.widen() + 1) } else { span };
        Scale { min, beyond, multiplier, buckets }
    }

    /// Buckets that the map uses.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets
    }

    /// The bucket of `query` and its fraction, left-aligned.
    #[inline(always)]
    pub(crate) fn locate(&self, query: L) -> (usize, u64) {
        query.minus(self.min).min(self.beyond).scale(self.multiplier)
    }

    /// [`Scale::locate`] for loops over many queries, which it lets vectors do.
    #[inline(always)]
    pub(crate) fn locate_abreast(&self, query: L) -> (usize, u64) {
        query.minus(self.min).min(self.beyond).scale_abreast(self.multiplier)
    }

    /// [`Scale::locate_abreast`] of one of the keys that the map was made for: nothing to clamp.
    #[inline(always)]
    pub(crate) fn locate_key(&self, key: L) -> (usize, u64) {
        L::narrow(key.widen().wrapping_sub(self.min.widen())).scale_abreast(self.multiplier)
    }

    /// True when `bits` leading bits of the fraction tell all keys of a bucket apart.
    pub(crate) fn tells_apart(&self, bits: u32) -> bool {
        bits >= L::BITS || self.multiplier >> (L::BITS - bits) != 0
    }

    /// The key of a bucket whose fraction begins with `digit` (left-aligned, the rest 0): the
    /// smallest that maps there or above.
    pub(crate) fn key(&self, bucket: usize, digit: u64) -> L {
        let product = ((bucket as u128) << L::BITS) | (digit as u128 >> (64 - L::BITS));
        let distance = product.div_ceil((self.multiplier as u128).max(1)) as u64;
        L::narrow(self.min.widen().wrapping_add(distance))
    }

    /// The way back from buckets to keys, for many keys of one map.
    pub(crate) fn inverse(self) -> Inverse<L> {
        let short = L::BITS == 32 && u32::try_from(self.multiplier).is_ok();
        let reciprocal = if short { u64::MAX / self.multiplier.max(1) } else { 0 };
        Inverse { scale: self, reciprocal }
    }

    /// The map of the keys from `min` on with a table's numbers.
    #[inline(always)]
    pub(crate) fn of_table(min: L, beyond: L, multiplier: L) -> Scale<L> {
        Scale { min, beyond, multiplier: multiplier.widen(), buckets: 0 }
    }

    /// A map that is only the number of its buckets.
    pub(crate) fn of_buckets(buckets: usize) -> Scale<L> {
        Scale { min: L::MIN, beyond: L::MIN, multiplier: 0, buckets }
    }

    /// The largest bucket that a query reaches.
    pub(crate) fn last_bucket(&self) -> u64 {
        ((self.beyond.widen() as u128 * self.multiplier as u128) >> L::BITS) as u64
    }

    /// The numbers from which the map can be restored.
    pub(crate) fn numbers(&self) -> [u64; 4] {
        [self.min.widen(), self.beyond.widen(), self.multiplier, self.buckets as u64]
    }

    /// Restores a map from a file's numbers; `None` if a query could leave its buckets.
    pub(crate) fn from_numbers([min, beyond, multiplier, buckets]: [u64; 4]) -> Option<Scale<L>> {
        let scale = Scale {
            min: L::narrow(min),
            beyond: L::narrow(beyond),
            multiplier,
            buckets: usize::try_from(buckets).ok()?,
        };
        let reaches = (beyond as u128 * multiplier as u128) >> L::BITS;
        let in_range = min <= L::MAX.widen()
            && multiplier <= L::MAX.widen()
            && beyond <= L::MAX.widen()
            && buckets <= 1 << 32;
        (in_range && reaches < u128::from(buckets)).then_some(scale)
    }
}

/// A map's way back: [`Scale::key`] without a division.
///
/// The quotient by the multiplier `m` is estimated by a multiplication with `r = ⌊(2^64 − 1) / m⌋`.
/// Since `1/m − r/2^64 < (1 + 1/m) / 2^64`, it is at most 2 too small, and the remainder says by
/// how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inverse<L: Lane> {
    scale: Scale<L>,
    /// `r`, or 0 where a product of the map does not fit 64 bits.
    reciprocal: u64,
}

impl<L: Lane> Inverse<L> {
    /// [`Scale::key`].
    #[inline(always)]
    pub(crate) fn key(&self, bucket: usize, digit: u64) -> L {
        if self.reciprocal == 0 || bucket >> 32 != 0 {
            return self.scale.key(bucket, digit);
        }
        let product = (bucket as u64) << 32 | digit >> 32;
        let multiplier = self.scale.multiplier.max(1);
        let estimate = ((u128::from(product) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = product - estimate * multiplier;
        let missing = [0, 1, 2].map(|times| u64::from(rest > times * multiplier)).iter().sum::<u64>();
        L::narrow(self.scale.min.widen().wrapping_add(estimate + missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_and_keys_come_back() {
        for (min, max, wanted) in [
            (0u32, u32::MAX, 70_000),
            (5, 1000, 10),
            (7, 7, 3),
            (0, 1 << 20, 1 << 14),
            (1 << 31, u32::MAX, 65_536),
        ] {
            let scale = Scale::new(min, max, wanted);
            let bits = [8, 16, 32].into_iter().find(|&bits| scale.tells_apart(bits)).unwrap();
            let mut last = (0, 0);
            for step in 0..3000u64 {
                let query = (min as u64 + (max - min) as u64 * step / 2999) as u32;
                let (bucket, fraction) = scale.locate(query);
                assert!(bucket < scale.buckets());
                let digit = fraction >> (64 - bits) << (64 - bits);
                assert_eq!(scale.key(bucket, digit), query, "{min} {max} {wanted}");
                assert!((bucket, fraction) >= last);
                last = (bucket, fraction);
            }
            assert!(scale.locate(u32::MAX).0 < scale.buckets());
            assert_eq!(Scale::from_numbers(scale.numbers()), Some(scale));
        }
    }

    #[test]
    fn sixty_four_bits() {
        let scale = Scale::new(3u64, u64::MAX, 1 << 20);
        for query in [3, 4, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
            let (bucket, fraction) = scale.locate(query);
            assert_eq!(scale.key(bucket, fraction), query);
        }
        assert_eq!(
            Scale::<u64>::from_numbers([0, u64::MAX, u64::MAX, 1]),
            None,
            "a query would leave the buckets"
        );
    }

    #[test]
    fn a_way_back_without_division_is_the_same_way() {
        let mut random = crate::sample::Random::new(8);
        for round in 0..4000 {
            let multiplier = match round % 4 {
                0 => 1 + random.below(9),
                1 => u64::from(u32::MAX) - random.below(9),
                2 => 1 << random.below(32),
                _ => 1 + random.below(u64::from(u32::MAX)),
            };
            let scale = Scale::<u32>::of_table(random.bits() as u32, 0, multiplier as u32);
            let bucket = (random.bits() >> 33 >> random.below(31)) as usize;
            for digit in [0, u64::MAX, random.bits(), random.bits() & !0 << 48] {
                let expected = scale.key(bucket, digit);
                assert_eq!(scale.inverse().key(bucket, digit), expected, "{bucket} {digit} / {multiplier}");
            }
        }
        let wide = Scale::<u64>::new(7, 1 << 60, 1000);
        let (bucket, digit) = wide.locate(123_456_789_012);
        assert_eq!(wide.inverse().key(bucket, digit), 123_456_789_012);
    }
}
