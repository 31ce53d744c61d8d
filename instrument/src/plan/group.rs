//! Groups: decides which references share one check of the filter.
//!
//! **Problem.** A check costs several instructions, and neighbouring references often touch the
//! same line. **Covered.** A reference to bytes of the reference before it, with no other reference
//! between them, needs no check of its own. **Near.** Three or more references by the same
//! registers, with no others between them, may lie within a line's length, as in a function that
//! saves registers. They touch at most two lines: that of the lowest byte and that of the highest
//! byte. If both lines are the last ones used in their sets, using them in any order changes
//! nothing. So two checks stand for all references; if one fails, each reference is checked by
//! itself, in program order. **Hoisted.** A check needs dead flags. If a group begins where flags
//! are live, for example behind the `add rsp` of an epilogue, it is checked at an earlier place
//! where they are dead, if only instructions without references lie between. **Leaves out** two
//! near references (they need two checks in any case) and joining across other references, which
//! would change the order of records. Source: our own.
//!
//! **Pages.** Where generated code simulates a data TLB, groups that follow each other by the same
//! registers use their pages together, if all their bytes lie within [`PAGES_BYTES_MAX`]: uses of
//! one page with no other use between them are one use. Lines are still checked group by group.

use super::mode::RecordMode;
use crate::code::assembler::{reg, Address};
use crate::code::decode::Decoded;
use event::{Filter, RecordKind, StoreFilter};
use iced_x86::{Mnemonic, OpKind, Register};

/// One reference of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The reference's address, in terms of the register values at the group's first instruction.
    pub(crate) address: Address,
    pub(crate) kind: RecordKind,
    pub(crate) size_bytes: u32,
    /// The first word of the reference's record: `site << 8 | code`.
    pub(crate) what: u32,
    /// Index of the reference's instruction in the block.
    pub(crate) index: usize,
    /// Bytes added to rsp between the group's first instruction and this one.
    moved: i64,
    /// The registers' state at this instruction.
    state: RegisterState,
    /// How tuned code records the reference.
    pub(crate) mode: RecordMode,
}

impl Member {
    /// A reference outside any group: its address refers to the registers at its own instruction.
    pub(crate) fn new(
        (address, kind, size_bytes): (Address, RecordKind, u32),
        what: u32,
        index: usize,
        mode: RecordMode,
    ) -> Member {
        let state = RegisterState::default();
        Member { address, kind, size_bytes, what, index, moved: 0, state, mode }
    }

    /// Displacement of the byte behind the last one.
    fn end(&self) -> i64 {
        self.address.displacement + i64::from(self.size_bytes)
    }

    /// The reference's address with another displacement.
    pub(crate) fn at(&self, displacement: i64) -> Address {
        Address { displacement, ..self.address }
    }
}

/// What an address depends on, as far as the block's instructions before it say.
#[derive(Clone, Copy, Debug, Default)]
struct RegisterState {
    /// Known bytes that were added to rsp.
    stack: i64,
    /// Changes of the address's registers other than known steps of rsp, and complex references.
    changes: u32,
}

/// Consecutive references that share a check, which is made before the first one's instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) members: &'a [Member],
    pub(crate) cover: Cover,
    /// The group's number in its block.
    pub(crate) number: usize,
}

/// The references that use their pages at once, in program order. Their addresses are in terms of
/// the register values where the first one's group is checked.
#[derive(Clone, Debug)]
pub(crate) struct PageUse {
    pub(crate) members: Vec<Member>,
    /// Displacement of the first byte.
    pub(crate) low: i64,
    /// Displacement of the last byte.
    pub(crate) last: i64,
}

/// The lines that a group's check compares with the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// The line of the first member; all other members lie within that member's bytes.
    First,
    /// The lines of the lowest and of the highest byte, given by the displacements of these bytes.
    Ends(i64, i64),
}

/// The groups of a block. References are added in program order; `open` is the unfinished group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    members: Vec<Member>,
    spans: Vec<Span>,
    open: Option<Open>,
    /// Known bytes that the block's instructions have added to rsp so far.
    stack: i64,
    /// How often they have changed each register otherwise.
    changes: [u32; 16],
    /// How many complex references they have made.
    complex: u32,
}

/// A finished group: a range of `Groups::members`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    cover: Cover,
    /// Index of the instruction before which the group is checked.
    at: usize,
    /// Known bytes that were added to rsp before that instruction.
    stack: i64,
    /// The pages that the group uses.
    pages: Pages,
}

/// The pages that are used with a group's check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    /// Those of the group's bytes.
    Own,
    /// Those of the bytes between two displacements, of this group and of following ones up to the
    /// last one.
    Through { low: i64, last: i64, group: usize },
    /// None: they were used with a group before.
    Before,
}

/// The group that the next reference may join.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: usize,
    /// Bytes added to rsp since the group's first instruction.
    moved: i64,
    /// Displacement of the group's first byte.
    low: i64,
    /// Displacement of the byte behind the group's last one.
    high: i64,
    /// The number of leads, that is, members whose bytes no earlier member covers.
    leads: usize,
    /// Index of the last lead.
    lead: usize,
}

/// The most members that one lead covers, itself included.
const COVERED_MAX: usize = 6;
/// The most members of a near group.
const NEAR_MAX: usize = 16;
/// A near group needs two checks; they pay if they replace at least this many.
const NEAR_MIN: usize = 3;
/// The most bytes from the first to the last one of groups that use their pages together. More
/// would often reach into a second page, and then each reference looks up its pages by a routine.
const PAGES_BYTES_MAX: i64 = 256;
/// The most references that use their pages together.
const PAGES_MEMBERS_MAX: usize = 16;

impl Groups {
    /// Removes all groups; the vectors keep their allocations.
    pub(crate) fn clear(&mut self) {
        self.members.clear();
        self.spans.clear();
        self.open = None;
        (self.stack, self.changes, self.complex) = (0, [0; 16], 0);
    }

    /// Finishes the open group before a complex reference, which no group crosses.
    pub(crate) fn pass_complex(&mut self) {
        self.close();
        self.complex += 1;
    }

    /// The state of the registers of `address` now.
    fn state_of(&self, address: &Address) -> RegisterState {
        let registers = address.registers();
        let changes = (0..16).filter(|register| registers >> register & 1 != 0);
        let changes = changes.map(|register: usize| self.changes[register]).sum::<u32>();
        RegisterState { stack: self.stack, changes: changes + self.complex }
    }

    /// Adds the next reference in program order. Without a filter each one is a group of its own.
    pub(crate) fn add(&mut self, mut member: Member, filter: Option<&Filter>) {
        member.state = self.state_of(&member.address);
        let joined = match (&self.open, filter) {
            (Some(open), Some(filter)) => self.joined(open, member, filter),
            _ => None,
        };
        if joined.is_none() {
            self.close();
        }
        let start = self.members.len();
        let fresh = Open {
            start,
            moved: 0,
            low: member.address.displacement,
            high: member.end(),
            leads: 1,
            lead: start,
        };
        let (open, member) = joined.unwrap_or((fresh, member));
        self.open = Some(open);
        self.members.push(member);
    }

    /// The open group with `member` added, and `member` with its address rewritten for that group;
    /// `None` if it cannot join.
    fn joined(&self, open: &Open, mut member: Member, filter: &Filter) -> Option<(Open, Member)> {
        // The group's check runs before its first instruction, so that displacements from rsp must
        // undo what the instructions since then added to it.
        let (first, lead) = (self.members[open.start], self.members[open.lead]);
        if member.address.base == Some(reg::RSP) {
            member.address.displacement += open.moved;
            member.moved = open.moved;
        }
        let alike = filter.stores == StoreFilter::LikeLoads
            || (member.kind == RecordKind::Store) == (first.kind == RecordKind::Store);
        if !alike || member.at(0) != first.at(0) {
            return None;
        }
        let start = member.address.displacement;
        // Covered: it lies within the bytes of the last lead.
        let is_covered = start >= lead.address.displacement && member.end() <= lead.end();
        if is_covered && self.members.len() - open.lead < COVERED_MAX {
            return Some((*open, member));
        }
        let (low, high) = (open.low.min(start), open.high.max(member.end()));
        // Near: the group's bytes still fit into one line's length. Displacements must fit into 32
        // bits, because differences of absolute 64-bit addresses may overflow. Only checked
        // references can share two checks; other modes do not branch around their records.
        let is_near = [low, high].iter().all(|&at| i32::try_from(at).is_ok())
            && high - low <= filter.data.line_bytes.into()
            && !member.address.short
            && self.members.len() - open.start < NEAR_MAX
            && [first.mode, lead.mode, member.mode].iter().all(|&mode| mode == RecordMode::Checked);
        let lead = self.members.len();
        is_near.then_some((Open { low, high, leads: open.leads + 1, lead, ..*open }, member))
    }

    /// Finishes the open group.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let end = self.members.len();
        // With three or more leads, two checks for both ends replace one check per lead. With two
        // leads each gets a group of its own.
        if open.leads >= NEAR_MIN {
            let cover = Cover::Ends(open.low, open.high - 1);
            return self.push(open.start, end, cover);
        }
        let mut start = open.start;
        if open.leads == 2 {
            self.push(start, open.lead, Cover::First);
            start = open.lead;
            self.apart(start);
        }
        self.push(start, end, Cover::First);
    }

    fn push(&mut self, start: usize, end: usize, cover: Cover) {
        let Member { index: at, state, .. } = self.members[start];
        self.spans.push(Span { start, end, cover, at, stack: state.stack, pages: Pages::Own });
    }

    /// Rewrites the addresses from member `start` on so that they refer to the registers at that
    /// member's own instruction.
    fn apart(&mut self, start: usize) {
        let moved = self.members[start].moved;
        let later = self.members[start..].iter_mut().filter(|member| member.address.base == Some(reg::RSP));
        later.for_each(|member| member.address.displacement -= moved);
    }
}

impl Groups {
    /// The groups whose checks are made before instruction `index`.
    pub(crate) fn at(&self, index: usize) -> impl Iterator<Item = Group<'_>> {
        let spans = self.spans.iter().enumerate().filter(move |(_, span)| span.at == index);
        spans.map(|(number, span)| Group {
            members: &self.members[span.start..span.end],
            cover: span.cover,
            number,
        })
    }

    /// The pages that are used with the check of this group; `None` if they were used before.
    pub(crate) fn page_use(&self, group: usize) -> Option<PageUse> {
        let (low, last, end) = match self.spans[group].pages {
            Pages::Own => {
                let (low, last) = self.bytes(group);
                (low, last, group)
            }
            Pages::Through { low, last, group } => (low, last, group),
            Pages::Before => return None,
        };
        let members = (group..=end).flat_map(|later| {
            let (Span { start, end, .. }, shift) = (self.spans[later], self.shift(group, later));
            let members = self.members[start..end].iter();
            members.map(move |member| Member {
                address: member.at(member.address.displacement + shift),
                ..*member
            })
        });
        Some(PageUse { members: members.collect(), low, last })
    }

    /// Displacements of a group's first and last byte.
    fn bytes(&self, group: usize) -> (i64, i64) {
        let span = self.spans[group];
        let first = self.members[span.start];
        match span.cover {
            Cover::First => (first.address.displacement, first.end().max(first.address.displacement + 1) - 1),
            Cover::Ends(low, high) => (low, high),
        }
    }

    /// What is added to displacements of group `later` for the registers at the check of `group`.
    fn shift(&self, group: usize, later: usize) -> i64 {
        let (one, other) = (self.spans[group], self.spans[later]);
        match self.members[one.start].address.base {
            Some(reg::RSP) => other.stack - one.stack,
            _ => 0,
        }
    }

    /// Decides which groups use their pages together. Call it when all groups have their places.
    pub(crate) fn join_pages(&mut self) {
        let mut first = 0;
        for group in 1..self.spans.len() {
            match self.pages_through(first, group) {
                Some(pages) => {
                    self.spans[first].pages = pages;
                    self.spans[group].pages = Pages::Before;
                }
                None => first = group,
            }
        }
    }

    /// The pages of the groups from `first` to `group`, if the latter can join the former ones.
    fn pages_through(&self, first: usize, group: usize) -> Option<Pages> {
        let (start, end) = (self.spans[first].start, self.spans[group].end);
        let (one, other) = (self.members[start], self.members[self.spans[group].start]);
        // Equal numbers of changes: nothing has changed the registers between them.
        let alike = one.at(0) == other.at(0) && one.state.changes == other.state.changes;
        if !alike || one.address.short || end - start > PAGES_MEMBERS_MAX {
            return None;
        }
        let (low, last) = match self.spans[first].pages {
            Pages::Through { low, last, .. } => (low, last),
            _ => self.bytes(first),
        };
        let (own_low, own_last) = self.bytes(group);
        let shift = self.shift(first, group);
        // Differences of absolute 64-bit addresses may overflow.
        if [low, last, own_low, own_last].iter().any(|&at| i32::try_from(at).is_err()) {
            return None;
        }
        let (low, last) = (low.min(own_low + shift), last.max(own_last + shift));
        let fits = last - low < PAGES_BYTES_MAX && [low, last].iter().all(|&at| i32::try_from(at).is_ok());
        fits.then_some(Pages::Through { low, last, group })
    }

    /// Index of the instruction before which the first group is checked.
    pub(crate) fn first(&self) -> Option<usize> {
        self.spans.first().map(|span| span.at)
    }

    /// Moves the check of each group that begins where flags are live to an earlier instruction
    /// where they are dead. `passed` returns, for an instruction, the registers that it changes and
    /// the bytes that it adds to rsp; `None` if no check may move above it.
    pub(crate) fn hoist(&mut self, flags_dead: &[bool], passed: impl Fn(usize) -> Option<(u16, i64)>) {
        let mut floor = 0;
        for nth in 0..self.spans.len() {
            if !flags_dead[self.spans[nth].at] {
                self.hoist_span(nth, floor, flags_dead, &passed);
            }
            floor = self.spans[nth].at;
        }
    }

    /// Moves the check of group `nth` upwards, but not above instruction `floor`, where the check
    /// of the group before it is made: records keep their order.
    fn hoist_span(
        &mut self,
        nth: usize,
        floor: usize,
        flags_dead: &[bool],
        passed: impl Fn(usize) -> Option<(u16, i64)>,
    ) {
        let Span { start, end, at, .. } = self.spans[nth];
        let first = self.members[start].address;
        let mut moved = 0;
        // Walk back over instructions that neither reference memory nor change the address, until
        // flags are dead; then move the check there and undo the steps of rsp.
        for earlier in (floor..at).rev() {
            let Some((written, added)) = passed(earlier).filter(|_| !first.fs) else { return };
            if written & first.registers() != 0 {
                return;
            }
            moved += added;
            if !flags_dead[earlier] {
                continue;
            }
            let steps = moved;
            let moved = if first.base == Some(reg::RSP) { moved } else { 0 };
            let all = &mut self.members[start..end];
            if all.iter().any(|member| i32::try_from(member.address.displacement + moved).is_err()) {
                return;
            }
            all.iter_mut().for_each(|member| member.address.displacement += moved);
            if let Cover::Ends(low, high) = &mut self.spans[nth].cover {
                (*low, *high) = (*low + moved, *high + moved);
            }
            self.spans[nth].at = earlier;
            self.spans[nth].stack -= steps;
            return;
        }
    }

    /// Updates the open group for an instruction that may write the registers `written`: a known
    /// step of rsp is added to the sum; any other change of a register of its addresses finishes
    /// the group.
    pub(crate) fn pass(&mut self, decoded: &Decoded, mut written: u16) {
        self.note_changes(decoded, written);
        let Some(open) = &mut self.open else { return };
        let registers = self.members[open.start].address.registers();
        if written & registers == 0 {
            return;
        }
        if let Some(added) = stack_step(decoded) {
            open.moved += added;
            written &= !(1 << reg::RSP);
        }
        if written & registers != 0 {
            self.close();
        }
    }

    /// Notes the registers that an instruction changes.
    fn note_changes(&mut self, decoded: &Decoded, mut written: u16) {
        if written >> reg::RSP & 1 != 0 {
            if let Some(added) = stack_step(decoded) {
                self.stack += added;
                written &= !(1 << reg::RSP);
            }
        }
        while written != 0 {
            self.changes[written.trailing_zeros() as usize] += 1;
            written &= written - 1;
        }
    }
}

/// The bytes that an instruction adds to rsp, if it is a push, a pop or an addition of a constant.
/// `None` if the sum is unknown or the instruction changes rsp in another way.
pub(crate) fn stack_step(decoded: &Decoded) -> Option<i64> {
    let instruction = &decoded.instruction;
    let own = instruction.op0_register() == Register::RSP;
    let constant = || matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop if !own => Some(instruction.stack_pointer_increment().into()),
        Mnemonic::Add if own && constant() => Some(instruction.immediate(1) as i64),
        Mnemonic::Sub if own && constant() => Some((instruction.immediate(1) as i64).wrapping_neg()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
