//! Reuses the image of a forked child that has ended for the next child of the same parent.
//!
//! Shells, servers and build tools fork again and again, and their children run the same few
//! hundred blocks until they end or execute a program. So the host keeps the translations of one
//! child for the next one: it maps the image's memory into that child, with all counters at zero.
//! This is correct as long as the parent's text did not change between the two forks; generated
//! code compares code that may change with its words in any case. Only small images are kept,
//! because the counts of each child list all blocks of its image. **Leaves out** sharing between
//! processes that live at the same time.

use super::{Image, Spares};
use crate::code::counter::count_address;
use crate::code::decode::CodeReader;
use crate::error::Error;
use crate::plan::hotness::HotnessProfile;
use crate::target::layout::CONTEXTS_MAX;
use event::Stream;
use std::time::Instant;

/// The most blocks of an image that is kept.
const BLOCKS_MAX: u32 = 2000;
/// The most images of one parent's children that are kept. More than one is useful, because several
/// children may live at a time, and the observer may still read records of others.
const SPARES_MAX: usize = 8;

impl Image {
    /// Whether another child of the parent may use this image's translations.
    pub(super) fn is_reusable(&self) -> bool {
        let translator = &self.translator;
        self.maps.changes == 0
            && self.parent.is_some()
            && !self.stays_mapped
            && translator.cache.fragments.iter().map(|fragment| fragment.blocks).sum::<u32>() <= BLOCKS_MAX
            && translator.may_be_kept()
            && translator.cache.fragments.iter().all(|fragment| fragment.tunings == 0)
    }

    /// Turns an image that has ended into the image of process `pid`. The thread of the parent that
    /// has context `context` has just forked that process.
    fn renew(&mut self, pid: i32, number: u32, context: usize) -> Result<(), Error> {
        let zeros = vec![0u8; 8 * self.translator.counters as usize];
        for index in 0..self.used {
            self.shared.write(self.context(index) + count_address(0) as usize, &zeros);
        }
        self.maps.renew(pid);
        self.begin_counts(pid, number);
        self.taken_over = self.size();
        self.replace_inherited(pid, context)
    }

    /// Forgets what belongs to the process that the image had, apart from its mappings and its
    /// contexts.
    pub(super) fn begin_counts(&mut self, pid: i32, number: u32) {
        let translator = &mut self.translator;
        debug_assert_eq!(
            translator.blocks.is_empty(),
            translator.cache.fragments.is_empty(),
            "its counts' tables were taken"
        );
        translator.reader = CodeReader::new(pid);
        translator.hotness = HotnessProfile::new(if let Stream::Filtered(filter) = &translator.stream {
            Some(filter)
        } else {
            None
        });
        (self.pid, self.number) = (pid, number);
        (self.free, self.threads) = ((0..CONTEXTS_MAX).rev().collect(), 0);
        self.extra.clear();
        self.cut.clear();
        self.sections.clear();
        self.per_thread.clear();
        self.looked.clear();
        (self.modules_told, self.sites_told, self.targets_told) = (0, 0, 0);
        self.born = Instant::now();
    }

    /// The number of fragments, and the bytes of code.
    pub(crate) fn size(&self) -> (usize, u64) {
        let cache = &self.translator.cache;
        (cache.fragments.len(), cache.zones.iter().map(|zone| zone.hot_used + zone.cold_used).sum())
    }

    /// An image for process `pid`, which the thread of context `context` has just forked: a kept
    /// one if the observer reads no record of it (`is_idle`), or a new one.
    pub(crate) fn child(
        &mut self,
        pid: i32,
        number: u32,
        context: usize,
        is_idle: impl Fn(u32) -> bool,
    ) -> Result<Image, Error> {
        let changes = self.maps.changes;
        self.spares.images.retain(|spare| spare.0 == changes);
        let spare = self.spares.images.iter().rposition(|(_, image)| is_idle(image.number));
        let mut image = match spare {
            Some(index) => {
                let (_, mut image) = self.spares.images.swap_remove(index);
                image.renew(pid, number, context)?;
                image
            }
            None => self.fork(pid, number, context)?,
        };
        image.parent = Some((self.number, changes));
        Ok(image)
    }

    /// Keeps the image of a child that has ended, if another one may use it.
    pub(crate) fn keep_for_children(&mut self, mut image: Image) {
        let Some((_, changes)) = image.parent else { return };
        if image.is_reusable() && changes == self.maps.changes && self.spares.images.len() < SPARES_MAX {
            image.spares = Spares::default();
            self.spares.images.push((changes, image));
        }
    }
}
