//! Functions of a file, and the variables in them.

use super::entries::{DebugFile, Entry, EntryId};
use gimli::{AttributeValue, Operation};
use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind, Register};
use std::ops::Range;
use symbol::SectionReader;

/// Numbers of registers in DWARF.
const RBP: u16 = 6;
const RSP: u16 = 7;

/// What offsets of variables in a frame count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameBase {
    /// The canonical frame address: the stack pointer before the call of the function, moved by so
    /// many bytes.
    Canonical(i64),
    /// The stack pointer in the function's body, behind its prologue.
    StackPointer,
}

/// A place that a variable has in the frame of its function.
#[derive(Clone, Debug)]
pub(crate) struct FrameVariable {
    pub(crate) id: EntryId,
    /// Its name, behind that of its function, which may be inlined in another one.
    pub(crate) name: String,
    /// Ranges of code that all must hold an address at which it is in scope.
    pub(crate) scopes: Vec<Vec<Range<u64>>>,
    /// What its place counts from, and where it begins from there.
    pub(crate) base: FrameBase,
    pub(crate) offset: i64,
    /// Bytes.
    pub(crate) size_bytes: u64,
    /// Whether it has other places, too.
    pub(crate) moves: bool,
}

impl FrameVariable {
    /// Its bytes, from its base on.
    pub(crate) fn range(&self) -> Range<i64> {
        self.offset..self.offset.saturating_add_unsigned(self.size_bytes)
    }

    /// Whether it has the bytes that it has for itself alone, in all scopes of its function.
    pub(crate) fn is_alone<'a>(&self, mut all: impl Iterator<Item = &'a FrameVariable>) -> bool {
        let own = self.range();
        !all.any(|other| {
            let range = other.range();
            other.id != self.id && other.base == self.base && range.start < own.end && own.start < range.end
        })
    }
}

/// The variables and parameters of a function, those of inner scopes first.
pub(crate) fn variables_of(file: &mut DebugFile, function: EntryId) -> Vec<(EntryId, Entry)> {
    let rows = file.rows(function.unit);
    let Some(own) = rows.get(function.row as usize) else { return Vec::new() };
    let is_variable = |entry: &Entry| {
        [gimli::DW_TAG_variable, gimli::DW_TAG_formal_parameter].contains(&entry.tag)
            && entry.location.is_some()
    };
    let mut found: Vec<(EntryId, Entry)> = (function.row + 1..own.end)
        .map(|row| (EntryId { row, ..function }, rows[row as usize].clone()))
        .filter(|(_, entry)| is_variable(entry))
        .collect();
    found.reverse();
    found
}

/// The ranges of code in which an entry of a function is in scope: it is at an address that each of
/// the scopes between it and the function holds.
pub(crate) fn scopes_of(file: &mut DebugFile, function: EntryId, entry: &Entry) -> Vec<Vec<Range<u64>>> {
    let (mut scopes, mut parent) = (Vec::new(), entry.parent);
    while let Some(row) = parent.filter(|&row| row > function.row) {
        let Some(scope) = file.entry(EntryId { row, ..function }) else { break };
        if !scope.ranges.is_empty() {
            scopes.push(scope.ranges.clone());
        }
        parent = scope.parent;
    }
    scopes
}

/// Whether each of the scopes holds an address.
pub(crate) fn is_in_scope(scopes: &[Vec<Range<u64>>], address: u64) -> bool {
    scopes.iter().all(|ranges| ranges.iter().any(|range| range.contains(&address)))
}

/// What offsets of variables of a function count from; `None` if that is nothing that lasts from
/// its prologue to its end.
fn frame_base(file: &mut DebugFile, function: EntryId) -> Option<FrameBase> {
    let AttributeValue::Exprloc(base) = file.entry(function)?.frame_base? else { return None };
    match &file.operations(function.unit, base)?[..] {
        [Operation::CallFrameCFA] => Some(FrameBase::Canonical(0)),
        // Compilers take this where a prologue touches the pages of a large frame.
        [Operation::CallFrameCFA, Operation::SignedConstant { value }, Operation::Plus] => {
            Some(FrameBase::Canonical(*value))
        }
        // Below the return address lies what the function has kept of its caller's `rbp`.
        [Operation::Register { register }] if register.0 == RBP => Some(FrameBase::Canonical(-16)),
        [Operation::Register { register }] if register.0 == RSP => Some(FrameBase::StackPointer),
        _ => None,
    }
}

/// The variables and parameters of a function that have places in its frame, those of inner scopes
/// first. One that moves has an entry for each place that is in the frame, whose scopes are the
/// code in which it lies there.
pub(crate) fn frame_variables(file: &mut DebugFile, function: EntryId) -> Vec<FrameVariable> {
    let (frame_base, mut found) = (frame_base(file, function), Vec::new());
    for (id, entry) in variables_of(file, function) {
        let Some(location) = entry.location else { continue };
        let places = match location {
            AttributeValue::Exprloc(place) => vec![(None, place)],
            list => {
                let places = file.location_list(function.unit, &list).into_iter();
                places.map(|(range, place)| (Some(range), place)).collect()
            }
        };
        let places: Vec<_> = places
            .into_iter()
            .filter_map(|(range, place)| Some((range, place_of(file, function.unit, place, frame_base)?)))
            .collect();
        if places.is_empty() {
            continue;
        }
        let of = file.type_of(id);
        let Some(size_bytes) = of.and_then(|of| file.size_of(of)).filter(|&size| size > 0) else { continue };
        let own = file.name_of(id).unwrap_or_else(|| "(unnamed)".into());
        let name = format!("{}:{own}", function_around(file, id).unwrap_or_default());
        let scopes = scopes_of(file, function, &entry);
        for (range, (base, offset)) in places {
            let (moves, mut scopes) = (range.is_some(), scopes.clone());
            scopes.extend(range.map(|range| vec![range]));
            found.push(FrameVariable { id, name: name.clone(), scopes, base, offset, size_bytes, moves });
        }
    }
    found
}

/// An array of variable length, which has no place of its own in the frame.
#[derive(Clone, Debug)]
pub(crate) struct VariableArray {
    pub(crate) id: EntryId,
    /// Its name, behind that of its function.
    pub(crate) name: String,
    /// Ranges of code that all must hold an address at which it is in scope.
    pub(crate) scopes: Vec<Vec<Range<u64>>>,
    pub(crate) element_bytes: u64,
}

/// The arrays of a function whose length only a run tells.
pub(crate) fn variable_arrays(file: &mut DebugFile, function: EntryId) -> Vec<VariableArray> {
    let mut found = Vec::new();
    for (id, entry) in variables_of(file, function) {
        let Some(of) = file.type_of(id).and_then(|of| file.peeled(of)) else { continue };
        let is_array = file.entry(of).is_some_and(|of| of.tag == gimli::DW_TAG_array_type);
        if !is_array || file.size_of(of).unwrap_or(0) > 0 {
            continue;
        }
        let element = file.element(of).and_then(|element| file.size_of(element));
        let Some(element_bytes) = element.filter(|&bytes| bytes > 0) else { continue };
        let own = file.name_of(id).unwrap_or_else(|| "(unnamed)".into());
        let name = format!("{}:{own}", function_around(file, id).unwrap_or_default());
        found.push(VariableArray { id, name, scopes: scopes_of(file, function, &entry), element_bytes });
    }
    found
}

/// Whether the instruction at an address, which lies at an offset of the file, refers to memory by
/// a pointer or an index, or calls a function that may: not to a fixed place of its frame.
pub(crate) fn is_by_pointer(file: &DebugFile, offset: u64, address: u64) -> bool {
    let code = file.bytes(offset, 16);
    let instruction = Decoder::with_ip(64, &code, address, DecoderOptions::NONE).decode();
    let of_frame = [Register::None, Register::RSP, Register::RBP, Register::RIP];
    let by_pointer = |kind: OpKind| match kind {
        OpKind::Memory => {
            !of_frame.contains(&instruction.memory_base()) || instruction.memory_index() != Register::None
        }
        // String instructions have pointers for operands.
        OpKind::MemorySegRSI | OpKind::MemoryESRDI => true,
        _ => false,
    };
    let calls = [FlowControl::Call, FlowControl::IndirectCall].contains(&instruction.flow_control());
    calls || instruction.op_kinds().any(by_pointer)
}

/// The base and the offset of a place, if it is one in a frame.
fn place_of(
    file: &DebugFile,
    unit: u32,
    place: gimli::Expression<SectionReader>,
    frame_base: Option<FrameBase>,
) -> Option<(FrameBase, i64)> {
    match (&file.operations(unit, place)?[..], frame_base) {
        ([Operation::FrameOffset { offset }], Some(base)) => Some((base, *offset)),
        // Compilers take this where a frame is aligned, and where variables move.
        ([Operation::RegisterOffset { register, offset, .. }], _) if register.0 == RSP => {
            Some((FrameBase::StackPointer, *offset))
        }
        _ => None,
    }
}

/// The name of the function around a variable, which may be inlined in another one.
fn function_around(file: &mut DebugFile, variable: EntryId) -> Option<String> {
    let functions = [gimli::DW_TAG_subprogram, gimli::DW_TAG_inlined_subroutine];
    let mut parent = file.entry(variable)?.parent;
    while let Some(row) = parent {
        let id = EntryId { row, ..variable };
        let entry = file.entry(id)?;
        if functions.contains(&entry.tag) {
            return file.name_of(id);
        }
        parent = entry.parent;
    }
    None
}
