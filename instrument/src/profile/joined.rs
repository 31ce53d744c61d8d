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

use super::known_blocks::{views_from, BlockView, KnownBlocks, BEFORE};
use super::{Listed, Numbering, Numbers, Profile};
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

/// Where the tables of an image that has ended come from.
#[derive(Clone, Debug)]
pub(crate) struct Descent {
    pub(crate) lineage: Lineage,
    /// If the image's profile has only some of its blocks: their numbers in the tables of the
    /// lineage, in order. Empty if it has all of them.
    pub(crate) blocks: Vec<u32>,
}

/// The most lineages of which numbers are remembered.
const LINEAGES_MAX: usize = 64;

/// Stands for the number of a block of a lineage that no image has had.
const NOT_FOUND: u32 = u32::MAX;

/// Finds the blocks of an image in the run's profile, or adds them.
struct Finder<'a> {
    image: &'a Profile,
    /// The numbers of the image's modules in the run's profile.
    modules: Vec<u32>,
    all: &'a mut Profile,
    known: &'a mut KnownBlocks,
}

impl Finder<'_> {
    /// The number of a block of the image.
    fn find(&mut self, view: &BlockView<'_>) -> u32 {
        let module = view.block.module as usize;
        let offset = view.block.ip.wrapping_sub(self.image.modules[module].start);
        self.known.block(self.all, self.modules[module], offset, view)
    }
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
    pub(crate) fn number(&mut self, image: &Profile, descent: &Descent) -> Numbering {
        self.images += 1;
        if self.images == 1 || self.blocks == BlocksOfImages::Apart {
            let (block, site) = (self.all.blocks.len() as u32, self.all.sites.len() as u32);
            return Numbering(Numbers::From { block, site });
        }
        let former = match descent.lineage {
            Lineage::Image(first) => self.lineages.remove(&first).unwrap_or_default(),
            Lineage::None => Listed::default(),
        };
        match descent.blocks.is_empty() {
            true => Numbering(Numbers::Listed(self.number_all(image, descent.lineage, former))),
            false => self.number_some(image, descent, former),
        }
    }

    /// Gives numbers to the blocks and sites of an image that begins with the `former` ones.
    fn number_all(&mut self, image: &Profile, lineage: Lineage, former: Listed) -> Listed {
        let Listed { mut blocks, mut sites } = former;
        let mut finder = self.finder(image, lineage);
        for view in views_from(image, blocks.len(), sites.len()) {
            let number = finder.find(&view);
            let first = finder.known.first_site(number);
            blocks.push(number);
            sites.extend((0..view.sites.len() as u32).map(|site| first + site));
        }
        Listed { blocks, sites }
    }

    /// Gives numbers to the blocks and sites of an image that has some blocks of its lineage.
    /// `former` has the numbers of those that were found before, by the lineage's own.
    fn number_some(&mut self, image: &Profile, descent: &Descent, former: Listed) -> Numbering {
        let Listed { blocks: mut of_lineage, .. } = former;
        let len = descent.blocks.last().map_or(0, |last| *last as usize + 1);
        of_lineage.resize(len.max(of_lineage.len()), NOT_FOUND);
        let mut listed = Listed::default();
        let mut finder = self.finder(image, descent.lineage);
        for (view, own) in views_from(image, 0, 0).zip(&descent.blocks) {
            let number = &mut of_lineage[*own as usize];
            if *number == NOT_FOUND {
                *number = finder.find(&view);
            }
            let first = finder.known.first_site(*number);
            listed.blocks.push(*number);
            listed.sites.extend((0..view.sites.len() as u32).map(|site| first + site));
        }
        self.remember(descent.lineage, Listed { blocks: of_lineage, sites: Vec::new() });
        Numbering(Numbers::Listed(listed))
    }

    /// What finds the blocks of an image.
    fn finder<'a>(&'a mut self, image: &'a Profile, lineage: Lineage) -> Finder<'a> {
        let all = &mut self.all;
        let known = self.known.get_or_insert_with(|| KnownBlocks::of(all));
        // The numbers of an image without a lineage are not remembered.
        let source = match lineage {
            Lineage::Image(first) => first,
            Lineage::None => BEFORE - self.images as u32,
        };
        let modules = image.modules.iter().map(|module| known.module(all, module, source)).collect();
        Finder { image, modules, all, known }
    }

    /// Adds the counts of an image, and its tables where the numbers are the next ones.
    pub(crate) fn add(&mut self, image: Profile, numbering: Numbering, descent: &Descent) {
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
            Numbers::Listed(listed) => {
                // Most blocks of an image that other processes had before did not run.
                let blocks = listed.blocks.iter().zip(&image.blocks);
                for (&number, block) in blocks.filter(|(_, block)| block.executions > 0) {
                    let sums = &mut self.all.blocks[number as usize];
                    add(&mut sums.executions, block.executions);
                    add(&mut sums.taken, block.taken);
                }
                if descent.blocks.is_empty() {
                    self.remember(descent.lineage, listed);
                }
            }
        }
    }

    /// Remembers the numbers of an image for the next one of its lineage.
    fn remember(&mut self, lineage: Lineage, listed: Listed) {
        let Lineage::Image(first) = lineage else { return };
        if self.lineages.len() >= LINEAGES_MAX {
            self.lineages.clear();
            self.known.iter_mut().for_each(|known| known.forget_sources(&self.all));
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
