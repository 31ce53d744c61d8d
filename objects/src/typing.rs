//! The types of objects, as far as debug information tells them.
//!
//! A variable has its own type. Blocks have the type by which a function of a library was
//! instantiated on the way to the allocation, else that of what gets the result of the allocating
//! call (`debug::result`); a function that returns it as a pointer to void passes the question on
//! to its caller. Each answer says which way told it. Where none does, the type stays unknown: no
//! size, name or content is taken for a type.

use crate::debug::entries::{DebugFile, EntryId};
use crate::debug::generic::instance;
use crate::debug::layout::TypeLayout;
use crate::debug::result::{fate, CallPlace, Fate};
use crate::globals::Variable;
use crate::locals::{DebugFiles, Local};
use crate::map::{ObjectKey, ObjectMap, Place};
use instrument::Module;
use std::collections::HashMap;
use std::path::Path;
use symbol::{demangle, Symbolizer};

/// The type of an object's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// The number of the layout.
    pub(crate) layout: u32,
    /// What told the type.
    pub(crate) way: String,
}

/// Functions of Rust's libraries between a program and its allocator, by how their names begin.
const RUST: &[&str] =
    &["alloc::", "core::", "hashbrown::", "std::alloc::", "std::sys::", "__rust", "__rdl", "__rg_"];

/// Types of objects.
#[derive(Default)]
pub(crate) struct Typing {
    symbols: Symbolizer,
    pub(crate) layouts: Vec<TypeLayout>,
    numbers: HashMap<(String, u64), Vec<u32>>,
    of_objects: HashMap<ObjectKey, Option<Typed>>,
}

impl Typing {
    /// The type of an object; debug information is read when a file is first asked for.
    pub(crate) fn of(&mut self, key: ObjectKey, map: &mut ObjectMap) -> Option<&Typed> {
        if !self.of_objects.contains_key(&key) {
            let found = match key {
                ObjectKey::Blocks(site) => self.of_blocks(&map.stack(site), &mut map.locals.files),
                ObjectKey::Variable(number) => self.of_variable(number, map),
                ObjectKey::Local(number) => self.of_local(number, map),
                _ => None,
            };
            self.of_objects.insert(key, found);
        }
        self.of_objects.get(&key)?.as_ref()
    }

    /// The types that were found.
    pub(crate) fn found(&self) -> impl Iterator<Item = (ObjectKey, &Typed)> {
        self.of_objects.iter().filter_map(|(key, typed)| Some((*key, typed.as_ref()?)))
    }

    fn of_variable(&mut self, number: u32, map: &mut ObjectMap) -> Option<Typed> {
        let Variable { path, link_address, .. } = map.variable(number).clone();
        self.of_variable_at(&path, link_address, &mut map.locals.files)
    }

    /// The type of the variable with a link address in a file.
    pub(crate) fn of_variable_at(
        &mut self,
        path: &Path,
        link_address: u64,
        files: &mut DebugFiles,
    ) -> Option<Typed> {
        let file = files.of(path)?;
        let id = file.variable_at(link_address)?;
        self.of_entry(file, id)
    }

    fn of_local(&mut self, number: u32, map: &mut ObjectMap) -> Option<Typed> {
        let Local { path, id, .. } = map.locals.all[number as usize].clone();
        self.of_entry(map.locals.files.of(&path)?, id)
    }

    /// The type of a variable with this entry.
    fn of_entry(&mut self, file: &mut DebugFile, id: EntryId) -> Option<Typed> {
        let of = file.type_of(id)?;
        let element = file.element(of)?;
        let layout = file.layout(element)?;
        Some(self.typed(layout, "its own type".into()))
    }

    /// The type of the blocks that were allocated by a stack of calls.
    pub(crate) fn of_blocks(&mut self, stack: &[(Module, u64)], files: &mut DebugFiles) -> Option<Typed> {
        let mut is_in_library = false;
        for (module, address) in stack {
            let offset = address.wrapping_sub(module.start).wrapping_add(module.file_offset);
            let function = self.symbols.function_at(module, *address).function;
            let name = demangle(&self.symbols.functions()[function].name);
            let is_rust = RUST.iter().any(|start| name.trim_start_matches('<').starts_with(start));
            let found = match files.of(&module.path) {
                Some(file) => of_call(file, offset, is_in_library || is_rust),
                None => Fate::Unknown,
            };
            match found {
                Fate::Known(id, way) => {
                    let layout = files.of(&module.path)?.layout(id)?;
                    return Some(self.typed(layout, way));
                }
                Fate::Returned => {}
                Fate::Unknown if is_rust => is_in_library = true,
                Fate::Unknown => return None,
            }
        }
        None
    }

    fn typed(&mut self, layout: TypeLayout, way: String) -> Typed {
        let known = self.numbers.entry((layout.name.clone(), layout.size_bytes)).or_default();
        let number = known.iter().copied().find(|&number| self.layouts[number as usize] == layout);
        let number = number.unwrap_or_else(|| {
            let number = self.layouts.len() as u32;
            known.push(number);
            self.layouts.push(layout);
            number
        });
        Typed { layout: number, way }
    }
}

/// What becomes of the result of the call at an offset of a file. Of functions between Rust's
/// library and its allocator only their instance tells.
fn of_call(file: &mut DebugFile, offset: u64, only_instance: bool) -> Fate {
    let Some(address) = file.link_address(offset) else { return Fate::Unknown };
    let found: Option<(EntryId, String)> = instance(file, address);
    match found {
        Some((id, way)) => Fate::Known(id, way),
        None if only_instance => Fate::Unknown,
        None => fate(file, CallPlace { address, offset }),
    }
}

/// A byte of an object, seen from its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// At this offset of an element, which begins at `start`.
    Element { start: u64, offset: u64 },
    /// Behind the elements: what a structure has behind it, or what is too small to be one.
    Beyond,
}

/// Where an address lies in an object of elements of `element_bytes`: an object of a multiple of
/// these is an array, another one is an element with something behind it.
pub(crate) fn within(place: &Place, address: u64, element_bytes: u64) -> Within {
    let offset = address.wrapping_sub(place.start);
    if place.size_bytes < element_bytes {
        Within::Beyond
    } else if place.size_bytes.is_multiple_of(element_bytes) {
        let offset = offset % element_bytes;
        Within::Element { start: address - offset, offset }
    } else if offset < element_bytes {
        Within::Element { start: place.start, offset }
    } else {
        Within::Beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_lies_in_an_element_or_behind_all() {
        let place = |size_bytes| Place { key: ObjectKey::Blocks(0), start: 0x1000, size_bytes };
        let at = |size, offset: u64| within(&place(size), 0x1000 + offset, 24);
        assert_eq!(at(24, 9), Within::Element { start: 0x1000, offset: 9 });
        assert_eq!(at(72, 50), Within::Element { start: 0x1030, offset: 2 });
        assert_eq!(at(40, 23), Within::Element { start: 0x1000, offset: 23 });
        assert_eq!(at(40, 24), Within::Beyond);
        assert_eq!(at(16, 4), Within::Beyond);
    }
}
