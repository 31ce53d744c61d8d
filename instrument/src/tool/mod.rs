//! Tools: what is to be known of a running program, as ordinary Rust.
//!
//! ATOM's split stands: **instrumentation code** looks at procedures, blocks and instructions and says what it wants to know; **analysis code**
//! receives it. Here the first is a closure ([`Tool::instrumenter`]) that runs when a block is translated, on the thread that controls the program, and the
//! second is the [`Tool`] itself, on another thread, while the program runs on. They are two values because they run at the same time; what
//! one must tell the other goes into the tags and counter names that requests carry.
//!
//! Two kinds of request. [Counters](Requests::count) are free: they follow from how often blocks ran. [Events](Requests::before) carry an
//! address, a register or a constant through the program's ring and arrive in [`Tool::batch`] in program order of their thread.
//! A tool may also take a whole [stream](Tool::stream) of references beside its events.
//!
//! The program's addresses, stack and output are those of an uninstrumented run. **Leaves out** symbol tables ([`Procedures`] is the hook:
//! this crate stands below the one that reads them, and most tools need addresses only), changing what the program does, and stopping it.
//! Source: Srivastava and Eustace 1994.
//!
//! A tool that counts loads from addresses that are no multiple of their size, in each module:
//!
//! ```
//! use instrument::tool::{run_tool, Batch, Counter, Instrumenter, Report, Summary, Tool, Value};
//! use instrument::{Command, Options};
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
//! # Ok::<(), instrument::Error>(())
//! ```

mod analysis;
mod asking;
mod report;
mod request;
mod view;

pub use analysis::{Batch, Event, Request};
pub use report::{Report, Row};
pub use request::{Counter, Requests, Value, When};
pub use view::{
    opcode_name, BlockView, InstructionView, Procedure, Procedures, References, Register, Registers, Touch,
    Transfer, Unnamed,
};

pub(crate) use asking::SharedAsking;
pub(crate) use request::{Asked, Events, Source};

use crate::error::{Error, ErrorKind};
use crate::probe::{self, Probes, SharedProbes};
use crate::run::{self, Command, Options, Outcome};
use analysis::Analysis;
use asking::Asking;
use event::Stream;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;

/// Instrumentation code: is shown each block once per translation, before it runs for the first time.
pub type Instrumenter = Box<dyn FnMut(&BlockView<'_>, &mut Requests)>;

/// A program, or the next one that it executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// 0 for the first, one more after each exec.
    pub image: u32,
    /// The executable.
    pub path: PathBuf,
}

/// A tool, and its analysis code.
pub trait Tool: Send {
    /// References that it wants recorded beside its events. The stream of [`Options`] does not count for tools.
    fn stream(&self) -> Stream {
        Stream::Counts
    }

    /// The instrumentation code; called once, before the program starts.
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|_, _| {})
    }

    /// A program starts; called before any of its events, and again for every program that it executes.
    fn start(&mut self, _program: &Program) {}

    /// What happened, in program order of one thread. A slow analysis slows the program down, nothing is lost.
    fn batch(&mut self, _batch: &Batch<'_>) {}

    /// The program has ended.
    ///
    /// # Errors
    /// What the tool could not do, such as writing a file; the run then fails.
    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report>;
}

/// A run that is over.
pub struct Summary<'a> {
    outcome: &'a Outcome,
    counters: Vec<(Counter, u64)>,
}

impl Summary<'_> {
    /// How it went, and the profile.
    pub fn outcome(&self) -> &Outcome {
        self.outcome
    }

    /// What a counter came to; 0 where it was never asked for.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.binary_search_by_key(&counter, |c| c.0).map_or(0, |n| self.counters[n].1)
    }

    /// All counters, by name.
    pub fn counters(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        self.counters.iter().copied()
    }
}

/// Runs `command` under `tool` until it ends. Functions have no names: [`run_named`] gives them some.
///
/// # Errors
/// As [`crate::run`]; when the tool asks for what cannot be had ([`ErrorKind::Tool`]); when its analysis fails.
pub fn run_tool(
    command: &Command,
    options: &Options,
    tool: &mut dyn Tool,
) -> Result<(Outcome, Report), Error> {
    run_named(command, options, Box::new(Unnamed), tool)
}

/// [`run_tool`] with the names of functions.
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

/// What probes came to in a run under the engine.
#[derive(Debug)]
pub struct Probed {
    /// The counters; children that the program released count into them too.
    pub counters: probe::Counters,
    /// What became of each.
    pub states: Vec<probe::State>,
}

/// [`run_tool`] of the program with probes in it: the patched code runs under the engine, so the tool sees what probes execute and touch.
///
/// # Errors
/// As [`run_tool`]; when there is no room for probes.
pub fn run_probed(
    command: &Command,
    options: &Options,
    tool: &mut dyn Tool,
    plan: probe::Plan,
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
    let (give, news) = mpsc::channel();
    let asking = Rc::new(RefCell::new(Asking::new(tool.instrumenter(), procedures, give)));
    let options = Options { stream: tool.stream(), ..options.clone() };
    let mut analysis = Analysis::new(tool, news);
    let outcome = run::run_asking(command, &options, &mut analysis, Some(asking.clone()), probes);
    analysis.finish();
    let asking = asking.borrow();
    if let Some(why) = &asking.fault {
        return Err(Error::new(ErrorKind::Tool, format!("the tool cannot have what it asks for: {why}")));
    }
    let outcome = outcome?;
    let counters = asking.counters.totals(&outcome.profile);
    let report = tool.finish(&Summary { outcome: &outcome, counters });
    let report = report.map_err(|e| Error::new(ErrorKind::Tool, format!("the tool failed: {e}")))?;
    Ok((outcome, report))
}
