//! Indirect transfers: a lookup of the target in a table, in line, with a routine for the slots behind the first.
//!
//! A slot holds minus the target and the target's code. The comparison is `lea` and `jrcxz`, so flags survive; rax, rcx and rdx wait
//! in their slots until the target fragment's entry loads them back. `pext` picks the slot in one instruction (BMI2; without
//! it the low sixteen bits of the target do). Source: Bruening 2004 (indirect branch lookup), the comparison is our own.

use super::draft::{slot, Draft, Goal, Part, FLAGS_BIT};
use crate::assemble::{reg, Address, Assembler};
use crate::layout::{context, LOOKUP_BITS, LOOKUP_PROBES, LOOKUP_SHIFT};

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

/// Registers that a lookup uses.
pub(crate) const LOOKUP_REGISTERS: u16 = 1 << reg::RAX | 1 << reg::RCX | 1 << reg::RDX;

impl Draft {
    /// Saves rax, rcx and rdx in their slots and restores everything else.
    pub(crate) fn enter_lookup(&mut self, operand: u16) {
        let keep = LOOKUP_REGISTERS & !operand;
        self.restore(!keep | FLAGS_BIT);
        for r in [reg::RAX, reg::RCX, reg::RDX] {
            if self.spilled & 1 << r == 0 {
                self.hot.store(r, slot(r));
                self.spilled |= 1 << r;
            }
        }
    }

    /// Jumps to the translation of the target in rcx. rax, rcx, rdx are in their slots.
    pub(crate) fn lookup(&mut self, hash: Hash, table: u64, probe: u64) {
        let code = &mut self.hot;
        match hash {
            Hash::Extract => code.extract(reg::RAX, reg::RCX, context::MASK_LOOKUP),
            Hash::LowBits => code.raw(&[0x0f, 0xb7, 0xc1]), // movzx eax, cx
        }
        code.raw(&[0x8d, 0x04, 0x00]); // lea eax, [rax + rax]
        tag(code, table);
        code.raw(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
        code.raw(&[0xe3, 5]); // jrcxz over the jump
        let at = code.jump();
        jump_to_code(code, table);
        self.link(Part::Hot, at, Goal::Address(probe));
    }
}

/// `mov rdx, [rax*8 + table]`
fn tag(code: &mut Assembler, table: u64) {
    code.raw(&[0x48, 0x8b, 0x14, 0xc5]);
    code.imm32(table as u32);
}

/// `jmp [rax*8 + table + 8]`
fn jump_to_code(code: &mut Assembler, table: u64) {
    code.raw(&[0xff, 0x24, 0xc5]);
    code.imm32(table as u32 + 8);
}

/// The entry of a fragment that lookups may reach: loads the three registers back.
pub(crate) fn entry(code: &mut Assembler) {
    for r in [reg::RDX, reg::RCX, reg::RAX] {
        code.load(r, slot(r));
    }
}

/// The shared routine behind a first probe that failed: rcx is target − tag … that is target + rdx, rdx minus the tag.
/// Tries the following slots, then leaves for the host with exit number `exit`.
pub(crate) fn probe_routine(code: &mut Assembler, table: u64, exit: u32) {
    code.not(reg::RDX);
    code.raw(&[0x48, 0x8d, 0x4c, 0x11, 0x01]); // lea rcx, [rcx + rdx + 1]
    code.store(reg::RCX, context::TARGET);
    for probe in 1..LOOKUP_PROBES {
        let at = table + u64::from(probe) * 16;
        tag(code, at);
        code.raw(&[0x48, 0x8d, 0x0c, 0x11]);
        code.raw(&[0xe3, 2, 0xeb, 7]); // jrcxz hit; jmp next
        jump_to_code(code, at);
        code.load(reg::RCX, context::TARGET);
    }
    entry(code);
    leave(code, exit);
}

/// Hands over to the host: exit number, `int3`, and on to where the host says.
pub(crate) fn leave(code: &mut Assembler, exit: u32) {
    code.store_imm32(context::EXIT, exit);
    code.raw(&[0xcc]);
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
