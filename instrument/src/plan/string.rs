//! The shapes of repeated string instructions: operation, element size, address width and segment,
//! as records encode them.

use event::{AddressWidth, Segment, Shape, StringOperation};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// The shape of the references of a string instruction with a repeat prefix.
pub(crate) fn string_shape(instruction: &Instruction) -> Shape {
    use Mnemonic::*;
    let (operation, element_bytes) = match instruction.mnemonic() {
        Movsb => (StringOperation::Movs, 1),
        Movsw => (StringOperation::Movs, 2),
        Movsd => (StringOperation::Movs, 4),
        Movsq => (StringOperation::Movs, 8),
        Stosb => (StringOperation::Stos, 1),
        Stosw => (StringOperation::Stos, 2),
        Stosd => (StringOperation::Stos, 4),
        Stosq => (StringOperation::Stos, 8),
        Lodsb => (StringOperation::Lods, 1),
        Lodsw => (StringOperation::Lods, 2),
        Lodsd => (StringOperation::Lods, 4),
        Lodsq => (StringOperation::Lods, 8),
        Scasb => (StringOperation::Scas, 1),
        Scasw => (StringOperation::Scas, 2),
        Scasd => (StringOperation::Scas, 4),
        Scasq => (StringOperation::Scas, 8),
        Cmpsb => (StringOperation::Cmps, 1),
        Cmpsw => (StringOperation::Cmps, 2),
        Cmpsd => (StringOperation::Cmps, 4),
        _ => (StringOperation::Cmps, 8),
    };
    // An address-size prefix makes the pointers (esi, edi) and the counter (ecx) 32 bits wide.
    let narrow = (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::MemorySegESI | OpKind::MemoryESEDI | OpKind::MemorySegEDI
        )
    });
    let width = if narrow { AddressWidth::Bits32 } else { AddressWidth::Bits64 };
    let based = instruction.segment_prefix() == Register::FS
        && matches!(operation, StringOperation::Movs | StringOperation::Lods | StringOperation::Cmps);
    let segment = if based { Segment::Based } else { Segment::Flat };
    Shape::String { operation, element_bytes, width, segment }
}
