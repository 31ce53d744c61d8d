//! `MBaLt`: a square array stored tile by tile (each tile row-major), addressed by masks.
//!
//! The grid of tiles is rounded up to a power of two, which masks need. Tiles beyond the array are
//! never touched, so the system never provides memory for them.

use super::mask::Masks;
use crate::Error;

/// An n×n array in tiles of T×T.
#[derive(Clone, Debug)]
pub struct Mbalt<T> {
    n: usize,
    masks: Masks,
    data: Vec<T>,
}

impl<T: Copy + Default> Mbalt<T> {
    /// An array of zeros.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `tile` is no power of two, [`Error::TooLarge`] when the array cannot
    /// be addressed.
    pub fn new(n: usize, tile: usize) -> Result<Mbalt<T>, Error> {
        if !tile.is_power_of_two() {
            return Err(Error::Invalid { field: "tile", value: tile, expected: "a power of two" });
        }
        let too_large = Error::TooLarge { rows: n, cols: n };
        let masks = Masks::new(tile, n.div_ceil(tile).max(1)).ok_or(too_large.clone())?;
        let bytes = masks.len().checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or(too_large)?;
        Ok(Mbalt { n, masks, data: vec![T::default(); masks.len()] })
    }

    /// A copy of a row-major array of n² elements.
    ///
    /// # Errors
    /// The errors of [`Mbalt::new`]; [`Error::Shape`] when `data` has another length.
    pub fn from_row_major(data: &[T], n: usize, tile: usize) -> Result<Mbalt<T>, Error> {
        let mut array = Mbalt::new(n, tile)?;
        if n.checked_mul(n) != Some(data.len()) {
            return Err(Error::Shape { what: "array and slice", left: (n, n), right: (1, data.len()) });
        }
        for (i, row) in data.chunks_exact(n.max(1)).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                array.data[array.masks.offset(i, j)] = value;
            }
        }
        Ok(array)
    }

    /// The entries, row after row.
    pub fn to_row_major(&self) -> Vec<T> {
        (0..self.n).flat_map(|i| (0..self.n).map(move |j| self.get(i, j))).collect()
    }

    /// The number of rows and of columns, N.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The masks that address elements.
    pub fn masks(&self) -> Masks {
        self.masks
    }

    /// Element (i, j), for i, j < N.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> T {
        self.data[self.masks.offset(i, j)]
    }

    /// The storage, with element (i, j) at [`Masks::offset`].
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The storage, for writing.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}
