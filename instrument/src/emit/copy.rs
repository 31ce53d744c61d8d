//! The program's own instructions: copied, or replaced if a copy would not work.
//!
//! An instruction is copied byte for byte. If it has a `rip`-relative operand, it gets another
//! displacement, or, if the operand is too far away, the address in a register. `syscall` is
//! preceded by a test of its number. Code that may change is preceded by a comparison with the
//! words that were translated.

use super::emitter::Emitter;
use super::transfer::BlockEnd;
use crate::code::assembler::reg;
use crate::code::buffer::{ExitForm, Label, Section, WantedExit};
use crate::code::decode::{number, Decoded};
use crate::code::fragment::{EXIT_INSTRUCTION, EXIT_SYSTEM_CALL};
use crate::code::register_use::{register_use, RegisterUse};
use crate::code::state_map::{restore_registers, slot, StateMapEntry};
use crate::code::superblock::Superblock;
use crate::target::layout::context;
use crate::virtual_machine::handles_states;
use assembler::{Extend, Gpr, Memory, Scale, Size};
use iced_x86::{Encoder, Mnemonic, Register};

impl Emitter {
    /// Copies an instruction that is no transfer.
    pub(super) fn copy(&mut self, decoded: &Decoded, uses: Option<&RegisterUse>) {
        let instruction = &decoded.instruction;
        if self.setting.answered.has(instruction.mnemonic()) {
            self.stop_for_answer();
            // The host executes this copy with another request.
            if !handles_states(instruction.mnemonic()) {
                return;
            }
        }
        // A request is longer than instructions are, and has no effect.
        if decoded.is_mark() {
            return;
        }
        if instruction.is_ip_rel_memory_operand() {
            return self.copy_relative(decoded, uses);
        }
        if let Some(why) = unsupported(instruction.mnemonic()) {
            return self.refuse(instruction.ip(), why);
        }
        self.buffer.hot.copy(decoded);
        // The context has a copy of the `fs` base, which recorded addresses need.
        if matches!(instruction.mnemonic(), Mnemonic::Wrfsbase) {
            let register = number(instruction.op0_register()).unwrap_or(reg::RAX);
            self.buffer.hot.store(register, context::FS_BASE);
        }
    }

    /// Emits code that raises SIGILL in the place of an instruction that the engine does not
    /// support. The host ends the run with the reason when a thread arrives there, and not before:
    /// code that is only decoded may be data, or half written by another thread.
    pub(super) fn refuse(&mut self, ip: u64, why: &str) {
        self.buffer.refused.push((ip, format!("at {ip:#x}: {why}")));
        self.buffer.hot.code().undefined();
    }

    /// Emits a stop at which the host answers the current instruction. Until the thread is behind
    /// it, it stands before the instruction.
    fn stop_for_answer(&mut self) {
        let Some(entry) = self.buffer.state_map.last().copied() else { return };
        let (executing, pending) = (entry.executing, entry.pending_executing);
        let at = self.buffer.hot.len() as u32;
        let (counted, retreat) = (entry.counted_executing, true);
        let before = StateMapEntry { at, spilled: executing, pending, counted, retreat, ..entry };
        self.buffer.state_map.push(before);
        self.buffer.hot.store_imm32(context::EXIT, EXIT_INSTRUCTION);
        self.buffer.hot.stop();
        self.buffer.hot.code().nop();
        // A copy behind the stop may fault.
        let at = self.buffer.hot.len() as u32;
        self.buffer.state_map.push(StateMapEntry { at, retreat: false, ..before });
    }

    /// Copies an instruction with a `rip`-relative operand, with another displacement or with the
    /// address in a register.
    fn copy_relative(&mut self, decoded: &Decoded, uses: Option<&RegisterUse>) {
        let instruction = &decoded.instruction;
        let target = instruction.ip_rel_memory_address();
        let end = self.buffer.hot_base + self.buffer.hot.len() as u64 + instruction.len() as u64;
        // If the operand is near, the copy needs only another displacement.
        let displacement = target.wrapping_sub(end) as i64;
        let constants =
            iced_x86::Decoder::with_ip(64, decoded.raw(), instruction.ip(), 0).decode_with_offsets();
        if let (Ok(value), Some(offset)) = (i32::try_from(displacement), constants) {
            let at = self.buffer.hot.len() + offset;
            self.buffer.hot.copy(decoded);
            self.buffer.hot.set_displacement(at, value);
            return;
        }
        // `lea` loads only the address, which is a constant.
        if instruction.mnemonic() == Mnemonic::Lea && instruction.op0_register().is_gpr64() {
            return self.buffer.hot.mov_imm(number(instruction.op0_register()).unwrap_or(reg::RAX), target);
        }
        // Otherwise the address goes into a register that the instruction does not name.
        let used = match uses {
            Some(uses) => uses.needs | uses.kills | uses.writes,
            None => {
                let uses = register_use(&mut self.factory, decoded);
                uses.needs | uses.kills | uses.writes
            }
        };
        // As bases, rsp, rbp, r12 and r13 have longer encodings. Another register is always unused.
        let base = (0..16u8)
            .find(|base| ![4, 5, 12, 13].contains(base) && used >> base & 1 == 0)
            .unwrap_or(reg::RAX);
        self.buffer.hot.store(base, context::TEMP + 8);
        self.buffer.hot.mov_imm(base, target);
        let mut moved = *instruction;
        moved.set_memory_base(register(base));
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        let mut encoder = Encoder::new(64);
        match encoder.encode(&moved, self.buffer.hot_base + self.buffer.hot.len() as u64) {
            Ok(_) => self.buffer.hot.append(&encoder.take_buffer()),
            Err(error) => self.refuse(instruction.ip(), &format!("it cannot be encoded: {error}")),
        }
        self.buffer.hot.load(base, context::TEMP + 8);
    }

    /// Emits the comparison of code that may change with the translated words. It changes no flags.
    pub(super) fn guard(&mut self, superblock: &Superblock) {
        let blocks = superblock.blocks;
        let (ax, cx) = (reg::RAX, reg::RCX);
        let saved = 1 << ax | 1 << cx;
        let hot = &mut self.buffer.hot;
        hot.store(ax, slot(ax));
        hot.store(cx, slot(cx));
        // Memory that cannot be read cannot be executed either, so a fault in the guard counts as a
        // fault of the first instruction.
        let clean = self.clean_entry(blocks[0].number, 0);
        let entry = StateMapEntry { spilled: saved, executing: saved, retreat: true, ..clean };
        self.buffer.state_map.push(entry);
        let (start, _) = Superblock::extent(blocks);
        let mut failed = Vec::new();
        for (&word, at) in superblock.words.iter().zip((start..).step_by(8)) {
            // The words are equal if the word in memory plus minus the translated word is 0. `lea`
            // and `jrcxz` change no flags.
            let hot = &mut self.buffer.hot;
            hot.code().mov_rax_from(at);
            hot.mov_imm(cx, word.wrapping_neg());
            let difference = Memory::at(Gpr::RCX).index(Gpr::RAX, Scale::One);
            hot.code().lea(Size::Qword, Gpr::RCX, difference);
            let equal = hot.code().short_jump_if_rcx_zero();
            failed.push(hot.jump());
            hot.code().land_short(equal);
        }
        for jump in failed {
            self.buffer.link(Section::Hot, jump, Label::Cold(self.buffer.cold.len()));
        }
        restore_registers(&mut self.buffer.cold, saved);
        let form = ExitForm::Stale(self.leave_cold());
        let target = blocks[0].ip;
        self.buffer.exits.push(WantedExit { at: 0, target, counter: None, restore: 0, form });
        restore_registers(&mut self.buffer.hot, saved);
    }

    /// Emits a `syscall`. Before special numbers the thread stops for the host. Afterwards rcx
    /// holds the program's return address, as the program expects.
    pub(super) fn system_call(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let (block, next) = (end.block, decoded.instruction.next_ip());
        let size = block.instructions.len() as u8;
        // The code before the call changes only rcx, which the call overwrites too.
        let entry = StateMapEntry { retreat: true, ..self.clean_entry(block.number, size - 1) };
        self.buffer.state_map.push(entry);
        let special = Memory::at(Gpr::RCX).plus(self.setting.system_calls as i32);
        let hot = &mut self.buffer.hot;
        hot.code().extend_into(Extend::ZeroWord, Gpr::RCX, Gpr::RAX);
        hot.code().extend_into(Extend::ZeroByte, Gpr::RCX, special);
        let ordinary = hot.code().short_jump_if_rcx_zero();
        hot.store_imm32(context::EXIT, EXIT_SYSTEM_CALL);
        hot.stop();
        hot.code().nop();
        hot.code().land_short(ordinary);
        hot.code().system_call();
        let entry = self.clean_entry(block.number, size);
        self.buffer.state_map.push(entry);
        self.buffer.hot.mov_imm(reg::RCX, next);
        self.direct_exit(next, end.liveness.behind);
    }
}

/// The reason why the engine cannot run an instruction, if it cannot.
fn unsupported(mnemonic: Mnemonic) -> Option<&'static str> {
    match mnemonic {
        Mnemonic::Wrgsbase | Mnemonic::Rdgsbase | Mnemonic::Swapgs => {
            Some("an instruction reads or sets the base of the gs register, which lightfoot needs itself")
        }
        Mnemonic::Sysenter | Mnemonic::Sysexit => Some("lightfoot does not support sysenter and sysexit"),
        _ => None,
    }
}

/// `iced-x86`'s name of a hardware register.
pub(crate) fn register(index: u8) -> Register {
    Register::values()
        .find(|&register| register.is_gpr64() && number(register) == Some(index))
        .expect("sixteen registers")
}

/// Offset of a 32-bit displacement in an instruction.
trait Offsets {
    fn decode_with_offsets(self) -> Option<usize>;
}

impl Offsets for iced_x86::Decoder<'_> {
    fn decode_with_offsets(mut self) -> Option<usize> {
        let instruction = self.decode();
        let offsets = self.get_constant_offsets(&instruction);
        (offsets.has_displacement() && offsets.displacement_size() == 4)
            .then(|| offsets.displacement_offset())
    }
}
