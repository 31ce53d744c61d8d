//! Tables whose first rows lie in a file of kept translations and stay there.
//!
//! **Problem.** A program with kept translations has millions of rows that hardly anybody reads: a
//! state is looked up where a signal meets generated code, and instructions only of blocks that
//! ran. Decoding all of them at each start copied them into fresh memory, and the kernel clears
//! such memory page by page. **Idea.** The file is mapped anyway. Its rows are decoded when they
//! are read; rows of this run follow in memory. **Leaves out** what is in the rows (`state_map`,
//! `profile`) and checks of them (`store::snapshot`).

use crate::room::make_room;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;

/// The bytes of a file that stay as they are while somebody has them.
pub(crate) type SharedBytes = Rc<dyn AsRef<[u8]>>;

/// A row of a file, of a fixed number of bytes.
pub(crate) trait KeptRow: Copy + 'static {
    /// Bytes of a row.
    const BYTES: usize;

    /// Decodes a row of that many bytes; any bytes are a row.
    fn decoded(row: &[u8]) -> Self;
}

/// Rows of a file, not decoded yet.
#[derive(Clone, Copy)]
pub(crate) struct EncodedRows<'a, T> {
    bytes: &'a [u8],
    row: PhantomData<T>,
}

impl<'a, T: KeptRow> EncodedRows<'a, T> {
    /// The rows in `bytes`, which are a multiple of a row's bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> EncodedRows<'a, T> {
        debug_assert!(bytes.len().is_multiple_of(T::BYTES));
        EncodedRows { bytes, row: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = T> + 'a {
        self.bytes.chunks_exact(T::BYTES).map(T::decoded)
    }
}

/// A table whose first rows may lie in a file.
pub(crate) struct KeptTable<T> {
    /// The file, and where the rows lie in it.
    kept: Option<(SharedBytes, Range<usize>)>,
    /// The rows behind those of the file.
    own: Vec<T>,
}

impl<T> Default for KeptTable<T> {
    fn default() -> KeptTable<T> {
        KeptTable { kept: None, own: Vec::new() }
    }
}

impl<T: KeptRow> KeptTable<T> {
    /// The table of rows that lie in `file`. Rows that lie elsewhere are copied.
    pub(crate) fn of(rows: EncodedRows<'_, T>, file: &SharedBytes) -> KeptTable<T> {
        let start = (rows.bytes.as_ptr() as usize).wrapping_sub((**file).as_ref().as_ptr() as usize);
        let place = start..start.saturating_add(rows.bytes.len());
        // Bytes at these addresses are the file's own.
        let inside = (**file).as_ref().get(place.clone()).is_some();
        match inside && !rows.bytes.is_empty() {
            true => KeptTable { kept: Some((file.clone(), place)), own: Vec::new() },
            false => KeptTable { kept: None, own: rows.iter().collect() },
        }
    }

    fn kept(&self) -> EncodedRows<'_, T> {
        let bytes = self.kept.as_ref().map(|(file, place)| &(**file).as_ref()[place.clone()]);
        EncodedRows::new(bytes.unwrap_or_default())
    }

    /// The rows that lie in the file, encoded, and those behind them.
    pub(crate) fn parts(&self) -> (&[u8], &[T]) {
        (self.kept().bytes, &self.own)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept().len() + self.own.len()
    }

    pub(crate) fn push(&mut self, row: T) {
        self.own.push(row);
    }

    /// Makes room for `more` rows.
    pub(crate) fn make_room(&mut self, more: usize) {
        make_room(&mut self.own, more);
    }

    pub(crate) fn extend(&mut self, rows: impl ExactSizeIterator<Item = T>) {
        self.make_room(rows.len());
        self.own.extend(rows);
    }

    pub(crate) fn get(&self, index: usize) -> Option<T> {
        let kept = self.kept();
        match index.checked_sub(kept.len()) {
            Some(own) => self.own.get(own).copied(),
            None => Some(T::decoded(&kept.bytes[index * T::BYTES..][..T::BYTES])),
        }
    }

    /// The rows of a range, which the table must have.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = T> + '_ {
        let kept = self.kept();
        let (first, last) = (range.start.min(kept.len()), range.end.min(kept.len()));
        let in_file = EncodedRows::<T>::new(&kept.bytes[first * T::BYTES..last * T::BYTES]);
        let own = &self.own[range.start - first..range.end - last];
        in_file.iter().chain(own.iter().copied())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.range(0..self.len())
    }

    /// The number of rows at the beginning for which `is_before` holds; it holds for no row behind
    /// them.
    pub(crate) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).is_some_and(|row| is_before(&row)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Bytes of memory that the rows behind those of the file take.
    pub(crate) fn own_bytes(&self) -> usize {
        size_of_val(&self.own[..])
    }

    /// All rows, in memory of their own.
    pub(crate) fn to_vec(&self) -> Vec<T> {
        let mut rows = Vec::with_capacity(self.len());
        rows.extend(self.iter());
        rows
    }

    /// All rows, in memory of their own; rows that lie there are not copied.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self.kept {
            Some(_) => self.to_vec(),
            None => self.own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machine::random::Random;

    impl KeptRow for [u8; 3] {
        const BYTES: usize = 3;

        fn decoded(row: &[u8]) -> [u8; 3] {
            row.try_into().unwrap()
        }
    }

    /// A table with its first rows in a file behind `front` other bytes, and all of its rows.
    fn table(kept: usize, own: usize, front: usize) -> (KeptTable<[u8; 3]>, Vec<[u8; 3]>) {
        let rows: Vec<[u8; 3]> = (0..kept + own).map(|row| [(row / 4) as u8, row as u8, 7]).collect();
        let mut bytes = vec![9; front];
        bytes.extend(rows[..kept].iter().flatten());
        let file: SharedBytes = Rc::new(bytes);
        let mut table = KeptTable::of(EncodedRows::new(&(*file).as_ref()[front..]), &file);
        assert_eq!(table.own_bytes(), 0, "nothing was copied");
        table.extend(rows[kept..].iter().copied());
        (table, rows)
    }

    #[test]
    fn rows_of_a_file_and_rows_behind_them_are_one_table() {
        let mut random = Random::default();
        for (kept, own) in [(0, 0), (0, 5), (5, 0), (1, 1), (7, 9), (40, 3)] {
            let (table, rows) = table(kept, own, 1 + (random.word() % 9) as usize);
            assert_eq!((table.len(), table.to_vec()), (rows.len(), rows.clone()));
            assert!((0..rows.len() + 2).all(|index| table.get(index) == rows.get(index).copied()));
            for limit in 0..14 {
                let before = rows.partition_point(|row| row[0] < limit);
                assert_eq!(table.partition_point(|row| row[0] < limit), before);
            }
            for _ in 0..50 {
                let end = (random.word() % (rows.len() as u64 + 1)) as usize;
                let start = (random.word() % (end as u64 + 1)) as usize;
                assert!(table.range(start..end).eq(rows[start..end].iter().copied()));
            }
            let (encoded, behind) = table.parts();
            assert_eq!((encoded.len(), behind), (3 * kept, &rows[kept..]));
            assert_eq!(table.into_vec(), rows);
        }
    }

    #[test]
    fn rows_that_lie_elsewhere_are_copied() {
        let (bytes, file): (Vec<u8>, SharedBytes) = ((0..30).collect(), Rc::new(vec![1u8; 30]));
        let table: KeptTable<[u8; 3]> = KeptTable::of(EncodedRows::new(&bytes), &file);
        assert_eq!((table.parts().0.len(), table.get(9)), (0, Some([27, 28, 29])));
    }
}
