//! Code for data references: checked against the filter, recorded without a branch, recorded always, or all of them for full streams.
//!
//! The filter (see `event::Filter`) keeps minus the address of each set's last line. One `add` against it yields the offset of the
//! access in that line, and one unsigned comparison with `line − size` answers both "another line" and "crosses into the
//! next": the common case costs five instructions, everything else is out of line. Code that has been seen to fail its checks often is
//! translated again (`heat`), with records in line. Records of what would not have needed one are allowed, a filter entry that is
//! untrue is not; whatever bypasses the filter empties it. Source: our own.

use super::add_segment;
use super::append;
use super::draft::{Draft, Goal, Part, FLAGS_BIT};
use super::group::{Cover, Group, Member};
use super::routine::{Entering, RecordRoutine, Table, When};
use crate::assemble::{Address, Assembler};
use crate::cache::EXIT_RING;
use crate::layout::context;
use crate::translate::Translator;
use event::{Filter, RecordKind, StoreFilter};

impl Translator {
    /// The check of a group against the filter, and its records by routines out of line.
    pub(super) fn filtered(&mut self, d: &mut Draft, z: usize, group: &Group, filter: &Filter) {
        let first = group.members[0];
        d.free_flags();
        let avoid = first.address.registers();
        d.restore(avoid & !FLAGS_BIT);
        let a = d.scratch(avoid);
        let set = d.scratch(avoid | 1 << a);
        match group.cover {
            Cover::First => d.check(&first.address, first.size_bytes, (a, set), filter),
            Cover::Ends(low, high) => {
                d.check(&first.at(low), 1, (a, set), filter);
                d.check(&first.at(high), 1, (a, set), filter);
            }
        }
        d.lend_position();
        if self.events.tuning.is_some() {
            match group.cover {
                Cover::First => d.record_cold(group.members, a, set, filter),
                Cover::Ends(..) => d.record_news(group.members, a, set, filter),
            }
        } else {
            for member in group.members {
                let routine = self.record_routine(z, member, group.cover, (a, set), filter);
                d.call_cold(member, a, set, routine);
            }
        }
        d.take_position_back();
        let at = d.cold.jump();
        d.link(Part::Cold, at, Goal::Hot(d.hot.len()));
    }

    /// The routine that records `member`: in any case, or where the filter does not know it.
    fn record_routine(
        &mut self,
        z: usize,
        member: &Member,
        cover: Cover,
        (address, scratch): (u8, u8),
        filter: &Filter,
    ) -> u64 {
        let key = RecordRoutine {
            address,
            scratch,
            size_bytes: member.size_bytes,
            line_bytes: filter.data.line_bytes,
            page_bytes: filter.data_page.map_or(0, |p| p.line_bytes),
            sets: [filter.data.sets, filter.data_page.map_or(0, |p| p.sets)],
            entering: entering(filter, member.kind),
            when: if cover == Cover::First { When::Always } else { When::News },
        };
        self.cache.routine(z, key)
    }
}

impl Draft {
    /// Leaves for the cold code that comes next unless the filter knows `size_bytes` at `address`. Flags and both registers are free.
    fn check(&mut self, address: &Address, size_bytes: u32, (a, set): (u8, u8), filter: &Filter) {
        let line = filter.data.line_bytes;
        self.hot.lea(a, address);
        add_segment(&mut self.hot, a, address);
        let lines = Table { sets: filter.data.sets, ..Table::lines(line, Entering::Enters) };
        self.hot.behind_last(a, set, &lines);
        self.hot.compare_imm(a, line as i32 - size_bytes.min(line) as i32);
        // An access longer than a line is always recorded.
        let at = if size_bytes > line { self.hot.jump() } else { self.hot.jump_if(7) };
        self.link(Part::Hot, at, Goal::Cold(self.cold.len()));
        if let Some(page) = filter.data_page {
            self.hot.lea(a, address);
            add_segment(&mut self.hot, a, address);
            self.hot.behind_last(a, set, &Table { sets: page.sets, ..Table::pages(page.line_bytes) });
            self.hot.compare_imm(a, page.line_bytes as i32 - 1);
            let at = self.hot.jump_if(7);
            self.link(Part::Hot, at, Goal::Cold(self.cold.len()));
        }
    }
}

/// Sets that a signed byte numbers.
const SMALL_SETS_MAX: u32 = 128;

impl Assembler {
    /// What the address in `a` is behind the start of its set's last line or page. Flags are free.
    pub(super) fn behind_last(&mut self, a: u8, set: u8, table: &Table) {
        if (1..=SMALL_SETS_MAX).contains(&table.sets) {
            // Shorter than the other form, and one load less.
            self.rotate(set, a, table.bytes.trailing_zeros() as u8);
            self.and_small(set, (table.sets - 1) as u8);
        } else {
            self.extract(set, a, table.mask);
        }
        self.table(0x03, a, set, table.at);
    }
}

/// What a recorded reference of `kind` does to the filter.
fn entering(filter: &Filter, kind: RecordKind) -> Entering {
    if filter.stores == StoreFilter::LikeLoads || kind != RecordKind::Store {
        Entering::Enters
    } else {
        Entering::Empties
    }
}

/// The tables of last lines and pages that a reference of `kind` is remembered in.
pub(crate) fn tables(filter: &Filter, kind: RecordKind) -> impl Iterator<Item = Table> {
    let lines =
        Table { sets: filter.data.sets, ..Table::lines(filter.data.line_bytes, entering(filter, kind)) };
    let pages = filter.data_page.map(|page| Table { sets: page.sets, ..Table::pages(page.line_bytes) });
    std::iter::once(lines).chain(pages)
}

/// A group's records, filters untouched. The register that holds its address, where it has but one.
fn appended(d: &mut Draft, group: &Group) -> Option<u8> {
    let avoid = group.members[0].address.registers();
    if group.members[0].address.fs {
        d.free_flags();
    }
    d.restore(avoid & !FLAGS_BIT);
    d.position(avoid);
    for member in group.members.iter() {
        let a = d.scratch(avoid);
        d.hot.lea(a, &member.address);
        add_segment(&mut d.hot, a, &member.address);
        d.append(a, member.what);
        if group.members.len() == 1 {
            return Some(a);
        }
    }
    None
}

/// A group's records, and its line (and page) as its set's last.
pub(super) fn remembered(d: &mut Draft, group: &Group, filter: &Filter) {
    let first = group.members[0];
    let avoid = first.address.registers();
    d.free_flags();
    let mut formed = appended(d, group);
    let a = formed.unwrap_or_else(|| d.scratch(avoid));
    let b = d.scratch(avoid | 1 << a);
    for table in tables(filter, first.kind) {
        if formed.take().is_none() {
            d.hot.lea(a, &first.address);
            add_segment(&mut d.hot, a, &first.address);
        }
        append::remember(&mut d.hot, a, b, first.size_bytes, &table);
    }
}

/// A group's records without a branch: they are written behind the ring's position in any case, which moves on only where the filter does not know
/// the line (and page). Afterwards it does. The position in memory is the true one.
pub(super) fn written(d: &mut Draft, group: &Group, filter: &Filter) {
    let first = group.members[0];
    let avoid = first.address.registers();
    d.free_flags();
    d.restore(avoid & !FLAGS_BIT);
    d.commit();
    let position = d.position(avoid);
    let a = d.scratch(avoid);
    let b = d.scratch(avoid | 1 << a);
    for (n, member) in group.members.iter().enumerate().rev() {
        d.hot.lea(a, &member.address);
        add_segment(&mut d.hot, a, &member.address);
        d.hot.store_at(a, position, 16 * n as u8);
        d.hot.store_imm_at(position, 16 * n as u8 + 8, member.what);
    }
    let line = filter.data.line_bytes as i32 - first.size_bytes as i32;
    d.known(a, b, context::MASK_SET, context::DATA_LINES, line);
    if let Some(page) = filter.data_page {
        let c = d.scratch(avoid | 1 << a | 1 << b);
        d.known(a, c, context::MASK_PAGE_SET, context::DATA_PAGES, page.line_bytes as i32 - 1);
        d.hot.registers(AND, b, c);
    }
    let bytes = 16 * group.members.len() as i32;
    d.hot.and_imm(b, -bytes);
    let on = Address { index: Some(b), ..Address::based(position, bytes.into()) };
    d.hot.lea(position, &on);
    d.hot.store(position, context::RING_POSITION);
    let mut formed = true;
    for table in tables(filter, first.kind) {
        if !std::mem::take(&mut formed) {
            d.hot.lea(a, &first.address);
            add_segment(&mut d.hot, a, &first.address);
        }
        append::remember(&mut d.hot, a, b, first.size_bytes, &table);
    }
}

const ADD: u8 = 0x01;
const AND: u8 = 0x21;

impl Draft {
    /// All bits of `b`: whether the address in `a` is at most `offset_max` behind the start of its set's last line.
    fn known(&mut self, a: u8, b: u8, mask: u32, table: u32, offset_max: i32) {
        self.hot.extract(b, a, mask);
        self.hot.table(0x8b, b, b, table);
        self.hot.registers(ADD, b, a);
        self.hot.compare_imm(b, offset_max + 1);
        self.hot.spread_carry(b);
    }
}

/// Appends one record per member; leaves the new position in the context.
fn record_members(code: &mut Assembler, group: &Group, a: u8, position: u8) {
    code.load(position, context::RING_POSITION);
    for (n, member) in group.members.iter().enumerate() {
        code.lea(a, &member.address);
        add_segment(code, a, &member.address);
        code.store_at(a, position, 16 * n as u8);
        code.store_imm_at(position, 16 * n as u8 + 8, member.what);
    }
    code.advance(position, 16 * group.members.len() as i8);
    code.store(position, context::RING_POSITION);
}

/// A group's records in line, for full streams.
pub(super) fn recorded(d: &mut Draft, group: &Group) {
    d.free_flags();
    let avoid = group.members[0].address.registers();
    d.restore(avoid & !FLAGS_BIT);
    let a = d.scratch(avoid);
    let position = d.scratch(avoid | 1 << a);
    record_members(&mut d.hot, group, a, position);
    check_ring(d, position);
}

/// Leaves for the host when the position in `r` has passed the segment's limit. Needs free flags.
pub(crate) fn check_ring(d: &mut Draft, r: u8) {
    d.hot.compare(r, context::RING_LIMIT);
    let at = d.hot.jump_if(3);
    d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
    let back = d.hot.len();
    leave_ring(d, back);
}

pub(super) fn leave_ring(d: &mut Draft, back: usize) {
    d.cold.store_imm32(context::EXIT, EXIT_RING);
    d.cold.raw(&[0xcc]);
    let at = d.cold.jump();
    d.link(Part::Cold, at, Goal::Hot(back));
}
