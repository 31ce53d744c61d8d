//! The face of criterion: its types and macros, as far as most benchmarks use them.
//!
//! Names of benchmarks are criterion's, `group/function/parameter`. Settings of times, samples and
//! throughput are accepted and change nothing, because nothing is timed. **Leaves out**
//! measurements of one's own, profilers, plots, and benchmarks on a runtime (`to_async`): call
//! [`block_on`](crate::block_on) or the runtime inside of the routine.

use crate::runner::{Place, Runner};
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

thread_local! {
    /// The runner, while groups are run.
    static RUNNER: RefCell<Runner> = RefCell::default();
}

/// Runs groups with a runner, which functions of criterion's form do not take.
#[doc(hidden)]
pub fn with_runner(runner: &mut Runner, groups: impl FnOnce()) {
    RUNNER.with(|own| std::mem::swap(&mut *own.borrow_mut(), runner));
    groups();
    RUNNER.with(|own| std::mem::swap(&mut *own.borrow_mut(), runner));
}

fn benchmark(name: &str, location: &'static Location<'static>, mut body: impl FnMut(&mut Bencher<'_>)) {
    let place = Place { file: location.file(), line: location.line() };
    let mut body = |bencher: &mut crate::Bencher| body(&mut Bencher(bencher));
    RUNNER.with(|runner| runner.borrow_mut().named(name, place, &mut body));
}

/// Takes benchmarks.
#[derive(Debug, Default)]
pub struct Criterion {}

/// Settings that change nothing.
macro_rules! without_effect {
    ($own:ty => $($(#[$about:meta])* $name:ident: $type:ty),+ $(,)?) => {
        $($(#[$about])* #[must_use] pub fn $name(self, _: $type) -> $own { self })+
    };
}

impl Criterion {
    without_effect! { Criterion =>
        /// Changes nothing: a benchmark is counted once.
        sample_size: usize,
        /// Changes nothing: a benchmark is warmed up once.
        warm_up_time: Duration,
        /// Changes nothing: nothing is timed.
        measurement_time: Duration,
        /// Changes nothing: counts have no confidence.
        confidence_level: f64,
        /// Changes nothing: counts have no noise.
        noise_threshold: f64,
        /// Changes nothing: counts have no significance.
        significance_level: f64,
        /// Changes nothing: counts are not resampled.
        nresamples: usize,
    }

    /// Changes nothing: the command line is read already.
    #[must_use]
    pub fn configure_from_args(self) -> Criterion {
        self
    }

    /// Changes nothing: nothing is drawn.
    #[must_use]
    pub fn without_plots(self) -> Criterion {
        self
    }

    /// Takes a benchmark.
    #[track_caller]
    pub fn bench_function(
        &mut self,
        name: impl Into<String>,
        body: impl FnMut(&mut Bencher<'_>),
    ) -> &mut Self {
        benchmark(&name.into(), Location::caller(), body);
        self
    }

    /// Takes a benchmark of an input.
    #[track_caller]
    pub fn bench_with_input<I: ?Sized>(
        &mut self,
        id: BenchmarkId,
        input: &I,
        mut body: impl FnMut(&mut Bencher<'_>, &I),
    ) -> &mut Self {
        benchmark(&id.0, Location::caller(), |bencher| body(bencher, input));
        self
    }

    /// Begins a group, whose name comes before those of its benchmarks.
    pub fn benchmark_group(&mut self, name: impl Into<String>) -> BenchmarkGroup {
        BenchmarkGroup { name: name.into() }
    }

    /// Changes nothing: `lightfoot bench` reports.
    pub fn final_summary(&self) {}
}

/// Benchmarks with a name in common.
#[derive(Debug)]
pub struct BenchmarkGroup {
    name: String,
}

/// Settings that change nothing.
macro_rules! without_effect_here {
    ($($(#[$about:meta])* $name:ident: $type:ty),+ $(,)?) => {
        $($(#[$about])* pub fn $name(&mut self, _: $type) -> &mut Self { self })+
    };
}

impl BenchmarkGroup {
    without_effect_here! {
        /// Changes nothing: a benchmark is counted once.
        sample_size: usize,
        /// Changes nothing: a benchmark is warmed up once.
        warm_up_time: Duration,
        /// Changes nothing: nothing is timed.
        measurement_time: Duration,
        /// Changes nothing: counts are of the whole routine.
        throughput: Throughput,
        /// Changes nothing: there are no samples.
        sampling_mode: SamplingMode,
        /// Changes nothing: counts have no confidence.
        confidence_level: f64,
        /// Changes nothing: counts have no noise.
        noise_threshold: f64,
    }

    /// Takes a benchmark.
    #[track_caller]
    pub fn bench_function(
        &mut self,
        id: impl IntoBenchmarkId,
        body: impl FnMut(&mut Bencher<'_>),
    ) -> &mut Self {
        let name = format!("{}/{}", self.name, id.into_benchmark_id().0);
        benchmark(&name, Location::caller(), body);
        self
    }

    /// Takes a benchmark of an input.
    #[track_caller]
    pub fn bench_with_input<I: ?Sized>(
        &mut self,
        id: impl IntoBenchmarkId,
        input: &I,
        mut body: impl FnMut(&mut Bencher<'_>, &I),
    ) -> &mut Self {
        let name = format!("{}/{}", self.name, id.into_benchmark_id().0);
        benchmark(&name, Location::caller(), |bencher| body(bencher, input));
        self
    }

    /// Ends the group.
    pub fn finish(self) {}
}

/// The name of a benchmark in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchmarkId(String);

impl BenchmarkId {
    /// `function/parameter`.
    pub fn new(function: impl Into<String>, parameter: impl Display) -> BenchmarkId {
        BenchmarkId(format!("{}/{parameter}", function.into()))
    }

    /// The parameter alone.
    pub fn from_parameter(parameter: impl Display) -> BenchmarkId {
        BenchmarkId(parameter.to_string())
    }
}

/// What names a benchmark in its group.
pub trait IntoBenchmarkId {
    /// The name.
    fn into_benchmark_id(self) -> BenchmarkId;
}

impl IntoBenchmarkId for BenchmarkId {
    fn into_benchmark_id(self) -> BenchmarkId {
        self
    }
}

impl<S: Into<String>> IntoBenchmarkId for S {
    fn into_benchmark_id(self) -> BenchmarkId {
        BenchmarkId(self.into())
    }
}

/// Calls the routine of a benchmark, which is counted once.
#[derive(Debug)]
pub struct Bencher<'b>(&'b mut crate::Bencher);

impl Bencher<'_> {
    /// Counts a routine.
    pub fn iter<O>(&mut self, mut routine: impl FnMut() -> O) {
        self.0.measure(|| (), |()| routine());
    }

    /// Counts a routine; dropping its output is never counted.
    pub fn iter_with_large_drop<O>(&mut self, routine: impl FnMut() -> O) {
        self.iter(routine);
    }

    /// Counts a routine with an input, which is made outside of what is counted.
    pub fn iter_with_setup<I, O>(&mut self, setup: impl FnMut() -> I, routine: impl FnMut(I) -> O) {
        self.0.measure(setup, routine);
    }

    /// Counts a routine with an input, which is made outside of what is counted.
    pub fn iter_batched<I, O>(
        &mut self,
        setup: impl FnMut() -> I,
        routine: impl FnMut(I) -> O,
        _: BatchSize,
    ) {
        self.0.measure(setup, routine);
    }

    /// Counts a routine with an input, which is made and dropped outside of what is counted.
    pub fn iter_batched_ref<I, O>(
        &mut self,
        setup: impl FnMut() -> I,
        mut routine: impl FnMut(&mut I) -> O,
        _: BatchSize,
    ) {
        self.0.measure(setup, |mut input| {
            let output = routine(&mut input);
            (output, input)
        });
    }
}

/// How many inputs there are at a time, which changes nothing: there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// Small inputs.
    SmallInput,
    /// Large inputs.
    LargeInput,
    /// An input for each iteration.
    PerIteration,
    /// So many batches.
    NumBatches(u64),
    /// So many iterations.
    NumIterations(u64),
}

/// What a routine gets through, which changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// Bytes, in multiples of 1024.
    Bytes(u64),
    /// Bytes, in multiples of 1000.
    BytesDecimal(u64),
    /// Elements.
    Elements(u64),
}

/// How samples are taken, which changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingMode {
    /// As the routine demands.
    Auto,
    /// With more and more iterations.
    Linear,
    /// With as many iterations each.
    Flat,
}

/// A function that runs benchmarks of criterion's form.
#[macro_export]
macro_rules! criterion_group {
    (name = $name:ident; config = $config:expr; targets = $($target:path),+ $(,)?) => {
        /// Runs the benchmarks of a group.
        pub fn $name() {
            let mut criterion: $crate::Criterion = $config.configure_from_args();
            $($target(&mut criterion);)+
        }
    };
    ($name:ident, $($target:path),+ $(,)?) => {
        $crate::criterion_group! {
            name = $name;
            config = $crate::Criterion::default();
            targets = $($target),+
        }
    };
}

/// The function `main` of a program of benchmarks of criterion's form.
#[macro_export]
macro_rules! criterion_main {
    ($($group:path),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::run(|runner| $crate::criterion::with_runner(runner, || { $($group();)+ }))
        }
    };
}
