//! The filter's tables: which fours of bytes stand in a match.
//!
//! Two tables answer one after the other. The first is a bit for each of many hashes, small enough
//! for the memory that a block of threads shares: a four whose bit is not set is none of the set.
//! The second has the fours themselves, in buckets of four chosen by the same hash, so what both
//! let through is of the set. Free places of a bucket repeat some four of the set, which is no
//! error wherever it stands.

use std::ops::RangeInclusive;

/// Logarithms of the first table's numbers of words: 32 to 128 KiB.
const LOG_WORDS: RangeInclusive<u32> = 13..=15;

/// Fours for each word, at most, before the first table grows.
const FOURS_PER_WORD: f64 = 0.02;

/// What fours are multiplied with: Knuth's golden ratio, odd.
const MULTIPLIER: u32 = 0x9E37_79B1;

/// Places of a bucket.
const BUCKET: usize = 4;

/// The most buckets, as a logarithm; fours beyond what fits share fuller ones.
const LOG_BUCKETS_MAX: u32 = 20;

/// Fours of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) log_words: u32,
    /// A bit for each hash.
    pub(super) words: Vec<u32>,
    log_buckets: u32,
    /// The fours, `BUCKET` to a bucket.
    pub(super) buckets: Vec<u32>,
}

impl Table {
    /// A table of these fours, which are sorted and not none; its bits take at most so many bytes
    /// where the smallest size is not larger.
    pub(super) fn new(fours: &[u32], most_bytes: usize) -> Table {
        let sizes = LOG_WORDS.filter(|&log| log == *LOG_WORDS.start() || 4 << log <= most_bytes);
        let is_enough = |log: u32| fours.len() as f64 <= FOURS_PER_WORD * f64::from(1u32 << log);
        let largest = sizes.clone().last().unwrap_or(*LOG_WORDS.start());
        let log_words = sizes.into_iter().find(|&log| is_enough(log)).unwrap_or(largest);
        let mut words = vec![0; 1 << log_words];
        for &four in fours {
            words[(hash(four) >> (32 - log_words)) as usize] |= 1 << (four & 31);
        }
        let (log_buckets, buckets) = buckets(fours);
        Table { log_words, words, log_buckets, buckets }
    }

    /// The share of the first table's bits that are set.
    pub(super) fn load(&self) -> f64 {
        let set: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        f64::from(set) / (32.0 * self.words.len() as f64)
    }

    /// What the text of the filter has to know.
    pub(super) fn definitions(&self) -> String {
        format!(
            "#define LF_TABLE_LOG {}\n#define LF_BUCKETS_LOG {}\n#define LF_MULTIPLIER {MULTIPLIER:#x}u\n",
            self.log_words, self.log_buckets
        )
    }
}

/// `filter.cu` computes the same.
fn hash(four: u32) -> u32 {
    four.wrapping_mul(MULTIPLIER)
}

/// The fewest buckets, of those with twice as many places as fours or more, of which none overflows.
fn buckets(fours: &[u32]) -> (u32, Vec<u32>) {
    let first = (fours.len().max(8) / 2).next_power_of_two().ilog2();
    let made = (first..=LOG_BUCKETS_MAX).find_map(|log| Some((log, filled(fours, log)?)));
    made.expect("a multiplication by an odd number keeps fours apart")
}

/// The fours in so many buckets; `None` where one overflows.
fn filled(fours: &[u32], log_buckets: u32) -> Option<Vec<u32>> {
    let mut buckets = vec![fours[0]; BUCKET << log_buckets];
    let mut lengths = vec![0; 1 << log_buckets];
    for &four in fours {
        let bucket = (hash(four) >> (32 - log_buckets)) as usize;
        if lengths[bucket] == BUCKET {
            return None;
        }
        buckets[BUCKET * bucket + lengths[bucket]] = four;
        lengths[bucket] += 1;
    }
    Some(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether both tables let a four through.
    fn holds(table: &Table, four: u32) -> bool {
        let bit = table.words[(hash(four) >> (32 - table.log_words)) as usize] >> (four & 31) & 1 == 1;
        let bucket = BUCKET * (hash(four) >> (32 - table.log_buckets)) as usize;
        bit && table.buckets[bucket..bucket + BUCKET].contains(&four)
    }

    #[test]
    fn the_tables_hold_their_fours_and_no_others() {
        for count in [1, 7, 800, 50_000] {
            let mut fours: Vec<u32> = (0..count).map(|at: u32| at.wrapping_mul(0x0123_4567)).collect();
            fours.sort_unstable();
            let table = Table::new(&fours, 1 << 20);
            assert!(fours.iter().all(|&four| holds(&table, four)), "{count}");
            let others = (0..100_000u32).map(|at| 0x6161_6161 ^ at.wrapping_mul(0x9E37_79B9));
            assert!(others
                .filter(|other| fours.binary_search(other).is_err())
                .all(|other| !holds(&table, other)));
        }
    }

    #[test]
    fn tables_grow_with_their_fours_as_far_as_there_is_room() {
        let many: Vec<u32> = (0..100_000).collect();
        let sizes = [0, 100 << 10, 1 << 20].map(|bytes| Table::new(&many, bytes).log_words);
        assert_eq!(sizes, [13, 14, 15]);
        assert_eq!(Table::new(&many[..100], 1 << 20).log_words, 13);
    }
}
