//! The interpreter in plain Rust, whose baseline on x86-64 is SSE2, behind a transposition with it.

use super::member::Member;
use super::portable;

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member { transposer: "sse2", ..portable::MEMBER };
