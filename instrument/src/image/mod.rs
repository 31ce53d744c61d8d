//! One process image under the engine: its shared memory, its translator, its threads' contexts,
//! its counts.
//!
//! An image begins with an exec or a fork, and ends with its last thread or the next exec. Then its
//! counts become a profile.

mod again;
mod counted;
mod mapped;
mod plausible;

use crate::cache::CodeCache;
use crate::code::decode::CodeReader;
use crate::code::state_map::{slot, StateMapEntry, FLAGS_BIT};
use crate::error::Error;
use crate::evidence::{Evidence, Forgery};
use crate::plan::hotness::SAMPLE_RECORDS;
use crate::plan::instruction_cache::InlineICache;
use crate::plan::instruction_cache::COUNTED_EVERY;
use crate::store::kept::{KeptTranslations, Origin};
use crate::target::auxiliary::{system_call_in, Auxiliary};
use crate::target::credentials;
use crate::target::layout::{
    context, segment_start, Layout, CONTEXTS, CONTEXTS_MAX, LOOKUP_BITS, LOOKUP_SHIFT,
};
use crate::target::mappings;
use crate::target::memory::{self, Shared};
use crate::target::modules::Maps;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::translate::Translator;
use event::{Filter, Record, SetFilter, Stream};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Numbers of system calls before which a thread stops for the host.
pub(crate) mod number {
    pub(crate) const OPEN: u64 = 2;
    pub(crate) const MMAP: u64 = 9;
    pub(crate) const MPROTECT: u64 = 10;
    pub(crate) const MUNMAP: u64 = 11;
    pub(crate) const SIGACTION: u64 = 13;
    pub(crate) const SIGPROCMASK: u64 = 14;
    pub(crate) const SIGRETURN: u64 = 15;
    pub(crate) const MREMAP: u64 = 25;
    pub(crate) const CLONE: u64 = 56;
    pub(crate) const PTRACE: u64 = 101;
    pub(crate) const ARCH_PRCTL: u64 = 158;
    pub(crate) const SET_AFFINITY: u64 = 203;
    pub(crate) const GET_AFFINITY: u64 = 204;
    pub(crate) const OPENAT: u64 = 257;
    pub(crate) const RSEQ: u64 = 334;
    pub(crate) const PKEY_MPROTECT: u64 = 329;
    pub(crate) const CLONE3: u64 = 435;
    pub(crate) const OPENAT2: u64 = 437;
    pub(crate) const ALL: [u64; 14] = [
        MMAP,
        MPROTECT,
        PKEY_MPROTECT,
        MUNMAP,
        SIGACTION,
        SIGPROCMASK,
        SIGRETURN,
        MREMAP,
        CLONE,
        ARCH_PRCTL,
        SET_AFFINITY,
        GET_AFFINITY,
        RSEQ,
        CLONE3,
    ];
    /// Calls that stop if children are counted: the host traces the children already.
    pub(crate) const OF_TRACERS: [u64; 1] = [PTRACE];
    /// Calls that stop while the program is bound to one processor.
    pub(crate) const OPENS: [u64; 3] = [OPEN, OPENAT, OPENAT2];
}

/// Whether the program stops before it opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    Watched,
    Ignored,
}

/// The point of an instruction's translation at which a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopPlace {
    /// At its beginning.
    Before,
    /// In the program's own instruction, which faulted.
    Faulted,
    /// In a repeated string instruction, between two iterations.
    Repeating,
}

/// A forked child translates little ahead up to this many fragments: many children only prepare an
/// exec, or end at once.
const CAUTIOUS_FRAGMENTS: usize = 100;

/// After this many failed checks of a block's instruction lines, its record mode is reconsidered.
const FAILURES_MIN: u64 = 4096;

/// The mappings at the addresses of the engine's memory before it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MappingOrigin {
    /// There are none.
    Free,
    /// Those of the parent's engine, inherited by a fork.
    Inherited,
}

/// Images of ended children, by the changes that their parent's text had seen when they were
/// forked.
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
    free: Vec<usize>,
    used: usize,
    pub(crate) threads: usize,
    /// By block, executions that no counter saw because the host ended the traversal.
    extra: HashMap<u32, u64>,
    /// Executions that ended within a block, by block and number of instructions retired.
    cut: HashMap<(u32, u32), u64>,
    /// By context: its counters when its last thread ended, and the instructions, blocks, loads and
    /// stores of its present thread that are not in the counters.
    per_thread: HashMap<usize, (Vec<u64>, [i64; 4])>,
    /// Its translations on disk, if they are kept.
    pub(crate) kept: Option<KeptTranslations>,
    /// For a forked child, the number of its parent's image, and how often the parent's text had
    /// changed.
    pub(crate) parent: Option<(u32, u64)>,
    /// Images of its children that have ended, for its next children.
    spares: Spares,
    /// Fragments and bytes of code that were in it when it was taken over from an ended child.
    pub(crate) taken_over: (usize, u64),
    /// By context, the segment that its ring is in.
    segments: Vec<u32>,
    /// When its counters began.
    born: Instant,
    /// By fragment, the executions of its blocks when its counters were last read during the run.
    looked: HashMap<usize, Vec<u64>>,
    evidence: Evidence,
}

impl Image {
    /// Prepares the image that process `pid` has just executed, and maps the engine's memory into
    /// it.
    pub(crate) fn new(pid: i32, number: u32, stream: Stream, evidence: Evidence) -> Result<Image, Error> {
        let vector = Auxiliary::of(pid);
        let (entry, vdso) = (vector.entry(), vector.vdso());
        let layout = Layout::plan(&mappings::ranges(pid), entry)
            .ok_or_else(|| Error::system("no room for generated code in the program's address space"))?;
        let gadget = system_call_in(pid, vdso).ok_or_else(|| {
            Error::system(
                "cannot read the program's vdso (process_vm_readv refused, or boot parameter vdso=0)",
            )
        })?;
        let image = Image::empty(Maps::new(pid), number, stream, (layout, gadget), evidence)?;
        let stack = ptrace::registers(pid).ok_or_else(|| Error::system("the program vanished"))?.rsp;
        image.map_into(pid, MappingOrigin::Free, (stack - 4096) & !15)?;
        Ok(image)
    }

    /// The image of process `pid`, which the thread of context `c` has just forked: it has the
    /// parent's addresses and no translations.
    pub(crate) fn fork(&self, pid: i32, number: u32, c: usize) -> Result<Image, Error> {
        let place = (self.translator.cache.layout.clone(), self.gadget);
        let (stream, evidence) = (self.translator.stream, self.evidence.clone());
        let mut image = Image::empty(self.maps.of_child(pid), number, stream, place, evidence)?;
        image.translator.cautious_fragments = CAUTIOUS_FRAGMENTS;
        image.replace_inherited(pid, c)?;
        Ok(image)
    }

    /// An image that is not mapped anywhere.
    fn empty(
        maps: Maps,
        number: u32,
        stream: Stream,
        (layout, gadget): (Layout, u64),
        evidence: Evidence,
    ) -> Result<Image, Error> {
        let (split, bytes) = (layout.contexts_offset() as usize, layout.file_bytes() as usize);
        // One file for code, which is sealed, one for what threads write.
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
            threads: 0,
            extra: HashMap::new(),
            cut: HashMap::new(),
            per_thread: HashMap::new(),
            kept: None,
            parent: None,
            spares: Spares::default(),
            taken_over: (0, 0),
            segments: vec![0; CONTEXTS_MAX],
            born: Instant::now(),
            looked: HashMap::new(),
            evidence,
        };
        image.mark(&number::ALL, 1);
        Ok(image)
    }

    /// Whether these system calls stop for the host.
    fn mark(&self, calls: &[u64], stops: u8) {
        let layout = &self.translator.cache.layout;
        let table = (layout.low_offset() + layout.system_call_table() - layout.low) as usize;
        calls.iter().for_each(|&n| self.shared.write(table + n as usize, &[stops]));
    }

    /// These system calls stop for the host from now on.
    pub(crate) fn stop_before(&self, calls: &[u64]) {
        self.mark(calls, 1);
    }

    /// Whether opening a file stops for the host.
    pub(crate) fn watch(&self, opens: Opens) {
        self.mark(&number::OPENS, u8::from(opens == Opens::Watched));
    }

    /// Takes over the translations that a former run of the same program left in `folder`, and
    /// notes that this run's shall be kept there.
    pub(crate) fn remember(&mut self, folder: &Path) {
        let translator = &mut self.translator;
        let headers = Auxiliary::of(self.pid).headers();
        let origin =
            Origin { pid: self.pid, headers, stream: &translator.stream, layout: &translator.cache.layout };
        let Some(mut kept) = KeptTranslations::of(folder, &origin) else { return };
        kept.restore(translator, &mut self.maps);
        self.kept = Some(kept);
        self.mark(&credentials::CALLS, 1);
    }

    /// Decides about the translations on disk now that the image has ended. Returns a warning for
    /// the user, if there is one.
    pub(crate) fn keep(&self) -> Option<String> {
        self.kept.as_ref()?.finish(&self.translator, &self.maps)
    }

    /// Reads the memory through this task from now on.
    pub(crate) fn looked_at_through(&mut self, tid: i32) {
        self.pid = tid;
        self.maps.pid = tid;
        self.translator.reader.pid = tid;
    }

    /// Offset of context `c` in the shared file.
    pub(crate) fn context(&self, c: usize) -> usize {
        self.translator.cache.layout.contexts_offset() as usize + c * context::BYTES as usize
    }

    pub(crate) fn read64(&self, c: usize, at: u32) -> u64 {
        self.shared.read64(self.context(c) + at as usize)
    }

    pub(crate) fn write64(&self, c: usize, at: u32, value: u64) {
        self.shared.write64(self.context(c) + at as usize, value);
    }

    pub(crate) fn read32(&self, c: usize, at: u32) -> u32 {
        self.shared.read32(self.context(c) + at as usize)
    }

    pub(crate) fn write32(&self, c: usize, at: u32, value: u32) {
        self.shared.write32(self.context(c) + at as usize, value);
    }

    /// A context for a new thread with that `fs` base; its address goes into `gs`.
    pub(crate) fn enter(&mut self, fs_base: u64) -> Option<usize> {
        let c = self.free.pop()?;
        let is_new = c >= self.used;
        self.used = self.used.max(c + 1);
        self.threads += 1;
        self.write32(c, context::EXIT, 0);
        self.write64(c, context::FS_BASE, fs_base);
        let address = CONTEXTS + c as u64 * context::BYTES;
        self.write64(c, context::OWN_STACK, address + u64::from(context::PROGRAM_STACK));
        self.write64(c, context::MASK_LOOKUP, ((1 << LOOKUP_BITS) - 1) << LOOKUP_SHIFT);
        if let Stream::Filtered(filter) = self.translator.stream {
            self.mask_filters(c, &filter);
            // Memory that was never used is zero already, and writing it would cost room.
            if !is_new {
                self.empty_filters(c);
                self.empty_kept(c);
            }
        }
        self.start_segment(c, 0, context::RING_SEGMENT_BYTES);
        Some(c)
    }

    /// Whether a thread has context `c`.
    pub(crate) fn is_taken(&self, c: usize) -> bool {
        c < self.used && !self.free.contains(&c)
    }

    fn mask_filters(&self, c: usize, filter: &Filter) {
        let bits = |filter: SetFilter| u64::from(filter.sets - 1) * u64::from(filter.line_bytes);
        self.write64(c, context::MASK_SET, bits(filter.data));
        if let Some(page) = filter.data_page {
            self.write64(c, context::MASK_PAGE_SET, bits(page));
        }
    }

    fn empty_filters(&self, c: usize) {
        let zeros = vec![0u8; (context::RING - context::DATA_PAGES) as usize];
        self.shared.write(self.context(c) + context::DATA_PAGES as usize, &zeros);
    }

    /// Empties the inline instruction cache that an earlier thread of the context left.
    fn empty_kept(&self, c: usize) {
        let numbers = self.translator.lines.kept_count() + 1;
        let rows = (context::KEPT_TIMES - context::KEPT_LINES) as usize;
        let zeros = vec![0u8; rows + 8 * numbers];
        self.shared.write(self.context(c) + context::KEPT_LINES as usize, &zeros);
    }

    /// Points the ring of context `c` at the beginning of a segment, of which `bytes` are used.
    pub(crate) fn start_segment(&mut self, c: usize, segment: u32, bytes: u32) {
        self.segments[c] = segment;
        let start = context::RING + segment * context::RING_SEGMENT_BYTES;
        self.write64(c, context::RING_POSITION, u64::from(start));
        self.write64(c, context::RING_LIMIT, u64::from(start + bytes - context::RING_SLACK_BYTES));
    }

    /// The records that context `c` has written into its current segment: the segment, the offset
    /// in the file, the count. The count is 0 if the position is forged, which is noted.
    pub(crate) fn written(&self, c: usize) -> (u32, usize, usize) {
        let segment = self.segments[c];
        (segment, segment_start(self.context(c), segment), self.position(c).map_or(0, |bytes| bytes / 16))
    }

    /// Bytes that context `c` has written into its segment, according to its position. An
    /// impossible position is noted as forged.
    fn position(&self, c: usize) -> Option<usize> {
        let at = self.read64(c, context::RING_POSITION);
        let start = u64::from(context::RING + self.segments[c] * context::RING_SEGMENT_BYTES);
        let bytes = at.checked_sub(start);
        let possible = |bytes: &u64| *bytes <= context::RING_SEGMENT_BYTES.into() && bytes.is_multiple_of(16);
        let Some(bytes) = bytes.filter(possible) else {
            self.evidence.note(Forgery::Position(at));
            return None;
        };
        Some(bytes as usize)
    }

    /// Frees the context of a thread that has ended; its counters stay.
    pub(crate) fn left(&mut self, c: usize) {
        self.free.push(c);
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

    /// Reads the counters of failed line checks, and tunes fragments accordingly. It does so ever
    /// more seldom, because it reads all of them.
    fn learn_failures(&mut self) -> u64 {
        if !InlineICache::is_kept(&self.translator.stream) || !self.translator.hotness.is_time_to_read() {
            return 0;
        }
        let mut blocks = Vec::new();
        for fragment in &self.translator.cache.fragments {
            let first = fragment.counters + fragment.blocks + 1;
            for n in 0..fragment.blocks {
                let failures = self.counted(first + n).saturating_mul(COUNTED_EVERY.into());
                if failures >= FAILURES_MIN {
                    blocks.push((fragment.first_block + n, failures));
                }
            }
        }
        for &(block, failures) in &blocks {
            self.translator.hotness.failed(block, failures);
        }
        blocks.into_iter().map(|(block, _)| self.tune_again(block)).sum()
    }

    /// The program is about to change its mappings in `[start, start + bytes)`.
    pub(crate) fn memory_changes(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        self.translator.reader.forget(start, end);
        if !self.maps.concerns(start, end) {
            return;
        }
        self.maps.forget(start, end);
        self.translator.retire_code(start, end, &self.maps);
    }

    /// Whether the thread stands between two iterations of a repeated string instruction.
    pub(crate) fn repeating(&mut self, r: &Registers, bound: &StateMapEntry) -> bool {
        let Some((_, i)) = self.repeat_at(bound) else { return false };
        let (bytes, _) = self.translator.reader.fetch(i.ip());
        let mut here = vec![0u8; i.len()];
        memory::read_target(self.pid, r.rip, &mut here) == here.len() && here == bytes[..here.len()]
    }

    /// The repeated string instruction at `bound`, with its site.
    fn repeat_at(&mut self, bound: &StateMapEntry) -> Option<(usize, iced_x86::Instruction)> {
        let translator = &mut self.translator;
        let key = (bound.block, u32::from(bound.index));
        let n = translator.sites.partition_point(|s| (s.block, s.index) < key);
        let site = translator.sites.get(n).filter(|s| (s.block, s.index) == key)?;
        let (bytes, len) = translator.reader.fetch(site.ip);
        let i = iced_x86::Decoder::with_ip(64, &bytes[..len], site.ip, 0).decode();
        (i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix())).then_some((n, i))
    }

    /// Turns the registers of a thread that stopped at `bound` into the program's own, and counts
    /// what its unfinished traversal has done so far.
    pub(crate) fn leave(&mut self, c: usize, r: &mut Registers, bound: &StateMapEntry, stop: StopPlace) {
        // The state map has two states for each instruction: at the start of its translation, and
        // where the program's own instruction executes.
        let executing = stop != StopPlace::Before;
        let pending = if executing { bound.pending_executing } else { bound.pending };
        // Records that are pending in a register become part of the position in memory.
        let position = self.read64(c, context::RING_POSITION).wrapping_add(16 * u64::from(pending));
        self.write64(c, context::RING_POSITION, position);
        let mask = if executing { bound.executing } else { bound.spilled };
        self.unspill(c, r, mask);
        let block = &self.translator.blocks[bound.block as usize];
        let (count, index) = (block.count, u32::from(bound.index));
        r.rip = self.program_counter(bound);
        // Behind a system call rcx holds the program's return address.
        if index == count && !executing {
            r.rcx = r.rip;
        }
        let counted = if executing { bound.counted_executing } else { bound.counted };
        // The traversal ends in the middle: no counter saw the blocks that ran.
        if !counted {
            let fragments = &self.translator.cache.fragments;
            let fragment_index =
                fragments.partition_point(|fragment| fragment.first_block <= bound.block) - 1;
            for b in fragments[fragment_index].first_block..=bound.block {
                *self.extra.entry(b).or_default() += 1;
                self.adjust(c, b, 0, 1);
            }
        }
        if executing && index < count {
            self.record_repeat(c, r, bound, stop);
        }
        // The block was counted as a whole: the instructions from here on are taken off again.
        if index < count && self.translator.stream != Stream::Nothing {
            *self.cut.entry((bound.block, index)).or_default() += 1;
            self.adjust(c, bound.block, index, -1);
            self.record_cut(c, count - index);
        }
    }

    /// Records the iterations of a repeated string instruction that stopped in the middle,
    /// including an attempted one; its epilogue, which would record them, will not run.
    fn record_repeat(&mut self, c: usize, r: &Registers, bound: &StateMapEntry, stop: StopPlace) {
        let Some((site, i)) = self.repeat_at(bound) else { return };
        let shape = crate::plan::string::string_shape(&i);
        let event::Shape::String { operation, element_bytes, .. } = shape else { return };
        let lods = operation == event::StringOperation::Lods;
        let before = [context::REPEAT, context::REPEAT + 8].map(|at| self.read64(c, at));
        // The pointer that certainly moved says how far the repeat came; a fault means one
        // attempted iteration more.
        let mut after = if lods { r.rsi } else { r.rdi };
        if stop == StopPlace::Faulted {
            const DIRECTION: u64 = 1 << 10;
            let step = u64::from(element_bytes);
            after =
                if r.eflags & DIRECTION == 0 { after.wrapping_add(step) } else { after.wrapping_sub(step) };
        }
        if after == before[usize::from(!lods)] {
            return;
        }
        let values = [before[0], before[1], after, self.read64(c, context::FS_BASE)];
        let mut records = Vec::new();
        event::Complex::new(shape, &values[..shape.values()]).encode(site as u32, &mut records);
        for record in records {
            self.append(c, record.address, record.what, record.extra);
        }
    }

    /// Records, in full streams, how many instructions of the last block did not retire.
    fn record_cut(&self, c: usize, instructions: u32) {
        if self.translator.stream != Stream::Full {
            return;
        }
        let what = (event::CUT_SITE as u32) << 8 | (event::RecordKind::Block as u32) << 4;
        self.append(c, u64::from(instructions), what, 0);
    }

    /// Appends a record to the ring of a stopped thread; the slack behind a segment's limit has
    /// room for it.
    fn append(&self, c: usize, address: u64, what: u32, extra: u32) {
        let room = |bytes: &usize| bytes + 16 <= context::RING_SEGMENT_BYTES as usize;
        let Some(bytes) = self.position(c).filter(room) else { return };
        let offset = segment_start(self.context(c), self.segments[c]) + bytes;
        self.shared.write64(offset, address);
        self.shared.write32(offset + 8, what);
        self.shared.write32(offset + 12, extra);
        self.write64(c, context::RING_POSITION, (offset - self.context(c) + 16) as u64);
    }

    /// Computes the program's own registers of a thread that stands before the instruction at
    /// `bound`; the thread itself is not changed.
    pub(crate) fn show(&self, c: usize, r: &mut Registers, bound: &StateMapEntry) {
        self.unspill(c, r, bound.spilled);
        r.rip = self.program_counter(bound);
    }

    /// The program's address at `bound`.
    fn program_counter(&self, bound: &StateMapEntry) -> u64 {
        let block = &self.translator.blocks[bound.block as usize];
        match self.translator.instructions.get((block.first + u32::from(bound.index)) as usize) {
            Some(i) if u32::from(bound.index) < block.count => block.ip + u64::from(i.offset),
            _ => block.ip + u64::from(block.len),
        }
    }

    fn unspill(&self, c: usize, r: &mut Registers, mask: u16) {
        let registers = [
            &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rbx, &mut r.rsp, &mut r.rbp, &mut r.rsi, &mut r.rdi,
            &mut r.r8, &mut r.r9, &mut r.r10, &mut r.r11, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15,
        ];
        for (n, register) in registers.into_iter().enumerate() {
            if mask & !FLAGS_BIT & 1 << n != 0 {
                *register = self.read64(c, slot(n as u8));
            }
        }
        if mask & FLAGS_BIT != 0 {
            let saved = self.read64(c, context::FLAGS);
            // ah holds five status flags, al the overflow flag.
            let status = saved >> 8 & 0xd5 | (saved & 1) << 11;
            r.eflags = r.eflags & !0x8d5 | status;
        }
    }
}
