//! Lackey: how often a function was called, and how many branches, blocks and instructions ran.
//!
//! All follow from the counts of blocks, so nothing is added to the program's code. A block here is
//! a basic block: it ends with the first transfer of control, as Valgrind's superblocks do with
//! `--vex-guest-chase=no`. It is completed where its last instruction retires and does not branch
//! away. **Leaves out** statements and operations of Valgrind's intermediate language, which has no
//! counterpart here, and traces.

use super::settings::Settings;
use crate::run::sections::Section;
use crate::run::tally::{BlockLeft, Counts};
use iced_x86::{Code, FlowControl};
use instrument::{Block, Exit, Module, Profile};
use present::number::grouped;
use symbol::Symbolizer;

/// What a process did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BasicCounts {
    /// Calls of the function whose name was given.
    calls: u64,
    branches: u64,
    taken: u64,
    entered: u64,
    completed: u64,
    instructions: u64,
}

/// Adds up what the sections of a process counted.
pub(super) fn count(
    sections: &[&Section],
    profile: &Profile,
    all: &Settings,
    symbols: &mut Symbolizer,
) -> BasicCounts {
    let mut sum = BasicCounts::default();
    for section in sections {
        sum.instructions += section.part.total(profile, None, all.rep, Counts::default()).instructions;
        for (number, left) in section.part.blocks_left() {
            let block = &profile.blocks[number as usize];
            add(&mut sum, block, left, profile);
            let module = &profile.modules[block.module as usize];
            if begins(block, profile, (module, symbols), &all.function) {
                sum.calls += left.entered;
            }
        }
    }
    sum
}

fn add(sum: &mut BasicCounts, block: &Block, left: BlockLeft, profile: &Profile) {
    sum.entered += left.entered;
    sum.completed += (left.entered - left.early).saturating_sub(left.taken);
    let last = profile.instructions.get((block.first + block.count - 1) as usize);
    if last.is_some_and(|last| ends_conditionally(last.code)) {
        sum.branches += left.entered - left.early;
        sum.taken += left.taken;
    }
}

fn ends_conditionally(code: u16) -> bool {
    Code::try_from(usize::from(code)).is_ok_and(|code| code.flow_control() == FlowControl::ConditionalBranch)
}

/// Whether an instruction of a block is the first one of the function of this name. Control may
/// fall into a function from the code before it.
fn begins(
    block: &Block,
    profile: &Profile,
    (module, symbols): (&Module, &mut Symbolizer),
    function: &str,
) -> bool {
    let found = symbols.function_at(module, block.ip);
    let is_wanted = |symbols: &Symbolizer, function_number: usize| {
        symbol::demangle(&symbols.functions()[function_number].name) == function
    };
    if found.range.start == block.ip {
        return is_wanted(symbols, found.function);
    }
    if found.range.end >= block.ip + u64::from(block.len) {
        return false;
    }
    let instructions = &profile.instructions[block.first as usize..(block.first + block.count) as usize];
    instructions.iter().any(|instruction| {
        let ip = block.ip + u64::from(instruction.offset);
        let found = symbols.function_at(module, ip);
        found.range.start == ip && is_wanted(symbols, found.function)
    })
}

/// The lines of the log.
pub(super) fn lines(counts: &BasicCounts, function: &str, exit: Exit) -> Vec<String> {
    let BasicCounts { calls, branches, taken, entered, completed, instructions } = *counts;
    let plural = if calls == 1 { "" } else { "s" };
    let percent = (taken * 100).checked_div(branches).unwrap_or(0);
    let mut lines = vec![
        String::new(),
        format!("Counted {} call{plural} to {function}()", grouped(calls)),
        String::new(),
        "Jccs:".to_owned(),
        format!("  total:         {}", grouped(branches)),
        format!("  taken:         {} ({percent}%)", grouped(taken)),
        String::new(),
        "Executed:".to_owned(),
        format!("  SBs entered:   {}", grouped(entered)),
        format!("  SBs completed: {}", grouped(completed)),
        format!("  guest instrs:  {}", grouped(instructions)),
        String::new(),
        "Ratios:".to_owned(),
        format!(
            "  guest instrs : SB entered  = {} : 10",
            grouped((instructions * 10).checked_div(entered).unwrap_or(0))
        ),
    ];
    if let Exit::Code(code) = exit {
        lines.extend([String::new(), format!("Exit code:       {code}")]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_those_that_readers_know() {
        let counts = BasicCounts {
            calls: 465,
            branches: 29_825,
            taken: 12_328,
            entered: 30_187,
            completed: 19_785,
            instructions: 149_248,
        };
        let lines = lines(&counts, "f", Exit::Code(3));
        assert_eq!(lines[1], "Counted 465 calls to f()");
        assert_eq!(lines[4], "  total:         29,825");
        assert_eq!(lines[5], "  taken:         12,328 (41%)");
        assert_eq!(lines[13], "  guest instrs : SB entered  = 49 : 10");
        assert_eq!(lines.last().unwrap(), "Exit code:       3");
        let none = super::lines(&BasicCounts::default(), "main", Exit::Signal(11));
        assert_eq!(none[1], "Counted 0 calls to main()");
        assert!(!none.iter().any(|line| line.starts_with("Exit")));
    }
}
