//! The profile of a run: every block with its execution count, every site, every module.

use crate::evidence::Forgery;
use std::collections::HashMap;
use std::path::PathBuf;

/// A file that was mapped executable (or anonymous code).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Path as in `/proc/PID/maps`; `[vdso]`; `[anonymous]` for generated code.
    pub path: PathBuf,
    /// First mapped address of the executable mapping.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// File offset of `start`.
    pub file_offset: u64,
}

/// One instruction of a block.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Bytes from the block's first address.
    pub offset: u16,
    /// Encoded length.
    pub len: u8,
    /// Loads per execution (complex references excluded: they are counted as they happen).
    pub loads: u8,
    /// Stores per execution (complex references excluded).
    pub stores: u8,
    /// `iced_x86::Code as u16`.
    pub code: u16,
}

/// A static basic block as translated.
#[derive(Clone, Debug)]
pub struct Block {
    /// Address of the first instruction.
    pub ip: u64,
    /// Bytes.
    pub len: u32,
    /// Index into [`Profile::modules`].
    pub module: u32,
    /// Index of the first instruction in [`Profile::instructions`].
    pub first: u32,
    /// Number of instructions.
    pub count: u32,
    /// How often it ran (all threads).
    pub executions: u64,
    /// How often its conditional branch, when it ends with one, was taken.
    pub taken: u64,
}

/// An instruction that makes references; records name it by its index.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Address of the instruction.
    pub ip: u64,
    /// Block in which the site was translated.
    pub block: u32,
    /// Index of the instruction within the block.
    pub index: u32,
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Modules seen.
    pub modules: Vec<Module>,
    /// Blocks; several may start at the same address (retranslated code, superblock copies).
    pub blocks: Vec<Block>,
    /// Instructions of all blocks.
    pub instructions: Vec<Instruction>,
    /// Sites.
    pub sites: Vec<Site>,
    /// Blocks left in the middle (fault, signal, exit): (block, first instruction not retired, how
    /// often).
    pub cut: Vec<(u32, u32, u64)>,
    /// Iterations of repeated string instructions beyond the first count, by site.
    pub repeats: Vec<(u32, u64)>,
    /// Loads and stores made by complex references: (site, loads, stores).
    pub complex: Vec<(u32, u64, u64)>,
    /// For each process image, the index of its first site and of its first block. Each exec and
    /// each forked child that is followed starts a new image.
    pub images: Vec<(u32, u32)>,
}

impl Profile {
    /// Instructions retired, all threads; a repeated string instruction counts once.
    pub fn instructions_retired(&self) -> u64 {
        let whole: u64 = self.blocks.iter().map(|block| block.executions * u64::from(block.count)).sum();
        let lost: u64 = self
            .cut
            .iter()
            .map(|&(block, retired, times)| u64::from(self.blocks[block as usize].count - retired) * times)
            .sum();
        whole.saturating_sub(lost)
    }
}

/// Whether more plain references were `recorded` than the blocks that ran can have made: one for
/// each load, store and hint of data, and one for each instruction line. Blocks that were left in
/// the middle count as complete.
pub(crate) fn too_many(profile: &Profile, recorded: u64) -> Option<Forgery> {
    const LINE_BYTES_MIN: u32 = 16;
    const FREE: u64 = 1 << 16;
    let hints = profile.sites.iter().map(|site| profile.blocks[site.block as usize].executions);
    let of_block = |block: &Block| {
        let instructions = &profile.instructions[block.first as usize..(block.first + block.count) as usize];
        let data: u64 = instructions
            .iter()
            .map(|instruction| u64::from(instruction.loads) + u64::from(instruction.stores))
            .sum();
        block.executions.saturating_mul(data + u64::from(block.len / LINE_BYTES_MIN + 2) * 2)
    };
    let made = hints.chain(profile.blocks.iter().map(of_block)).fold(FREE, u64::saturating_add);
    (recorded > made).then_some(Forgery::References(recorded, made))
}

/// For each image and site: loads, stores, and iterations beyond one per execution.
pub(crate) type Tally = HashMap<(u32, u32), (u64, u64, u64)>;

/// Appends the profile of image number `image` to `all` and renumbers its entries. Adds what
/// `tally` holds about its complex references.
pub(crate) fn append(all: &mut Profile, mut profile: Profile, image: u32, tally: &Tally) {
    let modules = all.modules.len() as u32;
    let blocks = all.blocks.len() as u32;
    let first = all.instructions.len() as u32;
    let sites = all.sites.len() as u32;
    all.images.push((sites, blocks));
    profile
        .blocks
        .iter_mut()
        .for_each(|block| (block.module, block.first) = (block.module + modules, block.first + first));
    profile.sites.iter_mut().for_each(|site| site.block += blocks);
    join(&mut all.modules, profile.modules);
    join(&mut all.blocks, profile.blocks);
    join(&mut all.instructions, profile.instructions);
    join(&mut all.sites, profile.sites);
    all.cut.extend(profile.cut.into_iter().map(|(block, retired, times)| (block + blocks, retired, times)));
    let mut tallied: Vec<_> = tally.iter().filter(|(&(number, _), _)| number == image).collect();
    tallied.sort_unstable();
    for (&(_, site), &(loads, stores, iterations)) in tallied {
        if iterations > 0 {
            all.repeats.push((site + sites, iterations));
        }
        all.complex.push((site + sites, loads, stores));
    }
}

/// Appends `more` to `all`; an empty `all` takes the table over without a copy.
fn join<T>(all: &mut Vec<T>, more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.extend(more);
    }
}
