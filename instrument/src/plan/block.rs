//! Makes the plan of a fragment, block by block, before the fragment is emitted.
//!
//! For each block it decides which references one check covers, where instruction lines are used,
//! and how each reference is recorded. Here sites and lines get their numbers, in program order:
//! code with small numbers is shorter, so numbers cannot be filled in later. **Leaves out** the
//! code (`emit`) and what the samples of records say (`hotness`).

use super::group::{stack_step, Groups, Member};
use super::hotness::{Experience, HotnessProfile, Tuning};
use super::instruction_cache::{InlineICache, LineCheck, LineIds, LineUse};
use super::liveness::Liveness;
use super::mode::RecordMode;
use super::references::{self, Complex, ReferenceShapes};
use crate::code::assembler::reg;
use crate::code::superblock::BasicBlock;
use crate::profile::Site;
use event::{Code, Filter, RecordKind, Stream};
use iced_x86::Mnemonic;

/// The plan of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) groups: Groups,
    /// Complex references: instruction, kind, site.
    pub(crate) complex: Vec<(usize, Complex, u32)>,
    /// Instruction before which the block's instruction lines are used.
    pub(crate) fetch_at: usize,
    /// How instruction lines are recorded in tuned code.
    pub(crate) fetch: RecordMode,
    /// Lines that are compared with their sets' last ones, where that is all.
    pub(crate) checks: Vec<LineCheck>,
    /// Lines and pages of the kept instruction side.
    pub(crate) uses: Vec<LineUse>,
    /// Counter of checks of instruction lines that fail.
    pub(crate) failures: u32,
}

impl BlockPlan {
    /// Records nothing; its lists keep their room.
    fn clear(&mut self) {
        self.groups.clear();
        self.complex.clear();
        self.checks.clear();
        self.uses.clear();
        (self.fetch_at, self.fetch, self.failures) = (0, RecordMode::default(), 0);
    }
}

/// How much room a fragment's code may take in order to be fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Translated for the first time: as short as can be.
    #[default]
    Fresh,
    /// Translated again because it runs often: everything in line.
    Tuned,
    /// Tuned, with records that are written without a check: the fragment has to make sure, once,
    /// that the ring has room.
    Appending,
}

/// The plan of a fragment.
#[derive(Debug, Default)]
pub(crate) struct FragmentPlan {
    /// By block. Plans behind the fragment's last block are reused by later fragments.
    pub(crate) blocks: Vec<BlockPlan>,
    pub(crate) tier: Tier,
    /// First counter: one for each taken side exit, then the last block's, then one for each
    /// block's checks of instruction lines that fail.
    pub(crate) counters: u32,
}

/// Whether references are recorded beside the complex ones.
pub(crate) fn records_references(stream: &Stream) -> bool {
    matches!(stream, Stream::Filtered(_) | Stream::Full)
}

/// Whether the code of `block` will want scratch registers.
pub(crate) fn needs_scratch(stream: &Stream, shapes: &ReferenceShapes, block: &BasicBlock) -> bool {
    let is_complex = |shape| shapes.get(shape).complex.is_some();
    records_references(stream)
        || !block.events.is_empty()
        || *stream != Stream::Nothing && block.instructions.iter().any(|d| is_complex(d.shape))
}

/// Plans fragments: what it reads of an image, and the numbers that it gives out.
pub(crate) struct Planner<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) shapes: &'a ReferenceShapes,
    pub(crate) sites: &'a mut Vec<Site>,
    pub(crate) lines: &'a mut LineIds,
    pub(crate) hotness: &'a mut HotnessProfile,
    /// The facts by which the fragment is tuned, if it is.
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
        // Code that is translated again is tuned, whatever the samples say.
        plan.tier = match self.tuning {
            None => Tier::Fresh,
            Some(tuning) if tuning.any == RecordMode::Checked => Tier::Tuned,
            Some(_) => Tier::Appending,
        };
        plan.blocks.resize_with(plan.blocks.len().max(blocks.len()), BlockPlan::default);
        self.lines.begin_fragment();
        let failures = counters + blocks.len() as u32 + 1;
        for (n, (block, liveness)) in blocks.iter().zip(liveness).enumerate() {
            let plan = &mut plan.blocks[n];
            plan.clear();
            plan.failures = failures + n as u32;
            if *self.stream != Stream::Nothing && !liveness.uses.is_empty() {
                self.block(block, liveness, n as u32, plan);
            }
        }
    }

    /// Plans the fragment's `nth` block.
    fn block(&mut self, block: &BasicBlock, liveness: &Liveness, nth: u32, plan: &mut BlockPlan) {
        let stream = *self.stream;
        let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
        let experience = self.experience(nth);
        plan.fetch = experience.fetch(self.hotness);
        self.hotness.fetch(block.number).mode = plan.fetch;
        // References first, so that sites are numbered in program order.
        let first_site = self.sites.len() as u32;
        for (k, decoded) in block.instructions.iter().enumerate() {
            let shape = self.shapes.get(decoded.shape);
            let is_plain = shape.complex == Some(Complex::BitOffset) && stream == Stream::Counts;
            if let Some(complex) = shape.complex.filter(|_| !is_plain) {
                plan.groups.close();
                let site = self.site(block, k);
                plan.complex.push((k, complex, site));
                continue;
            }
            if stream != Stream::Counts {
                self.references(block, k, plan, filter, (&experience, first_site));
            }
            plan.groups.pass(decoded, liveness.uses[k].writes);
        }
        plan.groups.close();
        // Then the places of their checks, which may be earlier than the references themselves.
        if filter.is_some() && block.events.is_empty() {
            plan.groups.hoist(&liveness.flags_dead, |k| self.passed(block, liveness, k));
        }
        self.fetches(block, liveness, plan, filter);
    }

    /// Adds the references of instruction `k` to the block's groups.
    fn references(
        &mut self,
        block: &BasicBlock,
        k: usize,
        plan: &mut BlockPlan,
        filter: Option<&Filter>,
        (experience, first_site): (&Experience, u32),
    ) {
        let decoded = &block.instructions[k];
        let shapes = self.shapes;
        for t in &shapes.get(decoded.shape).simple {
            if t.kind == RecordKind::Prefetch && *self.stream != Stream::Full {
                continue;
            }
            let Some(address) = references::address(&decoded.i, t.form) else { continue };
            let site = self.site(block, k);
            let code = Code::new(t.kind, t.size_bytes).map_or(0, |c| u32::from(c.0));
            // The check of a reference that is longer than a line always fails, so it records.
            let line_bytes = filter.map_or(u32::MAX, |filter| filter.data.line_bytes);
            let mode = match t.size_bytes > line_bytes {
                true => RecordMode::Checked,
                false => experience.data(self.hotness, site - first_site),
            };
            self.hotness.site(site).mode = mode;
            let what = site << 8 | code;
            plan.groups.add(Member::new((address, t.kind, t.size_bytes), what, k, mode), filter);
        }
    }

    /// Decides where the block's instruction lines are used, and numbers them.
    fn fetches(
        &mut self,
        block: &BasicBlock,
        liveness: &Liveness,
        plan: &mut BlockPlan,
        filter: Option<&Filter>,
    ) {
        let first = plan.groups.first().unwrap_or(usize::MAX);
        let first = first.min(plan.complex.first().map_or(usize::MAX, |c| c.0));
        // Recording without a check needs no flags.
        let kept = filter.and_then(InlineICache::of);
        let checked = plan.fetch == RecordMode::Checked || kept.is_some();
        let dead = liveness.flags_dead.iter().take(first.saturating_add(1)).position(|&d| d || !checked);
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

    /// A new site for instruction `index`.
    fn site(&mut self, block: &BasicBlock, index: usize) -> u32 {
        // A record names its site by this number.
        let ip = block.instructions[index].i.ip();
        self.sites.push(Site { ip, block: block.number, index: index as u32 });
        self.sites.len() as u32 - 1
    }

    /// The facts about block `nth` of the fragment that is tuned.
    fn experience(&self, nth: u32) -> Experience {
        let seen = self.tuning.map(|tuning| {
            let block = tuning.first_block + nth;
            let site = self.sites.partition_point(|s| s.block < block) as u32;
            (block, site, tuning.executions[nth as usize])
        });
        Experience { seen }
    }

    /// The registers that instruction `k` changes and the sum that it adds to rsp; `None` if it
    /// references memory or may fault.
    fn passed(&self, block: &BasicBlock, liveness: &Liveness, k: usize) -> Option<(u16, i64)> {
        let decoded = &block.instructions[k];
        let shape = self.shapes.get(decoded.shape);
        let faults = matches!(decoded.i.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        if faults || !shape.simple.is_empty() || shape.complex.is_some() {
            return None;
        }
        let written = liveness.uses[k].writes;
        Some(stack_step(decoded).map_or((written, 0), |added| (written & !(1 << reg::RSP), added)))
    }
}
