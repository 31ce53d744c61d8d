//! Jumps within functions, as `--collect-jumps=yes` asks for them.
//!
//! How often a conditional branch was taken, and how often a block ended with a direct jump, is
//! what the counters of blocks say, so these jumps cost the run nothing. Where they lead stands in
//! the code, which is read from its file when the run has ended. Only jumps by a register or memory
//! are counted while the program runs, by the graph of calls. **Leaves out** jumps in code that has
//! no file, those by a register with `--calls=no`, the way of repeated string instructions to
//! themselves, which Valgrind translates to a jump, and jumps into another function, which are
//! calls.

use crate::report::parts::{JumpKind, Jumped, Place};
use crate::run::sections::Section;
use cycles::Text;
use iced_x86::{Code, FlowControl};
use instrument::{Block, Profile};
use present::order::SortRows;
use std::collections::HashMap;
use symbol::ByNumber;

/// Where the jumps at the ends of blocks lead.
pub(super) struct Targets {
    /// By index into the profile's blocks: a direct jump that ends it, with the first instruction
    /// at its target.
    direct: Vec<Option<(JumpKind, u32)>>,
}

impl Targets {
    /// Reads the code of all blocks that end with a direct jump and ran.
    pub(super) fn of(profile: &Profile) -> Targets {
        let files = Files::of(profile);
        let ran = profile.blocks.iter().filter(|block| block.executions > 0);
        let place = |block: &Block| Some((files.place(block, block.ip)?, block.first));
        let firsts: ByNumber<(u32, u64), u32> = ran.filter_map(place).collect();
        let mut text = Text::new(profile);
        let mut direct = |block: &Block| {
            let kind = ends_with(block, profile)?;
            let target = text.instructions(block)?.last()?.near_branch_target();
            Some((kind, *firsts.get(&files.place(block, target)?)?))
        };
        Targets { direct: profile.blocks.iter().map(&mut direct).collect() }
    }

    /// The jumps of some parts together, in the order of their places. `place` knows the places of
    /// instructions, by index into the profile's.
    pub(super) fn jumps(
        &self,
        parts: &[&Section],
        profile: &Profile,
        place: impl Fn(u32) -> Option<Place>,
    ) -> Vec<Jumped> {
        let mut jumps: Vec<Jumped> = Vec::new();
        let mut add = |block: &Block, to: u32, kind: JumpKind, (taken, executed): (u64, u64)| {
            let from = place(block.first + block.count - 1);
            let (Some(from), Some(to)) = (from, place(to)) else { return };
            if (from.object, from.function) == (to.object, to.function) {
                jumps.push(Jumped { from, to, kind, taken, executed });
            }
        };
        for section in parts {
            for (number, left) in section.part.blocks_left() {
                let Some((kind, to)) = self.direct[number as usize] else { continue };
                let executed = left.entered - left.early;
                let taken = if kind == JumpKind::Always { executed } else { left.taken };
                add(&profile.blocks[number as usize], to, kind, (taken, executed));
            }
            for jump in &section.jumps {
                let [block, to] = [jump.block, jump.target].map(|number| &profile.blocks[number as usize]);
                if flow_at_end(block, profile) == Some(FlowControl::IndirectBranch) {
                    add(block, to.first, JumpKind::Always, (jump.times, jump.times));
                }
            }
        }
        joined(jumps)
    }
}

/// Adds up jumps between the same places. Code may have been translated more than once, and one
/// copy's jump never be taken.
fn joined(mut jumps: Vec<Jumped>) -> Vec<Jumped> {
    let key = |jump: &Jumped| (jump.from, jump.to, jump.kind);
    jumps.sort_rows_by_key(key);
    jumps.dedup_by(|more, sum| {
        let same = key(more) == key(sum);
        if same {
            sum.taken += more.taken;
            sum.executed += more.executed;
        }
        same
    });
    jumps.retain(|jump| jump.taken > 0);
    jumps
}

/// Which modules map one file.
struct Files<'p> {
    profile: &'p Profile,
    /// By module: the first one with its path.
    of: Vec<u32>,
}

impl<'p> Files<'p> {
    fn of(profile: &'p Profile) -> Files<'p> {
        let mut first = HashMap::new();
        let modules = profile.modules.iter().zip(0..);
        let of = modules.map(|(module, number)| *first.entry(module.path.as_path()).or_insert(number));
        Files { profile, of: of.collect() }
    }

    /// The file and the offset of an address in the mapping that a block belongs to.
    fn place(&self, block: &Block, address: u64) -> Option<(u32, u64)> {
        let module = self.profile.modules.get(block.module as usize)?;
        let offset = address.checked_sub(module.start)?.checked_add(module.file_offset)?;
        Some((self.of[block.module as usize], offset))
    }
}

/// The direct jump that ends a block that ran, if one does.
fn ends_with(block: &Block, profile: &Profile) -> Option<JumpKind> {
    match flow_at_end(block, profile).filter(|_| block.executions > 0)? {
        FlowControl::ConditionalBranch => Some(JumpKind::Conditional),
        FlowControl::UnconditionalBranch => Some(JumpKind::Always),
        _ => None,
    }
}

fn flow_at_end(block: &Block, profile: &Profile) -> Option<FlowControl> {
    let last = profile.instructions.get((block.first + block.count).checked_sub(1)? as usize)?;
    Code::try_from(usize::from(last.code)).ok().map(Code::flow_control)
}
