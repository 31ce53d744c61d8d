//! Finds branches into the first bytes of functions, in one pass over a module's code.
//!
//! Code is decoded from each known start to the next, so that data between functions cannot put the
//! decoder out of step for long. An indirect jump may lead anywhere in its own function, so such
//! functions are reported too, and the caller decides. **Leaves out** branches from other modules,
//! which lead to entries only.

use super::prologue::PATCH_BYTES;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::collections::{HashMap, HashSet};

/// The result of the pass.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// For an entry, the address of a branch into the bytes that the probe's jump overwrites,
    /// except to the first one.
    pub(super) inside: HashMap<u64, u64>,
    /// Entries of functions with an indirect jump.
    pub(super) indirect: HashSet<u64>,
}

impl Sweep {
    /// Sweeps `code`, which lies at `start`. `starts` are all functions and `entries` those to be
    /// probed, both sorted.
    pub(super) fn new(code: &[u8], start: u64, starts: &[u64], entries: &[u64]) -> Sweep {
        let mut sweep = Sweep::default();
        let end = start + code.len() as u64;
        let within = starts.iter().copied().filter(|at| (start..end).contains(at));
        // Decode from each known start to the next, so that the decoder is in step again at each
        // function.
        let bounds: Vec<u64> = std::iter::once(start).chain(within).chain([end]).collect();
        for pair in bounds.windows(2).filter(|pair| pair[0] < pair[1]) {
            let piece = &code[(pair[0] - start) as usize..(pair[1] - start) as usize];
            sweep.function(piece, pair[0], entries);
        }
        sweep
    }

    /// Decodes one function and notes its branches.
    fn function(&mut self, code: &[u8], start: u64, entries: &[u64]) {
        let wanted = entries.binary_search(&start).is_ok();
        for instruction in &mut Decoder::with_ip(64, code, start, DecoderOptions::NONE) {
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Return => {}
                FlowControl::IndirectBranch if wanted && !instruction.is_ip_rel_memory_operand() => {
                    self.indirect.insert(start);
                }
                _ => self.branch(instruction.ip(), instruction.near_branch_target(), entries),
            }
        }
    }

    /// Notes a branch if it leads into the first bytes of an entry.
    fn branch(&mut self, from: u64, to: u64, entries: &[u64]) {
        // Only the entry just below the target can have it among its first bytes.
        let after = entries.partition_point(|&entry| entry < to);
        if let Some(&entry) = after.checked_sub(1).and_then(|index| entries.get(index)) {
            if to - entry < PATCH_BYTES as u64 {
                self.inside.insert(entry, from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_behind_an_entry_is_found_wherever_it_stands() {
        // 0: push; 1: nop...; 8: jmp 1; 16: jmp rax
        let mut code = vec![0x90; 24];
        code[8..10].copy_from_slice(&[0xeb, 0xf7]);
        code[16..18].copy_from_slice(&[0xff, 0xe0]);
        let sweep = Sweep::new(&code, 0x1000, &[0x1000, 0x1008, 0x1010], &[0x1000, 0x1010]);
        assert_eq!(sweep.inside, HashMap::from([(0x1000, 0x1008)]));
        assert_eq!(sweep.indirect, HashSet::from([0x1010]));
    }
}
