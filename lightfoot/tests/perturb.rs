//! `lightfoot align` and `lightfoot perturb` as people use them: files in, words and plots out.

mod bench;

use bench::unwished;
use measure::random::Random;
use measure::trace::{End, Header, Interval, Metric, Record, Source, Trace, Unit, Value};
use std::path::Path;
use std::process::{Command, Output};

const METRICS: [&str; 3] = ["L1D-misses", "L2-misses", "TLB-misses"];

/// A trace of three metrics, of which the second follows the first by `rho`.
fn trace(rho: f64, seed: u64, software: usize) -> Trace {
    let mut random = Random::new(seed);
    let mut metrics: Vec<Metric> = METRICS.map(|name| Metric::new(name, Source::Pmu, "test")).to_vec();
    metrics.extend((0..software).map(|_| Metric::new("fn:f", Source::Software, "probe")));
    let interval = Interval { length: 1000, unit: Unit::Nanoseconds };
    let mut trace = Trace::new(Header::new(vec!["./program".into()], interval, metrics));
    for sequence in 0..800 {
        let (x, y, z) = (random.normal(), random.normal(), random.normal());
        let columns = [x, rho * x + (1.0 - rho * rho).sqrt() * y, z];
        let mut values = columns.map(|v| Value::whole((1e6 + 1e5 * v) as u64)).to_vec();
        values.extend((0..software).map(|_| Value::whole(3)));
        let start = 1000 * sequence;
        trace.records.push(Record { sequence, start, dt: 1000, missed_ticks: 0, threads: 1, values });
    }
    let totals = (0..trace.header.metrics.len()).map(|metric| trace.sum(metric)).collect();
    trace.end = Some(End { totals, exit_status: Some(0), interrupted: false });
    trace
}

fn write(folder: &Path, name: &str, count: u64, rho: f64, software: usize) -> Vec<String> {
    let one = |index| {
        let path = folder.join(format!("{name}{index}.lft"));
        std::fs::write(&path, trace(rho, 100 * software as u64 + index, software).encode()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (0..count).map(one).collect()
}

fn lightfoot(words: &[&str]) -> Output {
    unwished(&mut Command::new(env!("CARGO_BIN_EXE_lightfoot"))).args(words).output().unwrap()
}

fn perturb(baseline: &[String], run: &[String], more: &[&str]) -> (i32, String, String) {
    let words = ["perturb", "--inner", "--baseline"].into_iter().chain(baseline.iter().map(String::as_str));
    let words = words.chain(["--run"]).chain(run.iter().map(String::as_str)).chain(more.iter().copied());
    let output = lightfoot(&words.collect::<Vec<_>>());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_disturbed_pair_is_said_and_ends_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let (baseline, run) = (write(folder.path(), "b", 5, 0.8, 0), write(folder.path(), "r", 5, 0.2, 1));
    let (status, out, _) = perturb(&baseline, &run, &[]);
    assert_eq!(status, 0, "without --fail-on the answer is only said");
    assert!(out.starts_with("disturbed: 5 baselines, 5 runs"), "{out}");
    assert!(out.contains("L1D-misses and L2-misses: disturbed: ρ 0.7"), "{out}");
    assert_eq!(perturb(&baseline, &run, &["--fail-on", "disturbed"]).0, 1);
    let map = folder.path().join("map.svg");
    let (status, json, _) =
        perturb(&baseline, &run, &["--format", "json", "--heat-map", map.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["verdict"], &json["schema"]), (0, &"disturbed".into(), &1.into()));
    assert!(std::fs::read_to_string(&map).unwrap().contains(">disturbed<"));
    let (_, csv, _) = perturb(&baseline, &run, &["--format", "csv"]);
    assert_eq!(csv.lines().count(), 4, "{csv}");
}

#[test]
fn undisturbed_and_cannot_tell() {
    let folder = tempfile::tempdir().unwrap();
    let (baseline, run) = (write(folder.path(), "b", 5, 0.8, 0), write(folder.path(), "r", 5, 0.8, 1));
    let (status, out, _) = perturb(&baseline, &run, &["--fail-on", "cannot-tell"]);
    assert!(status == 0 && out.starts_with("undisturbed"), "{out}");
    let (status, out, _) = perturb(&baseline[..1], &run[..1], &["--fail-on", "disturbed"]);
    assert!(status == 0 && out.starts_with("cannot tell"), "{out}");
    assert!(out.contains("runs beside this one baseline would do"), "{out}");
    assert_eq!(perturb(&baseline[..1], &run[..1], &["--fail-on", "cannot-tell"]).0, 1);
}

#[test]
fn a_cut_trace_is_used_up_to_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (baseline, run) = (write(folder.path(), "b", 5, 0.8, 0), write(folder.path(), "r", 5, 0.8, 1));
    let killed = Trace { end: None, ..trace(0.8, 100, 1) };
    let bytes = killed.encode();
    std::fs::write(&run[0], &bytes[..bytes.len() - 5]).unwrap();
    let (status, _, err) = perturb(&baseline, &run, &[]);
    assert!(status == 0 && err.contains("inside a frame") && err.contains("799 records are used"), "{err}");
}

#[test]
fn bad_input_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let baseline = write(folder.path(), "b", 1, 0.8, 0);
    let text = folder.path().join("text");
    std::fs::write(&text, "not a trace at all").unwrap();
    let missing = [folder.path().join("gone").to_str().unwrap().to_owned()];
    let refused = |run: &[String], part: &str| {
        let (status, _, err) = perturb(&baseline, run, &[]);
        assert!(status == 2 && err.lines().count() == 1 && err.contains(part), "{status} {err}");
    };
    refused(&[text.to_str().unwrap().to_owned()], "not a trace file");
    refused(&missing, "No such file");
    let mut other = trace(0.5, 1, 0);
    other.header.interval.length = 2000;
    let path = folder.path().join("other.lft");
    std::fs::write(&path, other.encode()).unwrap();
    refused(&[path.to_str().unwrap().to_owned()], "1000 nanoseconds, and 2000 nanoseconds");
    let said = lightfoot(&["perturb", "--baseline", &baseline[0], "--run", &baseline[0], "--alpha", "7"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("--alpha 7"));
}

#[test]
fn two_traces_are_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), "t", 2, 0.8, 0);
    let svg = folder.path().join("path.svg");
    let output = lightfoot(&["align", &files[0], &files[0], "--plot", svg.to_str().unwrap()]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("800 records with 800: distance 0.000"), "{out}");
    assert_eq!(out.matches("1.000").count(), 3, "{out}");
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<polyline"));
    let csv = lightfoot(&["align", &files[0], &files[1], "--format", "csv", "--band", "0.05"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(csv.starts_with("first,second\n0,0\n") && csv.ends_with("799,799\n"));
    let misspelt = lightfoot(&["align", &files[0], &files[1], "--metrics", "L1D-mises"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&misspelt.stderr).contains("L1D-misses"));
}

/// Traces of other programs, other builds, other statuses and parts of runs: said in every shape of
/// the answer, or refused.
#[test]
fn unlike_and_partial_traces_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let (baseline, run) = (write(folder.path(), "b", 5, 0.8, 0), write(folder.path(), "r", 5, 0.8, 1));
    let other = |name: &str, change: fn(&mut Trace)| {
        let mut other = trace(0.8, 1, 0);
        change(&mut other);
        let path = folder.path().join(name);
        std::fs::write(&path, other.encode()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let interrupted = other("interrupted", |t| t.end.as_mut().unwrap().interrupted = true);
    let died = other("died", |t| t.end.as_mut().unwrap().exit_status = Some(139));
    let foreign = other("foreign", |t| t.header.argv = vec!["./other".into(), "-k".into()]);
    let endless = other("endless", |t| t.end = None);
    let slower = other("slower", |t| t.header.interval.length = 2000);
    let said = |second: &str, words: &str| {
        for format in ["text", "json", "csv"] {
            let output = lightfoot(&["align", &baseline[0], second, "--format", format]);
            assert_eq!(output.status.code(), Some(0));
            let all = [output.stdout, output.stderr].concat();
            let all = String::from_utf8(all).unwrap();
            assert!(all.contains(words), "{format}: no \"{words}\" in {all:.600}");
        }
    };
    said(&foreign, "different programs: ./program, and ./other -k");
    said(&interrupted, "a run was interrupted");
    said(&endless, "cut");
    said(&died, "different exit statuses: 0, and 139");
    said(&slower, "different intervals: 1000 nanoseconds, and 2000 nanoseconds");
    let quiet = lightfoot(&["align", &baseline[0], &baseline[1]]);
    assert!(!String::from_utf8_lossy(&quiet.stdout).contains("note"), "nothing is wrong with these");
    // Perturb refuses other programs, and says the rest.
    let with = |first: &str| {
        let mut run = run.clone();
        run[0] = first.to_owned();
        run
    };
    let (status, _, err) = perturb(&baseline, &with(&foreign), &[]);
    assert!(status == 2 && err.contains("different programs cannot be compared"), "{err}");
    for (file, words) in [(&interrupted, "a run was interrupted"), (&died, "different exit statuses")] {
        for format in ["text", "json", "csv"] {
            let (status, out, err) = perturb(&baseline, &with(file), &["--format", format]);
            assert!(status == 0 && format!("{out}{err}").contains(words), "{format}: {out} {err}");
        }
    }
}
