//! What the tests of tools share: targets, runs, and a tool that keeps all events.

use event::{Record, Sites, Stream};
use lightfoot_instrument::tool::{
    run_tool, Batch, BlockView, Event, Instrumenter, Program, Register, Report, Requests, Summary, Sums,
    Tool, Transfer, Value, When,
};
use lightfoot_instrument::{Command, Options, Outcome};
use std::path::Path;

/// Compiles a target; `name` is its source file.
pub(crate) fn build(name: &str) -> Command {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name.replace('.', "_"));
    let mut cc = std::process::Command::new("cc");
    if name.ends_with(".s") {
        cc.args(["-nostdlib", "-static", "-Wl,--section-start=.data=0x600000"]);
    } else {
        cc.args(["-O1", "-static"]);
    }
    cc.args(["-Wl,-z,noexecstack", "-I"]).arg(&sources).arg("-o").arg(&program).arg(sources.join(name));
    let output = cc.output().expect("a C compiler named cc");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Command { program: program.into(), arguments: Vec::new() }
}

/// Whether a program lies at the same addresses in every run; said where the system refuses that,
/// as container filters do.
pub(crate) fn fixed_addresses() -> bool {
    let mut setarch = std::process::Command::new("setarch");
    let refused = setarch.args(["x86_64", "-R", "true"]).status().is_ok_and(|ran| !ran.success());
    if refused {
        eprintln!("skipped: this system refuses personality(ADDR_NO_RANDOMIZE)");
    }
    !refused
}

pub(crate) fn true_command() -> Command {
    Command { program: "/bin/true".into(), arguments: Vec::new() }
}

pub(crate) fn run(command: &Command, tool: &mut dyn Tool) -> (Outcome, Report) {
    run_tool(command, &Options::default(), tool).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Instrumentation from a function, analysis that keeps all events.
pub(crate) struct Probe<F> {
    pub(crate) instrument: F,
    pub(crate) events: Vec<Event>,
    pub(crate) places: Vec<(u64, When)>,
    pub(crate) started: Vec<Program>,
    pub(crate) stream: Stream,
    pub(crate) sums: Sums,
    pub(crate) records: Vec<Record>,
    pub(crate) sites: Sites,
}

impl<F: Fn(&BlockView<'_>, &mut Requests) + Clone + Send + 'static> Probe<F> {
    pub(crate) fn new(instrument: F) -> Probe<F> {
        Probe {
            instrument,
            events: Vec::new(),
            places: Vec::new(),
            started: Vec::new(),
            stream: Stream::Counts,
            sums: Sums::None,
            records: Vec::new(),
            sites: Sites::default(),
        }
    }
}

impl<F: Fn(&BlockView<'_>, &mut Requests) + Clone + Send + 'static> Tool for Probe<F> {
    fn stream(&self) -> Stream {
        self.stream
    }

    fn sums(&self) -> Sums {
        self.sums
    }

    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(self.instrument.clone())
    }

    fn start(&mut self, program: &Program) {
        self.started.push(program.clone());
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        assert!(!self.started.is_empty(), "a program starts before its events");
        for event in batch.events() {
            let request = batch.request(&event).expect("every event was asked for");
            self.places.push((request.ip, request.when));
            self.events.push(event);
        }
        if self.stream != Stream::Counts {
            self.records.extend(batch.records().map(Option::unwrap));
            self.sites.clone_from(batch.sites());
        }
    }

    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report> {
        let totals = summary.counters().map(|(c, n)| (format!("{}/{:#x}", c.what, c.of), n)).collect();
        Ok(Report { totals, ..Report::default() })
    }
}

/// Everything at every instruction.
pub(crate) fn everything(block: &BlockView<'_>, ask: &mut Requests) {
    ask.at_start(Value::Constant(block.address()), 1000);
    for i in block.instructions() {
        let after = i.transfer() == Transfer::None;
        for r in Register::ALL {
            ask.before(&i, Value::Register(r), r as u32);
            if after {
                ask.after(&i, Value::Register(r), r as u32);
            }
        }
        for n in 0..i.touches().len() {
            ask.before(&i, Value::Address(n), 100);
            if after {
                ask.after(&i, Value::Address(n), 100);
            }
        }
    }
}
