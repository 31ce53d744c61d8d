//! The descriptions of a file's debug information as plain rows.
//!
//! **Why.** Questions about types go up to parents and over to other units, which a cursor over
//! DWARF cannot do. A unit becomes rows when something in it is first asked for, and stays.
//! **Leaves out** type units. Source: DWARF 5, section 2.

use gimli::{AttributeValue, DwTag, UnitOffset};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use symbol::{DebugSections, SectionReader};

/// A number of an entry: its unit, and its row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryId {
    pub(crate) unit: u32,
    pub(crate) row: u32,
}

/// A description. References are offsets in `.debug_info`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) offset: usize,
    pub(crate) tag: DwTag,
    pub(crate) parent: Option<u32>,
    /// The row behind its last descendant.
    pub(crate) end: u32,
    pub(crate) name: Option<String>,
    /// Its type.
    pub(crate) of: Option<usize>,
    /// The entry that it is an instance of, or that declares it.
    pub(crate) origin: Option<usize>,
    pub(crate) size_bytes: Option<u64>,
    /// Of a member its offset.
    pub(crate) member_offset: Option<u64>,
    /// Of a member of bits, its first bit and how many it has.
    pub(crate) bits: Option<(u64, u64)>,
    /// Of a subrange the number of elements.
    pub(crate) count: Option<u64>,
    pub(crate) is_declaration: bool,
    pub(crate) ranges: Vec<Range<u64>>,
    pub(crate) location: Option<AttributeValue<SectionReader>>,
    /// Of a function: what `DW_OP_fbreg` counts from.
    pub(crate) frame_base: Option<AttributeValue<SectionReader>>,
}

struct Unit {
    start: usize,
    unit: gimli::Unit<SectionReader>,
    rows: Option<Vec<Entry>>,
    /// Ranges of code with the rows of their functions, sorted, once they are asked for.
    functions: Option<Vec<(Range<u64>, u32)>>,
}

/// The debug information of a file.
pub(crate) struct DebugFile {
    sections: DebugSections,
    units: Vec<Unit>,
    /// Ranges of code with the number of their unit, sorted.
    ranges: Vec<(Range<u64>, u32)>,
    /// Variables by address, once they are asked for.
    variables: Option<HashMap<u64, EntryId>>,
    code: Option<std::fs::File>,
}

impl DebugFile {
    /// Reads the file at `path`; `None` if it has no debug information.
    pub(crate) fn read(path: &Path) -> Option<DebugFile> {
        let sections = DebugSections::read(path)?;
        let (mut units, mut ranges) = (Vec::new(), Vec::new());
        let mut headers = sections.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.debug_info_offset() else { continue };
            let Ok(unit) = sections.dwarf.unit(header) else { continue };
            let number = units.len() as u32;
            if let Ok(mut own) = sections.dwarf.unit_ranges(&unit) {
                while let Ok(Some(range)) = own.next() {
                    ranges.push((range.begin..range.end, number));
                }
            }
            units.push(Unit { start: start.0, unit, rows: None, functions: None });
        }
        ranges.sort_by_key(|(range, _)| range.start);
        let code = std::fs::File::open(path).ok();
        Some(DebugFile { sections, units, ranges, variables: None, code })
    }

    /// The link address of the code at `offset` of the file.
    pub(crate) fn link_address(&self, offset: u64) -> Option<u64> {
        self.sections.link_address(offset)
    }

    /// How far below the frame's canonical address the stack pointer is at a link address of code.
    pub(crate) fn stack_distance(&self, address: u64) -> Option<u64> {
        self.sections.stack_distance(address)
    }

    /// Up to `len` bytes of the file at an offset.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; len];
        let read = self.code.as_ref().and_then(|file| file.read_at(&mut bytes, offset).ok());
        bytes.truncate(read.unwrap_or(0));
        bytes
    }

    /// The unit with the code at a link address.
    pub(crate) fn unit_at(&self, address: u64) -> Option<u32> {
        let behind = self.ranges.partition_point(|(range, _)| range.start <= address);
        let near = self.ranges[..behind].iter().rev().take(8);
        near.filter(|(range, _)| range.contains(&address)).map(|(_, unit)| *unit).next()
    }

    /// The rows of a unit.
    pub(crate) fn rows(&mut self, unit: u32) -> &[Entry] {
        let DebugFile { sections, units, .. } = self;
        let Some(unit) = units.get_mut(unit as usize) else { return &[] };
        let Unit { start, unit, rows, .. } = unit;
        rows.get_or_insert_with(|| read_rows(&sections.dwarf, unit, *start))
    }

    /// The function of a unit with the code at a link address.
    pub(crate) fn function_at(&mut self, unit: u32, address: u64) -> Option<EntryId> {
        self.rows(unit);
        let Unit { rows: Some(rows), functions, .. } = self.units.get_mut(unit as usize)? else {
            return None;
        };
        let functions = functions.get_or_insert_with(|| {
            let all = rows.iter().enumerate().filter(|(_, entry)| entry.tag == gimli::DW_TAG_subprogram);
            let ranges = |(row, entry): (usize, &Entry)| {
                entry.ranges.clone().into_iter().map(move |range| (range, row as u32))
            };
            let mut found: Vec<_> = all.flat_map(ranges).collect();
            found.sort_by_key(|(range, _)| range.start);
            found
        });
        let behind = functions.partition_point(|(range, _)| range.start <= address);
        let (_, row) =
            functions[..behind].iter().rev().take(8).find(|(range, _)| range.contains(&address))?;
        Some(EntryId { unit, row: *row })
    }

    /// The entry with this number.
    pub(crate) fn entry(&mut self, id: EntryId) -> Option<&Entry> {
        self.rows(id.unit).get(id.row as usize)
    }

    /// The entry at an offset of `.debug_info`.
    pub(crate) fn at(&mut self, offset: usize) -> Option<EntryId> {
        let unit = self.units.partition_point(|unit| unit.start <= offset).checked_sub(1)? as u32;
        let row = self.rows(unit).binary_search_by_key(&offset, |entry| entry.offset).ok()?;
        Some(EntryId { unit, row: row as u32 })
    }

    /// The type of an entry, or of the entry that it is an instance of.
    pub(crate) fn type_of(&mut self, id: EntryId) -> Option<EntryId> {
        let mut entry = self.entry(id)?.clone();
        for _ in 0..4 {
            if let Some(of) = entry.of {
                return self.at(of);
            }
            let origin = self.at(entry.origin?)?;
            entry = self.entry(origin)?.clone();
        }
        None
    }

    /// The name of an entry, or of the entry that it is an instance of.
    pub(crate) fn name_of(&mut self, id: EntryId) -> Option<String> {
        self.inherited(id, |entry| entry.name.clone())
    }

    fn inherited(&mut self, id: EntryId, value: impl Fn(&Entry) -> Option<String>) -> Option<String> {
        let mut id = id;
        for _ in 0..4 {
            let entry = self.entry(id)?;
            if let Some(found) = value(entry) {
                return Some(found);
            }
            let origin = entry.origin?;
            id = self.at(origin)?;
        }
        None
    }

    /// The variable at a link address.
    pub(crate) fn variable_at(&mut self, address: u64) -> Option<EntryId> {
        if self.variables.is_none() {
            let mut found = HashMap::new();
            for unit in 0..self.units.len() as u32 {
                self.rows(unit);
                let Unit { unit: own, rows: Some(rows), .. } = &self.units[unit as usize] else { continue };
                for (row, entry) in rows.iter().enumerate().filter(|(_, it)| it.tag == gimli::DW_TAG_variable)
                {
                    let Some(AttributeValue::Exprloc(expression)) = &entry.location else { continue };
                    let mut operations = (*expression).operations(own.encoding());
                    let address = match operations.next() {
                        Ok(Some(gimli::Operation::Address { address })) => address,
                        Ok(Some(gimli::Operation::AddressIndex { index })) => {
                            match self.sections.dwarf.address(own, index) {
                                Ok(address) => address,
                                Err(_) => continue,
                            }
                        }
                        _ => continue,
                    };
                    found.insert(address, EntryId { unit, row: row as u32 });
                }
            }
            self.variables = Some(found);
        }
        self.variables.as_ref()?.get(&address).copied()
    }

    /// The expression by which a location holds at an address of code.
    pub(crate) fn location_at(
        &self,
        unit: u32,
        location: &AttributeValue<SectionReader>,
        address: u64,
    ) -> Option<gimli::Expression<SectionReader>> {
        if let AttributeValue::Exprloc(expression) = location {
            return Some(*expression);
        }
        let own = &self.units.get(unit as usize)?.unit;
        let mut list = self.sections.dwarf.attr_locations(own, *location).ok()??;
        while let Ok(Some(entry)) = list.next() {
            if (entry.range.begin..entry.range.end).contains(&address) {
                return Some(entry.data);
            }
        }
        None
    }

    /// The expressions of a location that changes, with the ranges of code in which each holds;
    /// none of a location that does not.
    pub(crate) fn location_list(
        &self,
        unit: u32,
        location: &AttributeValue<SectionReader>,
    ) -> Vec<(Range<u64>, gimli::Expression<SectionReader>)> {
        let mut all = Vec::new();
        let own = self.units.get(unit as usize).map(|own| &own.unit);
        let list = own.and_then(|own| self.sections.dwarf.attr_locations(own, *location).ok()?);
        let Some(mut list) = list else { return all };
        // What stands before damage still holds.
        while let Ok(Some(entry)) = list.next() {
            all.push((entry.range.begin..entry.range.end, entry.data));
        }
        all
    }

    /// The operations of an expression.
    pub(crate) fn operations(
        &self,
        unit: u32,
        expression: gimli::Expression<SectionReader>,
    ) -> Option<Vec<gimli::Operation<SectionReader>>> {
        let own = &self.units.get(unit as usize)?.unit;
        let (mut operations, mut all) = (expression.operations(own.encoding()), Vec::new());
        while let Some(operation) = operations.next().ok()? {
            all.push(operation);
        }
        Some(all)
    }

    /// The first operation of an expression, if it is the only one but for one that says that the
    /// result is the value itself.
    pub(crate) fn single(
        &self,
        unit: u32,
        expression: gimli::Expression<SectionReader>,
    ) -> Option<gimli::Operation<SectionReader>> {
        let own = &self.units.get(unit as usize)?.unit;
        let mut operations = expression.operations(own.encoding());
        let first = operations.next().ok()??;
        match operations.next() {
            Ok(None) | Ok(Some(gimli::Operation::StackValue)) => Some(first),
            _ => None,
        }
    }
}

/// Reads the rows of a unit.
fn read_rows(
    dwarf: &gimli::Dwarf<SectionReader>,
    unit: &gimli::Unit<SectionReader>,
    start: usize,
) -> Vec<Entry> {
    let mut rows: Vec<Entry> = Vec::new();
    // The rows that are open, the outermost first.
    let mut open: Vec<(isize, u32)> = Vec::new();
    let mut cursor = unit.entries();
    // What stands before damage still holds.
    while let Ok(Some(entry)) = cursor.next_dfs() {
        let row = rows.len() as u32;
        while let Some(&(_, closed)) = open.last().filter(|(depth, _)| *depth >= entry.depth()) {
            rows[closed as usize].end = row;
            open.pop();
        }
        let parent = open.last().map(|(_, row)| *row);
        open.push((entry.depth(), row));
        rows.push(read_entry(dwarf, unit, start, entry, parent));
    }
    let end = rows.len() as u32;
    open.into_iter().for_each(|(_, row)| rows[row as usize].end = end);
    rows
}

fn read_entry(
    dwarf: &gimli::Dwarf<SectionReader>,
    unit: &gimli::Unit<SectionReader>,
    start: usize,
    entry: &gimli::DebuggingInformationEntry<SectionReader>,
    parent: Option<u32>,
) -> Entry {
    let value = |name| entry.attr_value(name);
    let text = |name| {
        let text = dwarf.attr_string(unit, value(name)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let reference = |name| match value(name)? {
        AttributeValue::UnitRef(UnitOffset(offset)) => Some(start + offset),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    };
    let number = |name| value(name)?.udata_value();
    let has_code = [gimli::DW_TAG_subprogram, gimli::DW_TAG_inlined_subroutine, gimli::DW_TAG_lexical_block];
    let mut ranges = Vec::new();
    if has_code.contains(&entry.tag()) {
        if let Ok(mut own) = dwarf.die_ranges(unit, entry) {
            while let Ok(Some(range)) = own.next() {
                ranges.push(range.begin..range.end);
            }
        }
    }
    let bound = || number(gimli::DW_AT_upper_bound).and_then(|bound| bound.checked_add(1));
    let first_bit = number(gimli::DW_AT_data_bit_offset);
    Entry {
        offset: start + entry.offset().0,
        tag: entry.tag(),
        parent,
        end: 0,
        name: text(gimli::DW_AT_name),
        of: reference(gimli::DW_AT_type),
        origin: reference(gimli::DW_AT_abstract_origin).or_else(|| reference(gimli::DW_AT_specification)),
        size_bytes: number(gimli::DW_AT_byte_size),
        member_offset: number(gimli::DW_AT_data_member_location).or(first_bit.map(|bit| bit / 8)),
        bits: first_bit.zip(number(gimli::DW_AT_bit_size)),
        count: number(gimli::DW_AT_count).or_else(bound),
        is_declaration: value(gimli::DW_AT_declaration).is_some(),
        ranges,
        location: value(gimli::DW_AT_location),
        frame_base: value(gimli::DW_AT_frame_base),
    }
}
