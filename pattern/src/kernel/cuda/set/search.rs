//! A search for a set: the filter, the lines that it found as a text, and the programs.
//!
//! The host waits for what decides the next step alone: how many places the filter marked, in each
//! segment too, how long their lines are, and what the programs found. All programs of a wave run
//! before any result is looked at. Memory stays with the set, because taking memory of a card lasts
//! as long as a search.
//! **Leaves out** listing places without the host, which adds up counts of segments.

use super::super::driver::{DeviceMemory, DeviceStream, Driver, Event, Grid};
use super::super::error::CudaError;
use super::super::positions::{self, Marks, Positions};
use super::super::resident::{GpuProgram, GpuText};
use super::super::work::{Cut, Job, SearchMemory, Wants, PAD_BYTES};
use super::{Filter, GpuSet};
use std::sync::{Arc, PoisonError};

const FILTER: &str = include_str!("filter.cu");
const COMPACT: &str = include_str!("compact.cu");

/// Threads of a block of the filter: they share a table.
const FILTER_THREADS: u32 = 1024;
/// A warp's step.
const STEP_BYTES: usize = 2048;
/// Bytes that a warp of the filter goes through: enough that its first step costs nothing, and so
/// few that all warps end together.
const SEGMENT_BYTES: usize = 32 << 10;

/// Threads of a block of the other kernels.
const THREADS: u32 = 256;
/// Blocks that add up lengths: each begins with a sum over all before it, a thread for each.
const SUMMING_BLOCKS: usize = 256;

/// Programs search the text itself where the filter marks more than one byte of so many, or where
/// the lines that it found are a larger part of the text than one of so many bytes.
const DENSE_PLACES: usize = 32;
const DENSE_BYTES: usize = 2;

/// Words that one thread follows a line for, as `compact.cu` has it.
const NEAR_WORDS: usize = 32;

/// Bits of several programs' searches that are on the card at once, in bytes.
const WAVE_BYTES: usize = 256 << 20;
/// Programs that search at once, at most.
const WAVE_PROGRAMS: usize = 128;

/// What is asked of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Count,
    Ends,
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) count: u64,
    /// Where they were asked for.
    pub(super) ends: Vec<u64>,
}

/// Memory of a set's searches, which grows and is used again.
#[derive(Debug)]
pub(super) struct SetMemory {
    /// A bit per byte: places that the filter marked, for programs and as matches.
    hits: DeviceMemory,
    matches: DeviceMemory,
    /// One per segment, twice for the filter.
    counts: DeviceMemory,
    /// Words whose lines end far behind them.
    far: DeviceMemory,
    places: Positions,
    firsts: DeviceMemory,
    /// Lengths of lines, then where they begin.
    lengths: DeviceMemory,
    sums: DeviceMemory,
    /// The lines that the filter found.
    lines: DeviceMemory,
    /// Ends of matching lines, of the lines that the filter found and of the whole text.
    found: [DeviceMemory; 2],
    /// Two words for each program of a wave.
    totals: DeviceMemory,
    /// One for each program of a wave.
    scratch: Vec<SearchMemory>,
}

impl SetMemory {
    pub(super) fn new(driver: &Arc<Driver>) -> Result<SetMemory, CudaError> {
        let make = || DeviceMemory::new(driver, 16);
        Ok(SetMemory {
            hits: make()?,
            matches: make()?,
            counts: make()?,
            far: make()?,
            places: Positions::new(driver)?,
            firsts: make()?,
            lengths: make()?,
            sums: DeviceMemory::new(driver, 8 * SUMMING_BLOCKS)?,
            lines: make()?,
            found: [make()?, make()?],
            totals: DeviceMemory::new(driver, 16 * WAVE_PROGRAMS)?,
            scratch: Vec::new(),
        })
    }
}

/// A text on the card that programs search: the whole one, or the lines of it that a filter found.
#[derive(Clone, Copy)]
struct Searched {
    address: u64,
    /// Bytes; the last one ends a line.
    valid: usize,
}

/// Which of a search's results.
const OF_LINES: usize = 0;
const OF_TEXT: usize = 1;

impl GpuSet {
    pub(super) fn search(
        &self,
        text: &GpuText,
        want: Want,
        clock: Option<[&Event; 2]>,
    ) -> Result<Found, CudaError> {
        assert!(Arc::ptr_eq(&self.cuda, &text.cuda), "the text is on another card than the set");
        if text.terminator != self.terminator {
            return Err(CudaError::Terminator { text: text.terminator, program: self.terminator });
        }
        if text.is_empty() {
            return Ok(Found::default());
        }
        let work = &*self.cuda.work();
        let memory = &mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut search = Search { set: self, stream: &work.compute, memory };
        if let Some([start, _]) = clock {
            search.stream.record(start)?;
        }
        let whole = Searched { address: text.memory.address(), valid: text.valid };
        let result = search.run(whole, want, clock.map(|[_, end]| end));
        // Nothing may run any more where the memory is used again.
        let finished = search.stream.finish();
        result.and_then(|found| finished.map(|()| found))
    }
}

/// One search.
struct Search<'s> {
    set: &'s GpuSet,
    stream: &'s DeviceStream,
    memory: &'s mut SetMemory,
}

impl Search<'_> {
    fn run(&mut self, whole: Searched, want: Want, end: Option<&Event>) -> Result<Found, CudaError> {
        let GpuSet { whole: programs, filtered, filter, .. } = self.set;
        let filtered: Vec<&GpuProgram> = filtered.iter().collect();
        let mut programs: Vec<&GpuProgram> = programs.iter().collect();
        let (marked, lines) = match filter {
            None => (Marked::default(), Some(Lines::default())),
            Some(filter) => {
                let marked = self.filter(filter, whole)?;
                (marked, self.lines_of(whole, marked.hits)?)
            }
        };
        let lines = match lines {
            Some(lines) => lines,
            None => {
                // Too much was found for a text of its own: all programs read the whole one.
                programs.extend(&filtered);
                Lines::default()
            }
        };
        if lines.bytes > 0 {
            let gathered = Searched { address: self.memory.lines.address(), valid: lines.bytes };
            self.clear(OF_LINES, gathered)?;
            self.matching(&filtered, gathered, OF_LINES)?;
            if marked.matches == 0 && programs.is_empty() && want == Want::Count {
                return self.answer(OF_LINES, gathered, want, end);
            }
        }
        self.clear(OF_TEXT, whole)?;
        if marked.matches > 0 {
            self.ends(whole)?;
        }
        if lines.bytes > 0 {
            self.scatter(&lines)?;
        }
        self.matching(&programs, whole, OF_TEXT)?;
        self.answer(OF_TEXT, whole, want, end)
    }

    /// Segments of so many bytes, of which each warp takes some.
    fn cut(valid: usize) -> Cut {
        Cut { segment_bytes: SEGMENT_BYTES, segments: valid.div_ceil(SEGMENT_BYTES) }
    }

    /// Marks places of a text; how many.
    fn filter(&mut self, filter: &Filter, text: Searched) -> Result<Marked, CudaError> {
        let cut = Search::cut(text.valid);
        let driver = &self.set.cuda.driver;
        self.memory.hits.grow(driver, (text.valid + PAD_BYTES).div_ceil(8))?;
        self.memory.matches.grow(driver, (text.valid + PAD_BYTES).div_ceil(8))?;
        self.memory.counts.grow(driver, 8 * cut.segments)?;
        self.stream.clear(&self.memory.totals)?;
        let task = [
            text.address,
            self.memory.hits.address(),
            self.memory.matches.address(),
            self.memory.counts.address(),
            filter.words.address(),
            filter.buckets.address(),
            filter.lists.address(),
            filter.owners.address(),
            filter.rows.address(),
            filter.sets.address(),
            self.memory.totals.address(),
            text.valid as u64,
            text.valid.div_ceil(STEP_BYTES) as u64,
            (SEGMENT_BYTES / STEP_BYTES) as u64,
            cut.segments as u64,
            u64::from(self.set.terminator),
        ];
        let source = filter.table.definitions() + FILTER;
        let kernel = self.set.cuda.kernel(&source, "filter")?;
        let shared_bytes = 4 * filter.table.words.len() as u32;
        kernel.allow_shared(shared_bytes)?;
        let blocks = self.set.cuda.card().multiprocessors;
        self.stream.launch(&kernel, Grid { blocks, threads: FILTER_THREADS, shared_bytes }, &task)?;
        let totals = positions::read_words(self.stream, &self.memory.totals, 2)?;
        Ok(Marked { hits: totals[0] as usize, matches: totals[1] as usize })
    }

    /// The lines of the places that the filter marked for programs, one behind the other; `None`
    /// where these are too many to be worth it.
    fn lines_of(&mut self, text: Searched, places: usize) -> Result<Option<Lines>, CudaError> {
        if places == 0 {
            return Ok(Some(Lines::default()));
        }
        if places > text.valid / DENSE_PLACES {
            return Ok(None);
        }
        let (cut, driver) = (Search::cut(text.valid), self.set.cuda.driver.clone());
        let SetMemory { hits, counts, places: positions, .. } = &mut *self.memory;
        let marks = Marks { bits: hits, counts, cut, valid: text.valid, base: 0 };
        positions::list(&self.set.cuda, self.stream, &marks, places, positions)?;
        self.memory.firsts.grow(&driver, 8 * places)?;
        self.memory.lengths.grow(&driver, 8 * (places + 1))?;
        let mut task = self.task(places);
        task[0] = text.address;
        task[10] = text.valid as u64;
        self.launch("lines", Grid::new(self.blocks(places), THREADS), &task)?;
        let summing = Grid::new(places.div_ceil(4096).min(SUMMING_BLOCKS), THREADS);
        self.launch("sums", summing, &task)?;
        self.launch("offsets", summing, &task)?;
        let bytes = positions::read_words(self.stream, &self.memory.totals, 1)?[0] as usize;
        if bytes > text.valid / DENSE_BYTES {
            return Ok(None);
        }
        self.memory.lines.grow(&driver, bytes + PAD_BYTES)?;
        task[7] = self.memory.lines.address();
        self.launch("gather", Grid::new(self.blocks(32 * places), THREADS), &task)?;
        Ok(Some(Lines { places, bytes }))
    }

    /// The ends of the lines that the filter's matches stand in.
    fn ends(&mut self, text: Searched) -> Result<(), CudaError> {
        let segments = Search::cut(text.valid).segments;
        let words = text.valid.div_ceil(64);
        self.memory.far.grow(&self.set.cuda.driver, 8 * (words / NEAR_WORDS + 1))?;
        self.stream.clear(&self.memory.totals)?;
        let mut task = self.task(segments);
        task[0] = text.address;
        task[1] = self.memory.found[OF_TEXT].address();
        task[2] = self.memory.matches.address();
        task[9] = words as u64;
        task[10] = text.valid as u64;
        task[13] = self.memory.far.address();
        task[14] = self.memory.totals.address();
        // Behind the counts of hits.
        task[15] = self.memory.counts.address() + 4 * segments as u64;
        self.launch("ends", Grid::new(self.blocks(32 * segments), THREADS), &task)?;
        self.launch("far_ends", Grid::new(self.blocks(32 * segments), THREADS), &task)
    }

    /// What kernels about places take.
    fn task(&self, places: usize) -> [u64; 16] {
        let mut task = [0u64; 16];
        task[3] = self.memory.places.places.address();
        task[4] = self.memory.firsts.address();
        task[5] = self.memory.lengths.address();
        task[6] = self.memory.sums.address();
        task[8] = places as u64;
        task[11] = u64::from(self.set.terminator);
        task[12] = self.memory.totals.address();
        task
    }

    /// Blocks for so many threads, as many as the card has at once and a few more at most.
    fn blocks(&self, threads: usize) -> usize {
        threads.div_ceil(THREADS as usize).min(16 * self.set.cuda.card().multiprocessors as usize)
    }

    fn launch(&self, name: &'static str, grid: Grid, task: &[u64; 16]) -> Result<(), CudaError> {
        self.stream.launch(&*self.set.cuda.kernel(COMPACT, name)?, grid, task)
    }

    /// Makes room for the results about a text, none so far.
    fn clear(&mut self, which: usize, text: Searched) -> Result<(), CudaError> {
        let driver = self.set.cuda.driver.clone();
        self.memory.found[which].grow(&driver, (text.valid + PAD_BYTES).div_ceil(8))?;
        self.stream.clear_part(&self.memory.found[which], text.valid.div_ceil(64) * 8)
    }

    /// Adds the lines that any of the programs matches to what was found.
    fn matching(&mut self, programs: &[&GpuProgram], text: Searched, which: usize) -> Result<(), CudaError> {
        let wave = (WAVE_BYTES / text.valid.div_ceil(8).max(1)).clamp(1, WAVE_PROGRAMS);
        programs.chunks(wave).try_for_each(|programs| self.wave(programs, text, which))
    }

    fn wave(&mut self, programs: &[&GpuProgram], text: Searched, which: usize) -> Result<(), CudaError> {
        // What a wave before this one left is still being united; its memory is used again.
        self.stream.finish()?;
        let driver = self.set.cuda.driver.clone();
        while self.memory.scratch.len() < programs.len() {
            self.memory.scratch.push(SearchMemory::new(&driver)?);
        }
        let job = Job {
            text: text.address,
            valid: text.valid,
            row_ends: None,
            received: None,
            wants: Wants::Ends,
            clock: None,
        };
        let total = |number: usize| self.memory.totals.address() + 16 * number as u64;
        self.stream.clear(&self.memory.totals)?;
        for (number, program) in programs.iter().enumerate() {
            program.start(self.stream, &mut self.memory.scratch[number], &job, total(number))?;
        }
        let totals = positions::read_words(self.stream, &self.memory.totals, 2 * programs.len())?;
        for (number, program) in programs.iter().enumerate() {
            if totals[2 * number + 1] > 0 {
                program.follow(self.stream, &self.memory.scratch[number], &job, total(number))?;
            }
            let Some(ends) = &self.memory.scratch[number].ends else { continue };
            let mut task = [0u64; 16];
            task[1] = self.memory.found[which].address();
            task[2] = ends.address();
            task[9] = text.valid.div_ceil(64) as u64;
            let blocks = self.blocks(text.valid.div_ceil(64));
            self.launch("unite", Grid::new(blocks, THREADS), &task)?;
        }
        Ok(())
    }

    /// Adds the matching lines of those that the filter found to those of the text.
    fn scatter(&self, lines: &Lines) -> Result<(), CudaError> {
        let mut task = self.task(lines.places);
        task[1] = self.memory.found[OF_TEXT].address();
        task[2] = self.memory.found[OF_LINES].address();
        self.launch("scatter", Grid::new(self.blocks(lines.places), THREADS), &task)
    }

    /// What was found, counted or listed.
    fn answer(
        &mut self,
        which: usize,
        text: Searched,
        want: Want,
        end: Option<&Event>,
    ) -> Result<Found, CudaError> {
        let cut = Search::cut(text.valid);
        self.memory.counts.grow(&self.set.cuda.driver, 4 * cut.segments)?;
        self.stream.clear(&self.memory.totals)?;
        let mut task = self.task(cut.segments);
        task[1] = self.memory.found[which].address();
        task[2] = self.memory.counts.address();
        task[9] = text.valid.div_ceil(64) as u64;
        self.launch("tally", Grid::new(self.blocks(32 * cut.segments), THREADS), &task)?;
        if let Some(end) = end {
            self.stream.record(end)?;
        }
        let count = positions::read_words(self.stream, &self.memory.totals, 1)?[0];
        if want == Want::Count {
            return Ok(Found { count, ends: Vec::new() });
        }
        let SetMemory { found, counts, places, .. } = &mut *self.memory;
        let marks = Marks { bits: &found[which], counts, cut, valid: text.valid, base: 0 };
        positions::list(&self.set.cuda, self.stream, &marks, count as usize, places)?;
        let ends = positions::read_words(self.stream, &places.places, count as usize)?;
        Ok(Found { count, ends })
    }
}

/// How many places a filter marked.
#[derive(Clone, Copy, Default)]
struct Marked {
    /// Whose lines programs have to look at.
    hits: usize,
    /// Whose lines match.
    matches: usize,
}

/// The lines that a filter found for programs.
#[derive(Clone, Copy, Default)]
struct Lines {
    /// Places that it marked, several of a line perhaps.
    places: usize,
    /// Bytes of the lines.
    bytes: usize,
}
