//! The interpreter translated for AVX2: streams in vectors of 256 bits.

use super::interpret::{Execution, Step};
use super::member::Member;
use crate::vectors::{allows, Vectors};

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member {
    transposer: "avx2",
    is_available,
    interpret,
    #[cfg(unix)]
    translates_to: None,
};

/// Whether the processor has the instructions, the transposition's aside.
fn is_available() -> bool {
    allows(Vectors::Avx2) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
}

fn interpret(run: &mut Execution<'_>, steps: &[Step]) {
    // SAFETY: a scanner has this kernel only where `is_available` held.
    unsafe { with_avx2(run, steps) }
}

translate_interpreter!(with_avx2, "avx2,bmi2");
