//! An instruction as the analysis of dependences sees it.

use crate::timing::{is_move, timing, Timing, Unit};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::rc::Rc;

/// Registers that carry dependences: the full registers, and one for all flags. They are numbered
/// closely, because tables of all of them are made for each block.
pub(crate) type Slot = u8;

/// The slot of the flags.
const FLAGS: Slot = 91;

/// The number of slots.
pub(crate) const SLOTS: usize = 92;

/// The address of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) base: Option<Slot>,
    pub(crate) index: Option<Slot>,
    pub(crate) scale: u8,
    pub(crate) displacement: u64,
}

/// What an instruction does to a register that addresses may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The register becomes another one plus a constant.
    Offset { to: Slot, from: Slot, constant: i64 },
    /// The register becomes another one plus or minus a register.
    Moved { to: Slot, from: Slot, by: Slot },
    /// The register becomes a multiple of another one, which may have been moved too.
    Multiple { to: Slot, from: Slot },
    /// Nothing is known of the registers that are written.
    Opaque,
}

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Registers that feed the result, those of an address excluded.
    pub(crate) reads: Rc<[Slot]>,
    pub(crate) writes: Rc<[Slot]>,
    pub(crate) address: Option<Address>,
    pub(crate) loads: u8,
    pub(crate) stores: u8,
    pub(crate) timing: Timing,
    pub(crate) change: Change,
    /// Whether it is a conditional branch, which the flags feed.
    pub(crate) conditional: bool,
    /// Of a repeated string instruction: bytes of an element.
    pub(crate) repeated: Option<usize>,
}

/// Reads the steps of instructions.
pub(crate) struct Reader(InstructionInfoFactory);

impl Reader {
    pub(crate) fn new() -> Reader {
        Reader(InstructionInfoFactory::new())
    }

    /// The step of an instruction with so many loads and stores.
    pub(crate) fn step(&mut self, instruction: &Instruction, loads: u8, stores: u8) -> Step {
        let memory =
            (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        let is_lea = instruction.mnemonic() == Mnemonic::Lea;
        let address = (memory && !is_lea).then(|| address(instruction));
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        let info = self.0.info(instruction);
        let zeroes = is_zeroing(instruction);
        for used in info.used_registers() {
            let Some(slot) = slot(used.register()) else { continue };
            let (read, write) = match used.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write => (false, true),
                OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            // The registers of an address are waited for by the load and not by the result.
            let of_address =
                address.is_some_and(|address| address.base == Some(slot) || address.index == Some(slot));
            if read && !zeroes && (!of_address || write) {
                reads.push(slot);
            }
            if write {
                writes.push(slot);
            }
        }
        if !zeroes && instruction.rflags_read() != 0 {
            reads.push(FLAGS);
        }
        if instruction.rflags_modified() != 0 {
            writes.push(FLAGS);
        }
        // The stack engine renames the stack pointer ahead of everything else.
        let is_stack =
            matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret);
        if is_stack {
            let pointer = slot(Register::RSP);
            reads.retain(|read| Some(*read) != pointer);
            writes.retain(|write| Some(*write) != pointer);
        }
        let timing = timing(instruction);
        Step {
            change: change(instruction),
            reads: reads.into(),
            writes: writes.into(),
            address,
            loads,
            stores,
            conditional: instruction.is_jcc_short_or_near(),
            repeated: (instruction.has_rep_prefix() && instruction.is_string_instruction())
                .then(|| instruction.memory_size().size().max(1)),
            timing: if zeroes { Timing { latency: 0, slots: 1, unit: Unit::General } } else { timing },
        }
    }
}

/// The slot of a register; none for those that never change, such as the instruction pointer.
fn slot(register: Register) -> Option<Slot> {
    let full = register.full_register();
    let behind = |first: Register, start: usize| (full as usize - first as usize + start) as Slot;
    Some(match full {
        Register::None | Register::RIP => return None,
        _ if full.is_gpr64() => behind(Register::RAX, 0),
        _ if full.is_zmm() => behind(Register::ZMM0, 16),
        _ if full.is_k() => behind(Register::K0, 48),
        _ if full.is_mm() => behind(Register::MM0, 56),
        _ if full.is_st() => behind(Register::ST0, 64),
        _ if full.is_tmm() => behind(Register::TMM0, 72),
        _ if full.is_segment_register() => behind(Register::ES, 80),
        _ if full.is_bnd() => behind(Register::BND0, 86),
        // Registers that programs cannot use.
        _ => 90,
    })
}

fn address(instruction: &Instruction) -> Address {
    Address {
        base: slot(instruction.memory_base()),
        index: slot(instruction.memory_index()),
        scale: instruction.memory_index_scale() as u8,
        displacement: instruction.memory_displacement64(),
    }
}

/// Whether the result is 0, or all ones, whatever the operands hold: processors know these forms.
fn is_zeroing(instruction: &Instruction) -> bool {
    use Mnemonic::{Pcmpeqb, Pcmpeqd, Pxor, Sub, Vpxor, Vxorps, Xor, Xorpd, Xorps};
    let form = matches!(
        instruction.mnemonic(),
        Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vxorps | Pcmpeqd | Pcmpeqb
    );
    let last = instruction.op_count().saturating_sub(1);
    let register = |operand| instruction.op_register(operand);
    let before = last.saturating_sub(1);
    form && last > 0 && register(last) != Register::None && register(last) == register(before)
}

fn change(instruction: &Instruction) -> Change {
    let register = |operand: u32| {
        let is = operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Register;
        is.then(|| slot(instruction.op_register(operand))).flatten()
    };
    let constant = |operand: u32| instruction.try_immediate(operand).ok().map(|value| value as i64);
    let Some(to) = register(0) else { return Change::Opaque };
    match instruction.mnemonic() {
        mnemonic if is_move(mnemonic) || mnemonic == Mnemonic::Movsxd => match register(1) {
            Some(from) => Change::Offset { to, from, constant: 0 },
            None => Change::Opaque,
        },
        Mnemonic::Inc => Change::Offset { to, from: to, constant: 1 },
        Mnemonic::Dec => Change::Offset { to, from: to, constant: -1 },
        Mnemonic::Add | Mnemonic::Sub => {
            let sign = if instruction.mnemonic() == Mnemonic::Add { 1 } else { -1 };
            match (constant(1), register(1)) {
                (Some(constant), _) => Change::Offset { to, from: to, constant: sign * constant },
                (_, Some(by)) if by != to => Change::Moved { to, from: to, by },
                _ => Change::Opaque,
            }
        }
        Mnemonic::Shl | Mnemonic::Imul => match (register(1), constant(instruction.op_count() - 1)) {
            (Some(from), Some(_)) if instruction.op_count() == 3 => Change::Multiple { to, from },
            (_, Some(_)) if instruction.op_count() == 2 => Change::Multiple { to, from: to },
            _ => Change::Opaque,
        },
        Mnemonic::Lea => {
            let Address { base, index, displacement, .. } = address(instruction);
            match (base, index) {
                (Some(from), None) => Change::Offset { to, from, constant: displacement as i64 },
                (Some(from), Some(by)) => Change::Moved { to, from, by },
                (None, Some(from)) => Change::Multiple { to, from },
                (None, None) => Change::Opaque,
            }
        }
        _ => Change::Opaque,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_of_a_program_has_a_slot_of_its_own() {
        let registers: Vec<Register> = Register::values()
            .filter(|register| register.full_register() == *register)
            .filter(|register| !register.is_cr() && !register.is_dr() && !register.is_tr())
            .filter(|register| slot(*register).is_some_and(|slot| slot != 90))
            .collect();
        let mut slots: Vec<Slot> = registers.iter().filter_map(|register| slot(*register)).collect();
        assert!(slots.iter().all(|&slot| usize::from(slot) < SLOTS && slot != FLAGS));
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), registers.len());
        assert!(registers.len() >= 16 + 32 + 8 + 8 + 8 + 8 + 6, "{registers:?}");
    }
}
