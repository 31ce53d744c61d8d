//! Makes the registers of a stopped thread the program's own, and counts an unfinished traversal.
//!
//! A thread stops in the middle of a fragment for a signal, a fault, or because its process is
//! released. The state map says which registers wait in the context at that point. The fragment's
//! last counter may have been incremented already or not. So blocks that ran are added if they were
//! not counted, and instructions that did not retire are taken off. Records that the code could not
//! write any more are appended. **Leaves out** how a thread gets to such a point, which is `host`'s
//! subject.

use super::Image;
use crate::code::state_map::{slot, StateMapEntry, FLAGS_BIT};
use crate::target::layout::{context, segment_start};
use crate::target::memory;
use crate::target::ptrace::Registers;
use event::Stream;

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

impl Image {
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
    ///
    /// Returns the records of pages that a repeated string instruction missed on its way: they may
    /// be more than its segment has room for.
    #[must_use]
    pub(crate) fn leave(
        &mut self,
        c: usize,
        r: &mut Registers,
        bound: &StateMapEntry,
        stop: StopPlace,
    ) -> Vec<event::Record> {
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
        let misses = match executing && index < count {
            true => self.record_repeat(c, r, bound, stop),
            false => Vec::new(),
        };
        // The block was counted as a whole: the instructions from here on are taken off again.
        if index < count && self.translator.stream != Stream::Nothing {
            *self.cut.entry((bound.block, index)).or_default() += 1;
            self.adjust(c, bound.block, index, -1);
            self.record_cut(c, count - index);
        }
        misses
    }

    /// Records the iterations of a repeated string instruction that stopped in the middle,
    /// including an attempted one; its epilogue, which would record them, will not run.
    fn record_repeat(
        &mut self,
        c: usize,
        r: &Registers,
        bound: &StateMapEntry,
        stop: StopPlace,
    ) -> Vec<event::Record> {
        let Some((site, i)) = self.repeat_at(bound) else { return Vec::new() };
        let shape = crate::plan::string::string_shape(&i);
        let event::Shape::String { operation, element_bytes, .. } = shape else { return Vec::new() };
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
            return Vec::new();
        }
        let values = [before[0], before[1], after, self.read64(c, context::FS_BASE)];
        let mut records = Vec::new();
        event::Complex::new(shape, &values[..shape.values()]).encode(site as u32, &mut records);
        for record in &records {
            self.append(c, record);
        }
        // Generated code behind the instruction would have done this.
        self.empty_data_filter(c);
        self.write32(c, context::PAGE_GROUP, 16 * records.len() as u32);
        self.use_group_pages(c)
    }

    /// Records, in full streams, how many instructions of the last block did not retire.
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
