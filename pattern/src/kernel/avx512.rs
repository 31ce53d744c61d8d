//! The interpreter translated for AVX-512: streams in vectors of 512 bits.

use super::interpret::{Execution, Step};
use super::member::Member;
use crate::vectors::{allows, Vectors};

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member {
    transposer: "avx512",
    is_available,
    interpret,
    #[cfg(unix)]
    translates_to: None,
};

/// Whether the processor has the instructions, the transposition's aside.
fn is_available() -> bool {
    allows(Vectors::Avx512)
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
}

fn interpret(run: &mut Execution<'_>, steps: &[Step]) {
    // SAFETY: a scanner has this kernel only where `is_available` held.
    unsafe { with_avx512(run, steps) }
}

translate_interpreter!(with_avx512, "avx512f,avx512bw,avx512dq,avx512vl,bmi2");
