//! The benchmarks of the crate's first page: `cargo lightfoot bench -p lightfoot-bench`.

use lightfoot_bench::{bench, black_box, group};

#[bench]
fn sum() -> u64 {
    (0..1000).map(black_box::<u64>).sum()
}

fn reversed(count: u32) -> Vec<u32> {
    (0..count).rev().collect()
}

#[bench(setup = reversed, args(small = 100, large = 10_000))]
fn sort(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort();
    numbers
}

#[group]
mod text {
    use lightfoot_bench::bench;

    #[bench(args(words = "some words of a text", none = ""))]
    fn split(text: &str) -> usize {
        text.split(' ').count()
    }
}

lightfoot_bench::main!(sum, sort, text);
