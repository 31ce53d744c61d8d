//! Control transfers: rewritten so that control stays in the code cache.
//!
//! A call pushes the program's own return address with one 8-byte store; a return is an indirect transfer. Side exits of
//! conditional branches restore and count in a stub. Source: Bruening 2004, chapter 2; DESIGN.md.

use super::draft::{restore_registers, Bound, Draft, Goal, Part};
use super::{draft, lookup};
use crate::assemble::{reg, Assembler};
use crate::cache::{count, count_in_rax, near, Exit};
use crate::decode::{number, Decoded};
use crate::references::operand;
use crate::translate::{Piece, Translator};
use iced_x86::{Code, ConditionCode, FlowControl, OpKind};

impl Translator {
    /// Emits the control transfer that ends `piece`. `taken` counts its side exit, `last` the fragment's last block.
    pub(crate) fn transfer(
        &mut self,
        d: &mut Draft,
        z: usize,
        piece: &Piece,
        decoded: &Decoded,
        taken: u32,
        last: Option<u32>,
    ) {
        let i = &decoded.i;
        if i.code() == Code::Syscall {
            self.count_last(d, last);
            d.restore(!0);
            return self.system_call(d, z, decoded, piece);
        }
        match i.flow_control() {
            FlowControl::ConditionalBranch => self.conditional(d, z, piece, decoded, taken, last),
            FlowControl::UnconditionalBranch if i.is_jmp_short_or_near() => {
                if piece.next.is_none() {
                    self.count_last(d, last);
                    self.direct_exit(d, z, i.near_branch_target());
                }
            }
            FlowControl::Call if i.is_call_near() => {
                self.count_last(d, last);
                d.restore(!self.dead_at(i.near_branch_target()));
                push_constant(d, i.next_ip());
                self.direct_exit(d, z, i.near_branch_target());
            }
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall
                if !i.is_call_far_indirect() && !i.is_jmp_far_indirect() && !far_return(i.code()) =>
            {
                self.indirect(d, z, decoded, last);
            }
            FlowControl::XbeginXabortXend => {
                // Transactions always abort, before they begin: eax = 0, on to the fallback.
                self.count_last(d, last);
                d.restore(!0);
                d.hot.mov_imm(reg::RAX, 0);
                self.direct_exit(d, z, i.near_branch_target());
            }
            FlowControl::Interrupt => {
                self.count_last(d, last);
                d.restore(!0);
                d.hot.raw(decoded.raw());
                // A trap is reported behind its instruction.
                d.bounds.push(Bound {
                    at: d.hot.len() as u32,
                    block: piece.number,
                    index: piece.instructions.len() as u8,
                    counted: true,
                    counted_executing: true,
                    spilled: 0,
                    executing: 0,
                    retreat: false,
                    pending: 0,
                    pending_executing: 0,
                });
                self.direct_exit(d, z, i.next_ip());
            }
            _ => {
                self.refusal = Some(format!("at {:#x}: far control transfers are not supported", i.ip()));
                d.hot.raw(&[0x0f, 0x0b]);
            }
        }
    }

    fn conditional(
        &mut self,
        d: &mut Draft,
        z: usize,
        piece: &Piece,
        decoded: &Decoded,
        taken: u32,
        last: Option<u32>,
    ) {
        let i = &decoded.i;
        self.count_last(d, last);
        d.restore(draft::FLAGS_BIT);
        let target = i.near_branch_target();
        let counter = self.events.counts().then_some(taken);
        let jcc = i.is_jcc_short_or_near();
        if jcc {
            d.hot.align_patch(d.hot_base, 2);
            let at = d.hot.jump_if(condition(i.condition_code()));
            self.exit_at(d, z, at, target, counter);
        } else {
            // jrcxz, loop: their own opcode over a short jump, then a jump that is patched.
            d.restore(!0);
            let raw = decoded.raw();
            d.hot.align_patch(d.hot_base, raw.len() as u64 + 3);
            d.hot.raw(&raw[..raw.len() - 1]);
            d.hot.raw(&[2, 0xeb, 5]);
            let at = d.hot.jump();
            self.exit_at(d, z, at, target, counter);
        }
        if piece.next.is_none() {
            self.direct_exit(d, z, i.next_ip());
        }
    }

    /// Leaves the fragment, where everything is counted, for `target`; what is not dead there is restored.
    pub(crate) fn direct_exit(&mut self, d: &mut Draft, z: usize, target: u64) {
        let dead = self.dead_at(target);
        d.restore(!(dead | Translator::kept_on_the_way(d, target)));
        d.spilled &= !dead;
        d.hot.align_patch(d.hot_base, 1);
        let at = d.hot.jump();
        self.exit_at(d, z, at, target, None);
    }

    /// Connects the displacement at `at` with `target`: directly, through a counting stub, or through the host.
    fn exit_at(&mut self, d: &mut Draft, z: usize, at: usize, target: u64, counter: Option<u32>) {
        let patch = self.cache.zones[z].hot_used as u32 + at as u32;
        let restore = d.spilled & !self.dead_at(target);
        let exit = Exit { target, zone: z as u32, patch, counter, restore, next: 0, stale: false };
        if self.turns(d, at, exit) {
            return;
        }
        if let Some(f) = self.cache.find(target) {
            let body = self.cache.fragments[f].body;
            if counter.is_none() && exit.restore == 0 && near(d.hot_base + at as u64, body) {
                let offset = self.cache.zones[z].offset + patch as usize;
                self.cache.arrives(f, offset, d.hot_base + at as u64 + 4);
                return d.link(Part::Hot, at, Goal::Address(body));
            }
            return d.tails.push((at, exit, f));
        }
        let number = self.cache.exits.len() as u32;
        let next = self.cache.pending.insert(target, number).unwrap_or(0);
        let n = self.new_exit(Exit { next, ..exit });
        d.link(Part::Hot, at, Goal::Cold(d.cold.len()));
        restore_registers(&mut d.cold, exit.restore);
        self.leave_cold(d, z, n);
    }

    /// Returns, and jumps and calls through a register or memory.
    fn indirect(&mut self, d: &mut Draft, z: usize, decoded: &Decoded, last: Option<u32>) {
        let i = &decoded.i;
        let memory = i.op_count() > 0 && i.op0_kind() == OpKind::Memory;
        let address = if memory { operand(i) } else { None };
        let register =
            number(i.op0_register()).filter(|_| i.op_count() > 0 && i.op0_kind() == OpKind::Register);
        let operands = address.map_or(0, |a| a.registers()) | register.map_or(0, |r| 1 << r);
        d.enter_lookup(operands);
        if let Some(bound) = d.bounds.last_mut() {
            bound.executing = d.spilled;
            bound.counted_executing = d.counted;
        }
        match (i.flow_control(), register, address) {
            (FlowControl::Return, ..) => {
                d.hot.raw(&[0x59]); // pop rcx
                if i.op_count() == 1 {
                    d.hot.raw(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + imm]
                    d.hot.imm32(u32::from(i.immediate16()));
                }
            }
            (_, Some(r), _) => d.hot.mov(reg::RCX, r),
            (_, _, Some(address)) => lookup::load_target(&mut d.hot, &address),
            _ => self.refusal = Some(format!("at {:#x}: an indirect transfer without a target", i.ip())),
        }
        if i.flow_control() == FlowControl::IndirectCall {
            push_constant(d, i.next_ip());
        }
        if let Some(counter) = last.filter(|_| !d.counted) {
            count_or_by_rax(d, counter);
        }
        let (table, probe) = (self.cache.layout.low, self.cache.zones[z].routines.probe);
        d.lookup(self.cache.hash, table, probe);
    }
}

fn count_or_by_rax(d: &mut Draft, counter: u32) {
    if d.flags_dead {
        count(&mut d.hot, counter, true);
    } else {
        count_in_rax(&mut d.hot, counter);
    }
    d.counted = true;
}

/// `push qword [constant]`: one 8-byte store, as a call makes it. The constant waits among the cold code.
fn push_constant(d: &mut Draft, value: u64) {
    if let Ok(short) = i32::try_from(value) {
        d.hot.raw(&[0x68]);
        return d.hot.imm32(short as u32);
    }
    while !(d.cold_base + d.cold.len() as u64).is_multiple_of(8) {
        d.cold.raw(&[0xcc]);
    }
    let at = d.cold.len();
    d.cold.raw(&value.to_le_bytes());
    d.hot.raw(&[0xff, 0x35, 0, 0, 0, 0]);
    let patch = d.hot.len() - 4;
    d.link(Part::Hot, patch, Goal::Cold(at));
}

fn far_return(code: Code) -> bool {
    matches!(
        code,
        Code::Retfw | Code::Retfd | Code::Retfq | Code::Retfw_imm16 | Code::Retfd_imm16 | Code::Retfq_imm16
    ) || matches!(code, Code::Iretw | Code::Iretd | Code::Iretq | Code::Sysretd | Code::Sysretq)
}

impl Translator {
    /// Appends the stubs of side exits whose targets have code already.
    pub(crate) fn finish_tails(&mut self, d: &mut Draft, z: usize) {
        for (at, exit, f) in std::mem::take(&mut d.tails) {
            let here = d.hot_base + d.hot.len() as u64;
            let mut stub = Assembler::default();
            let jump = self.cache.stub(&mut stub, here, &exit, f);
            self.cache.arrives_by_stub(f, z, here, jump);
            d.link(Part::Hot, at, Goal::Hot(d.hot.len()));
            d.hot.raw(&stub.bytes);
        }
        self.finish_turns(d, z);
    }
}

/// Hardware number of a condition.
fn condition(code: ConditionCode) -> u8 {
    use ConditionCode::*;
    match code {
        o => 0,
        no => 1,
        b => 2,
        ae => 3,
        e => 4,
        ne => 5,
        be => 6,
        a => 7,
        s => 8,
        ns => 9,
        p => 10,
        np => 11,
        l => 12,
        ge => 13,
        le => 14,
        _ => 15,
    }
}
