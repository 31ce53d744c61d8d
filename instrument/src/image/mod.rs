//! One process image under the engine: its shared memory, its translator, its threads' contexts,
//! its counts.
//!
//! An image begins with an exec and ends with the last thread or the next exec; what it counted is
//! then turned into a profile.

mod again;
mod counted;
mod mapped;
mod plausible;
mod resident_pages;

use crate::cache::CodeCache;
use crate::code::decode::CodeReader;
use crate::code::resident_pages::ResidentPages;
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

/// System calls that stop for the host before they are made.
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
    /// Those that matter where children are counted: they are traced already.
    pub(crate) const OF_TRACERS: [u64; 1] = [PTRACE];
    /// Those that matter while the program is bound to a processor.
    pub(crate) const OPENS: [u64; 3] = [OPEN, OPENAT, OPENAT2];
}

/// Whether the program stops before it opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    Watched,
    Ignored,
}

/// Where in an instruction's translation a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopPlace {
    /// At its beginning.
    Before,
    /// In the program's own instruction, which faulted.
    Faulted,
    /// In a repeated string instruction, between two iterations.
    Repeating,
}

/// Many a forked child only prepares an exec, or leaves at once.
const CAUTIOUS_FRAGMENTS: usize = 100;

/// Checks of a block's instruction lines that failed, from which on its record mode is
/// reconsidered.
const FAILURES_MIN: u64 = 4096;

/// What already lies where the engine's memory is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MappingOrigin {
    /// Nothing.
    Free,
    /// The engine's memory of the process that this one was forked off.
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
    /// Executions that no counter saw, by block.
    extra: HashMap<u32, u64>,
    /// Executions cut short: (block, instructions retired).
    cut: HashMap<(u32, u32), u64>,
    /// By context, its counters when its last thread ended, and what of the present one is not in
    /// them: instructions, blocks, loads, stores.
    per_thread: HashMap<usize, (Vec<u64>, [i64; 4])>,
    /// Its translations on disk, if they are kept.
    pub(crate) kept: Option<KeptTranslations>,
    /// Of a forked child: its parent's number, and the changes that the parent's text had seen.
    pub(crate) parent: Option<(u32, u64)>,
    /// What ended children of its own left.
    spares: Spares,
    /// Fragments and bytes of code that it has from the image that it was before.
    pub(crate) taken_over: (usize, u64),
    /// By context, the segment that its ring is in.
    segments: Vec<u32>,
    /// Since when its counters count.
    born: Instant,
    /// What counters said when they were looked at on the way, as executions of a fragment's
    /// blocks.
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

    /// The image of process `pid`, which the thread of context `c` has just forked: the same
    /// addresses, nothing translated.
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
        let filter = if let Stream::Filtered(f) = &stream { Some(f) } else { None };
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

    /// Takes over what a former run of the same program left in `folder`, and will leave there what
    /// this one translates.
    pub(crate) fn remember(&mut self, folder: &Path) {
        let t = &mut self.translator;
        let headers = Auxiliary::of(self.pid).headers();
        let origin = Origin { pid: self.pid, headers, stream: &t.stream, layout: &t.cache.layout };
        let Some(mut kept) = KeptTranslations::of(folder, &origin) else { return };
        kept.restore(t, &mut self.maps);
        self.kept = Some(kept);
        self.mark(&credentials::CALLS, 1);
    }

    /// What becomes of the translations on disk now that the image has ended; a sentence where the
    /// user should know.
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
            // What nobody used yet is zero, and takes no memory.
            if !is_new {
                self.empty_filters(c);
                self.empty_kept(c);
            }
            if let Some(pages) = ResidentPages::of(&filter) {
                self.empty_resident(c, &pages);
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
        let bits = |f: SetFilter| u64::from(f.sets - 1) * u64::from(f.line_bytes);
        self.write64(c, context::MASK_SET, bits(filter.data));
        if let Some(page) = filter.data_page {
            self.write64(c, context::MASK_PAGE_SET, bits(page));
            let hints = u64::from(context::PAGE_HINTS_COUNT - 1) * u64::from(page.line_bytes);
            self.write64(c, context::MASK_PAGE_HINTS, hints);
        }
    }

    fn empty_filters(&self, c: usize) {
        let zeros = vec![0u8; (context::RING - context::DATA_PAGES) as usize];
        self.shared.write(self.context(c) + context::DATA_PAGES as usize, &zeros);
    }

    /// Empties what an earlier thread of the context kept of the instruction side.
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

    /// Records that context `c` has written into its current segment: segment, offset in the file,
    /// count. None where the position cannot be true, which is noted.
    pub(crate) fn written(&self, c: usize) -> (u32, usize, usize) {
        let segment = self.segments[c];
        (segment, segment_start(self.context(c), segment), self.position(c).map_or(0, |bytes| bytes / 16))
    }

    /// Bytes that context `c` has written into its segment, as its position says; one that cannot
    /// be true is noted.
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

    /// A thread is gone; its counters stay.
    pub(crate) fn left(&mut self, c: usize) {
        self.free.push(c);
        self.threads -= 1;
    }

    /// Translates the code of fragment `old` anew, because it changed, and what led to the old one
    /// leads there; where to continue. Other threads may be running the old one: then it is left as
    /// it is.
    pub(crate) fn replace(&mut self, old: usize) -> Option<u64> {
        let t = &mut self.translator;
        let pc = t.cache.fragments[old].pc;
        t.cache.forget(old);
        t.reader.forget(pc & !0xfff, pc + 0x1000);
        let new = t.fragment(pc, &mut self.maps)?;
        let body = t.cache.fragments[new].body;
        if t.cache.parallel {
            t.cache.redirect(old, new);
        } else {
            t.cache.jump_from_head(old, body);
        }
        Some(body)
    }

    /// Looks at the records just written, and tunes fragments again of which they tell something
    /// new; how many.
    pub(crate) fn learn(&mut self, offset: usize, count: usize) -> u64 {
        if !matches!(self.translator.stream, Stream::Filtered(_)) || self.translator.instrumenter.is_some() {
            return 0;
        }
        let t = &mut self.translator;
        if t.hotness.passes_over() {
            return 0;
        }
        let mut records = vec![Record::default(); count.min(SAMPLE_RECORDS)];
        let first = count - records.len();
        self.shared.copy_records(offset + first * size_of::<Record>(), &mut records);
        let blocks = t.hotness.sample(&records, count, &t.sites, t.blocks.len());
        let mut tuned = 0;
        for block in blocks {
            tuned += self.tune_again(block);
        }
        self.translator.hotness.sampled(tuned);
        tuned + self.learn_failures()
    }

    /// Tunes the fragment of a block again, if what is known of it by now changes anything; how
    /// many were.
    fn tune_again(&mut self, block: u32) -> u64 {
        const TUNINGS_MAX: u8 = 4;
        let Some(f) = self.translator.cache.replaceable(block) else { return 0 };
        if self.translator.cache.fragments[f].tunings == TUNINGS_MAX {
            return 0;
        }
        let executions = self.executions(f);
        if !self.translator.would_change(f, &executions) {
            return 0;
        }
        u64::from(self.translator.tune(f, &executions, &mut self.maps).is_some())
    }

    /// Looks at the counters of checks of instruction lines that failed, ever more seldom: all of
    /// them are read.
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
        let t = &mut self.translator;
        let key = (bound.block, u32::from(bound.index));
        let n = t.sites.partition_point(|s| (s.block, s.index) < key);
        let site = t.sites.get(n).filter(|s| (s.block, s.index) == key)?;
        let (bytes, len) = t.reader.fetch(site.ip);
        let i = iced_x86::Decoder::with_ip(64, &bytes[..len], site.ip, 0).decode();
        (i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix())).then_some((n, i))
    }

    /// Turns the registers of a thread stopped at `bound` into the program's own, and books what
    /// its traversal has done so far.
    pub(crate) fn leave(&mut self, c: usize, r: &mut Registers, bound: &StateMapEntry, stop: StopPlace) {
        let executing = stop != StopPlace::Before;
        let pending = if executing { bound.pending_executing } else { bound.pending };
        let position = self.read64(c, context::RING_POSITION).wrapping_add(16 * u64::from(pending));
        self.write64(c, context::RING_POSITION, position);
        let mask = if executing { bound.executing } else { bound.spilled };
        self.unspill(c, r, mask);
        let block = &self.translator.blocks[bound.block as usize];
        let (count, index) = (block.count, u32::from(bound.index));
        r.rip = self.program_counter(bound);
        if index == count && !executing {
            r.rcx = r.rip;
        }
        let counted = if executing { bound.counted_executing } else { bound.counted };
        // The traversal ends in the middle: no counter saw the blocks that ran.
        if !counted {
            let fragments = &self.translator.cache.fragments;
            let f = fragments.partition_point(|f| f.first_block <= bound.block) - 1;
            for b in fragments[f].first_block..=bound.block {
                *self.extra.entry(b).or_default() += 1;
                self.adjust(c, b, 0, 1);
            }
        }
        if executing && index < count {
            self.record_repeat(c, r, bound, stop);
        }
        if index < count && self.translator.stream != Stream::Nothing {
            *self.cut.entry((bound.block, index)).or_default() += 1;
            self.adjust(c, bound.block, index, -1);
            self.record_cut(c, count - index);
        }
    }

    /// A repeated string instruction that stops in the middle: the record of the iterations that it
    /// made (and attempted), which its own epilogue cannot write.
    fn record_repeat(&mut self, c: usize, r: &Registers, bound: &StateMapEntry, stop: StopPlace) {
        let Some((site, i)) = self.repeat_at(bound) else { return };
        let shape = crate::plan::string::string_shape(&i);
        let event::Shape::String { operation, element_bytes, .. } = shape else { return };
        let lods = operation == event::StringOperation::Lods;
        let before = [context::REPEAT, context::REPEAT + 8].map(|at| self.read64(c, at));
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
        for record in &records {
            self.append(c, record);
        }
        self.write32(c, context::PAGE_GROUP, 16 * records.len() as u32);
        for miss in self.use_group_pages(c) {
            self.append(c, &miss);
        }
    }

    /// Full streams learn of instructions that their last block did not retire.
    fn record_cut(&self, c: usize, instructions: u32) {
        if self.translator.stream != Stream::Full {
            return;
        }
        let what = (event::CUT_SITE as u32) << 8 | (event::RecordKind::Block as u32) << 4;
        self.append(c, &event::Record { address: u64::from(instructions), what, extra: 0 });
    }

    /// Appends a record to the ring of a stopped thread; the slack behind a segment's limit has
    /// room for it.
    pub(crate) fn append(&self, c: usize, record: &event::Record) {
        let room = |bytes: &usize| bytes + 16 <= context::RING_SEGMENT_BYTES as usize;
        let Some(bytes) = self.position(c).filter(room) else { return };
        let offset = segment_start(self.context(c), self.segments[c]) + bytes;
        self.shared.write64(offset, record.address);
        self.shared.write32(offset + 8, record.what);
        self.shared.write32(offset + 12, record.extra);
        self.write64(c, context::RING_POSITION, (offset - self.context(c) + 16) as u64);
    }

    /// Makes registers of a thread that stands before the instruction at `bound` the program's own;
    /// the thread stays where it is.
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
            let status = saved >> 8 & 0xd5 | (saved & 1) << 11;
            r.eflags = r.eflags & !0x8d5 | status;
        }
    }
}
