//! Samples by the kernel against counters that are read: the same totals, and records that add up
//! to them. What this kernel does not sample is printed.

use lightfoot_measure::collector::{Ended, Sampling};
use lightfoot_measure::counter::{find, Counters, Event, Group, Samples, Whose};
use lightfoot_measure::trace::{check, Header, Interval, Trace, Unit};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(1);

fn events() -> Vec<&'static Event> {
    ["task-clock", "page-faults", "context-switches"].map(|name| find(name).unwrap()).into()
}

/// Samples of the children of this thread, or nothing where the kernel does not take any.
fn samples() -> Option<Samples> {
    match Samples::open(&events(), Whose::Children, INTERVAL.as_nanos() as u64) {
        Ok(samples) => Some(samples),
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("Linux 6.13") || said.contains("perf_event"), "{said}");
            println!("skipped: {said}");
            None
        }
    }
}

fn shell(script: &str) -> Child {
    Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap()
}

fn busy(loops: u32) -> String {
    format!("i=0; while [ $i -lt {loops} ]; do i=$((i+1)); done")
}

fn collect(script: &str, samples: &mut Samples, mut stop: impl FnMut() -> bool) -> (Trace, Ended) {
    let mut sampling = Sampling::new(samples, INTERVAL);
    let interval = Interval { length: INTERVAL.as_nanos() as u64, unit: Unit::Nanoseconds };
    let header = Header::new(vec!["/bin/sh".into()], interval, sampling.metrics().to_vec());
    let mut trace = Trace::new(header);
    let mut child = shell(script);
    let (ended, end) = sampling
        .run(child.id(), &mut stop, |record| {
            trace.records.push(record);
            Ok(())
        })
        .unwrap();
    // It may have ended already.
    let _ = child.kill();
    child.wait().unwrap();
    trace.end = Some(end);
    assert_eq!(check(&trace), Vec::<String>::new());
    (trace, ended)
}

/// The paces are those of the program's own clock, so a busy machine makes the run longer and not
/// the trace shorter.
#[test]
fn a_busy_program_makes_a_record_each_interval_and_all_add_up() {
    let Some(mut samples) = samples() else { return };
    let (trace, ended) = collect(&busy(100_000), &mut samples, || false);
    assert_eq!(ended, Ended::Program);
    let end = trace.end.as_ref().unwrap();
    for metric in 0..trace.header.metrics.len() {
        assert_eq!(trace.sum(metric), end.totals[metric], "{}", trace.header.metrics[metric].name);
    }
    let clock_ns = end.totals[0].unwrap();
    let (last, whole) = trace.records.split_last().unwrap();
    assert!(whole.len() > 5 && last.values[0].delta.unwrap() < clock_ns / 2, "{clock_ns} ns, {last:?}");
    for record in whole {
        assert!(record.dt > 0 && record.values[0].delta.unwrap() > 0, "{record:?}");
    }
    let edges: u64 = whole.iter().map(|record| u64::from(record.missed_ticks) + 1).sum();
    let end_ns = last.start;
    assert!(edges * 1_000_000 <= end_ns && end_ns < (edges + 1) * 1_000_000, "{edges} edges in {end_ns} ns");
}

#[test]
fn sleep_is_one_long_record() {
    let Some(mut samples) = samples() else { return };
    let script = format!("{}; sleep 0.2; {}", busy(20_000), busy(20_000));
    let (trace, _) = collect(&script, &mut samples, || false);
    let long = trace.records.iter().max_by_key(|record| record.dt).unwrap();
    assert!(long.dt > 190_000_000 && long.missed_ticks > 150, "{long:?}");
}

#[test]
fn samples_and_reads_have_the_same_totals() {
    let Some(mut samples) = samples() else { return };
    let mut group = Group::open(&events(), Whose::Children).unwrap();
    // Processes that live for less than an interval count too, at the end.
    let script = format!(
        "({} &) ; i=0; while [ $i -lt 40 ]; do (:) & i=$((i+1)); done; wait; {}",
        busy(9000),
        busy(9000)
    );
    let (trace, _) = collect(&script, &mut samples, || false);
    let (mut read, mut sampled) = ([0; 3], [0; 3]);
    // One of them is nobody's child, and may still run.
    loop {
        group.read(&mut read).unwrap();
        samples.read(&mut sampled).unwrap();
        let mut again = [0; 3];
        group.read(&mut again).unwrap();
        if again == read {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(read[1..], sampled[1..]);
    assert!(read[0].abs_diff(sampled[0]) < read[0] / 20, "{read:?} and {sampled:?}");
    assert!(trace.sum(1).unwrap() <= read[1]);
}

#[test]
fn the_user_ends_it() {
    let Some(mut samples) = samples() else { return };
    let mut looks = 0;
    let (trace, ended) = collect("while :; do :; done", &mut samples, || {
        looks += 1;
        looks > 2
    });
    assert_eq!(ended, Ended::Stopped);
    assert!(trace.end.unwrap().interrupted);
}
