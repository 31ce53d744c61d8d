//! The static tables that give a record's site number its meaning.
//!
//! **What.** Data records name a [`Site`], `Fetch` and `Block` records a [`Block`]. The engine
//! fills the tables while it translates; a stream file carries them. **Leaves out** names, modules
//! and source lines: those belong to reports.

/// An instruction that makes references, within one translated block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Address of the instruction.
    pub ip: u64,
    /// Number of the block it was translated in.
    pub block: u32,
    /// Index of the instruction within the block: how many instructions retire before it.
    pub index: u32,
}

/// A static basic block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Address of the first instruction.
    pub ip: u64,
    /// Bytes of all its instructions.
    pub len_bytes: u32,
    /// Number of its instructions.
    pub instructions: u32,
}

/// All sites and blocks of a stream, indexed by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Sites.
    pub sites: Vec<Site>,
    /// Blocks.
    pub blocks: Vec<Block>,
}
