//! Sets of patterns on the card: the lines in which any of them matches.
//!
//! **Problem.** One program for many patterns has more carries than a thread has registers, and a
//! program for each reads the text once for each.
//!
//! **Idea.** A filter reads the text once, whatever the set's size, and looks for rows of bytes
//! that a match of some pattern must hold. Where such a row is the whole pattern, its line matches.
//! Other lines are gathered to a small text on the card, and programs of some patterns each search
//! that:
//!
//! ```text
//! text ──filter─┬▶ matches ─────────────────ends────────────────────┬▶ matching lines
//!               └▶ hits ──lines, gather──▶ small text ──programs──▶─┘
//! ```
//!
//! **Invariants.** A set's lines are those of its patterns: what the filter does not decide,
//! programs do. Where a good part of the text is hit, programs search the text itself.
//! **Leaves out** which pattern of the set a line matches, and texts of the host.

mod search;
mod table;
mod window;

use super::device::Cuda;
use super::driver::{DeviceMemory, Event};
use super::error::CudaError;
use super::lower::Reach;
use super::resident::{GpuProgram, GpuText};
use crate::program::BitProgram;
use search::{SetMemory, Want};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use table::Table;
pub(crate) use window::{windows, Window};

/// A set of patterns on a card.
///
/// ```no_run
/// use lightfoot_pattern::compile::CompileOptions;
/// use lightfoot_pattern::kernel::cuda::{Cuda, GpuSet, GpuText};
/// let cuda = Cuda::shared()?;
/// let patterns = ["timeout", r"disk \w+ failed"].map(|one| regex_syntax::parse(one).unwrap());
/// let set = GpuSet::new(&cuda, &patterns, &CompileOptions::default())?;
/// let text = GpuText::upload(&cuda, b"a disk failed\nthe disk sda failed\n", b'\n')?;
/// assert_eq!(set.line_ends(&text)?, [33]);
/// # Ok::<(), lightfoot_pattern::kernel::cuda::CudaError>(())
/// ```
#[derive(Debug)]
pub struct GpuSet {
    cuda: Arc<Cuda>,
    terminator: u8,
    /// Programs that search every text as a whole.
    whole: Vec<GpuProgram>,
    /// Programs that search the lines which the filter finds.
    filtered: Vec<GpuProgram>,
    filter: Option<Filter>,
    memory: Mutex<SetMemory>,
}

/// What a set consists of.
pub(crate) struct SetParts {
    /// Programs for the whole text.
    pub(crate) whole: Vec<BitProgram>,
    /// Programs for the lines that the filter finds.
    pub(crate) filtered: Vec<BitProgram>,
    /// What the filter looks for.
    pub(crate) windows: Vec<Window>,
}

/// The filter's tables, here and on the card.
#[derive(Debug)]
struct Filter {
    table: Table,
    words: DeviceMemory,
    buckets: DeviceMemory,
    lists: DeviceMemory,
    owners: DeviceMemory,
    rows: DeviceMemory,
    sets: DeviceMemory,
}

impl GpuSet {
    /// Compiles the parts of a set for a card.
    pub(crate) fn of(cuda: &Arc<Cuda>, parts: SetParts, terminator: u8) -> Result<GpuSet, CudaError> {
        let shared_bytes = cuda.card().block_shared_bytes as usize;
        let has_filter = !parts.windows.is_empty();
        let filter = has_filter.then(|| Filter::new(cuda, Table::new(&parts.windows, shared_bytes)));
        let mut whole = compiled(cuda, &[&parts.whole[..], &parts.filtered[..]].concat())?;
        let filtered = whole.split_off(parts.whole.len());
        let memory = Mutex::new(SetMemory::new(&cuda.driver)?);
        Ok(GpuSet { cuda: cuda.clone(), terminator, whole, filtered, filter: filter.transpose()?, memory })
    }

    /// How many lines of a text on the card match any of the patterns.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn count_lines(&self, text: &GpuText) -> Result<u64, CudaError> {
        self.search(text, Want::Count, None).map(|found| found.count)
    }

    /// How many lines of a text on the card match any of the patterns, and the seconds that the
    /// card's own clock counted.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn count_lines_timed(&self, text: &GpuText) -> Result<(u64, f64), CudaError> {
        let (start, end) = (Event::new(&self.cuda.driver)?, Event::new(&self.cuda.driver)?);
        let found = self.search(text, Want::Count, Some([&start, &end]))?;
        Ok((found.count, if text.is_empty() { 0.0 } else { end.seconds_since(&start)? }))
    }

    /// Where the terminators of lines stand that match any of the patterns, ascending; the text's
    /// length for a last line without.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn line_ends(&self, text: &GpuText) -> Result<Vec<u64>, CudaError> {
        self.search(text, Want::Ends, None).map(|found| found.ends)
    }

    /// What the set was made to, in words.
    pub fn explain(&self) -> String {
        let programs = |count: usize| format!("{count} program{}", if count == 1 { "" } else { "s" });
        let mut text = programs(self.whole.len());
        if let Some(filter) = &self.filter {
            text += &format!(
                ", a filter of {} KiB with {:.2} % of its bits set, {} behind it",
                filter.table.words.len() / 256,
                100.0 * filter.table.load(),
                programs(self.filtered.len())
            );
        }
        text
    }
}

impl Filter {
    fn new(cuda: &Cuda, table: Table) -> Result<Filter, CudaError> {
        let on_card = |words: &[u32]| {
            let memory = DeviceMemory::new(&cuda.driver, 4 * words.len())?;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            cuda.work().copies.write(&memory, 0, &bytes)?;
            Ok(memory)
        };
        Ok(Filter {
            words: on_card(&table.words)?,
            buckets: on_card(&table.buckets)?,
            lists: on_card(table.lists.as_flattened())?,
            owners: on_card(&table.owners)?,
            rows: on_card(table.rows.as_flattened())?,
            sets: on_card(table.sets.as_flattened())?,
            table,
        })
    }
}

/// Compiles programs side by side; the first error of the first program that has one.
fn compiled(cuda: &Arc<Cuda>, programs: &[BitProgram]) -> Result<Vec<GpuProgram>, CudaError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(programs.len());
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, Result<GpuProgram, CudaError>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(program) = programs.get(number) else { break };
                let program = GpuProgram::new(cuda, program, Reach::Line);
                made.lock().unwrap_or_else(PoisonError::into_inner).push((number, program));
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, program)| program).collect()
}
