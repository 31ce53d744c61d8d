//! Register and flag use of single instructions, for liveness analysis.
//!
//! Generated code needs scratch registers and dead flags. A fragment is straight-line code, so one
//! backward pass over these sets suffices (`plan::liveness`). The sets are conservative if the
//! processor may leave a register or flag unchanged (variable shifts, repeated string
//! instructions). Source: Aho et al., liveness; the RFLAGS tables of `iced-x86`.

use crate::code::decode::{number, Decoded};
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, OpKind, RflagsBits};

/// All status flags, as bits of [`RflagsBits`].
pub(crate) const FLAGS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// How an instruction uses the general registers. Each field is a bit set by hardware number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegisterUse {
    /// Registers read, or written in part.
    pub(crate) needs: u16,
    /// Registers overwritten whole without being read.
    pub(crate) kills: u16,
    /// Registers that may change.
    pub(crate) writes: u16,
}

/// The flags that the instruction certainly overwrites, whatever their values were.
fn flags_killed(decoded: &Decoded) -> u32 {
    use Mnemonic::*;
    let instruction = &decoded.instruction;
    if matches!(instruction.mnemonic(), Shl | Shr | Sar) && instruction.op1_kind() == OpKind::Immediate8 {
        let wide = instruction.op0_register().is_gpr64() || instruction.memory_size().size() == 8;
        return if instruction.immediate8() & if wide { 63 } else { 31 } == 0 { 0 } else { FLAGS };
    }
    let sometimes = matches!(
        instruction.mnemonic(),
        Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd | Cmpxchg8b | Cmpxchg16b | Bsf | Bsr
    ) || instruction.is_string_instruction();
    if sometimes {
        0
    } else {
        instruction.rflags_modified() & FLAGS
    }
}

/// Whether the instruction certainly overwrites every status flag.
pub(crate) fn overwrites_flags(decoded: &Decoded) -> bool {
    flags_killed(decoded) == FLAGS
}

/// Computes for each instruction of `block` whether all status flags are dead before it.
/// `live_behind` are the flags that are live behind the block.
pub(crate) fn dead_flags(block: &[Decoded], live_behind: u32, dead: &mut Vec<bool>) {
    dead.clear();
    dead.resize(block.len(), false);
    let mut live = live_behind;
    for (index, decoded) in block.iter().enumerate().rev() {
        live = live & !flags_killed(decoded) | decoded.instruction.rflags_read() & FLAGS;
        dead[index] = live == 0;
    }
}

/// The register use of one instruction.
pub(crate) fn register_use(factory: &mut InstructionInfoFactory, decoded: &Decoded) -> RegisterUse {
    let mut result = RegisterUse::default();
    let mut kills = 0u16;
    for used in factory.info(&decoded.instruction).used_registers() {
        let Some(number) = number(used.register()) else { continue };
        let bit = 1u16 << number;
        let wide = used.register().is_gpr64() || used.register().is_gpr32();
        match used.access() {
            OpAccess::Read | OpAccess::CondRead => result.needs |= bit,
            OpAccess::Write if wide => {
                kills |= bit;
                result.writes |= bit;
            }
            OpAccess::NoMemAccess | OpAccess::None => {}
            _ => {
                result.needs |= bit;
                result.writes |= bit;
            }
        }
    }
    // Without shadow stacks these instructions do nothing. Unwinders set the register to zero
    // before and test afterwards whether it is still zero, so the register counts as read.
    if matches!(decoded.instruction.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq) {
        result.needs |= result.writes;
    }
    result.kills = kills & !result.needs;
    result
}
