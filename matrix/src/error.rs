//! Errors of requests; every message names the values that do not fit.

use std::fmt;

/// Why a call was refused. Nothing was computed or changed, except where [`Error::Singular`] and
/// [`Error::NotPositiveDefinite`] say so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Two operands disagree in a dimension.
    Shape {
        /// Which dimensions have to agree, e.g. "columns of op(A) and rows of op(B)".
        what: &'static str,
        /// Shape of the first, rows × columns.
        left: (usize, usize),
        /// Shape of the second.
        right: (usize, usize),
    },
    /// Rows × columns (with padding) is more memory than can be addressed.
    TooLarge {
        /// The rows that were requested.
        rows: usize,
        /// The columns that were requested.
        cols: usize,
    },
    /// A strided array reaches outside its slice.
    OutOfBounds {
        /// The smallest and the largest index that it would touch.
        reach: (isize, isize),
        /// Length of the slice.
        len: usize,
    },
    /// Two entries of an array that is written would share one place.
    Overlap {
        /// The array's shape.
        shape: (usize, usize),
        /// The array's row stride and column stride.
        strides: (isize, isize),
    },
    /// A number of a plan or description cannot be used.
    Invalid {
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: usize,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// Operands were stored for different kernels.
    Panels {
        /// Panel height of the first.
        left: usize,
        /// Panel height of the other.
        right: usize,
    },
    /// A matrix has no inverse: this pivot is exactly zero. Right-hand sides are unchanged.
    Singular {
        /// The column of the pivot, counted from 0.
        column: usize,
    },
    /// The matrix has no Cholesky factor. The columns before this one hold those of the factor, and
    /// the rest of the triangle holds intermediate results.
    NotPositiveDefinite {
        /// The column whose pivot is not positive, counted from 0.
        column: usize,
    },
    /// The machine description lacks a field that is needed.
    Machine {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { what, left, right } => {
                write!(f, "{what} differ: {}×{} against {}×{}", left.0, left.1, right.0, right.1)
            }
            Error::TooLarge { rows, cols } => write!(f, "a matrix of {rows}×{cols} cannot be addressed"),
            Error::OutOfBounds { reach, len } => {
                write!(
                    f,
                    "the strides reach from index {} to {}, the slice has {len} elements",
                    reach.0, reach.1
                )
            }
            Error::Overlap { shape, strides } => write!(
                f,
                "entries of the {}×{} result overlap: row stride {}, column stride {}",
                shape.0, shape.1, strides.0, strides.1
            ),
            Error::Invalid { field, value, expected } => write!(f, "{field} is {value}, expected {expected}"),
            Error::Panels { left, right } => {
                write!(f, "operands are stored in panels of {left} and of {right} rows: convert one of them")
            }
            Error::Singular { column } => {
                write!(f, "the matrix is singular: the pivot of column {column} is 0; use a QR factorisation")
            }
            Error::NotPositiveDefinite { column } => write!(
                f,
                "the matrix is not positive definite: the pivot of column {column} is not above 0; use LU"
            ),
            Error::Machine { field } => write!(f, "the machine description has no {field}"),
        }
    }
}

impl std::error::Error for Error {}
