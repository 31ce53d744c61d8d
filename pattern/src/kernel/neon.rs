//! The interpreter in plain Rust, whose baseline on AArch64 is NEON, behind a transposition with
//! it.

use super::member::Member;
use super::portable;

/// What the family's table needs of this kernel.
pub(super) const MEMBER: Member = Member { transposer: "neon", ..portable::MEMBER };
