//! Passes over blocked matrices that memory bounds: GB/s read and written, beside a copy of the
//! machine's own.
//!
//! ```text
//! cargo bench -p lightfoot-matrix --bench memory -- [N …]
//! ```

use lightfoot_matrix::{multiply_vector, BlockedMatrix, Op, Strided, StridedMut};
use std::time::Instant;

/// The median seconds of nine calls after a first one.
fn seconds(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    println!("n,pass,gb_per_s");
    for n in if given.is_empty() { vec![256, 1000, 2048] } else { given } {
        let bytes = (n * n * size_of::<f64>()) as f64;
        let a = BlockedMatrix::from_fn(n, n, |i, j| (i * 3 + j) as f64).expect("it fits");
        let mut other = BlockedMatrix::zeros(n, n).expect("it fits");
        let (x, mut y) = (vec![1.0; n], vec![0.0; n]);
        let (from, mut to) = (vec![1.0; n * n], vec![0.0; n * n]);
        let show = |pass: &str, moved: f64, time: f64| println!("{n},{pass},{:.1}", moved / time / 1e9);
        show("copy", 2.0 * bytes, seconds(|| to.copy_from_slice(std::hint::black_box(&from))));
        let sum = || {
            std::hint::black_box(from.as_chunks::<32>().0.iter().fold([0.0; 32], |mut sums, part| {
                sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                sums
            }))
        };
        show("sum", bytes, seconds(|| _ = sum()));
        for (name, op) in [("vector", Op::Plain), ("vector-transposed", Op::Transposed)] {
            let time = seconds(|| multiply_vector(1.0, &a, op, &x, 0.0, &mut y).expect("it fits"));
            show(name, bytes, time);
        }
        show("transposed", 2.0 * bytes, seconds(|| drop(a.transposed().expect("it fits"))));
        show("transpose-to", 2.0 * bytes, seconds(|| a.transpose_to(&mut other).expect("it fits")));
        let columns = Strided::col_major(&from, n, n).expect("it fits");
        let rows = Strided::row_major(&from, n, n).expect("it fits");
        show("from-columns", 2.0 * bytes, seconds(|| other.copy_from(columns).expect("it fits")));
        show("from-rows", 2.0 * bytes, seconds(|| other.copy_from(rows).expect("it fits")));
        let mut view = StridedMut::col_major(&mut to, n, n).expect("it fits");
        show("to-columns", 2.0 * bytes, seconds(|| a.copy_to(&mut view).expect("it fits")));
        let mut view = StridedMut::row_major(&mut to, n, n).expect("it fits");
        show("to-rows", 2.0 * bytes, seconds(|| a.copy_to(&mut view).expect("it fits")));
    }
}
