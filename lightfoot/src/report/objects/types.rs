//! Types and fields of objects: rows, and the sums of what has no known type.

use super::{cost, Objects};
use crate::run::hierarchy::Hierarchy;
use crate::run::tally::Misses;
use objects::{lines_now, propose, FoundType, Named, ObjectKind, ObjectMisses, TypeLayout, Visits};
use present::order::SortRows;
use serde::Serialize;
use simulate::CycleModel;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A type that objects have.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TypeRow {
    /// Its name.
    pub name: String,
    /// Bytes of a value.
    pub size_bytes: u64,
    /// Misses of all its fields, of bytes between them and behind them.
    #[serde(flatten)]
    pub misses: Misses,
    /// What these misses cost by the machine's declared model, in cycles.
    pub miss_cycles: Option<u64>,
    /// Its fields by offset; empty for a type that is no structure.
    pub fields: Vec<FieldRow>,
    /// Bytes that no field has.
    pub holes: Vec<Hole>,
    /// What told the type of its objects.
    pub told_by: Vec<String>,
    /// With --type: how its fields are used together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    #[serde(skip)]
    layout: TypeLayout,
    #[serde(skip)]
    visits: Vec<Visits>,
    #[serde(skip)]
    line_bytes: u64,
}

/// How the fields of a type are used together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Together {
    /// Visits: uses of fields of one value in a short time.
    pub visits: u64,
    /// Lines that all visits touch.
    pub lines: u64,
    /// Visits that used each field, in their order.
    pub visits_by_field: Vec<u64>,
    /// Pairs of fields that most visits used together.
    pub pairs: Vec<Pair>,
    /// A better order of the members, if one was found.
    pub proposal: Option<ProposalRow>,
}

/// Two fields that are used together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pair {
    /// Their names.
    pub fields: [String; 2],
    /// Visits that used both.
    pub visits: u64,
}

/// A better order of members.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProposalRow {
    /// The members in this order.
    pub members: Vec<PlacedMember>,
    /// Bytes up to the end of the last one.
    pub used_bytes: u64,
    /// Lines that all visits would touch.
    pub lines: u64,
}

/// A member with its place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlacedMember {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: u64,
}

/// Pairs of fields that are reported.
const PAIRS: usize = 10;

/// A field, or what is missed beside fields.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FieldRow {
    /// Its name.
    pub name: String,
    /// The name of its type; empty for what is no field.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Where it begins; null for what is no field.
    pub offset: Option<u64>,
    /// Bytes; null for what is no field.
    pub size_bytes: Option<u64>,
    /// Its misses.
    #[serde(flatten)]
    pub misses: Misses,
    /// Loads, with --accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<u64>,
    /// Stores, with --accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stores: Option<u64>,
}

/// Bytes that no field has.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Hole {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub size_bytes: u64,
}

/// What has no known type, by kind of object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UntypedRow {
    /// The kind of object.
    pub kind: &'static str,
    /// Its misses.
    #[serde(flatten)]
    pub misses: Misses,
}

/// What is missed between fields, and behind them.
const BESIDE: [&str; 2] = ["(between fields)", "(behind the type)"];

impl TypeRow {
    fn of(found: &FoundType, hierarchy: &Hierarchy, model: Option<&CycleModel>) -> TypeRow {
        let misses = |of: &ObjectMisses| hierarchy.of_object(of);
        let is_counted = found.uses.iter().any(|uses| uses.loads + uses.stores > 0);
        let field = |(number, (field, sums)): (usize, (&objects::Field, &ObjectMisses))| FieldRow {
            name: field.name.clone(),
            type_name: field.type_name.clone(),
            offset: Some(field.offset),
            size_bytes: Some(field.size_bytes),
            misses: misses(sums),
            loads: is_counted.then(|| found.uses[number].loads),
            stores: is_counted.then(|| found.uses[number].stores),
        };
        let all = found.layout.fields.iter().zip(&found.fields).enumerate();
        let mut fields: Vec<FieldRow> = all.map(field).collect();
        if !fields.is_empty() {
            for (name, sums) in BESIDE.iter().zip([&found.between, &found.beyond]) {
                if *sums != ObjectMisses::default() {
                    fields.push(FieldRow {
                        name: (*name).into(),
                        misses: misses(sums),
                        ..FieldRow::default()
                    });
                }
            }
        }
        let total = found.total();
        let hole = |(offset, size_bytes)| Hole { offset, size_bytes };
        TypeRow {
            name: found.layout.name.clone(),
            size_bytes: found.layout.size_bytes,
            misses: misses(&total),
            miss_cycles: model.map(|model| cost(model, &total)),
            fields,
            holes: found.layout.holes().into_iter().map(hole).collect(),
            told_by: Vec::new(),
            together: None,
            layout: found.layout.clone(),
            visits: found.visits.clone(),
            line_bytes: u64::from(hierarchy.levels.data.line_bytes),
        }
    }

    /// Finds which fields are used together, and a better order.
    pub(super) fn weigh(&mut self) {
        let TypeRow { layout, visits, line_bytes, .. } = self;
        let count = layout.fields.len();
        let using = |mask: u128| -> u64 {
            visits.iter().filter(|visit| visit.fields & mask == mask).map(|visit| visit.count).sum()
        };
        let bit = |field: usize| if field < 128 { 1u128 << field } else { 0 };
        let mut pairs = Vec::new();
        for first in 0..count.min(128) {
            for second in first + 1..count.min(128) {
                let both = using(bit(first) | bit(second));
                let fields = [first, second].map(|field| layout.fields[field].name.clone());
                pairs.push(Pair { fields, visits: both });
            }
        }
        pairs.retain(|pair| pair.visits > 0);
        pairs.sort_rows_by_key(|pair| Reverse(pair.visits));
        pairs.truncate(PAIRS);
        let proposal = propose(layout, visits, *line_bytes).map(|proposal| ProposalRow {
            members: proposal
                .members
                .into_iter()
                .map(|(name, offset)| PlacedMember { name, offset })
                .collect(),
            used_bytes: proposal.used_bytes,
            lines: proposal.lines_after,
        });
        self.together = Some(Together {
            visits: visits.iter().map(|visit| visit.count).sum(),
            lines: lines_now(layout, visits, *line_bytes),
            visits_by_field: (0..count)
                .map(|field| if field < 128 { using(bit(field)) } else { 0 })
                .collect(),
            pairs,
            proposal,
        });
    }

    /// Bytes of a line of data.
    pub(super) fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    /// First-level misses.
    pub(super) fn weight(&self) -> u64 {
        self.misses.l1d() + self.misses.l1i_misses.unwrap_or(0)
    }
}

impl TypeRow {
    /// Loads and stores of its fields.
    fn accesses(&self) -> Option<u64> {
        let fields = self.fields.iter().filter(|field| field.offset.is_some());
        fields.map(FieldRow::accesses).sum::<Option<u64>>().filter(|_| !self.fields.is_empty())
    }
}

impl FieldRow {
    /// Loads and stores.
    pub(super) fn accesses(&self) -> Option<u64> {
        match (self.loads, self.stores) {
            (Some(loads), Some(stores)) => Some(loads + stores),
            _ => None,
        }
    }
}

/// The types of a run.
pub(super) fn types(named: &Named, hierarchy: &Hierarchy, model: Option<&CycleModel>) -> Vec<TypeRow> {
    let mut rows: Vec<TypeRow> =
        named.types.iter().map(|found| TypeRow::of(found, hierarchy, model)).collect();
    for object in &named.objects {
        if let Some((number, way)) = &object.of_type {
            let told_by = &mut rows[*number as usize].told_by;
            if !told_by.contains(way) {
                told_by.push(way.clone());
            }
        }
    }
    rows.retain(|row| row.misses != hierarchy.of_object(&ObjectMisses::default()));
    rows.sort_rows(|a, b| b.weight().cmp(&a.weight()).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// Sums of objects whose types are not known, by kind.
pub(super) fn untyped(named: &Named, hierarchy: &Hierarchy) -> Vec<UntypedRow> {
    let mut sums: BTreeMap<ObjectKind, ObjectMisses> = BTreeMap::new();
    for object in named.objects.iter().filter(|object| object.of_type.is_none()) {
        sums.entry(object.kind).or_default().add(&object.misses);
    }
    let row = |(kind, sum): (&ObjectKind, &ObjectMisses)| UntypedRow {
        kind: kind.name(),
        misses: hierarchy.of_object(sum),
    };
    let mut rows: Vec<UntypedRow> = sums.iter().map(row).collect();
    rows.sort_rows_by_key(|row| Reverse(row.misses.l1d() + row.misses.l1i_misses.unwrap_or(0)));
    rows
}

/// A line of a table of types or fields.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) misses: Misses,
    pub(super) miss_cycles: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    /// Loads and stores.
    pub(super) accesses: Option<u64>,
}

impl Objects {
    /// The types, then what has none, the largest first.
    pub(super) fn lines_by_type(&self) -> Vec<Line> {
        let of = |row: &TypeRow| Line {
            name: row.name.clone(),
            misses: row.misses,
            miss_cycles: row.miss_cycles,
            size_bytes: Some(row.size_bytes),
            accesses: row.accesses(),
        };
        self.sorted(self.types.iter().map(of).collect())
    }

    /// The fields of all types, then what has none, the largest first.
    pub(super) fn lines_by_field(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for row in &self.types {
            if row.fields.is_empty() {
                lines.push(Line {
                    name: row.name.clone(),
                    misses: row.misses,
                    miss_cycles: None,
                    size_bytes: Some(row.size_bytes),
                    accesses: None,
                });
            }
            lines.extend(row.fields.iter().map(|field| Line {
                name: format!("{}.{}", row.name, field.name),
                misses: field.misses,
                miss_cycles: None,
                size_bytes: field.size_bytes,
                accesses: field.accesses(),
            }));
        }
        self.sorted(lines)
    }

    fn sorted(&self, mut lines: Vec<Line>) -> Vec<Line> {
        lines.extend(self.untyped.iter().map(|row| Line {
            name: format!("({} of unknown type)", row.kind),
            misses: row.misses,
            miss_cycles: None,
            size_bytes: None,
            accesses: None,
        }));
        lines.sort_rows_by_key(|line| Reverse(line.weight()));
        lines
    }
}

impl Line {
    /// First-level misses.
    pub(super) fn weight(&self) -> u64 {
        self.misses.l1d() + self.misses.l1i_misses.unwrap_or(0)
    }
}
