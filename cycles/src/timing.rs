//! Latency and resources of an instruction, by its class.
//!
//! **Units.** Cycles from an operand to the result when all operands lie in registers, and
//! micro-operations. The figures are rounded from public measurements of Intel's cores since Ice
//! Lake (Fog's tables, uops.info); AMD's differ by a cycle here and there. **Leaves out** bypass
//! delays, micro-fusion limits, and everything that depends on operand values.

use iced_x86::Mnemonic::{self, *};
use iced_x86::{Instruction, OpKind};

/// What an instruction takes beside a slot of the dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Integer arithmetic and everything unlisted.
    General,
    /// The one multiplier of integers.
    Multiplier,
    /// Vector arithmetic, three units.
    Vector,
    /// Floating-point arithmetic, two units.
    Float,
    /// Shuffles and conversions, two units.
    Shuffle,
    /// The divider, which it blocks for so many cycles.
    Divider(u8),
    /// Branches, two each cycle.
    Branch,
}

/// How an instruction takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Cycles until a dependent instruction may start, loads excluded.
    pub(crate) latency: u8,
    /// Slots of the dispatch.
    pub(crate) slots: u8,
    pub(crate) unit: Unit,
}

/// Cycles of a load that hits the first level.
pub(crate) const LOAD_LATENCY: f64 = 5.0;

/// The timing of an instruction.
pub(crate) fn timing(instruction: &Instruction) -> Timing {
    let (latency, slots, unit) = of_mnemonic(instruction.mnemonic()).unwrap_or_else(|| by_shape(instruction));
    Timing { latency, slots, unit }
}

/// Instructions outside the table: vectors have a cycle, and so has integer arithmetic.
fn by_shape(instruction: &Instruction) -> (u8, u8, Unit) {
    let vector =
        (0..instruction.op_count()).any(|operand| instruction.op_register(operand).is_vector_register());
    let loads = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    match (vector, is_move(instruction.mnemonic())) {
        // Moves between vectors are renamed, and so is what a load brings. Those between integer
        // registers have not been since Ice Lake.
        (_, true) if vector || loads => (0, 1, Unit::General),
        (true, _) => (1, 1, Unit::Vector),
        (false, _) => (1, 1, Unit::General),
    }
}

/// Whether an instruction only copies.
pub(crate) fn is_move(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mov | Movzx
            | Movaps
            | Movapd
            | Movups
            | Movupd
            | Movdqa
            | Movdqu
            | Vmovaps
            | Vmovapd
            | Vmovups
            | Vmovupd
            | Vmovdqa
            | Vmovdqu
            | Vmovdqa64
            | Vmovdqa32
            | Vmovdqu64
            | Vmovdqu32
            | Vmovdqu8
            | Vmovdqu16
            | Movsd
            | Movss
            | Vmovsd
            | Vmovss
            | Nop
            | Endbr64
            | Lddqu
            | Vlddqu
    )
}

fn of_mnemonic(mnemonic: Mnemonic) -> Option<(u8, u8, Unit)> {
    use Unit::{Branch, Divider, Float, General, Multiplier, Shuffle, Vector};
    Some(match mnemonic {
        Imul | Mul | Mulx => (3, 1, Multiplier),
        Popcnt | Lzcnt | Tzcnt | Bsf | Bsr | Pdep | Pext | Crc32 => (3, 1, Multiplier),
        Div | Idiv => (14, 4, Divider(6)),
        Addsd | Addss | Addpd | Addps | Subsd | Subss | Subpd | Subps | Vaddsd | Vaddss | Vaddpd | Vaddps
        | Vsubsd | Vsubss | Vsubpd | Vsubps => (2, 1, Float),
        Mulsd | Mulss | Mulpd | Mulps | Vmulsd | Vmulss | Vmulpd | Vmulps => (4, 1, Float),
        Vfmadd132sd | Vfmadd213sd | Vfmadd231sd | Vfmadd132pd | Vfmadd213pd | Vfmadd231pd | Vfmadd132ss
        | Vfmadd213ss | Vfmadd231ss | Vfmadd132ps | Vfmadd213ps | Vfmadd231ps | Vfnmadd231pd
        | Vfnmadd213pd | Vfnmadd231ps | Vfnmadd213ps | Vfnmadd231sd | Vfnmadd213sd => (4, 1, Float),
        Minsd | Minss | Minpd | Minps | Maxsd | Maxss | Maxpd | Maxps | Vminsd | Vminpd | Vmaxsd | Vmaxpd
        | Cmpsd | Cmpss | Cmppd | Cmpps | Vcmpsd | Vcmppd | Vcmpps | Ucomisd | Ucomiss | Comisd | Comiss
        | Vucomisd | Vucomiss => (4, 1, Float),
        Divsd | Vdivsd | Divpd | Vdivpd => (14, 1, Divider(4)),
        Divss | Vdivss | Divps | Vdivps => (11, 1, Divider(3)),
        Sqrtsd | Vsqrtsd | Sqrtpd | Vsqrtpd => (18, 1, Divider(6)),
        Sqrtss | Vsqrtss | Sqrtps | Vsqrtps => (12, 1, Divider(3)),
        Cvtsi2sd | Cvtsi2ss | Cvttsd2si | Cvttss2si | Cvtsd2si | Vcvtsi2sd | Vcvttsd2si => (7, 2, Shuffle),
        Cvtsd2ss | Cvtss2sd | Cvtdq2pd | Cvttpd2dq | Vcvtdq2pd => (5, 2, Shuffle),
        Cvtdq2ps | Cvttps2dq => (4, 1, Float),
        Movd | Movq | Vmovd | Vmovq | Pmovmskb | Vpmovmskb | Movmskpd | Movmskps | Pextrw | Pextrq
        | Pinsrw | Pinsrq => (3, 1, Shuffle),
        Pmuludq | Pmullw | Pmulhw | Pmaddwd | Vpmuludq | Vpmullw | Vpmaddwd => (5, 1, Float),
        Pmulld | Vpmulld => (10, 2, Float),
        Pshufd | Pshufb | Pshuflw | Pshufhw | Shufps | Shufpd | Unpcklpd | Unpckhpd | Unpcklps | Unpckhps
        | Punpcklbw | Punpckhbw | Punpcklwd | Punpckhwd | Punpckldq | Punpckhdq | Punpcklqdq | Punpckhqdq
        | Movhlps | Movlhps | Palignr | Psadbw | Packuswb | Packsswb | Packssdw => (1, 1, Shuffle),
        Vpermq | Vpermd | Vperm2i128 | Vextracti128 | Vextractf128 | Vinserti128 | Vbroadcastsd => {
            (3, 1, Shuffle)
        }
        Movhpd | Movlpd | Movhps | Movlps => (1, 2, Vector),
        Lea => (1, 1, General),
        Adc | Sbb => (1, 1, General),
        Xchg | Bswap => (2, 2, General),
        Cmpxchg | Xadd => (8, 6, General),
        Call | Ret => (1, 2, Branch),
        Push | Pop => (0, 1, General),
        Cpuid | Rdtsc | Rdtscp | Syscall | Xgetbv | Mfence => (25, 25, General),
        mnemonic if is_jump(mnemonic) => (1, 1, Branch),
        _ => return None,
    })
}

/// Whether an instruction jumps, calls excluded.
fn is_jump(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Jmp | Ja
            | Jae
            | Jb
            | Jbe
            | Je
            | Jne
            | Jg
            | Jge
            | Jl
            | Jle
            | Js
            | Jns
            | Jo
            | Jno
            | Jp
            | Jnp
            | Jrcxz
            | Loop
    )
}
