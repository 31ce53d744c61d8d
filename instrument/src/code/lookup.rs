//! Indirect transfers: a lookup of the target in a table, in line, with a routine for the slots
//! behind the first.
//!
//! A slot holds minus the target and the target's code. The comparison is `lea` and `jrcxz`, so
//! flags survive; rax, rcx and rdx wait in their slots until the target fragment's entry loads them
//! back. `pext` picks the slot in one instruction (BMI2; without it the low sixteen bits of the
//! target do). Source: Bruening 2004 (indirect branch lookup), the comparison is our own.

use super::assembler::{reg, Address, Assembler};
use super::state_map::slot;
use crate::target::layout::{context, LOOKUP_BITS, LOOKUP_PROBES, LOOKUP_SHIFT};
use assembler::{Gpr, Memory, Scale, Size};

/// How a slot is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// `pext` with the mask in the context.
    Extract,
    /// The low sixteen bits.
    LowBits,
}

impl Hash {
    /// What this processor can do.
    pub(crate) fn of_host() -> Hash {
        if std::arch::is_x86_feature_detected!("bmi2") {
            Hash::Extract
        } else {
            Hash::LowBits
        }
    }

    /// Slot number of a target, as generated code computes it.
    pub(crate) fn slot(self, target: u64) -> u64 {
        match self {
            Hash::Extract => (target >> LOOKUP_SHIFT) & ((1 << LOOKUP_BITS) - 1),
            Hash::LowBits => target & 0xffff,
        }
    }
}

/// `mov rdx, [rax*8 + table]`
pub(crate) fn tag(code: &mut Assembler, table: u64) {
    let slot = Memory::absolute(table as i32).index(Gpr::RAX, Scale::Eight);
    code.code().mov_from(Size::Qword, Gpr::RDX, slot);
}

/// `jmp [rax*8 + table + 8]`
pub(crate) fn jump_to_code(code: &mut Assembler, table: u64) {
    let slot = Memory::absolute(table as i32 + 8).index(Gpr::RAX, Scale::Eight);
    code.code().jump_through(slot);
}

/// `lea rcx, [rcx + rdx + more]`: 0 where the tag is the target's.
pub(crate) fn add_tag(code: &mut Assembler, more: i32) {
    let sum = Memory::at(Gpr::RCX).index(Gpr::RDX, Scale::One).plus(more);
    code.code().lea(Size::Qword, Gpr::RCX, sum);
}

/// The entry of a fragment that lookups may reach: loads the three registers back.
pub(crate) fn entry(code: &mut Assembler) {
    for r in [reg::RDX, reg::RCX, reg::RAX] {
        code.load(r, slot(r));
    }
}

/// The shared routine behind a first probe that failed: rcx is target − tag … that is target + rdx,
/// rdx minus the tag. Tries the following slots, then leaves for the host with exit number `exit`.
pub(crate) fn probe_routine(code: &mut Assembler, table: u64, exit: u32) {
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

/// Hands over to the host: exit number, `int3`, and on to where the host says.
pub(crate) fn leave(code: &mut Assembler, exit: u32) {
    code.store_imm32(context::EXIT, exit);
    code.stop();
    code.jump_context(context::CONTINUE);
}

/// `mov rcx, [address]`, for jumps and calls through memory.
pub(crate) fn load_target(code: &mut Assembler, address: &Address) {
    if address.base.is_none() && address.index.is_none() && i32::try_from(address.displacement).is_err() {
        code.mov_imm(reg::RCX, address.displacement as u64);
        let at = Address { base: Some(reg::RCX), displacement: 0, ..*address };
        return code.load_program(reg::RCX, &at);
    }
    code.load_program(reg::RCX, address);
}
