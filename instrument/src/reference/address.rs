//! The address of an operand, and the references of an access there.
//!
//! Both plain instructions (`operands`) and those whose extent depends on vectors (`vector`) have
//! addresses; those of a gather depend on an element of a vector.

use super::record::Reference;
use super::state::RegisterState;
use event::Access;
use iced_x86::{Instruction, OpAccess, OpKind};

/// Appends a load, a store, or both, depending on `access`. The definition counts conditional
/// accesses as made.
pub(super) fn push(out: &mut Vec<Reference>, access: OpAccess, address: u64, size_bytes: u32) {
    if matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite) {
        out.push(Reference { access: Access::Load, address, size_bytes });
    }
    if matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    {
        out.push(Reference { access: Access::Store, address, size_bytes });
    }
}

/// The linear address of an operand; if its index is a vector, the address of element `element`.
pub(super) fn address_of(
    instruction: &Instruction,
    operand: u32,
    element: usize,
    state: &mut impl RegisterState,
) -> u64 {
    instruction
        .virtual_address(operand, element, |register, element, size| match register.is_vector_register() {
            true => Some(element_of(&state.extended().vector(register.number()), element, size)),
            false => state.general().value(register),
        })
        .expect("an address is made of general, segment and vector registers")
}

/// Number of the explicit memory operand.
pub(super) fn memory_operand(instruction: &Instruction) -> u32 {
    (0..instruction.op_count())
        .find(|&operand| instruction.op_kind(operand) == OpKind::Memory)
        .expect("asked only of instructions with a memory operand")
}

/// Element `index` of `size` bytes.
fn element_of(vector: &[u8; 64], index: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&vector[index * size..][..size]);
    u64::from_le_bytes(word)
}
