//! The events that a tool asked for, as code.
//!
//! A record per event: the value, the request's number, its tag. Before an instruction they stand
//! where its references do, so that an attempt that faults shows; after it, behind everything that
//! belongs to it, so that only what retired shows. An address that is wanted afterwards is formed
//! before (the instruction may change its registers) and waits in the context. Signals are
//! delivered at an instruction's bound only, hence never between the two. **Leaves out** deciding
//! what is asked (`tool`).

use super::emitter::Emitter;
use crate::code::assembler::{Address, Assembler};
use crate::code::event_request::{EventRequest, Source, When};
use crate::code::state_map::FLAGS_BIT;
use crate::code::superblock::BasicBlock;
use crate::plan::liveness::Liveness;
use crate::target::layout::context;
use event::RecordKind;

impl Emitter {
    /// Events before instruction `k`, and the addresses of those after it.
    pub(super) fn tool_before(&mut self, block: &BasicBlock, k: usize) {
        if block.events.is_empty() {
            return;
        }
        // Addresses that are wanted behind the instruction are formed before it, which may change
        // their registers.
        for asked in block.events.at(k, When::After) {
            if let Source::Stashed(address, slot) = asked.source {
                self.stash(&address, slot);
            }
        }
        self.record(block.events.at(k, When::Before));
    }

    /// Events after instruction `k`: what is dead, and what comes next, is that of the instruction
    /// behind it.
    pub(super) fn tool_after(&mut self, block: &BasicBlock, liveness: &Liveness, k: usize) {
        let events = block.events.at(k, When::After);
        if events.is_empty() {
            return;
        }
        // Behind it stands the next instruction.
        self.flags_dead = liveness.flags_dead.get(k + 1).copied().unwrap_or(false);
        self.dead = liveness.dead.get(k + 1).copied().unwrap_or(0);
        self.touched = liveness.touched.get(k + 1).copied().unwrap_or(0);
        self.record(events);
    }

    fn stash(&mut self, address: &Address, slot: u8) {
        let registers = address.registers();
        self.free_flags();
        self.restore(registers & !FLAGS_BIT);
        let a = self.scratch(registers);
        form(&mut self.buffer.hot, a, address);
        self.buffer.hot.store(a, waiting(slot));
    }

    /// One record per event; the ring's slack holds them all, so one check at the end will do.
    fn record(&mut self, events: &[EventRequest]) {
        let Some(last) = events.len().checked_sub(1) else { return };
        self.free_flags();
        for (n, asked) in events.iter().enumerate() {
            // A register whose value is wanted must hold the program's.
            let needed = asked.source.registers();
            self.restore(needed & !FLAGS_BIT);
            let position = self.scratch(needed);
            self.buffer.hot.load(position, context::RING_POSITION);
            self.value(asked.source, position);
            self.buffer.hot.store_imm_at(position, 8, asked.number << 8 | (RecordKind::Tool as u32) << 4);
            self.buffer.hot.store_imm_at(position, 12, asked.tag);
            self.buffer.hot.advance(position, 16);
            self.buffer.hot.store(position, context::RING_POSITION);
            if n == last {
                self.check_ring(position);
            }
        }
    }

    /// Stores the value at the ring's position.
    fn value(&mut self, source: Source, position: u8) {
        match source {
            Source::Constant(value) => {
                self.buffer.hot.store_imm_at(position, 0, value as u32);
                self.buffer.hot.store_imm_at(position, 4, (value >> 32) as u32);
            }
            Source::Register(r) => self.buffer.hot.store_at(r, position, 0),
            Source::Address(address) => {
                let a = self.scratch(address.registers() | 1 << position);
                form(&mut self.buffer.hot, a, &address);
                self.buffer.hot.store_at(a, position, 0);
            }
            // Formed before the instruction.
            Source::Stashed(_, slot) => {
                let a = self.scratch(1 << position);
                self.buffer.hot.load(a, waiting(slot));
                self.buffer.hot.store_at(a, position, 0);
            }
        }
    }
}

/// `lea`, with the segment's base. Needs free flags.
fn form(code: &mut Assembler, a: u8, address: &Address) {
    code.lea(a, address);
    code.add_segment(a, address);
}

/// Where an address waits for its instruction's end.
fn waiting(slot: u8) -> u32 {
    context::WAITING + 8 * u32::from(slot)
}
