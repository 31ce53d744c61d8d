//! Translates program code into fragments, one superblock at a time.
//!
//! **The problem.** A stop of the program costs more than a translation, and each traversal of the
//! code should count with a single increment.
//!
//! **The idea.** A superblock follows fall-through edges and direct jumps from its head until it
//! meets code that has a fragment. Each traversal increments exactly one counter: that of the side
//! exit by which it leaves early, or the last one, which stands where the flags are dead in the
//! last block. Addition then gives the executions of every block:
//!
//! ```text
//!   block 0 ──side exit──▶ a += 1        block 0 ran  a + b + last  times
//!   block 1 ──side exit──▶ b += 1        block 1 ran      b + last  times
//!   block 2 ─────────────▶ last += 1     block 2 ran          last  times
//! ```
//!
//! Translation works ahead: the direct targets of a new fragment are translated at the same stop,
//! as far as the policy (`policy`) allows. **Leaves out** the code that is emitted for references
//! (`emit`), and everything that happens at run time (`host`).

mod breakpoint;
mod direct;
mod policy;
mod retire;
mod revalidate;
mod superblock;
#[cfg(test)]
mod tests;
pub(crate) mod unverified;
pub(crate) mod watch;

use crate::cache::CodeCache;
use crate::call::{CallRecords, DirectTarget};
use crate::code::counter::Weights;
use crate::code::decode::{CodeReader, Decoded};
use crate::code::fragment::Fragment;
use crate::code::kept_table::KeptTable;
use crate::code::superblock::{BasicBlock, Steps, Superblock};
use crate::emit::emitter::{EmitSetting, Emitter};
use crate::emit::routine;
use crate::instrumentation::instrumenter::{ImageInstrumenter, Sums};
use crate::plan::block::{needs_scratch, recorded_transfer, records_references, FragmentPlan, Planner};
use crate::plan::hotness::{HotnessProfile, Tuning};
use crate::plan::instruction_cache::{InlineICache, LineIds};
use crate::plan::liveness::{self, Liveness, TargetFacts};
use crate::plan::references::ReferenceShapes;
use crate::profile::{Block, Instruction, Site};
use crate::target::layout::{context, SITES_MAX};
use crate::target::trust::{Modules, Trust};
use crate::virtual_machine::Answered;
use event::Stream;
use iced_x86::InstructionInfoFactory;
use policy::{
    Ahead, Extent, Role, TranslateAhead, AHEAD_CAUTIOUS_MAX, GENEROUS, PUBLISHED_AHEAD_MAX, SPARING,
};
use std::collections::{HashMap, HashSet, VecDeque};
use unverified::UnverifiedModules;
use watch::Watch;

/// The translator of one process image.
pub(crate) struct Translator {
    pub(crate) cache: CodeCache,
    pub(crate) reader: CodeReader,
    pub(crate) stream: Stream,
    /// Numbers of instruction lines and pages.
    pub(crate) lines: LineIds,
    pub(crate) shapes: ReferenceShapes,
    pub(crate) factory: InstructionInfoFactory,
    pub(crate) blocks: Vec<Block>,
    pub(crate) instructions: KeptTable<Instruction>,
    pub(crate) sites: Vec<Site>,
    pub(crate) hotness: HotnessProfile,
    pub(crate) counters: u32,
    /// Why the program cannot be translated any further, if so.
    pub(crate) refusal: Option<String>,
    /// Instructions of translated code that the engine does not support, each with the reason. The
    /// run ends when a thread reaches one.
    pub(crate) refused: HashMap<u64, String>,
    /// Whether the program has stepped itself with the trap flag.
    pub(crate) steps: Steps,
    /// While the cache has fewer fragments than this, less is translated ahead.
    pub(crate) cautious_fragments: usize,
    /// Empty lists of instructions, whose allocations later blocks reuse.
    pub(crate) spare: Vec<Vec<Decoded>>,
    emitter: Emitter,
    /// Liveness of the blocks that are being translated; the allocation is reused.
    liveness: Vec<Liveness>,
    /// The plan of the fragment that is being translated; the allocation is reused.
    plan: FragmentPlan,
    /// The words of code that may change; the allocation is reused.
    words: Vec<u64>,
    /// The run's tool, if it has one.
    pub(crate) instrumenter: Option<ImageInstrumenter>,
    /// Kept translations that have not been verified yet.
    pub(crate) unverified: UnverifiedModules,
    /// Direct branches that lead out of their own module, as (module, target). A linked branch
    /// enters the target's module without a look-up, so the two modules are kept together.
    pub(crate) cross_branches: HashSet<(u32, u64)>,
    /// Addresses at which threads stop for the host.
    pub(crate) watch: Watch,
    /// Whether calls are recorded.
    pub(crate) calls: CallRecords,
    /// The targets of all direct calls and jumps that are recorded, in the order of translation.
    pub(crate) direct_targets: Vec<DirectTarget>,
}

impl Translator {
    pub(crate) fn new(cache: CodeCache, reader: CodeReader, stream: Stream) -> Translator {
        let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
        // These settings are the same for all code of the image.
        let setting = EmitSetting {
            stream,
            hash: cache.hash,
            lookup_table: cache.layout.low,
            system_calls: cache.layout.system_call_table(),
            answered: Answered::default(),
        };
        Translator {
            hotness: HotnessProfile::new(filter),
            cache,
            reader,
            stream,
            lines: LineIds::default(),
            shapes: ReferenceShapes::new(&stream),
            factory: InstructionInfoFactory::new(),
            blocks: Vec::new(),
            instructions: KeptTable::default(),
            sites: Vec::new(),
            counters: 0,
            refusal: None,
            refused: HashMap::new(),
            steps: Steps::Never,
            cautious_fragments: 0,
            spare: Vec::new(),
            emitter: Emitter::new(setting),
            liveness: Vec::new(),
            plan: FragmentPlan::default(),
            words: Vec::new(),
            instrumenter: None,
            unverified: UnverifiedModules::default(),
            cross_branches: HashSet::new(),
            watch: Watch::default(),
            calls: CallRecords::None,
            direct_targets: Vec::new(),
        }
    }

    /// Makes code that is translated from now on stop at these instructions, which the host
    /// answers.
    pub(crate) fn set_answered(&mut self, answered: Answered) {
        self.emitter.set_answered(answered);
    }

    /// The instructions that the host answers.
    pub(crate) fn answered(&self) -> Answered {
        self.emitter.answered()
    }

    /// The fragment at `pc`. If there is none yet, translates it, and other fragments ahead; `None`
    /// if `pc` cannot be executed.
    pub(crate) fn fragment(&mut self, pc: u64, modules: &mut impl Modules) -> Option<usize> {
        if let Some(fragment_index) = self.cache.find(pc) {
            return Some(fragment_index);
        }
        let mut ahead = Ahead::default();
        let result = self.translate(pc, modules, &mut ahead)?;
        // Translation works ahead, along direct branches, as far as the policy allows.
        let mut queue: VecDeque<(u64, Role)> = ahead.targets.into();
        let mut done = 0;
        while let Some((target, role)) = queue.pop_front() {
            let cautious = self.cache.fragments.len() < self.cautious_fragments;
            if done == if cautious { AHEAD_CAUTIOUS_MAX } else { self.translate_ahead().ahead } {
                break;
            }
            if let Some(fragment_index) = self.cache.find(target) {
                self.publish_ahead(target, role, fragment_index);
                continue;
            }
            if !matches!(modules.at(target), Some((Trust::Text, _))) {
                continue;
            }
            done += 1;
            let mut more = Ahead::default();
            if let Some(fragment_index) = self.translate(target, modules, &mut more) {
                queue.extend(more.targets);
                self.publish_ahead(target, role, fragment_index);
            }
        }
        Some(result)
    }

    /// Enters a return address that was found ahead into the lookup table, if the policy allows it
    /// and the table does not have it.
    fn publish_ahead(&mut self, target: u64, role: Role, fragment_index: usize) {
        let is_wanted = role == Role::Return && self.cache.fragments[fragment_index].entry.is_none();
        if is_wanted && self.cache.published < PUBLISHED_AHEAD_MAX && !self.watch.has(target) {
            self.cache.publish(target, fragment_index);
        }
    }

    /// Whether another run or process may use these translations: they lack nothing that this one
    /// knows besides.
    pub(crate) fn may_be_kept(&self) -> bool {
        self.refusal.is_none() && self.refused.is_empty()
    }

    /// The instructions of the fragments from `fragment_index` on.
    pub(crate) fn instructions_since(&self, fragment_index: usize) -> impl Iterator<Item = Instruction> + '_ {
        let first = self.cache.fragments.get(fragment_index);
        let first = first.map(|fragment| self.blocks[fragment.first_block as usize].first as usize);
        let len = self.instructions.len();
        self.instructions.range(first.unwrap_or(len)..len)
    }

    /// The instructions of a block.
    pub(crate) fn instructions_of(&self, block: &Block) -> impl Iterator<Item = Instruction> + '_ {
        let first = block.first as usize;
        self.instructions.range(first..first + block.count as usize)
    }

    fn translate_ahead(&self) -> TranslateAhead {
        if records_references(&self.stream) {
            SPARING
        } else {
            GENEROUS
        }
    }

    /// Translates the superblock at `pc`, enters it into the map, and adds its targets to `ahead`.
    fn translate(&mut self, pc: u64, modules: &mut impl Modules, ahead: &mut Ahead) -> Option<usize> {
        // Natively nothing is mapped at the addresses of the engine's code, so nothing there can
        // be executed.
        if self.cache.contains(pc) {
            return None;
        }
        let (trust, module) = modules.at(pc)?;
        // The file of a former run may hold a translation of this module.
        if trust == Trust::Text && self.revalidate(module, modules) {
            if let Some(fragment_index) = self.cache.find(pc) {
                return Some(fragment_index);
            }
        }
        let (fragment_index, blocks) =
            self.place(pc, (trust, module), Extent::UpToKnownCode, None, modules)?;
        // From now on the map finds the fragment, and the exits that waited for it lead to it.
        self.cache.map.insert(pc, fragment_index as u32);
        if !self.watch.has(pc) {
            self.cache.link_pending(fragment_index);
        }
        self.note_targets(&blocks, ahead);
        self.send_tables_to_tool();
        self.spare.extend(blocks.into_iter().map(|block| block.instructions));
        Some(fragment_index)
    }

    /// Translates fragment `old` again, using what samples and executions showed about its blocks,
    /// and redirects every place that led to it. The new fragment has at most as many blocks as
    /// `executions` has entries.
    pub(crate) fn tune(
        &mut self,
        old: usize,
        executions: &[u64],
        modules: &mut impl Modules,
    ) -> Option<usize> {
        let Fragment { pc, zone, first_block, .. } = self.cache.fragments[old];
        let (trust, module) = modules.at(pc)?;
        // In another zone the new fragment could be out of reach of the places that lead to the old
        // one.
        if self.cache.zone_for(pc) != zone as usize {
            return None;
        }
        // Code that may change must be read again.
        if trust == Trust::Generated {
            self.reader.forget(pc & !0xfff, pc + 0x1000);
        }
        let tunings = self.cache.fragments[old].tunings + 1;
        let any = self.hotness.any(first_block, executions, &self.sites);
        let tuning = Tuning { first_block, executions: executions.to_vec(), any, tunings };
        let extent = Extent::Blocks(executions.len());
        let (new, blocks) = self.place(pc, (trust, module), extent, Some(&tuning), modules)?;
        // Every place that led to the old fragment leads to the new one now.
        self.cache.redirect(old, new);
        self.send_tables_to_tool();
        self.spare.extend(blocks.into_iter().map(|block| block.instructions));
        Some(new)
    }

    /// Whether tuning the fragment would change it, given the executions of its blocks.
    pub(crate) fn would_change(&self, fragment_index: usize, executions: &[u64]) -> bool {
        let first = self.cache.fragments[fragment_index].first_block;
        self.hotness.changes(first, executions, &self.sites)
    }

    /// Translates the superblock at `pc`, stage by stage, and places it. No exit leads to it yet.
    fn place(
        &mut self,
        pc: u64,
        (trust, module): (Trust, u32),
        extent: Extent,
        tuning: Option<&Tuning>,
        modules: &mut impl Modules,
    ) -> Option<(usize, Vec<BasicBlock>)> {
        // Decode: cut the program's code into basic blocks.
        let mut blocks = self.superblock(pc, (trust, module), extent, modules)?;
        self.ask_tool(&mut blocks, modules);
        let zone_index = self.zone_with_room(pc, blocks.len())?;
        // Facts: find the registers and flags that are dead at each instruction.
        let counters = self.new_counters(blocks.len());
        let dead = self.learn(&blocks);
        // Plan: decide what is recorded and how. This gives sites and lines their numbers.
        self.plan(&blocks, counters, tuning);
        self.plan.calls = self.calls;
        self.plan.weights = self.weigh(blocks[0].number, blocks.len() as u32, counters);
        // Emit: write code into a buffer, in which everything is open that only the cache knows.
        self.read_words(&blocks, trust);
        let superblock = Superblock { blocks: &blocks, trust, words: &self.words, steps: self.steps };
        let bases = self.cache.bases(zone_index);
        self.emitter.emit(&superblock, &self.liveness[..blocks.len()], &self.plan, bases);
        // Code that was written anew may have supported instructions where others stood.
        if !self.refused.is_empty() {
            for decoded in blocks.iter().flat_map(|block| &block.instructions) {
                self.refused.remove(&decoded.instruction.ip());
            }
        }
        self.refused.extend(self.emitter.buffer.refused.drain(..));
        self.note_cross_branches((trust, module), modules);
        self.note_direct_target(blocks.last());
        // Place: the cache gives numbers and addresses, and copies the code into the zone.
        let is_text = trust == Trust::Text;
        let fragment = Fragment {
            pc,
            zone: zone_index as u32,
            body: bases.0,
            entry: None,
            first_block: blocks[0].number,
            blocks: blocks.len() as u32,
            counters,
            // Code that may change may use these registers and the flags later.
            flags_dead: is_text && self.liveness[0].flags_dead.first().copied().unwrap_or(false),
            dead: if is_text { dead } else { 0 },
            tunings: tuning.map_or(0, |tuning| tuning.tunings),
            incoming: 0,
        };
        let fragment_index = self.cache.place(&mut self.emitter.buffer, fragment, routine::write);
        Some((fragment_index, blocks))
    }

    /// The zone for a superblock at `pc`. If a zone or a numbering is full, refuses the run and
    /// returns `None`.
    fn zone_with_room(&mut self, pc: u64, blocks: usize) -> Option<usize> {
        let zone_index = self.cache.zone_for(pc);
        if self.counters as usize + 2 * blocks + 1 > context::COUNTERS_MAX
            || self.sites.len() + 10_000 > SITES_MAX
            || self.blocks.len() + 100 > SITES_MAX
            || self.lines.kept_count() + 10_000 > context::NUMBERS_MAX
        {
            self.refusal = Some("it executes more code than lightfoot has counters for".into());
            return None;
        }
        if !self.cache.zones[zone_index].has_room() {
            self.refusal = Some("it executes more code than lightfoot's code cache can hold".into());
            return None;
        }
        Some(zone_index)
    }

    /// Fills in the blocks' liveness; returns the registers that are dead at the fragment's head.
    fn learn(&mut self, blocks: &[BasicBlock]) -> u16 {
        let (cache, stream, shapes, watch) = (&self.cache, &self.stream, &self.shapes, &self.watch);
        self.liveness.resize_with(self.liveness.len().max(blocks.len()), Liveness::default);
        // Each fragment notes which registers are dead at its head.
        let known = |pc| match cache.find(pc) {
            // An exit to a watched address always waits, so that the thread stops.
            Some(_) if watch.has(pc) => TargetFacts::default(),
            Some(fragment_index) => {
                TargetFacts { has_code: true, dead: cache.fragments[fragment_index].dead }
            }
            None => TargetFacts::default(),
        };
        let records_calls = self.calls != CallRecords::None;
        let needs = |block: &BasicBlock| {
            needs_scratch(stream, shapes, block) || records_calls && recorded_transfer(block).is_some()
        };
        liveness::learn(blocks, &mut self.liveness[..blocks.len()], known, needs, &mut self.factory)
    }

    /// Plans what the blocks record, and enters new lines into the cache's table.
    fn plan(&mut self, blocks: &[BasicBlock], counters: u32, tuning: Option<&Tuning>) {
        let mut planner = Planner {
            stream: &self.stream,
            shapes: &self.shapes,
            sites: &mut self.sites,
            lines: &mut self.lines,
            hotness: &mut self.hotness,
            tuning,
        };
        planner.fragment(blocks, &self.liveness[..blocks.len()], counters, &mut self.plan);
        self.enter_lines();
    }

    /// Enters newly numbered lines into the table that routines read.
    fn enter_lines(&mut self) {
        self.lines.new.drain(..).for_each(|line| self.cache.enter_line(line.number, line.address, line.row));
    }

    /// Gives lines and pages the numbers of the image that wrote the file.
    pub(crate) fn renumber(&mut self, numbered: &[Vec<(u64, u32)>; 4]) {
        self.lines.renumber(numbered, &self.stream);
        self.enter_lines();
    }

    /// Enters all lines into the table that routines read, which was cleared.
    pub(crate) fn enter_lines_again(&mut self) {
        self.lines.list_again(&self.stream);
        self.enter_lines();
    }

    /// Reads the words of code that may change. The translation compares memory with them.
    fn read_words(&mut self, blocks: &[BasicBlock], trust: Trust) {
        self.words.clear();
        if trust == Trust::Text {
            return;
        }
        let (start, end) = Superblock::extent(blocks);
        // Eight bytes at a time, from the aligned address before the code.
        for at in (start..end).step_by(8) {
            let (bytes, _) = self.reader.fetch(at);
            self.words.push(u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")));
        }
    }

    /// Notes the branches of the fragment in the buffer that lead out of its module.
    fn note_cross_branches(&mut self, (trust, module): (Trust, u32), modules: &impl Modules) {
        let text = modules.module(module).filter(|_| trust == Trust::Text);
        // Code that may change belongs to no module, so no branch leads out of its module.
        let within = text.map_or(0..u64::MAX, |text| text.start..text.end);
        let targets = self.emitter.buffer.branches().filter(|target| !within.contains(target));
        self.cross_branches.extend(targets.map(|target| (module, target)));
    }

    /// How many running sums a thread has: of instructions, then of loads and stores.
    pub(crate) fn summed(&self) -> usize {
        let sums = || self.instrumenter.as_ref().is_some_and(|tool| tool.sums() == Sums::Instructions);
        match self.calls {
            CallRecords::None => usize::from(sums()),
            CallRecords::Instructions => 1,
            CallRecords::References => 3,
        }
    }

    /// Notes what each exit of a fragment adds to a thread's running sums; returns what its last
    /// exit adds.
    fn weigh(&mut self, first_block: u32, blocks: u32, counters: u32) -> Weights {
        let summed = self.summed();
        if summed == 0 {
            return [0; 3];
        }
        let weights = &mut self.cache.weights;
        weights.resize(weights.len().max((counters + blocks + 1) as usize), [0; 3]);
        let mut sums = [0; 3];
        for index in 0..blocks {
            let block = &self.blocks[(first_block + index) as usize];
            let first = block.first as usize;
            for instruction in self.instructions.range(first..first + block.count as usize) {
                let more = [1, instruction.loads, instruction.stores];
                sums.iter_mut().zip(more).take(summed).for_each(|(sum, more)| *sum += u16::from(more));
            }
            // A side exit leaves with all blocks up to its own. The last block's branch has been
            // counted with the fragment's last counter.
            let is_last = index + 1 == blocks;
            weights[(counters + index) as usize] = if is_last { [0; 3] } else { sums };
        }
        weights[(counters + blocks) as usize] = sums;
        sums
    }

    /// Notes the weights of all fragments that were restored.
    pub(crate) fn weigh_restored(&mut self) {
        for index in 0..self.cache.fragments.len() {
            let Fragment { first_block, blocks, counters, .. } = self.cache.fragments[index];
            self.weigh(first_block, blocks, counters);
        }
    }

    /// Reserves the counters of a fragment with this number of blocks; returns the number of the
    /// first. The counters of exits come first. If the instruction cache is simulated inline, one
    /// counter of failed line checks for each block follows.
    fn new_counters(&mut self, blocks: usize) -> u32 {
        let first = self.counters;
        let checks = if InlineICache::is_kept(&self.stream) { blocks } else { 0 };
        self.counters += (blocks + 1 + checks) as u32;
        first
    }

    /// Shows the superblock to the tool, if there is one; the tool may ask for events.
    fn ask_tool(&mut self, superblock: &mut [BasicBlock], modules: &impl Modules) {
        let Some(instrumenter) = &mut self.instrumenter else { return };
        let blocks = &self.blocks;
        let module_of = |number: u32| modules.module(blocks[number as usize].module);
        instrumenter.show(superblock, module_of, &self.stream, (&mut self.shapes, &mut self.factory));
        // A tool's request that cannot be fulfilled ends the run.
        if instrumenter.has_fault() {
            self.refusal.get_or_insert_with(|| "its instrumentation failed".into());
        }
    }

    /// Passes the sites and blocks that the last translation has added to the tool's analysis.
    fn send_tables_to_tool(&mut self) {
        if let Some(instrumenter) = &mut self.instrumenter {
            instrumenter.send_tables(&self.sites, &self.blocks);
        }
    }
}
