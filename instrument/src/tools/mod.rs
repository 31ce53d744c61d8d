//! The tools that come with the engine, written against [`crate::tool`] as anybody's would be.
//!
//! To add one: a file, and a line in [`TOOLS`]. **Leaves out** cache simulation, which joins this
//! crate and the simulator a floor above.

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

/// A tool that can be named.
pub struct BuiltinTool {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
    /// Makes one.
    pub new: fn(&Setting) -> io::Result<Box<dyn Tool>>,
}

/// All of them.
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

/// The tool of that name.
pub fn find(name: &str) -> Option<&'static BuiltinTool> {
    TOOLS.iter().find(|t| t.name == name)
}
