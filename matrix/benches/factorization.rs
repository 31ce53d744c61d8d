//! Interleaved race of factorisations: every pass runs every contestant once, between two samples
//! of the FMA peak.
//!
//! ```text
//! cargo bench -p lightfoot-matrix --features peers --bench factorization -- \
//!     [--operations lu,cholesky,qr,trsm,syrk,trmm,symm,inverse] [--type f64|f32] [--sizes 32,64] [--passes 7] \
//!     [--ms 1] [--threads 1] [--blocks 32,64] [--only ours]
//! ```
//!
//! `--blocks` adds this library with blocks of such widths in place of halves.
//!
//! Without feature `peers`, crate `faer` stays out. `LIGHTFOOT_OPENBLAS` and `LIGHTFOOT_MKL` name
//! shared libraries with LAPACK's symbols. Printed: median GFLOP/s over the passes, quartiles, the
//! median share of the FMA peak sampled beside each run (of one core), and the median ratio of
//! times to the first contestant: above 1 if that one is faster.

use lightfoot_matrix::race::{factorizations, Contest, Number, Operation};
use std::time::Duration;

/// Longer than threads of OpenBLAS and of rayon watch for work.
const PAUSE: Duration = Duration::from_millis(60);

/// What the command line asks for.
struct Options {
    operations: Vec<String>,
    real: String,
    sizes: Vec<usize>,
    passes: usize,
    milliseconds: f64,
    threads: usize,
    blocks: Vec<usize>,
    only: Vec<String>,
}

fn options() -> Options {
    let mut options = Options {
        operations: Operation::ALL.iter().map(|&(name, _)| name.to_owned()).collect(),
        real: "f64".into(),
        sizes: vec![32, 64, 100, 128, 256, 512],
        passes: 7,
        milliseconds: 1.0,
        threads: 1,
        blocks: Vec::new(),
        only: Vec::new(),
    };
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{arg} {value}: not a number"));
        let words = || value.split(',').map(str::to_owned).collect();
        match arg.as_str() {
            "--operations" => options.operations = words(),
            "--type" => options.real = value,
            "--sizes" => options.sizes = value.split(',').map(|n| n.parse().expect("a size")).collect(),
            "--passes" => options.passes = number() as usize,
            "--ms" => options.milliseconds = number(),
            "--threads" => options.threads = number() as usize,
            "--blocks" => options.blocks = value.split(',').map(|n| n.parse().expect("a width")).collect(),
            "--only" => options.only = words(),
            _ => panic!("unknown option {arg}"),
        }
    }
    options
}

fn main() {
    let options = options();
    println!("operation,type,threads,n,contestant,gflops,q1,q3,share_of_peak,ratio_to_first");
    for &(name, operation) in Operation::ALL {
        if !options.operations.iter().any(|wanted| wanted == name) {
            continue;
        }
        for &n in &options.sizes {
            match options.real.as_str() {
                "f32" => race::<f32>(&options, (name, operation), n),
                "f64" => race::<f64>(&options, (name, operation), n),
                other => panic!("--type {other}: expected f32 or f64"),
            }
        }
    }
}

fn race<T: Number>(options: &Options, (name, operation): (&str, Operation), n: usize) {
    let mut contest = Contest::new(operation.flops(n), options.milliseconds * 1e-3, T::peak_gflops);
    if options.threads > 1 {
        contest = contest.pause(PAUSE);
    }
    for (contestant, run) in factorizations::<T>(operation, n, options.threads, &options.blocks) {
        if options.only.is_empty() || options.only.iter().any(|only| contestant.starts_with(only.as_str())) {
            contest.add(contestant, run);
        }
    }
    contest.run(options.passes);
    let first = contest.median_seconds(0);
    for (i, contestant) in contest.names().enumerate() {
        let [q1, median, q3] = contest.gflops(i);
        let (share, ratio) = (contest.share_of_peak(i), first.map_or(f64::NAN, |_| contest.ratio(0, i)));
        let threads = options.threads;
        println!(
            "{name},{},{threads},{n},{contestant},{median:.1},{q1:.1},{q3:.1},{share:.3},{ratio:.3}",
            T::NAME
        );
    }
}
