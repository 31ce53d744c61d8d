//! The interpreter in plain Rust, for any machine. The loops over words are written so that a
//! compiler turns them into whatever vectors the build's baseline has.

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
