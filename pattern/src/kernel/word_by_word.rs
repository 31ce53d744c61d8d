//! The interpreter with the obvious transposition, under a name of its own: a kernel for tests
//! only.
//!
//! It shows what a kernel needs: this file, and an entry in the table of the parent module. Tests
//! that go through the table then compare it with the reference, like every other kernel.

use super::member::Member;

/// The kernel's entry of the table of kernels.
pub(super) const MEMBER: Member = Member {
    transposer: "scalar",
    is_available: || true,
    interpret,
    #[cfg(all(target_arch = "x86_64", unix))]
    translates_to: None,
};

translate_interpreter!(interpret);
