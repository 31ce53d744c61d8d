//! What a trace is asked for: the program, the metrics, and who counts them.

use super::metric::Spec;
use super::noise::Noise;
use crate::cli::{TraceCollector, TraceEngine};
use crate::run::hierarchy::Hierarchy;
use instrument::{Aslr, Command};
use measure::trace::{Interval, Layout};
use std::path::PathBuf;

/// Who runs the program and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Nobody: the program runs by itself.
    Native,
    /// Nobody; chosen functions count their calls.
    Probe,
    /// Nobody; the kernel counts calls of chosen functions.
    Uprobe,
    /// The engine, with a count of what it executes.
    Jit,
    /// The engine, with a simulated machine.
    Simulated,
}

impl Engine {
    /// As the option says it.
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

/// Who reads the counters of a native run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// This process.
    Host,
    /// The kernel, in the program's threads; this process makes records of it.
    Kernel,
    /// A signal handler in the program, as in the paper.
    Signal,
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

/// What is to be run, and what is to be known.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program.
    pub command: Command,
    /// How often to record.
    pub interval: Interval,
    /// Who counts.
    pub engine: Engine,
    /// Hardware metrics by name; empty: all that the engine has.
    pub hardware: Vec<String>,
    /// Software metrics that are counted by added code, which the program pays for.
    pub software: Vec<Spec>,
    /// Software metrics that are counted without a trace in the program.
    pub uncharged: Vec<Spec>,
    /// Where counters of added code lie.
    pub layout: Layout,
    /// The simulated machine.
    pub machine: Option<Hierarchy>,
    /// Simulated noise of an operating system.
    pub noise: Option<Noise>,
    /// Address randomisation.
    pub aslr: Aslr,
    /// The processor that a native run is bound to.
    pub pin: Option<u32>,
    /// Who reads the counters of a native run.
    pub collector: Collector,
    /// Where records are kept while the program runs; the caller removes it.
    pub partial: Option<PathBuf>,
}

impl Request {
    /// A simulated run that records `hardware` metrics and nothing else.
    pub fn simulated(command: Command, interval: Interval, machine: Hierarchy) -> Request {
        Request {
            command,
            interval,
            engine: Engine::Simulated,
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
