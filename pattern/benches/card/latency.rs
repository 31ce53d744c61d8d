//! How long the first match takes: of a program that no one has seen, of one that a file holds, of
//! one that the process holds.
//!
//! A card is opened anew for each, so nothing is left of the one before; the text is there already.
//! Compilers that keep files of their own are asked not to.

use crate::composed::compose;
use crate::{median, rates, Arguments};
use lightfoot_pattern::kernel::cuda::lower::{lower, Entry, Width};
use lightfoot_pattern::kernel::cuda::{Cuda, CudaError, CudaOptions, GpuProgram, GpuText, Reach};
use lightfoot_pattern::program::BitProgram;
use lightfoot_pattern::Regex;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const MOST_TEXT_BYTES: usize = 64 << 20;
const ROUNDS: usize = 3;

const PATTERNS: &[&str] = &[
    "@",
    "mutex_unlock",
    "[a-z]+ing",
    "[0-9]{1,3}([.][0-9]{1,3}){3}",
    "([^ @]+)@([^ @]+)",
    "(([A-Za-z]{1,10} ){2,3}[a-z]{2,10})+[.]",
    "(?-u)[ab].{20}[cd].{20}[ef]",
    r"\b[0-9a-f]{4,8}\b",
    r"\p{Lu}\w+ \p{Lu}\w+",
];

/// Prints the table.
pub(crate) fn table(arguments: &Arguments) -> Result<(), CudaError> {
    let text_bytes = MOST_TEXT_BYTES.min(arguments.bytes);
    println!("\n## First matches\n");
    println!(
        "Milliseconds until the lines of {text_bytes} resident bytes are counted, medians of {ROUNDS}: by a program that is new, by one that a file holds, by one that was \
         loaded before. Compilation is the compiler's part of the first.\n"
    );
    println!(
        "| pattern | operations | new | compilation | from a file | loaded |\n|---|---:|---:|---:|---:|---:|"
    );
    let folder = std::env::temp_dir().join(format!("pattern-card-{}", std::process::id()));
    let text = compose("code", text_bytes);
    let result = PATTERNS.iter().try_for_each(|pattern| row(pattern, &text, &folder));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn row(pattern: &str, text: &[u8], folder: &Path) -> Result<(), CudaError> {
    let program =
        rates::program(&Regex::new(pattern).expect("the pattern parses")).expect("it has a program");
    let [mut fresh, mut compiled, mut filed, mut loaded] = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let options = || CudaOptions { cache: Some(folder.to_owned()), ..CudaOptions::default() };
        let _ = std::fs::remove_dir_all(folder);
        fresh.push(first(&Cuda::open(CudaOptions::default())?, &program, text)?[0]);
        compiled.push(compilation(&program)?);
        first(&Cuda::open(options())?, &program, text)?;
        let [one, two] = first(&Cuda::open(options())?, &program, text)?;
        filed.push(one);
        loaded.push(two);
    }
    println!(
        "| `{}` | {} | {:.0} | {:.0} | {:.1} | {:.1} |",
        pattern.replace('|', "\\|"),
        program.instructions(),
        median(fresh),
        median(compiled),
        median(filed),
        median(loaded)
    );
    Ok(())
}

/// Milliseconds of the first match and of the second, which makes its program anew.
fn first(cuda: &Arc<Cuda>, program: &BitProgram, text: &[u8]) -> Result<[f64; 2], CudaError> {
    let resident = GpuText::upload(cuda, text, program.terminator)?;
    let once = || -> Result<f64, CudaError> {
        let started = Instant::now();
        GpuProgram::new(cuda, program, Reach::Line)?.count_lines(&resident)?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    Ok([once()?, once()?])
}

/// Milliseconds of the compiler alone.
fn compilation(program: &BitProgram) -> Result<f64, CudaError> {
    let lowered = lower(program, Reach::Line, Width::WARP, Entry::Scan);
    let started = Instant::now();
    Cuda::compile_only(&lowered.source, 90)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
