//! Tools: questions about a running program, written as ordinary Rust.
//!
//! A tool has two parts, as in ATOM. **Instrumentation code** looks at procedures, blocks and
//! instructions and makes requests. **Analysis code** receives the results. Instrumentation code is
//! a closure ([`Tool::instrumenter`]) that runs when a block is translated, on the thread that
//! controls the program. Analysis code is the [`Tool`] itself, on another thread, while the program
//! runs on. The two are separate values because they run at the same time; instrumentation code
//! passes information on by the tags and counter names of its requests.
//!
//! There are two kinds of requests. [Counters](Requests::count) are free: they follow from how
//! often blocks ran. [Events](Requests::before) carry an address, a register or a constant through
//! the program's ring and arrive in [`Tool::batch`] in program order of their thread. A tool can
//! also get a whole [stream](Tool::stream) of references.
//!
//! The program's addresses, stack and output are those of an uninstrumented run. **Leaves out**
//! symbol tables (crate `lightfoot-symbol` reads them, and its `ProgramNames` can be passed to
//! [`run_named`] as [`Procedures`]), changing what the program does, and stopping it. Source:
//! Srivastava and Eustace 1994.
//!
//! This tool counts loads from addresses that are no multiple of their size:
//!
//! ```
//! use lightfoot_instrument::tool::{run_tool, Batch, Counter, Instrumenter, Report, Summary, Tool, Value};
//! use lightfoot_instrument::{Command, Options};
//!
//! #[derive(Default)]
//! struct Unaligned(u64);
//!
//! const LOADS: Counter = Counter { what: 0, of: 0 };
//!
//! impl Tool for Unaligned {
//!     fn instrumenter(&mut self) -> Instrumenter {
//!         Box::new(|block, ask| {
//!             for i in block.instructions().filter(|i| i.is_load()) {
//!                 ask.count(&i, LOADS);
//!                 if let Some(touch) = i.touches().next() {
//!                     ask.before(&i, Value::Address(0), touch.size_bytes);
//!                 }
//!             }
//!         })
//!     }
//!     fn batch(&mut self, batch: &Batch<'_>) {
//!         self.0 += batch.events().filter(|e| e.value % u64::from(e.tag) != 0).count() as u64;
//!     }
//!     fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report> {
//!         Ok(Report::totals([("loads", summary.counter(LOADS)), ("unaligned", self.0)]))
//!     }
//! }
//!
//! let command = Command { program: "/bin/true".into(), arguments: vec![] };
//! let (_, report) = run_tool(&command, &Options::default(), &mut Unaligned::default())?;
//! assert!(report.total("loads") > report.total("unaligned"));
//! # Ok::<(), lightfoot_instrument::Error>(())
//! ```

mod analysis;
mod batch;
mod interface;
mod report;

pub use crate::code::event_request::When;
pub use crate::code::opcode_name::opcode_name;
pub use crate::instrumentation::instrumenter::{Instrumenter, Program, Request, Sums};
pub use crate::instrumentation::request::{Counter, Requests, Value};
pub use crate::instrumentation::view::{
    BlockView, InstructionView, Procedure, Procedures, References, Register, Registers, SourceLine, Touch,
    Transfer, Unnamed,
};
pub use batch::{Batch, Divided, Event};
pub use interface::{Summary, Tool};
pub use report::{Report, Row};

use crate::error::{Error, ErrorKind};
use crate::instrumentation::instrumenter::ToolInstrumenter;
use crate::mark::SharedMarker;
use crate::outcome::{Command, Observer, Options, Outcome};
use crate::probe::{self, Probes, SharedProbes};
use crate::run::{self, Additions};
use analysis::Analysis;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;

/// Runs `command` under `tool` until it ends. The tool gets no names of functions; [`run_named`]
/// provides them.
///
/// # Errors
/// As [`crate::run()`]; if the tool makes a request that cannot be fulfilled ([`ErrorKind::Tool`]);
/// if its analysis fails.
pub fn run_tool(
    command: &Command,
    options: &Options,
    tool: &mut dyn Tool,
) -> Result<(Outcome, Report), Error> {
    run_named(command, options, Box::new(Unnamed), tool)
}

/// Runs `command` under `tool` until it ends, with the names of functions and source lines that
/// `procedures` knows.
///
/// # Errors
/// As [`run_tool`].
pub fn run_named(
    command: &Command,
    options: &Options,
    procedures: Box<dyn Procedures>,
    tool: &mut dyn Tool,
) -> Result<(Outcome, Report), Error> {
    run_with(command, options, procedures, tool, None)
}

/// Runs `command` with instrumentation code in all its processes, which may live at the same time
/// if [`Options::children`] are followed. `observer` gets the events as the program's code wrote
/// them, with the stream of `options`, and is told of modules, sites and forks. A marker divides
/// what is counted. Counters cannot be asked for.
///
/// # Errors
/// As [`crate::run()`]; if a request cannot be fulfilled ([`ErrorKind::Tool`]).
pub fn run_observed(
    command: &Command,
    options: &Options,
    (instrumenter, sums): (Instrumenter, Sums),
    observer: &mut dyn Observer,
    marker: Option<SharedMarker>,
) -> Result<Outcome, Error> {
    let instrumenter =
        Rc::new(RefCell::new(ToolInstrumenter::new(instrumenter, Box::new(Unnamed), None, sums)));
    let tool = Some(instrumenter.clone());
    let additions = Additions { instrumenter: tool, probes: None, marker };
    let outcome = run::run_instrumented(command, options, observer, additions);
    unfulfilled(&instrumenter.borrow())?;
    outcome
}

/// Fails if a request could not be fulfilled.
fn unfulfilled(instrumenter: &ToolInstrumenter) -> Result<(), Error> {
    let why = |why| Error::new(ErrorKind::Tool, format!("the tool's request cannot be fulfilled: {why}"));
    instrumenter.fault.as_ref().map_or(Ok(()), |fault| Err(why(fault)))
}

/// The results of probes that ran under the engine.
#[derive(Debug)]
pub struct Probed {
    /// The counters; children that the program released count into them too.
    pub counters: probe::ProbeCounters,
    /// The state of each probe.
    pub states: Vec<probe::ProbeState>,
}

/// Runs `command` under `tool` with probes in it. The patched code runs under the engine, so the
/// tool also sees the instructions and references of the probes.
///
/// # Errors
/// As [`run_tool`]; when there is no room for probes.
pub fn run_probed(
    command: &Command,
    options: &Options,
    tool: &mut dyn Tool,
    plan: probe::ProbePlan,
) -> Result<(Outcome, Probed), Error> {
    let probes = Rc::new(RefCell::new(Probes::locked(plan)?));
    let (outcome, _) = run_with(command, options, Box::new(Unnamed), tool, Some(probes.clone()))?;
    let probes = probes.borrow();
    Ok((outcome, Probed { counters: probes.counters(), states: probes.states().to_vec() }))
}

fn run_with(
    command: &Command,
    options: &Options,
    procedures: Box<dyn Procedures>,
    tool: &mut dyn Tool,
    probes: Option<SharedProbes>,
) -> Result<(Outcome, Report), Error> {
    let (give, updates) = mpsc::channel();
    let instrumenter = Rc::new(RefCell::new(ToolInstrumenter::new(
        tool.instrumenter(),
        procedures,
        Some(give),
        tool.sums(),
    )));
    let options = Options { stream: tool.stream(), ..options.clone() };
    let mut analysis = Analysis::new(tool, updates);
    let additions = Additions { instrumenter: Some(instrumenter.clone()), probes, marker: None };
    let outcome = run::run_instrumented(command, &options, &mut analysis, additions);
    analysis.finish();
    let instrumenter = instrumenter.borrow();
    unfulfilled(&instrumenter)?;
    let outcome = outcome?;
    let counters = instrumenter.counters.totals(&outcome.profile);
    let report = tool.finish(&Summary { outcome: &outcome, counters });
    let report = report.map_err(|error| Error::new(ErrorKind::Tool, format!("the tool failed: {error}")))?;
    Ok((outcome, report))
}
