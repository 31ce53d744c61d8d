//! Machine code for AVX-512; short texts are interpreted by the kernel of that name.

use super::member::Member;
use super::{avx512, jit};

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member {
    is_available: || (avx512::MEMBER.is_available)() && is_x86_feature_detected!("avx512vbmi2"),
    translates_to: Some(jit::Target::Avx512),
    ..avx512::MEMBER
};
