//! Transposition of blocked matrices, by panel × panel blocks that lie in one piece on both sides.

use crate::gemm::turn_into;
use crate::{BlockedMatrix, Element, Error};

impl<T: Element> BlockedMatrix<T> {
    /// Aᵀ, stored for the same kernel with the same tile. Every element is read and written once.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows (the padding of Aᵀ differs from that of A).
    pub fn transposed(&self) -> Result<BlockedMatrix<T>, Error> {
        let mut out = BlockedMatrix::with(self.kernel(), self.cols(), self.rows(), self.layout().tile())?;
        turn_into(self, &mut out);
        Ok(out)
    }
}
