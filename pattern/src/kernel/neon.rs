//! The interpreter in plain Rust, whose baseline on AArch64 is NEON, behind a transposition with
//! it.

use super::member::Member;
use super::portable;

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member { transposer: "neon", ..portable::MEMBER };
