//! Errors of columns: which row is wrong, and how.

use std::fmt;

/// A column that cannot be read, or a result that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnError {
    /// There is no offset at all; a column of `n` rows has `n + 1`.
    NoOffsets,
    /// The first offset is negative.
    NegativeOffset {
        /// The offset.
        offset: i64,
    },
    /// A row ends before it begins.
    DecreasingOffsets {
        /// The row.
        row: usize,
        /// Where it begins.
        start: i64,
        /// Where it ends.
        end: i64,
    },
    /// A row ends behind the values.
    BeyondValues {
        /// The row.
        row: usize,
        /// Where it ends.
        end: i64,
        /// The length of the values.
        bytes: usize,
    },
    /// A view names a buffer that the column does not have.
    NoSuchBuffer {
        /// The row.
        row: usize,
        /// The number in the view.
        buffer: u32,
        /// How many buffers there are.
        buffers: usize,
    },
    /// A view ends behind its buffer.
    BeyondBuffer {
        /// The row.
        row: usize,
        /// Where it ends.
        end: u64,
        /// The number of the buffer.
        buffer: u32,
        /// The length of the buffer.
        bytes: usize,
    },
    /// The validity bitmap has fewer bits than the column has rows.
    ShortValidity {
        /// The bits, those before the first row left out.
        bits: usize,
        /// The rows.
        rows: usize,
    },
    /// The expression has no such group.
    NoSuchGroup {
        /// The group that was asked for.
        group: usize,
        /// How many groups there are, the whole match included.
        groups: usize,
    },
    /// Offsets of 32 bits cannot address this many bytes.
    TooLong {
        /// The bytes.
        bytes: usize,
    },
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ColumnError::NoOffsets => {
                write!(f, "no offsets: a column of n rows has n + 1 of them, and one without rows has one")
            }
            ColumnError::NegativeOffset { offset } => {
                write!(f, "offsets begin at {offset}; expected 0 or more")
            }
            ColumnError::DecreasingOffsets { row, start, end } => {
                write!(f, "offsets decrease at row {row}: {end} after {start}")
            }
            ColumnError::BeyondValues { row, end, bytes } => {
                write!(f, "row {row} ends at {end}, beyond the {bytes} bytes of values")
            }
            ColumnError::NoSuchBuffer { row, buffer, buffers } => {
                write!(f, "row {row} lies in buffer {buffer}; the column has {buffers}, counted from 0")
            }
            ColumnError::BeyondBuffer { row, end, buffer, bytes } => {
                write!(f, "row {row} ends at {end}, beyond the {bytes} bytes of buffer {buffer}")
            }
            ColumnError::ShortValidity { bits, rows } => {
                write!(f, "the validity bitmap has {bits} bits for {rows} rows; each row takes one")
            }
            ColumnError::NoSuchGroup { group, groups } => {
                write!(f, "there is no group {group}; the expression has groups 0 to {}", groups - 1)
            }
            ColumnError::TooLong { bytes } => {
                write!(
                    f,
                    "{bytes} bytes are more than offsets of 32 bits address ({}); take those of 64 bits",
                    i32::MAX
                )
            }
        }
    }
}

impl std::error::Error for ColumnError {}
