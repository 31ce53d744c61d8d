//! What a kernel is made of: its file states it, the family's table collects it.

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
    /// What texts that repay it are translated for.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub(super) translates_to: Option<jit::Target>,
}
