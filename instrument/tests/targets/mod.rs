//! The programs that the engine and its slow twin are judged by, as one table; each checks itself and prints a fixed result.
//!
//! Three sources of truth stand in a row: hand-annotated straight-line assembly (`annotation`) judges the twin, the twin judges the
//! engine, and the native run judges both for output and exit status. Source: the idea of `allasm_*` in DynamoRIO's test suite.

pub(crate) mod annotation;
pub(crate) mod build;
pub(crate) mod child;

use How::{Annotated, Assembly, Dynamic, Static};
use Needs::{Amx, Anything, Avx2, Avx512};

/// One program.
pub(crate) struct Target {
    /// Name of the program and stem of its source file.
    pub(crate) name: &'static str,
    /// How it is built.
    pub(crate) how: How,
    /// What the processor must have for the program to do its whole work.
    pub(crate) needs: Needs,
    /// What it prints.
    pub(crate) stdout: &'static str,
    /// How it ends.
    pub(crate) ends: Ends,
    /// Instructions, worked out by hand in the source file (an annotated program has them in its lines).
    pub(crate) instructions: Option<u64>,
}

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Assembly with fixed addresses and its references as comments.
    Annotated,
    /// Assembly that checks itself.
    Assembly,
    /// C, statically linked, with these extra flags.
    Static(&'static [&'static str]),
    /// C, dynamically linked, with these extra flags.
    Dynamic(&'static [&'static str]),
}

/// What the processor must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// x86-64 with SSE4.2.
    Anything,
    /// AVX2, FMA, F16C, BMI.
    Avx2,
    /// AVX-512 with VL, BW, DQ, VBMI2.
    Avx512,
    /// AMX tiles.
    Amx,
}

impl Needs {
    /// Whether this processor has it.
    pub(crate) fn met(self) -> bool {
        match self {
            Anything => true,
            Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Avx512 => is_x86_feature_detected!("avx512vbmi2") && is_x86_feature_detected!("avx512vl"),
            Amx => std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" amx_tile")),
        }
    }
}

const fn refs(name: &'static str, needs: Needs) -> Target {
    Target { name, how: Annotated, needs, stdout: "", ends: Ends::Code(0), instructions: None }
}

/// All programs.
pub(crate) const TARGETS: &[Target] = &[
    refs("refs_integer", Anything),
    refs("refs_string", Anything),
    refs("refs_x87", Anything),
    refs("refs_avx2", Avx2),
    refs("refs_avx512", Avx512),
    refs("refs_amx", Amx),
];
