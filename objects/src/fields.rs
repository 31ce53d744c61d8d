//! Sums by field: what was missed in each field of each type.

use crate::debug::layout::TypeLayout;
use crate::map::{ObjectKey, ObjectMap, Place};
use crate::tally::Missed;
use crate::typing::{within, Typing, Within};
use crate::uses::{AllUses, ThreadUses, Uses};
use event::Access;
use simulate::LocatedMiss;
use std::collections::HashMap;

/// The sums of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeSums {
    /// By field.
    pub(crate) fields: Vec<Missed>,
    /// Of bytes between fields, and of a type without fields.
    pub(crate) between: Missed,
    /// Of bytes behind the elements.
    pub(crate) beyond: Missed,
    /// Accesses by field, where all references are known.
    pub(crate) uses: Vec<Uses>,
}

/// Sums of all types.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) typing: Typing,
    pub(crate) sums: Vec<TypeSums>,
    /// The object that was looked up last, and its layout.
    last: Option<(ObjectKey, Option<u32>)>,
    /// The layouts of objects by their numbers, where they were asked for by it.
    of_objects: Vec<Option<Option<u32>>>,
}

/// What missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Caches,
    Pages,
}

impl Fields {
    /// Counts a miss at an address of an object.
    pub(crate) fn miss(&mut self, map: &mut ObjectMap, place: &Place, miss: &LocatedMiss, kind: Kind) {
        let Some(layout) = self.layout(map, place.key) else { return };
        let sums = self.sums_at(layout, place, miss.address);
        match kind {
            Kind::Caches => sums.missed_caches(miss),
            Kind::Pages => sums.missed_pages(miss),
        }
    }

    /// Counts an access to an object for its field, and notes the visit of its value.
    pub(crate) fn access(
        &mut self,
        map: &mut ObjectMap,
        (place, object): (&Place, u32),
        (address, access): (u64, Access),
        (all, thread): (&mut AllUses, &mut ThreadUses),
    ) {
        let Some(number) = self.layout_of(map, place.key, object) else { return };
        let layout = &self.typing.layouts[number as usize];
        let Within::Element { start, offset } = within(place, address, layout.size_bytes) else { return };
        let Some(field) = layout.field_at(offset) else { return };
        self.sums[number as usize].uses[field].count(access);
        all.visit(thread, number, start, field);
    }

    /// The layout of the elements of an object, which has a number. Its sums have room.
    #[inline]
    fn layout_of(&mut self, map: &mut ObjectMap, key: ObjectKey, object: u32) -> Option<u32> {
        if let Some(Some(known)) = self.of_objects.get(object as usize) {
            return *known;
        }
        let layout = self.layout(map, key);
        layout.into_iter().for_each(|number| self.sums_of(number));
        if self.of_objects.len() <= object as usize {
            self.of_objects.resize(object as usize + 1, None);
        }
        self.of_objects[object as usize] = Some(layout);
        layout
    }

    /// The layout of an object's elements.
    pub(crate) fn layout(&mut self, map: &mut ObjectMap, key: ObjectKey) -> Option<u32> {
        if let Some((_, layout)) = self.last.filter(|last| last.0 == key) {
            return layout;
        }
        let layout = self.typing.of(key, map).map(|typed| typed.layout);
        self.last = Some((key, layout));
        layout
    }

    /// The sums of the field at an address.
    fn sums_at(&mut self, layout: u32, place: &Place, address: u64) -> &mut Missed {
        let number = layout as usize;
        self.sums_of(layout);
        let layout: &TypeLayout = &self.typing.layouts[number];
        let sums = &mut self.sums[number];
        match within(place, address, layout.size_bytes) {
            Within::Beyond => &mut sums.beyond,
            Within::Element { offset, .. } => match layout.field_at(offset) {
                Some(field) => &mut sums.fields[field],
                None => &mut sums.between,
            },
        }
    }

    /// Makes room for the sums of a layout.
    fn sums_of(&mut self, layout: u32) {
        while self.sums.len() <= layout as usize {
            let count = self.typing.layouts[self.sums.len()].fields.len();
            let (fields, uses) = (vec![Missed::default(); count], vec![Uses::default(); count]);
            self.sums.push(TypeSums { fields, uses, ..TypeSums::default() });
        }
    }

    /// Which type each object has, and what told so.
    pub(crate) fn types_of_objects(&self) -> HashMap<ObjectKey, (u32, String)> {
        self.typing.found().map(|(key, typed)| (key, (typed.layout, typed.way.clone()))).collect()
    }
}
