//! The emitter: a fragment's code in the making, and the state of its scratch registers.
//!
//! Scratch registers are a small state machine. A register is *spilled* while its program value is
//! in its context slot; it is restored when an instruction needs it, at the fragment's end, and in
//! side exits. Status flags have a slot of their own and are treated in the same way. A dead
//! register is used without saving it. The buffer's state map records the state at every
//! instruction, so that the host can restore the program's registers at a stop between two
//! instructions.

use crate::code::assembler::reg;
use crate::code::buffer::{CodeBuffer, Routine, Section};
use crate::code::lookup::Hash;
use crate::code::state_map::{pick, restore_registers, slot, StateMapEntry, FLAGS_BIT};
use crate::plan::block::Tier;
use crate::target::layout::context;
use assembler::{Alu, Condition, Gpr, Size};
use event::Stream;
use iced_x86::InstructionInfoFactory;

/// The settings that all code of an image shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmitSetting {
    /// What is recorded.
    pub(crate) stream: Stream,
    /// How a slot of the lookup table is chosen, and where the table lies.
    pub(crate) hash: Hash,
    pub(crate) lookup_table: u64,
    /// Address of the table with one byte for each system call.
    pub(crate) system_calls: u64,
}

/// Turns superblocks into code, one at a time.
pub(crate) struct Emitter {
    pub(super) setting: EmitSetting,
    /// The code, and what it wants of the code cache.
    pub(crate) buffer: CodeBuffer,
    /// Registers (and flags) whose program value is in the context.
    pub(super) spilled: u16,
    /// The fragment's last counter was incremented.
    pub(super) counted: bool,
    /// Dead registers at the current instruction.
    pub(super) dead: u16,
    /// Registers that the rest of the block touches.
    pub(super) touched: u16,
    /// Status flags are dead at the current instruction.
    pub(super) flags_dead: bool,
    /// The register that holds the ring's position, while one does.
    pub(super) held: Option<u8>,
    /// Records behind the position that it holds.
    pub(super) pending: u8,
    /// The ring's limit is still to be checked.
    pub(super) limit_due: bool,
    /// How much the fragment's code may take to be fast.
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
            tier: Tier::Fresh,
            page_uses: 0,
            factory: InstructionInfoFactory::new(),
        }
    }

    /// Begins a fragment whose sections will lie there. If exits are not counted, treats the last
    /// counter as incremented.
    pub(super) fn begin(&mut self, (hot_base, cold_base): (u64, u64), tier: Tier) {
        self.buffer.begin(hot_base, cold_base);
        (self.spilled, self.counted) = (0, !self.counts());
        (self.held, self.pending) = (None, 0);
        self.page_uses = 0;
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

    /// Cold code that hands over to the host; the position of the exit's number, which is open.
    pub(super) fn leave_cold(&mut self) -> usize {
        self.buffer.cold.store_imm32(context::EXIT, 0);
        let number_at = self.buffer.cold.len() - 4;
        let at = self.buffer.cold.jump();
        self.buffer.want_routine(Section::Cold, at, Routine::HandOver);
        number_at
    }

    /// A register to use freely until the current program instruction; never one of `avoid`.
    pub(crate) fn scratch(&mut self, avoid: u16) -> u8 {
        let avoid = avoid | 1 << reg::RSP | self.held.map_or(0, |r| 1 << r);
        // Best is a dead register: it needs no save.
        if let Some(r) = pick(self.dead & !avoid & !FLAGS_BIT) {
            return r;
        }
        // Next best is one whose program value is saved already.
        if let Some(r) = pick(self.spilled & !avoid & !FLAGS_BIT) {
            return r;
        }
        // Otherwise save one. A register that the block does not touch stays saved until the block
        // ends; rax is left out, because saving flags needs it.
        let r = pick(!self.touched & !avoid & !1).or_else(|| pick(!avoid & !1)).expect("sixteen registers");
        self.buffer.hot.store(r, slot(r));
        self.spilled |= 1 << r;
        r
    }

    /// Gives the program its values back in `mask` (registers and flags) before it needs them.
    pub(crate) fn restore(&mut self, mask: u16) {
        if self.spilled == 0 && self.held.is_none() {
            return;
        }
        // The ring's position may be in a register that is wanted back.
        if self.held.is_some_and(|r| mask >> r & 1 != 0) {
            self.let_go();
        }
        if mask & self.spilled & FLAGS_BIT != 0 {
            self.restore_flags();
        }
        // Flags had to come first, because they are restored by way of rax.
        let registers = self.spilled & mask & !FLAGS_BIT;
        restore_registers(&mut self.buffer.hot, registers);
        self.spilled &= !registers;
    }

    /// Makes the status flags free for use at the current instruction. They are saved by way of
    /// rax, which is a scratch register from then on; its value is restored when an instruction
    /// needs it.
    pub(crate) fn free_flags(&mut self) {
        if self.flags_dead || self.spilled & FLAGS_BIT != 0 {
            return;
        }
        if (self.spilled | self.dead) & 1 << reg::RAX == 0 {
            self.buffer.hot.store(reg::RAX, slot(reg::RAX));
            self.spilled |= 1 << reg::RAX;
        }
        // ah takes five of the six status flags, al the overflow.
        self.buffer.hot.code().flags_to_ah();
        self.buffer.hot.code().set_if(Condition::Overflow, Gpr::RAX);
        self.buffer.hot.store(reg::RAX, context::FLAGS);
        self.spilled |= FLAGS_BIT;
    }

    fn restore_flags(&mut self) {
        // rax may be live here even where it was dead before: save it unless its program value is
        // in its slot.
        let rax_free = self.spilled & 1 << reg::RAX != 0;
        if !rax_free {
            self.buffer.hot.store(reg::RAX, context::FLAGS_RAX);
        }
        self.buffer.hot.load(reg::RAX, context::FLAGS);
        // The sum overflows where al is 1.
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
