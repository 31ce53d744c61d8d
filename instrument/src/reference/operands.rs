//! The data references of one instruction, from its decoded form and the registers before it runs.
//!
//! This implements the table in `event`. An instruction that is not named below makes one reference
//! for each memory operand that the decoder reports, loads before stores. The named ones are those
//! whose address or size depends on more than the operand: bit strings, string instructions, state
//! areas, hints. Vectors with masks and AMX are in `vector`. **Leaves out** the loads of `enter`
//! with a nesting level, as the definition demands. Source: Intel SDM volume 2, operation sections.

use super::address::{address_of, memory_operand, push};
use super::record::Reference;
use super::state::RegisterState;
use super::vector;
use event::Access;
use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
};

/// Whether the decoder describes all references of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modelled {
    /// All references are described exactly.
    Exactly,
    /// An operand has a size that the decoder does not state, so its reference is missing.
    Incompletely,
}

/// Appends the references that `instruction` is about to make to `out`.
pub(super) fn references(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    state: &mut impl RegisterState,
    out: &mut Vec<Reference>,
) -> Modelled {
    if is_hint(instruction.mnemonic()) {
        let address = address_of(instruction, memory_operand(instruction), 0, state);
        out.push(Reference { access: Access::Prefetch, address, size_bytes: 1 });
    } else if instruction.is_string_instruction() {
        string(instruction, state, out);
    } else if is_state_area(instruction.mnemonic()) {
        state_area(instruction, state, out);
    } else if vector::is_special(instruction) {
        vector::references(instruction, state, out);
    } else if has_bit_string(instruction) {
        bit_string(instruction, state, out);
    } else {
        return plain(instruction, factory, state, out);
    }
    Modelled::Exactly
}

/// Whether the instruction neither reads nor writes its operand: a prefetch or a flush.
fn is_hint(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Prefetch
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Prefetchwt1
            | Prefetchit0
            | Prefetchit1
            | Clflush
            | Clflushopt
            | Clwb
            | Cldemote
    )
}

/// Appends the references of one iteration of a string instruction; none if the repeat count is 0.
fn string(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    if repeats(instruction) && count_register(instruction, state) == 0 {
        return;
    }
    let size_bytes = instruction.memory_size().size() as u32;
    let from = out.len();
    for operand in 0..instruction.op_count() {
        let access = match instruction.op_kind(operand) {
            OpKind::MemorySegRSI | OpKind::MemorySegESI => OpAccess::Read,
            OpKind::MemoryESRDI | OpKind::MemoryESEDI => destination_access(instruction.mnemonic()),
            _ => continue,
        };
        push(out, access, address_of(instruction, operand, 0, state), size_bytes);
    }
    out[from..].sort_by_key(|reference| reference.access);
}

/// Whether the instruction is a string instruction with a repeat prefix; both prefixes repeat every
/// string instruction.
pub(super) fn repeats(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

fn count_register(instruction: &Instruction, state: &impl RegisterState) -> u64 {
    let narrow = (0..instruction.op_count())
        .any(|operand| matches!(instruction.op_kind(operand), OpKind::MemorySegESI | OpKind::MemoryESEDI));
    let register = if narrow { Register::ECX } else { Register::RCX };
    state.general().value(register).expect("a general register has a value")
}

/// The access of a string instruction at its destination pointer.
fn destination_access(mnemonic: Mnemonic) -> OpAccess {
    use Mnemonic::*;
    match mnemonic {
        Scasb | Scasw | Scasd | Scasq | Cmpsb | Cmpsw | Cmpsd | Cmpsq => OpAccess::Read,
        _ => OpAccess::Write,
    }
}

/// Whether the instruction is `bt` or a variant with the bit number in a register: the bit may lie
/// far from the operand's address.
fn has_bit_string(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(instruction.mnemonic(), Bt | Bts | Btr | Btc)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}

fn bit_string(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let size_bytes = instruction.op1_register().size() as u32;
    let raw = state.general().value(instruction.op1_register()).expect("a general register has a value");
    let bit = match size_bytes {
        2 => i64::from(raw as i16),
        4 => i64::from(raw as i32),
        _ => raw as i64,
    };
    let cell = bit.div_euclid(i64::from(size_bytes) * 8) * i64::from(size_bytes);
    let address = address_of(instruction, 0, 0, state).wrapping_add(cell as u64);
    let access = if instruction.mnemonic() == Mnemonic::Bt { OpAccess::Read } else { OpAccess::ReadWrite };
    push(out, access, address, size_bytes);
}

fn is_state_area(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Xsave | Xsave64 | Xsaveopt | Xsaveopt64 | Xsavec | Xsavec64 | Xrstor | Xrstor64)
}

/// Appends the reference to an XSAVE area: from its start to the end of the last component that
/// edx:eax and XCR0 request.
fn state_area(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    use Mnemonic::*;
    let address = address_of(instruction, 0, 0, state);
    let [eax, _, edx, ..] = state.general().numbered;
    let header_layout = state.word(address.wrapping_add(520));
    let extended = state.extended();
    let mask = (edx << 32 | eax & 0xffff_ffff) & extended.xcr0();
    let (access, size) = match instruction.mnemonic() {
        Xsavec | Xsavec64 => (OpAccess::Write, extended.layout.compact_bytes(mask, mask)),
        Xrstor | Xrstor64 if header_layout >> 63 == 1 => {
            (OpAccess::Read, extended.layout.compact_bytes(header_layout, mask))
        }
        Xrstor | Xrstor64 => (OpAccess::Read, extended.layout.standard_bytes(mask)),
        _ => (OpAccess::Write, extended.layout.standard_bytes(mask)),
    };
    push(out, access, address, size as u32);
}

/// Appends the references of all other instructions, from the decoder's tables, loads first.
fn plain(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    state: &mut impl RegisterState,
    out: &mut Vec<Reference>,
) -> Modelled {
    let mut modelled = Modelled::Exactly;
    let from = out.len();
    let stores_only = instruction.mnemonic() == Mnemonic::Enter;
    for memory in factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE).used_memory() {
        if stores_only && memory.access() == OpAccess::Read {
            continue;
        }
        let size_bytes = memory.memory_size().size() as u32;
        if size_bytes == 0 {
            modelled = Modelled::Incompletely;
            continue;
        }
        let address = memory.virtual_address(0, |register, _, _| state.general().value(register));
        push(out, memory.access(), address.expect("made of general and segment registers"), size_bytes);
    }
    out[from..].sort_by_key(|reference| reference.access);
    modelled
}
