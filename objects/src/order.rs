//! A better order of a structure's members, by which of them are used together.
//!
//! **What is minimised.** A visit is the set of fields of one value that are used in a short time,
//! and where the value begins in its line. A visit touches as many lines as its fields lie on. The
//! cost of an order is the sum of lines over all visits.
//!
//! **How.** Members are placed one after the other, each at the next multiple of its alignment, in
//! the order of how often they are visited. Then each member is tried at each other place as long
//! as that lowers the cost. The size of the structure stays, so that values begin where they did.
//! Members of base classes and pointers to virtual tables stay where they are. **Leaves out** what
//! an order means elsewhere: files, other languages, initialisers without names.

use crate::debug::layout::TypeLayout;

/// Fields of a type that are told apart: types with more have no visits.
pub(crate) const FIELDS_MAX: usize = 128;
/// Most members of a structure whose order is sought.
const MEMBERS_MAX: usize = 64;
/// Different visits that are weighed, the most frequent ones.
const VISITS_MAX: usize = 1024;
/// Times that all members are tried at all places.
const ROUNDS: usize = 8;

/// Visits that used the same fields of values at the same place in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// The fields, by bit.
    pub fields: u128,
    /// Where the value begins in its line.
    pub start: u64,
    /// How many there were.
    pub count: u64,
}

/// A proposed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The members with their offsets.
    pub members: Vec<(String, u64)>,
    /// Bytes up to the end of the last member.
    pub used_bytes: u64,
    /// Lines that all visits touch now.
    pub lines_before: u64,
    /// Lines that they would touch.
    pub lines_after: u64,
}

/// A member: fields that move together.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    offset: u64,
    size_bytes: u64,
    align_bytes: u64,
    is_fixed: bool,
    /// Its fields: number, offset within the member, bytes.
    fields: Vec<(usize, u64, u64)>,
    weight: u64,
}

/// The lines of `line_bytes` that visits touch, where a field's offset is that of `offsets`.
fn lines(layout: &TypeLayout, offsets: &[u64], visits: &[Visits], line_bytes: u64) -> u64 {
    let of = |visit: &Visits| {
        let mut touched = 0u128;
        let mut rest = visit.fields;
        while rest != 0 {
            let field = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let Some(size) = layout.fields.get(field).map(|field| field.size_bytes) else { continue };
            // Of a large field one use touches one line: that of its beginning.
            let first = (visit.start + offsets[field]) / line_bytes;
            let last = (visit.start + offsets[field] + size.min(16) - 1) / line_bytes;
            for line in first..=last {
                touched |= 1 << line.min(127);
            }
        }
        u64::from(touched.count_ones()) * visit.count
    };
    visits.iter().map(of).sum()
}

/// The lines that visits touch as the fields lie.
pub fn lines_now(layout: &TypeLayout, visits: &[Visits], line_bytes: u64) -> u64 {
    let offsets: Vec<u64> = layout.fields.iter().map(|field| field.offset).collect();
    lines(layout, &offsets, visits, line_bytes)
}

/// A better order of a type's members for its visits; `None` if no better one was found.
pub fn propose(layout: &TypeLayout, visits: &[Visits], line_bytes: u64) -> Option<Proposal> {
    let mut weighed = visits.to_vec();
    weighed.sort_by_key(|visit| std::cmp::Reverse(visit.count));
    weighed.truncate(VISITS_MAX);
    let mut order = members(layout, &weighed)?;
    let cost = |order: &[Member]| {
        let (offsets, end) = place(layout, order);
        (end <= layout.size_bytes).then(|| lines(layout, &offsets, &weighed, line_bytes))
    };
    // The order that is there is the one to beat.
    let mut least = cost(&order).unwrap_or(u64::MAX);
    let mut by_weight = order.clone();
    by_weight
        .sort_by_key(|member| (!member.is_fixed, std::cmp::Reverse((member.weight, member.align_bytes))));
    if let Some(other) = cost(&by_weight).filter(|&other| other < least) {
        (order, least) = (by_weight, other);
    }
    for _ in 0..ROUNDS {
        let before = least;
        for from in 0..order.len() {
            for to in 0..order.len() {
                let mut tried = order.clone();
                let member = tried.remove(from);
                if member.is_fixed || tried[to.min(tried.len())..].iter().any(|other| other.is_fixed) {
                    continue;
                }
                tried.insert(to.min(tried.len()), member);
                if let Some(other) = cost(&tried).filter(|&other| other < least) {
                    (order, least) = (tried, other);
                }
            }
        }
        if least == before {
            break;
        }
    }
    let (offsets, used_bytes) = place(layout, &order);
    let (lines_before, lines_after) =
        (lines_now(layout, visits, line_bytes), lines(layout, &offsets, visits, line_bytes));
    let at = |member: &Member| (member.name.clone(), offsets[member.fields[0].0] - member.fields[0].1);
    let members = order.iter().map(at).collect();
    (lines_after < lines_before).then_some(Proposal { members, used_bytes, lines_before, lines_after })
}

/// The members of a type in their order, with how often they are visited; `None` if there are too
/// many, or if they overlap.
fn members(layout: &TypeLayout, visits: &[Visits]) -> Option<Vec<Member>> {
    if layout.fields.len() > FIELDS_MAX {
        return None;
    }
    let mut members: Vec<Member> = Vec::new();
    let mut last = None;
    for (number, field) in layout.fields.iter().enumerate() {
        let weight = visits.iter().filter(|visit| visit.fields >> number & 1 == 1);
        let weight: u64 = weight.map(|visit| visit.count).sum();
        if last != Some(field.member) {
            let name = match field.holds_bits {
                true => field.name.clone(),
                false => field.name.split('.').next().unwrap_or(&field.name).to_owned(),
            };
            let (offset, fields) = (field.offset, Vec::new());
            let is_fixed = field.is_fixed;
            members.push(Member { name, offset, size_bytes: 0, align_bytes: 1, is_fixed, fields, weight: 0 });
        }
        last = Some(field.member);
        let member = members.last_mut()?;
        let within = field.offset - member.offset;
        member.fields.push((number, within, field.size_bytes));
        member.size_bytes = member.size_bytes.max(within + field.size_bytes);
        member.align_bytes = member.align_bytes.max(field.align_bytes.max(1));
        member.weight = member.weight.max(weight);
    }
    let overlap = members.windows(2).any(|pair| pair[0].offset + pair[0].size_bytes > pair[1].offset);
    (!overlap && (2..=MEMBERS_MAX).contains(&members.len())).then_some(members)
}

/// The offsets of fields where members follow each other in this order, and the end of the last.
fn place(layout: &TypeLayout, order: &[Member]) -> (Vec<u64>, u64) {
    let mut offsets = vec![0; layout.fields.len()];
    let mut end = 0u64;
    for member in order {
        let start = match member.is_fixed {
            true => member.offset,
            false => end.next_multiple_of(member.align_bytes),
        };
        for &(number, within, _) in &member.fields {
            offsets[number] = start + within;
        }
        end = end.max(start + member.size_bytes);
    }
    (offsets, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::layout::Field;
    use proptest::prelude::*;

    /// A type of fields with these sizes and what lies between them.
    fn layout(sizes: &[u64]) -> TypeLayout {
        let mut offset = 0u64;
        let field = |(member, &size): (usize, &u64)| {
            offset = offset.next_multiple_of(size.min(8));
            let field = Field {
                name: format!("f{member}"),
                offset,
                size_bytes: size,
                align_bytes: size.min(8),
                member,
                ..Field::default()
            };
            offset += size;
            field
        };
        let fields: Vec<Field> = sizes.iter().enumerate().map(field).collect();
        TypeLayout { name: "t".into(), size_bytes: offset.next_multiple_of(8), fields }
    }

    #[test]
    fn hot_fields_on_two_lines_come_together() {
        let layout = layout(&[8, 64, 8, 48]);
        let visits =
            [Visits { fields: 0b101, start: 0, count: 100 }, Visits { fields: 0b10, start: 0, count: 1 }];
        let proposal = propose(&layout, &visits, 64).unwrap();
        assert_eq!((proposal.lines_before, proposal.lines_after), (201, 101));
        let at = |name: &str| proposal.members.iter().find(|member| member.0 == name).unwrap().1;
        assert!(at("f0") < 64 && at("f2") < 64, "{proposal:?}");
        assert_eq!(propose(&layout, &visits[1..], 64), None, "one line is the least");
    }

    #[test]
    fn members_that_are_fixed_stay() {
        let mut layout = layout(&[8, 64, 8]);
        layout.fields[0].is_fixed = true;
        let visits = [Visits { fields: 0b101, start: 0, count: 100 }];
        let proposal = propose(&layout, &visits, 64).unwrap();
        assert_eq!((proposal.members[0].clone(), proposal.lines_after), (("f0".into(), 0), 100));
    }

    proptest! {
        #[test]
        fn a_proposal_keeps_all_members_apart_and_aligned(
            sizes in prop::collection::vec(prop::sample::select(vec![1u64, 2, 4, 8, 24, 40]), 2..12),
            visits in prop::collection::vec((1u128..4096, 0u64..4, 1u64..100), 1..12),
        ) {
            let layout = layout(&sizes);
            let mask = (1u128 << sizes.len()) - 1;
            let visit = |(fields, start, count): (u128, u64, u64)| {
                Visits { fields: fields & mask, start: start * 16, count }
            };
            let visits: Vec<Visits> = visits.into_iter().map(visit).collect();
            if let Some(proposal) = propose(&layout, &visits, 64) {
                prop_assert!(proposal.lines_after < proposal.lines_before);
                prop_assert!(proposal.used_bytes <= layout.size_bytes);
                let mut placed: Vec<(u64, u64)> = Vec::new();
                for (name, offset) in &proposal.members {
                    let field = layout.fields.iter().find(|field| field.name == *name).unwrap();
                    prop_assert!(offset.is_multiple_of(field.align_bytes));
                    prop_assert!(placed.iter().all(|&(start, size)| start + size <= *offset || offset + field.size_bytes <= start));
                    placed.push((*offset, field.size_bytes));
                }
                prop_assert_eq!(placed.len(), sizes.len());
            }
        }
    }
}
