//! References of vector and tile instructions whose extent is known only when they run: masks,
//! gathers, compressions, tiles.
//!
//! A masked access is one reference from the first to the last enabled element, if the mask applies
//! to the *memory* operand. Permutations and shuffles with a mask read their whole source (the
//! SDM's exception class E4NF, "no fault suppression") and are listed by name. A broadcast reads
//! its one element if any element of the result is enabled. Gathers and scatters make one reference
//! for each enabled element. Source: Intel SDM volume 2, sections 2.7 and 2.8 and the operation
//! sections.

use crate::plan::masking::{broadcast_element, is_packing, mask_granularity, reads_whole_source};

use super::address::{address_of, memory_operand, push};
use super::record::Reference;
use super::state::RegisterState;
use iced_x86::{Instruction, Mnemonic, OpAccess, OpKind, Register};

/// Whether this file determines the references, and not the decoder's tables.
pub(super) fn is_special(instruction: &Instruction) -> bool {
    let named = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    kind(instruction).is_some_and(|kind| named || kind == Kind::ByteMask)
}

/// How the extent of an instruction's references is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// There is one reference for each enabled element.
    Gather,
    /// An AVX-512 mask register enables elements.
    Masked,
    /// The number of set mask bits is the number of contiguous elements.
    Packed,
    /// The sign bits of a vector register enable elements (AVX, AVX2).
    SignMask,
    /// The sign bits of a vector register enable bytes at rdi.
    ByteMask,
    /// There is one reference for each row.
    Tile,
}

fn kind(instruction: &Instruction) -> Option<Kind> {
    use Mnemonic::*;
    Some(match instruction.mnemonic() {
        Maskmovq | Maskmovdqu | Vmaskmovdqu => Kind::ByteMask,
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => Kind::SignMask,
        Tileloadd | Tileloaddt1 | Tilestored => Kind::Tile,
        _ if instruction.is_vsib() => Kind::Gather,
        mnemonic if instruction.has_op_mask() && is_packing(mnemonic) => Kind::Packed,
        mnemonic if instruction.has_op_mask() && !reads_whole_source(mnemonic) => Kind::Masked,
        _ => return None,
    })
}

/// Appends the references of an instruction for which [`is_special`] holds.
pub(super) fn references(
    instruction: &Instruction,
    state: &mut impl RegisterState,
    out: &mut Vec<Reference>,
) {
    match kind(instruction).expect("asked only of special instructions") {
        Kind::Gather => gather(instruction, state, out),
        Kind::Masked => masked(instruction, state, out),
        Kind::Packed => packed(instruction, state, out),
        Kind::SignMask => sign_mask(instruction, state, out),
        Kind::ByteMask => byte_mask(instruction, state, out),
        Kind::Tile => tile(instruction, state, out),
    }
}

/// The direction of the memory operand: it is written if it is the first operand. (Comparisons
/// write a mask register, which is then the first operand.)
fn direction(instruction: &Instruction) -> OpAccess {
    if memory_operand(instruction) == 0 {
        OpAccess::Write
    } else {
        OpAccess::Read
    }
}

/// The sign bits of all elements of `size` bytes; bit i is that of element i.
fn sign_bits(vector: &[u8; 64], size: usize) -> u64 {
    (0..64 / size).fold(0, |bits, index| bits | u64::from(vector[index * size + size - 1] >> 7) << index)
}

/// The lowest `count` bits.
fn low_bits(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// The instruction's write mask, cut to `count` elements.
fn write_mask(instruction: &Instruction, count: usize, state: &mut impl RegisterState) -> u64 {
    let register = instruction.op_mask();
    let bits = if register == Register::None { u64::MAX } else { state.extended().mask(register.number()) };
    bits & low_bits(count)
}

/// Appends one reference from the first to the last enabled element.
fn span(out: &mut Vec<Reference>, access: OpAccess, address: u64, bits: u64, size: usize) {
    if bits != 0 {
        let (first, last) = (bits.trailing_zeros() as usize, 63 - bits.leading_zeros() as usize);
        push(out, access, address.wrapping_add((first * size) as u64), ((last - first + 1) * size) as u32);
    }
}

fn masked(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let address = address_of(instruction, memory_operand(instruction), 0, state);
    let memory = instruction.memory_size();
    let (size, whole) = (memory.element_size(), memory.size());
    if let Some(count) = broadcast_count(instruction) {
        if write_mask(instruction, count, state) != 0 {
            push(out, OpAccess::Read, address, whole as u32);
        }
        return;
    }
    let size = mask_granularity(instruction.mnemonic()).unwrap_or(size);
    let bits = write_mask(instruction, whole / size, state);
    span(out, direction(instruction), address, bits, size);
}

/// The number of result elements to which an embedded or explicit broadcast copies one memory
/// element.
fn broadcast_count(instruction: &Instruction) -> Option<usize> {
    let memory = instruction.memory_size();
    if instruction.is_broadcast() {
        // The decoder's name of the memory operand contains the width of the result, as in
        // `Broadcast512_Float32`.
        let name = format!("{memory:?}");
        let bits: usize = name.trim_start_matches("Broadcast").split('_').next()?.parse().ok()?;
        return Some(bits / 8 / memory.element_size());
    }
    let size = broadcast_element(instruction.mnemonic())?;
    Some(instruction.op0_register().size() / size)
}

fn packed(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let memory = instruction.memory_size();
    let size = memory.element_size();
    let address = address_of(instruction, memory_operand(instruction), 0, state);
    let count = write_mask(instruction, memory.size() / size, state).count_ones() as usize;
    if count != 0 {
        push(out, direction(instruction), address, (count * size) as u32);
    }
}

fn sign_mask(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    use Mnemonic::*;
    let size = if matches!(instruction.mnemonic(), Vmaskmovps | Vpmaskmovd) { 4 } else { 8 };
    let address = address_of(instruction, memory_operand(instruction), 0, state);
    let mask = instruction.op1_register();
    let bits = sign_bits(&state.extended().vector(mask.number()), size) & low_bits(mask.size() / size);
    span(out, direction(instruction), address, bits, size);
}

fn byte_mask(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let address = address_of(instruction, 0, 0, state);
    let mask = instruction.op2_register();
    let bits = if mask.is_mm() {
        let mut wide = [0; 64];
        wide[..8].copy_from_slice(&state.extended().mmx(mask.number()));
        sign_bits(&wide, 1)
    } else {
        sign_bits(&state.extended().vector(mask.number()), 1) & low_bits(16)
    };
    span(out, OpAccess::Write, address, bits, 1);
}

fn gather(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let memory = memory_operand(instruction);
    let data = instruction.op_register(1 - memory);
    if data == Register::None {
        // These are the prefetching forms of Knights Landing.
        return;
    }
    let size = instruction.memory_size().element_size();
    let index_size = if instruction.is_vsib64() { 8 } else { 4 };
    let count = (data.size() / size).min(instruction.memory_index().size() / index_size);
    let bits = if instruction.op_count() == 3 {
        let mask = instruction.op2_register().number();
        sign_bits(&state.extended().vector(mask), size) & low_bits(count)
    } else {
        write_mask(instruction, count, state)
    };
    for index in (0..count).filter(|index| bits >> index & 1 == 1) {
        let address = address_of(instruction, memory, index, state);
        push(out, direction(instruction), address, size as u32);
    }
}

/// Appends the references of `tileloadd` or `tilestored`. The scaled index register is the distance
/// of rows; the tile configuration has their number and length.
fn tile(instruction: &Instruction, state: &mut impl RegisterState, out: &mut Vec<Reference>) {
    let memory = memory_operand(instruction);
    let number = instruction.op_register(1 - memory).number();
    let config = state.extended().tile_config();
    let row_bytes = u32::from(u16::from_le_bytes([config[16 + 2 * number], config[17 + 2 * number]]));
    let (start_row, rows) = (u64::from(config[1]), u64::from(config[48 + number]));
    let index = state.general().value(instruction.memory_index()).unwrap_or(0);
    let stride = index.wrapping_mul(u64::from(instruction.memory_index_scale()));
    let base = address_of(instruction, memory, 0, state);
    for row in start_row..rows {
        push(out, direction(instruction), base.wrapping_add(row.wrapping_mul(stride)), row_bytes);
    }
}
