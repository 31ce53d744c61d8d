//! What generated code records: instruction lines, data references, complex references, per stream.
//!
//! A block is planned first: which references one check covers, where instruction lines are used, how each is recorded. The code
//! itself is in `data`, `kept` and `complex`.

use super::data::{check_ring, leave_ring, recorded, remembered, written};
use super::draft::{Draft, Goal, Part};
use super::group::{stack_step, Groups, Member};
use super::kept::{Kept, Numbers, Use};
use super::Facts;
use crate::assemble::reg;
use crate::cache::{AddressMap, EXIT_RING};
use crate::heat::{Tuning, Way};
use crate::layout::context;
use crate::profile::Site;
use crate::references::{self, Complex, Shapes};
use crate::translate::{Piece, Translator};
use event::{Code, Filter, RecordKind, SetFilter, Stream};
use iced_x86::Mnemonic;

/// What a block records.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) groups: Groups,
    pub(crate) complex: Vec<(usize, Complex, u32)>,
    /// Instruction before which the block's instruction lines are checked.
    pub(crate) fetch_at: usize,
    /// How instruction lines are recorded in tuned code.
    pub(crate) fetch: Way,
    /// Counter of their checks that fail.
    pub(crate) failures: u32,
}

impl BlockPlan {
    /// Records nothing; its lists keep their room.
    fn clear(&mut self) {
        self.groups.clear();
        self.complex.clear();
        (self.fetch_at, self.fetch, self.failures) = (0, Way::default(), 0);
    }
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

    /// Lines and pages with their numbers: those that are checked, then those that are kept whole.
    pub(crate) fn numbered(&self) -> [Vec<(u64, u32)>; 4] {
        let list =
            |numbers: &AddressMap<u32>| numbers.iter().map(|(&address, &number)| (address, number)).collect();
        let [lines, pages] = self.numbers.numbered();
        [list(&self.lines), list(&self.pages), lines, pages]
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
    pub(crate) fn references(&self) -> bool {
        matches!(self.stream, Stream::Filtered(_) | Stream::Full)
    }

    /// Whether `piece` needs the register analysis.
    pub(crate) fn needs_scratch(&self, shapes: &Shapes, piece: &Piece) -> bool {
        self.references()
            || !piece.events.is_empty()
            || self.counts() && piece.instructions.iter().any(|d| shapes.get(d.shape).complex.is_some())
    }
}

impl Translator {
    /// Undoes [`Events::numbered`].
    pub(crate) fn renumber(&mut self, numbered: &[Vec<(u64, u32)>; 4]) {
        self.events.lines.extend(numbered[0].iter().copied());
        self.events.pages.extend(numbered[1].iter().copied());
        self.renumber_kept(&numbered[2], &numbered[3]);
    }

    fn site(&mut self, piece: &Piece, index: usize) -> u32 {
        let ip = piece.instructions[index].i.ip();
        self.sites.push(Site { ip, block: piece.number, index: index as u32 });
        self.sites.len() as u32 - 1
    }

    /// Decides what `piece` records and where.
    pub(crate) fn plan_block(&mut self, piece: &Piece, facts: &Facts, nth: u32) -> BlockPlan {
        let mut plan = std::mem::take(&mut self.plan);
        plan.clear();
        plan.failures = self.events.checks + nth;
        if facts.uses.is_empty() || !self.events.counts() {
            return plan;
        }
        let stream = self.events.stream;
        let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
        let experience = self.experience(nth);
        plan.fetch = experience.fetch(&self.heat);
        self.heat.fetch(piece.number).way = plan.fetch;
        let first_site = self.sites.len() as u32;
        for (k, decoded) in piece.instructions.iter().enumerate() {
            let number = decoded.shape;
            let shape = self.shapes.get(number);
            let references = shape.simple.len();
            let skipped = shape.complex == Some(Complex::BitOffset) && self.events.stream == Stream::Counts;
            if let Some(complex) = shape.complex.filter(|_| !skipped) {
                plan.groups.close();
                let site = self.site(piece, k);
                plan.complex.push((k, complex, site));
                continue;
            }
            if self.events.stream == Stream::Counts || references == 0 {
                plan.groups.pass(decoded, facts.uses[k].writes);
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
                let way = match t.size_bytes > self.line_bytes() {
                    true => Way::Checked,
                    false => experience.data(&self.heat, site - first_site),
                };
                self.heat.site(site).way = way;
                let what = site << 8 | code;
                plan.groups.add(Member::new((address, t.kind, t.size_bytes), what, k, way), filter);
            }
            plan.groups.pass(decoded, facts.uses[k].writes);
        }
        plan.groups.close();
        if filter.is_some() && piece.events.is_empty() {
            plan.groups.hoist(&facts.flags_dead, |k| self.passed(piece, facts, k));
        }
        let first = plan.groups.first().unwrap_or(usize::MAX);
        let first = first.min(plan.complex.first().map_or(usize::MAX, |c| c.0));
        // What is recorded in any case needs no flags.
        let checked = plan.fetch == Way::Checked || self.events.keeps_fetches();
        let dead = facts.flags_dead.iter().take(first.saturating_add(1)).position(|&d| d || !checked);
        plan.fetch_at = dead.unwrap_or(0);
        plan
    }

    /// Registers that instruction `k` changes and what it adds to rsp; `None` where it makes references or may fault.
    fn passed(&self, piece: &Piece, facts: &Facts, k: usize) -> Option<(u16, i64)> {
        let decoded = &piece.instructions[k];
        let shape = self.shapes.get(decoded.shape);
        let faults = matches!(decoded.i.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        if faults || !shape.simple.is_empty() || shape.complex.is_some() {
            return None;
        }
        let written = facts.uses[k].writes;
        Some(stack_step(decoded).map_or((written, 0), |added| (written & !(1 << reg::RSP), added)))
    }

    fn line_bytes(&self) -> u32 {
        match self.events.stream {
            Stream::Filtered(filter) => filter.data.line_bytes,
            _ => u32::MAX,
        }
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
        for group in plan.groups.at(k) {
            match self.events.stream {
                Stream::Filtered(filter) => match group.members[0].way {
                    Way::Checked => self.filtered(d, z, &group, &filter),
                    Way::Branchless => written(d, &group, &filter),
                    Way::Always => remembered(d, &group, &filter),
                },
                Stream::Full => recorded(d, &group),
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

    /// Whether the fragment in the making records anything always: then it has to make sure, once, that the ring has room.
    pub(crate) fn appends(&self) -> bool {
        self.events.tuning.as_ref().is_some_and(|tuning| tuning.any != Way::Checked)
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
