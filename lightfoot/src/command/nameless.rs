//! Sentences about code that a report cannot name, with what names it.

use crate::run::tally::Tally;
use instrument::Module;
use present::number;
use symbol::Symbolizer;

/// A warning mentions what at least one instruction in this many belongs to.
const HEAVY_SHARE: u64 = 20;

/// What makes a run-time compiler write the names of its code, by the file that contains it.
const SWITCHES: &[(&str, &str)] = &[
    ("node", "run node with --perf-basic-prof"),
    ("libjvm.so", "run java with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"),
    ("libcoreclr.so", "set DOTNET_PerfMapEnabled=1"),
    ("beam.smp", "run erl with +JPperf true"),
];

/// A sentence about instructions without a known source line, if there are many.
pub(super) fn lines(tally: &Tally) -> Option<String> {
    let unknown = tally.cells.iter().filter(|(cell, _)| cell.frame.is_none());
    let instructions: u64 = unknown.map(|(_, counts)| counts.instructions).sum();
    let share = number::percent(instructions, tally.totals.instructions);
    let instructions = number::grouped(instructions);
    (instructions != "0").then(|| {
        format!("{instructions} instructions ({share}) have no source line and stand as ???: build with -g, or install debug symbols")
    })
}

/// A sentence about files that have names of exported functions only, if they do much of the work.
pub(super) fn stripped(tally: &Tally, symbols: &Symbolizer) -> Option<String> {
    let heavy = tally.libraries.iter().filter(|(index, counts)| {
        symbols.libraries()[*index].is_stripped()
            && counts.instructions * HEAVY_SHARE >= tally.totals.instructions.max(1)
    });
    let share = |part| number::percent(part, tally.totals.instructions);
    let named: Vec<String> = heavy
        .map(|(index, counts)| {
            format!("{} ({})", symbols.libraries()[*index].name(), share(counts.instructions))
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "no symbol table in {}: functions it does not export are named by address; install its debug symbols or build without strip",
            named.join(", ")
        )
    })
}

/// A sentence about generated code without names, if it does much of the work.
pub(super) fn generated(tally: &Tally, symbols: &Symbolizer, modules: &[Module]) -> Option<String> {
    let is_generated = |function: usize| {
        let library = &symbols.libraries()[symbols.functions()[function].library];
        library.nameless() == Some(function)
            && modules.iter().any(|module| module.process.is_some() && module.path == library.path)
    };
    let nameless = tally.functions.iter().filter(|(function, _)| is_generated(*function));
    let instructions: u64 = nameless.map(|(_, counts)| counts.instructions).sum();
    if instructions * HEAVY_SHARE < tally.totals.instructions.max(1) {
        return None;
    }
    let compiler = |(file, _): &&(&str, &str)| modules.iter().any(|module| module.path.ends_with(file));
    let switch =
        SWITCHES.iter().find(compiler).map_or(
            "a compiler that writes /tmp/perf-PID.map or maps jit-PID.dump names it",
            |(_, switch)| switch,
        );
    let share = number::percent(instructions, tally.totals.instructions);
    let instructions = number::grouped(instructions);
    Some(format!("{instructions} instructions ({share}) are of generated code without names: {switch}"))
}
