//! The parts of a kernel. A kernel's file states them; the table of kernels collects them.

use super::interpret::Interpret;
#[cfg(all(target_arch = "x86_64", unix))]
use super::jit;

/// One kernel: how it transposes, interprets, and whether it translates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The name of what turns text into basis streams, in [`crate::transpose::TRANSPOSERS`].
    pub(super) transposer: &'static str,
    /// Whether the processor has the instructions that the kernel needs besides its transposer's.
    pub(super) is_available: fn() -> bool,
    /// The interpreter's loops. Safe to call where `is_available` holds.
    pub(super) interpret: Interpret,
    /// The target of machine code for texts that are long enough to repay the translation.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub(super) translates_to: Option<jit::Target>,
}
