//! Machine code for SSE2, which every x86-64 processor has; short texts are interpreted by the
//! kernel of that name.

use super::member::Member;
use super::{jit, sse2};

/// What the family's table needs of this kernel.
pub(super) const MEMBER: Member = Member { translates_to: Some(jit::Target::Sse2), ..sse2::MEMBER };
