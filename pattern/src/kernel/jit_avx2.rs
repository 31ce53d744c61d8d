//! Machine code for AVX2; short texts are interpreted by the kernel of that name.

use super::member::Member;
use super::{avx2, jit};

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member { translates_to: Some(jit::Target::Avx2), ..avx2::MEMBER };
