//! Control transfers: rewritten so that control stays in the code cache.
//!
//! | transfer | code |
//! |---|---|
//! | direct jump | an exit, or nothing if the superblock continues at the target |
//! | conditional branch | a branch with a side exit; its stub restores registers and counts |
//! | direct call | push of the program's own return address (one 8-byte store), then an exit |
//! | return, indirect jump or call | a look-up of the target in a table |
//! | system call | a copy, behind a test of the call's number |
//! | transaction | always aborts: `eax = 0`, then an exit to its fallback |
//! | far transfer | refused when it is reached |
//!
//! The code cache writes the stubs of exits, because only the cache knows where they lead. Source:
//! Bruening 2004, chapter 2.

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

/// A block, with everything that its transfer depends on.
pub(super) struct BlockEnd<'a> {
    pub(super) block: &'a BasicBlock,
    pub(super) liveness: &'a Liveness,
    pub(super) steps: Steps,
    /// The counter of the taken branch.
    pub(super) taken: u32,
    /// The fragment's last counter, if the block is its last.
    pub(super) last: Option<u32>,
}

impl Emitter {
    /// Emits the control transfer `decoded` that ends a block.
    pub(super) fn transfer(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let &BlockEnd { block, liveness, steps, last, .. } = end;
        let instruction = &decoded.instruction;
        // The kernel reads registers and flags, so all must hold the program's values.
        if instruction.code() == Code::Syscall {
            self.count_last(last);
            self.restore(!0);
            return self.system_call(end, decoded);
        }
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => self.conditional(end, decoded),
            FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                // If the superblock continues at the target, the jump needs no code. But a program
                // that steps itself must stop at it.
                if block.next.is_none() {
                    self.count_last(last);
                    self.direct_exit(instruction.near_branch_target(), liveness.taken);
                } else if steps == Steps::Itself {
                    self.buffer.hot.code().nop();
                }
            }
            FlowControl::Call if instruction.is_call_near() => {
                // The program sees its own return address on its own stack, written by one store.
                self.count_last(last);
                self.restore(!liveness.taken.dead);
                self.push_constant(instruction.next_ip());
                self.direct_exit(instruction.near_branch_target(), liveness.taken);
            }
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall
                if !instruction.is_call_far_indirect()
                    && !instruction.is_jmp_far_indirect()
                    && !far_return(instruction.code()) =>
            {
                self.indirect(end, decoded);
            }
            FlowControl::XbeginXabortXend => {
                // Transactions always abort before they begin: eax = 0, and the fallback runs.
                self.count_last(last);
                self.restore(!0);
                self.buffer.hot.mov_imm(reg::RAX, 0);
                self.direct_exit(instruction.near_branch_target(), liveness.taken);
            }
            FlowControl::Interrupt => {
                self.count_last(last);
                self.restore(!0);
                self.buffer.hot.copy(decoded);
                // The kernel reports a trap at the address behind its instruction.
                let clean = self.clean_entry(block.number, block.instructions.len() as u8);
                let entry = StateMapEntry { counted: true, counted_executing: true, ..clean };
                self.buffer.state_map.push(entry);
                self.direct_exit(instruction.next_ip(), liveness.behind);
            }
            _ => {
                self.refuse(instruction.ip(), "far control transfers are not supported");
            }
        }
    }

    /// Emits a conditional branch, whose taken edge is a side exit.
    fn conditional(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let instruction = &decoded.instruction;
        self.count_last(end.last);
        self.restore(FLAGS_BIT);
        let target = instruction.near_branch_target();
        let counter = self.counts().then_some(end.taken);
        let hot_base = self.buffer.hot_base;
        // The condition itself needs flags only; the exit's stub restores registers.
        if instruction.is_jcc_short_or_near() {
            self.buffer.hot.align_patch(hot_base, 2);
            let at = self.buffer.hot.jump_if(condition(instruction.condition_code()));
            self.exit_at(at, target, end.liveness.taken, counter);
        } else {
            // `jrcxz` and `loop` have short displacements only: they jump over a short jump to a
            // near jump, which can be patched.
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
        // Behind the branch the superblock continues, or the fragment ends.
        if end.block.next.is_none() {
            self.direct_exit(instruction.next_ip(), end.liveness.behind);
        }
    }

    /// Emits an exit to `target` that needs no counter. Restores the registers that are live at
    /// `target`.
    pub(super) fn direct_exit(&mut self, target: u64, known: TargetFacts) {
        self.restore(!(known.dead | self.kept_saved_for(target)));
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
            // The code cache knows the distance to the target, so it decides the jump's form.
            None if known.has_code => ExitForm::Linked,
            // The target has no code yet, so the exit leads to a stub that stops for the host.
            None => {
                self.buffer.link(Section::Hot, at, Label::Cold(self.buffer.cold.len()));
                restore_registers(&mut self.buffer.cold, restore);
                ExitForm::Waiting(self.leave_cold())
            }
        };
        self.buffer.exits.push(WantedExit { at, target, counter, restore, form });
    }

    /// Emits a return, or a jump or call through a register or memory.
    fn indirect(&mut self, end: &BlockEnd, decoded: &Decoded) {
        let instruction = &decoded.instruction;
        // The target is on the stack, in a register or in memory. The registers that name it must
        // hold the program's values.
        let memory = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
        let address = if memory { operand(instruction) } else { None };
        let register = number(instruction.op0_register())
            .filter(|_| instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register);
        let operands =
            address.map_or(0, |address| address.registers()) | register.map_or(0, |register| 1 << register);
        self.enter_lookup(operands);
        // The state map's entry of this instruction was made before the look-up saved registers, so
        // it must be corrected.
        if let Some(entry) = self.buffer.state_map.last_mut() {
            entry.executing = self.spilled;
            entry.counted_executing = self.counted;
        }
        // A return is recorded with the stack pointer that it finds.
        let returns = instruction.flow_control() == FlowControl::Return;
        if returns {
            self.indirect_transfer(end);
        }
        // Load the target into rcx.
        match (instruction.flow_control(), register, address) {
            (FlowControl::Return, ..) => {
                self.buffer.hot.code().pop(Gpr::RCX);
                if instruction.op_count() == 1 {
                    let behind = Memory::at(Gpr::RSP).plus(i32::from(instruction.immediate16()));
                    self.buffer.hot.code().lea(Size::Qword, Gpr::RSP, behind);
                }
            }
            (_, Some(register), _) => self.buffer.hot.mov(reg::RCX, register),
            (_, _, Some(address)) => lookup::load_target(&mut self.buffer.hot, &address),
            _ => self.refuse(instruction.ip(), "an indirect transfer without a target"),
        }
        if !returns {
            self.indirect_transfer(end);
        }
        if instruction.flow_control() == FlowControl::IndirectCall {
            self.push_constant(instruction.next_ip());
        }
        // The fragment must be counted here at the latest. rax is already saved, so counting may
        // use it.
        if let Some(counter) = end.last.filter(|_| !self.counted) {
            self.count_or_by_rax(counter);
        }
        self.lookup();
    }

    /// Increments the fragment's last counter; uses rax if flags are live.
    fn count_or_by_rax(&mut self, counter: u32) {
        if self.flags_dead {
            count(&mut self.buffer.hot, counter, self.weights, true);
        } else {
            count_in_rax(&mut self.buffer.hot, counter, self.weights);
        }
        self.counted = true;
    }

    /// Emits the push of a constant as one 8-byte store, as a call makes it. A long constant stands
    /// in the cold section.
    fn push_constant(&mut self, value: u64) {
        // The processor sign-extends a constant of 32 bits; a longer one must come from memory.
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

/// The registers that a look-up uses.
const LOOKUP_REGISTERS: u16 = 1 << reg::RAX | 1 << reg::RCX | 1 << reg::RDX;

impl Emitter {
    /// Saves rax, rcx and rdx in their slots and restores everything else.
    pub(crate) fn enter_lookup(&mut self, operand: u16) {
        // The registers of the target's operand must hold the program's values.
        let keep = LOOKUP_REGISTERS & !operand;
        self.restore(!keep | FLAGS_BIT);
        for register in [reg::RAX, reg::RCX, reg::RDX] {
            if self.spilled & 1 << register == 0 {
                self.buffer.hot.store(register, slot(register));
                self.spilled |= 1 << register;
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
        // Double the slot's number, because slots have 16 bytes and the processor scales by 8 at
        // most.
        code.code().lea(Size::Dword, Gpr::RAX, Memory::at(Gpr::RAX).index(Gpr::RAX, Scale::One));
        tag(code, table);
        add_tag(code, 0);
        // rcx is 0 if the slot holds the target.
        let hit = code.code().short_jump_if_rcx_zero();
        let at = code.jump();
        code.code().land_short(hit);
        jump_to_code(code, table);
        self.buffer.want_routine(Section::Hot, at, Routine::Probe);
    }
}
