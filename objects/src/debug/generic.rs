//! The type by which a function of a standard library was instantiated: what `Box<T>`, `Vec<T>` and
//! C++ allocators allocate.
//!
//! **Leaves out** functions that one instance serves for all types, which the frames around them
//! tell.

use super::entries::{DebugFile, Entry, EntryId};

/// Classes of C++ whose parameter is what they allocate.
const ALLOCATORS: &[&str] = &["__new_allocator<", "new_allocator<", "allocator<"];
/// Namespaces of Rust whose generic functions allocate their parameter `T`.
const NAMESPACES: &[&str] = &["alloc", "hashbrown", "std"];

/// The type by which the innermost such function at an address was instantiated, and what it is
/// called.
pub(crate) fn instance(file: &mut DebugFile, address: u64) -> Option<(EntryId, String)> {
    let unit = file.unit_at(address)?;
    let is_function = |entry: &Entry| {
        [gimli::DW_TAG_subprogram, gimli::DW_TAG_inlined_subroutine].contains(&entry.tag)
            && entry.ranges.iter().any(|range| range.contains(&address))
    };
    let rows = file.rows(unit).iter().enumerate();
    let around: Vec<u32> = rows.filter(|(_, it)| is_function(it)).map(|(row, _)| row as u32).collect();
    // Rows of inner functions come later.
    around.into_iter().rev().find_map(|row| of_function(file, EntryId { unit, row }))
}

fn of_function(file: &mut DebugFile, function: EntryId) -> Option<(EntryId, String)> {
    let mut id = function;
    for _ in 0..4 {
        let entry = file.entry(id)?.clone();
        let name = entry.name.clone().unwrap_or_default();
        if let Some(parent) = entry.parent {
            let class = EntryId { row: parent, ..id };
            let class_name = file.entry(class).and_then(|entry| entry.name.clone()).unwrap_or_default();
            if ALLOCATORS.iter().any(|start| class_name.starts_with(start)) {
                let of = parameter(file, class, None)?;
                return Some((of, format!("allocator of {}", file.type_name(of))));
            }
        }
        if let Some(of) = parameter(file, id, Some("T")) {
            if NAMESPACES.contains(&outermost(file, id).as_str()) {
                return Some((of, format!("instance {name}")));
            }
        }
        let origin = entry.origin?;
        id = file.at(origin)?;
    }
    None
}

/// The type of a template's first parameter, or of the one with this name.
fn parameter(file: &mut DebugFile, id: EntryId, name: Option<&str>) -> Option<EntryId> {
    let rows = file.rows(id.unit);
    let own = rows.get(id.row as usize)?;
    let is_it = |row: &u32| {
        let entry = &rows[*row as usize];
        entry.tag == gimli::DW_TAG_template_type_parameter
            && entry.parent == Some(id.row)
            && name.is_none_or(|name| entry.name.as_deref() == Some(name))
    };
    let of = (id.row + 1..own.end).find(is_it).and_then(|row| rows[row as usize].of)?;
    let of = file.at(of)?;
    file.size_of(of).filter(|&size| size > 0)?;
    Some(of)
}

/// The outermost namespace around an entry.
fn outermost(file: &mut DebugFile, id: EntryId) -> String {
    let (mut name, mut parent) = (String::new(), file.entry(id).and_then(|entry| entry.parent));
    while let Some(row) = parent {
        let Some(entry) = file.entry(EntryId { row, ..id }) else { break };
        if entry.tag == gimli::DW_TAG_namespace {
            name = entry.name.clone().unwrap_or_default();
        }
        parent = entry.parent;
    }
    name
}
