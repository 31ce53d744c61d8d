//! The profile of a run: every block with its execution count, every site, every module.

mod joined;
mod known_blocks;

pub(crate) use joined::{BlocksOfImages, Descent, JoinedProfile, Lineage};

use crate::call::CallRecords;
use crate::evidence::Forgery;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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
    /// The process that generated the code while it ran; `None` for text of a file.
    pub process: Option<u32>,
}

impl Module {
    /// Whether its code is a file's, or the kernel's vdso, which other processes map too.
    pub(crate) fn has_file(&self) -> bool {
        self.process.is_none() && (self.path.is_absolute() || self.path == Path::new("[vdso]"))
    }
}

/// One instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The counts of a run, or of one process image.
///
/// Each exec and each forked child that is followed starts a new image. A block of a file that
/// several images run is one block of the run: it stands at the addresses of the first image that
/// ended, and its counts are sums over all images. So the profile of a build grows with the code of
/// its programs, and not with the number of its processes. A run with a tool is an exception: its
/// blocks are numbered while they are translated, and each image has blocks of its own.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Modules seen.
    pub modules: Vec<Module>,
    /// Blocks; several may start at the same address (retranslated code, superblock copies). In a
    /// run that counts executions alone (stream `Counts`, no calls, tool or marks), only those that
    /// ran and those with sites.
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
}

/// The numbers that the blocks and sites of one image have in the profile of the run.
#[derive(Clone, Debug)]
pub struct Numbering(Numbers);

#[derive(Clone, Debug)]
enum Numbers {
    /// The image's tables stand in those of the run from these indices on.
    From { block: u32, site: u32 },
    /// The numbers in the run by the image's own numbers.
    Listed(Listed),
}

/// The numbers in the run's profile by an image's own numbers: of its blocks, and of its sites.
#[derive(Clone, Debug, Default)]
struct Listed {
    blocks: Vec<u32>,
    sites: Vec<u32>,
}

impl Numbering {
    /// Whether blocks and sites have the same numbers in the run as in the image: those of the
    /// first image have.
    pub fn is_own(&self) -> bool {
        matches!(self.0, Numbers::From { block: 0, site: 0 })
    }

    /// The index into the run's [`Profile::blocks`] of the image's block `own`.
    ///
    /// # Panics
    /// If the image has no such block.
    pub fn block(&self, own: u32) -> u32 {
        match &self.0 {
            Numbers::From { block, .. } => block + own,
            Numbers::Listed(listed) => listed.blocks[own as usize],
        }
    }

    /// The index into the run's [`Profile::sites`] of the image's site `own`.
    ///
    /// # Panics
    /// If the image has no such site.
    pub fn site(&self, own: u32) -> u32 {
        match &self.0 {
            Numbers::From { site, .. } => site + own,
            Numbers::Listed(listed) => listed.sites[own as usize],
        }
    }
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
/// each load, store and hint of data, one for each instruction line, and the words of a recorded
/// call. Blocks that were left in the middle count as complete.
pub(crate) fn too_many(profile: &Profile, calls: CallRecords, recorded: u64) -> Option<Forgery> {
    const LINE_BYTES_MIN: u32 = 16;
    const FREE: u64 = 1 << 16;
    let of_block = |block: &Block| {
        // Most blocks of kept translations do not run.
        if block.executions == 0 {
            return 0;
        }
        let instructions = &profile.instructions[block.first as usize..(block.first + block.count) as usize];
        let data: u64 = instructions
            .iter()
            .map(|instruction| u64::from(instruction.loads) + u64::from(instruction.stores))
            .sum();
        let lines = u64::from(block.len / LINE_BYTES_MIN + 2) * 2;
        block.executions.saturating_mul(data + lines + calls.words_max())
    };
    let hints = profile.sites.iter().map(|site| profile.blocks[site.block as usize].executions);
    let mut made = FREE;
    // The sum is not needed once it is large enough.
    for more in profile.blocks.iter().map(of_block).chain(hints) {
        if made >= recorded {
            return None;
        }
        made = made.saturating_add(more);
    }
    (recorded > made).then_some(Forgery::References(recorded, made))
}

/// What complex references of one image did: (loads, stores, iterations beyond one per execution)
/// by site.
pub(crate) type ComplexTally = HashMap<u32, (u64, u64, u64)>;

/// Adds what was tallied of complex references to the profile of their image.
pub(crate) fn complete(profile: &mut Profile, tally: ComplexTally) {
    let mut tallied: Vec<_> = tally.into_iter().collect();
    tallied.sort_unstable();
    for (site, (loads, stores, iterations)) in tallied {
        if iterations > 0 {
            profile.repeats.push((site, iterations));
        }
        profile.complex.push((site, loads, stores));
    }
}
