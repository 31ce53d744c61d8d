//! `lightfoot study gemm`: compares multiplication with other crates (feature `peers`), and with
//! OpenBLAS, MKL, BLIS and BLASFEO where their shared libraries are found.
//!
//! Everything runs in this process on the same numbers, in interleaved passes. The FMA peak is
//! sampled beside every run, and comparisons are medians of paired ratios. Libraries are searched
//! in the usual places and at the paths in `LIGHTFOOT_OPENBLAS`, `LIGHTFOOT_MKL`, `LIGHTFOOT_BLIS`
//! and `LIGHTFOOT_BLASFEO`.
//!
//! **Leaves out** threads of crates that bring their own thread pool.

use crate::host::dated;
use crate::journal::Journal;
use crate::options::{Effort, Options};
use crate::outcome::{write_files, Outcome};
use anyhow::Result;
use matrix::race::{contestants, Contest, Number};
use present::date;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One contestant at one size.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    element: String,
    n: usize,
    contestant: String,
    gflops: f64,
    gflops_q1: f64,
    gflops_q3: f64,
    share_of_peak: f64,
    /// Its time over that of `blocked-nt`: above 1 where ours is faster.
    times_ours: f64,
}

#[derive(Debug, Serialize)]
struct Findings {
    schema: u32,
    date: String,
    effort: &'static str,
    version: &'static str,
    kernel: &'static str,
    rows: Vec<Row>,
}

const QUICK: &[usize] = &[32, 64, 100, 128, 256, 512, 1024];
const FULL: &[usize] = &[
    32, 33, 64, 100, 127, 128, 129, 200, 255, 256, 257, 500, 511, 512, 513, 1000, 1023, 1024, 1025, 2048,
    4096,
];

/// What a page says that was made by a program built without the peer crates.
const WITHOUT_PEERS: &str =
    "\nNot measured: crates gemm, faer and matrixmultiply, which this program was built without; \
    `cargo run --release --features peers -- study gemm` has them.\n";

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let quick = options.effort == Effort::Quick;
    let (sizes, passes) = if quick { (QUICK, 21) } else { (FULL, 31) };
    let seconds = |n: usize| step_seconds(n, passes);
    let mut journal = Journal::open(options, "gemm", sizes.iter().map(|&n| seconds(n)).sum())?;
    let mut rows = Vec::new();
    for &n in sizes {
        rows.extend(journal.step(&format!("N = {n}"), seconds(n), || {
            let mut rows = race::<f64>(n, passes);
            rows.extend(race::<f32>(n, passes));
            Ok(rows)
        })?);
    }
    let findings = Findings {
        schema: 1,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        kernel: matrix::Kernel::best().name(),
        rows,
    };
    let page = page(&findings);
    let files = [
        (".md", page.clone()),
        (".json", serde_json::to_string_pretty(&findings)? + "\n"),
        (".csv", csv(&findings)),
    ];
    let paths = write_files(&options.folder, &format!("gemm-{}", dated(&findings.date)), files)?;
    journal.finish()?;
    // The paper's own sentences are those of `tiling`; this race is with libraries that came after
    // it.
    Ok(Outcome { summary: page, claims: Vec::new(), files: paths })
}

/// Passes at size `n`: fewer for large products, each of which is long enough to average over.
fn passes_at(n: usize, passes: usize) -> usize {
    match n {
        2048.. => passes.min(3),
        1024.. => passes.min(7),
        _ => passes,
    }
}

/// Seconds of a size with about eight contestants of some 40 GFLOP/s, two types of numbers, and at
/// least 2 ms a contestant and pass.
fn step_seconds(n: usize, passes: usize) -> f64 {
    let product = (2.0 * (n as f64).powi(3) / 4e10).max(2e-3);
    16.0 * product * passes_at(n, passes) as f64
}

fn race<T: Number>(n: usize, passes: usize) -> Vec<Row> {
    let passes = passes_at(n, passes);
    let mut contest = Contest::new(2.0 * (n as f64).powi(3), 2e-3, T::peak_gflops);
    for (name, run) in contestants::<T>(n, 1) {
        contest.add(name, run);
    }
    contest.run(passes);
    let row = |(i, contestant): (usize, &str)| {
        let [gflops_q1, gflops, gflops_q3] = contest.gflops(i);
        let (share_of_peak, times_ours) = (contest.share_of_peak(i), contest.ratio(0, i));
        let (element, contestant) = (T::NAME.to_owned(), contestant.to_owned());
        Row { element, n, contestant, gflops, gflops_q1, gflops_q3, share_of_peak, times_ours }
    };
    contest.names().enumerate().map(row).collect()
}

fn page(findings: &Findings) -> String {
    let mut out = format!(
        "# lightfoot study gemm, {}\n\nlightfoot {}, {} study, kernel {}. GFLOP/s, medians of interleaved passes; one thread. \
         `blocked-nt`: operands kept blocked, B transposed; `blocked-nn`: B turned on the way; `plain`: conversion inside the call.\n",
        findings.date, findings.version, findings.effort, findings.kernel
    );
    // The peers are optional, so a page without them says so rather than look complete.
    if !cfg!(feature = "peers") {
        out += WITHOUT_PEERS;
    }
    for element in ["f64", "f32"] {
        let rows: Vec<&Row> = findings.rows.iter().filter(|row| row.element == element).collect();
        let mut names: Vec<&str> = Vec::new();
        for row in &rows {
            if !names.contains(&row.contestant.as_str()) {
                names.push(&row.contestant);
            }
        }
        out += &format!("\n## {element}\n\n| N | {} | share of peak |\n|---:|", names.join(" | "));
        out += &"---:|".repeat(names.len() + 1);
        let mut sizes: Vec<usize> = rows.iter().map(|row| row.n).collect();
        // Rows of one N are adjacent, because N is the outer loop of the race.
        sizes.dedup();
        for n in sizes {
            let at = |name: &str| rows.iter().find(|row| row.n == n && row.contestant == name);
            // A contestant may be missing at some N; its cell is then a hyphen and not a zero.
            let cells: Vec<String> = names
                .iter()
                .map(|name| at(name).map_or("-".into(), |row| format!("{:.1}", row.gflops)))
                .collect();
            let share =
                at("blocked-nt").map_or("-".into(), |row| format!("{:.1} %", 100.0 * row.share_of_peak));
            let _ = write!(out, "\n| {n} | {} | {share} |", cells.join(" | "));
        }
        out += "\n";
    }
    out + &absent(findings)
}

/// Which libraries were not found.
fn absent(findings: &Findings) -> String {
    let found = |name: &str| findings.rows.iter().any(|row| row.contestant.starts_with(name));
    let missing: Vec<&str> =
        ["openblas", "mkl", "blis", "blasfeo"].into_iter().filter(|name| !found(name)).collect();
    if missing.is_empty() {
        return String::new();
    }
    format!(
        "\nNot found on this machine: {}. Name the shared library with LIGHTFOOT_OPENBLAS, LIGHTFOOT_MKL, LIGHTFOOT_BLIS or \
         LIGHTFOOT_BLASFEO.\n",
        missing.join(", ")
    )
}

fn csv(findings: &Findings) -> String {
    let mut out = String::from("type,n,contestant,gflops,q1,q3,share_of_peak,times_ours\n");
    for row in &findings.rows {
        let _ = writeln!(
            out,
            "{},{},{},{:.2},{:.2},{:.2},{:.4},{:.4}",
            row.element,
            row.n,
            row.contestant,
            row.gflops,
            row.gflops_q1,
            row.gflops_q3,
            row.share_of_peak,
            row.times_ours
        );
    }
    out
}
