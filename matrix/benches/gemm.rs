//! Interleaved race of multiplications: every pass runs every contestant once, between two samples
//! of the FMA peak.
//!
//! ```text
//! cargo bench -p lightfoot-matrix --features peers -- [--type f64|f32] [--sizes 64,128] \
//!     [--passes 9] [--ms 4] [--threads 1] [--only blocked] [--tiles 1024x1024x104,512x4096x128]
//! ```
//!
//! `--tiles` adds products of plain arrays with these tile sizes (depth, rows of `A`, columns of
//! `B`), to see how far the default's are from the best.
//!
//! Without feature `peers`, crates `gemm`, `faer` and `matrixmultiply` stay out and the build is
//! short. `LIGHTFOOT_OPENBLAS`, `LIGHTFOOT_MKL`, `LIGHTFOOT_BLIS` and `LIGHTFOOT_BLASFEO` name
//! shared libraries to race against; the first three are looked for in the usual places, too.
//! Printed: median GFLOP/s over the passes, quartiles, the median share of the FMA peak sampled
//! beside each run, and the median ratio to the first contestant.

use lightfoot_matrix::race::{contestants, tiled, Contest, Number};
use lightfoot_matrix::Tiling;

/// What the command line asks for.
struct Options {
    real: String,
    sizes: Vec<usize>,
    passes: usize,
    milliseconds: f64,
    threads: usize,
    only: Vec<String>,
    tiles: Vec<Tiling>,
}

/// Tile sizes as `DEPTHxROWSxCOLUMNS`.
fn tiling(text: &str) -> Tiling {
    let sizes: Vec<usize> = text.split('x').map(|size| size.parse().expect("a tile size")).collect();
    let [tile, rows, cols] = sizes[..] else { panic!("--tiles {text}: expected DEPTHxROWSxCOLUMNS") };
    Tiling { tile, rows, cols }
}

fn options() -> Options {
    let mut options = Options {
        real: "f64".into(),
        sizes: vec![64, 128, 256, 512],
        passes: 7,
        milliseconds: 4.0,
        threads: 1,
        only: Vec::new(),
        tiles: Vec::new(),
    };
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{arg} {value}: not a number"));
        match arg.as_str() {
            "--type" => options.real = value,
            "--sizes" => options.sizes = value.split(',').map(|n| n.parse().expect("a size")).collect(),
            "--passes" => options.passes = number() as usize,
            "--ms" => options.milliseconds = number(),
            "--threads" => options.threads = number() as usize,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--tiles" => options.tiles = value.split(',').map(tiling).collect(),
            _ => panic!("unknown option {arg}"),
        }
    }
    options
}

fn main() {
    let options = options();
    println!("type,n,contestant,gflops,q1,q3,share_of_peak,ratio_to_first");
    for &n in &options.sizes {
        match options.real.as_str() {
            "f32" => race::<f32>(&options, n),
            "f64" => race::<f64>(&options, n),
            other => panic!("--type {other}: expected f32 or f64"),
        }
    }
}

fn race<T: Number>(options: &Options, n: usize) {
    let mut contest = Contest::new(2.0 * (n as f64).powi(3), options.milliseconds * 1e-3, T::peak_gflops);
    for (name, run) in contestants::<T>(n, options.threads) {
        if options.only.is_empty() || options.only.iter().any(|only| name.starts_with(only.as_str())) {
            contest.add(name, run);
        }
    }
    for (name, run) in tiled::<T>(n, options.threads, &options.tiles) {
        contest.add(name, run);
    }
    contest.run(options.passes);
    let first = contest.median_seconds(0);
    for (i, name) in contest.names().enumerate() {
        let [q1, median, q3] = contest.gflops(i);
        let (share, ratio) = (contest.share_of_peak(i), first.map_or(f64::NAN, |_| contest.ratio(0, i)));
        println!("{},{n},{name},{median:.1},{q1:.1},{q3:.1},{share:.3},{ratio:.3}", T::NAME);
    }
}
