//! What generated code records: instruction lines, data references, complex references, per stream.
//!
//! A block is planned first: which references one check covers, where instruction lines are used, how each is recorded. The code
//! itself is in `data`, `kept` and `complex`.

use super::data::{check_ring, leave_ring, recorded, remembered, written};
use super::draft::{Draft, Goal, Part};
use super::kept::{Kept, Numbers, Use};
use super::Facts;
use crate::assemble::{reg, Address};
use crate::cache::{AddressMap, EXIT_RING};
use crate::heat::{Tuning, Way};
use crate::layout::context;
use crate::profile::Site;
use crate::references::{self, Complex, Shapes};
use crate::translate::{Piece, Translator};
use event::{Code, Filter, RecordKind, SetFilter, StoreFilter, Stream};

/// One reference of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Relative to the registers at the group's first instruction.
    pub(crate) address: Address,
    pub(crate) kind: RecordKind,
    pub(crate) size_bytes: u32,
    /// `site << 8 | code`.
    pub(crate) what: u32,
}

/// References that one check covers: all inside the first one's bytes.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Instruction before which the check stands.
    pub(crate) index: usize,
    pub(crate) members: Members,
    /// How it is recorded in tuned code.
    pub(crate) way: Way,
}

/// The references of a group, at least one, in the group itself: one allocation per reference would be a tenth of a translation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members {
    list: [Member; GROUP_MAX],
    len: usize,
}

impl Members {
    fn of(first: Member) -> Members {
        Members { list: [first; GROUP_MAX], len: 1 }
    }

    /// Adds one; there must be room.
    fn push(&mut self, member: Member) {
        self.list[self.len] = member;
        self.len += 1;
    }
}

impl std::ops::Deref for Members {
    type Target = [Member];

    fn deref(&self) -> &[Member] {
        &self.list[..self.len]
    }
}

/// What a block records.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) groups: Vec<Group>,
    pub(crate) complex: Vec<(usize, Complex, u32)>,
    /// Instruction before which the block's instruction lines are checked.
    pub(crate) fetch_at: usize,
    /// How instruction lines are recorded in tuned code.
    pub(crate) fetch: Way,
    /// Counter of their checks that fail.
    pub(crate) failures: u32,
}

/// The stream that is asked for, and the numbers of instruction lines and pages.
pub(crate) struct Events {
    pub(crate) stream: Stream,
    /// What the next fragment is translated from, if it was known before.
    pub(crate) tuning: Option<Tuning>,
    lines: AddressMap<u32>,
    pages: AddressMap<u32>,
    /// The same where the instruction side is kept whole.
    pub(crate) numbers: Numbers,
    /// First counter of the fragment's checks of instruction lines that fail.
    checks: u32,
    known_lines: Vec<(u32, u64)>,
    known_pages: Vec<(u32, u64)>,
}

const GROUP_MAX: usize = 6;

impl Events {
    pub(crate) fn new(stream: Stream) -> Events {
        Events {
            stream,
            tuning: None,
            lines: AddressMap::default(),
            pages: AddressMap::default(),
            numbers: Numbers::default(),
            checks: 0,
            known_lines: Vec::new(),
            known_pages: Vec::new(),
        }
    }

    /// A fragment may be entered from anywhere: nothing is known of the filter.
    pub(crate) fn start_fragment(&mut self, checks: u32) {
        self.checks = checks;
        self.known_lines.clear();
        self.known_pages.clear();
    }

    /// Whether exits are counted.
    pub(crate) fn counts(&self) -> bool {
        self.stream != Stream::Nothing
    }

    /// Whether the first level of the instruction side is kept whole.
    pub(crate) fn keeps_fetches(&self) -> bool {
        matches!(&self.stream, Stream::Filtered(filter) if Kept::of(filter).is_some())
    }

    /// Whether references are recorded beside the complex ones.
    fn references(&self) -> bool {
        matches!(self.stream, Stream::Filtered(_) | Stream::Full)
    }

    /// Whether `piece` needs the register analysis.
    pub(crate) fn needs_scratch(&self, shapes: &mut Shapes, piece: &Piece) -> bool {
        self.references()
            || !piece.events.is_empty()
            || self.counts()
                && piece.instructions.iter().any(|d| {
                    let shape = shapes.of(&d.i);
                    shapes.get(shape).complex.is_some()
                })
    }
}

impl Translator {
    fn site(&mut self, piece: &Piece, index: usize) -> u32 {
        let ip = piece.instructions[index].i.ip();
        self.sites.push(Site { ip, block: piece.number, index: index as u32 });
        self.sites.len() as u32 - 1
    }

    /// Decides what `piece` records and where.
    pub(crate) fn plan_block(&mut self, piece: &Piece, facts: &Facts, nth: u32) -> BlockPlan {
        let failures = self.events.checks + nth;
        let mut plan = BlockPlan { failures, ..BlockPlan::default() };
        if facts.uses.is_empty() || !self.events.counts() {
            return plan;
        }
        let mut open: Option<(Group, i64)> = None;
        let experience = self.experience(nth);
        plan.fetch = experience.fetch(&self.heat);
        self.heat.fetch(piece.number).way = plan.fetch;
        let first_site = self.sites.len() as u32;
        for (k, decoded) in piece.instructions.iter().enumerate() {
            let number = self.shapes.of(&decoded.i);
            let shape = self.shapes.get(number);
            let references = shape.simple.len();
            let skipped = shape.complex == Some(Complex::BitOffset) && self.events.stream == Stream::Counts;
            if let Some(complex) = shape.complex.filter(|_| !skipped) {
                plan.groups.extend(open.take().map(|o| o.0));
                let site = self.site(piece, k);
                plan.complex.push((k, complex, site));
                continue;
            }
            if self.events.stream == Stream::Counts || references == 0 {
                close_if_moved(&mut open, &mut plan, decoded, facts, k);
                continue;
            }
            for n in 0..references {
                let t = self.shapes.get(number).simple[n];
                if t.kind == RecordKind::Prefetch && self.events.stream != Stream::Full {
                    continue;
                }
                let Some(address) = references::address(&decoded.i, t.place) else { continue };
                let site = self.site(piece, k);
                let code = Code::new(t.kind, t.size_bytes).map_or(0, |c| u32::from(c.0));
                let member =
                    Member { address, kind: t.kind, size_bytes: t.size_bytes, what: site << 8 | code };
                let way = match t.size_bytes > self.line_bytes() {
                    true => Way::Checked,
                    false => experience.data(&self.heat, site - first_site),
                };
                self.heat.site(site).way = way;
                self.join(&mut open, &mut plan, member, way, k);
            }
            close_if_moved(&mut open, &mut plan, decoded, facts, k);
        }
        plan.groups.extend(open.take().map(|o| o.0));
        let first = plan.groups.first().map_or(usize::MAX, |g| g.index);
        let first = first.min(plan.complex.first().map_or(usize::MAX, |c| c.0));
        // What is recorded in any case needs no flags.
        let checked = plan.fetch == Way::Checked || self.events.keeps_fetches();
        let dead = facts.flags_dead.iter().take(first.saturating_add(1)).position(|&d| d || !checked);
        plan.fetch_at = dead.unwrap_or(0);
        plan
    }

    fn line_bytes(&self) -> u32 {
        match self.events.stream {
            Stream::Filtered(filter) => filter.data.line_bytes,
            _ => u32::MAX,
        }
    }

    /// Adds `member` to the open group if one check covers both, else starts a new group.
    fn join(
        &self,
        open: &mut Option<(Group, i64)>,
        plan: &mut BlockPlan,
        member: Member,
        way: Way,
        k: usize,
    ) {
        if let (Some((group, moved)), Stream::Filtered(filter)) = (open.as_mut(), self.events.stream) {
            let first = group.members[0];
            let mut shifted = member;
            if shifted.address.base == Some(reg::RSP) {
                shifted.address.displacement += *moved;
            }
            let start = shifted.address.displacement - first.address.displacement;
            let same = Address { displacement: 0, ..shifted.address }
                == Address { displacement: 0, ..first.address };
            let inside = start >= 0 && start + i64::from(member.size_bytes) <= i64::from(first.size_bytes);
            let kinds = filter.stores == StoreFilter::LikeLoads
                || (member.kind == RecordKind::Store) == (first.kind == RecordKind::Store);
            if same && inside && kinds && group.members.len() < GROUP_MAX {
                group.members.push(shifted);
                return;
            }
        }
        plan.groups.extend(open.take().map(|o| o.0));
        *open = Some((Group { index: k, members: Members::of(member), way }, 0));
    }

    /// Everything that stands before instruction `k` of `piece`.
    pub(crate) fn references(&mut self, d: &mut Draft, z: usize, piece: &Piece, plan: &BlockPlan, k: usize) {
        if k == plan.fetch_at {
            if let Stream::Filtered(filter) = self.events.stream {
                match Kept::of(&filter) {
                    Some((lines, pages)) => self.use_lines(d, z, piece, lines, pages, plan),
                    None => self.fetch_lines(d, piece, &filter, plan.fetch),
                }
            }
        }
        for group in plan.groups.iter().filter(|g| g.index == k) {
            match self.events.stream {
                Stream::Filtered(filter) => match group.way {
                    Way::Checked => self.filtered(d, z, group, &filter),
                    Way::Branchless => written(d, group, &filter),
                    Way::Always => remembered(d, group, &filter),
                },
                Stream::Full => recorded(d, group),
                Stream::Counts | Stream::Nothing => {}
            }
        }
        for &(at, complex, site) in plan.complex.iter().filter(|c| c.0 == k) {
            self.complex_before(d, z, &piece.instructions[at], complex, site);
        }
    }

    /// Everything that stands after instruction `k`.
    pub(crate) fn after(&mut self, d: &mut Draft, z: usize, piece: &Piece, plan: &BlockPlan, k: usize) {
        for &(at, complex, site) in plan.complex.iter().filter(|c| c.0 == k) {
            self.complex_after(d, z, &piece.instructions[at], complex, site);
        }
    }

    /// The record of a block's start, in full streams.
    pub(crate) fn block_starts(&mut self, d: &mut Draft, _z: usize, piece: &Piece) {
        if self.events.stream != Stream::Full {
            return;
        }
        d.free_flags();
        let r = d.scratch(0);
        d.hot.load(r, context::RING_POSITION);
        d.hot.store_imm_at(r, 0, piece.ip as u32);
        d.hot.store_imm_at(r, 4, (piece.ip >> 32) as u32);
        d.hot.store_imm_at(r, 8, piece.number << 8 | (RecordKind::Block as u32) << 4);
        d.hot.store_imm_at(r, 12, (piece.end_ip() - piece.ip) as u32);
        d.hot.advance(r, 16);
        d.hot.store(r, context::RING_POSITION);
        check_ring(d, r);
    }

    /// Checks the instruction lines (and pages) of `piece` that are not known to be their sets' last.
    fn fetch_lines(&mut self, d: &mut Draft, piece: &Piece, filter: &Filter, way: Way) {
        let bytes = u64::from(filter.instruction.line_bytes);
        let mut line = piece.ip & !(bytes - 1);
        while line < piece.end_ip() {
            self.fetch_line(d, piece, filter, line, way);
            line += bytes;
        }
    }

    /// The same where the instruction side is kept whole.
    fn use_lines(
        &mut self,
        d: &mut Draft,
        z: usize,
        piece: &Piece,
        lines: Kept,
        pages: Option<Kept>,
        plan: &BlockPlan,
    ) {
        let counter = plan.failures;
        let bytes = u64::from(lines.shape.line_bytes);
        let mut line = piece.ip & !(bytes - 1);
        while line < piece.end_ip() {
            let page = pages.map_or(0, |kept| line & !(u64::from(kept.shape.line_bytes) - 1));
            let line_news = learn(&mut self.events.known_lines, lines.set(line), line);
            let pages = pages.filter(|kept| learn(&mut self.events.known_pages, kept.set(page), page));
            let used = |kept, address| Use { kept, address, block: piece.number, way: plan.fetch, counter };
            if line_news {
                self.use_kept(d, z, &used(lines, line));
            }
            if let Some(pages) = pages {
                self.use_kept(d, z, &used(pages, page));
            }
            line += bytes;
        }
    }

    fn fetch_line(&mut self, d: &mut Draft, piece: &Piece, filter: &Filter, line: u64, way: Way) {
        let line_set = set_of(&filter.instruction, line);
        let page = filter.instruction_page.map(|p| (set_of(&p, line), line & !(u64::from(p.line_bytes) - 1)));
        let line_news = learn(&mut self.events.known_lines, line_set, line);
        let page_news = page.is_some_and(|(set, page)| learn(&mut self.events.known_pages, set, page));
        if !line_news && !page_news {
            return;
        }
        let code = Code::new(RecordKind::Fetch, filter.instruction.line_bytes).map_or(0x40, |c| c.0);
        let what = piece.number << 8 | u32::from(code);
        let number = intern(&mut self.events.lines, line);
        let page = page.map(|(set, page)| (set, intern(&mut self.events.pages, page)));
        let line_at = context::INSTRUCTION_LINES + 4 * line_set;
        let page_at = page.map_or(context::NOWHERE, |(set, _)| context::INSTRUCTION_PAGES + 4 * set);
        if way != Way::Checked {
            d.hot.store_imm32(line_at, number);
            if let Some((_, page)) = page {
                d.hot.store_imm32(page_at, page);
            }
            return d.append_constant(line, what);
        }
        d.free_flags();
        if line_news {
            d.hot.compare_imm32(line_at, number);
            let at = d.hot.jump_if(5);
            d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
        }
        if let (true, Some((_, page))) = (page_news, page) {
            d.hot.compare_imm32(page_at, page);
            let at = d.hot.jump_if(5);
            d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
        }
        let back = d.hot.len();
        d.lend_position();
        d.cold.store_imm32(line_at, number);
        if let Some((_, page)) = page {
            d.cold.store_imm32(page_at, page);
        }
        let r = reg::RAX;
        d.cold.store(r, context::TEMP);
        d.cold.load(r, context::RING_POSITION);
        d.cold.prefetch_write(r, 512);
        d.cold.store_imm_at(r, 0, line as u32);
        d.cold.store_imm_at(r, 4, (line >> 32) as u32);
        d.cold.store_imm_at(r, 8, what);
        d.cold.advance(r, 16);
        d.cold.store(r, context::RING_POSITION);
        d.cold.compare(r, context::RING_LIMIT);
        d.cold.load(r, context::TEMP);
        if d.held.is_none() {
            let at = d.cold.jump_if(2);
            d.link(Part::Cold, at, Goal::Hot(back));
            return leave_ring(d, back);
        }
        let on = d.cold.jump_if(2);
        d.cold.store_imm32(context::EXIT, EXIT_RING);
        d.cold.raw(&[0xcc]);
        let here = d.cold.len();
        d.cold.patch(on, here);
        d.take_position_back();
        let at = d.cold.jump();
        d.link(Part::Cold, at, Goal::Hot(back));
    }

    /// The head of a fragment that records anything always: there is room for all of it.
    pub(crate) fn head(&mut self, d: &mut Draft) {
        if self.events.tuning.as_ref().is_some_and(|tuning| tuning.any != Way::Checked) {
            d.check_limit();
        }
    }
}

/// Sets a filter's set number aside as known; whether it was not.
fn learn(known: &mut Vec<(u32, u64)>, set: u32, line: u64) -> bool {
    match known.iter_mut().find(|k| k.0 == set) {
        Some(k) if k.1 == line => false,
        Some(k) => {
            k.1 = line;
            true
        }
        None => {
            known.push((set, line));
            true
        }
    }
}

fn intern(numbers: &mut AddressMap<u32>, key: u64) -> u32 {
    let next = numbers.len() as u32 + 1;
    *numbers.entry(key).or_insert(next)
}

fn set_of(filter: &SetFilter, address: u64) -> u32 {
    ((address / u64::from(filter.line_bytes)) as u32) & (filter.sets - 1)
}

/// Ends the open group where its registers change; follows rsp through pushes and pops.
fn close_if_moved(
    open: &mut Option<(Group, i64)>,
    plan: &mut BlockPlan,
    decoded: &crate::decode::Decoded,
    facts: &Facts,
    k: usize,
) {
    let Some((group, moved)) = open.as_mut() else { return };
    let registers = group.members[0].address.registers();
    let mut written = facts.uses[k].writes;
    let i = &decoded.i;
    let simple_stack = matches!(i.mnemonic(), iced_x86::Mnemonic::Push | iced_x86::Mnemonic::Pop);
    if written & 1 << reg::RSP != 0 && simple_stack && i.op0_register() != iced_x86::Register::RSP {
        *moved += i64::from(i.stack_pointer_increment());
        written &= !(1 << reg::RSP);
    }
    if registers & written != 0 {
        plan.groups.extend(open.take().map(|o| o.0));
    }
}
