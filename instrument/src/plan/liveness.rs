//! Liveness: which registers and flags are dead at each instruction of a fragment, before the
//! fragment is emitted.
//!
//! The analysis goes backwards from each block's end. The facts behind that end are known if it
//! leads to the fragment's next block, or to code that has a fragment: each fragment notes which
//! registers are dead at its head. Code that is translated again knows the most, because nearly all
//! of its targets have fragments by then. **Why.** Without these facts, a block's last third would
//! have to preserve all registers and flags; a scratch register costs two memory accesses, flags
//! cost ten instructions. The facts hold as long as the target's code does not change: if a file's
//! text changes, all translations of that file are retired (`Translator::retire_code`). **Leaves
//! out** the code behind indirect transfers, system calls and exits without a fragment, where
//! everything counts as live; and code that may change, whose needs may change too. Source: Aho et
//! al. 2006, section 9.2.5.

use crate::code::decode::End;
use crate::code::register_use::{dead_flags, register_use, RegisterUse, FLAGS};
use crate::code::state_map::FLAGS_BIT;
use crate::code::superblock::BasicBlock;
use iced_x86::{Code, FlowControl, InstructionInfoFactory};

/// The facts about an address to which a block may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TargetFacts {
    /// There is a fragment.
    pub(crate) has_code: bool,
    /// Registers and flags that are dead at its head.
    pub(crate) dead: u16,
}

/// The facts about a block.
#[derive(Default)]
pub(crate) struct Liveness {
    /// Status flags dead before instruction k.
    pub(crate) flags_dead: Vec<bool>,
    /// Register use of instruction k; empty where no scratch is ever needed.
    pub(crate) uses: Vec<RegisterUse>,
    /// Registers dead before instruction k.
    pub(crate) dead: Vec<u16>,
    /// Registers that instructions k … touch.
    pub(crate) touched: Vec<u16>,
    /// The target of its branch or call, if that is outside the fragment.
    pub(crate) taken: TargetFacts,
    /// The code behind its end, if that is outside the fragment.
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

    /// Registers and flags that are dead at the block's head.
    fn dead_at_head(&self) -> u16 {
        let registers = self.dead.first().map_or(0, |dead| dead & !FLAGS_BIT);
        let flags = self.flags_dead.first().is_some_and(|&dead| dead);
        registers | if flags { FLAGS_BIT } else { 0 }
    }

    /// Notes the facts about the addresses to which `block` leads out of the fragment.
    fn look_out(&mut self, block: &BasicBlock, known: impl Fn(u64) -> TargetFacts) {
        let (taken, behind) = ways_out(block);
        self.taken = taken.map(&known).unwrap_or_default();
        self.behind = behind.map(known).unwrap_or_default();
    }

    /// The registers and flags that are dead behind `block`; `next` are those that are dead at the
    /// head of the fragment's next block.
    fn dead_behind(&self, block: &BasicBlock, next: u16) -> u16 {
        let Some(last) = block.last() else { return 0 };
        let goes_on = block.next.is_some();
        let behind = if goes_on { next } else { self.behind.dead };
        if block.end != End::Transfer {
            return behind;
        }
        match last.i.flow_control() {
            FlowControl::ConditionalBranch => self.taken.dead & behind,
            FlowControl::UnconditionalBranch if last.i.is_jmp_short_or_near() && goes_on => next,
            FlowControl::UnconditionalBranch if last.i.is_jmp_short_or_near() => self.taken.dead,
            FlowControl::Call if last.i.is_call_near() => self.taken.dead,
            _ => 0,
        }
    }
}

/// The addresses to which a block may leave its fragment: by its branch, and behind its end.
fn ways_out(block: &BasicBlock) -> (Option<u64>, Option<u64>) {
    let ends = block.next.is_none();
    let Some(last) = block.last() else { return (None, None) };
    let i = &last.i;
    if block.end != End::Transfer {
        return (None, ends.then_some(i.next_ip()));
    }
    match i.flow_control() {
        FlowControl::ConditionalBranch => (Some(i.near_branch_target()), ends.then_some(i.next_ip())),
        FlowControl::UnconditionalBranch if i.is_jmp_short_or_near() => {
            (ends.then(|| i.near_branch_target()), None)
        }
        FlowControl::Call if i.is_call_near() => (Some(i.near_branch_target()), None),
        FlowControl::XbeginXabortXend => (Some(i.near_branch_target()), None),
        FlowControl::Interrupt => (None, Some(i.next_ip())),
        _ if i.code() == Code::Syscall => (None, Some(i.next_ip())),
        _ => (None, None),
    }
}

/// Computes the liveness of all blocks of a fragment; returns the registers and flags that are dead
/// at its head. `known` gives the facts about an address, `needs_scratch` says whether the block's
/// code will need registers.
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

/// Computes which registers are dead in a block behind which `dead_behind` are dead.
fn learn_registers(
    block: &BasicBlock,
    liveness: &mut Liveness,
    dead_behind: u16,
    factory: &mut InstructionInfoFactory,
) {
    let n = block.instructions.len();
    liveness.uses.extend(block.instructions.iter().map(|d| register_use(factory, d)));
    liveness.dead.resize(n, 0);
    liveness.touched.resize(n + 1, 0);
    let mut live = !(dead_behind & !FLAGS_BIT);
    for k in (0..n).rev() {
        let u = liveness.uses[k];
        // Registers that a tool wants recorded are live too.
        live = (live | block.events.needed_after(k)) & !u.kills | u.needs | block.events.needed_before(k);
        liveness.dead[k] = !live;
        liveness.touched[k] = liveness.touched[k + 1] | u.needs | u.kills;
    }
}
