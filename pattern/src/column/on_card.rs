//! Columns on a graphics card: uploaded once, searched by any number of expressions.
//!
//! **Leaves out** columns larger than the card's memory: parts of a column are columns.

use super::program::{exact_program, RowEnd};
use super::rows::{Column, Layout};
use super::ColumnRegex;
use crate::bits::Bitmap;
use crate::kernel::cuda::{Cuda, CudaError, EmptyRows, GpuColumn, GpuProgram, Reach, RowOffsets};
use std::sync::Arc;

/// A column on a card, and which of its rows are valid.
///
/// ```no_run
/// use lightfoot_pattern::column::{Column, ColumnOnCard, ColumnRegex, RegexOnCard};
/// use lightfoot_pattern::kernel::cuda::Cuda;
/// let cuda = Cuda::shared()?;
/// let column = Column::new(b"GET /POST /aGET /b", &[0, 5, 12, 18])?;
/// let column = ColumnOnCard::upload(&cuda, &column)?;
/// let regex = RegexOnCard::new(&cuda, &ColumnRegex::new(r"^GET /\w")?)?;
/// assert_eq!(regex.scan(&column)?.ones().collect::<Vec<_>>(), [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ColumnOnCard {
    column: GpuColumn,
    valid: Option<Bitmap>,
}

impl ColumnOnCard {
    /// Copies a column to a card. Views are gathered first, row behind row.
    ///
    /// # Errors
    /// The card has no room, or the driver fails.
    pub fn upload(cuda: &Arc<Cuda>, column: &Column<'_>) -> Result<ColumnOnCard, CudaError> {
        let valid = column.valid.clone();
        let column = match column.layout {
            Layout::Offsets(values, offsets) => GpuColumn::upload(cuda, values, RowOffsets::Narrow(offsets)),
            Layout::LargeOffsets(values, offsets) => {
                GpuColumn::upload(cuda, values, RowOffsets::Wide(offsets))
            }
            Layout::Views(..) => {
                let (mut values, mut offsets) = (Vec::with_capacity(column.total_bytes()), vec![0i64]);
                for row in 0..column.len() {
                    values.extend_from_slice(column.bytes(row));
                    offsets.push(values.len() as i64);
                }
                GpuColumn::upload(cuda, &values, RowOffsets::Wide(&offsets))
            }
        };
        Ok(ColumnOnCard { column: column?, valid })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.column.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.column.is_empty()
    }

    /// The bytes of all rows together.
    pub fn total_bytes(&self) -> usize {
        self.column.total_bytes()
    }
}

/// An expression on a card, for columns there.
#[derive(Debug)]
pub struct RegexOnCard {
    program: GpuProgram,
    empty: EmptyRows,
}

impl RegexOnCard {
    /// Compiles an expression for a card.
    ///
    /// # Errors
    /// The expression has no exact program, or the compiler or the driver refuses it. Cost: tenths
    /// of a second the first time.
    pub fn new(cuda: &Arc<Cuda>, regex: &ColumnRegex) -> Result<RegexOnCard, CudaError> {
        let Some(program) = exact_program(regex.regex.hir(), regex.regex.options(), RowEnd::Marked) else {
            let reason = "no program decides its rows exactly".to_owned();
            return Err(CudaError::NoProgram { reason });
        };
        let empty = if regex.matches(b"") { EmptyRows::Match } else { EmptyRows::Differ };
        Ok(RegexOnCard { program: GpuProgram::new(cuda, &program, Reach::Line)?, empty })
    }

    /// The rows that match; null rows match nothing. Cost: one pass over the bytes of the rows,
    /// and the copy of a bit for each row.
    ///
    /// # Errors
    /// The driver fails.
    pub fn scan(&self, column: &ColumnOnCard) -> Result<Bitmap, CudaError> {
        self.scan_timed(column).map(|(rows, _)| rows)
    }

    /// The rows that match, and the seconds that the card's own clock counted.
    ///
    /// # Errors
    /// The driver fails.
    pub fn scan_timed(&self, column: &ColumnOnCard) -> Result<(Bitmap, f64), CudaError> {
        let found = self.program.matching_rows(&column.column, self.empty)?;
        let mut rows = Bitmap::from_words(found.words, column.len());
        if let Some(valid) = &column.valid {
            rows.keep_only(valid);
        }
        Ok((rows, found.card_seconds))
    }
}
