//! Makes the plan of a fragment, block by block, before the fragment is emitted.
//!
//! For each block it decides which references share a check, before which instruction the block's
//! instruction lines are looked up, and how each reference is recorded. Sites and lines get their
//! numbers here, in program order: code with small numbers is shorter, so numbers cannot be filled
//! in later.
//!
//! ```text
//!   references in program order ─▶ groups ─▶ hoist checks to dead flags ─▶ place of line checks
//! ```
//!
//! **Leaves out** the code (`emit`) and the meaning of the samples of records (`hotness`).

use super::group::{stack_step, Groups, Member};
use super::hotness::{Experience, HotnessProfile, Tuning};
use super::instruction_cache::{InlineICache, LineCheck, LineIds, LineUse};
use super::liveness::Liveness;
use super::mode::RecordMode;
use super::references::{self, Complex, ReferenceShapes};
use crate::call::CallRecords;
use crate::code::assembler::{reg, Address};
use crate::code::counter::Weights;
use crate::code::decode::End;
use crate::code::superblock::BasicBlock;
use crate::profile::Site;
use event::{Code, Filter, RecordKind, Stream};
use iced_x86::{FlowControl, Mnemonic};

/// The plan of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) groups: Groups,
    /// Complex references: index of the instruction, kind, site.
    pub(crate) complex: Vec<(usize, Complex, u32)>,
    /// Index of the instruction before which the block's instruction lines are looked up.
    pub(crate) fetch_at: usize,
    /// How tuned code records instruction lines.
    pub(crate) fetch: RecordMode,
    /// With a filter of last lines: the instruction lines to compare with the last ones of their
    /// sets.
    pub(crate) checks: Vec<LineCheck>,
    /// With an inline instruction cache: the lines and pages that the block uses.
    pub(crate) uses: Vec<LineUse>,
    /// Number of the counter of failed checks of instruction lines.
    pub(crate) failures: u32,
}

impl BlockPlan {
    /// Empties the plan; the vectors keep their allocations.
    fn clear(&mut self) {
        self.groups.clear();
        self.complex.clear();
        self.checks.clear();
        self.uses.clear();
        (self.fetch_at, self.fetch, self.failures) = (0, RecordMode::default(), 0);
    }
}

/// How much code a fragment may take in order to be fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Translated for the first time: as little code as possible.
    #[default]
    Fresh,
    /// Translated again because it runs often: all checks are inline.
    Tuned,
    /// Tuned, with records that are written without a check. Such a fragment checks once, at its
    /// head, that the ring has room.
    Appending,
}

/// The plan of a fragment.
#[derive(Debug, Default)]
pub(crate) struct FragmentPlan {
    /// One plan for each block. Plans beyond the fragment's last block are left over from earlier
    /// fragments, for reuse.
    pub(crate) blocks: Vec<BlockPlan>,
    pub(crate) tier: Tier,
    /// Number of the fragment's first counter. Counters follow in this order: one for each taken
    /// side exit, one for the last block, one for each block's failed checks of instruction lines.
    pub(crate) counters: u32,
    /// Whether the fragment's call, return or jump is recorded.
    pub(crate) calls: CallRecords,
    /// What a traversal to the fragment's end adds to the running sums.
    pub(crate) weights: Weights,
}

/// Whether the stream records all references, and not only counts and complex ones.
pub(crate) fn records_references(stream: &Stream) -> bool {
    matches!(stream, Stream::Filtered(_) | Stream::Full | Stream::Allocated | Stream::References)
}

/// The filter of the stream before references of data, if it has one.
pub(crate) fn data_filter(stream: &Stream) -> Option<&Filter> {
    match stream {
        Stream::Filtered(filter) if !filter.data.drops_nothing() => Some(filter),
        _ => None,
    }
}

/// Whether the code of `block` will need scratch registers.
pub(crate) fn needs_scratch(stream: &Stream, shapes: &ReferenceShapes, block: &BasicBlock) -> bool {
    let is_complex = |shape| shapes.get(shape).complex.is_some();
    records_references(stream)
        || !block.events.is_empty()
        || *stream != Stream::Nothing && block.instructions.iter().any(|decoded| is_complex(decoded.shape))
}

/// A transfer at the end of a block that is recorded if calls are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedTransfer {
    /// A call of the code at this address.
    DirectCall(u64),
    /// A jump into another function, at this address.
    DirectJump(u64),
    IndirectCall,
    IndirectJump,
    Return,
}

/// The transfer that ends `block`, if it is recorded where calls are. A call of the next
/// instruction only reads the program counter.
pub(crate) fn recorded_transfer(block: &BasicBlock) -> Option<RecordedTransfer> {
    let instruction = &block.last().filter(|_| block.end == End::Transfer)?.instruction;
    match instruction.flow_control() {
        FlowControl::Call if instruction.is_call_near() => {
            let target = instruction.near_branch_target();
            (target != instruction.next_ip()).then_some(RecordedTransfer::DirectCall(target))
        }
        FlowControl::UnconditionalBranch if block.is_tail_jump => {
            Some(RecordedTransfer::DirectJump(instruction.near_branch_target()))
        }
        FlowControl::IndirectCall => Some(RecordedTransfer::IndirectCall),
        FlowControl::IndirectBranch => Some(RecordedTransfer::IndirectJump),
        FlowControl::Return => Some(RecordedTransfer::Return),
        _ => None,
    }
}

/// Whether an operand may lie in memory that was allocated: it is not next to the stack pointer,
/// and a register decides where it is.
fn may_be_allocated(address: &Address) -> bool {
    address.index.is_some() || address.base.is_some_and(|base| base != reg::RSP)
}

/// Plans fragments. It borrows the image's tables, and adds sites and lines to them.
pub(crate) struct Planner<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) shapes: &'a ReferenceShapes,
    pub(crate) sites: &'a mut Vec<Site>,
    pub(crate) lines: &'a mut LineIds,
    pub(crate) hotness: &'a mut HotnessProfile,
    /// The samples for tuning; `None` if the fragment is translated for the first time.
    pub(crate) tuning: Option<&'a Tuning>,
}

impl Planner<'_> {
    /// Plans a fragment whose first counter is `counters`.
    pub(crate) fn fragment(
        &mut self,
        blocks: &[BasicBlock],
        liveness: &[Liveness],
        counters: u32,
        plan: &mut FragmentPlan,
    ) {
        plan.counters = counters;
        // Code that is translated again is tuned, even if all its references stay checked.
        plan.tier = match self.tuning {
            None => Tier::Fresh,
            Some(tuning) if tuning.any == RecordMode::Checked => Tier::Tuned,
            Some(_) => Tier::Appending,
        };
        // Without a filter there are no checks to choose.
        let has_checks = matches!(self.stream, Stream::Full) || data_filter(self.stream).is_some();
        if records_references(self.stream) && !has_checks {
            plan.tier = Tier::Appending;
        }
        plan.blocks.resize_with(plan.blocks.len().max(blocks.len()), BlockPlan::default);
        self.lines.begin_fragment();
        let failures = counters + blocks.len() as u32 + 1;
        for (nth, (block, liveness)) in blocks.iter().zip(liveness).enumerate() {
            let plan = &mut plan.blocks[nth];
            plan.clear();
            plan.failures = failures + nth as u32;
            if *self.stream != Stream::Nothing && !liveness.uses.is_empty() {
                self.block(block, liveness, nth as u32, plan);
            }
        }
    }

    /// Plans block number `nth` of the fragment.
    fn block(&mut self, block: &BasicBlock, liveness: &Liveness, nth: u32, plan: &mut BlockPlan) {
        let stream = *self.stream;
        let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
        let data_filter = data_filter(&stream);
        let experience = self.experience(nth);
        plan.fetch = experience.fetch(self.hotness);
        self.hotness.fetch(block.number).mode = plan.fetch;
        // First, sites and groups in program order. An instruction with a complex reference ends
        // the open group, because records keep their order.
        let first_site = self.sites.len() as u32;
        for (index, decoded) in block.instructions.iter().enumerate() {
            let shape = self.shapes.get(decoded.shape);
            let is_plain = shape.complex == Some(Complex::BitOffset) && stream == Stream::Counts;
            if let Some(complex) = shape.complex.filter(|_| !is_plain) {
                plan.groups.pass_complex();
                let site = self.site(block, index);
                plan.complex.push((index, complex, site));
                continue;
            }
            if stream != Stream::Counts {
                self.references(block, index, plan, data_filter, (&experience, first_site));
            }
            plan.groups.pass(decoded, liveness.uses[index].writes);
        }
        plan.groups.close();
        // Then checks move to earlier instructions where flags are dead. Events of a tool keep
        // their places among records, so a block with events is left as it is.
        if data_filter.is_some() && block.events.is_empty() {
            plan.groups.hoist(&liveness.flags_dead, |index| self.passed(block, liveness, index));
        }
        // A tool's events may stand between references, and use no pages.
        plan.groups.join_pages();
        self.fetches(block, liveness, plan, filter);
    }

    /// Adds the references of instruction `index` to the block's groups. `first_site` is the number
    /// of the block's first site.
    fn references(
        &mut self,
        block: &BasicBlock,
        index: usize,
        plan: &mut BlockPlan,
        filter: Option<&Filter>,
        (experience, first_site): (&Experience, u32),
    ) {
        let decoded = &block.instructions[index];
        let shapes = self.shapes;
        for template in &shapes.get(decoded.shape).simple {
            if template.kind == RecordKind::Prefetch && *self.stream != Stream::Full {
                continue;
            }
            let Some(address) = references::address(&decoded.instruction, template.form) else { continue };
            if *self.stream == Stream::Allocated && !may_be_allocated(&address) {
                continue;
            }
            let site = self.site(block, index);
            let code = Code::new(template.kind, template.size_bytes).map_or(0, |code| u32::from(code.0));
            // A reference longer than a line always fails its check, which then records it: no
            // other mode is needed, and the check handles the several lines.
            let line_bytes = filter.map_or(u32::MAX, |filter| filter.data.line_bytes);
            let mode = match template.size_bytes > line_bytes {
                true => RecordMode::Checked,
                false => experience.data(self.hotness, site - first_site),
            };
            self.hotness.site(site).mode = mode;
            let what = site << 8 | code;
            plan.groups
                .add(Member::new((address, template.kind, template.size_bytes), what, index, mode), filter);
        }
    }

    /// Decides before which instruction the block's instruction lines are looked up, and numbers
    /// the lines.
    fn fetches(
        &mut self,
        block: &BasicBlock,
        liveness: &Liveness,
        plan: &mut BlockPlan,
        filter: Option<&Filter>,
    ) {
        let first = plan.groups.first().unwrap_or(usize::MAX);
        let first = first.min(plan.complex.first().map_or(usize::MAX, |complex| complex.0));
        // The lookup must precede the first data reference. A check overwrites flags, so it goes to
        // the first place where they are dead; recording without a check changes no flags.
        let kept = filter.and_then(InlineICache::of);
        let checked = plan.fetch == RecordMode::Checked || kept.is_some();
        let dead =
            liveness.flags_dead.iter().take(first.saturating_add(1)).position(|&dead| dead || !checked);
        plan.fetch_at = dead.unwrap_or(0);
        let Some(filter) = filter else { return };
        let bytes = u64::from(filter.instruction.line_bytes);
        let mut line = block.ip & !(bytes - 1);
        while line < block.end_ip() {
            match kept {
                Some(caches) => self.lines.uses(caches, line, &mut plan.uses),
                None => plan.checks.extend(self.lines.check(filter, line)),
            }
            line += bytes;
        }
    }

    /// Creates a site for instruction `index` and returns its number.
    fn site(&mut self, block: &BasicBlock, index: usize) -> u32 {
        let ip = block.instructions[index].instruction.ip();
        self.sites.push(Site { ip, block: block.number, index: index as u32 });
        self.sites.len() as u32 - 1
    }

    /// The samples of block `nth` of the fragment that is translated again.
    fn experience(&self, nth: u32) -> Experience {
        let seen = self.tuning.map(|tuning| {
            let block = tuning.first_block + nth;
            let site = self.sites.partition_point(|site| site.block < block) as u32;
            (block, site, tuning.executions[nth as usize])
        });
        Experience { seen }
    }

    /// The registers that instruction `index` changes, and the bytes that it adds to rsp; `None` if
    /// it references memory or may fault, so that no check may move above it.
    fn passed(&self, block: &BasicBlock, liveness: &Liveness, index: usize) -> Option<(u16, i64)> {
        let decoded = &block.instructions[index];
        let shape = self.shapes.get(decoded.shape);
        let faults = matches!(decoded.instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        if faults || !shape.simple.is_empty() || shape.complex.is_some() {
            return None;
        }
        let written = liveness.uses[index].writes;
        Some(stack_step(decoded).map_or((written, 0), |added| (written & !(1 << reg::RSP), added)))
    }
}
