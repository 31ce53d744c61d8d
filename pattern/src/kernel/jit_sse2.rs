//! Machine code for SSE2, which every x86-64 processor has; short texts are interpreted by the
//! kernel of that name.

use super::member::Member;
use super::{jit, sse2};

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member { translates_to: Some(jit::Target::Sse2), ..sse2::MEMBER };
