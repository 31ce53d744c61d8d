//! Names of the fields that lie at some addresses, for tools that know their objects.
//!
//! A tool that is about lines of memory asks which fields lie in one. Types are found as those of
//! missed objects are: a variable has its own type, a block of the heap that of what gets the
//! result of the call that allocated it. **Leaves out** files whose debug information is in a
//! separate file, and what none tells.

use crate::locals::DebugFiles;
use crate::typing::{Typed, Typing};
use instrument::Module;
use std::ops::Range;
use std::path::{Path, PathBuf};
use symbol::DebugSections;

/// A field of an object in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub size_bytes: u64,
    /// Its name behind that of the object: `.sum` or `[2].sum`, and `[2]` of an array of numbers.
    pub name: String,
}

/// The most fields that are named at a time.
const FIELDS_MAX: usize = 256;

/// Names fields; debug information is read when a file is first asked for.
#[derive(Default)]
pub struct FieldNames {
    typing: Typing,
    files: DebugFiles,
    /// Whether files have their debug information in themselves.
    are_own: Vec<(PathBuf, bool)>,
}

impl FieldNames {
    /// The fields of a variable, which has a link address in a file and lies in some memory, as far
    /// as they have bytes of `asked`.
    pub fn of_variable(
        &mut self,
        path: &Path,
        link_address: u64,
        memory: &Range<u64>,
        asked: &Range<u64>,
    ) -> Vec<FieldPlace> {
        let is_told = self.tells(path);
        let typed = is_told.then(|| self.typing.of_variable_at(path, link_address, &mut self.files));
        self.fields(typed.flatten(), memory, asked)
    }

    /// The fields of a block of the heap that was allocated by the call at an address.
    pub fn of_block(
        &mut self,
        module: &Module,
        call: u64,
        memory: &Range<u64>,
        asked: &Range<u64>,
    ) -> Vec<FieldPlace> {
        let is_told = self.tells(&module.path);
        let typed = is_told.then(|| self.typing.of_blocks(&[(module.clone(), call)], &mut self.files));
        self.fields(typed.flatten(), memory, asked)
    }

    /// Whether a file has debug information in itself. Separate files are those of libraries, and
    /// reading one takes longer than many a program runs.
    fn tells(&mut self, path: &Path) -> bool {
        if let Some(known) = self.are_own.iter().find(|known| known.0 == path) {
            return known.1;
        }
        let is_own = DebugSections::lie_in(path);
        self.are_own.push((path.to_owned(), is_own));
        is_own
    }

    fn fields(&self, typed: Option<Typed>, memory: &Range<u64>, asked: &Range<u64>) -> Vec<FieldPlace> {
        let Some(typed) = typed else { return Vec::new() };
        let layout = &self.typing.layouts[typed.layout as usize];
        let element_bytes = layout.size_bytes;
        let size_bytes = memory.end.saturating_sub(memory.start);
        let within = asked.start.max(memory.start)..asked.end.min(memory.end);
        // What is no multiple of the type is one value with something behind it.
        let count = if size_bytes.is_multiple_of(element_bytes) { size_bytes / element_bytes } else { 1 };
        let mut found = Vec::new();
        let first = within.start.saturating_sub(memory.start) / element_bytes;
        for element in (first..count).take(FIELDS_MAX) {
            let start = memory.start + element * element_bytes;
            if start >= within.end || found.len() >= FIELDS_MAX {
                break;
            }
            let index = if count > 1 { format!("[{element}]") } else { String::new() };
            if layout.fields.is_empty() && count > 1 {
                found.push(FieldPlace { address: start, size_bytes: element_bytes, name: index });
                continue;
            }
            let fields = layout.fields.iter().map(|field| FieldPlace {
                address: start + field.offset,
                size_bytes: field.size_bytes,
                name: format!("{index}.{}", field.name),
            });
            let lies = |field: &FieldPlace| {
                field.address < within.end && field.address + field.size_bytes > within.start
            };
            found.extend(fields.filter(lies));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::layout::{Field, TypeLayout};

    fn names(fields: Vec<Field>, size_bytes: u64, memory: Range<u64>, asked: Range<u64>) -> Vec<String> {
        let mut names = FieldNames::default();
        names.typing.layouts.push(TypeLayout { name: "t".into(), size_bytes, fields });
        let typed = Typed { layout: 0, way: String::new() };
        names.fields(Some(typed), &memory, &asked).into_iter().map(|field| field.name).collect()
    }

    #[test]
    fn fields_in_a_line_have_the_index_of_their_element() {
        let field =
            |name: &str, offset| Field { name: name.into(), offset, size_bytes: 8, ..Field::default() };
        let fields = || vec![field("sum", 0), field("count", 8), field("end", 32)];
        let array = 0x1000..0x1000 + 120;
        assert_eq!(names(fields(), 40, array, 0x1020..0x1040), ["[0].end", "[1].sum", "[1].count"]);
        assert_eq!(names(fields(), 40, 0x1000..0x1028, 0x1000..0x1040), [".sum", ".count", ".end"]);
        assert_eq!(
            names(fields(), 40, 0x1000..0x1030, 0x1000..0x1010),
            [".sum", ".count"],
            "with more behind"
        );
        assert_eq!(names(Vec::new(), 8, 0x1000..0x1020, 0x1008..0x1018), ["[1]", "[2]"]);
        assert!(names(Vec::new(), 8, 0x1000..0x1008, 0x1000..0x1040).is_empty(), "one number has no fields");
    }
}
