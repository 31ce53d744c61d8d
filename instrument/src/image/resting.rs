//! Reuses the image of a program that has ended for the next process that executes the program.
//!
//! **The problem.** A build executes one compiler a thousand times. Kept translations (`store`)
//! spare each of these processes the translation, but each has to read them: tables of some hundred
//! thousand rows are decoded, checked and copied, which takes longer than a small compile.
//!
//! **The idea.** An image that has ended already is what reading its file would make: code in
//! shared memory, and tables that name it. The host lets it rest, and maps the same memory into the
//! next process with the same identity. What belongs to the process goes, what belongs to the
//! program's code stays:
//!
//! ```text
//!                   ended image                 resting        next process
//!   code, tables    in use                      kept           kept
//!   map, look-ups   fragments of this process   empty          filled, group by group
//!   groups          verified or given up        unverified     verified when they are executed
//!   contexts        counters, filters, rings    as they are    cleared
//! ```
//!
//! **Invariants.** Nothing leads to a fragment whose module was not verified in this process, as
//! with translations that were read. When the contexts are cleared, no record of the former
//! process waits to be read, and no process has them mapped. **Leaves out** sharing between
//! processes that live at the same time, and images of forked children (`again`).

use super::{Image, Place, Spares};
use crate::profile::{Block, Site};
use crate::store::kept::KeptTranslations;
use crate::store::parts;
use crate::target::modules::Maps;

/// The most images that rest. Each one holds two descriptors.
const IMAGES_MAX: usize = 16;
/// The most bytes of code and tables of all resting images.
const BYTES_MAX: usize = 256 << 20;
/// An image rests only if one in this many fragments, or more, can be used again.
const USED_SHARE: usize = 4;
/// Mappings that no fragment needs any more stay in the list of modules, up to this many.
const OLD_MODULES_MAX: usize = 64;

/// Images of programs that have ended, the least recently used first.
#[derive(Default)]
pub(crate) struct RestingImages {
    images: Vec<(usize, Image)>,
}

impl RestingImages {
    /// Takes out an image whose translations fit `kept`; `is_idle` says of an image's number
    /// whether nobody reads its records any more.
    pub(crate) fn take(&mut self, kept: &KeptTranslations, is_idle: impl Fn(u32) -> bool) -> Option<Image> {
        let fits = |image: &Image| {
            image.kept.as_ref().is_some_and(|own| own.identity() == kept.identity()) && is_idle(image.number)
        };
        let index = self.images.iter().rposition(|(_, image)| fits(image))?;
        Some(self.images.remove(index).1)
    }

    /// Lets an image rest that [`Image::may_rest`], unless too little of it can be used again.
    pub(crate) fn put(&mut self, mut image: Image) {
        if !image.rest() {
            return;
        }
        self.images.push((image.bytes(), image));
        let bytes = |images: &[(usize, Image)]| images.iter().map(|(bytes, _)| bytes).sum::<usize>();
        while self.images.len() > IMAGES_MAX || bytes(&self.images) > BYTES_MAX {
            self.images.remove(0);
        }
    }
}

impl Image {
    /// Whether the image, which has ended, may be the next process's: its translations are kept and
    /// nothing spoke against that. The decision about its file must have been made.
    pub(crate) fn may_rest(&self) -> bool {
        let translator = &self.translator;
        self.kept.as_ref().is_some_and(KeptTranslations::is_sound)
            && self.parent.is_none()
            && !self.stays_mapped
            && self.maps.watcher.is_none()
            && translator.instrumenter.is_none()
            && !translator.cache.fragments.is_empty()
    }

    /// Makes all translations unverified; returns whether enough of them can be used again.
    fn rest(&mut self) -> bool {
        let (translator, maps) = (&mut self.translator, &self.maps);
        let fragments = translator.cache.fragments.len();
        // If nothing is new and nothing changed, the groups are those with which the image began.
        let same = fragments == translator.unverified.fragments
            && !translator.unverified.gave_up
            && !maps.has_changed_text()
            && parts::moved(translator, maps).is_empty();
        if same {
            translator.unverified.begin_again();
        } else {
            let parts = parts::choose(translator, maps);
            let used = parts.live.iter().filter(|live| !live.is_empty()).count();
            if parts.fragments() < fragments / USED_SHARE || maps.modules.len() > used + OLD_MODULES_MAX {
                return false;
            }
            // Branches of code that nothing leads to join no modules.
            translator.cross_branches.retain(|&(module, _)| !parts.live[module as usize].is_empty());
            let of_files = std::mem::take(&mut translator.unverified.of_files);
            translator.unverified = parts.unverified(&maps.modules, &translator.cross_branches, fragments);
            translator.unverified.of_files = of_files;
        }
        translator.cache.forget_all();
        self.spares = Spares::default();
        true
    }

    /// Turns a resting image into the image that process `pid` has just executed, and maps its
    /// memory there.
    pub(crate) fn wake(
        &mut self,
        pid: i32,
        number: u32,
        place: &Place,
        mut kept: KeptTranslations,
    ) -> Result<(), crate::Error> {
        self.shared.clear_data()?;
        self.maps = Maps::of_program(pid, std::mem::replace(&mut self.maps, Maps::new(pid)));
        self.gadget = place.gadget;
        self.used = 0;
        self.begin_counts(pid, number);
        self.taken_over = (0, self.size().1);
        if let Some(former) = self.kept.take() {
            kept.continues(former);
        }
        self.kept = Some(kept);
        self.mark_new();
        self.translator.enter_lines_again();
        self.map_at_start(pid, place)
    }

    /// Bytes of code and of the largest tables.
    fn bytes(&self) -> usize {
        let translator = &self.translator;
        let state_maps = translator.cache.zones.iter().map(|zone| zone.state_map.own_bytes());
        let tables = translator.blocks.len() * size_of::<Block>()
            + translator.instructions.own_bytes()
            + translator.sites.len() * size_of::<Site>()
            + size_of_val(&translator.cache.exits[..])
            + size_of_val(&translator.cache.fragments[..]);
        self.size().1 as usize + tables + state_maps.sum::<usize>()
    }
}
