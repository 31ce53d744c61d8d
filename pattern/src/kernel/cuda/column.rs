//! Columns in the card's memory, and programs about their rows.
//!
//! A column is its values, one row behind the other, and the offsets of its rows, as Arrow has
//! them. The card makes the stream of last bytes from the offsets when the column comes; a program
//! of rows ([`crate::compile::Haystack::MarkedRow`]) reads it beside the values, and the bits at
//! the ends of rows become a bit for each row. **Leaves out** views, whose rows lie anywhere:
//! callers gather them.

use super::device::Cuda;
use super::driver::{DeviceMemory, Event, Grid};
use super::error::CudaError;
use super::pinned;
use super::resident::GpuProgram;
use super::work::{Job, Wants, PAD_BYTES};
use std::sync::Arc;

/// Kernels that no program is special to.
const ROWS: &str = include_str!("rows.cu");

/// Threads of a block, and blocks for each multiprocessor at most.
const THREADS: u32 = 256;
const BLOCKS_PER_MULTIPROCESSOR: usize = 16;

/// Offsets of rows: row `i` has the bytes from offset `i` to offset `i + 1`.
#[derive(Clone, Copy, Debug)]
pub enum RowOffsets<'o> {
    /// Of 32 bits.
    Narrow(&'o [i32]),
    /// Of 64 bits.
    Wide(&'o [i64]),
}

impl RowOffsets<'_> {
    fn len(self) -> usize {
        match self {
            RowOffsets::Narrow(offsets) => offsets.len(),
            RowOffsets::Wide(offsets) => offsets.len(),
        }
    }

    fn get(self, at: usize) -> i64 {
        match self {
            RowOffsets::Narrow(offsets) => i64::from(offsets[at]),
            RowOffsets::Wide(offsets) => offsets[at],
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        match self {
            RowOffsets::Narrow(offsets) => offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
            RowOffsets::Wide(offsets) => offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
        }
    }

    /// The bytes that the rows have.
    fn range(self) -> std::ops::Range<usize> {
        assert!(self.len() > 0, "no offsets: a column of n rows has n + 1");
        let ascend = (1..self.len()).all(|at| self.get(at - 1) <= self.get(at));
        assert!(ascend && self.get(0) >= 0, "offsets that decrease or are negative");
        self.get(0) as usize..self.get(self.len() - 1) as usize
    }
}

/// A column on the card.
#[derive(Debug)]
pub struct GpuColumn {
    cuda: Arc<Cuda>,
    values: DeviceMemory,
    offsets: DeviceMemory,
    /// A bit per byte that is the last one of a row.
    row_ends: DeviceMemory,
    is_wide: bool,
    /// Where the values begin among those that the offsets are of.
    first: usize,
    bytes: usize,
    rows: usize,
}

impl GpuColumn {
    /// Copies a column to the card: the values from the first offset to the last, and the offsets.
    ///
    /// # Errors
    /// The card has no room, or the driver fails.
    ///
    /// # Panics
    /// When there are no offsets, or they decrease or leave the values.
    pub fn upload(cuda: &Arc<Cuda>, values: &[u8], offsets: RowOffsets<'_>) -> Result<GpuColumn, CudaError> {
        let range = offsets.range();
        let (first, values) = (range.start, &values[range]);
        let driver = &cuda.driver;
        let memory = |bytes| DeviceMemory::new(driver, bytes);
        let column = GpuColumn {
            cuda: cuda.clone(),
            values: memory(values.len() + PAD_BYTES)?,
            offsets: memory(8 * offsets.len())?,
            row_ends: memory((values.len() + PAD_BYTES).div_ceil(64) * 8)?,
            is_wide: matches!(offsets, RowOffsets::Wide(_)),
            first,
            bytes: values.len(),
            rows: offsets.len() - 1,
        };
        let mark = cuda.kernel(ROWS, "mark")?;
        let work = &mut *cuda.work();
        pinned::upload(cuda, work, &column.values, values)?;
        pinned::upload(cuda, work, &column.offsets, &offsets.to_bytes())?;
        work.compute.clear(&column.row_ends)?;
        let started = work.compute.launch(&mark, column.grid(), &column.task());
        let finished = work.compute.finish();
        started.and(finished).map(|()| column)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The bytes of all rows together.
    pub fn total_bytes(&self) -> usize {
        self.bytes
    }

    fn task(&self) -> [u64; 16] {
        let mut task = [0u64; 16];
        task[0] = self.offsets.address();
        task[1] = u64::from(self.is_wide);
        task[2] = self.rows as u64;
        task[3] = self.first as u64;
        task[4] = self.row_ends.address();
        task
    }

    fn grid(&self) -> Grid {
        let most = BLOCKS_PER_MULTIPROCESSOR * self.cuda.card().multiprocessors as usize;
        Grid::new(self.rows.div_ceil(THREADS as usize).min(most), THREADS)
    }
}

/// Which rows of a column match.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchingRows {
    /// A bit for each row, 64 to a word, the first row's lowest; bits behind the last row are 0.
    pub words: Vec<u64>,
    /// Seconds that the card's own clock counted for the search, without the copy of the bits.
    pub card_seconds: f64,
}

impl GpuProgram {
    /// The rows of a column that match. An empty row has no byte that a program could mark:
    /// `empty` says whether such rows match.
    ///
    /// # Errors
    /// The program is not one about rows, or the driver fails.
    ///
    /// # Panics
    /// When the column is on another card than the program.
    pub fn matching_rows(&self, column: &GpuColumn, empty: EmptyRows) -> Result<MatchingRows, CudaError> {
        assert!(Arc::ptr_eq(&self.cuda, &column.cuda), "the column is on another card than the program");
        // A single operation is a constant: rows that are nothing or anything.
        if !self.program.has_row_ends() && self.program.instructions() > 1 {
            let reason = "it is about the lines of texts, and a column has rows".to_owned();
            return Err(CudaError::NoProgram { reason });
        }
        let found = DeviceMemory::new(&self.cuda.driver, column.rows.div_ceil(64) * 8)?;
        let (start, end) = (Event::new(&self.cuda.driver)?, Event::new(&self.cuda.driver)?);
        let rows = self.cuda.kernel(ROWS, "rows")?;
        let work = &mut *self.cuda.work();
        let stream = &work.compute;
        let mut task = column.task();
        task[6] = found.address();
        task[7] = u64::from(empty == EmptyRows::Match);
        stream.record(&start)?;
        stream.clear(&found)?;
        if column.bytes > 0 {
            let job = Job {
                text: column.values.address(),
                valid: column.bytes,
                row_ends: Some(column.row_ends.address()),
                received: None,
                wants: Wants::Ends,
                clock: None,
            };
            self.run(stream, &mut work.scratch[0], &job)?;
            task[5] = work.scratch[0].ends.as_ref().map_or(0, DeviceMemory::address);
        }
        stream.launch(&rows, column.grid(), &task)?;
        stream.record(&end)?;
        let words = super::positions::read_words(stream, &found, column.rows.div_ceil(64))?;
        Ok(MatchingRows { words, card_seconds: end.seconds_since(&start)? })
    }
}

/// Whether a row without bytes matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyRows {
    /// It does.
    Match,
    /// It does not.
    Differ,
}
