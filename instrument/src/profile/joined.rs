//! The profile of a run while it grows: each image is added when it ends.
//!
//! **The problem.** A build runs one compiler a thousand times. If the blocks of each image stood
//! in the profile, it would take tens of megabytes for each process.
//!
//! **The idea.** Equal blocks of several images become one block, whose counts are sums. The first
//! image is taken as it is, and most runs have no other. When a second one ends, the blocks get an
//! index ([`KnownBlocks`]), and from then on only blocks that no image had before are added.
//!
//! **Leaves out** counts by image. Observers see the profile of each image before it is added, with
//! its [`Numbering`].

use super::known_blocks::{views_from, KnownBlocks};
use super::{Numbering, Numbers, Profile};
use std::collections::{BTreeMap, HashMap};

/// Whether several images share blocks of the run's profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BlocksOfImages {
    /// Equal blocks are one block.
    #[default]
    Merged,
    /// Each image has blocks of its own, in the order in which the images end.
    Apart,
}

/// Whether images that end one after the other have the same tables, but for what each one adds
/// behind those of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lineage {
    None,
    /// The images with this number have.
    Image(u32),
}

/// The most lineages of which numbers are remembered.
const LINEAGES_MAX: usize = 64;

/// The numbers in the run's profile by an image's own numbers: of its blocks, and of its sites.
#[derive(Default)]
struct Listed {
    blocks: Vec<u32>,
    sites: Vec<u32>,
}

/// The joined profile of all images that have ended.
#[derive(Default)]
pub(crate) struct JoinedProfile {
    blocks: BlocksOfImages,
    /// Everything but the counts of the fields below.
    all: Profile,
    /// How often blocks were left early, by block and first instruction that did not retire.
    cut: BTreeMap<(u32, u32), u64>,
    /// Iterations beyond the first, by site.
    repeats: BTreeMap<u32, u64>,
    /// Loads and stores of complex references, by site.
    complex: BTreeMap<u32, (u64, u64)>,
    images: usize,
    /// The index of the blocks; `None` before it is needed.
    known: Option<KnownBlocks>,
    /// Numbers that were found, by lineage: they need not be found again.
    lineages: HashMap<u32, Listed>,
}

impl JoinedProfile {
    /// A profile without images.
    pub(crate) fn new(blocks: BlocksOfImages) -> JoinedProfile {
        JoinedProfile { blocks, ..JoinedProfile::default() }
    }

    /// Gives numbers to the blocks and sites of an image, which [`JoinedProfile::add`] must add
    /// next.
    pub(crate) fn number(&mut self, image: &Profile, lineage: Lineage) -> Numbering {
        let JoinedProfile { blocks, all, images, known, lineages, .. } = self;
        *images += 1;
        if *images == 1 || *blocks == BlocksOfImages::Apart {
            let (block, site) = (all.blocks.len() as u32, all.sites.len() as u32);
            return Numbering(Numbers::From { block, site });
        }
        let known = known.get_or_insert_with(|| KnownBlocks::of(all));
        let modules: Vec<u32> = image.modules.iter().map(|module| known.module(all, module)).collect();
        let former = if let Lineage::Image(first) = lineage { lineages.remove(&first) } else { None };
        let Listed { blocks: mut numbers, mut sites } = former.unwrap_or_else(|| Listed {
            blocks: Vec::with_capacity(image.blocks.len()),
            sites: Vec::with_capacity(image.sites.len()),
        });
        for view in views_from(image, numbers.len(), sites.len()) {
            let module = modules[view.block.module as usize];
            let offset = view.block.ip.wrapping_sub(image.modules[view.block.module as usize].start);
            let number = known.block(all, module, offset, &view);
            let first = known.first_site(number);
            numbers.push(number);
            sites.extend((0..view.sites.len() as u32).map(|site| first + site));
        }
        Numbering(Numbers::Listed { blocks: numbers, sites })
    }

    /// Adds the counts of an image, and its tables where the numbers are the next ones.
    pub(crate) fn add(&mut self, image: Profile, numbering: Numbering, lineage: Lineage) {
        for &(block, first_lost, times) in &image.cut {
            add(self.cut.entry((numbering.block(block), first_lost)).or_default(), times);
        }
        for &(site, iterations) in &image.repeats {
            add(self.repeats.entry(numbering.site(site)).or_default(), iterations);
        }
        for &(site, loads, stores) in &image.complex {
            let sums = self.complex.entry(numbering.site(site)).or_default();
            add(&mut sums.0, loads);
            add(&mut sums.1, stores);
        }
        match numbering.0 {
            Numbers::From { block, site } => self.append(image, block, site),
            Numbers::Listed { blocks, sites } => {
                // Most blocks of an image that other processes had before did not run.
                for (&number, block) in
                    blocks.iter().zip(&image.blocks).filter(|(_, block)| block.executions > 0)
                {
                    let sums = &mut self.all.blocks[number as usize];
                    add(&mut sums.executions, block.executions);
                    add(&mut sums.taken, block.taken);
                }
                self.remember(lineage, Listed { blocks, sites });
            }
        }
    }

    /// Remembers the numbers of an image for the next one of its lineage.
    fn remember(&mut self, lineage: Lineage, listed: Listed) {
        let Lineage::Image(first) = lineage else { return };
        if self.lineages.len() >= LINEAGES_MAX {
            self.lineages.clear();
        }
        self.lineages.insert(first, listed);
    }

    /// Appends the tables of an image, whose blocks and sites get the numbers from these on.
    fn append(&mut self, mut image: Profile, first_block: u32, first_site: u32) {
        let all = &mut self.all;
        debug_assert_eq!((first_block as usize, first_site as usize), (all.blocks.len(), all.sites.len()));
        let (modules, first) = (all.modules.len() as u32, all.instructions.len() as u32);
        image.blocks.iter_mut().for_each(|b| (b.module, b.first) = (b.module + modules, b.first + first));
        image.sites.iter_mut().for_each(|site| site.block += first_block);
        join(&mut all.modules, image.modules);
        join(&mut all.blocks, image.blocks);
        join(&mut all.instructions, image.instructions);
        join(&mut all.sites, image.sites);
    }

    /// The profile of all images.
    pub(crate) fn finish(self) -> Profile {
        Profile {
            cut: self
                .cut
                .into_iter()
                .map(|((block, first_lost), times)| (block, first_lost, times))
                .collect(),
            repeats: self.repeats.into_iter().collect(),
            complex: self.complex.into_iter().map(|(site, (loads, stores))| (site, loads, stores)).collect(),
            ..self.all
        }
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Appends `more`; the first table of all is taken as it is.
fn join<T>(all: &mut Vec<T>, more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.extend(more);
    }
}

#[cfg(test)]
mod tests;
