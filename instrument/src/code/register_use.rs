//! Which registers and flags the rest of a fragment still needs.
//!
//! Generated code wants scratch registers and dead flags; a fragment is straight-line code in which
//! every side exit needs everything, so one backward pass suffices. Conservative where the
//! processor may leave something untouched (variable shifts, repeated strings). Source: Aho et al.,
//! liveness; the RFLAGS tables of `iced-x86`.

use crate::code::decode::{number, Decoded};
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, OpKind, RflagsBits};

/// All status flags.
pub(crate) const FLAGS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// What one instruction does with the general registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegisterUse {
    /// Registers read, or written in part.
    pub(crate) needs: u16,
    /// Registers overwritten whole without being read.
    pub(crate) kills: u16,
    /// Registers that may change.
    pub(crate) writes: u16,
}

/// Flags that are certainly overwritten by `d` whatever they were.
fn flags_killed(d: &Decoded) -> u32 {
    use Mnemonic::*;
    let i = &d.i;
    if matches!(i.mnemonic(), Shl | Shr | Sar) && i.op1_kind() == OpKind::Immediate8 {
        let wide = i.op0_register().is_gpr64() || i.memory_size().size() == 8;
        return if i.immediate8() & if wide { 63 } else { 31 } == 0 { 0 } else { FLAGS };
    }
    let sometimes = matches!(
        i.mnemonic(),
        Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd | Cmpxchg8b | Cmpxchg16b | Bsf | Bsr
    ) || i.is_string_instruction();
    if sometimes {
        0
    } else {
        i.rflags_modified() & FLAGS
    }
}

/// Whether `d` sets every status flag whatever they were.
pub(crate) fn overwrites_flags(d: &Decoded) -> bool {
    flags_killed(d) == FLAGS
}

/// For each instruction, whether the status flags before it are dead, where those behind the block
/// are `live_behind`.
pub(crate) fn dead_flags(block: &[Decoded], live_behind: u32, dead: &mut Vec<bool>) {
    dead.clear();
    dead.resize(block.len(), false);
    let mut live = live_behind;
    for (k, d) in block.iter().enumerate().rev() {
        live = live & !flags_killed(d) | d.i.rflags_read() & FLAGS;
        dead[k] = live == 0;
    }
}

/// Register use of one instruction.
pub(crate) fn register_use(factory: &mut InstructionInfoFactory, d: &Decoded) -> RegisterUse {
    let mut result = RegisterUse::default();
    let mut kills = 0u16;
    for r in factory.info(&d.i).used_registers() {
        let Some(n) = number(r.register()) else { continue };
        let bit = 1u16 << n;
        let wide = r.register().is_gpr64() || r.register().is_gpr32();
        match r.access() {
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
    // Without shadow stacks these are NOPs that leave their register as it was: unwinders set it to
    // zero before and ask whether it still is.
    if matches!(d.i.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq) {
        result.needs |= result.writes;
    }
    result.kills = kills & !result.needs;
    result
}
