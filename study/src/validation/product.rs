//! The matrix-vector product: `y[r] += A[r][c] * x[c]`, rows outside, columns inside.
//!
//! Rows are divided among threads; one thread's share is simulated on a core of its own, with `x`
//! and `y` whole. The sum of a row stays in a register, so `y` is read and written once, behind
//! each row. A piece is a row.

use super::kernel::{bases, Kernel, Touches, ELEMENT_BYTES};

/// The product of one size.
pub(super) struct Product {
    n: u64,
    /// Rows of a thread.
    share: u64,
    vector: u64,
    base_a: u64,
    base_x: u64,
    base_y: u64,
}

const SITE_A: u32 = 0;
const SITE_X: u32 = 1;
const SITE_Y: u32 = 2;

impl Product {
    /// A matrix of `n` rows and columns, for one of `threads`.
    pub(super) fn new(n: usize, threads: usize, vector: u64, apart_bytes: u64) -> Product {
        let n = n as u64;
        let row = n * ELEMENT_BYTES;
        let bases = bases(&[n * row, row, row], apart_bytes);
        let (base_a, base_x, base_y) = (bases[0], bases[1], bases[2]);
        Product { n, share: (n / threads as u64).max(1), vector, base_a, base_x, base_y }
    }
}

impl Kernel for Product {
    fn pieces(&self) -> usize {
        self.share as usize
    }

    fn rows(&self) -> usize {
        1
    }

    fn push(&self, piece: usize, _row: usize, touches: &mut Touches) {
        let row = self.base_a + piece as u64 * self.n * ELEMENT_BYTES;
        let sum = self.base_y + piece as u64 * ELEMENT_BYTES;
        for column in (0..self.n).step_by(self.vector as usize) {
            let end = (column + self.vector).min(self.n);
            let (from, to) = (column * ELEMENT_BYTES, end * ELEMENT_BYTES - 1);
            touches.load(SITE_A, row + from, row + to);
            touches.load(SITE_X, self.base_x + from, self.base_x + to);
        }
        touches.load(SITE_Y, sum, sum + ELEMENT_BYTES - 1);
        touches.store(SITE_Y, sum, sum + ELEMENT_BYTES - 1);
    }

    fn updates(&self) -> u64 {
        self.n
    }

    fn piece_bytes(&self) -> u64 {
        self.n * ELEMENT_BYTES
    }

    fn reach(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::tests::shown;
    use super::*;

    #[test]
    fn a_row_is_read_beside_the_vector() {
        let product = Product::new(8, 4, 4, 0);
        assert_eq!((product.pieces(), product.updates()), (2, 8));
        let mut touches = Touches::default();
        product.push(1, 0, &mut touches);
        // Arrays begin in the middle of a line, so a row's first half is the end of a line.
        let [a, x, y] = [product.base_a + 64, product.base_x, product.base_y].map(|base| base / 64);
        let expected = [(a, false), (x, false), (a + 1, false), (x + 1, false), (y, false), (y, true)];
        assert_eq!(shown(&touches), expected);
    }
}
