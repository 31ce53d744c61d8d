//! The use of vector registers, on which the allocator and the code around it agree.

use super::encode::Target;

/// The registers of a target: those for values come first, then two that are free between
/// operations, then all ones.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    pub(super) values: u8,
    pub(super) scratch: u8,
    pub(super) scratch_2: u8,
    pub(super) ones: u8,
}

impl Registers {
    pub(super) fn of(target: Target) -> Registers {
        let count = if target == Target::Avx512 { 32 } else { 16 };
        Registers { values: count - 3, scratch: count - 3, scratch_2: count - 2, ones: count - 1 }
    }
}
