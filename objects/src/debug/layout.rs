//! Types as their fields.
//!
//! Structures within structures are taken apart, arrays and unions stay one field. Members of bits
//! that follow each other are one field, because one access reads and writes several of them.
//! **Leaves out** bits by the terms of DWARF 3, which are fields of whole storage units.

use super::entries::{DebugFile, Entry, EntryId};

/// A type that objects have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeLayout {
    /// Its name, with the namespaces around it.
    pub name: String,
    /// Bytes.
    pub size_bytes: u64,
    /// Its fields by offset; of a type that is no structure none.
    pub fields: Vec<Field>,
}

/// A field of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name, with those of structures around it.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// Where it begins.
    pub offset: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// The bytes of which its address is a multiple, as far as its type tells.
    pub align_bytes: u64,
    /// The member of the type to which it belongs: fields of one member stay together.
    pub member: usize,
    /// Whether the language fixes its place: members of base classes, and what the compiler adds.
    pub is_fixed: bool,
    /// Whether it is several members of bits, whose names it has.
    pub holds_bits: bool,
}

impl Field {
    /// Where it ends.
    fn end(&self) -> u64 {
        self.offset + self.size_bytes
    }
}

impl TypeLayout {
    /// The number of the field that holds a byte.
    pub fn field_at(&self, offset: u64) -> Option<usize> {
        let behind = self.fields.partition_point(|field| field.offset <= offset);
        let before = self.fields[..behind].iter().enumerate().rev();
        before.take(4).find(|(_, field)| offset - field.offset < field.size_bytes).map(|(number, _)| number)
    }

    /// Bytes that no field has: where they begin, and how many they are.
    pub fn holes(&self) -> Vec<(u64, u64)> {
        let (mut holes, mut end) = (Vec::new(), 0);
        for field in &self.fields {
            if field.offset > end {
                holes.push((end, field.offset - end));
            }
            end = end.max(field.offset + field.size_bytes);
        }
        if !self.fields.is_empty() && end < self.size_bytes {
            holes.push((end, self.size_bytes - end));
        }
        holes
    }
}

/// Structures within structures are taken apart to this depth.
const DEPTH_MAX: usize = 8;
/// A structure with more fields than this is no structure.
const FIELDS_MAX: usize = 4096;

impl DebugFile {
    /// A type without its qualifiers and without type definitions; `None` for void.
    pub(crate) fn peeled(&mut self, id: EntryId) -> Option<EntryId> {
        let mut id = id;
        for _ in 0..16 {
            let entry = self.entry(id)?;
            match entry.tag {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {
                    let of = entry.of?;
                    id = self.at(of)?;
                }
                _ => return Some(id),
            }
        }
        None
    }

    /// The type that a pointer or a reference points to; `None` if it is no pointer, or one to
    /// void.
    pub(crate) fn pointee(&mut self, id: EntryId) -> Option<EntryId> {
        let id = self.peeled(id)?;
        let entry = self.entry(id)?;
        let points =
            [gimli::DW_TAG_pointer_type, gimli::DW_TAG_reference_type, gimli::DW_TAG_rvalue_reference_type];
        let of = entry.of.filter(|_| points.contains(&entry.tag))?;
        let of = self.at(of)?;
        self.peeled(of)?;
        Some(of)
    }

    /// The type of an array's elements; another type is its own.
    pub(crate) fn element(&mut self, id: EntryId) -> Option<EntryId> {
        let mut id = id;
        for _ in 0..4 {
            let peeled = self.peeled(id)?;
            let entry = self.entry(peeled)?;
            match (entry.tag, entry.of) {
                (gimli::DW_TAG_array_type, Some(of)) => id = self.at(of)?,
                _ => return Some(id),
            }
        }
        None
    }

    /// The bytes of a type.
    pub(crate) fn size_of(&mut self, id: EntryId) -> Option<u64> {
        let id = self.peeled(id)?;
        let entry = self.entry(id)?.clone();
        match entry.tag {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Some(entry.size_bytes.unwrap_or(8)),
            gimli::DW_TAG_array_type if entry.size_bytes.is_none() => {
                let element = self.at(entry.of?)?;
                let mut size = self.size_of(element)?;
                for row in id.row + 1..entry.end {
                    let child = self.entry(EntryId { row, ..id })?;
                    if child.tag == gimli::DW_TAG_subrange_type {
                        size = size.checked_mul(child.count.unwrap_or(0))?;
                    }
                }
                Some(size)
            }
            _ if entry.is_declaration => None,
            _ => entry.size_bytes,
        }
    }

    /// The name of a type.
    pub(crate) fn type_name(&mut self, id: EntryId) -> String {
        self.type_name_within(id, 0)
    }

    fn type_name_within(&mut self, id: EntryId, depth: usize) -> String {
        let Some(entry) = self.entry(id).cloned().filter(|_| depth < DEPTH_MAX) else { return "?".into() };
        let of = |file: &mut DebugFile| match entry.of.and_then(|of| file.at(of)) {
            Some(of) => file.type_name_within(of, depth + 1),
            None => "void".into(),
        };
        match entry.tag {
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => of(self),
            gimli::DW_TAG_pointer_type if entry.name.is_none() => of(self) + " *",
            gimli::DW_TAG_reference_type => of(self) + " &",
            gimli::DW_TAG_rvalue_reference_type => of(self) + " &&",
            gimli::DW_TAG_array_type => of(self) + "[]",
            gimli::DW_TAG_subroutine_type => "function".into(),
            _ => match &entry.name {
                Some(name) => self.scope(id) + name,
                None => "(unnamed)".into(),
            },
        }
    }

    /// The namespaces and structures around a type, each followed by two colons.
    fn scope(&mut self, id: EntryId) -> String {
        let mut scope = String::new();
        let mut parent = self.entry(id).and_then(|entry| entry.parent);
        while let Some(row) = parent {
            let Some(entry) = self.entry(EntryId { row, ..id }) else { break };
            parent = entry.parent;
            let names = [
                gimli::DW_TAG_namespace,
                gimli::DW_TAG_structure_type,
                gimli::DW_TAG_class_type,
                gimli::DW_TAG_union_type,
            ];
            if let Some(name) = entry.name.as_ref().filter(|_| names.contains(&entry.tag)) {
                scope = format!("{name}::{scope}");
            }
        }
        scope
    }

    /// The bytes of which addresses of a type are multiples.
    fn align_of(&mut self, id: EntryId, depth: usize) -> u64 {
        let Some(peeled) = self.peeled(id).filter(|_| depth < DEPTH_MAX) else { return 1 };
        let Some(entry) = self.entry(peeled).cloned() else { return 1 };
        match (entry.tag, entry.of) {
            (gimli::DW_TAG_array_type, Some(of)) => match self.at(of) {
                Some(of) => self.align_of(of, depth + 1),
                None => 1,
            },
            (gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type, _) => {
                let members = self.members(peeled, &entry);
                let of = members.into_iter().filter_map(|(_, member)| member.of);
                let of: Vec<usize> = of.collect();
                let align =
                    |file: &mut DebugFile, of| file.at(of).map_or(1, |of| file.align_of(of, depth + 1));
                of.into_iter().map(|of| align(self, of)).max().unwrap_or(1)
            }
            _ => self.size_of(peeled).filter(|size| size.is_power_of_two()).map_or(1, |size| size.min(16)),
        }
    }

    /// The members and base classes of a structure.
    fn members(&mut self, id: EntryId, entry: &Entry) -> Vec<(EntryId, Entry)> {
        let rows = self.rows(id.unit);
        let is_member = |entry: &Entry| {
            entry.parent == Some(id.row)
                && [gimli::DW_TAG_member, gimli::DW_TAG_inheritance].contains(&entry.tag)
                && entry.location.is_none()
                && !entry.is_declaration
        };
        let children = (id.row + 1..entry.end).map(|row| (EntryId { row, ..id }, rows[row as usize].clone()));
        children.filter(|(_, entry)| is_member(entry)).take(FIELDS_MAX).collect()
    }

    /// A type as its fields; `None` if its size is not known.
    pub(crate) fn layout(&mut self, id: EntryId) -> Option<TypeLayout> {
        let size_bytes = self.size_of(id).filter(|&size| size > 0)?;
        let mut fields = Vec::new();
        let around = Around { name: "", base: 0, depth: 0, member: None };
        self.fields(id, &around, &mut fields);
        fields.sort_by_key(|field: &Field| (field.offset, field.size_bytes));
        Some(TypeLayout { name: self.type_name(id), size_bytes, fields })
    }

    fn fields(&mut self, id: EntryId, around: &Around<'_>, fields: &mut Vec<Field>) -> Option<()> {
        let peeled = self.peeled(id)?;
        let entry = self.entry(peeled)?.clone();
        for (number, (_, member)) in self.members(peeled, &entry).into_iter().enumerate() {
            let of = self.at(member.of?)?;
            let offset = around.base + member.member_offset.unwrap_or(0);
            let is_base = member.tag == gimli::DW_TAG_inheritance;
            let name = match (&member.name, around.name) {
                (Some(name), "") => name.clone(),
                (Some(name), outer) => format!("{outer}.{name}"),
                (None, outer) => outer.to_owned(),
            };
            let is_fixed = is_base || member.name.as_deref().is_some_and(|name| name.starts_with("_vptr"));
            let (number, is_fixed) = around.member.unwrap_or((number, is_fixed));
            let inner = self.peeled(of)?;
            let tag = self.entry(inner)?.tag;
            let before = fields.len();
            let is_structure = [gimli::DW_TAG_structure_type, gimli::DW_TAG_class_type].contains(&tag);
            if is_structure && around.depth < DEPTH_MAX {
                let depth = around.depth + 1;
                let around = Around { name: &name, base: offset, depth, member: Some((number, is_fixed)) };
                self.fields(of, &around, fields);
            }
            if let Some((first, count)) = member.bits {
                let (start, end) = (around.base + first / 8, around.base + (first + count).div_ceil(8));
                if let Some(field) =
                    fields.last_mut().filter(|field| field.holds_bits && start <= field.end())
                {
                    field.size_bytes = end.max(field.end()) - field.offset;
                    field.name = format!("{}, {name}", field.name);
                    continue;
                }
                let (type_name, align_bytes) = ("bits".into(), self.align_of(of, 0));
                let (offset, size_bytes, member) = (start, end - start, number);
                let holds_bits = true;
                fields.push(Field {
                    name,
                    type_name,
                    offset,
                    size_bytes,
                    align_bytes,
                    member,
                    is_fixed,
                    holds_bits,
                });
                continue;
            }
            // A base class without members, and an array at the end, have no bytes.
            let size_bytes = self.size_of(of).unwrap_or(0);
            if fields.len() == before && fields.len() < FIELDS_MAX && size_bytes > 0 && !is_base {
                let (type_name, align_bytes) = (self.type_name(of), self.align_of(of, 0));
                let name = if name.is_empty() { "(unnamed)".into() } else { name };
                fields.push(Field {
                    name,
                    type_name,
                    offset,
                    size_bytes,
                    align_bytes,
                    member: number,
                    is_fixed,
                    holds_bits: false,
                });
            }
        }
        Some(())
    }
}

/// What lies around the members of a structure.
struct Around<'a> {
    /// The name of the structure as a member; empty for the outermost one.
    name: &'a str,
    /// Where it begins.
    base: u64,
    depth: usize,
    /// The outermost member that it belongs to, and whether that is fixed.
    member: Option<(usize, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_belongs_to_a_field_or_to_a_hole() {
        let field = |name: &str, offset, size_bytes| Field {
            name: name.into(),
            offset,
            size_bytes,
            align_bytes: size_bytes,
            ..Field::default()
        };
        let fields = vec![field("a", 0, 1), field("b", 8, 8), field("c", 16, 4)];
        let layout = TypeLayout { name: "t".into(), size_bytes: 24, fields };
        assert_eq!(layout.field_at(0), Some(0));
        assert_eq!(layout.field_at(1), None);
        assert_eq!(layout.field_at(15), Some(1));
        assert_eq!(layout.field_at(19), Some(2));
        assert_eq!(layout.holes(), [(1, 7), (20, 4)]);
        assert_eq!(TypeLayout { size_bytes: 8, ..TypeLayout::default() }.holes(), []);
    }
}
