//! One process image under the engine: its shared memory, its translator, its threads' contexts,
//! its counts.
//!
//! An image begins with an exec or a fork, and ends with its last thread or the next exec. Then its
//! counts become a profile.

mod again;
mod attached;
mod boundary;
mod counted;
mod mapped;
pub(crate) mod number;
mod plausible;
mod posts;
mod resident_pages;
mod resting;
mod section;

pub(crate) use resting::RestingImages;
pub(crate) use section::Keeps;

pub(crate) use boundary::StopPlace;
pub(crate) use counted::ProfileTables;
pub(crate) use posts::Answer;

use crate::cache::CodeCache;
use crate::call::{CallRecords, STUB_CELLS};
use crate::code::counter::tick_address;
use crate::code::decode::CodeReader;
use crate::code::lookup::TableSize;
use crate::code::resident_pages::ResidentPages;
use crate::error::Error;
use crate::evidence::{Evidence, Forgery};
use crate::instrumentation::instrumenter::ImageInstrumenter;
use crate::plan::hotness::SAMPLE_RECORDS;
use crate::plan::instruction_cache::InlineICache;
use crate::plan::instruction_cache::COUNTED_EVERY;
use crate::store::kept::KeptTranslations;
use crate::target::auxiliary::{system_call_in, Auxiliary};
use crate::target::layout::{context, segment_start, Layout, CONTEXTS, CONTEXTS_MAX};
use crate::target::mappings;
use crate::target::memory::Shared;
use crate::target::modules::Maps;
use crate::target::ptrace;
use crate::translate::Translator;
use event::{Filter, Record, SetFilter, Stream};
use section::Sections;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Whether the program stops before it opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    Watched,
    Ignored,
}

/// A forked child with fewer fragments than this translates little ahead, because many children
/// only prepare an exec, or end at once.
const CAUTIOUS_FRAGMENTS: usize = 100;

/// The failed checks of a block's instruction lines after which its record mode is reconsidered.
const FAILURES_MIN: u64 = 4096;

/// The mappings at the addresses of the engine's memory before it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MappingOrigin {
    /// Nothing is mapped there.
    Free,
    /// A fork has inherited the mappings of the parent's engine.
    Inherited,
}

/// Where the engine's memory goes in a process that has just executed a program.
pub(crate) struct Place {
    pub(crate) layout: Layout,
    /// Address of a `syscall` instruction (the vdso's).
    gadget: u64,
    /// Address of the program headers.
    pub(crate) headers: u64,
    /// Memory below the stack that nothing uses yet.
    scratch: u64,
}

impl Place {
    /// Plans the place for process `pid`.
    pub(crate) fn of(pid: i32) -> Result<Place, Error> {
        let vector = Auxiliary::of(pid);
        let (entry, vdso) = (vector.entry(), vector.vdso());
        let layout = Layout::plan(&mappings::ranges(pid), entry)
            .ok_or_else(|| Error::system("the program's address space has no room for lightfoot's memory"))?;
        let gadget = system_call_in(pid, vdso).ok_or_else(|| {
            Error::system(
                "cannot read the program's vdso (the system refuses process_vm_readv, or was booted with vdso=0)",
            )
        })?;
        let registers = ptrace::registers(pid)
            .ok_or_else(|| Error::system("the program is gone before its registers could be read"))?;
        Ok(Place { layout, gadget, headers: vector.headers(), scratch: (registers.rsp - 4096) & !15 })
    }
}

/// Images of ended children. Each comes with the number of changes of the parent's text when the
/// child was forked.
#[derive(Default)]
struct Spares {
    images: Vec<(u64, Image)>,
}

/// One process image.
pub(crate) struct Image {
    pub(crate) pid: i32,
    pub(crate) number: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) translator: Translator,
    pub(crate) maps: Maps,
    /// Address of a `syscall` instruction in the target (the vdso's).
    pub(crate) gadget: u64,
    /// Contexts that no thread has.
    free: Vec<usize>,
    /// The number of contexts that threads have ever had.
    used: usize,
    /// The size of the lookup table for which the masks of the contexts are made.
    table_size: TableSize,
    /// The number of threads that run in the image.
    pub(crate) threads: usize,
    /// Executions of each block that no counter has counted, because the host ended the traversal.
    extra: HashMap<u32, u64>,
    /// Executions that ended within a block, for each block and number of retired instructions.
    cut: HashMap<(u32, u32), u64>,
    /// For each context, the counters when its last thread ended, and the instructions, blocks,
    /// loads and stores of its present thread that are not in the counters.
    per_thread: HashMap<usize, (Vec<u64>, [i64; 4])>,
    /// The place of its translations for later images of the program, if they are kept.
    pub(crate) kept: Option<KeptTranslations>,
    /// For a forked child, the number of its parent's image, and how often the parent's text had
    /// changed.
    pub(crate) parent: Option<(u32, u64)>,
    /// Whether a process that left the engine alive still has the image's memory mapped.
    pub(crate) stays_mapped: bool,
    /// By counter, the number of the exit that counts there, plus one; 0 where there is none.
    exit_of_counter: Vec<u32>,
    /// The number of exits that `exit_of_counter` names.
    exits_known: usize,
    /// The number that the image had in the first of its processes. Its tables have only grown
    /// since then.
    pub(crate) lineage: u32,
    /// Images of ended children, for the next children.
    spares: Spares,
    /// Fragments and bytes of code that the image already had when it was taken over from an ended
    /// child.
    pub(crate) taken_over: (usize, u64),
    /// For each context, the current segment of its ring.
    segments: Vec<u32>,
    /// When the image's counters started at zero.
    born: Instant,
    /// For each fragment, the executions of its blocks when its counters were last read.
    looked: HashMap<usize, Vec<u64>>,
    /// How many of its modules the observer knows, if it is told of them.
    pub(crate) modules_told: usize,
    /// How many of its sites the observer knows.
    pub(crate) sites_told: usize,
    /// How many targets of direct calls and jumps the observer knows.
    pub(crate) targets_told: usize,
    /// What threads count between marks.
    sections: Sections,
    evidence: Evidence,
    /// The memory of the run's bell, if the run has one.
    bell: Option<Arc<Shared>>,
    /// Whether the image's threads post their requests; otherwise they stop by breakpoints.
    posts: bool,
}

/// What the images of a run have in common.
#[derive(Clone)]
pub(crate) struct RunParts {
    pub(crate) stream: Stream,
    pub(crate) evidence: Evidence,
    /// The memory of the run's bell, if the run has one.
    pub(crate) bell: Option<Arc<Shared>>,
}

impl Image {
    /// Prepares the image that process `pid` has just executed, and maps the engine's memory into
    /// it.
    pub(crate) fn new(pid: i32, number: u32, place: &Place, run: RunParts) -> Result<Image, Error> {
        let at = (place.layout.clone(), place.gadget);
        let image = Image::empty(Maps::new(pid), number, at, run)?;
        image.map_at_start(pid, place)?;
        Ok(image)
    }

    /// Maps the engine's memory into process `pid`, which has just executed a program.
    fn map_at_start(&self, pid: i32, place: &Place) -> Result<(), Error> {
        self.map_into(pid, MappingOrigin::Free, place.scratch)
    }

    /// The image of process `pid`, which the thread of context `c` has just forked: it has the
    /// parent's addresses and no translations.
    pub(crate) fn fork(&self, pid: i32, number: u32, context: usize) -> Result<Image, Error> {
        let place = (self.translator.cache.layout.clone(), self.gadget);
        let (stream, evidence) = (self.translator.stream, self.evidence.clone());
        let run = RunParts { stream, evidence, bell: self.bell.clone() };
        let mut image = Image::empty(self.maps.of_child(pid), number, place, run)?;
        image.translator.cautious_fragments = CAUTIOUS_FRAGMENTS;
        image.translator.watch = self.translator.watch.clone();
        image.translator.set_answered(self.translator.answered());
        image.translator.calls = self.translator.calls;
        image.translator.instrumenter =
            self.translator.instrumenter.as_ref().map(ImageInstrumenter::of_child);
        image.replace_inherited(pid, context)?;
        Ok(image)
    }

    /// An image that is not mapped anywhere.
    fn empty(
        maps: Maps,
        number: u32,
        (layout, gadget): (Layout, u64),
        run: RunParts,
    ) -> Result<Image, Error> {
        let RunParts { stream, evidence, bell } = run;
        let (split, bytes) = (layout.contexts_offset() as usize, layout.file_bytes() as usize);
        // One file holds code and is sealed; the other one holds what threads write.
        let shared = Arc::new(Shared::with_code(split, bytes)?);
        let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
        let cache = CodeCache::new(shared.clone(), layout.clone(), filter);
        let pid = maps.pid;
        let image = Image {
            pid,
            number,
            shared,
            translator: Translator::new(cache, CodeReader::new(pid), stream),
            maps,
            gadget,
            free: (0..CONTEXTS_MAX).rev().collect(),
            used: 0,
            table_size: TableSize::First,
            threads: 0,
            extra: HashMap::new(),
            cut: HashMap::new(),
            per_thread: HashMap::new(),
            kept: None,
            parent: None,
            stays_mapped: false,
            exit_of_counter: Vec::new(),
            exits_known: 0,
            lineage: number,
            spares: Spares::default(),
            taken_over: (0, 0),
            segments: vec![0; CONTEXTS_MAX],
            born: Instant::now(),
            looked: HashMap::new(),
            modules_told: 0,
            sites_told: 0,
            targets_told: 0,
            sections: Sections::default(),
            evidence,
            bell,
            posts: false,
        };
        image.mark_new();
        Ok(image)
    }

    /// Makes every system call stop for the host, as in an image that begins.
    fn mark_new(&self) {
        self.mark(&number::ALL, 1);
    }

    /// Sets whether these system calls stop for the host (1) or not (0).
    fn mark(&self, calls: &[u64], stops: u8) {
        let layout = &self.translator.cache.layout;
        let table = (layout.low_offset() + layout.system_call_table() - layout.low) as usize;
        calls.iter().for_each(|&number| self.shared.write(table + number as usize, &[stops]));
    }

    /// Makes these system calls stop for the host from now on.
    pub(crate) fn stop_before(&self, calls: &[u64]) {
        self.mark(calls, 1);
    }

    /// Sets whether a thread stops for the host before it opens a file.
    pub(crate) fn watch(&self, opens: Opens) {
        self.mark(&number::OPENS, u8::from(opens == Opens::Watched));
    }

    /// Restores the translations that a former image of the program left, and makes this image
    /// leave its own in the same place.
    pub(crate) fn remember(&mut self, mut kept: KeptTranslations) {
        kept.restore(&mut self.translator, &mut self.maps);
        self.kept = Some(kept);
    }

    /// Decides about the kept translations now that the image has ended. Returns a warning for the
    /// user, if there is one.
    pub(crate) fn keep(&mut self) -> Option<String> {
        self.kept.as_mut()?.finish(&self.translator, &self.maps)
    }

    /// Makes the image read the target's memory through this task from now on.
    pub(crate) fn looked_at_through(&mut self, tid: i32) {
        self.pid = tid;
        self.maps.pid = tid;
        self.translator.reader.pid = tid;
    }

    /// Offset of context `context` in the shared file.
    pub(crate) fn context(&self, context: usize) -> usize {
        self.translator.cache.layout.contexts_offset() as usize + context * context::BYTES as usize
    }

    pub(crate) fn read64(&self, context: usize, at: u32) -> u64 {
        self.shared.read64(self.context(context) + at as usize)
    }

    pub(crate) fn write64(&self, context: usize, at: u32, value: u64) {
        self.shared.write64(self.context(context) + at as usize, value);
    }

    pub(crate) fn read32(&self, context: usize, at: u32) -> u32 {
        self.shared.read32(self.context(context) + at as usize)
    }

    pub(crate) fn write32(&self, context: usize, at: u32, value: u32) {
        self.shared.write32(self.context(context) + at as usize, value);
    }

    /// Prepares a context for a new thread with this `fs` base; the thread's `gs` must get the
    /// context's address. `None` if all contexts are taken.
    pub(crate) fn enter(&mut self, fs_base: u64) -> Option<usize> {
        let context = self.free.pop()?;
        let is_new = context >= self.used;
        self.used = self.used.max(context + 1);
        self.threads += 1;
        self.write32(context, context::EXIT, 0);
        self.begin_posts(context);
        self.write64(context, context::FS_BASE, fs_base);
        (0..3).for_each(|index| self.write64(context, tick_address(index), 0));
        if self.translator.calls != CallRecords::None && !is_new {
            let zeros = [0; 8 * STUB_CELLS];
            self.shared.write(self.context(context) + context::STUBS as usize, &zeros);
        }
        let address = CONTEXTS + context as u64 * context::BYTES;
        self.write64(context, context::OWN_STACK, address + u64::from(context::PROGRAM_STACK));
        self.write64(context, context::MASK_LOOKUP, self.translator.cache.table_size.mask());
        if let Stream::Filtered(filter) = self.translator.stream {
            self.mask_filters(context, &filter);
            // Memory that was never used is zero already, and writing it would cost room.
            if !is_new {
                self.empty_filters(context);
                self.empty_kept(context);
            }
            if let Some(pages) = ResidentPages::of(&filter) {
                self.empty_resident(context, pages);
            }
        }
        self.start_segment(context, 0, context::RING_SEGMENT_BYTES);
        Some(context)
    }

    /// Makes lookups of all threads use the whole table, if it has grown. A thread that still uses
    /// the first mask finds fewer targets, and asks.
    pub(crate) fn follow_lookup_table(&mut self) {
        let size = self.translator.cache.table_size;
        if std::mem::replace(&mut self.table_size, size) == size {
            return;
        }
        for context in (0..self.used).filter(|&context| self.is_taken(context)) {
            self.write64(context, context::MASK_LOOKUP, size.mask());
        }
    }

    /// Whether a thread has context `context`.
    pub(crate) fn is_taken(&self, context: usize) -> bool {
        context < self.used && !self.free.contains(&context)
    }

    fn mask_filters(&self, context: usize, filter: &Filter) {
        let bits = |filter: SetFilter| u64::from(filter.sets - 1) * u64::from(filter.line_bytes);
        self.write64(context, context::MASK_SET, bits(filter.data));
        if let Some(page) = filter.data_page {
            self.write64(context, context::MASK_PAGE_SET, bits(page));
            let hints = u64::from(context::PAGE_HINTS_COUNT - 1) * u64::from(page.line_bytes);
            self.write64(context, context::MASK_PAGE_HINTS, hints);
        }
    }

    fn empty_filters(&self, context: usize) {
        let zeros = vec![0u8; (context::RING - context::DATA_PAGES) as usize];
        self.shared.write(self.context(context) + context::DATA_PAGES as usize, &zeros);
    }

    /// Empties the data filter, as after a reference that bypassed it.
    pub(crate) fn empty_data_filter(&self, context: usize) {
        let empty = |start: u32, end: u32| {
            let zeros = vec![0u8; (end - start) as usize];
            self.shared.write(self.context(context) + start as usize, &zeros);
        };
        empty(context::DATA_PAGES, context::INSTRUCTION_PAGES);
        empty(context::DATA_LINES, context::INSTRUCTION_LINES);
    }

    /// Empties the inline instruction cache that an earlier thread of the context left.
    fn empty_kept(&self, context: usize) {
        let numbers = self.translator.lines.kept_count() + 1;
        let rows = (context::FETCH_TIMES - context::FETCH_LINES) as usize;
        let zeros = vec![0u8; rows + 8 * numbers];
        self.shared.write(self.context(context) + context::FETCH_LINES as usize, &zeros);
    }

    /// Empties the caches that generated code simulates and the filters before the others, in all
    /// contexts. Threads that run meanwhile may still find a line that was there.
    pub(crate) fn empty_caches(&self) {
        let Stream::Filtered(filter) = self.translator.stream else { return };
        for context in (0..self.used).filter(|&context| self.is_taken(context)) {
            self.empty_filters(context);
            self.empty_kept(context);
            if let Some(pages) = ResidentPages::of(&filter) {
                self.empty_resident(context, pages);
            }
        }
    }

    /// Points the ring of context `context` at the beginning of a segment. The thread may fill
    /// `bytes` bytes of it.
    pub(crate) fn start_segment(&mut self, context: usize, segment: u32, bytes: u32) {
        self.segments[context] = segment;
        let start = context::RING + segment * context::RING_SEGMENT_BYTES;
        self.write64(context, context::RING_POSITION, u64::from(start));
        self.write64(context, context::RING_LIMIT, u64::from(start + bytes - context::RING_SLACK_BYTES));
    }

    /// Makes a thread stop behind this many records from here on, or at its segment's end.
    pub(crate) fn limit_records(&mut self, context: usize, records: u64) {
        let start = context::RING + self.segments[context] * context::RING_SEGMENT_BYTES;
        let end = u64::from(start + context::RING_SEGMENT_BYTES - context::RING_SLACK_BYTES);
        let position = self.read64(context, context::RING_POSITION);
        let limit = records.saturating_mul(16).saturating_add(position).min(end);
        self.write64(context, context::RING_LIMIT, limit);
    }

    /// The records that context `context` has written into its current segment: the segment's
    /// number, its offset in the file, and the number of records. If the position is forged, notes
    /// that and returns no records.
    pub(crate) fn written(&self, context: usize) -> (u32, usize, usize) {
        let segment = self.segments[context];
        (
            segment,
            segment_start(self.context(context), segment),
            self.position(context).map_or(0, |bytes| bytes / 16),
        )
    }

    /// The bytes that context `context` has written into its segment, according to its position. An
    /// impossible position is noted as forged.
    fn position(&self, context: usize) -> Option<usize> {
        let at = self.read64(context, context::RING_POSITION);
        let start = u64::from(context::RING + self.segments[context] * context::RING_SEGMENT_BYTES);
        let bytes = at.checked_sub(start);
        let possible = |bytes: &u64| *bytes <= context::RING_SEGMENT_BYTES.into() && bytes.is_multiple_of(16);
        let Some(bytes) = bytes.filter(possible) else {
            self.evidence.note(Forgery::Position(at));
            return None;
        };
        Some(bytes as usize)
    }

    /// Frees the context of a thread that has ended; its counters stay.
    pub(crate) fn left(&mut self, context: usize) {
        self.free.push(context);
        self.threads -= 1;
    }

    /// Translates the changed code of fragment `old` again, redirects every place that led to
    /// `old`, and returns the address where to continue. If other threads may be running `old`, its
    /// code stays as it is.
    pub(crate) fn replace(&mut self, old: usize) -> Option<u64> {
        let translator = &mut self.translator;
        let pc = translator.cache.fragments[old].pc;
        translator.cache.forget(old);
        translator.reader.forget(pc & !0xfff, pc + 0x1000);
        let new = translator.fragment(pc, &mut self.maps)?;
        let body = translator.cache.fragments[new].body;
        if translator.cache.parallel {
            translator.cache.redirect(old, new);
        } else {
            translator.cache.jump_from_head(old, body);
        }
        Some(body)
    }

    /// Samples the records just written, and tunes the fragments whose record modes should change.
    /// Returns how many it tuned.
    pub(crate) fn learn(&mut self, offset: usize, count: usize) -> u64 {
        if !matches!(self.translator.stream, Stream::Filtered(_)) || self.translator.instrumenter.is_some() {
            return 0;
        }
        let translator = &mut self.translator;
        if translator.hotness.passes_over() {
            return 0;
        }
        let mut records = vec![Record::default(); count.min(SAMPLE_RECORDS)];
        let first = count - records.len();
        self.shared.copy_records(offset + first * size_of::<Record>(), &mut records);
        let blocks = translator.hotness.sample(&records, count, &translator.sites, translator.blocks.len());
        let mut tuned = 0;
        for block in blocks {
            tuned += self.tune_again(block);
        }
        self.translator.hotness.sampled(tuned);
        tuned + self.learn_failures()
    }

    /// Tunes the fragment of a block if that would change it; returns the number of fragments
    /// tuned, 0 or 1.
    fn tune_again(&mut self, block: u32) -> u64 {
        const TUNINGS_MAX: u8 = 4;
        let Some(fragment_index) = self.translator.cache.replaceable(block) else { return 0 };
        if self.translator.cache.fragments[fragment_index].tunings == TUNINGS_MAX {
            return 0;
        }
        let executions = self.executions(fragment_index);
        if !self.translator.would_change(fragment_index, &executions) {
            return 0;
        }
        u64::from(self.translator.tune(fragment_index, &executions, &mut self.maps).is_some())
    }

    /// Reads the counters of failed line checks, and tunes fragments accordingly. The intervals
    /// between two readings grow, because each one reads all counters.
    fn learn_failures(&mut self) -> u64 {
        if !InlineICache::is_kept(&self.translator.stream) || !self.translator.hotness.is_time_to_read() {
            return 0;
        }
        let mut blocks = Vec::new();
        for fragment in &self.translator.cache.fragments {
            let first = fragment.counters + fragment.blocks + 1;
            for index in 0..fragment.blocks {
                let failures = self.counted(first + index).saturating_mul(COUNTED_EVERY.into());
                if failures >= FAILURES_MIN {
                    blocks.push((fragment.first_block + index, failures));
                }
            }
        }
        for &(block, failures) in &blocks {
            self.translator.hotness.failed(block, failures);
        }
        blocks.into_iter().map(|(block, _)| self.tune_again(block)).sum()
    }

    /// Forgets the code in `[start, start + bytes)`, because the program is about to change the
    /// mappings there.
    pub(crate) fn memory_changes(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        self.translator.reader.forget(start, end);
        self.maps.forget_changeable(start, end);
        if !self.maps.concerns(start, end) {
            return;
        }
        self.maps.forget(start, end);
        self.translator.retire_code(start, end, &self.maps);
    }
}
