//! Liveness: which registers and flags are dead at each instruction of a fragment. It is computed
//! before the fragment is emitted.
//!
//! **Method.** The analysis goes backwards from each block's end. The registers that are dead
//! behind that end are known if the end leads to the fragment's next block or to another fragment,
//! because each fragment stores which registers are dead at its head. Code that is translated again
//! gets the best answer, because most of its targets have fragments by then. **Why.** Without this
//! information, the last third of a typical block would have to preserve all registers and flags. A
//! scratch register that must be preserved costs two memory accesses; flags cost ten instructions.
//! **Invariant.** The result holds as long as the target's code does not change: if a file's text
//! changes, all translations of that file are retired (`Translator::retire_code`). **Leaves out**
//! code behind indirect transfers, system calls and exits without a fragment, where everything
//! counts as live, and code in writable memory, which may change. Source: Aho et al. 2006, section
//! 9.2.5.

use crate::code::decode::End;
use crate::code::register_use::{dead_flags, register_use, RegisterUse, FLAGS};
use crate::code::state_map::FLAGS_BIT;
use crate::code::superblock::BasicBlock;
use iced_x86::{Code, FlowControl, InstructionInfoFactory};

/// The known facts about an address outside the fragment to which a block may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TargetFacts {
    /// Whether a fragment starts at the address.
    pub(crate) has_code: bool,
    /// Bit set of the registers and flags that are dead at that fragment's head.
    pub(crate) dead: u16,
}

/// The liveness of one block. Vectors are indexed by instruction.
#[derive(Default)]
pub(crate) struct Liveness {
    /// Whether the status flags are dead before the instruction.
    pub(crate) flags_dead: Vec<bool>,
    /// The instruction's register use; empty if the block's code needs no scratch registers.
    pub(crate) uses: Vec<RegisterUse>,
    /// Bit set of the registers that are dead before the instruction.
    pub(crate) dead: Vec<u16>,
    /// Bit set of the registers that this instruction and all later ones of the block touch.
    pub(crate) touched: Vec<u16>,
    /// The target of the block's branch or call, if it is outside the fragment.
    pub(crate) taken: TargetFacts,
    /// The instruction behind the block's end, if it is outside the fragment.
    pub(crate) behind: TargetFacts,
}

impl Liveness {
    /// Forgets all facts; the tables keep their allocations.
    fn clear(&mut self) {
        self.flags_dead.clear();
        self.uses.clear();
        self.dead.clear();
        self.touched.clear();
    }

    /// Bit set of the registers and flags that are dead at the block's head.
    fn dead_at_head(&self) -> u16 {
        let registers = self.dead.first().map_or(0, |dead| dead & !FLAGS_BIT);
        let flags = self.flags_dead.first().is_some_and(|&dead| dead);
        registers | if flags { FLAGS_BIT } else { 0 }
    }

    /// Stores the facts that `known` returns for the addresses to which `block` leaves the
    /// fragment.
    fn look_out(&mut self, block: &BasicBlock, known: impl Fn(u64) -> TargetFacts) {
        let (taken, behind) = ways_out(block);
        self.taken = taken.map(&known).unwrap_or_default();
        self.behind = behind.map(known).unwrap_or_default();
    }

    /// Bit set of the registers and flags that are dead behind `block`. `next` is the set at the
    /// head of the fragment's next block.
    fn dead_behind(&self, block: &BasicBlock, next: u16) -> u16 {
        let Some(last) = block.last() else { return 0 };
        let goes_on = block.next.is_some();
        let behind = if goes_on { next } else { self.behind.dead };
        if block.end != End::Transfer {
            return behind;
        }
        match last.instruction.flow_control() {
            FlowControl::ConditionalBranch => self.taken.dead & behind,
            FlowControl::UnconditionalBranch if last.instruction.is_jmp_short_or_near() && goes_on => next,
            FlowControl::UnconditionalBranch if last.instruction.is_jmp_short_or_near() => self.taken.dead,
            FlowControl::Call if last.instruction.is_call_near() => self.taken.dead,
            _ => 0,
        }
    }
}

/// The addresses to which a block may leave its fragment: the target of its branch, and the address
/// behind its end.
fn ways_out(block: &BasicBlock) -> (Option<u64>, Option<u64>) {
    let ends = block.next.is_none();
    let Some(last) = block.last() else { return (None, None) };
    let instruction = &last.instruction;
    if block.end != End::Transfer {
        return (None, ends.then_some(instruction.next_ip()));
    }
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => {
            (Some(instruction.near_branch_target()), ends.then_some(instruction.next_ip()))
        }
        FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
            (ends.then(|| instruction.near_branch_target()), None)
        }
        FlowControl::Call if instruction.is_call_near() => (Some(instruction.near_branch_target()), None),
        FlowControl::XbeginXabortXend => (Some(instruction.near_branch_target()), None),
        FlowControl::Interrupt => (None, Some(instruction.next_ip())),
        _ if instruction.code() == Code::Syscall => (None, Some(instruction.next_ip())),
        _ => (None, None),
    }
}

/// Computes the liveness of all blocks of a fragment, and returns the registers and flags that are
/// dead at its head. `known` returns the facts about an address outside the fragment;
/// `needs_scratch` returns whether a block's code will need scratch registers.
pub(crate) fn learn(
    blocks: &[BasicBlock],
    liveness: &mut [Liveness],
    known: impl Fn(u64) -> TargetFacts,
    needs_scratch: impl Fn(&BasicBlock) -> bool,
    factory: &mut InstructionInfoFactory,
) -> u16 {
    let mut dead = 0;
    for (block, liveness) in blocks.iter().zip(liveness).rev() {
        liveness.clear();
        liveness.look_out(block, &known);
        let behind = liveness.dead_behind(block, dead);
        let flags = if behind & FLAGS_BIT != 0 { 0 } else { FLAGS };
        dead_flags(&block.instructions, flags, &mut liveness.flags_dead);
        if needs_scratch(block) {
            learn_registers(block, liveness, behind, factory);
        }
        dead = liveness.dead_at_head();
    }
    dead
}

/// Computes which registers are dead at each instruction of `block`, given those that are dead
/// behind it.
fn learn_registers(
    block: &BasicBlock,
    liveness: &mut Liveness,
    dead_behind: u16,
    factory: &mut InstructionInfoFactory,
) {
    let count = block.instructions.len();
    liveness.uses.extend(block.instructions.iter().map(|decoded| register_use(factory, decoded)));
    liveness.dead.resize(count, 0);
    liveness.touched.resize(count + 1, 0);
    let mut live = !(dead_behind & !FLAGS_BIT);
    for index in (0..count).rev() {
        let used = liveness.uses[index];
        // live before = live after − overwritten + read. A register whose value a tool has
        // requested is live at the place of the request.
        live = (live | block.events.needed_after(index)) & !used.kills
            | used.needs
            | block.events.needed_before(index);
        liveness.dead[index] = !live;
        liveness.touched[index] = liveness.touched[index + 1] | used.needs | used.kills;
    }
}
