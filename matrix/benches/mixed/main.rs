//! Race of mixed products: bytes into `i32`, `bf16` and `f16` into `f32`, on row-major arrays.
//!
//! ```text
//! cargo bench -p lightfoot-matrix --features half,peers --bench mixed -- [--sizes 64,256] \
//!     [--passes 7] [--ms 4] [--threads 1] [--only vnni,onednn]
//! ```
//!
//! oneDNN (`libdnnl.so.2`, or the file that `LIGHTFOOT_ONEDNN` names) and MKL (`libmkl_rt.so.2`, or
//! `LIGHTFOOT_MKL`) take part where they are found, and with feature `peers` the crate `gemm` for
//! `f16`. Each contestant's result is compared with ours before the race. Printed: median billions
//! of operations a second, quartiles, and the median ratio to the first contestant.

mod peers;

use half::{bf16, f16};
use lightfoot_matrix::mixed::{Mixed, Product, TileKernel};
use lightfoot_matrix::race::{Contest, Run};
use lightfoot_matrix::{Gemm, Strided, StridedMut};

/// What the command line asks for.
struct Options {
    sizes: Vec<usize>,
    passes: usize,
    milliseconds: f64,
    threads: usize,
    only: Vec<String>,
}

fn options() -> Options {
    let sizes = vec![32, 64, 100, 128, 256, 512, 1000, 1024, 2048];
    let mut options = Options { sizes, passes: 7, milliseconds: 4.0, threads: 1, only: Vec::new() };
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{arg} {value}: not a number"));
        match arg.as_str() {
            "--sizes" => options.sizes = value.split(',').map(|n| n.parse().expect("a size")).collect(),
            "--passes" => options.passes = number() as usize,
            "--ms" => options.milliseconds = number(),
            "--threads" => options.threads = number() as usize,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            _ => panic!("unknown option {arg}"),
        }
    }
    options
}

/// A contestant before the race: it writes n² sums to an array of its own and gives them.
type Contestant<S> = (String, Box<dyn FnMut() -> Vec<S>>, Run);

/// Two copies of one function: one that gives its result, one that is timed.
fn contestant<S: Clone + Default + 'static>(
    name: &str,
    n: usize,
    multiply: impl Fn(&mut [S]) + Clone + 'static,
) -> Contestant<S> {
    let (shown, mut c) = (multiply.clone(), vec![S::default(); n * n]);
    let result = move || {
        let mut c = vec![S::default(); n * n];
        shown(&mut c);
        c
    };
    (name.into(), Box::new(result), Box::new(move || multiply(&mut c)))
}

/// Ours with the kernel that it takes, then with every one that this processor can run.
fn ours<P>(n: usize, threads: usize, a: &'static [P::Left], b: &'static [P::Right]) -> Vec<Contestant<P::Sum>>
where
    P: Product,
{
    let of = |name: &str, kernel: Option<&'static TileKernel<P>>| {
        contestant(name, n, move |c: &mut [P::Sum]| {
            let (a, b) = (Strided::row_major(a, n, n).expect("n²"), Strided::row_major(b, n, n).expect("n²"));
            let c = StridedMut::row_major(c, n, n).expect("n²");
            let (one, zero) = (<P::Sum as lightfoot_matrix::mixed::Sum>::ONE, P::Sum::default());
            let mixed = Mixed::<P>::new().threads(threads);
            let mixed = kernel.map_or(mixed, |kernel| mixed.kernel(kernel));
            mixed.multiply(one, a, b, zero, c).expect("n²");
        })
    };
    let each = TileKernel::available().map(|kernel| of(kernel.name(), Some(kernel)));
    std::iter::once(of("ours", None)).chain(each).collect()
}

/// Our product of the same numbers in `f32`.
fn single(n: usize, threads: usize, a: &[f32], b: &[f32]) -> Contestant<f32> {
    let (a, b): (&'static [f32], &'static [f32]) = (a.to_vec().leak(), b.to_vec().leak());
    contestant("f32", n, move |c: &mut [f32]| {
        let (a, b) = (Strided::row_major(a, n, n).expect("n²"), Strided::row_major(b, n, n).expect("n²"));
        let c = StridedMut::row_major(c, n, n).expect("n²");
        Gemm::new().threads(threads).multiply_strided(1.0, a, b, 0.0, c).expect("n²");
    })
}

/// Runs and prints one race.
fn race<S: Copy + Into<f64>>(options: &Options, kind: &str, n: usize, mut all: Vec<Contestant<S>>) {
    let want: Vec<f64> = (all[0].1)().into_iter().map(Into::into).collect();
    all.retain_mut(|(name, result, _)| {
        if !options.only.is_empty() && !options.only.contains(name) {
            return false;
        }
        let close = |(got, want): (S, &f64)| (got.into() - want).abs() <= 1e-3 * want.abs().max(n as f64);
        let agrees = result().into_iter().zip(&want).all(close);
        if !agrees {
            eprintln!("{kind} {n} {name}: its result differs, so it does not run");
        }
        agrees
    });
    let mut contest = Contest::new(2.0 * (n as f64).powi(3), options.milliseconds / 1e3, || f64::NAN);
    all.into_iter().for_each(|(name, _, run)| contest.add(name, run));
    contest.run(options.passes);
    let names: Vec<_> = contest.names().map(str::to_owned).collect();
    for (i, name) in names.iter().enumerate() {
        let [q1, median, q3] = contest.gflops(i);
        println!("{kind},{n},{name},{median:.1},{q1:.1},{q3:.1},{:.3}", contest.ratio(0, i));
    }
}

fn main() {
    let options = options();
    let threads = options.threads;
    println!("type,n,contestant,gops,q1,q3,time_over_first");
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    for &n in &options.sizes {
        let mut fill = |count: usize| -> Vec<u32> { (0..count).map(|_| next()).collect() };
        let (left, right) = (fill(n * n), fill(n * n));
        // Seven bits of A: some libraries saturate sums of two products elsewhere.
        let a: &'static [u8] = left.iter().map(|&x| x as u8 & 127).collect::<Vec<_>>().leak();
        let b: &'static [i8] = right.iter().map(|&x| x as i8).collect::<Vec<_>>().leak();
        let mut all = ours::<(u8, i8)>(n, threads, a, b);
        all.extend(peers::bytes(n, threads, a, b));
        race(&options, "u8-i8", n, all);

        let unit = |&x: &u32| f32::from_bits(0x3F80_0000 | (x & 0x7F_FFFF)) - 1.5;
        let (a, b): (Vec<f32>, Vec<f32>) =
            (left.iter().map(unit).collect(), right.iter().map(unit).collect());
        let narrow = |x: &[f32]| -> &'static [bf16] {
            x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>().leak()
        };
        let (an, bn) = (narrow(&a), narrow(&b));
        let mut all = ours::<(bf16, bf16)>(n, threads, an, bn);
        let wide = |x: &[bf16]| -> Vec<f32> { x.iter().map(|x| x.to_f32()).collect() };
        all.push(single(n, threads, &wide(an), &wide(bn)));
        all.extend(peers::bf16s(n, threads, an, bn));
        race(&options, "bf16", n, all);

        let narrow =
            |x: &[f32]| -> &'static [f16] { x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>().leak() };
        let (an, bn) = (narrow(&a), narrow(&b));
        let mut all = ours::<(f16, f16)>(n, threads, an, bn);
        all.extend(peers::f16s(n, threads, an, bn));
        race(&options, "f16", n, all);
    }
}
