//! Programs on this machine's graphics card: rates beside what copies reach in the same run, first
//! matches, sets of patterns, columns.
//!
//! `cargo bench -p lightfoot-pattern --bench card -- [--megabytes N] [--pattern PART]
//! [--tables list,first,sets,columns] [--rules FOLDER]` prints one page in Markdown. Every count is
//! held against the processor's on the whole text; what differs ends the run. Texts are composed as
//! in the bench `scan`, 64 MiB of each kind repeated; resident searches are timed by the card's own
//! clock, the rest by ours. Rates are medians in GB/s of text.
//! Left out: several cards. Source of the aims: what an H200 copies, 4.2 TB/s read plus written.

mod columns;
#[path = "../composed/mod.rs"]
mod composed;
mod fused;
mod latency;
mod processor;
mod rates;

use lightfoot_pattern::kernel::cuda::{Cuda, CudaError, CudaOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What the command line says.
struct Arguments {
    bytes: usize,
    part: String,
    /// The tables to print.
    tables: String,
    /// A folder of sets: `KIND_COUNT.regex`, a rule a line between slashes, and `text`.
    rules: Option<PathBuf>,
}

fn arguments() -> Arguments {
    let mut found = Arguments {
        bytes: 2 << 30,
        part: String::new(),
        tables: "list,first,sets,columns".to_owned(),
        rules: None,
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--megabytes" => {
                found.bytes = value().parse::<usize>().expect("--megabytes needs a number") << 20;
            }
            "--pattern" => found.part = value(),
            "--tables" => found.tables = value(),
            "--rules" => found.rules = Some(PathBuf::from(value())),
            other => panic!("unknown argument {other}"),
        }
    }
    found
}

fn main() -> ExitCode {
    match page(&arguments()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("Not measured: {error}.");
            ExitCode::FAILURE
        }
    }
}

fn page(arguments: &Arguments) -> Result<(), CudaError> {
    let started = Instant::now();
    let cuda = Cuda::open(CudaOptions::default())?;
    let opened = started.elapsed();
    let card = cuda.card();
    let (compiler, (major, minor)) = Cuda::first_compiler()?;
    println!("# Programs on {}\n", card.name);
    println!(
        "{} multiprocessors, {:.0} GiB, compute capability {}.{}, driver for CUDA {}.{}, NVRTC {major}.{minor} ({}); beside it {}, {} threads. Opened in {:.0} ms.\n",
        card.multiprocessors,
        card.memory_bytes as f64 / f64::from(1 << 30),
        card.capability / 10,
        card.capability % 10,
        card.driver_version / 1000,
        card.driver_version % 1000 / 10,
        compiler.display(),
        processor::model(),
        processor::threads(),
        opened.as_secs_f64() * 1e3,
    );
    let copies = cuda.copy_rates(arguments.bytes)?;
    println!(
        "Copies of {} bytes, the best of five: {:.0} GB/s within the card (read plus written), {:.1} GB/s from pinned memory.\n",
        arguments.bytes, copies.within, copies.from_pinned
    );
    for table in arguments.tables.split(',') {
        match table {
            "list" => rates::table(&cuda, arguments, &copies)?,
            "first" => latency::table(arguments)?,
            "sets" => fused::table(&cuda, arguments)?,
            "columns" => columns::table(&cuda, arguments)?,
            other => panic!("unknown table {other}: list, first, sets or columns"),
        }
    }
    println!("\nWhole run: {:.0} s.", started.elapsed().as_secs_f64());
    Ok(())
}

/// The middle of some figures.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
