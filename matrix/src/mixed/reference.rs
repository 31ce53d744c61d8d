//! The slow twin of mixed products: three loops.
//!
//! A product of two narrow numbers is exact in double precision, and so is the sum of fewer than
//! 2²¹ products of 16-bit integers. Sums of `f16` and `bf16` err by at most γ in double precision,
//! which is far below that of `f32`.

use super::Product;
use crate::{Error, Strided};

/// One entry of `A·B`: its sum, and the sum of the products' magnitudes, to which error bounds
/// refer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Σ a·b.
    pub value: f64,
    /// Σ |a·b|.
    pub magnitude: f64,
}

/// The entries of `A·B`, row after row. It costs m·n·k multiplications one by one.
///
/// # Errors
/// [`Error::Shape`] when shapes do not fit.
pub fn multiply<P: Product>(a: Strided<'_, P::Left>, b: Strided<'_, P::Right>) -> Result<Vec<Entry>, Error> {
    let ((m, k), n) = ((a.rows(), a.cols()), b.cols());
    if k != b.rows() {
        let what = "columns of A and rows of B";
        return Err(Error::Shape { what, left: (m, k), right: (b.rows(), n) });
    }
    let mut entries = Vec::with_capacity(m * n);
    for i in 0..m {
        for j in 0..n {
            let mut entry = Entry { value: 0.0, magnitude: 0.0 };
            for step in 0..k {
                let product = P::exact(a.get(i, step), b.get(step, j));
                entry.value += product;
                entry.magnitude += product.abs();
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}
