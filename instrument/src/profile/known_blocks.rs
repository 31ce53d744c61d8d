//! Finds the block of a profile that equals a block of another image.
//!
//! Blocks are equal if they lie at the same place of the same file and have the same instructions
//! and the same sites. A file that was replaced while the run lasted has other instructions, so its
//! blocks are told apart although the path is the same. Addresses do not matter where there is a
//! file: the same library lies elsewhere in another program.
//!
//! Most of a build's code is of modules that one program executes, and images of one lineage bring
//! the numbers of their blocks. So a module's blocks enter the index when a second source has code
//! in it. Until then each block that its only source brings is a new one.

use super::{Block, Instruction, Module, Profile, Site};
use crate::address_map::PlaceMap;
use crate::room::make_room;
use std::collections::HashMap;
use std::mem::replace;
use std::path::PathBuf;

/// A block with what belongs to it.
pub(super) struct BlockView<'a> {
    pub(super) block: &'a Block,
    pub(super) instructions: &'a [Instruction],
    pub(super) sites: &'a [Site],
}

impl BlockView<'_> {
    /// Whether both are translations of the same instructions, at any address.
    fn equals(&self, other: &BlockView<'_>) -> bool {
        let indices = self.sites.iter().map(|site| site.index);
        self.block.len == other.block.len
            && self.instructions == other.instructions
            && indices.eq(other.sites.iter().map(|site| site.index))
    }
}

/// The blocks of a profile. Sites are in the order of their blocks.
fn views(profile: &Profile) -> impl Iterator<Item = BlockView<'_>> {
    views_from(profile, 0, 0)
}

/// The blocks of a profile behind the first `blocks` ones, which have the first `sites` sites.
pub(super) fn views_from(
    profile: &Profile,
    blocks: usize,
    sites: usize,
) -> impl Iterator<Item = BlockView<'_>> {
    debug_assert!(profile.sites.is_sorted_by_key(|site| (site.block, site.index)));
    let mut rest = &profile.sites[sites..];
    profile.blocks[blocks..].iter().zip(blocks as u32..).map(move |(block, number)| {
        let own = rest.iter().take_while(|site| site.block == number).count();
        let (sites, others) = rest.split_at(own);
        rest = others;
        BlockView { block, instructions: instructions_of(profile, block), sites }
    })
}

fn instructions_of<'a>(profile: &'a Profile, block: &Block) -> &'a [Instruction] {
    &profile.instructions[block.first as usize..][..block.count as usize]
}

/// What two modules have in common if their code is the same file's.
#[derive(PartialEq, Eq, Hash)]
struct ModuleKey {
    path: PathBuf,
    file_offset: u64,
    bytes: u64,
    /// Its process and its address, if a process has generated the code or it comes from no file.
    address: Option<(Option<u32>, u64)>,
}

impl ModuleKey {
    fn of(module: &Module) -> ModuleKey {
        ModuleKey {
            path: module.path.clone(),
            file_offset: module.file_offset,
            bytes: module.end.wrapping_sub(module.start),
            address: (!module.has_file()).then_some((module.process, module.start)),
        }
    }
}

/// The end of a chain of blocks.
const NONE: u32 = u32::MAX;

/// Where blocks come from: an image, or a lineage of images whose numbers are remembered.
pub(super) type Source = u32;

/// The source of the profile that was there before the index was, of which no numbers are
/// remembered. Images without a lineage have the numbers below it.
pub(super) const BEFORE: Source = u32::MAX;

/// What is known of a module of the profile.
enum Indexed {
    /// One source has all of its blocks, which are these and not in the index.
    Waits(Source, Vec<u32>),
    /// Its blocks are in the index.
    Yes,
}

/// An index of a profile's modules and blocks.
pub(super) struct KnownBlocks {
    modules: HashMap<ModuleKey, u32>,
    /// By module.
    indexed: Vec<Indexed>,
    /// By module and offset in it, the last block that begins there.
    last: PlaceMap<u32>,
    /// By block, the block before it that begins at the same place, or [`NONE`].
    before: Vec<u32>,
    /// By block, the number of its first site.
    sites: Vec<u32>,
    /// The block behind the one that was found last: programs that run again begin as they did
    /// before, so it is mostly the next one, and need not be looked for.
    expected: u32,
}

impl KnownBlocks {
    /// The index of `profile`.
    pub(super) fn of(profile: &Profile) -> KnownBlocks {
        let mut known = KnownBlocks {
            modules: HashMap::new(),
            indexed: profile.modules.iter().map(|_| Indexed::Waits(BEFORE, Vec::new())).collect(),
            last: PlaceMap::default(),
            before: Vec::with_capacity(profile.blocks.len()),
            sites: Vec::with_capacity(profile.blocks.len()),
            expected: 0,
        };
        // One image may have mapped the same part of a file twice.
        let modules: Vec<u32> = profile
            .modules
            .iter()
            .zip(0..)
            .map(|(module, number)| *known.modules.entry(ModuleKey::of(module)).or_insert(number))
            .collect();
        let mut sites = 0;
        for view in views(profile) {
            known.append(modules[view.block.module as usize], sites);
            sites += view.sites.len() as u32;
        }
        known
    }

    /// The number of the first site of a block.
    pub(super) fn first_site(&self, block: u32) -> u32 {
        self.sites[block as usize]
    }

    /// The number in `profile` of a module of another image, which is added if it is new.
    pub(super) fn module(&mut self, profile: &mut Profile, module: &Module, source: Source) -> u32 {
        let number = *self.modules.entry(ModuleKey::of(module)).or_insert_with(|| {
            profile.modules.push(module.clone());
            self.indexed.push(Indexed::Waits(source, Vec::new()));
            profile.modules.len() as u32 - 1
        });
        if !matches!(self.indexed[number as usize], Indexed::Waits(only, _) if only == source) {
            self.index(profile, number);
        }
        number
    }

    /// Enters the blocks of a module into the index, if they are not there.
    fn index(&mut self, profile: &Profile, module: u32) {
        let Indexed::Waits(_, blocks) = replace(&mut self.indexed[module as usize], Indexed::Yes) else {
            return;
        };
        self.last.reserve(blocks.len());
        for number in blocks {
            let Block { ip, module: own, .. } = profile.blocks[number as usize];
            let offset = ip.wrapping_sub(profile.modules[own as usize].start);
            self.enter(module, offset, number);
        }
    }

    /// Enters all blocks into the index: the numbers of no source are remembered any more.
    pub(super) fn forget_sources(&mut self, profile: &Profile) {
        (0..self.indexed.len() as u32).for_each(|module| self.index(profile, module));
    }

    /// The number in `profile` of the block that equals `other`, which lies at `offset` in module
    /// `module`. If there is none, it is added without counts.
    pub(super) fn block(
        &mut self,
        profile: &mut Profile,
        module: u32,
        offset: u64,
        other: &BlockView<'_>,
    ) -> u32 {
        if let Indexed::Waits(..) = self.indexed[module as usize] {
            return self.add(profile, (module, offset), other);
        }
        let ip = profile.modules[module as usize].start.wrapping_add(offset);
        let is_expected = profile.blocks.get(self.expected as usize).is_some_and(|expected| {
            (expected.module, expected.ip) == (module, ip) && self.view(profile, self.expected).equals(other)
        });
        let number = match is_expected {
            true => self.expected,
            false => self
                .find(profile, (module, offset), other)
                .unwrap_or_else(|| self.add(profile, (module, offset), other)),
        };
        self.expected = number + 1;
        number
    }

    /// The block that begins at `offset` in a module and equals `other`.
    fn find(&self, profile: &Profile, place: (u32, u64), other: &BlockView<'_>) -> Option<u32> {
        let known = |number: &u32| *number != NONE;
        let last = self.last.get(&place).copied();
        std::iter::successors(last, |&number| Some(self.before[number as usize]).filter(known))
            .find(|&number| self.view(profile, number).equals(other))
    }

    /// Adds a block without counts; returns its number.
    fn add(&mut self, profile: &mut Profile, (module, offset): (u32, u64), other: &BlockView<'_>) -> u32 {
        let number = profile.blocks.len() as u32;
        self.append(module, profile.sites.len() as u32);
        if let Indexed::Yes = self.indexed[module as usize] {
            self.enter(module, offset, number);
        }
        let ip = profile.modules[module as usize].start.wrapping_add(offset);
        let first = profile.instructions.len() as u32;
        make_room(&mut profile.blocks, 1);
        make_room(&mut profile.instructions, other.instructions.len());
        profile.blocks.push(Block { ip, module, first, executions: 0, taken: 0, ..other.block.clone() });
        profile.instructions.extend_from_slice(other.instructions);
        let bias = ip.wrapping_sub(other.block.ip);
        let moved = |site: &Site| Site { ip: site.ip.wrapping_add(bias), block: number, index: site.index };
        profile.sites.extend(other.sites.iter().map(moved));
        number
    }

    /// A block of the profile with what belongs to it.
    fn view<'a>(&self, profile: &'a Profile, number: u32) -> BlockView<'a> {
        let block = &profile.blocks[number as usize];
        let sites = &profile.sites[self.first_site(number) as usize..];
        let own = sites.iter().take_while(|site| site.block == number).count();
        BlockView { block, instructions: instructions_of(profile, block), sites: &sites[..own] }
    }

    /// Notes the next block of the profile, which lies in `module`, and that its sites begin at
    /// `site`.
    fn append(&mut self, module: u32, site: u32) {
        let number = self.before.len() as u32;
        self.before.push(NONE);
        self.sites.push(site);
        if let Indexed::Waits(_, blocks) = &mut self.indexed[module as usize] {
            blocks.push(number);
        }
    }

    /// Enters a block into the index.
    fn enter(&mut self, module: u32, offset: u64, number: u32) {
        self.before[number as usize] = self.last.insert((module, offset), number).unwrap_or(NONE);
    }
}
