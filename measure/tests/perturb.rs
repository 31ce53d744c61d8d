//! Verdicts on traces whose truth is known: synthetic runs with and without an effect, and the
//! experiments that must be refused.

use lightfoot_measure::perturb::{perturb, Comparison, Kind, Options, Report, Scope, Verdict};
use lightfoot_measure::random::Random;
use lightfoot_measure::rank::spearman;
use lightfoot_measure::trace::{Header, Interval, Metric, Record, Source, Trace, Unit, Value};

const METRICS: [&str; 3] = ["L1D-misses", "L2-misses", "TLB-misses"];

/// A trace of these columns, each shifted to be positive.
fn trace(columns: &[Vec<f64>], software: usize) -> Trace {
    let mut metrics: Vec<Metric> =
        METRICS[..columns.len()].iter().map(|name| Metric::new(*name, Source::Simulated, "test")).collect();
    metrics.extend((0..software).map(|i| Metric::new(format!("fn:f{i}"), Source::Software, "probe")));
    let interval = Interval { length: 1000, unit: Unit::Cycles };
    let mut trace = Trace::new(Header::new(vec!["program".into()], interval, metrics));
    for i in 0..columns[0].len() {
        let mut values: Vec<Value> =
            columns.iter().map(|column| Value::whole((1e6 + 1e5 * column[i]) as u64)).collect();
        values.extend((0..software).map(|_| Value::whole(1)));
        let (sequence, start) = (i as u64, 1000 * i as u64);
        trace.records.push(Record { sequence, start, dt: 1000, missed_ticks: 0, threads: 1, values });
    }
    trace
}

/// Three AR(1) series; the first two are correlated by `rho(i)` at record `i`.
fn series(n: usize, phi: f64, rho: impl Fn(usize) -> f64, random: &mut Random) -> Vec<Vec<f64>> {
    let scale = (1.0 - phi * phi).sqrt();
    let mut state = [random.normal(), random.normal(), random.normal()];
    let mut out = vec![Vec::new(); 3];
    for i in 0..n {
        for x in &mut state {
            *x = phi * *x + scale * random.normal();
        }
        let rho = rho(i);
        let second = rho * state[0] + (1.0 - rho * rho).sqrt() * state[1];
        for (column, x) in out.iter_mut().zip([state[0], second, state[2]]) {
            column.push(x);
        }
    }
    out
}

fn inner() -> Options {
    Options { scope: Scope::Inner, ..Options::default() }
}

fn find<'a>(report: &'a Report, kind: Kind, first: &str) -> &'a Comparison {
    report.comparisons.iter().find(|c| c.kind == kind && c.metrics[0] == first).unwrap()
}

/// Five baselines and five runs of AR(1) series whose first two metrics are correlated by .8, in
/// runs by `rho`.
fn experiment(n: usize, phi: f64, rho: impl Fn(usize) -> f64 + Copy, random: &mut Random) -> [Vec<Trace>; 2] {
    let mut side = |software, rho: &dyn Fn(usize) -> f64| -> Vec<Trace> {
        (0..5).map(|_| trace(&series(n, phi, rho, random), software)).collect()
    };
    [side(0, &|_| 0.8), side(1, &rho)]
}

/// Fisher's transformation on the records of one run each, Bonferroni over the pairs: what a reader
/// of a textbook would do.
fn naive_fisher_rejects(baseline: &Trace, run: &Trace) -> bool {
    let n = baseline.records.len() as f64;
    let correlation = |trace: &Trace, i, j| spearman(&trace.series(i), &trace.series(j)).unwrap().atanh();
    let z = |(i, j)| (correlation(baseline, i, j) - correlation(run, i, j)).abs() / (2.0 / (n - 3.0)).sqrt();
    // Two-sided 5 % over three comparisons.
    [(0, 1), (0, 2), (1, 2)].into_iter().map(z).any(|z| z > 2.394)
}

#[test]
fn without_an_effect_the_family_is_flagged_in_at_most_a_twentieth() {
    let mut random = Random::new(20_070_325);
    let experiments = 400;
    let (mut flagged, mut significant, mut naive) = (0, 0, 0);
    for _ in 0..experiments {
        let [baseline, run] = experiment(200, 0.9, |_| 0.8, &mut random);
        let report = perturb(&baseline, &run, &inner()).unwrap();
        flagged += usize::from(report.verdict() == Verdict::Disturbed);
        significant += usize::from(report.comparisons.iter().any(|c| c.p.unwrap() <= 0.05));
        naive += usize::from(naive_fisher_rejects(&baseline[0], &run[0]));
    }
    println!("of {experiments}: disturbed {flagged}, p at most .05 {significant}, naive Fisher {naive}");
    assert!(flagged * 20 <= experiments, "{flagged} of {experiments}");
    assert!(significant * 20 <= experiments, "{significant} of {experiments}");
    assert!(naive * 20 > 2 * experiments, "the naive test must fail this: {naive} of {experiments}");
}

#[test]
fn without_an_effect_alignment_flags_no_more() {
    let mut random = Random::new(3);
    let experiments = 100;
    let (mut flagged, mut significant) = (0, 0);
    for _ in 0..experiments {
        let common = series(150, 0.95, |_| 0.5, &mut random);
        let mut side = |software| -> Vec<Trace> {
            let noisy = |column: &Vec<f64>, random: &mut Random| -> Vec<f64> {
                column.iter().map(|x| x + 0.8 * random.normal()).collect()
            };
            let columns = |random: &mut Random| common.iter().map(|c| noisy(c, random)).collect::<Vec<_>>();
            (0..5).map(|_| trace(&columns(&mut random), software)).collect()
        };
        let (baseline, run) = (side(0), side(1));
        let report = perturb(&baseline, &run, &Options::default()).unwrap();
        let outer = || report.comparisons.iter().filter(|c| c.kind == Kind::Outer);
        flagged += usize::from(outer().any(|c| c.verdict == Verdict::Disturbed));
        significant += usize::from(outer().any(|c| c.p.unwrap() <= 0.05));
    }
    println!("of {experiments}: disturbed {flagged}, p at most .05 {significant}");
    assert!(flagged * 20 <= experiments, "{flagged} of {experiments}");
    // The test is exact: what is counted here is binomial around a twentieth. Two standard
    // deviations are allowed.
    let allowed = 0.05 + 2.0 * (0.05 * 0.95 / experiments as f64).sqrt();
    assert!(significant as f64 <= allowed * experiments as f64, "{significant} of {experiments}");
}

#[test]
fn a_planted_effect_is_found_and_a_small_one_is_not_flagged() {
    let mut random = Random::new(7);
    let (experiments, n) = (100, 600);
    let count = |rho: fn(usize) -> f64, random: &mut Random| {
        let flagged = (0..experiments).filter(|_| {
            let [baseline, run] = experiment(n, 0.5, rho, random);
            find(&perturb(&baseline, &run, &inner()).unwrap(), Kind::Inner, "L1D-misses").verdict
                == Verdict::Disturbed
        });
        flagged.count()
    };
    let planted = count(|i| if (200..400).contains(&i) { 0.2 } else { 0.8 }, &mut random);
    let small = count(|_| 0.78, &mut random);
    println!("of {experiments}: planted {planted}, small {small}");
    assert!(planted * 20 >= experiments * 19, "{planted}");
    assert!(small * 20 <= experiments, "{small}");
}

#[test]
fn steady_runs_are_called_undisturbed_and_a_change_of_sign_is_disturbed() {
    let mut random = Random::new(11);
    let [baseline, run] = experiment(3000, 0.2, |_| 0.8, &mut random);
    let report = perturb(&baseline, &run, &inner()).unwrap();
    assert_eq!(report.verdict(), Verdict::Undisturbed, "{:#?}", report.comparisons);
    let [baseline, run] = experiment(3000, 0.2, |_| -0.8, &mut random);
    let report = perturb(&baseline, &run, &inner()).unwrap();
    let found = find(&report, Kind::Inner, "L1D-misses");
    assert_eq!(found.verdict, Verdict::Disturbed);
    assert!(
        found.sentence.starts_with("L1D-misses and L2-misses: disturbed: ρ 0.79 → -0.79"),
        "{}",
        found.sentence
    );
}

#[test]
fn outer_perturbation_is_found_by_what_baselines_reach_among_each_other() {
    let mut random = Random::new(5);
    let common = series(300, 0.97, |_| 0.3, &mut random);
    let mut noisy = |noise: [f64; 3], software| {
        let columns = common
            .iter()
            .zip(noise)
            .map(|(column, noise)| column.iter().map(|x| x + noise * random.normal()).collect::<Vec<f64>>());
        trace(&columns.collect::<Vec<_>>(), software)
    };
    let baseline: Vec<Trace> = (0..6).map(|_| noisy([0.4; 3], 0)).collect();
    let run: Vec<Trace> = (0..6).map(|_| noisy([0.4, 0.4, 3.0], 1)).collect();
    let report = perturb(&baseline, &run, &Options { threads: 2, ..Options::default() }).unwrap();
    assert_eq!(find(&report, Kind::Outer, "TLB-misses").verdict, Verdict::Disturbed);
    // The other metrics are aligned by the noisy one among others, so their relation to the
    // baselines suffers as well; without noise it does not.
    let quiet: Vec<Trace> = (0..6).map(|_| noisy([0.4; 3], 1)).collect();
    let unchanged = perturb(&baseline, &quiet, &Options::default()).unwrap();
    assert!(unchanged.comparisons.iter().all(|c| c.verdict != Verdict::Disturbed));
    let again = perturb(&baseline, &run, &Options::default()).unwrap();
    assert_eq!(
        serde_json::to_string(&report).unwrap(),
        serde_json::to_string(&again).unwrap(),
        "threads change nothing"
    );
}

/// Eight layouts, each with a share of its own in every metric; a baseline and a run at each, the
/// runs with more noise in the last metric.
fn laid_out(noise: f64, random: &mut Random) -> [Vec<Trace>; 2] {
    let common = series(200, 0.95, |_| 0.3, random);
    let layouts: Vec<Vec<Vec<f64>>> = (0..8).map(|_| series(200, 0.95, |_| 0.0, random)).collect();
    let mut side = |software, noise: [f64; 3]| -> Vec<Trace> {
        let of = |seed: usize, random: &mut Random| {
            let column = |m: usize, random: &mut Random| -> Vec<f64> {
                (0..200).map(|i| common[m][i] + layouts[seed][m][i] + noise[m] * random.normal()).collect()
            };
            let columns: Vec<Vec<f64>> = (0..3).map(|m| column(m, random)).collect();
            let mut trace = trace(&columns, software);
            trace.header.layout_seed = Some(seed as u64);
            trace
        };
        (0..8).map(|seed| of(seed, random)).collect()
    };
    [side(0, [0.3; 3]), side(1, [0.3, 0.3, noise])]
}

#[test]
fn outer_comparisons_are_paired_by_layout() {
    let mut random = Random::new(21);
    let outer = |[baseline, run]: [Vec<Trace>; 2]| {
        let report = perturb(&baseline, &run, &Options::default()).unwrap();
        report.comparisons.into_iter().filter(|c| c.kind == Kind::Outer).collect::<Vec<_>>()
    };
    let [baseline, run] = laid_out(1.5, &mut random);
    let found = outer([baseline.clone(), run.clone()]);
    let last = found.iter().find(|c| c.metrics[0] == "TLB-misses").unwrap();
    assert_eq!(last.verdict, Verdict::Disturbed, "{}", last.sentence);
    // A share of the 256 ways to flip eight pairs.
    let flips = 256.0 * last.p.unwrap();
    assert!(flips.fract() == 0.0 && flips <= 8.0, "{:?}", last.p);
    let experiments = 60;
    let significant = (0..experiments)
        .filter(|_| outer(laid_out(0.3, &mut random)).iter().any(|c| c.p.unwrap() <= 0.05))
        .count();
    println!("of {experiments} without an effect: p at most .05 in {significant}");
    let allowed = 0.05 + 2.0 * (0.05 * 0.95 / experiments as f64).sqrt();
    assert!(significant as f64 <= allowed * experiments as f64, "{significant}");
}

#[test]
fn too_few_runs_say_how_many_would_do() {
    let mut random = Random::new(1);
    let [baseline, run] = experiment(100, 0.5, |_| 0.1, &mut random);
    let report = perturb(&baseline[..2], &run[..1], &inner()).unwrap();
    assert_eq!(report.verdict(), Verdict::CannotTell);
    assert!((report.smallest_p - 1.0 / 3.0).abs() < 1e-12);
    let said = &report.comparisons[0].sentence;
    assert!(
        said.contains("p cannot fall below 0.333") && said.contains("5 runs beside these 2 baselines"),
        "{said}"
    );
    let enough = perturb(&baseline[..2], &[&run[..], &run[..1]].concat(), &inner()).unwrap();
    assert!(enough.smallest_p <= 0.05);
}

#[test]
fn an_environment_of_another_size_is_layout_bias() {
    let mut random = Random::new(2);
    let [mut baseline, mut run] = experiment(600, 0.5, |_| 0.1, &mut random);
    baseline.iter_mut().for_each(|trace| trace.header.environment_bytes = Some(1000));
    run.iter_mut().for_each(|trace| trace.header.environment_bytes = Some(5000));
    let report = perturb(&baseline, &run, &inner()).unwrap();
    let found = find(&report, Kind::Inner, "L1D-misses");
    assert_eq!(found.verdict, Verdict::CannotTell);
    assert!(found.sentence.contains("1000 bytes and runs with 5000"), "{}", found.sentence);
    assert!(found.sentence.contains("layout bias"));
    // Without instrumentation there is nothing else that it could be.
    let plain: Vec<Trace> = (0..5).map(|_| trace(&series(600, 0.5, |_| 0.1, &mut random), 0)).collect();
    baseline.iter_mut().for_each(|trace| trace.header.environment_bytes = None);
    let report = perturb(&baseline, &plain, &inner()).unwrap();
    let found = find(&report, Kind::Inner, "L1D-misses");
    assert_ne!(found.verdict, Verdict::Disturbed);
    assert!(found.sentence.contains("no run carries instrumentation"), "{}", found.sentence);
    // The same environments on both sides: the instrumentation's.
    run.iter_mut().for_each(|trace| trace.header.environment_bytes = None);
    assert_eq!(perturb(&baseline, &run, &inner()).unwrap().verdict(), Verdict::Disturbed);
}

#[test]
fn layouts_are_samples_and_pairs() {
    let mut random = Random::new(4);
    let mut seeded = |software, rho: f64, repeats: usize| -> Vec<Trace> {
        let mut all = Vec::new();
        for seed in 0..8 {
            for _ in 0..repeats {
                let mut trace = trace(&series(300, 0.5, |_| rho, &mut random), software);
                trace.header.layout_seed = Some(seed);
                all.push(trace);
            }
        }
        all
    };
    let (baseline, run) = (seeded(0, 0.8, 1), seeded(1, 0.1, 3));
    let report = perturb(&baseline, &run, &inner()).unwrap();
    assert_eq!(report.samples, [8, 8], "three repeats at a layout are one sample");
    assert!((report.smallest_p - 2.0 / 256.0).abs() < 1e-12, "pairs of layouts");
    assert_eq!(report.verdict(), Verdict::Disturbed);
    let mut one = run[..6].to_vec();
    one.iter_mut().for_each(|trace| trace.header.layout_seed = Some(99));
    let report = perturb(&baseline, &one, &inner()).unwrap();
    assert_eq!(report.samples[1], 1);
    assert_ne!(report.verdict(), Verdict::Disturbed);
}

#[test]
fn instrumentation_in_the_source_is_another_build() {
    let mut random = Random::new(12);
    let side = |rho: f64, build: &str, random: &mut Random| -> Vec<Trace> {
        let mut traces: Vec<Trace> = (0..5).map(|_| trace(&series(300, 0.5, |_| rho, random), 0)).collect();
        traces.iter_mut().for_each(|trace| trace.header.build_id = Some(build.into()));
        traces
    };
    let (baseline, run) = (side(0.8, "aaaa", &mut random), side(0.1, "bbbb", &mut random));
    let report = perturb(&baseline, &run, &inner()).unwrap();
    assert_eq!(report.verdict(), Verdict::Disturbed);
    assert!(report.notes.iter().any(|note| note.contains("different builds")), "{:?}", report.notes);
}

#[test]
fn simulated_runs_lie_where_their_environment_puts_them() {
    let mut random = Random::new(13);
    let mut side = |software, rho: f64| -> Vec<Trace> {
        let all = (0..12).map(|index| {
            let mut trace = trace(&series(300, 0.5, |_| rho, &mut random), software);
            trace.header.engine = "simulated".into();
            trace.header.environment_bytes = Some(100 * (index % 6));
            trace
        });
        all.collect()
    };
    let report = perturb(&side(0, 0.8), &side(1, 0.1), &inner()).unwrap();
    assert_eq!(report.samples, [6, 6]);
    assert!((report.smallest_p - 2.0 / 64.0).abs() < 1e-12);
    assert_eq!(report.verdict(), Verdict::Disturbed);
}

#[test]
fn constant_metrics_have_no_correlation() {
    let mut random = Random::new(6);
    let [baseline, mut run] = experiment(100, 0.5, |_| 0.8, &mut random);
    for record in &mut run[0].records {
        record.values[2] = Value::whole(5);
    }
    let report = perturb(&baseline, &run, &inner()).unwrap();
    let found = report.comparisons.iter().filter(|c| c.metrics.contains(&"TLB-misses".to_string()));
    for comparison in found {
        assert_eq!((comparison.verdict, comparison.p), (Verdict::CannotTell, None));
        assert!(comparison.sentence.contains("constant"));
    }
}

#[test]
fn deterministic_repeats_differ_by_nothing() {
    let one = trace(&series(100, 0.5, |_| 0.8, &mut Random::new(9)), 0);
    let mut instrumented = trace(&series(100, 0.5, |_| 0.8, &mut Random::new(9)), 1);
    instrumented.header.noise_seed = Some(1);
    let report = perturb(&vec![one; 5], &vec![instrumented; 5], &Options::default()).unwrap();
    assert_eq!(report.verdict(), Verdict::Undisturbed);
    assert!(report.comparisons.iter().all(|c| c.difference() == Some(0.0)));
}

#[test]
fn what_cannot_be_compared_is_refused_with_both_values() {
    let plain = trace(&series(50, 0.5, |_| 0.8, &mut Random::new(9)), 0);
    let refused = |change: fn(&mut Trace)| {
        let mut other = plain.clone();
        change(&mut other);
        perturb(std::slice::from_ref(&plain), &[other], &inner()).unwrap_err().to_string()
    };
    assert!(refused(|t| t.header.argv[0] = "other".into()).contains("program, and other"));
    assert!(refused(|t| t.header.interval.length = 7).contains("1000 cycles, and 7 cycles"));
    assert!(refused(|t| t.header.metrics.iter_mut().for_each(|m| m.name += "2")).contains("share too few"));
    assert!(perturb(&[], std::slice::from_ref(&plain), &inner())
        .unwrap_err()
        .to_string()
        .contains("0 baselines"));
}

/// Twelve pools of ten runs as systems make them: two metrics that follow each other, bursts, a
/// busy neighbour in some runs, and a start that is the same in all.
fn native_like(random: &mut Random) -> Vec<Trace> {
    let common = series(90, 0.9, |_| 0.3, random);
    let run = |_| {
        let busy = if random.unit() < 0.3 { 2.0 } else { 0.5 };
        let phi = 0.5 + 0.45 * random.unit();
        let own = series(90, phi, |_| 0.6, random);
        let burst = |random: &mut Random| if random.unit() < 0.03 { 8.0 * random.unit() } else { 0.0 };
        let column = |metric: usize, random: &mut Random| -> Vec<f64> {
            (0..90).map(|i| common[metric][i] + busy * own[metric][i] + burst(random)).collect()
        };
        trace(&(0..3).map(|metric| column(metric, random)).collect::<Vec<_>>(), 0)
    };
    (0..10).map(run).collect()
}

/// Labels that mean nothing: of inner and outer comparisons together at most a twentieth of the
/// experiments finds one.
#[test]
fn shuffled_labels_are_found_in_at_most_a_twentieth_of_the_families() {
    let mut random = Random::new(830);
    let (mut experiments, mut significant, mut disturbed) = (0, 0, 0);
    while experiments < 840 {
        let mut pool = native_like(&mut random);
        for _ in 0..7 {
            random.shuffle(&mut pool);
            let (baseline, run) = pool.split_at(5);
            let mut run = run.to_vec();
            run.iter_mut().for_each(|trace| trace.header.build_id = Some("instrumented".into()));
            let report = perturb(baseline, &run, &Options::default()).unwrap();
            assert_eq!(report.comparisons.len(), 6, "three inner and three outer ones");
            experiments += 1;
            significant += usize::from(report.comparisons.iter().any(|c| c.p.is_some_and(|p| p <= 0.05)));
            disturbed += usize::from(report.verdict() == Verdict::Disturbed);
        }
    }
    println!("of {experiments} shuffles: p at most .05 in {significant}, disturbed {disturbed}");
    // The error is at most a twentieth; what is counted is binomial around it. Two standard
    // deviations are allowed, and two families of a twentieth each would be four beyond that.
    let allowed = 0.05 + 2.0 * (0.05 * 0.95 / f64::from(experiments)).sqrt();
    assert!(significant as f64 <= allowed * f64::from(experiments), "{significant} of {experiments}");
    assert!(disturbed * 20 <= experiments as usize, "{disturbed} of {experiments}");
}

/// The number that is said is large enough: with so many, a difference of that size is found in
/// about every second experiment, and with half as many more in most.
#[test]
fn what_cannot_be_told_says_how_many_runs_would_tell() {
    let mut random = Random::new(99);
    let mut side = |rho: f64, count: usize, software| -> Vec<Trace> {
        let mut one = |_| {
            let rho = rho + 0.2 * random.normal();
            trace(&series(400, 0.3, |_| rho.clamp(-0.95, 0.95), &mut random), software)
        };
        (0..count).map(&mut one).collect()
    };
    let mut said = Vec::new();
    for _ in 0..20 {
        let (baseline, run) = (side(0.6, 5, 0), side(0.35, 5, 1));
        let report = perturb(&baseline, &run, &inner()).unwrap();
        let found = find(&report, Kind::Inner, "L1D-misses");
        if found.verdict != Verdict::CannotTell || found.difference().unwrap().abs() < 0.1 {
            assert!(found.verdict != Verdict::Disturbed || found.would_tell.is_none());
            continue;
        }
        let [baselines, runs] = found.would_tell.unwrap();
        let words = format!("about {runs} runs beside {baselines} baselines would tell");
        assert!(baselines > 5 && runs > 5 && found.sentence.ends_with(&words), "{}", found.sentence);
        said.push(runs);
    }
    assert!(said.len() > 3, "{said:?}");
    said.sort_unstable();
    let typical = said[said.len() / 2];
    let enough = 3 * typical / 2;
    let told = (0..10).filter(|_| {
        let report = perturb(&side(0.6, enough, 0), &side(0.35, enough, 1), &inner()).unwrap();
        find(&report, Kind::Inner, "L1D-misses").verdict == Verdict::Disturbed
    });
    let told = told.count();
    println!("with 5 runs: {said:?} would tell; with {enough}, {told} of 10 do");
    assert!(told >= 6, "{told} of 10 with {enough}");
}

#[test]
fn counts_too_small_to_rank_are_named() {
    let mut random = Random::new(5);
    let [mut baseline, run] = experiment(400, 0.5, |_| 0.8, &mut random);
    let report = perturb(&baseline, &run, &inner()).unwrap();
    assert!(report.notes.iter().all(|note| !note.contains("mostly chance")), "{:?}", report.notes);
    // One baseline counts three or four of one metric.
    for (index, record) in baseline[2].records.iter_mut().enumerate() {
        record.values[1] = Value::whole(3 + index as u64 % 2);
    }
    let report = perturb(&baseline, &run, &inner()).unwrap();
    let said: Vec<&String> = report.notes.iter().filter(|note| note.contains("mostly chance")).collect();
    assert_eq!(said.len(), 1, "{:?}", report.notes);
    assert!(said[0].contains("L2-misses") && said[0].contains("at most 4"), "{said:?}");
}
