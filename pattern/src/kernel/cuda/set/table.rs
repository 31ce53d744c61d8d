//! The filter's tables: which fours of bytes stand in a match.
//!
//! Three tables answer one after the other. The first is a bit for each of many hashes, small
//! enough for the memory that a block of threads shares: a four whose bit is not set is none of the
//! set. The second has the fours themselves, in buckets of four chosen by the same hash. The third
//! has for each four the rows that it is from, and what may stand at each of their places, so that
//! what all let through is the text of a row.
//!
//! ```text
//! lists     where the rows of the four at each place of a bucket begin among `owners`, and end
//! owners    numbers of rows
//! rows      for each: place of the four's last byte, length, whether it is a match, a set a place
//! sets      for each: a bit a byte, 8 words
//! ```

use super::window::{Window, ROW_BYTES_MAX};
use std::collections::BTreeMap;
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

/// Words of a row: three of what it is, and a set's number for each place.
const ROW_WORDS: usize = 3 + ROW_BYTES_MAX;

/// Fours of bytes, and their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) log_words: u32,
    /// A bit for each hash.
    pub(super) words: Vec<u32>,
    log_buckets: u32,
    /// The fours, `BUCKET` to a bucket; free places repeat a four of the set.
    pub(super) buckets: Vec<u32>,
    /// Where the owners of each place's four begin, and where they end.
    pub(super) lists: Vec<[u32; 2]>,
    /// Numbers of rows.
    pub(super) owners: Vec<u32>,
    pub(super) rows: Vec<[u32; ROW_WORDS]>,
    pub(super) sets: Vec<[u32; 8]>,
}

impl Table {
    /// A table of the fours of some windows, at least one; its bits take at most so many bytes
    /// where the smallest size is not larger.
    pub(super) fn new(windows: &[Window], most_bytes: usize) -> Table {
        let mut owned: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, window) in windows.iter().enumerate() {
            for four in window.fours() {
                owned.entry(four).or_default().push(number as u32);
            }
        }
        let fours: Vec<u32> = owned.keys().copied().collect();
        let sizes = LOG_WORDS.filter(|&log| log == *LOG_WORDS.start() || 4 << log <= most_bytes);
        let is_enough = |log: u32| fours.len() as f64 <= FOURS_PER_WORD * f64::from(1u32 << log);
        let largest = sizes.clone().next_back().unwrap_or(*LOG_WORDS.start());
        let log_words = sizes.into_iter().find(|&log| is_enough(log)).unwrap_or(largest);
        let mut words = vec![0; 1 << log_words];
        for &four in &fours {
            words[(hash(four) >> (32 - log_words)) as usize] |= 1 << (four & 31);
        }
        let (log_buckets, buckets) = buckets(&fours);
        let (mut ranges, mut owners) = (BTreeMap::new(), Vec::new());
        for (four, rows) in &owned {
            ranges.insert(four, [owners.len() as u32, (owners.len() + rows.len()) as u32]);
            owners.extend(rows);
        }
        let lists = buckets.iter().map(|four| ranges[four]).collect();
        let mut sets = Vec::new();
        let rows = windows.iter().map(|window| row(window, &mut sets)).collect();
        Table { log_words, words, log_buckets, buckets, lists, owners, rows, sets }
    }

    /// The share of the first table's bits that are set.
    pub(super) fn load(&self) -> f64 {
        let set: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        f64::from(set) / (32.0 * self.words.len() as f64)
    }

    /// What the text of the filter has to know.
    pub(super) fn definitions(&self) -> String {
        format!(
            "#define LF_TABLE_LOG {}\n#define LF_BUCKETS_LOG {}\n#define LF_MULTIPLIER {MULTIPLIER:#x}u\n\
             #define LF_ROW_WORDS {ROW_WORDS}u\n",
            self.log_words, self.log_buckets
        )
    }
}

/// A row's words; sets that no row had before are added.
fn row(window: &Window, sets: &mut Vec<[u32; 8]>) -> [u32; ROW_WORDS] {
    let mut words = [0; ROW_WORDS];
    words[..3].copy_from_slice(&[window.last() as u32, window.row.len() as u32, u32::from(window.is_match)]);
    for (word, letters) in words[3..].iter_mut().zip(&window.row) {
        let mut set = [0u32; 8];
        letters.iter().for_each(|&byte| set[usize::from(byte / 32)] |= 1 << (byte % 32));
        let number = sets.iter().position(|known| *known == set).unwrap_or(sets.len());
        if number == sets.len() {
            sets.push(set);
        }
        *word = number as u32;
    }
    words
}

/// `filter.cu` computes the same.
fn hash(four: u32) -> u32 {
    four.wrapping_mul(MULTIPLIER)
}

/// The fewest buckets of which none overflows, of those with twice as many places as fours.
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
    use super::super::window::windows;
    use super::*;

    fn of(patterns: &[&str]) -> Vec<Window> {
        let parse = |pattern: &&str| regex_syntax::parse(pattern).unwrap();
        patterns.iter().flat_map(|pattern| windows(&parse(pattern), b'\n').unwrap()).collect()
    }

    /// The rows of a four that the first two tables let through.
    fn owners(table: &Table, four: u32) -> Vec<u32> {
        let bit = table.words[(hash(four) >> (32 - table.log_words)) as usize] >> (four & 31) & 1 == 1;
        let bucket = BUCKET * (hash(four) >> (32 - table.log_buckets)) as usize;
        let found = (bucket..bucket + BUCKET).find(|&at| bit && table.buckets[at] == four);
        let list = found.map_or([0, 0], |at| table.lists[at]);
        table.owners[list[0] as usize..list[1] as usize].to_vec()
    }

    #[test]
    fn the_tables_hold_their_fours_and_no_others() {
        let windows = of(&["[a-h][i-n]zz[0-9]", "abzz0", "ajzz", "xyz", "q{4}"]);
        let table = Table::new(&windows, 1 << 20);
        assert_eq!(owners(&table, u32::from_le_bytes(*b"qqqq")), [4]);
        assert_eq!(owners(&table, u32::from_le_bytes(*b"ajzz")), [0, 2]);
        let all: Vec<u32> = windows.iter().flat_map(Window::fours).collect();
        assert!(all.iter().all(|&four| !owners(&table, four).is_empty()));
        let others = (0..100_000u32).map(|at| 0x6161_6161 ^ at.wrapping_mul(0x9E37_79B9));
        assert!(others.filter(|other| !all.contains(other)).all(|other| owners(&table, other).is_empty()));
        assert_eq!(table.rows[0][..3], [3, 5, 1]);
        let sets = |row: usize, places: usize| table.rows[row][3..3 + places].to_vec();
        assert_eq!((sets(4, 4), sets(0, 5)[2] == sets(1, 5)[2]), (vec![sets(4, 1)[0]; 4], true));
    }

    #[test]
    fn tables_grow_with_their_fours_as_far_as_there_is_room() {
        let windows = of(&["[a-z][0-9]{2}z"]);
        let sizes = [0, 100 << 10, 1 << 20].map(|bytes| Table::new(&windows, bytes).log_words);
        assert_eq!(sizes, [13, 14, 15]);
        assert_eq!(Table::new(&of(&["abcd"]), 1 << 20).log_words, 13);
        // Buckets that overflow are made smaller ones.
        let (log, filled) = buckets(&(0..50_000).collect::<Vec<u32>>());
        assert_eq!(filled.len(), BUCKET << log);
    }
}
