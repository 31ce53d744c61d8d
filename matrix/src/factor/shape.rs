//! The words in which triangles and symmetric matrices are described.

use crate::strided::Strided;
use crate::{Element, Error};

/// The side of a product or of a system on which a matrix stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `A·X`.
    Left,
    /// `X·A`.
    Right,
}

/// The half of a square array that is read or written, with its diagonal. The other half is never
/// touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

impl Triangle {
    /// The triangle of the transposed matrix.
    #[inline]
    pub(crate) fn transposed(self) -> Triangle {
        match self {
            Triangle::Lower => Triangle::Upper,
            Triangle::Upper => Triangle::Lower,
        }
    }
}

/// The diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// As it is stored.
    Stored,
    /// Ones, which are not stored: the array's diagonal is not read.
    Unit,
}

/// Whether entries are replaced by their complex conjugates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conjugation {
    /// As they are.
    None,
    /// Conjugates.
    Conjugated,
}

impl Conjugation {
    #[inline]
    pub(crate) fn of<T: Element>(self, value: T) -> T {
        match self {
            Conjugation::None => value,
            Conjugation::Conjugated => value.conj(),
        }
    }
}

/// A triangular matrix in a square array.
///
/// ```
/// use lightfoot_matrix::{Factor, Side, Strided, StridedMut, Triangular};
/// let a = [2.0, 1.0, f64::NAN, 4.0];
/// let mut x = [6.0, 11.0];
/// let lower = Triangular::lower(Strided::col_major(&a, 2, 2)?);
/// Factor::new().solve_triangular(Side::Left, 1.0, lower, StridedMut::col_major(&mut x, 2, 1)?)?;
/// assert_eq!(x, [3.0, 2.0]);
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Triangular<'a, T> {
    pub(crate) array: Strided<'a, T>,
    pub(crate) triangle: Triangle,
    pub(crate) diagonal: Diagonal,
    pub(crate) conjugation: Conjugation,
}

impl<'a, T: Element> Triangular<'a, T> {
    /// The lower triangle of `array`.
    pub fn lower(array: Strided<'a, T>) -> Self {
        Triangular::new(Triangle::Lower, array)
    }

    /// The upper triangle of `array`.
    pub fn upper(array: Strided<'a, T>) -> Self {
        Triangular::new(Triangle::Upper, array)
    }

    /// The triangle `triangle` of `array`.
    pub fn new(triangle: Triangle, array: Strided<'a, T>) -> Self {
        Triangular { array, triangle, diagonal: Diagonal::Stored, conjugation: Conjugation::None }
    }

    /// The triangle with ones on its diagonal.
    #[must_use]
    pub fn unit(self) -> Self {
        Triangular { diagonal: Diagonal::Unit, ..self }
    }

    /// The transposed matrix. No entry moves.
    #[must_use]
    pub fn transposed(self) -> Self {
        Triangular { array: self.array.transposed(), triangle: self.triangle.transposed(), ..self }
    }

    /// The conjugate transpose; for real types, the transpose.
    #[must_use]
    pub fn adjoint(self) -> Self {
        let conjugation = match self.conjugation {
            Conjugation::None => Conjugation::Conjugated,
            Conjugation::Conjugated => Conjugation::None,
        };
        Triangular { conjugation, ..self.transposed() }
    }

    /// The number of rows and of columns.
    pub(crate) fn size(&self) -> Result<usize, Error> {
        square("the rows and the columns of a triangular matrix", (self.array.rows(), self.array.cols()))
    }
}

/// Refuses shapes that are not square.
pub(super) fn square(what: &'static str, (rows, cols): (usize, usize)) -> Result<usize, Error> {
    match rows == cols {
        true => Ok(rows),
        false => Err(Error::Shape { what, left: (rows, cols), right: (rows, rows) }),
    }
}

/// Refuses two shapes that differ.
pub(super) fn same(what: &'static str, left: (usize, usize), right: (usize, usize)) -> Result<(), Error> {
    match left == right {
        true => Ok(()),
        false => Err(Error::Shape { what, left, right }),
    }
}
