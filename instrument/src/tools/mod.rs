//! The tools that ship with the engine. They use the public interface of [`crate::tool`] only.
//!
//! A new tool needs a file and an entry of [`TOOLS`]. **Leaves out** cache simulation: it combines
//! this crate with the simulator, so it belongs to a crate that may use both.

mod branch_mix;
mod coverage;
mod instruction_count;
mod memory_trace;
mod nothing;
mod opcode_mix;
mod setting;
mod working_set;

pub use branch_mix::BranchMix;
pub use coverage::Coverage;
pub use instruction_count::InstructionCount;
pub use memory_trace::MemoryTrace;
pub use nothing::Nothing;
pub use opcode_mix::OpcodeMix;
pub use setting::Setting;
pub use working_set::WorkingSet;

use crate::tool::Tool;
use std::io;

/// A tool that users can choose by name.
pub struct BuiltinTool {
    /// The name of the tool, for the command line.
    pub name: &'static str,
    /// A description of one line.
    pub description: &'static str,
    /// Creates the tool.
    pub new: fn(&Setting) -> io::Result<Box<dyn Tool>>,
}

/// All built-in tools.
pub const TOOLS: &[BuiltinTool] = &[
    BuiltinTool {
        name: "instruction-count",
        description: "instructions retired",
        new: |_| Ok(Box::new(InstructionCount)),
    },
    BuiltinTool {
        name: "opcode-mix",
        description: "instructions retired, by opcode",
        new: |_| Ok(Box::new(OpcodeMix)),
    },
    BuiltinTool {
        name: "memory-trace",
        description: "every reference of the program, to a file",
        new: |setting| Ok(Box::new(MemoryTrace::new(setting)?)),
    },
    BuiltinTool {
        name: "branch-mix",
        description: "conditional branches taken and not, calls, returns, indirect jumps",
        new: |_| Ok(Box::new(BranchMix)),
    },
    BuiltinTool {
        name: "coverage",
        description: "code that ran, by module: bytes, instructions, blocks",
        new: |_| Ok(Box::new(Coverage)),
    },
    BuiltinTool {
        name: "working-set",
        description: "different lines and pages touched, in all and over time",
        new: |_| Ok(Box::<WorkingSet>::default()),
    },
    BuiltinTool {
        name: "nothing",
        description: "counts nothing: what translation alone costs",
        new: |_| Ok(Box::new(Nothing)),
    },
];

/// The built-in tool named `name`.
pub fn find(name: &str) -> Option<&'static BuiltinTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
