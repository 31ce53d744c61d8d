//! The emitter: the code of one fragment while it is being emitted, and the state of its scratch
//! registers.
//!
//! Each register is in one of two states:
//!
//! ```text
//!               scratch: save it, unless it is dead
//!   program's value ─────────────────────────────▶ spilled: the value is in the context slot
//!                   ◀─────────────────────────────
//!               restore: an instruction needs it, a side exit, the fragment's end
//! ```
//!
//! The status flags have a slot too, and change states like a register. The buffer's state map
//! records the state at every instruction, so that the host can restore the program's registers at
//! a stop between two instructions.

use crate::call::CallRecords;
use crate::code::assembler::reg;
use crate::code::buffer::{CodeBuffer, Routine, Section};
use crate::code::counter::Weights;
use crate::code::lookup::Hash;
use crate::code::state_map::{pick, restore_registers, slot, StateMapEntry, FLAGS_BIT};
use crate::plan::block::Tier;
use crate::target::layout::context;
use crate::virtual_machine::Answered;
use assembler::{Alu, Condition, Gpr, Size};
use event::Stream;
use iced_x86::InstructionInfoFactory;

/// The settings that all code of an image shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmitSetting {
    /// What is recorded.
    pub(crate) stream: Stream,
    /// How a slot of the lookup table is chosen.
    pub(crate) hash: Hash,
    /// Address of the lookup table.
    pub(crate) lookup_table: u64,
    /// Address of the table with one byte for each system call.
    pub(crate) system_calls: u64,
    /// The instructions that the host answers.
    pub(crate) answered: Answered,
}

/// Turns superblocks into code, one at a time.
pub(crate) struct Emitter {
    pub(super) setting: EmitSetting,
    /// The code, with the exits and routines that the code cache must resolve.
    pub(crate) buffer: CodeBuffer,
    /// Registers (and flags) whose program value is in the context.
    pub(super) spilled: u16,
    /// Whether the fragment's last counter was incremented.
    pub(super) counted: bool,
    /// Dead registers at the current instruction.
    pub(super) dead: u16,
    /// Registers that the rest of the block reads or writes.
    pub(super) touched: u16,
    /// Whether the status flags are dead at the current instruction.
    pub(super) flags_dead: bool,
    /// The register that holds the ring's position, if one does.
    pub(super) held: Option<u8>,
    /// The number of records that stand behind the position in that register.
    pub(super) pending: u8,
    /// Whether the ring's limit must still be checked.
    pub(super) limit_due: bool,
    /// Whether the fragment's call, return or jump is recorded.
    pub(super) calls: CallRecords,
    /// What a traversal to the fragment's end adds to the running sums.
    pub(super) weights: Weights,
    /// The number of the fragment's instructions before the current block.
    pub(super) instructions_before: u32,
    /// How much code the fragment may use in order to be fast.
    pub(super) tier: Tier,
    /// Uses of data pages in the fragment's hot section so far.
    pub(super) page_uses: u32,
    pub(super) factory: InstructionInfoFactory,
}

impl Emitter {
    pub(crate) fn new(setting: EmitSetting) -> Emitter {
        Emitter {
            setting,
            buffer: CodeBuffer::default(),
            spilled: 0,
            counted: false,
            dead: 0,
            touched: 0,
            flags_dead: false,
            held: None,
            pending: 0,
            limit_due: false,
            calls: CallRecords::None,
            weights: [0; 3],
            instructions_before: 0,
            tier: Tier::Fresh,
            page_uses: 0,
            factory: InstructionInfoFactory::new(),
        }
    }

    /// Makes code that is emitted from now on stop at these instructions.
    pub(crate) fn set_answered(&mut self, answered: Answered) {
        self.setting.answered = answered;
    }

    /// The instructions that the host answers.
    pub(crate) fn answered(&self) -> Answered {
        self.setting.answered
    }

    /// Begins a fragment whose sections will lie at these addresses. If exits are not counted,
    /// treats the last counter as incremented.
    pub(super) fn begin(&mut self, (hot_base, cold_base): (u64, u64), tier: Tier) {
        self.buffer.begin(hot_base, cold_base);
        (self.spilled, self.counted) = (0, !self.counts());
        (self.held, self.pending) = (None, 0);
        (self.page_uses, self.instructions_before) = (0, 0);
        (self.tier, self.limit_due) = (tier, tier == Tier::Appending);
    }

    /// Whether exits are counted.
    pub(super) fn counts(&self) -> bool {
        self.setting.stream != Stream::Nothing
    }

    /// An entry of the state map for a place where nothing is spilled and no record is pending.
    pub(super) fn clean_entry(&self, block: u32, index: u8) -> StateMapEntry {
        StateMapEntry {
            at: self.buffer.hot.len() as u32,
            block,
            index,
            counted: self.counted,
            counted_executing: self.counted,
            spilled: 0,
            executing: 0,
            retreat: false,
            pending: 0,
            pending_executing: 0,
        }
    }

    /// Emits cold code that hands over to the host. Returns the position of the exit's number,
    /// which the code cache fills in.
    pub(super) fn leave_cold(&mut self) -> usize {
        self.buffer.cold.store_imm32(context::EXIT, 0);
        let number_at = self.buffer.cold.len() - 4;
        let at = self.buffer.cold.jump();
        self.buffer.want_routine(Section::Cold, at, Routine::HandOver);
        number_at
    }

    /// A register that can be used until the current instruction of the program; none of `avoid`.
    pub(crate) fn scratch(&mut self, avoid: u16) -> u8 {
        let avoid = avoid | 1 << reg::RSP | self.held.map_or(0, |register| 1 << register);
        // A dead register is best, because it need not be saved.
        if let Some(register) = pick(self.dead & !avoid & !FLAGS_BIT) {
            return register;
        }
        // A register whose program value is already saved is next.
        if let Some(register) = pick(self.spilled & !avoid & !FLAGS_BIT) {
            return register;
        }
        // Otherwise one must be saved. A register that the block does not touch can stay saved
        // until the block ends. rax is left out, because saving flags needs it.
        let register =
            pick(!self.touched & !avoid & !1).or_else(|| pick(!avoid & !1)).expect("sixteen registers");
        self.buffer.hot.store(register, slot(register));
        self.spilled |= 1 << register;
        register
    }

    /// Restores the program's values of the registers and flags in `mask`, if they are spilled.
    pub(crate) fn restore(&mut self, mask: u16) {
        if self.spilled == 0 && self.held.is_none() {
            return;
        }
        // One of these registers may hold the ring's position.
        if self.held.is_some_and(|register| mask >> register & 1 != 0) {
            self.let_go();
        }
        if mask & self.spilled & FLAGS_BIT != 0 {
            self.restore_flags();
        }
        // Flags come first, because restoring them uses rax.
        let registers = self.spilled & mask & !FLAGS_BIT;
        restore_registers(&mut self.buffer.hot, registers);
        self.spilled &= !registers;
    }

    /// Makes the status flags free for use at the current instruction. Saving them uses rax, which
    /// is spilled from then on.
    pub(crate) fn free_flags(&mut self) {
        if self.flags_dead || self.spilled & FLAGS_BIT != 0 {
            return;
        }
        if (self.spilled | self.dead) & 1 << reg::RAX == 0 {
            self.buffer.hot.store(reg::RAX, slot(reg::RAX));
            self.spilled |= 1 << reg::RAX;
        }
        // ah receives five of the six status flags, and al the overflow flag.
        self.buffer.hot.code().flags_to_ah();
        self.buffer.hot.code().set_if(Condition::Overflow, Gpr::RAX);
        self.buffer.hot.store(reg::RAX, context::FLAGS);
        self.spilled |= FLAGS_BIT;
    }

    fn restore_flags(&mut self) {
        // rax may be live here although it was dead when the flags were saved. So it is saved,
        // unless its program value is already in its slot.
        let rax_free = self.spilled & 1 << reg::RAX != 0;
        if !rax_free {
            self.buffer.hot.store(reg::RAX, context::FLAGS_RAX);
        }
        self.buffer.hot.load(reg::RAX, context::FLAGS);
        // The sum overflows if al is 1, which restores the overflow flag.
        self.buffer.hot.code().alu_immediate(Alu::Add, Size::Byte, Gpr::RAX, 0x7f);
        self.buffer.hot.code().ah_to_flags();
        if !rax_free {
            self.buffer.hot.load(reg::RAX, context::FLAGS_RAX);
        }
        self.spilled &= !FLAGS_BIT;
    }

    /// Whether status flags may be changed here without saving.
    pub(crate) fn flags_free(&self) -> bool {
        self.flags_dead || self.spilled & FLAGS_BIT != 0
    }
}
