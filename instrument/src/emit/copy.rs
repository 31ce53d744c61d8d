//! The program's own instructions: copied, or replaced where a copy would not work.
//!
//! An instruction is copied byte for byte. One whose operand is relative to itself gets another
//! displacement, or its address in a register where that is too far away. `syscall` is preceded by
//! a look at its number. Code that may change is preceded by a comparison with what was translated.

use super::emitter::Emitter;
use super::transfer::BlockEnd;
use crate::code::assembler::reg;
use crate::code::buffer::{ExitForm, Label, Section, WantedExit};
use crate::code::decode::{number, Decoded};
use crate::code::fragment::EXIT_SYSTEM_CALL;
use crate::code::register_use::{register_use, RegisterUse};
use crate::code::state_map::{restore_registers, slot, StateMapEntry};
use crate::code::superblock::Superblock;
use crate::target::layout::context;
use assembler::{Extend, Gpr, Memory, Scale, Size};
use iced_x86::{Encoder, Mnemonic, Register};

impl Emitter {
    /// Copies an instruction that is no transfer.
    pub(super) fn copy(&mut self, decoded: &Decoded, uses: Option<&RegisterUse>) {
        let i = &decoded.instruction;
        if i.is_ip_rel_memory_operand() {
            return self.copy_relative(decoded, uses);
        }
        if let Some(why) = unsupported(i.mnemonic()) {
            self.buffer.refusal.get_or_insert_with(|| format!("at {:#x}: {why}", i.ip()));
        }
        self.buffer.hot.copy(decoded);
        // The context keeps a copy of the base, for addresses that are recorded.
        if matches!(i.mnemonic(), Mnemonic::Wrfsbase) {
            let r = number(i.op0_register()).unwrap_or(reg::RAX);
            self.buffer.hot.store(r, context::FS_BASE);
        }
    }

    /// Copies an instruction with a RIP-relative operand: another displacement, or an address in a
    /// register.
    fn copy_relative(&mut self, decoded: &Decoded, uses: Option<&RegisterUse>) {
        let i = &decoded.instruction;
        let target = i.ip_rel_memory_address();
        let end = self.buffer.hot_base + self.buffer.hot.len() as u64 + i.len() as u64;
        // Near its operand, the copy needs another displacement and nothing else.
        let displacement = target.wrapping_sub(end) as i64;
        let constants = iced_x86::Decoder::with_ip(64, decoded.raw(), i.ip(), 0).decode_with_offsets();
        if let (Ok(value), Some(offset)) = (i32::try_from(displacement), constants) {
            let at = self.buffer.hot.len() + offset;
            self.buffer.hot.copy(decoded);
            self.buffer.hot.set_displacement(at, value);
            return;
        }
        // `lea` loads the address itself, so a constant does.
        if i.mnemonic() == Mnemonic::Lea && i.op0_register().is_gpr64() {
            return self.buffer.hot.mov_imm(number(i.op0_register()).unwrap_or(reg::RAX), target);
        }
        // Otherwise the address goes into a register that the instruction does not name.
        let used = match uses {
            Some(u) => u.needs | u.kills | u.writes,
            None => {
                let u = register_use(&mut self.factory, decoded);
                u.needs | u.kills | u.writes
            }
        };
        // rsp, rbp, r12 and r13 have longer encodings as a base; there is always another register.
        let r = (0..16u8).find(|r| ![4, 5, 12, 13].contains(r) && used >> r & 1 == 0).unwrap_or(reg::RAX);
        self.buffer.hot.store(r, context::TEMP + 8);
        self.buffer.hot.mov_imm(r, target);
        let mut moved = *i;
        moved.set_memory_base(register(r));
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        let mut encoder = Encoder::new(64);
        match encoder.encode(&moved, self.buffer.hot_base + self.buffer.hot.len() as u64) {
            Ok(_) => self.buffer.hot.append(&encoder.take_buffer()),
            Err(e) => {
                self.buffer.refusal = Some(format!("cannot encode an instruction at {:#x}: {e}", i.ip()))
            }
        }
        self.buffer.hot.load(r, context::TEMP + 8);
    }

    /// Compares generated code with what was translated, word by word, without touching flags.
    pub(super) fn guard(&mut self, superblock: &Superblock) {
        let blocks = superblock.blocks;
        let (ax, cx) = (reg::RAX, reg::RCX);
        let saved = 1 << ax | 1 << cx;
        let hot = &mut self.buffer.hot;
        hot.store(ax, slot(ax));
        hot.store(cx, slot(cx));
        // Memory that cannot be read here could not be executed either, so a fault in the guard
        // counts as one of the first instruction.
        let clean = self.clean_entry(blocks[0].number, 0);
        let entry = StateMapEntry { spilled: saved, executing: saved, retreat: true, ..clean };
        self.buffer.state_map.push(entry);
        let (start, _) = Superblock::extent(blocks);
        let mut failed = Vec::new();
        for (&word, at) in superblock.words.iter().zip((start..).step_by(8)) {
            // The sum of the word in memory and minus the one that was translated is 0, or they
            // differ: `lea` and `jrcxz` leave flags alone.
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

    /// `syscall`: special numbers stop for the host first; afterwards rcx is what the program
    /// expects.
    pub(super) fn system_call(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let (block, next) = (end.block, decoded.instruction.next_ip());
        let size = block.instructions.len() as u8;
        // Before the call only rcx changes, which the call destroys anyway.
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

fn unsupported(m: Mnemonic) -> Option<&'static str> {
    match m {
        Mnemonic::Wrgsbase | Mnemonic::Rdgsbase | Mnemonic::Swapgs => Some(
            "the program uses the gs register itself, which lightfoot needs; such programs are not supported",
        ),
        Mnemonic::Sysenter | Mnemonic::Sysexit => Some("sysenter is not supported in 64-bit programs"),
        _ => None,
    }
}

/// `iced-x86`'s name of a hardware register.
pub(crate) fn register(r: u8) -> Register {
    Register::values().find(|&x| x.is_gpr64() && number(x) == Some(r)).expect("sixteen registers")
}

/// Offset of a 32-bit displacement in an instruction.
trait Offsets {
    fn decode_with_offsets(self) -> Option<usize>;
}

impl Offsets for iced_x86::Decoder<'_> {
    fn decode_with_offsets(mut self) -> Option<usize> {
        let i = self.decode();
        let offsets = self.get_constant_offsets(&i);
        (offsets.has_displacement() && offsets.displacement_size() == 4)
            .then(|| offsets.displacement_offset())
    }
}
