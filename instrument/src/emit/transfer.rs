//! Control transfers: rewritten so that control stays in the code cache.
//!
//! A call pushes the program's own return address with one 8-byte store; a return is an indirect
//! transfer. Side exits of conditional branches restore and count in a stub, which the code cache
//! writes when it knows where the exit leads. Source: Bruening 2004, chapter 2.

use super::emitter::Emitter;
use crate::code::assembler::reg;
use crate::code::buffer::{ExitForm, Label, Routine, Section, WantedExit};
use crate::code::counter::{count, count_in_rax};
use crate::code::decode::{number, Decoded};
use crate::code::lookup::{self, add_tag, jump_to_code, tag, Hash};
use crate::code::state_map::{restore_registers, slot, StateMapEntry, FLAGS_BIT};
use crate::code::superblock::{BasicBlock, Steps};
use crate::plan::liveness::{Liveness, TargetFacts};
use crate::plan::references::operand;
use crate::target::layout::context;
use assembler::{Condition, Extend, Gpr, Memory, Scale, Size};
use iced_x86::{Code, ConditionCode, FlowControl, OpKind};

/// The end of a block, as its transfer needs to know it.
pub(super) struct BlockEnd<'a> {
    pub(super) block: &'a BasicBlock,
    pub(super) liveness: &'a Liveness,
    pub(super) steps: Steps,
    /// Counter of the branch, where it leaves the fragment.
    pub(super) taken: u32,
    /// The fragment's last counter, if the block is its last.
    pub(super) last: Option<u32>,
}

impl Emitter {
    /// Emits the control transfer `decoded` that ends a block.
    pub(super) fn transfer(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let &BlockEnd { block, liveness, steps, last, .. } = end;
        let i = &decoded.instruction;
        // The kernel sees registers and flags: all must be the program's.
        if i.code() == Code::Syscall {
            self.count_last(last);
            self.restore(!0);
            return self.system_call(end, decoded);
        }
        match i.flow_control() {
            FlowControl::ConditionalBranch => self.conditional(end, decoded),
            FlowControl::UnconditionalBranch if i.is_jmp_short_or_near() => {
                // If the superblock goes on at the target, the jump needs no code, unless the
                // program steps itself and must see it.
                if block.next.is_none() {
                    self.count_last(last);
                    self.direct_exit(i.near_branch_target(), liveness.taken);
                } else if steps == Steps::Itself {
                    self.buffer.hot.code().nop();
                }
            }
            FlowControl::Call if i.is_call_near() => {
                // The program sees its own return address on its own stack, written by one store.
                self.count_last(last);
                self.restore(!liveness.taken.dead);
                self.push_constant(i.next_ip());
                self.direct_exit(i.near_branch_target(), liveness.taken);
            }
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall
                if !i.is_call_far_indirect() && !i.is_jmp_far_indirect() && !far_return(i.code()) =>
            {
                self.indirect(decoded, last);
            }
            FlowControl::XbeginXabortXend => {
                // Transactions always abort, before they begin: eax = 0, on to the fallback.
                self.count_last(last);
                self.restore(!0);
                self.buffer.hot.mov_imm(reg::RAX, 0);
                self.direct_exit(i.near_branch_target(), liveness.taken);
            }
            FlowControl::Interrupt => {
                self.count_last(last);
                self.restore(!0);
                self.buffer.hot.copy(decoded);
                // A trap is reported behind its instruction.
                let clean = self.clean_entry(block.number, block.instructions.len() as u8);
                let entry = StateMapEntry { counted: true, counted_executing: true, ..clean };
                self.buffer.state_map.push(entry);
                self.direct_exit(i.next_ip(), liveness.behind);
            }
            _ => {
                let why = format!("at {:#x}: far control transfers are not supported", i.ip());
                self.buffer.refusal = Some(why);
                self.buffer.hot.code().undefined();
            }
        }
    }

    fn conditional(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let i = &decoded.instruction;
        self.count_last(end.last);
        self.restore(FLAGS_BIT);
        let target = i.near_branch_target();
        let counter = self.counts().then_some(end.taken);
        let hot_base = self.buffer.hot_base;
        // The condition itself needs flags only; registers come back in the exit's stub.
        if i.is_jcc_short_or_near() {
            self.buffer.hot.align_patch(hot_base, 2);
            let at = self.buffer.hot.jump_if(condition(i.condition_code()));
            self.exit_at(at, target, end.liveness.taken, counter);
        } else {
            // jrcxz, loop: their own opcode over a short jump, then a jump that is patched.
            self.restore(!0);
            let raw = decoded.raw();
            let hot = &mut self.buffer.hot;
            hot.align_patch(hot_base, raw.len() as u64 + 3);
            let taken = hot.code().short_jump_like(raw);
            let not_taken = hot.code().short_jump();
            hot.code().land_short(taken);
            let at = hot.jump();
            hot.code().land_short(not_taken);
            self.exit_at(at, target, end.liveness.taken, counter);
        }
        // Behind it the superblock goes on, or the fragment ends.
        if end.block.next.is_none() {
            self.direct_exit(i.next_ip(), end.liveness.behind);
        }
    }

    /// Emits an exit to `target` that needs no counter. Restores the registers that are live at
    /// `target`.
    pub(super) fn direct_exit(&mut self, target: u64, known: TargetFacts) {
        self.restore(!(known.dead | self.kept_on_the_way(target)));
        self.spilled &= !known.dead;
        // Threads may run while the displacement is rewritten, so it must lie within one line.
        self.buffer.hot.align_patch(self.buffer.hot_base, 1);
        let at = self.buffer.hot.jump();
        self.exit_at(at, target, known, None);
    }

    /// Makes the displacement at `at` an exit to `target`.
    fn exit_at(&mut self, at: usize, target: u64, known: TargetFacts, counter: Option<u32>) {
        let restore = self.spilled & !known.dead;
        let form = match self.back_edge(target, restore) {
            Some(back_edge) => back_edge,
            // The code cache knows how far the target is, so it decides how the exit leads there.
            None if known.has_code => ExitForm::Linked,
            // The target has no code yet: until it has, a stub asks the host for it.
            None => {
                self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
                restore_registers(&mut self.buffer.cold, restore);
                ExitForm::Waiting(self.leave_cold())
            }
        };
        self.buffer.exits.push(WantedExit { at, target, counter, restore, form });
    }

    /// Returns, and jumps and calls through a register or memory.
    fn indirect(&mut self, decoded: &Decoded, last: Option<u32>) {
        let i = &decoded.instruction;
        // The target is on the stack, in a register or in memory, whose registers must hold the
        // program's values.
        let memory = i.op_count() > 0 && i.op0_kind() == OpKind::Memory;
        let address = if memory { operand(i) } else { None };
        let register =
            number(i.op0_register()).filter(|_| i.op_count() > 0 && i.op0_kind() == OpKind::Register);
        let operands = address.map_or(0, |a| a.registers()) | register.map_or(0, |r| 1 << r);
        self.enter_lookup(operands);
        // The state of this instruction was noted before the lookup saved its registers, so it is
        // corrected.
        if let Some(entry) = self.buffer.state_map.last_mut() {
            entry.executing = self.spilled;
            entry.counted_executing = self.counted;
        }
        // The target goes into rcx.
        match (i.flow_control(), register, address) {
            (FlowControl::Return, ..) => {
                self.buffer.hot.code().pop(Gpr::RCX);
                if i.op_count() == 1 {
                    let behind = Memory::at(Gpr::RSP).plus(i32::from(i.immediate16()));
                    self.buffer.hot.code().lea(Size::Qword, Gpr::RSP, behind);
                }
            }
            (_, Some(r), _) => self.buffer.hot.mov(reg::RCX, r),
            (_, _, Some(address)) => lookup::load_target(&mut self.buffer.hot, &address),
            _ => {
                let why = format!("at {:#x}: an indirect transfer without a target", i.ip());
                self.buffer.refusal = Some(why);
            }
        }
        if i.flow_control() == FlowControl::IndirectCall {
            self.push_constant(i.next_ip());
        }
        // This is the last chance to count the fragment. rax is saved already, so counting may use
        // it.
        if let Some(counter) = last.filter(|_| !self.counted) {
            self.count_or_by_rax(counter);
        }
        self.lookup();
    }

    fn count_or_by_rax(&mut self, counter: u32) {
        if self.flags_dead {
            count(&mut self.buffer.hot, counter, true);
        } else {
            count_in_rax(&mut self.buffer.hot, counter);
        }
        self.counted = true;
    }

    /// `push qword [constant]`: one 8-byte store, as a call makes it. The constant waits among the
    /// cold code.
    fn push_constant(&mut self, value: u64) {
        // The processor extends a 32-bit constant by its sign; a longer one comes from memory.
        if let Ok(short) = i32::try_from(value) {
            return self.buffer.hot.code().push_immediate(short);
        }
        while !(self.buffer.cold_base + self.buffer.cold.len() as u64).is_multiple_of(8) {
            self.buffer.cold.stop();
        }
        let at = self.buffer.cold.len();
        self.buffer.cold.append(&value.to_le_bytes());
        self.buffer.hot.code().push_from(Memory::rip(0));
        let patch = self.buffer.hot.len() - 4;
        self.buffer.link(Section::Hot, patch, Label::Cold(at));
    }
}

fn far_return(code: Code) -> bool {
    matches!(
        code,
        Code::Retfw | Code::Retfd | Code::Retfq | Code::Retfw_imm16 | Code::Retfd_imm16 | Code::Retfq_imm16
    ) || matches!(code, Code::Iretw | Code::Iretd | Code::Iretq | Code::Sysretd | Code::Sysretq)
}

/// The encoder's name of a condition.
fn condition(code: ConditionCode) -> Condition {
    use ConditionCode::*;
    match code {
        o => Condition::Overflow,
        no => Condition::NotOverflow,
        b => Condition::Below,
        ae => Condition::AboveOrEqual,
        e => Condition::Equal,
        ne => Condition::NotEqual,
        be => Condition::BelowOrEqual,
        a => Condition::Above,
        s => Condition::Sign,
        ns => Condition::NotSign,
        p => Condition::Parity,
        np => Condition::NotParity,
        l => Condition::Less,
        ge => Condition::GreaterOrEqual,
        le => Condition::LessOrEqual,
        _ => Condition::Greater,
    }
}

/// Registers that a lookup uses.
const LOOKUP_REGISTERS: u16 = 1 << reg::RAX | 1 << reg::RCX | 1 << reg::RDX;

impl Emitter {
    /// Saves rax, rcx and rdx in their slots and restores everything else.
    pub(crate) fn enter_lookup(&mut self, operand: u16) {
        // The registers that form the target must hold the program's values.
        let keep = LOOKUP_REGISTERS & !operand;
        self.restore(!keep | FLAGS_BIT);
        for r in [reg::RAX, reg::RCX, reg::RDX] {
            if self.spilled & 1 << r == 0 {
                self.buffer.hot.store(r, slot(r));
                self.spilled |= 1 << r;
            }
        }
    }

    /// Jumps to the translation of the target in rcx. rax, rcx, rdx are in their slots.
    fn lookup(&mut self) {
        let table = self.setting.lookup_table;
        let code = &mut self.buffer.hot;
        match self.setting.hash {
            Hash::Extract => code.extract(reg::RAX, reg::RCX, context::MASK_LOOKUP),
            Hash::LowBits => code.code().extend_into(Extend::ZeroWord, Gpr::RAX, Gpr::RCX),
        }
        // Twice the slot's number, as slots have 16 bytes and the processor scales by 8 at most.
        code.code().lea(Size::Dword, Gpr::RAX, Memory::at(Gpr::RAX).index(Gpr::RAX, Scale::One));
        tag(code, table);
        add_tag(code, 0);
        // rcx is 0 where the slot is the target's.
        let hit = code.code().short_jump_if_rcx_zero();
        let at = code.jump();
        code.code().land_short(hit);
        jump_to_code(code, table);
        self.buffer.want_routine(Section::Hot, at, Routine::Probe);
    }
}
