//! The programs that the engine and its slow twin are judged by, as one table; each checks itself
//! and prints a fixed result.
//!
//! Three sources of truth stand in a row: hand-annotated straight-line assembly (`annotation`)
//! judges the twin, the twin judges the engine, and the native run judges both for output and exit
//! status. Source: the idea of `allasm_*` in DynamoRIO's test suite.

pub(crate) mod annotation;
pub(crate) mod build;
pub(crate) mod child;
pub(crate) mod machines;

use How::{Annotated, Assembly, C};
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
    /// Instructions, worked out by hand in the source file (an annotated program has them in its
    /// lines).
    pub(crate) instructions: Option<u64>,
    /// Whether its runs can be compared.
    pub(crate) runs: Runs,
    /// What the engine makes of it.
    pub(crate) engine: Engine,
}

/// What the engine makes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Agrees with the twin in everything.
    Agrees,
    /// Refuses it, with these words in the message.
    Refuses(&'static str),
    /// Is known not to run it rightly (LIMITS.md says so): only the twin runs it.
    Limit,
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
    /// C, dynamically linked unless these flags say otherwise.
    C(&'static [&'static str]),
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

/// Whether two runs of a program retire the same instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// They do.
    Alike,
    /// Signals arrive anywhere: only output and ending are the same.
    Unlike,
}

const fn target(name: &'static str, how: How, stdout: &'static str) -> Target {
    Target {
        name,
        how,
        needs: Anything,
        stdout,
        ends: Ends::Code(0),
        instructions: None,
        runs: Runs::Alike,
        engine: Engine::Agrees,
    }
}

const fn refs(name: &'static str, needs: Needs) -> Target {
    Target { needs, ..target(name, Annotated, "") }
}

/// `instructions` as the source file works them out.
const fn counted(name: &'static str, ends: Ends, stdout: &'static str, instructions: u64) -> Target {
    Target { ends, instructions: Some(instructions), ..target(name, Assembly, stdout) }
}

const FORMAT: &str = "2323051810632.2837 0x1.0e7056c7a4245p+41       2.323e+12|9       |600000000\n\
    -84 seven 0.100000000000000005551115123126 1e+400 end\n2.718282 1.41421 2.30259 -1\n";

/// All programs.
pub(crate) const TARGETS: &[Target] = &[
    refs("refs_integer", Anything),
    refs("refs_string", Anything),
    refs("refs_x87", Anything),
    refs("refs_avx2", Avx2),
    refs("refs_avx512", Avx512),
    refs("refs_amx", Amx),
    counted("exit42", Ends::Code(42), "", 3),
    counted("killed", Ends::Signal(11), "", 3),
    counted("long", Ends::Code(0), "long ok\n", 38_075),
    target("strings", Assembly, "strings ok\n"),
    target("flags", Assembly, "flags ok\n"),
    target("riprel", Assembly, "riprel ok\n"),
    target("indirect", Assembly, "indirect ok\n"),
    target("stack", Assembly, "stack ok\n"),
    target("bits", Assembly, "bits ok\n"),
    target("overlap", Assembly, "overlap ok\n"),
    target("x87", Assembly, "x87 ok\n"),
    target("avx2", Assembly, "avx2 ok\n"),
    target("avx512", Assembly, "avx512 ok\n"),
    target("amx", Assembly, "amx ok\n"),
    target("segment", Assembly, "segment ok\n"),
    target("kernel", Assembly, "kernel ok\n"),
    target("signals", Assembly, "signals ok\n"),
    target("alarm", Assembly, "alarm ok\n"),
    target("rewrite", Assembly, "rewrite ok\n"),
    Target { engine: Engine::Limit, ..target("rewrite_here", Assembly, "rewrite_here ok\n") },
    Target { engine: Engine::Refuses("far control transfers"), ..target("far", Assembly, "far ok\n") },
    target("far_unreached", Assembly, "far_unreached ok\n"),
    target("sorting_static", C(&["-static"]), "sorting 2202719927 22\n"),
    target("sorting_dynamic", C(&[]), "sorting 2202719927 22\n"),
    target("text_static", C(&["-static"]), "text 13687519471309875660 15 6\n"),
    target("text_dynamic", C(&[]), "text 13687519471309875660 15 6\n"),
    target("format_static", C(&["-static"]), FORMAT),
    target("format_dynamic", C(&["-fno-pie", "-no-pie"]), FORMAT),
    target("heap_static", C(&["-static"]), "heap 2880579774\n"),
    target("heap_dynamic", C(&[]), "heap 2880579774\n"),
    target("jumps_static", C(&["-static", "-fno-pie"]), "jumps 100 6 10823 5450\n"),
    target("jumps_dynamic", C(&["-O2"]), "jumps 100 6 10823 5450\n"),
    target("vectors_static", C(&["-static"]), "vectors 141412\n"),
    target("vectors_dynamic", C(&[]), "vectors 141412\n"),
    target("search_static", C(&["-static-pie", "-fPIE"]), "search 1498095\n"),
    target("search_dynamic", C(&["-O2"]), "search 1498095\n"),
    target("matmul_static", C(&["-static", "-O2"]), "matmul 38080.0 1520.0\n"),
    target("matmul_dynamic", C(&["-O2", "-fno-pie", "-no-pie"]), "matmul 38080.0 1520.0\n"),
    target("handlers_static", C(&["-static"]), "handlers 5 30 435 10\n"),
    target("handlers_dynamic", C(&[]), "handlers 5 30 435 10\n"),
    target("breaks_static", C(&["-static"]), "breaks ok\n"),
    target("breaks_dynamic", C(&[]), "breaks ok\n"),
    target("alignment_static", C(&["-static"]), "alignment 6240 1\n"),
    target("children_dynamic", C(&[]), "children 135 9\n"),
    Target { ends: Ends::Signal(6), ..target("aborts_dynamic", C(&[]), "aborts now\n") },
    Target {
        ends: Ends::Code(3),
        ..target("executes_dynamic", C(&[]), "executes 1\nexecutes 2\nexecutes 3\n")
    },
    Target { runs: Runs::Unlike, ..target("ticking_static", C(&["-static"]), "ticking ok\n") },
];
