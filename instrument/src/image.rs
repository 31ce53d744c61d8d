//! One process image under the engine: its shared memory, its translator, its threads' contexts, its counts.
//!
//! An image begins with an exec and ends with the last thread or the next exec; what it counted is then turned into a profile.

mod again;
mod counted;

use crate::cache::CodeCache;
use crate::decode::CodeReader;
use crate::emit::draft::{slot, Bound, FLAGS_BIT};
use crate::emit::events::Events;
use crate::emit::kept::COUNTED_EVERY;
use crate::error::Error;
use crate::inject::{Injector, Mapping};
use crate::layout::{context, Layout, CONTEXTS, CONTEXTS_MAX, LOOKUP_BITS, LOOKUP_SHIFT, LOW_BYTES};
use crate::memory::{self, Shared};
use crate::modules::{self, Maps};
use crate::ptrace::{self, Registers};
use crate::ring::segment_start;
use crate::signal;
use crate::store::snapshot::{self, Snapshot};
use crate::store::{self, Store};
use crate::translate::Translator;
use event::{Filter, SetFilter, Stream};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// System calls that stop for the host before they are made.
pub(crate) mod number {
    pub(crate) const OPEN: u64 = 2;
    pub(crate) const MMAP: u64 = 9;
    pub(crate) const MPROTECT: u64 = 10;
    pub(crate) const MUNMAP: u64 = 11;
    pub(crate) const SIGACTION: u64 = 13;
    pub(crate) const SIGRETURN: u64 = 15;
    pub(crate) const MREMAP: u64 = 25;
    pub(crate) const ARCH_PRCTL: u64 = 158;
    pub(crate) const SET_AFFINITY: u64 = 203;
    pub(crate) const GET_AFFINITY: u64 = 204;
    pub(crate) const OPENAT: u64 = 257;
    pub(crate) const RSEQ: u64 = 334;
    pub(crate) const OPENAT2: u64 = 437;
    pub(crate) const ALL: [u64; 10] =
        [MMAP, MPROTECT, MUNMAP, SIGACTION, SIGRETURN, MREMAP, ARCH_PRCTL, SET_AFFINITY, GET_AFFINITY, RSEQ];
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
pub(crate) enum Stop {
    /// At its beginning.
    Before,
    /// In the program's own instruction, which faulted.
    Faulted,
    /// In a repeated string instruction, between two iterations.
    Repeating,
}

/// What already lies where the engine's memory is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// Nothing.
    Free,
    /// The engine's memory of the process that this one was forked off.
    Inherited,
}

/// Many a forked child only prepares an exec, or leaves at once.
const HESITANT_FRAGMENTS: usize = 100;

/// Checks of a block's instruction lines that failed, from which on it is thought over.
const FAILURES_MIN: u64 = 4096;

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
    /// By context, its counters when its last thread ended, and what of the present one is not in them: instructions, blocks, loads, stores.
    told: HashMap<usize, (Vec<u64>, [i64; 4])>,
    /// Where its translations are kept, if they are.
    store: Option<Store>,
    /// Of a forked child: its parent's number, and the changes that the parent's text had seen.
    pub(crate) parent: Option<(u32, u64)>,
    /// What ended children of its own left.
    spares: again::Spares,
    /// Fragments and bytes of code that it has from the image that it was before.
    pub(crate) taken_over: (usize, u64),
}

impl Image {
    /// Prepares the image that process `pid` has just executed, and maps the engine's memory into it.
    pub(crate) fn new(pid: i32, number: u32, stream: Stream) -> Result<Image, Error> {
        let vector = auxiliary(pid);
        let entry = vector.get(&9).copied().unwrap_or(0);
        let vdso = vector.get(&33).copied().unwrap_or(0);
        let layout = Layout::plan(&modules::ranges(pid), entry)
            .ok_or_else(|| Error::system("no room for generated code in the program's address space"))?;
        let gadget = system_call_in(pid, vdso).ok_or_else(|| {
            Error::system(
                "cannot read the program's vdso (process_vm_readv refused, or boot parameter vdso=0)",
            )
        })?;
        let image = Image::empty(Maps::new(pid), number, stream, layout, gadget)?;
        let stack = ptrace::registers(pid).ok_or_else(|| Error::system("the program vanished"))?.rsp;
        image.map_into(pid, Ground::Free, (stack - 4096) & !15)?;
        Ok(image)
    }

    /// The image of process `pid`, which the thread of context `c` has just forked: the same addresses, nothing translated.
    pub(crate) fn fork(&self, pid: i32, number: u32, c: usize) -> Result<Image, Error> {
        let layout = self.translator.cache.layout.clone();
        let stream = self.translator.events.stream;
        let mut image = Image::empty(self.maps.of_child(pid), number, stream, layout, self.gadget)?;
        image.translator.hesitant_fragments = HESITANT_FRAGMENTS;
        image.replace_inherited(pid, c)?;
        Ok(image)
    }

    /// Maps the engine's memory over that which process `pid` has from its parent, whose thread of context `c` forked it.
    fn replace_inherited(&self, pid: i32, c: usize) -> Result<(), Error> {
        // The parent's thread stands at its system call: what it keeps for one instruction is unused.
        let scratch = CONTEXTS + c as u64 * context::BYTES + u64::from(context::VECTOR);
        self.map_into(pid, Ground::Inherited, scratch)
    }

    /// An image that is not mapped anywhere.
    fn empty(maps: Maps, number: u32, stream: Stream, layout: Layout, gadget: u64) -> Result<Image, Error> {
        let shared = Arc::new(Shared::new(layout.file_bytes() as usize)?);
        let filter = if let Stream::Filtered(f) = &stream { Some(f) } else { None };
        let cache = CodeCache::new(shared.clone(), layout.clone(), filter);
        let pid = maps.pid;
        let image = Image {
            pid,
            number,
            shared,
            translator: Translator::new(cache, CodeReader::new(pid), Events::new(stream)),
            maps,
            gadget,
            free: (0..CONTEXTS_MAX).rev().collect(),
            used: 0,
            threads: 0,
            extra: HashMap::new(),
            cut: HashMap::new(),
            told: HashMap::new(),
            store: None,
            parent: None,
            spares: again::Spares::default(),
            taken_over: (0, 0),
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

    /// Whether opening a file stops for the host.
    pub(crate) fn watch(&self, opens: Opens) {
        self.mark(&number::OPENS, u8::from(opens == Opens::Watched));
    }

    /// Takes over what a former run of the same program left in `folder`, and will leave there what this one translates.
    pub(crate) fn remember(&mut self, folder: &Path) {
        let Some(mut identity) = store::generator() else { return };
        // The program's first page: its headers, and with them its build-id.
        let mut page = [0u8; 4096];
        let headers = auxiliary(self.pid).get(&3).copied().unwrap_or(0) & !0xfff;
        if memory::read_target(self.pid, headers, &mut page) != page.len() {
            return;
        }
        identity.extend(page);
        let t = &mut self.translator;
        identity.extend(format!("{headers:x} {:?} {:?}", t.events.stream, t.cache.layout).bytes());
        let store = Store::new(folder, &identity);
        if let Some(body) = store.read() {
            match Snapshot::decode(body.bytes(), &t.cache) {
                Some(snapshot) => snapshot.restore(t, &mut self.maps),
                None => store.remove(),
            }
        }
        self.store = Some(store);
    }

    /// Leaves the translations on disk, where enough of them are new. A file of which a part did not hold any more is given up.
    pub(crate) fn keep(&self) {
        const NEW_FRAGMENTS_MIN: usize = 32;
        const SHARE: usize = 16;
        let Some(store) = &self.store else { return };
        let dormant = &self.translator.dormant;
        if dormant.mismatch {
            return store.remove();
        }
        let enough = if dormant.fragments == 0 { 1 } else { NEW_FRAGMENTS_MIN + dormant.fragments / SHARE };
        if self.translator.cache.fragments.len() < dormant.fragments + enough {
            return;
        }
        let live = snapshot::text_fragments(&self.translator);
        let new = live.iter().filter(|&&f| f as usize >= dormant.fragments).count();
        if new < enough || self.translator.refusal.is_some() {
            return;
        }
        // What cannot be used again is written too, because numbers stay.
        if live.len() < self.translator.cache.fragments.len() / 4 {
            return store.remove();
        }
        // Whoever takes it over knows of no loops.
        self.translator.cache.break_loops(0, usize::MAX);
        store.write(&snapshot::encode(&self.translator, &self.maps, &live));
    }

    /// Reads the memory through this task from now on.
    pub(crate) fn looked_at_through(&mut self, tid: i32) {
        self.pid = tid;
        self.maps.pid = tid;
        self.translator.reader.pid = tid;
    }

    /// Maps the shared file into the stopped target by system calls made in its name; registers are put back.
    /// `at` is where a path fits for a while.
    fn map_into(&self, pid: i32, ground: Ground, at: u64) -> Result<(), Error> {
        let mut injector = Injector::at(pid, self.gadget)?;
        let mask = signal::block(pid);
        let mapped = self.map_parts(&mut injector, ground, at);
        injector.finish(None);
        signal::unblock(pid, mask);
        mapped
    }

    /// The calls of [`Image::map_into`].
    fn map_parts(&self, injector: &mut Injector, ground: Ground, at: u64) -> Result<(), Error> {
        let layout = &self.translator.cache.layout;
        let fd = injector.open(self.shared.fd(), at)?;
        let (read, write, run) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
        let mut parts: Vec<(u64, u64, i32, u64)> = Vec::new();
        for (z, place) in layout.zones.iter().enumerate() {
            parts.push((place.address, place.bytes(), read | run, layout.zone_offset(z)));
        }
        parts.push((layout.low, (LOW_BYTES + 0xfff) & !0xfff, read, layout.low_offset()));
        let contexts = context::BYTES * CONTEXTS_MAX as u64;
        parts.push((CONTEXTS, contexts, read | write, layout.contexts_offset()));
        let place = match ground {
            Ground::Free => libc::MAP_FIXED_NOREPLACE,
            Ground::Inherited => libc::MAP_FIXED,
        };
        let flags = libc::MAP_SHARED | place | libc::MAP_NORESERVE;
        for (address, bytes, protection, offset) in parts {
            injector.map(Mapping { address, bytes, protection, flags, fd, offset })?;
        }
        injector.close(fd);
        Ok(())
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
        if let Stream::Filtered(filter) = self.translator.events.stream {
            self.mask_filters(c, &filter);
            // What nobody used yet is zero, and takes no memory.
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
        let bits = |f: SetFilter| u64::from(f.sets - 1) * u64::from(f.line_bytes);
        self.write64(c, context::MASK_SET, bits(filter.data));
        if let Some(page) = filter.data_page {
            self.write64(c, context::MASK_PAGE_SET, bits(page));
        }
    }

    fn empty_filters(&self, c: usize) {
        let zeros = vec![0u8; (context::RING - context::DATA_PAGES) as usize];
        self.shared.write(self.context(c) + context::DATA_PAGES as usize, &zeros);
    }

    /// Empties what an earlier thread of the context kept of the instruction side.
    fn empty_kept(&self, c: usize) {
        let numbers = self.translator.events.numbers.count() + 1;
        let rows = (context::KEPT_TIMES - context::KEPT_LINES) as usize;
        let zeros = vec![0u8; rows + 8 * numbers];
        self.shared.write(self.context(c) + context::KEPT_LINES as usize, &zeros);
    }

    /// Points the ring of context `c` at the beginning of a segment, of which `bytes` are used.
    pub(crate) fn start_segment(&self, c: usize, segment: u32, bytes: u32) {
        let start = context::RING + segment * context::RING_SEGMENT_BYTES;
        self.write64(c, context::RING_POSITION, u64::from(start));
        self.write64(c, context::RING_LIMIT, u64::from(start + bytes - context::RING_SLACK_BYTES));
    }

    /// Records that context `c` has written into its current segment: segment, offset in the file, count.
    pub(crate) fn written(&self, c: usize) -> (u32, usize, usize) {
        let at = self.read64(c, context::RING_POSITION) as u32;
        let segment = (at - context::RING) / context::RING_SEGMENT_BYTES;
        let start = segment_start(self.context(c), segment);
        let bytes = at - context::RING - segment * context::RING_SEGMENT_BYTES;
        (segment, start, bytes as usize / 16)
    }

    /// A thread is gone; its counters stay.
    pub(crate) fn left(&mut self, c: usize) {
        self.free.push(c);
        self.threads -= 1;
    }

    /// Translates the code of fragment `old` anew, because it changed, and what led to the old one leads there; where to continue. Other threads may
    /// be running the old one: then it is left as it is.
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

    /// Looks at the records just written, and tunes fragments again of which they tell something new; how many.
    pub(crate) fn learn(&mut self, offset: usize, count: usize) -> u64 {
        if !matches!(self.translator.events.stream, Stream::Filtered(_)) || self.translator.asking.is_some() {
            return 0;
        }
        let shared = self.shared.clone();
        let t = &mut self.translator;
        if t.heat.passes_over() {
            return 0;
        }
        let blocks = t.heat.sample(shared.records(offset, count), &t.sites);
        let mut tuned = 0;
        for block in blocks {
            tuned += self.tune_again(block);
        }
        self.translator.heat.sampled(tuned);
        tuned + self.learn_failures()
    }

    /// Tunes the fragment of a block again, if what is known of it by now changes anything; how many were.
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

    /// Looks at the counters of checks of instruction lines that failed, ever more seldom: all of them are read.
    fn learn_failures(&mut self) -> u64 {
        if !self.translator.events.keeps_fetches() || !self.translator.heat.is_time_to_read() {
            return 0;
        }
        let mut blocks = Vec::new();
        for fragment in &self.translator.cache.fragments {
            let first = fragment.counters + fragment.blocks + 1;
            for n in 0..fragment.blocks {
                let failures = self.counted(first + n) * u64::from(COUNTED_EVERY);
                if failures >= FAILURES_MIN {
                    blocks.push((fragment.first_block + n, failures));
                }
            }
        }
        for &(block, failures) in &blocks {
            self.translator.heat.failed(block, failures);
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
    pub(crate) fn repeating(&mut self, r: &Registers, bound: &Bound) -> bool {
        let Some((_, i)) = self.repeat_at(bound) else { return false };
        let (bytes, _) = self.translator.reader.fetch(i.ip());
        let mut here = vec![0u8; i.len()];
        memory::read_target(self.pid, r.rip, &mut here) == here.len() && here == bytes[..here.len()]
    }

    /// The repeated string instruction at `bound`, with its site.
    fn repeat_at(&mut self, bound: &Bound) -> Option<(usize, iced_x86::Instruction)> {
        let t = &mut self.translator;
        let key = (bound.block, u32::from(bound.index));
        let n = t.sites.partition_point(|s| (s.block, s.index) < key);
        let site = t.sites.get(n).filter(|s| (s.block, s.index) == key)?;
        let (bytes, len) = t.reader.fetch(site.ip);
        let i = iced_x86::Decoder::with_ip(64, &bytes[..len], site.ip, 0).decode();
        (i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix())).then_some((n, i))
    }

    /// Turns the registers of a thread stopped at `bound` into the program's own, and books what its traversal has done so far.
    pub(crate) fn leave(&mut self, c: usize, r: &mut Registers, bound: &Bound, stop: Stop) {
        let executing = stop != Stop::Before;
        let pending = if executing { bound.pending_executing } else { bound.pending };
        let position = self.read64(c, context::RING_POSITION) + 16 * u64::from(pending);
        self.write64(c, context::RING_POSITION, position);
        let mask = if executing { bound.executing } else { bound.spilled };
        self.unspill(c, r, mask);
        let block = &self.translator.blocks[bound.block as usize];
        let (count, index) = (block.count, u32::from(bound.index));
        r.rip = match self.translator.instructions.get((block.first + index) as usize) {
            Some(i) if index < count => block.ip + u64::from(i.offset),
            _ => block.ip + u64::from(block.len),
        };
        if index == count && !executing {
            r.rcx = r.rip;
        }
        let counted = if executing { bound.counted_executing } else { bound.counted };
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
        if index < count && self.translator.events.counts() {
            *self.cut.entry((bound.block, index)).or_default() += 1;
            self.adjust(c, bound.block, index, -1);
            self.record_cut(c, count - index);
        }
    }

    /// A repeated string instruction that stops in the middle: the record of the iterations that it made (and attempted), which
    /// its own epilogue cannot write.
    fn record_repeat(&mut self, c: usize, r: &Registers, bound: &Bound, stop: Stop) {
        let Some((site, i)) = self.repeat_at(bound) else { return };
        let shape = crate::emit::string_shape(&i);
        let event::Shape::String { operation, element_bytes, .. } = shape else { return };
        let lods = operation == event::StringOperation::Lods;
        let before = [context::REPEAT, context::REPEAT + 8].map(|at| self.read64(c, at));
        let mut after = if lods { r.rsi } else { r.rdi };
        if stop == Stop::Faulted {
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

    /// Full streams learn of instructions that their last block did not retire.
    fn record_cut(&self, c: usize, instructions: u32) {
        if self.translator.events.stream != Stream::Full {
            return;
        }
        let what = (event::CUT_SITE as u32) << 8 | (event::RecordKind::Block as u32) << 4;
        self.append(c, u64::from(instructions), what, 0);
    }

    /// Appends a record to the ring of a stopped thread; the slack behind a segment's limit has room for it.
    fn append(&self, c: usize, address: u64, what: u32, extra: u32) {
        let at = self.read64(c, context::RING_POSITION);
        let offset = self.context(c) + at as usize;
        self.shared.write64(offset, address);
        self.shared.write32(offset + 8, what);
        self.shared.write32(offset + 12, extra);
        self.write64(c, context::RING_POSITION, at + 16);
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

/// The auxiliary vector of a process.
pub(crate) fn auxiliary(pid: i32) -> HashMap<u64, u64> {
    let bytes = std::fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
    bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

/// Address of a `syscall` instruction in the vdso.
pub(crate) fn system_call_in(pid: i32, vdso: u64) -> Option<u64> {
    let mut code = vec![0u8; 8192];
    let mut got = memory::read_target(pid, vdso, &mut code);
    if got == 0 {
        got = memory::read_target(pid, vdso, &mut code[..4096]);
    }
    let at = code[..got].windows(2).position(|w| w == [0x0f, 0x05])?;
    Some(vdso + at as u64)
}
