//! Counters and the collector on real processes. What this machine cannot count is printed. Nothing
//! here asks for a speed: a machine may be as busy as it likes.

use lightfoot_measure::collector::{Collector, Ended, Pace};
use lightfoot_measure::counter::{find, Counters, Group, Period, Times, Whose, EVENTS};
use lightfoot_measure::trace::{check, Header, Interval, Metric, Source, Trace, Unit};
use lightfoot_measure::Error;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KERNEL: [&str; 4] = ["task-clock", "page-faults", "context-switches", "minor-faults"];

/// Kernel counters of the children of this thread, or nothing where they are not allowed.
fn group() -> Option<Group> {
    let events: Vec<_> = KERNEL.iter().map(|name| find(name).unwrap()).collect();
    match Group::open(&events, Whose::Children) {
        Ok(group) => Some(group),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn shell(script: &str) -> Child {
    Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap()
}

/// Runs a script and collects it every `ms`; `stop` is given its process.
fn collect(script: &str, ms: u64, group: &mut Group, mut stop: impl FnMut(u32) -> bool) -> (Trace, Ended) {
    let mut collector = Collector::new(vec![group], Pace::Time(Duration::from_millis(ms))).unwrap();
    let interval = Interval { length: ms * 1_000_000, unit: Unit::Nanoseconds };
    let header = Header::new(vec!["/bin/sh".into()], interval, collector.metrics().to_vec());
    let mut trace = Trace::new(header);
    let mut child = shell(script);
    let (ended, end) = collector
        .run(
            child.id(),
            || stop(child.id()),
            |record| {
                trace.records.push(record);
                Ok(())
            },
        )
        .unwrap();
    // It may have ended already.
    let _ = child.kill();
    child.wait().unwrap();
    trace.end = Some(end);
    assert_eq!(check(&trace), Vec::<String>::new());
    (trace, ended)
}

fn busy(loops: u32) -> String {
    format!("i=0; while [ $i -lt {loops} ]; do i=$((i+1)); done")
}

#[test]
fn deltas_add_up_to_the_totals_and_children_count() {
    let Some(mut counters) = group() else { return };
    // Fork and exec: the work is done by grandchildren.
    let work = busy(60_000);
    let (trace, ended) =
        collect(&format!("sh -c '{work}' & sh -c '{work}'; wait"), 5, &mut counters, |_| false);
    assert_eq!(ended, Ended::Program);
    let own = trace.position("task-clock").unwrap();
    let total = trace.sum(own).unwrap();
    assert_eq!(trace.end.as_ref().unwrap().totals[own], Some(total));
    assert!(trace.records.iter().any(|record| record.threads == 1));
    // Three programs fault more often than one, whatever else the machine does.
    let Some(mut alone) = group() else { return };
    let (one, _) = collect(&work, 5, &mut alone, |_| false);
    let faults = |trace: &Trace| trace.sum(trace.position("page-faults").unwrap()).unwrap();
    assert!(faults(&one) > 20, "{}", faults(&one));
    assert!(faults(&trace) > 2 * faults(&one), "{} with children, {} alone", faults(&trace), faults(&one));
}

#[test]
fn the_parent_itself_is_not_counted() {
    let Some(mut counters) = group() else { return };
    let mut totals = [0; 4];
    let sum: u64 = (0..3_000_000_u64).map(|i| i ^ i << 7).sum();
    assert_ne!(sum, 0);
    counters.read(&mut totals).unwrap();
    assert_eq!(totals, [0; 4]);
}

/// Sends a signal to a process.
fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

#[test]
fn a_stopped_program_shows_intervals_without_work() {
    let Some(mut counters) = group() else { return };
    let script = format!("{}; kill -STOP $$; {}", busy(20_000), busy(20_000));
    let mut ticks = 0;
    let (trace, ended) = collect(&script, 10, &mut counters, |pid| {
        ticks += u32::from(is_stopped(pid));
        if ticks == 8 {
            signal(pid, rustix::process::Signal::CONT);
        }
        false
    });
    assert_eq!(ended, Ended::Program);
    let clock = trace.series(trace.position("task-clock").unwrap());
    let idle = clock.iter().filter(|&&ns| ns == 0.0).count();
    assert!(idle >= 6, "{clock:?}");
}

#[test]
fn the_user_ends_it() {
    let Some(mut counters) = group() else { return };
    let mut ticks = 0;
    let (trace, ended) = collect("exec sleep 600", 5, &mut counters, |_| {
        ticks += 1;
        ticks > 3
    });
    assert_eq!(ended, Ended::Stopped);
    assert!(trace.end.unwrap().interrupted);
    assert_eq!(trace.records.len(), 4);
}

/// Threads of the kernel that share what they inherit may exchange it; the next child must count
/// all the same.
#[test]
fn each_child_counts() {
    for round in 0..40 {
        let Some(mut counters) = group() else { return };
        let mut before = [0; 4];
        for child in 0..2 {
            shell("exit 0").wait().unwrap();
            let mut totals = [0; 4];
            counters.read(&mut totals).unwrap();
            assert!(
                totals[1] > before[1] + 10,
                "child {child} of round {round}: {before:?}, then {totals:?}"
            );
            before = totals;
        }
    }
}

/// Copies of a group leave it one by one when their process or thread ends; a read meanwhile
/// must lose nothing and count nothing twice.
#[test]
fn reading_while_copies_leave_loses_and_repeats_nothing() {
    let Some(mut counters) = group() else { return };
    let forks = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); (:) & (:) & (:); wait; done";
    let mut child = shell(&format!("({forks}) & ({forks}) & ({forks}) & wait"));
    let (mut last, mut totals) = ([0; 4], [0; 4]);
    while child.try_wait().unwrap().is_none() {
        counters.read(&mut totals).unwrap();
        assert!(totals.iter().zip(&last).all(|(now, last)| now >= last), "{last:?}, then {totals:?}");
        last = totals;
    }
    counters.read(&mut totals).unwrap();
    assert!(totals[1] > 3 * 450, "{totals:?}");
}

/// Counters that take longer to read than an interval, and fail once.
struct Slow {
    metrics: Vec<Metric>,
    reads: u64,
}

impl Counters for Slow {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        self.reads += 1;
        std::thread::sleep(Duration::from_millis(12));
        totals[0] = self.reads * 10;
        match self.reads {
            3 => Err(Error::Foreign),
            _ => Ok(Times::default()),
        }
    }
}

#[test]
fn a_late_collector_says_which_ticks_it_missed_and_what_it_lost() {
    let metrics = vec![Metric::new("slow", Source::Software, "test")];
    let mut slow = Slow { metrics, reads: 0 };
    let mut collector = Collector::new(vec![&mut slow], Pace::Time(Duration::from_millis(5))).unwrap();
    let mut records = Vec::new();
    let mut child = shell("exec sleep 600");
    let take = |record| {
        records.push(record);
        Ok(())
    };
    let mut ticks = 0;
    let stop = || {
        ticks += 1;
        ticks > 9
    };
    let (_, end) = collector.run(child.id(), stop, take).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let missed: u32 = records.iter().map(|record| record.missed_ticks).sum();
    assert!(missed >= records.len() as u32 / 2, "{missed} of {}", records.len());
    // The second interval's read failed, so neither it nor the next has a number.
    let deltas: Vec<Option<u64>> = records.iter().map(|record| record.values[0].delta).take(4).collect();
    assert_eq!(deltas, [Some(10), None, None, Some(10)]);
    assert!(end.totals[0].is_some());
}

/// No processor of ours is needed: the kernel's own events overflow in the same way, here every two
/// milliseconds of the program on a CPU.
#[test]
fn a_counter_may_set_the_pace() {
    let events: Vec<_> = ["task-clock", "page-faults"].map(|name| find(name).unwrap()).into();
    let length = 2_000_000;
    let mut group = match Group::open_paced(&events, Whose::Children, Period::Every(length)) {
        Ok(group) => group,
        Err(error) => return println!("skipped: {error}"),
    };
    let pace = Pace::Counted(group.alarm().unwrap(), length);
    let mut collector = Collector::new(vec![&mut group], pace).unwrap();
    let mut records = Vec::new();
    // Sleeping makes no record, and a second process counts with the first.
    let mut child = shell(&format!("{}; sleep 0.1; sh -c '{}'", busy(60_000), busy(60_000)));
    let take = |record| {
        records.push(record);
        Ok(())
    };
    let (ended, end) = collector.run(child.id(), || false, take).unwrap();
    child.wait().unwrap();
    drop(collector);
    assert_eq!(ended, Ended::Program);
    let (last, whole) = records.split_last().unwrap();
    assert!(whole.len() > 3, "{records:?}");
    for record in &records {
        assert_eq!(record.values[0].delta, Some(record.dt), "{record:?}");
    }
    // Edges lie on a grid, so a record that was late makes the next one short.
    let mut edge = 0;
    for record in whole {
        edge += length * u64::from(record.missed_ticks + 1);
        let end = record.start + record.dt;
        assert!((edge..edge + length).contains(&end), "{record:?} for {edge}");
    }
    assert_eq!(end.totals[0], Some(last.start + last.dt));
    // The thread takes signals again, and none is left that would end this process.
    shell("sleep 0.01").wait().unwrap();
}

/// Ends when it is told to, so that its threads are there when the collector looks.
const THREADS: &str = "exec python3 -c 'import threading,signal
signal.pthread_sigmask(signal.SIG_BLOCK,[signal.SIGUSR1])
b=threading.Barrier(64)
def f():
  b.wait(); b.wait(); sum(range(20000))
t=[threading.Thread(target=f) for _ in range(63)]
[x.start() for x in t]; b.wait(); signal.sigwait([signal.SIGUSR1]); b.wait(); [x.join() for x in t]'";

#[test]
fn sixty_four_threads_are_counted() {
    let Some(mut counters) = group() else { return };
    if !Command::new("python3").arg("-c").arg("").status().is_ok_and(|status| status.success()) {
        return println!("skipped: there is no python3");
    }
    let mut ticks = 0;
    let (trace, _) = collect(THREADS, 5, &mut counters, |pid| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        ticks += u32::from(threads == 64);
        if ticks == 3 {
            signal(pid, rustix::process::Signal::USR1);
        }
        false
    });
    let most = trace.records.iter().map(|record| record.threads).max().unwrap();
    assert_eq!(most, 64);
    // Every record has its values, and each thread waited at least once.
    assert!(trace.sum(trace.position("context-switches").unwrap()).unwrap() >= 63);
    assert!(trace.sum(trace.position("task-clock").unwrap()).unwrap() > 0);
}

#[test]
fn hardware_events_count_or_are_refused_with_the_remedy() {
    if group().is_none() {
        return;
    }
    for event in EVENTS.iter().filter(|event| event.source == Source::Pmu) {
        match Group::open(&[find("task-clock").unwrap(), event], Whose::Children) {
            Ok(_) => println!("{} can be counted here", event.name),
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(event.name), "{said}");
                assert!(said.contains("--engine simulated"), "{said}");
            }
        }
    }
}

#[test]
fn a_process_that_does_not_exist_is_an_error() {
    let error = Group::open(&[find("task-clock").unwrap()], Whose::Process(0x3fff_fff0)).unwrap_err();
    assert!(error.to_string().contains("cannot"), "{error}");
    assert!(Group::open(&[], Whose::Children).is_err());
}
