//! The request for a trace: the program, the metrics, and the engine that counts them.

use super::metric::Spec;
use super::noise::Noise;
use crate::cli::{TraceCollector, TraceEngine};
use crate::run::hierarchy::Hierarchy;
use instrument::{Aslr, Command, Running};
use measure::trace::{Interval, Layout};
use std::path::PathBuf;

/// The way in which the program runs and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Natively; the kernel counts.
    Native,
    /// Natively; chosen functions are patched to count their calls.
    Probe,
    /// Natively; the kernel counts calls of chosen functions.
    Uprobe,
    /// Under the engine, which counts what it executes.
    Jit,
    /// Under the engine, with a simulated machine.
    Simulated,
}

impl Engine {
    /// The name as a value of the option.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Probe => "probe",
            Engine::Uprobe => "uprobe",
            Engine::Jit => "jit",
            Engine::Simulated => "simulated",
        }
    }
}

/// What reads the counters of a native run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// This process.
    Host,
    /// The kernel, in the program's threads; this process makes records from it.
    Kernel,
    /// A signal handler in the program, as in the paper.
    Signal,
}

/// What records tell apart, besides metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Nothing.
    Metric,
    /// Also the instructions of each function.
    Function,
}

impl From<TraceCollector> for Collector {
    fn from(collector: TraceCollector) -> Collector {
        match collector {
            TraceCollector::Host => Collector::Host,
            TraceCollector::Kernel => Collector::Kernel,
            TraceCollector::Signal => Collector::Signal,
        }
    }
}

impl From<TraceEngine> for Engine {
    fn from(engine: TraceEngine) -> Engine {
        match engine {
            TraceEngine::Native => Engine::Native,
            TraceEngine::Probe => Engine::Probe,
            TraceEngine::Uprobe => Engine::Uprobe,
            TraceEngine::Jit => Engine::Jit,
            TraceEngine::Simulated => Engine::Simulated,
        }
    }
}

/// A request for a trace.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program.
    pub command: Command,
    /// The process that is traced instead of starting the program, and how long.
    pub running: Option<Running>,
    /// The interval of records.
    pub interval: Interval,
    /// The engine.
    pub engine: Engine,
    /// What records tell apart.
    pub by: By,
    /// Hardware metrics by name; empty: all that the engine has.
    pub hardware: Vec<String>,
    /// Software metrics that code in the program counts, at the program's cost.
    pub software: Vec<Spec>,
    /// Software metrics that a simulation counts without cost for the program.
    pub uncharged: Vec<Spec>,
    /// The placement of the counters of added code.
    pub layout: Layout,
    /// The simulated machine.
    pub machine: Option<Hierarchy>,
    /// Simulated noise of an operating system.
    pub noise: Option<Noise>,
    /// Whether addresses are randomised.
    pub aslr: Aslr,
    /// The processor that a native run is bound to.
    pub pin: Option<u32>,
    /// What reads the counters of a native run.
    pub collector: Collector,
    /// The partial file for records while the program runs; the caller removes it.
    pub partial: Option<PathBuf>,
}

impl Request {
    /// A simulated run that records `hardware` metrics and nothing else.
    pub fn simulated(command: Command, interval: Interval, machine: Hierarchy) -> Request {
        Request {
            command,
            running: None,
            interval,
            engine: Engine::Simulated,
            by: By::Metric,
            hardware: Vec::new(),
            software: Vec::new(),
            uncharged: Vec::new(),
            layout: Layout::Packed,
            machine: Some(machine),
            noise: None,
            aslr: Aslr::Off,
            pin: None,
            collector: Collector::Host,
            partial: None,
        }
    }
}
