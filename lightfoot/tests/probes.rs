//! Probes against the engine's own counts, on programs that people use.
//!
//! A file of its own, because its environment is: CPython's hashes, and with them its calls, repeat
//! only when told to.

mod bench;

use bench::Bench;
use instrument::Command;
use lightfoot::run::hierarchy::Hierarchy;
use lightfoot::trace::metric::Spec;
use lightfoot::trace::{run, Engine, Request};
use machine::Machine;
use measure::trace::{check, Interval, Layout, Source, Unit};

#[test]
fn probes_and_the_engine_count_the_same_calls() {
    std::env::set_var("PYTHONHASHSEED", "0");
    let bench = Bench::new();
    let machine = Hierarchy::of(Machine::preset("cachegrind").unwrap()).unwrap();
    let instructions = Interval { length: 1_000_000, unit: Unit::Instructions };
    let text =
        bench.file("text", b"to be or not to be, that is the question\n".repeat(2000).as_slice(), 0o644);
    let sql = "create table t(a); insert into t values (1),(2),(3); select sum(a) from t where a > 1;";
    let programs: [(&str, &str, Vec<std::ffi::OsString>); 3] = [
        ("bzip2", "fn:libbz2!*,fn:libc!malloc,fn:libc!free", vec!["-k".into(), text.into()]),
        ("sqlite3", "fn:libsqlite3!sqlite3_*,fn:libc!malloc", vec![":memory:".into(), sql.into()]),
        (
            "/usr/bin/python3",
            "fn:Py*",
            vec!["-S".into(), "-c".into(), "sum(len(str(i)) for i in range(2000))".into()],
        ),
    ];
    for (program, metrics, arguments) in programs {
        let command = Command { program: program.into(), arguments };
        if instrument::locate(&command.program).is_err() {
            eprintln!("skipped: there is no {program} here");
            continue;
        }
        let _ = std::fs::remove_file(bench.join("text.bz2"));
        let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
        let software = Spec::list(metrics).unwrap();
        let base = Request {
            command,
            software,
            layout: Layout::Line,
            ..Request::simulated(
                Command { program: "".into(), arguments: Vec::new() },
                instructions,
                machine.clone(),
            )
        };
        let probe = match run(&Request { engine: Engine::Probe, interval, ..base.clone() }) {
            Ok(trace) => trace,
            // The kernel's counters go with it.
            Err(error) if error.to_string().contains("perf_event") => return eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(check(&probe), Vec::<String>::new());
        let _ = std::fs::remove_file(bench.join("text.bz2"));
        let engine = run(&Request { engine: Engine::Jit, ..base }).unwrap();
        let mut compared = 0;
        for metric in probe.header.metrics.iter().filter(|metric| metric.source == Source::Software) {
            let number = probe.position(&metric.name).unwrap();
            if let Some(counted) = probe.end.as_ref().unwrap().totals[number] {
                assert_eq!(
                    counted,
                    engine.sum(engine.position(&metric.name).unwrap()).unwrap(),
                    "{program} {}",
                    metric.name
                );
                compared += counted;
            }
        }
        assert!(compared > 50, "{program}: {compared}");
    }
}
