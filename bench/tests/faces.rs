//! Every way to write a benchmark, run natively as `cargo test` runs it.
//!
//! Each benchmark notes its call, so one that is not reached is missed at the end.

use lightfoot_bench::criterion::Bencher;
use lightfoot_bench::{
    bench, black_box, criterion_group, group, BatchSize, BenchmarkId, Criterion, Throughput,
};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// The benchmarks that were called, with what they got.
static CALLED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn called(name: &str, input: impl std::fmt::Debug) {
    CALLED.lock().unwrap().push(format!("{name} {input:?}"));
}

const EXPECTED: &[&str] = &[
    "later ()",
    "own_vector [3, 1, 2]",
    "two_parameters ({}, 1)",
    "two_parameters ({1: 2}, 1)",
    "from_setup 10",
    "turbofish [\"a\", \"b\"]",
    "leaf ()",
    "plain ()",
    "batched [1, 1, 1]",
    "by reference 7",
    "input 1",
    "input 2",
    "grouped input \"text\"",
];

#[bench]
async fn later() -> u32 {
    called("later", ());
    std::future::ready(black_box(7)).await
}

#[bench(setup = || vec![3u32, 1, 2])]
pub(crate) fn own_vector(numbers: Vec<u32>) -> Vec<u32> {
    called("own_vector", &numbers);
    numbers
}

#[bench(args(empty = (BTreeMap::<u32, u32>::new(), 1), one = (BTreeMap::from([(1, 2)]), 1)))]
fn two_parameters(map: BTreeMap<u32, u32>, key: u32) -> Option<u32> {
    called("two_parameters", (&map, key));
    map.get(&key).copied()
}

#[bench(setup = |count: u32| count * 2, args(five = 5))]
fn from_setup(count: u32) {
    called("from_setup", count);
}

#[bench(args(both = "a b".split(' ').map(str::to_owned).collect::<Vec<String>>()))]
fn turbofish(words: Vec<String>) {
    called("turbofish", words);
}

#[group]
mod outer {
    #[lightfoot_bench::group]
    pub(super) mod inner {
        #[lightfoot_bench::bench]
        #[inline(always)]
        fn leaf() {
            crate::called("leaf", ());
        }
    }

    #[cfg(any())]
    #[lightfoot_bench::bench]
    fn never() {}
}

fn of_criterion(criterion: &mut Criterion) {
    criterion.bench_function("plain", |bencher| bencher.iter(|| called("plain", ())));
    let mut group = criterion.benchmark_group("group");
    group.throughput(Throughput::Elements(3)).sample_size(10);
    group.bench_function("batched", |bencher| {
        let routine = |numbers: Vec<u32>| called("batched", numbers);
        bencher.iter_batched(|| vec![1; 3], routine, BatchSize::SmallInput);
    });
    group.bench_function("by reference", |bencher| {
        bencher.iter_batched_ref(|| 7, |number| called("by reference", *number), BatchSize::LargeInput);
    });
    for size in [1usize, 2] {
        let body = |bencher: &mut Bencher<'_>, size: &usize| bencher.iter(|| called("input", *size));
        group.bench_with_input(BenchmarkId::new("input", size), &size, body);
    }
    group.finish();
}

fn of_settings(criterion: &mut Criterion) {
    let body = |bencher: &mut Bencher<'_>, text: &str| bencher.iter(|| called("grouped input", text));
    criterion.bench_with_input(BenchmarkId::from_parameter("text"), "text", body);
}

criterion_group!(plain, of_criterion);
criterion_group! {
    name = set;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1));
    targets = of_settings
}

mod by_attribute {
    lightfoot_bench::main!(
        super::later,
        super::own_vector,
        super::two_parameters,
        super::from_setup,
        super::turbofish,
        super::outer
    );

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

fn main() -> ExitCode {
    let good = [by_attribute::all(), by_criterion::all()];
    assert_eq!(good, [ExitCode::SUCCESS; 2]);
    // A filter of the test run's leaves benchmarks out.
    if std::env::args().len() > 1 {
        return ExitCode::SUCCESS;
    }
    assert_eq!(*CALLED.lock().unwrap(), EXPECTED);
    ExitCode::SUCCESS
}
