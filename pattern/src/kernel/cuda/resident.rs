//! Texts in the card's memory, and programs that search them.
//!
//! A search consists of a `scan` of all segments, a sum, and a `chain` if there are uncertain
//! segments. Its results are a count per segment and, if requested, a bit per byte, from which the
//! card lists positions. Its memory is reused by the next search.

use super::device::Cuda;
use super::driver::{DeviceFunction, DeviceMemory, DeviceStream, Event, Grid};
use super::error::CudaError;
use super::lower::{lower, Entry, Reach};
use super::pinned;
use super::positions::{self, Marks, Positions, LINES};
use super::work::{Cut, Job, SearchMemory, Wants, Work, PAD_BYTES};
use crate::program::BitProgram;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Segments are multiples of this, so that every width divides them.
const SEGMENT_BYTES: Range<usize> = 16 << 10..128 << 10;

/// Groups that one multiprocessor holds at most: a text that all of them together can take in one
/// go is cut for that.
const GROUPS_PER_MULTIPROCESSOR: usize = 32;

/// A text on the card.
#[derive(Debug)]
pub struct GpuText {
    pub(super) cuda: Arc<Cuda>,
    pub(super) memory: DeviceMemory,
    /// Bytes without the terminator that was added.
    pub(super) length: usize,
    /// Bytes with the terminator that was added.
    pub(super) valid: usize,
    pub(super) terminator: u8,
}

impl GpuText {
    /// Copies a text to the card, for programs whose lines end with `terminator`.
    ///
    /// # Errors
    /// The card has no room, or the driver fails.
    pub fn upload(cuda: &Arc<Cuda>, text: &[u8], terminator: u8) -> Result<GpuText, CudaError> {
        let memory = DeviceMemory::new(&cuda.driver, text.len() + PAD_BYTES)?;
        let is_open = text.last().is_some_and(|&last| last != terminator);
        let work = &mut *cuda.work();
        pinned::upload(cuda, work, &memory, text)?;
        if is_open {
            work.copies.write(&memory, text.len(), &[terminator])?;
        }
        let (length, valid) = (text.len(), text.len() + usize::from(is_open));
        Ok(GpuText { cuda: cuda.clone(), memory, length, valid, terminator })
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// A program on a card.
#[derive(Debug)]
pub struct GpuProgram {
    pub(super) cuda: Arc<Cuda>,
    pub(super) program: BitProgram,
    reach: Reach,
    scan: Arc<DeviceFunction>,
    state_words: usize,
    chain: OnceLock<Arc<DeviceFunction>>,
}

/// Matching lines, copied from the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchingLines {
    /// Where each lies in the text, its terminator included where it has one.
    pub places: Vec<Range<u64>>,
    /// Their bytes, one behind the other.
    pub bytes: Vec<u8>,
}

impl GpuProgram {
    /// Compiles a program for the card.
    ///
    /// # Errors
    /// The compiler or the driver refuses it. Cost: tens of milliseconds the first time.
    ///
    /// # Panics
    /// When the program breaks a rule of [`BitProgram::verify`].
    pub fn new(cuda: &Arc<Cuda>, program: &BitProgram, reach: Reach) -> Result<GpuProgram, CudaError> {
        let lowered = lower(program, reach, cuda.options.width, Entry::Scan);
        Ok(GpuProgram {
            scan: cuda.kernel(&lowered.source, Entry::Scan.name())?,
            cuda: cuda.clone(),
            program: program.clone(),
            reach,
            state_words: lowered.state_words,
            chain: OnceLock::new(),
        })
    }

    /// The card that it was compiled for.
    pub fn cuda(&self) -> &Arc<Cuda> {
        &self.cuda
    }

    /// How many lines of a text on the card match.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn count_lines(&self, text: &GpuText) -> Result<u64, CudaError> {
        self.check(text)?;
        let work = &mut *self.cuda.work();
        let job = Job {
            text: text.memory.address(),
            valid: text.valid,
            row_ends: None,
            received: None,
            wants: Wants::Count,
            clock: None,
        };
        self.run(&work.compute, &mut work.scratch[0], &job)
    }

    /// How many lines of a text on the card match, and the seconds that the card's own clock
    /// counted.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn count_lines_timed(&self, text: &GpuText) -> Result<(u64, f64), CudaError> {
        self.check(text)?;
        let (start, end) = (Event::new(&self.cuda.driver)?, Event::new(&self.cuda.driver)?);
        if text.is_empty() {
            return Ok((0, 0.0));
        }
        let work = &mut *self.cuda.work();
        let (received, clock) = (None, Some([&start, &end]));
        let job = Job {
            text: text.memory.address(),
            valid: text.valid,
            row_ends: None,
            received,
            wants: Wants::Count,
            clock,
        };
        let count = self.run(&work.compute, &mut work.scratch[0], &job)?;
        Ok((count, end.seconds_since(&start)?))
    }

    /// Where the terminators of matching lines stand, ascending; the text's length for a last line
    /// without.
    ///
    /// # Errors
    /// The driver fails, or the text's lines end with another byte.
    pub fn line_ends(&self, text: &GpuText) -> Result<Vec<u64>, CudaError> {
        self.check(text)?;
        let work = &mut *self.cuda.work();
        let Work { compute, scratch, .. } = work;
        let job = Job {
            text: text.memory.address(),
            valid: text.valid,
            row_ends: None,
            received: None,
            wants: Wants::Ends,
            clock: None,
        };
        let count = self.run(compute, &mut scratch[0], &job)?;
        let mut ends = vec![0; count as usize];
        self.list(compute, &scratch[0], text.valid, 0, &mut ends)?;
        Ok(ends)
    }

    /// The matching lines, gathered on the card.
    ///
    /// # Errors
    /// The driver fails, the text's lines end with another byte, or the matching lines do not fit
    /// beside the text.
    pub fn matching_lines(&self, text: &GpuText) -> Result<MatchingLines, CudaError> {
        let ends = self.line_ends(text)?;
        if ends.is_empty() {
            return Ok(MatchingLines::default());
        }
        let work = &mut *self.cuda.work();
        let stream = &work.compute;
        let driver = &self.cuda.driver;
        // A warp looks back from each line's end for its start.
        let [positions, firsts, offsets] = [(); 3].map(|()| DeviceMemory::new(driver, 8 * ends.len()));
        let (positions, firsts, offsets) = (positions?, firsts?, offsets?);
        stream.write(&positions, 0, &positions::to_bytes(&ends))?;
        let mut task = [0u64; 16];
        task[0] = text.memory.address();
        task[6] = positions.address();
        task[7] = firsts.address();
        task[12] = ends.len() as u64;
        task[13] = u64::from(text.terminator);
        task[15] = text.length as u64;
        let starts = self.cuda.kernel(LINES, "starts")?;
        let blocks = ends.len().div_ceil(8);
        stream.launch(&starts, Grid::new(blocks, 256), &task)?;
        let starts = positions::read_words(stream, &firsts, ends.len())?;
        let places: Vec<Range<u64>> =
            starts.iter().zip(&ends).map(|(&start, &end)| start..(end + 1).min(text.length as u64)).collect();
        // The lines' lengths give where each begins among the gathered bytes; a block copies each.
        let mut total = 0;
        let begins: Vec<u64> = places
            .iter()
            .map(|place| {
                let at = total;
                total += place.end - place.start;
                at
            })
            .collect();
        stream.write(&offsets, 0, &positions::to_bytes(&begins))?;
        let gathered = DeviceMemory::new(driver, total as usize)?;
        task[5] = offsets.address();
        task[8] = gathered.address();
        let gather = self.cuda.kernel(LINES, "gather")?;
        stream.launch(&gather, Grid::new(ends.len().min(1 << 16), 128), &task)?;
        let mut bytes = vec![0; total as usize];
        stream.read(&gathered, 0, &mut bytes)?;
        Ok(MatchingLines { places, bytes })
    }

    fn check(&self, text: &GpuText) -> Result<(), CudaError> {
        assert!(Arc::ptr_eq(&self.cuda, &text.cuda), "the text is on another card than the program");
        if self.program.has_row_ends() {
            let reason = "it is about the rows of columns, and a text has lines".to_owned();
            return Err(CudaError::NoProgram { reason });
        }
        if text.terminator != self.program.terminator {
            return Err(CudaError::Terminator { text: text.terminator, program: self.program.terminator });
        }
        Ok(())
    }

    fn chain(&self) -> Result<&Arc<DeviceFunction>, CudaError> {
        if let Some(chain) = self.chain.get() {
            return Ok(chain);
        }
        let lowered = lower(&self.program, self.reach, self.cuda.options.chain_width, Entry::Chain);
        let chain = self.cuda.kernel(&lowered.source, Entry::Chain.name())?;
        Ok(self.chain.get_or_init(|| chain))
    }

    fn cut(&self, valid: usize) -> Cut {
        let options = &self.cuda.options;
        let step = options.width.step_bytes().max(options.chain_width.step_bytes());
        let groups = self.cuda.card().multiprocessors as usize * GROUPS_PER_MULTIPROCESSOR;
        let wanted = valid.div_ceil(groups).clamp(SEGMENT_BYTES.start, SEGMENT_BYTES.end);
        let segment_bytes = options.segment_bytes.unwrap_or(wanted).max(1).next_multiple_of(step);
        Cut { segment_bytes, segments: valid.div_ceil(segment_bytes) }
    }

    /// What pieces of a text are multiples of, so that each ends where a segment ends.
    pub(super) fn piece_bytes(&self) -> usize {
        let wanted = self.cuda.options.piece_bytes;
        wanted.max(1).next_multiple_of(self.cut(wanted).segment_bytes)
    }

    /// Where the last segment of a search of `valid` bytes leaves what it hands on.
    pub(super) fn handed_on(&self, scratch: &SearchMemory, valid: usize) -> Option<u64> {
        let last = self.cut(valid).segments.checked_sub(1)?;
        Some(scratch.states.address() + 8 * (last * self.state_words) as u64)
    }

    /// Searches a text on the card; how many lines match. Waits for it.
    pub(super) fn run(
        &self,
        stream: &DeviceStream,
        scratch: &mut SearchMemory,
        job: &Job<'_>,
    ) -> Result<u64, CudaError> {
        let cut = self.cut(job.valid);
        if cut.segments == 0 {
            return Ok(0);
        }
        let result = self.counted(stream, scratch, job);
        // Nothing may run any more where the memory is used again.
        let finished = stream.finish();
        result.and_then(|count| finished.map(|()| count))
    }

    fn counted(
        &self,
        stream: &DeviceStream,
        scratch: &mut SearchMemory,
        job: &Job<'_>,
    ) -> Result<u64, CudaError> {
        if let Some([start, _]) = job.clock {
            stream.record(start)?;
        }
        stream.clear(&scratch.total)?;
        let total = scratch.total.address();
        self.start(stream, scratch, job, total)?;
        let [count, uncertain] = self.total(stream, scratch, job)?;
        if uncertain == 0 {
            return Ok(count);
        }
        self.follow(stream, scratch, job, total)?;
        let [count, _] = self.total(stream, scratch, job)?;
        Ok(count)
    }

    /// Starts the search of all segments, and does not wait. The numbers of matching lines and of
    /// segments that are not certain are added to two words at `total`.
    pub(super) fn start(
        &self,
        stream: &DeviceStream,
        scratch: &mut SearchMemory,
        job: &Job<'_>,
        total: u64,
    ) -> Result<(), CudaError> {
        let (cut, width) = (self.cut(job.valid), self.cuda.options.width);
        scratch.reserve(&self.cuda.driver, cut, self.state_words, job)?;
        let task = scratch.task(job, cut, width, total);
        stream.launch(&self.scan, Grid::new(cut.segments, width.group_threads()), &task)
    }

    /// Computes segments again that are not certain and began with wrong carries; does not wait.
    pub(super) fn follow(
        &self,
        stream: &DeviceStream,
        scratch: &SearchMemory,
        job: &Job<'_>,
        total: u64,
    ) -> Result<(), CudaError> {
        let (cut, width) = (self.cut(job.valid), self.cuda.options.chain_width);
        let blocks = cut.segments.div_ceil(width.group_threads() as usize);
        let most = 4 * self.cuda.card().multiprocessors as usize;
        let task = scratch.task(job, cut, width, total);
        stream.launch(self.chain()?, Grid::new(blocks.min(most), width.group_threads()), &task)
    }

    /// Matching lines, and segments that are not certain.
    fn total(
        &self,
        stream: &DeviceStream,
        scratch: &SearchMemory,
        job: &Job<'_>,
    ) -> Result<[u64; 2], CudaError> {
        if let Some([_, end]) = job.clock {
            stream.record(end)?;
        }
        let words = positions::read_words(stream, &scratch.total, 2)?;
        Ok([words[0], words[1]])
    }

    /// Lists the one bits of the last search, which left `ends.len()` of them, in order.
    pub(super) fn list(
        &self,
        stream: &DeviceStream,
        scratch: &SearchMemory,
        valid: usize,
        base: u64,
        ends: &mut [u64],
    ) -> Result<(), CudaError> {
        let Some(bits) = &scratch.ends else { return Ok(()) };
        let marks = Marks { bits, counts: &scratch.counts, cut: self.cut(valid), valid, base };
        let mut found = Positions::new(&self.cuda.driver)?;
        positions::list(&self.cuda, stream, &marks, ends.len(), &mut found)?;
        ends.copy_from_slice(&positions::read_words(stream, &found.places, ends.len())?);
        Ok(())
    }
}
