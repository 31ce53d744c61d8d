//! The interpreter behind the obvious transposition, under a name of its own: a kernel that only
//! the tests have.
//!
//! It shows what a kernel takes: this file, and its entry in the table of the parent module. Tests
//! that go through the table then hold it against the reference as they hold every other kernel.

use super::member::Member;

/// What the family's table needs of this kernel.
pub(super) const MEMBER: Member = Member {
    transposer: "scalar",
    is_available: || true,
    interpret,
    #[cfg(all(target_arch = "x86_64", unix))]
    translates_to: None,
};

translate_interpreter!(interpret);
