//! Indirect transfers: an inline lookup of the target in a table, with a shared routine for the
//! slots behind the first.
//!
//! **Problem.** The target of an indirect transfer is known at run time only, and the lookup must
//! change no flags. **Idea.** A slot of 16 bytes holds the negated target (its *tag*) and the
//! address of the target's code. `lea` adds target and tag, and `jrcxz` tests the sum for 0:
//! neither changes flags. rax, rcx and rdx are used; their program values wait in the context until
//! the entry of the target fragment loads them. `pext` picks the slot in one instruction (BMI2);
//! without it the slot is given by the low sixteen bits of the target. The table grows when a
//! target finds no slot ([`TableSize`]): the mask in each thread's context changes. Slots that were
//! taken stay as they are, because a thread may be reading them; their targets are entered once
//! more. Source: Bruening 2004 (indirect branch lookup); the
//! comparison is our own.

use super::assembler::{reg, Address, Assembler};
use super::hand_over;
use super::state_map::slot;
use crate::target::layout::{context, LOOKUP_PROBES, LOOKUP_SLOTS_MAX};
use assembler::{Gpr, Memory, Scale, Size};
use std::ops::Range;

/// How generated code computes a target's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// `pext` of the target with the mask in the context.
    Extract,
    /// The low sixteen bits of the target.
    LowBits,
}

impl Hash {
    /// The fastest form that this processor supports.
    pub(crate) fn of_host() -> Hash {
        if std::arch::is_x86_feature_detected!("bmi2") {
            Hash::Extract
        } else {
            Hash::LowBits
        }
    }

    /// The slot number of `target`, as generated code computes it in a table of this size.
    pub(crate) fn slot(self, target: u64, size: TableSize) -> u64 {
        match self {
            Hash::Extract => size.slot(target),
            Hash::LowBits => target & 0xffff,
        }
    }
}

/// The low bits of a target that do not select its slot. Targets are seldom nearer to each other,
/// and so the used slots lie in fewer cache lines.
const SHIFT: u32 = 2;
/// A bit that is set in addresses of position-independent executables and of libraries, and clear
/// in most others.
const HIGH_BIT: u32 = 46;

/// How many slots the lookup table uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableSize {
    /// 2^18: enough for most programs.
    First,
    /// 2^20, and as many again for addresses whose bit 46 is set. So most targets leave the slots
    /// of the first size, which old entries fill.
    Grown,
}

impl TableSize {
    /// The bits of a target, above the shift, that count slots.
    fn bits(self) -> u32 {
        match self {
            TableSize::First => 18,
            TableSize::Grown => 20,
        }
    }

    /// The slots that most targets have.
    pub(crate) fn busy_slots(self) -> Range<u64> {
        match self {
            TableSize::First => 0..1 << self.bits(),
            TableSize::Grown => LOOKUP_SLOTS_MAX / 2..LOOKUP_SLOTS_MAX,
        }
    }

    /// The bits of a target that `pext` puts together to the slot's number.
    pub(crate) fn mask(self) -> u64 {
        let low = ((1 << self.bits()) - 1) << SHIFT;
        match self {
            TableSize::First => low,
            TableSize::Grown => low | 1 << HIGH_BIT,
        }
    }

    /// What `pext` makes of `target` with the mask.
    fn slot(self, target: u64) -> u64 {
        let low = (target >> SHIFT) & ((1 << self.bits()) - 1);
        match self {
            TableSize::First => low,
            TableSize::Grown => low | (target >> HIGH_BIT & 1) << self.bits(),
        }
    }
}

/// `mov rdx, [rax*8 + table]`: loads a slot's tag.
pub(crate) fn tag(code: &mut Assembler, table: u64) {
    let slot = Memory::absolute(table as i32).index(Gpr::RAX, Scale::Eight);
    code.code().mov_from(Size::Qword, Gpr::RDX, slot);
}

/// `jmp [rax*8 + table + 8]`: jumps to a slot's code.
pub(crate) fn jump_to_code(code: &mut Assembler, table: u64) {
    let slot = Memory::absolute(table as i32 + 8).index(Gpr::RAX, Scale::Eight);
    code.code().jump_through(slot);
}

/// `lea rcx, [rcx + rdx + more]`: 0 if the tag is that of the target.
pub(crate) fn add_tag(code: &mut Assembler, more: i32) {
    let sum = Memory::at(Gpr::RCX).index(Gpr::RDX, Scale::One).plus(more);
    code.code().lea(Size::Qword, Gpr::RCX, sum);
}

/// Emits the entry of a fragment for lookups: it loads the three registers that they use.
pub(crate) fn entry(code: &mut Assembler) {
    for register in [reg::RDX, reg::RCX, reg::RAX] {
        code.load(register, slot(register));
    }
}

/// Emits the routine that runs if the first slot holds another target. At its beginning rdx is the
/// first slot's tag and rcx the sum of target and tag. It tries the following slots, and then
/// leaves for the host with exit number `exit`.
pub(crate) fn probe_routine(code: &mut Assembler, table: u64, exit: u32) {
    // Undo the first comparison: rcx + not(rdx) + 1 = rcx − rdx = target.
    code.not(reg::RDX);
    add_tag(code, 1);
    code.store(reg::RCX, context::TARGET);
    for probe in 1..LOOKUP_PROBES {
        let at = table + u64::from(probe) * 16;
        tag(code, at);
        add_tag(code, 0);
        let hit = code.code().short_jump_if_rcx_zero();
        let next = code.code().short_jump();
        code.code().land_short(hit);
        jump_to_code(code, at);
        code.code().land_short(next);
        code.load(reg::RCX, context::TARGET);
    }
    entry(code);
    leave(code, exit);
}

/// Emits a hand-over to the host with this exit number; the thread goes on where the host says.
pub(crate) fn leave(code: &mut Assembler, exit: u32) {
    code.store_imm32(context::EXIT, exit);
    hand_over::enter(code);
}

/// Emits `mov rcx, [address]` for jumps and calls through memory. An absolute address of 64 bits
/// goes through rcx.
pub(crate) fn load_target(code: &mut Assembler, address: &Address) {
    if address.base.is_none() && address.index.is_none() && i32::try_from(address.displacement).is_err() {
        code.mov_imm(reg::RCX, address.displacement as u64);
        let at = Address { base: Some(reg::RCX), displacement: 0, ..*address };
        return code.load_program(reg::RCX, &at);
    }
    code.load_program(reg::RCX, address);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `pext` does, bit by bit.
    fn extracted(from: u64, mask: u64) -> u64 {
        let bits = (0..64).filter(|bit| mask >> bit & 1 != 0);
        bits.zip(0..).map(|(bit, to)| (from >> bit & 1) << to).sum()
    }

    #[test]
    fn the_host_finds_the_slot_that_generated_code_finds() {
        let targets = [0x55d3_0c41_2f37, 0x7ffe_1234_5679, 0x40_1000, 0x3_ffff_ffff, u64::MAX];
        for size in [TableSize::First, TableSize::Grown] {
            for target in targets {
                let slot = Hash::Extract.slot(target, size);
                assert_eq!(slot, extracted(target, size.mask()), "{target:#x} {size:?}");
                assert!(slot < LOOKUP_SLOTS_MAX);
            }
        }
        let slot = |target| Hash::Extract.slot(target, TableSize::Grown);
        assert!(TableSize::Grown.busy_slots().contains(&slot(targets[0])));
        assert!(!TableSize::Grown.busy_slots().contains(&slot(targets[2])));
    }
}
