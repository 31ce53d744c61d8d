//! Code for the events that a tool has requested.
//!
//! An event is one record: the value, the request's number, its tag. The place of its code decides
//! whether a faulting instruction is recorded:
//!
//! ```text
//!    compute addresses for events after it ─▶ context   (the instruction may change registers)
//!    events before the instruction                      an attempt that faults is recorded
//!    the instruction
//!    events after the instruction                       only retired instructions are recorded
//! ```
//!
//! Signals are delivered at instruction boundaries only, so none arrives between the computation of
//! an address and the record that uses it. **Leaves out** which events are requested (`tool`).

use super::emitter::Emitter;
use crate::code::assembler::{gpr, Address, Assembler};
use crate::code::counter::tick_address;
use crate::code::event_request::{EventRequest, Source, When};
use crate::code::state_map::FLAGS_BIT;
use crate::code::superblock::BasicBlock;
use crate::plan::liveness::Liveness;
use crate::target::layout::context;
use assembler::{Memory, Size};
use event::RecordKind;

impl Emitter {
    /// Emits the events before instruction `index`, and computes the addresses for those after it.
    pub(super) fn tool_before(&mut self, block: &BasicBlock, index: usize) {
        if block.events.is_empty() {
            return;
        }
        // The instruction may change the registers of an address, so the address is computed now
        // and kept in the context.
        for request in block.events.at(index, When::After) {
            if let Source::Stashed(address, slot) = request.source {
                self.stash(&address, slot);
            }
        }
        let ran = self.instructions_before + index as u32;
        self.record(block.events.at(index, When::Before), ran);
    }

    /// Emits the events after instruction `index`.
    pub(super) fn tool_after(&mut self, block: &BasicBlock, liveness: &Liveness, index: usize) {
        let events = block.events.at(index, When::After);
        if events.is_empty() {
            return;
        }
        // This code stands before the next instruction, so the facts of that instruction hold.
        self.flags_dead = liveness.flags_dead.get(index + 1).copied().unwrap_or(false);
        self.dead = liveness.dead.get(index + 1).copied().unwrap_or(0);
        self.touched = liveness.touched.get(index + 1).copied().unwrap_or(0);
        self.record(events, self.instructions_before + index as u32 + 1);
        // Code behind the block's last instruction knows of no pending records.
        self.check_limit();
        self.let_go();
    }

    /// Emits the computation of an address, which is kept in the context.
    fn stash(&mut self, address: &Address, slot: u8) {
        let registers = address.registers();
        self.free_flags();
        self.restore(registers & !FLAGS_BIT);
        let pointer = self.scratch(registers);
        form(&mut self.buffer.hot, pointer, address);
        self.buffer.hot.store(pointer, waiting(slot));
    }

    /// Emits one record for each event. The ring's slack has room for all of them, so the limit is
    /// checked once behind them. `ran` is the number of the fragment's instructions before them.
    fn record(&mut self, events: &[EventRequest], ran: u32) {
        for request in events {
            // A register that is recorded must hold the program's value, not a scratch value.
            let needed = request.source.registers();
            // Adding the segment's base changes flags.
            if matches!(request.source, Source::Address(address) if address.fs) {
                self.free_flags();
            }
            self.restore(needed & !FLAGS_BIT);
            let position = self.position(needed);
            let at = 16 * self.pending;
            self.value(request.source, (position, at), ran);
            // The request's number and the record's kind share a word; the tag follows.
            let what = request.number << 8 | (RecordKind::Tool as u32) << 4;
            self.buffer.hot.store_imm_at(position, at + 8, what);
            self.buffer.hot.store_imm_at(position, at + 12, request.tag);
            self.appended();
            self.limit_due = true;
        }
    }

    /// Emits the store of the event's value in the first eight bytes of the record, which begins
    /// at `at` behind `position`.
    fn value(&mut self, source: Source, (position, at): (u8, u8), ran: u32) {
        match source {
            Source::Constant(value) => {
                self.buffer.hot.store_imm_at(position, at, value as u32);
                self.buffer.hot.store_imm_at(position, at + 4, (value >> 32) as u32);
            }
            Source::Instructions => {
                let sum = self.scratch(1 << position);
                self.buffer.hot.load(sum, tick_address(0));
                // The sum has all traversals that were counted, this one perhaps included.
                let counted = if self.counted { i32::from(self.weights[0]) } else { 0 };
                let now = Memory::at(gpr(sum)).plus(ran as i32 - counted);
                self.buffer.hot.code().lea(Size::Qword, gpr(sum), now);
                self.buffer.hot.store_at(sum, position, at);
            }
            Source::Register(register) => self.buffer.hot.store_at(register, position, at),
            Source::Address(address) => {
                let pointer = self.scratch(address.registers() | 1 << position);
                form(&mut self.buffer.hot, pointer, &address);
                self.buffer.hot.store_at(pointer, position, at);
            }
            // The address was computed before the instruction.
            Source::Stashed(_, slot) => {
                let pointer = self.scratch(1 << position);
                self.buffer.hot.load(pointer, waiting(slot));
                self.buffer.hot.store_at(pointer, position, at);
            }
        }
    }
}

/// Emits the computation of a linear address: `lea`, then the segment's base. Needs free flags.
fn form(code: &mut Assembler, pointer: u8, address: &Address) {
    code.lea(pointer, address);
    code.add_segment(pointer, address);
}

/// Context offset of the address in this slot, which is kept until its instruction has retired.
fn waiting(slot: u8) -> u32 {
    context::WAITING + 8 * u32::from(slot)
}
