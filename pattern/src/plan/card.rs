//! Programs for a graphics card, and why there is none.

use super::streams::{CompiledStreams, Streams};
use crate::kernel::cuda::{Cuda, CudaError, GpuProgram, Reach};
use crate::regex::options::{Options, Terminator, Unit};
use regex_syntax::hir::Hir;

/// The program of a pattern on the machine's card.
///
/// # Errors
/// Lines of the pattern depend on more than themselves, it has no exact program, or there is no
/// card.
pub(crate) fn for_card(hir: &Hir, options: &Options) -> Result<GpuProgram, CudaError> {
    // Each refusal is a sentence for people who asked for the card.
    let refused = |reason: &str| Err(CudaError::NoProgram { reason: reason.to_owned() });
    if options.unit == Unit::Text {
        return refused("a match may span lines");
    }
    if options.terminator == Terminator::Nul {
        return refused("with lines that end with NUL, ^ also matches behind line feeds");
    }
    let Some(streams) = Streams::new(hir, options) else {
        return refused("it has too many letters, or classes behind a part of a character");
    };
    match streams.compiled() {
        None => refused("it has more operations than a program may have"),
        Some(CompiledStreams { exact: false, .. }) => {
            refused("its lines would have to be confirmed one by one")
        }
        Some(compiled) => GpuProgram::new(&Cuda::shared()?, compiled.scanner.program(), Reach::Line),
    }
}
