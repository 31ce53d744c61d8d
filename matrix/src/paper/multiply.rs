//! `C[i,k] += A[i,j]·B[j,k]`: the six loops of section 3.1 and the versions that the paper compares
//! them with.
//!
//! All versions are in the slice [`LOOPS`]; each runs on one thread or on several that divide the
//! tile rows of `C` (loop `ii`), as in section 4. Loop names are the paper's. Sums run in the order
//! of `j` for any tile, so all versions and numbers of threads give the same bits.
//!
//! **Cost.** N³ multiply-adds. Masks in the innermost loop cost more than the arithmetic. Outside
//! it (`MBaLt`) they step once per row and column of a tile.

use super::mask::Masks;
use super::storage::Mbalt;
use crate::Error;
use std::ops::{Add, Mul};

/// A type of numbers that the loops multiply.
pub trait Number: Copy + Default + Send + Sync + Add<Output = Self> + Mul<Output = Self> {}
impl<T: Copy + Default + Send + Sync + Add<Output = T> + Mul<Output = T>> Number for T {}

/// How a version stores its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Row-major.
    Linear,
    /// Tile by tile.
    Blocked,
}

/// The order in which a version visits elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// The loops i, j, k over the whole arrays.
    Untiled,
    /// Six loops on row-major arrays.
    Tiled,
    /// Six loops that step masks outside the innermost loop.
    Masked,
    /// Six loops that step the mask of k in the innermost loop.
    MaskedElements,
}

/// One version of the loops.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The paper's name for it, if there is one.
    pub name: &'static str,
    /// The difference from the other versions.
    pub description: &'static str,
    /// The storage of its arrays.
    pub storage: Storage,
    walk: Walk,
}

/// The versions, simplest first.
pub const LOOPS: &[Loop] = &[
    Loop {
        name: "naive",
        description: "i, j, k over row-major arrays",
        storage: Storage::Linear,
        walk: Walk::Untiled,
    },
    Loop {
        name: "LaLt",
        description: "six loops over row-major arrays",
        storage: Storage::Linear,
        walk: Walk::Tiled,
    },
    Loop {
        name: "MBaLt",
        description: "six loops over blocked arrays, masks stepped outside the innermost loop",
        storage: Storage::Blocked,
        walk: Walk::Masked,
    },
    Loop {
        name: "MBaLt-elements",
        description: "six loops over blocked arrays, a mask stepped for every element",
        storage: Storage::Blocked,
        walk: Walk::MaskedElements,
    },
];

/// The three arrays in the storage of a version.
#[derive(Clone, Debug)]
pub struct Arrays<T> {
    /// N.
    pub n: usize,
    /// T.
    pub tile: usize,
    masks: Option<Masks>,
    /// A.
    pub a: Vec<T>,
    /// B.
    pub b: Vec<T>,
    /// C.
    pub c: Vec<T>,
}

impl Loop {
    /// The version named `name`.
    pub fn named(name: &str) -> Option<&'static Loop> {
        LOOPS.iter().find(|version| version.name == name)
    }

    /// Converts row-major arrays of n² elements; C starts at zero.
    ///
    /// # Errors
    /// The errors of [`Mbalt::from_row_major`]; [`Error::Invalid`] when `tile` is 0.
    pub fn arrays<T: Number>(&self, n: usize, tile: usize, a: &[T], b: &[T]) -> Result<Arrays<T>, Error> {
        if tile == 0 {
            return Err(Error::Invalid { field: "tile", value: 0, expected: "at least 1" });
        }
        for array in [a, b] {
            if n.checked_mul(n) != Some(array.len()) {
                return Err(Error::Shape { what: "array and slice", left: (n, n), right: (1, array.len()) });
            }
        }
        if self.storage == Storage::Linear {
            return Ok(Arrays {
                n,
                tile,
                masks: None,
                a: a.to_vec(),
                b: b.to_vec(),
                c: vec![T::default(); n * n],
            });
        }
        let blocked = |data| Mbalt::from_row_major(data, n, tile);
        let (a, b, c) = (blocked(a)?, blocked(b)?, Mbalt::<T>::new(n, tile)?);
        let masks = Some(a.masks());
        Ok(Arrays { n, tile, masks, a: a.data().to_vec(), b: b.data().to_vec(), c: c.data().to_vec() })
    }

    /// Computes `C += A·B` on `threads` threads (0 counts as 1).
    pub fn run<T: Number>(&self, arrays: &mut Arrays<T>, threads: usize) {
        let (n, tile) = (arrays.n, arrays.tile);
        let strips = n.div_ceil(tile);
        // Elements of C per strip of `tile` rows, which are contiguous in both storages.
        let strip_len = arrays.masks.map_or(n * tile, |masks| masks.row(tile));
        if n == 0 {
            return;
        }
        let per_thread = strips.div_ceil(threads.clamp(1, strips));
        let (a, b, masks, walk) = (&arrays.a, &arrays.b, arrays.masks, self.walk);
        let part = |strip: usize, c: &mut [T]| {
            let rows = strip * tile..((strip + per_thread) * tile).min(n);
            let share = Share { n, tile, first: rows.start, end: rows.end, a, b, c };
            match (walk, masks) {
                (Walk::Untiled, _) => untiled(share),
                (Walk::Masked, Some(masks)) => masked(share, masks),
                (Walk::MaskedElements, Some(masks)) => masked_elements(share, masks),
                _ => tiled(share),
            }
        };
        // A single strip of masked storage is the whole array.
        let chunk = (per_thread * strip_len).min(arrays.c.len()).max(1);
        let mut parts = arrays.c.chunks_mut(chunk).enumerate().map(|(i, c)| (i * per_thread, c));
        std::thread::scope(|scope| {
            let own = parts.next();
            for (strip, c) in parts.filter(|&(strip, _)| strip < strips) {
                scope.spawn(move || part(strip, c));
            }
            if let Some((strip, c)) = own {
                part(strip, c);
            }
        });
    }
}

impl<T: Number> Arrays<T> {
    /// The entries of C, row after row.
    pub fn result(&self) -> Vec<T> {
        let at = |i: usize, j: usize| self.masks.map_or(i * self.n + j, |masks| masks.offset(i, j));
        (0..self.n).flat_map(|i| (0..self.n).map(move |j| (i, j))).map(|(i, j)| self.c[at(i, j)]).collect()
    }

    /// Sets C back to zero.
    pub fn clear(&mut self) {
        self.c.fill(T::default());
    }
}

/// The rows `first..end` of the product. `c` starts at the storage of row `first`.
struct Share<'a, T> {
    n: usize,
    tile: usize,
    first: usize,
    end: usize,
    a: &'a [T],
    b: &'a [T],
    c: &'a mut [T],
}

/// `c[k] += a·b[k]`.
#[inline]
fn add_row<T: Number>(c: &mut [T], a: T, b: &[T]) {
    for (c, &b) in c.iter_mut().zip(b) {
        *c = *c + a * b;
    }
}

fn untiled<T: Number>(share: Share<'_, T>) {
    let Share { n, first, end, a, b, c, .. } = share;
    for i in first..end {
        for j in 0..n {
            add_row(&mut c[(i - first) * n..][..n], a[i * n + j], &b[j * n..][..n]);
        }
    }
}

fn tiled<T: Number>(share: Share<'_, T>) {
    let Share { n, tile, first, end, a, b, c } = share;
    for ii in (first..end).step_by(tile) {
        for jj in (0..n).step_by(tile) {
            for kk in (0..n).step_by(tile) {
                let width = tile.min(n - kk);
                for i in ii..(ii + tile).min(end) {
                    for j in jj..(jj + tile).min(n) {
                        let c = &mut c[(i - first) * n + kk..][..width];
                        add_row(c, a[i * n + j], &b[j * n + kk..][..width]);
                    }
                }
            }
        }
    }
}

fn masked<T: Number>(share: Share<'_, T>, masks: Masks) {
    let Share { n, tile, first, end, a, b, c } = share;
    let base = masks.row(first);
    for ii in (first..end).step_by(tile) {
        for jj in (0..n).step_by(tile) {
            for kk in (0..n).step_by(tile) {
                let (width, k) = (tile.min(n - kk), masks.column(kk));
                let mut i_row = masks.row(ii);
                for _ in ii..(ii + tile).min(end) {
                    let (mut j_column, mut j_row) = (masks.column(jj), masks.row(jj));
                    for _ in jj..(jj + tile).min(n) {
                        let c = &mut c[(i_row | k) - base..][..width];
                        add_row(c, a[i_row | j_column], &b[j_row | k..][..width]);
                        (j_column, j_row) = (masks.next_column(j_column), masks.next_row(j_row));
                    }
                    i_row = masks.next_row(i_row);
                }
            }
        }
    }
}

fn masked_elements<T: Number>(share: Share<'_, T>, masks: Masks) {
    let Share { n, tile, first, end, a, b, c } = share;
    let base = masks.row(first);
    for ii in (first..end).step_by(tile) {
        for jj in (0..n).step_by(tile) {
            for kk in (0..n).step_by(tile) {
                let mut i_row = masks.row(ii);
                for _ in ii..(ii + tile).min(end) {
                    let (mut j_column, mut j_row) = (masks.column(jj), masks.row(jj));
                    for _ in jj..(jj + tile).min(n) {
                        let mut k = masks.column(kk);
                        for _ in kk..(kk + tile).min(n) {
                            let at = (i_row | k) - base;
                            c[at] = c[at] + a[i_row | j_column] * b[j_row | k];
                            k = masks.next_column(k);
                        }
                        (j_column, j_row) = (masks.next_column(j_column), masks.next_row(j_row));
                    }
                    i_row = masks.next_row(i_row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_tiles_and_threads_give_the_same_bits() {
        for n in [0, 1, 5, 16, 33, 48] {
            let a: Vec<f64> = (0..n * n).map(|i| (i as f64 * 0.7).sin()).collect();
            let b: Vec<f64> = (0..n * n).map(|i| (i as f64 * 1.3).cos()).collect();
            let mut want = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    for k in 0..n {
                        want[i * n + k] += a[i * n + j] * b[j * n + k];
                    }
                }
            }
            for version in LOOPS {
                for tile in [1, 4, 8, 32, 64] {
                    for threads in [1, 2, 3, 4, 8] {
                        let mut arrays = version.arrays(n, tile, &a, &b).unwrap();
                        version.run(&mut arrays, threads);
                        assert_eq!(
                            arrays.result(),
                            want,
                            "{} N {n} T {tile} threads {threads}",
                            version.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn tiles_that_masks_cannot_address_are_refused() {
        let error = LOOPS[2].arrays(8, 3, &[0.0; 64], &[0.0; 64]).unwrap_err();
        assert_eq!(error.to_string(), "tile is 3, expected a power of two");
        assert!(LOOPS[1].arrays(8, 3, &[0.0; 64], &[0.0; 64]).is_ok());
        assert!(LOOPS[1].arrays(8, 3, &[0.0; 63], &[0.0; 64]).is_err());
    }
}
