//! The cache sizes of a miss curve.
//!
//! Sizes of one curve have lines and sets in common and differ in ways: that is when a smaller
//! cache holds nothing that a larger one lacks. A curve beside a hierarchy ([`CurveSizes::beside`])
//! takes the sets of the filter in front of it: then nothing more is to be recorded.

use crate::Levels;
use event::{FetchFilter, Filter, ModifyFilter, PageFilter, SetFilter, StoreFilter, Stream};
use std::fmt;

/// The most sizes of a curve.
pub const SIZES_MAX: usize = 31;

/// Number of sizes of a curve beside a hierarchy, without those of the hierarchy's own levels.
const DOUBLINGS: u32 = 20;
/// The smallest first size of such a curve, in bytes.
const FIRST_BYTES_MIN: u64 = 1 << 10;

/// The most lines of a set.
const WAYS_MAX: u64 = 1 << 28;

/// The most sets.
const SETS_MAX: u64 = 1 << 16;

/// The sizes of a curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveSizes {
    line_bytes: u32,
    sets: u64,
    ways: Vec<u64>,
}

/// Why a curve cannot have the requested sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizesError {
    fault: String,
}

impl fmt::Display for SizesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault)
    }
}

impl std::error::Error for SizesError {}

impl CurveSizes {
    /// Caches of `sizes_bytes`, ascending, with lines of `line_bytes` in `sets` sets (any number; 1
    /// is fully associative).
    ///
    /// # Errors
    /// When a size is no whole number of ways, they do not ascend, or there are none or more than
    /// [`SIZES_MAX`].
    pub fn new(line_bytes: u32, sets: u64, sizes_bytes: &[u64]) -> Result<CurveSizes, SizesError> {
        let error = |fault| Err(SizesError { fault });
        if !line_bytes.is_power_of_two() || !(4..=1 << 30).contains(&line_bytes) {
            return error(format!("a line of {line_bytes} bytes is no power of two from 4 to 2^30"));
        }
        if !(1..=SETS_MAX).contains(&sets) {
            return error(format!("{sets} sets: a curve has 1 to {SETS_MAX}"));
        }
        if !(1..=SIZES_MAX).contains(&sizes_bytes.len()) {
            return error(format!("{} sizes: a curve has 1 to {SIZES_MAX}", sizes_bytes.len()));
        }
        let way_bytes = sets * u64::from(line_bytes);
        let mut ways = Vec::new();
        for &bytes in sizes_bytes {
            let more = bytes / way_bytes;
            if bytes == 0 || !bytes.is_multiple_of(way_bytes) || more > WAYS_MAX {
                let most = "and at most 2^28 of them";
                return error(format!(
                    "{bytes} bytes: a size is a whole number of ways of {way_bytes} bytes, {most}"
                ));
            }
            if ways.last().is_some_and(|&before| before >= more) {
                return error(format!("{bytes} bytes: sizes must ascend"));
            }
            ways.push(more);
        }
        Ok(CurveSizes { line_bytes, sets, ways })
    }

    /// Fully associative caches whose sizes double from `first_bytes` to `last_bytes`.
    ///
    /// # Errors
    /// When a size is no whole number of ways, or there are none or more than [`SIZES_MAX`].
    pub fn doubling(line_bytes: u32, first_bytes: u64, last_bytes: u64) -> Result<CurveSizes, SizesError> {
        let next = |bytes: &u64| bytes.checked_mul(2);
        let sizes = std::iter::successors(Some(first_bytes).filter(|&bytes| bytes > 0), next);
        let sizes: Vec<u64> = sizes.take_while(|&bytes| bytes <= last_bytes).collect();
        CurveSizes::new(line_bytes, 1, &sizes)
    }

    /// Twenty sizes that double, and the sizes of `levels`' own caches if these are whole numbers
    /// of ways, for the stream from which the levels are simulated. Also returns that stream; if
    /// stores do not enter its filter, the curve needs the full stream instead.
    ///
    /// Lines are those of the first level, sets those of its filter, so that the first size is one
    /// way, or as many as make 1 KiB.
    ///
    /// # Errors
    /// If the sizes make no curve. No levels are known for which this happens.
    pub fn beside(levels: &Levels, stream: &Stream) -> Result<(CurveSizes, Stream), SizesError> {
        let (sets, stream) = match stream {
            Stream::Filtered(filter) if filter.stores == StoreFilter::LikeLoads => {
                (u64::from(filter.data.sets), *stream)
            }
            _ => (1 << levels.data.sets.trailing_zeros(), Stream::Full),
        };
        let sets = sets.min(crate::FILTER_SETS_MAX.into());
        let way_bytes = sets * u64::from(levels.data.line_bytes);
        let first = way_bytes.max(FIRST_BYTES_MIN);
        let mut sizes: Vec<u64> = (0..DOUBLINGS).map(|doubling| first << doubling).collect();
        let own = std::iter::once(levels.data).chain(levels.outer.iter().map(|outer| outer.geometry));
        let own =
            own.map(|geometry| geometry.sets * u64::from(geometry.ways) * u64::from(geometry.line_bytes));
        sizes.extend(own.filter(|bytes| bytes.is_multiple_of(way_bytes) && bytes / way_bytes <= WAYS_MAX));
        sizes.sort_unstable();
        sizes.dedup();
        Ok((CurveSizes::new(levels.data.line_bytes, sets, &sizes)?, stream))
    }

    /// Bytes of a line.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// Sets of each cache.
    pub fn sets(&self) -> u64 {
        self.sets
    }

    /// Lines of a set, size by size.
    pub fn ways(&self) -> &[u64] {
        &self.ways
    }

    /// Sizes in bytes.
    pub fn bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.ways.iter().map(|ways| ways * self.sets * u64::from(self.line_bytes))
    }

    /// The filter behind which the curve is exact: references that it drops have distance 0.
    pub fn filter(&self) -> Filter {
        let sets = (1 << self.sets.trailing_zeros()).min(crate::FILTER_SETS_MAX);
        let lines = SetFilter { sets, line_bytes: self.line_bytes };
        Filter {
            data: lines,
            instruction: lines,
            data_page: None,
            instruction_page: None,
            stores: StoreFilter::LikeLoads,
            fetches: FetchFilter::LastOfSet,
            pages: PageFilter::LastOfSet,
            modifies: ModifyFilter::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sizes_are_named() {
        let fault = |line, sets, sizes: &[u64]| CurveSizes::new(line, sets, sizes).unwrap_err().to_string();
        assert_eq!(fault(48, 1, &[4096]), "a line of 48 bytes is no power of two from 4 to 2^30");
        assert_eq!(fault(64, 0, &[4096]), "0 sets: a curve has 1 to 65536");
        assert_eq!(fault(64, 1, &[]), "0 sizes: a curve has 1 to 31");
        assert!(
            fault(64, 64, &[4096, 6000]).starts_with("6000 bytes: a size is a whole number of ways of 4096")
        );
        assert_eq!(fault(64, 1, &[4096, 4096]), "4096 bytes: sizes must ascend");
        assert!(CurveSizes::doubling(64, 0, 4096).is_err());
        let sizes = CurveSizes::doubling(64, 1 << 10, 512 << 20).unwrap();
        assert_eq!((sizes.ways().len(), sizes.bytes().last()), (20, Some(512 << 20)));
    }
}
