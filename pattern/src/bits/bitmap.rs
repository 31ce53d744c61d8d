//! Bitmaps with one bit a row, in Arrow's layout: bit `i % 8` of byte `i / 8`, lowest bit first.

use std::fmt;

/// One bit for each row of a column.
///
/// ```
/// use lightfoot_pattern::column::{Column, ColumnRegex};
/// let column = Column::new(b"onetwothree", &[0, 3, 6, 11])?;
/// let rows = ColumnRegex::new("o")?.scan(&column);
/// assert_eq!((rows.len(), rows.count_ones()), (3, 2));
/// assert_eq!(rows.ones().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(rows.to_bytes(), [0b011]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    /// Bits behind the last row are 0.
    words: Vec<u64>,
    rows: usize,
}

impl Bitmap {
    /// A bitmap without any bit set.
    pub fn zeros(rows: usize) -> Bitmap {
        Bitmap { words: vec![0; rows.div_ceil(64)], rows }
    }

    /// The bits of `words`, of which the first `rows` count.
    pub(crate) fn from_words(mut words: Vec<u64>, rows: usize) -> Bitmap {
        words.resize(rows.div_ceil(64), 0);
        if let (Some(last), 1..) = (words.last_mut(), rows % 64) {
            *last &= (1 << (rows % 64)) - 1;
        }
        Bitmap { words, rows }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The bit of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> bool {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Sets the bit of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn set(&mut self, row: usize, bit: bool) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let mask = 1 << (row % 64);
        match bit {
            true => self.words[row / 64] |= mask,
            false => self.words[row / 64] &= !mask,
        }
    }

    /// The number of bits that are set.
    pub fn count_ones(&self) -> usize {
        crate::kernel::count_ones(&self.words) as usize
    }

    /// The rows whose bit is set, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * at + bit)
            })
        })
    }

    /// The words: bit `i % 64` of word `i / 64` belongs to row `i`; bits behind the last row are 0.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bytes of the bitmap, as many as the rows need.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.rows.div_ceil(8));
        bytes
    }

    /// Clears the bits that `other`, a bitmap of as many words, has not.
    pub(crate) fn keep_only(&mut self, other: &Bitmap) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bitmap({} of {} rows)", self.count_ones(), self.rows)
    }
}
