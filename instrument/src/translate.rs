//! Translates program code into fragments, a superblock at a time.
//!
//! A superblock follows fall-through edges and direct jumps from its head as long as their targets have no code of their
//! own. Every traversal increments exactly one counter: the *last* one, placed where the status flags are dead in the last block, or the one
//! of the side exit by which it leaves early; how often each block ran follows by addition. Translation works ahead: the direct
//! targets of a new fragment are translated with it, up to a budget, because a miss costs a stop of the program.
//! Leaves out: what is emitted for references (`emit`), and everything that happens at run time (`host`).

use crate::cache::{near, CodeCache, Exit, Fragment};
use crate::decode::{CodeReader, Decoded, End};
use crate::emit::draft::Draft;
use crate::emit::events::{BlockPlan, Events};
use crate::emit::Facts;
use crate::heat::{Experience, Heat, Tuning};
use crate::profile::{Block, Instruction, Module, Site};
use crate::references::Shapes;
use crate::store::dormant::Dormant;
use crate::tool::{Events as Asked, SharedAsking};
use event::Stream;
use iced_x86::{FlowControl, InstructionInfoFactory};
use std::collections::{HashSet, VecDeque};

/// How far translation goes beyond what a miss asks for.
#[derive(Clone, Copy)]
struct Eagerness {
    /// Most blocks of a superblock.
    blocks: usize,
    /// Fragments translated ahead of one miss.
    ahead: usize,
}

/// Where little is added to the program's code.
const EAGER: Eagerness = Eagerness { blocks: 8, ahead: 3 };
/// Where references are recorded: half of what is translated never runs, a block costs as much as a stop, and code that runs lies closer together without
/// it (a compiler: 12 % less time in all).
const SPARING: Eagerness = Eagerness { blocks: 5, ahead: 1 };
/// The same, where the program may well end before it would run them.
const AHEAD_HESITANT_MAX: usize = 1;
/// Return addresses that enter the lookup table before they are used, so that the first return does not stop. Beyond this
/// many, only used ones do: a full table costs every lookup more than a stop costs once.
const PUBLISHED_AHEAD_MAX: usize = 16 << 10;

/// Where code lies, as far as it matters for trusting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// File-backed, executable and not writable: does not change while mapped.
    Text,
    /// Anything else: compared with what was translated at every execution.
    Generated,
}

/// Knows which addresses are program text.
pub(crate) trait Modules {
    /// How far `pc` is to be trusted, and the number of its module; `None` where it cannot be executed.
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)>;
    /// The module of that number.
    fn module(&self, number: u32) -> Option<&Module>;
    /// What the file of text holds at `pc`; `None` where the program has changed the mapping, or nobody knows.
    fn in_file(&self, _pc: u64, _module: u32) -> Option<u8> {
        None
    }
}

/// A block of a superblock, decoded.
pub(crate) struct Piece {
    pub(crate) ip: u64,
    pub(crate) instructions: Vec<Decoded>,
    pub(crate) end: End,
    /// Number in the profile.
    pub(crate) number: u32,
    /// The superblock goes on at this address after it.
    pub(crate) next: Option<u64>,
    /// What a tool asked for.
    pub(crate) events: Asked,
}

impl Piece {
    pub(crate) fn last(&self) -> Option<&Decoded> {
        self.instructions.last()
    }

    /// Address after the last instruction.
    pub(crate) fn end_ip(&self) -> u64 {
        self.last().map_or(self.ip, |d| d.i.next_ip())
    }
}

/// The translator of one process image.
pub(crate) struct Translator {
    pub(crate) cache: CodeCache,
    pub(crate) reader: CodeReader,
    pub(crate) events: Events,
    pub(crate) shapes: Shapes,
    pub(crate) factory: InstructionInfoFactory,
    pub(crate) blocks: Vec<Block>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) sites: Vec<Site>,
    pub(crate) heat: Heat,
    pub(crate) counters: u32,
    /// Why translation failed for good, once it did.
    pub(crate) refusal: Option<String>,
    /// Fragments up to which little is translated ahead.
    pub(crate) hesitant_fragments: usize,
    pub(crate) spare: Vec<Vec<Decoded>>,
    /// Room for the next draft, and for what is known of its blocks.
    draft: Draft,
    pub(crate) facts: Vec<Facts>,
    pub(crate) plan: BlockPlan,
    /// The run's tool, if it has one.
    pub(crate) asking: Option<SharedAsking>,
    /// What was restored from disk and has not been executed yet.
    pub(crate) dormant: Dormant,
}

/// How far a superblock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Up to a block that begins a fragment, or a few blocks.
    UpToKnownCode,
    /// This many blocks.
    Blocks(usize),
}

/// What a translation wants translated next.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Direct targets.
    pub(crate) targets: Vec<(u64, Role)>,
}

/// How control will come to an address that is translated ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// By a direct branch.
    Branch,
    /// By a return.
    Return,
}

impl Translator {
    pub(crate) fn new(cache: CodeCache, reader: CodeReader, events: Events) -> Translator {
        let filter = if let Stream::Filtered(filter) = &events.stream { Some(filter) } else { None };
        let heat = Heat::new(filter);
        Translator {
            heat,
            cache,
            reader,
            events,
            shapes: Shapes::default(),
            factory: InstructionInfoFactory::new(),
            blocks: Vec::new(),
            instructions: Vec::new(),
            sites: Vec::new(),
            counters: 0,
            refusal: None,
            hesitant_fragments: 0,
            spare: Vec::new(),
            draft: Draft::default(),
            facts: Vec::new(),
            plan: BlockPlan::default(),
            asking: None,
            dormant: Dormant::default(),
        }
    }

    /// The fragment at `pc`, translated with its surroundings if need be; `None` when `pc` cannot be executed.
    pub(crate) fn fragment(&mut self, pc: u64, modules: &mut impl Modules) -> Option<usize> {
        if let Some(f) = self.cache.find(pc) {
            return Some(f);
        }
        let mut ahead = Ahead::default();
        let result = self.translate(pc, modules, &mut ahead)?;
        let mut queue: VecDeque<(u64, Role)> = ahead.targets.into();
        let mut done = 0;
        while let Some((target, role)) = queue.pop_front() {
            let hesitant = self.cache.fragments.len() < self.hesitant_fragments;
            if done == if hesitant { AHEAD_HESITANT_MAX } else { self.eagerness().ahead } {
                break;
            }
            if self.cache.find(target).is_some() || !matches!(modules.at(target), Some((Trust::Text, _))) {
                continue;
            }
            done += 1;
            let mut more = Ahead::default();
            if let Some(f) = self.translate(target, modules, &mut more) {
                queue.extend(more.targets);
                if role == Role::Return && self.cache.published < PUBLISHED_AHEAD_MAX {
                    self.cache.publish(target, f);
                }
            }
        }
        Some(result)
    }

    fn eagerness(&self) -> Eagerness {
        if self.events.references() {
            SPARING
        } else {
            EAGER
        }
    }

    fn translate(&mut self, pc: u64, modules: &mut impl Modules, ahead: &mut Ahead) -> Option<usize> {
        let (trust, module) = modules.at(pc)?;
        if trust == Trust::Text && self.awaken(module, modules) {
            if let Some(f) = self.cache.find(pc) {
                return Some(f);
            }
        }
        self.events.tuning = None;
        let (f, pieces) = self.place(pc, (trust, module), Extent::UpToKnownCode, modules)?;
        self.cache.map.insert(pc, f as u32);
        self.cache.link_pending(f);
        self.note_targets(&pieces, ahead);
        self.tell();
        for piece in pieces {
            self.spare.push(piece.instructions);
        }
        Some(f)
    }

    /// Translates fragment `old` again, those of its blocks of which executions are given,
    /// by what was learned of them; everything leads there from now on.
    pub(crate) fn tune(
        &mut self,
        old: usize,
        executions: &[u64],
        modules: &mut impl Modules,
    ) -> Option<usize> {
        let Fragment { pc, zone, first_block, .. } = self.cache.fragments[old];
        let (trust, module) = modules.at(pc)?;
        if self.cache.zone_for(pc) != zone as usize {
            return None;
        }
        if trust == Trust::Generated {
            self.reader.forget(pc & !0xfff, pc + 0x1000);
        }
        let tunings = self.cache.fragments[old].tunings + 1;
        let any = self.heat.any(first_block, executions, &self.sites);
        let tuning = Tuning { first_block, executions: executions.to_vec(), any, tunings };
        self.events.tuning = Some(tuning);
        let (new, pieces) = self.place(pc, (trust, module), Extent::Blocks(executions.len()), modules)?;
        self.cache.redirect(old, new);
        self.tell();
        for piece in pieces {
            self.spare.push(piece.instructions);
        }
        Some(new)
    }

    /// Retires what was translated of `[start, end)`, which is about to change; where whoever leads there was told what it need not bring, all that was translated
    /// of the same file with it.
    pub(crate) fn retire_code(&mut self, start: u64, end: u64, modules: &impl Modules) {
        let within = |&f: &usize| {
            let pc = self.cache.fragments[f].pc;
            pc + 4096 > start && pc < end
        };
        let file = |&f: &usize| {
            let block = &self.blocks[self.cache.fragments[f].first_block as usize];
            modules.module(block.module).map(|module| &module.path)
        };
        let (mut changed, others): (Vec<usize>, Vec<usize>) =
            self.cache.map.values().map(|&f| f as usize).partition(within);
        let told: HashSet<_> =
            changed.iter().filter(|&&f| self.cache.fragments[f].dead != 0).map(file).collect();
        if !told.is_empty() {
            changed.extend(others.iter().filter(|f| told.contains(&file(f))));
        }
        for f in changed {
            self.cache.retire(f);
        }
    }

    /// Whether fragment `f`, after so many executions of its blocks, would be tuned to something else than it is.
    pub(crate) fn would_change(&self, f: usize, executions: &[u64]) -> bool {
        let first = self.cache.fragments[f].first_block;
        self.heat.changes(first, executions, &self.sites)
    }

    /// What was seen of block `nth` of the fragment that is being tuned.
    pub(crate) fn experience(&self, nth: u32) -> Experience {
        let seen = self.events.tuning.as_ref().map(|tuning| {
            let block = tuning.first_block + nth;
            let site = self.sites.partition_point(|s| s.block < block) as u32;
            (block, site, tuning.executions[nth as usize])
        });
        Experience { seen }
    }

    /// Emits the superblock at `pc` and puts it into its zone; nothing leads to it yet.
    fn place(
        &mut self,
        pc: u64,
        (trust, module): (Trust, u32),
        extent: Extent,
        modules: &mut impl Modules,
    ) -> Option<(usize, Vec<Piece>)> {
        let mut pieces = self.superblock(pc, (trust, module), extent, modules)?;
        self.ask(&mut pieces, modules);
        if self.counters as usize + 2 * pieces.len() + 1 > crate::layout::context::COUNTERS_MAX
            || self.sites.len() + 10_000 > crate::layout::SITES_MAX
            || self.blocks.len() + 100 > crate::layout::SITES_MAX
            || self.events.numbers.count() + 10_000 > crate::layout::context::NUMBERS_MAX
        {
            self.refusal = Some("the program executes more code than the engine has counters for".into());
            return None;
        }
        let z = self.cache.zone_for(pc);
        let zone = &self.cache.zones[z];
        if !zone.has_room() {
            self.refusal = Some("the program executes more code than the code cache holds".into());
            return None;
        }
        let mut draft = std::mem::take(&mut self.draft);
        draft.begin(zone.address + zone.hot_used, zone.cold_address() + zone.cold_used);
        let fragment = self.emit(&mut draft, z, &pieces, trust);
        draft.connect();
        let zone = &mut self.cache.zones[z];
        let at = zone.hot_used as u32;
        zone.bounds.extend(draft.bounds.iter().map(|b| crate::emit::draft::Bound { at: b.at + at, ..*b }));
        self.cache.enter_loops(z, &draft);
        self.cache.place(z, &draft.hot.bytes, &draft.cold.bytes);
        self.draft = draft;
        self.cache.fragments.push(fragment);
        Some((self.cache.fragments.len() - 1, pieces))
    }

    /// Decodes the superblock at `pc` and enters its blocks into the profile.
    fn superblock(
        &mut self,
        pc: u64,
        (trust, module): (Trust, u32),
        extent: Extent,
        modules: &mut impl Modules,
    ) -> Option<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut ip = pc;
        loop {
            let mut instructions = self.spare.pop().unwrap_or_default();
            let end = self.decode(ip, (trust, module), &mut instructions, modules);
            if end == End::Unreadable {
                self.spare.push(instructions);
                if pieces.is_empty() {
                    return None;
                }
                pieces.last_mut().expect("not empty").next = None;
                return Some(pieces);
            }
            let number = self.enter_block(ip, module, &mut instructions);
            let mut piece = Piece { ip, instructions, end, number, next: None, events: Asked::default() };
            let next = follow(&piece);
            let room = match extent {
                Extent::UpToKnownCode => pieces.len() + 1 < self.eagerness().blocks,
                Extent::Blocks(blocks) => pieces.len() + 1 < blocks,
            };
            piece.next = next.filter(|&n| {
                room && n != pc
                    && trust == Trust::Text
                    && (extent != Extent::UpToKnownCode || self.cache.find(n).is_none())
                    && near(ip, n)
                    // A page has one mapping; elsewhere code may not be text, or another module's.
                    && ((n ^ ip) < 4096 || modules.at(n) == Some((trust, module)))
                    && pieces.iter().all(|p| p.ip != n)
                    && n != ip
            });
            let go_on = piece.next;
            pieces.push(piece);
            match go_on {
                Some(n) => ip = n,
                None => return Some(pieces),
            }
        }
    }

    fn enter_block(&mut self, ip: u64, module: u32, instructions: &mut [Decoded]) -> u32 {
        let first = self.instructions.len() as u32;
        for d in instructions.iter_mut() {
            d.shape = self.shapes.of(&d.i);
            let (loads, stores) = self.shapes.counts(d.shape);
            self.instructions.push(Instruction {
                offset: (d.i.ip() - ip) as u16,
                len: d.i.len() as u8,
                loads,
                stores,
                code: d.i.code() as u16,
            });
        }
        let len = instructions.last().map_or(0, |d| d.i.next_ip() - ip) as u32;
        self.blocks.push(Block {
            ip,
            len,
            module,
            first,
            count: instructions.len() as u32,
            executions: 0,
            taken: 0,
        });
        self.blocks.len() as u32 - 1
    }

    /// Where control may go on behind `pieces`: what follows the last one first, for most superblocks are run to their ends.
    fn note_targets(&mut self, pieces: &[Piece], ahead: &mut Ahead) {
        for piece in pieces.iter().rev() {
            let Some(d) = piece.last() else { continue };
            let (next, targets) = (d.i.next_ip(), &mut ahead.targets);
            match d.i.flow_control() {
                FlowControl::ConditionalBranch => {
                    if piece.next.is_none() {
                        targets.push((next, Role::Branch));
                    }
                    targets.push((d.i.near_branch_target(), Role::Branch));
                }
                FlowControl::UnconditionalBranch if piece.next.is_none() => {
                    targets.push((d.i.near_branch_target(), Role::Branch));
                }
                FlowControl::Call if d.i.is_call_near() => {
                    targets.push((d.i.near_branch_target(), Role::Branch));
                    targets.push((next, Role::Return));
                }
                FlowControl::IndirectCall => targets.push((next, Role::Return)),
                FlowControl::Next if piece.next.is_none() => targets.push((next, Role::Branch)),
                _ => {}
            }
        }
    }

    /// An unlinked exit; returns its number.
    pub(crate) fn new_exit(&mut self, exit: Exit) -> u32 {
        self.cache.exits.push(exit);
        self.cache.exits.len() as u32 - 1
    }

    /// Counters for a fragment of `blocks` blocks; returns the first one's number. Behind those of its exits stand, where the
    /// instruction side is kept whole, those of its blocks' checks that fail.
    pub(crate) fn new_counters(&mut self, blocks: usize) -> u32 {
        let first = self.counters;
        let checks = if self.events.keeps_fetches() { blocks } else { 0 };
        self.counters += (blocks + 1 + checks) as u32;
        first
    }
}

/// Where a superblock may go on after `piece`.
fn follow(piece: &Piece) -> Option<u64> {
    let d = piece.last()?;
    if piece.end == End::Limit {
        return Some(d.i.next_ip());
    }
    match d.i.flow_control() {
        FlowControl::ConditionalBranch => Some(d.i.next_ip()),
        FlowControl::UnconditionalBranch if d.i.is_jmp_short_or_near() => Some(d.i.near_branch_target()),
        _ => None,
    }
}

/// A fragment's record from its parts.
pub(crate) fn fragment(pc: u64, zone: usize, pieces: &[Piece], counters: u32, flags_dead: bool) -> Fragment {
    Fragment {
        pc,
        zone: zone as u32,
        body: 0,
        entry: None,
        first_block: pieces[0].number,
        blocks: pieces.len() as u32,
        counters,
        flags_dead,
        dead: 0,
        tunings: 0,
        incoming: 0,
    }
}
