//! Makes the registers of a stopped thread the program's own, and corrects the counts of its
//! unfinished traversal.
//!
//! **The problem.** A thread stops in the middle of a fragment for a signal, a fault, or because
//! its process is released. At that point registers may wait in the context, the fragment's last
//! counter may or may not have been incremented, and records may not be written yet.
//!
//! **The idea.** The state map describes each position of generated code:
//!
//! ```text
//!   fragment   block 0 │ block 1: i0  i1 ▲ i2  i3 │ block 2
//!                                        └ stop
//!   not counted yet    blocks 0 and 1 ran: add one execution to each
//!   then always        i2 and i3 did not retire: take them off the sums of block 1
//! ```
//!
//! The host restores the registers, corrects the counts, and appends the records of a repeated
//! string instruction that the code behind it would have written. **Leaves out** how a thread gets
//! to such a point, which is the subject of `host`.

use super::Image;
use crate::code::state_map::{slot, StateMapEntry, FLAGS_BIT};
use crate::target::layout::{context, segment_start};
use crate::target::memory;
use crate::target::ptrace::Registers;
use event::Stream;

/// The point of an instruction's translation at which a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopPlace {
    /// The beginning of the translation.
    Before,
    /// The copy of the program's instruction, which faulted.
    Faulted,
    /// A repeated string instruction, between two iterations.
    Repeating,
}

impl Image {
    /// Whether the thread stands between two iterations of a repeated string instruction.
    pub(crate) fn repeating(&mut self, registers: &Registers, entry: &StateMapEntry) -> bool {
        let Some((_, instruction)) = self.repeat_at(entry) else { return false };
        let (bytes, _) = self.translator.reader.fetch(instruction.ip());
        let mut here = vec![0u8; instruction.len()];
        memory::read_target(self.pid, registers.rip, &mut here) == here.len() && here == bytes[..here.len()]
    }

    /// The repeated string instruction at `entry`, with the number of its site; `None` if the
    /// instruction there is another one.
    fn repeat_at(&mut self, entry: &StateMapEntry) -> Option<(usize, iced_x86::Instruction)> {
        let translator = &mut self.translator;
        let key = (entry.block, u32::from(entry.index));
        let site_index = translator.sites.partition_point(|site| (site.block, site.index) < key);
        let site = translator.sites.get(site_index).filter(|site| (site.block, site.index) == key)?;
        let (bytes, len) = translator.reader.fetch(site.ip);
        let instruction = iced_x86::Decoder::with_ip(64, &bytes[..len], site.ip, 0).decode();
        (instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()))
        .then_some((site_index, instruction))
    }

    /// Turns the registers of a thread that stopped at `entry` into the program's own, and counts
    /// the executed part of its unfinished traversal.
    ///
    /// Returns the records of pages that missed during a repeated string instruction: the segment
    /// may not have room for all of them.
    #[must_use]
    pub(crate) fn leave(
        &mut self,
        context: usize,
        registers: &mut Registers,
        entry: &StateMapEntry,
        stop: StopPlace,
    ) -> Vec<event::Record> {
        // The state map has two states for each instruction: at the start of its translation, and
        // where the copy of the program's instruction executes.
        let executing = stop != StopPlace::Before;
        let pending = if executing { entry.pending_executing } else { entry.pending };
        // A register may hold a newer ring position than memory: count these records in memory too.
        let position = self.read64(context, context::RING_POSITION).wrapping_add(16 * u64::from(pending));
        self.write64(context, context::RING_POSITION, position);
        let mask = if executing { entry.executing } else { entry.spilled };
        self.unspill(context, registers, mask);
        let block = &self.translator.blocks[entry.block as usize];
        let (count, index) = (block.count, u32::from(entry.index));
        registers.rip = self.program_counter(entry);
        // Behind a system call rcx holds the program's return address.
        if index == count && !executing {
            registers.rcx = registers.rip;
        }
        let counted = if executing { entry.counted_executing } else { entry.counted };
        // The traversal ends before its counter is incremented, so the host counts its blocks.
        if !counted {
            let fragments = &self.translator.cache.fragments;
            let fragment_index =
                fragments.partition_point(|fragment| fragment.first_block <= entry.block) - 1;
            for ran in fragments[fragment_index].first_block..=entry.block {
                *self.extra.entry(ran).or_default() += 1;
                self.sections.ran(context, ran);
                self.adjust(context, ran, 0, 1);
            }
        }
        let misses = match executing && index < count {
            true => self.record_repeat(context, registers, entry, stop),
            false => Vec::new(),
        };
        // The block counts as a whole, so the instructions that did not retire are taken off.
        if index < count && self.translator.stream != Stream::Nothing {
            *self.cut.entry((entry.block, index)).or_default() += 1;
            self.sections.left_early(context, entry.block, index);
            self.adjust(context, entry.block, index, -1);
            self.record_cut(context, count - index);
        }
        misses
    }

    /// Records the iterations of a repeated string instruction that stopped in the middle,
    /// including an attempted one. The code behind the instruction would record them, but it will
    /// not run.
    fn record_repeat(
        &mut self,
        context: usize,
        registers: &Registers,
        entry: &StateMapEntry,
        stop: StopPlace,
    ) -> Vec<event::Record> {
        let Some((site, instruction)) = self.repeat_at(entry) else { return Vec::new() };
        let shape = crate::plan::string::string_shape(&instruction);
        let event::Shape::String { operation, element_bytes, .. } = shape else { return Vec::new() };
        let lods = operation == event::StringOperation::Lods;
        let before = [context::REPEAT, context::REPEAT + 8].map(|at| self.read64(context, at));
        // The pointer shows how many iterations were completed; a fault adds one attempted
        // iteration.
        let mut after = if lods { registers.rsi } else { registers.rdi };
        if stop == StopPlace::Faulted {
            const DIRECTION: u64 = 1 << 10;
            let step = u64::from(element_bytes);
            after = if registers.eflags & DIRECTION == 0 {
                after.wrapping_add(step)
            } else {
                after.wrapping_sub(step)
            };
        }
        if after == before[usize::from(!lods)] {
            return Vec::new();
        }
        let values = [before[0], before[1], after, self.read64(context, context::FS_BASE)];
        let mut records = Vec::new();
        event::Complex::new(shape, &values[..shape.values()]).encode(site as u32, &mut records);
        for record in &records {
            self.append(context, record);
        }
        // The code behind the instruction would have emptied the filter and looked up the pages.
        self.empty_data_filter(context);
        self.write32(context, context::PAGE_GROUP, 16 * records.len() as u32);
        self.use_group_pages(context)
    }

    /// Records, in full streams, the number of instructions of the last block that did not retire.
    fn record_cut(&self, context: usize, instructions: u32) {
        if self.translator.stream != Stream::Full {
            return;
        }
        let what = (event::CUT_SITE as u32) << 8 | (event::RecordKind::Block as u32) << 4;
        self.append(context, &event::Record { address: u64::from(instructions), what, extra: 0 });
    }

    /// Appends a record to the ring of a stopped thread; the slack behind a segment's limit has
    /// room for it.
    pub(crate) fn append(&self, context: usize, record: &event::Record) {
        let room = |bytes: &usize| bytes + 16 <= context::RING_SEGMENT_BYTES as usize;
        let Some(bytes) = self.position(context).filter(room) else { return };
        let offset = segment_start(self.context(context), self.segments[context]) + bytes;
        self.shared.write64(offset, record.address);
        self.shared.write32(offset + 8, record.what);
        self.shared.write32(offset + 12, record.extra);
        self.write64(context, context::RING_POSITION, (offset - self.context(context) + 16) as u64);
    }

    /// Computes the program's own registers of a thread that stands before the instruction at
    /// `entry`; the thread itself is not changed.
    pub(crate) fn show(&self, context: usize, registers: &mut Registers, entry: &StateMapEntry) {
        self.unspill(context, registers, entry.spilled);
        registers.rip = self.program_counter(entry);
    }

    /// The program's address at `entry`.
    fn program_counter(&self, entry: &StateMapEntry) -> u64 {
        let block = &self.translator.blocks[entry.block as usize];
        match self.translator.instructions.get((block.first + u32::from(entry.index)) as usize) {
            Some(instruction) if u32::from(entry.index) < block.count => {
                block.ip + u64::from(instruction.offset)
            }
            _ => block.ip + u64::from(block.len),
        }
    }

    /// Loads the registers and flags of `mask` from their slots in the context.
    fn unspill(&self, context: usize, registers: &mut Registers, mask: u16) {
        let general = [
            &mut registers.rax,
            &mut registers.rcx,
            &mut registers.rdx,
            &mut registers.rbx,
            &mut registers.rsp,
            &mut registers.rbp,
            &mut registers.rsi,
            &mut registers.rdi,
            &mut registers.r8,
            &mut registers.r9,
            &mut registers.r10,
            &mut registers.r11,
            &mut registers.r12,
            &mut registers.r13,
            &mut registers.r14,
            &mut registers.r15,
        ];
        for (number, register) in general.into_iter().enumerate() {
            if mask & !FLAGS_BIT & 1 << number != 0 {
                *register = self.read64(context, slot(number as u8));
            }
        }
        if mask & FLAGS_BIT != 0 {
            let saved = self.read64(context, context::FLAGS);
            // ah holds five status flags, al the overflow flag.
            let status = saved >> 8 & 0xd5 | (saved & 1) << 11;
            registers.eflags = registers.eflags & !0x8d5 | status;
        }
    }
}
