//! The plan of a probed run: the functions to probe, the interface that finds the program's
//! functions, and the reasons why a function cannot be probed.

use super::placement::Placement;
use crate::profile::Module;
use std::fmt;
use std::ops::Range;

/// The request to count the calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The function's entry in the running program.
    pub entry: u64,
    /// The number of the counter.
    pub counter: usize,
}

/// The functions of a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleInfo {
    /// The functions whose calls are counted.
    pub wanted: Vec<ProbeRequest>,
    /// Entries of all functions, sorted.
    pub starts: Vec<u64>,
    /// Ranges of code; between them there may be data.
    pub text: Vec<Range<u64>>,
}

/// Finds the program's functions. The engine reads no symbol tables, so the caller provides this.
pub trait Finder: Send {
    /// The functions of `module`, in addresses of the running program.
    fn known(&mut self, module: &Module) -> ModuleInfo;
    /// The entry of an exported function of `module`.
    fn entry(&mut self, module: &Module, name: &str) -> Option<u64>;
}

/// The functions to probe, and the placement of their counters.
pub struct ProbePlan {
    /// Finds the functions of a module.
    pub finder: Box<dyn Finder>,
    /// Number of counters.
    pub counters: usize,
    /// How the counters are placed.
    pub placement: Placement,
}

/// Why a function is not probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeRefusal {
    /// The function has this number of bytes, and a jump needs five.
    TooShort(u64),
    /// The branch at this address leads behind the function's first byte, into the bytes that the
    /// jump would overwrite.
    JumpInside(u64),
    /// The function has an indirect jump, which might lead into the overwritten bytes.
    IndirectJump,
    /// The instruction at this address, with this name, cannot run at another address.
    Unmovable(u64, String),
    /// There is no valid instruction at this address.
    Undecodable(u64),
    /// A target of the moved instructions is more than 2 GB away from any free memory.
    OutOfReach,
    /// The function's memory cannot be written, for this reason.
    NotWritable(String),
}

impl fmt::Display for ProbeRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeRefusal::TooShort(bytes) => {
                write!(formatter, "too short: {bytes} bytes before the next function, a jump needs 5")
            }
            ProbeRefusal::JumpInside(from) => {
                write!(formatter, "the branch at {from:#x} leads into its first five bytes")
            }
            ProbeRefusal::IndirectJump => {
                formatter.write_str("an indirect jump of its own might lead into its first five bytes")
            }
            ProbeRefusal::Unmovable(at, name) => {
                write!(formatter, "the instruction {name} at {at:#x} cannot run elsewhere")
            }
            ProbeRefusal::Undecodable(at) => write!(formatter, "there is no valid instruction at {at:#x}"),
            ProbeRefusal::OutOfReach => formatter.write_str("no free memory within 2 GB of it"),
            ProbeRefusal::NotWritable(why) => write!(formatter, "its memory cannot be written ({why})"),
        }
    }
}
