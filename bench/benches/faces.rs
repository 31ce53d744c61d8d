//! Every way to write a benchmark.

use lightfoot_bench::criterion::Bencher;
use lightfoot_bench::{
    bench, black_box, criterion_group, group, BatchSize, BenchmarkId, Criterion, Throughput,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[bench]
async fn later() -> u32 {
    std::future::ready(black_box(7)).await
}

#[bench(setup = || vec![3u32, 1, 2])]
pub(crate) fn own_vector(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort();
    numbers
}

#[bench(args(empty = (BTreeMap::<u32, u32>::new(), 1), one = (BTreeMap::from([(1, 2)]), 1)))]
fn two_parameters(map: BTreeMap<u32, u32>, key: u32) -> Option<u32> {
    map.get(&key).copied()
}

#[group]
mod outer {
    #[lightfoot_bench::group]
    pub mod inner {
        #[lightfoot_bench::bench]
        #[inline(always)]
        fn leaf() -> u32 {
            lightfoot_bench::black_box(1)
        }
    }

    #[cfg(any())]
    #[lightfoot_bench::bench]
    fn never() {}
}

fn of_criterion(criterion: &mut Criterion) {
    criterion.bench_function("plain", |bencher| bencher.iter(|| black_box(1) + 1));
    let mut group = criterion.benchmark_group("group");
    group.throughput(Throughput::Elements(3)).sample_size(10);
    group.bench_function("batched", |bencher| {
        bencher.iter_batched(|| vec![1; 3], |numbers: Vec<u32>| numbers.len(), BatchSize::SmallInput);
    });
    for size in [1usize, 2] {
        let body = |bencher: &mut Bencher<'_>, size: &usize| bencher.iter(|| vec![0u8; *size]);
        group.bench_with_input(BenchmarkId::new("zeroes", size), &size, body);
    }
    group.finish();
}

fn attributes(_: &mut Criterion) {}

criterion_group!(plain, of_criterion);
criterion_group! {
    name = set;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1));
    targets = attributes
}

mod by_attribute {
    lightfoot_bench::main!(super::later, super::own_vector, super::two_parameters, super::outer);

    pub(super) fn all() -> std::process::ExitCode {
        main()
    }
}

mod by_criterion {
    lightfoot_bench::criterion_main!(super::plain, super::set);

    pub(super) fn all() -> std::process::ExitCode {
        main()
    }
}

fn main() -> std::process::ExitCode {
    by_attribute::all();
    by_criterion::all()
}
