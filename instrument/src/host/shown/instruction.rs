//! Instructions that the host answers: those that ask the processor, read its clock, or take random
//! bits from it, and those that save states which the declared processor lacks.
//!
//! The thread stands behind the `int3` that took the instruction's place, in front of a `nop`. All
//! registers that the instruction reads hold the program's values, and all that it writes may be
//! written.

use crate::host::state::Host;
use crate::host::task::StepOutcome;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::target::signal_mask;
use crate::virtual_machine::handles_states;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

/// Length of the `nop` behind the stop.
const NOP_BYTES: u64 = 1;
/// The most steps that the copy of an instruction takes: its operand's address may need a register.
const STEPS_MAX: u32 = 4;
const CARRY: u64 = 1;
const STATUS_FLAGS: u64 = 0x8d5;

impl Host<'_> {
    /// Answers the instruction at which the thread has stopped, and lets the thread go on.
    pub(crate) fn answer_instruction(&mut self, tid: i32) {
        let Some(mut registers) = ptrace::registers(tid) else { return };
        let Some(instruction) = self.instruction_at(tid, registers.rip - 1) else {
            return self.go_on(tid);
        };
        registers.rip += NOP_BYTES;
        if handles_states(instruction.mnemonic()) {
            return self.handle_states(tid, registers);
        }
        self.write_answer(tid, &instruction, &mut registers);
        ptrace::set_registers(tid, &registers);
        self.go_on(tid);
    }

    /// The program's instruction whose translation holds this address.
    fn instruction_at(&mut self, tid: i32, at: u64) -> Option<Instruction> {
        let translator = &mut self.image_mut(tid).translator;
        let (entry, _) = translator.cache.state_at(at)?;
        let block = &translator.blocks[entry.block as usize];
        let place = translator.instructions.get((block.first + u32::from(entry.index)) as usize)?;
        let ip = block.ip + u64::from(place.offset);
        let (bytes, count) = translator.reader.fetch(ip);
        Some(Decoder::with_ip(64, &bytes[..count], ip, DecoderOptions::NONE).decode())
    }

    /// Writes what the declared processor would write.
    fn write_answer(&mut self, tid: i32, instruction: &Instruction, registers: &mut Registers) {
        let process = self.threads[&tid].process;
        match instruction.mnemonic() {
            Mnemonic::Cpuid => {
                let Some(leaves) = &self.shown.leaves else { return };
                let [eax, ebx, ecx, edx] = leaves.answer(registers.rax as u32, registers.rcx as u32);
                (registers.rax, registers.rbx) = (eax.into(), ebx.into());
                (registers.rcx, registers.rdx) = (ecx.into(), edx.into());
            }
            Mnemonic::Xgetbv => {
                let Some(leaves) = &self.shown.leaves else { return };
                (registers.rax, registers.rdx) = halves(leaves.extended_states());
            }
            // One cycle a nanosecond.
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => {
                (registers.rax, registers.rdx) = halves(self.shown.clock(process).elapsed());
                if instruction.mnemonic() == Mnemonic::Rdtscp {
                    registers.rcx = 0;
                }
            }
            Mnemonic::Rdpid => set(registers, instruction.op0_register(), 0),
            Mnemonic::Rdrand | Mnemonic::Rdseed => {
                let word = self.shown.generator(tid).word();
                set(registers, instruction.op0_register(), word);
                registers.eflags = registers.eflags & !STATUS_FLAGS | CARRY;
            }
            _ => {}
        }
    }

    /// Executes an instruction that saves or restores states, for those alone that the declared
    /// processor has.
    fn handle_states(&mut self, tid: i32, registers: Registers) {
        let (low, high) = halves(self.shown.answered.states());
        let masked = Registers { rax: registers.rax & low, rdx: registers.rdx & high, ..registers };
        ptrace::set_registers(tid, &masked);
        let at = self.image_mut(tid).translator.cache.state_at(registers.rip);
        let mask = signal_mask::block(tid);
        let mut stepped = StepOutcome::Done;
        for _ in 0..STEPS_MAX {
            stepped = self.step(tid, 0);
            let now = ptrace::registers(tid);
            let here = now.and_then(|now| self.image_mut(tid).translator.cache.state_at(now.rip));
            let is_same = here.zip(at).is_some_and(|((here, _), (at, _))| here.at == at.at);
            if !matches!(stepped, StepOutcome::Done) || !is_same {
                break;
            }
        }
        // The mask of the request is the program's own again, whatever the steps did.
        if let Some(now) = ptrace::registers(tid) {
            ptrace::set_registers(tid, &Registers { rax: registers.rax, rdx: registers.rdx, ..now });
        }
        signal_mask::unblock(tid, mask);
        match stepped {
            StepOutcome::Done => self.go_on(tid),
            StepOutcome::Signal(signal) => self.deliver(tid, signal),
            StepOutcome::Other(what) => self.stopped(tid, what),
            StepOutcome::Gone => {}
        }
    }
}

/// The lower and the upper half of a word, as `edx:eax` holds it.
fn halves(word: u64) -> (u64, u64) {
    (word & 0xffff_ffff, word >> 32)
}

/// Writes a general register of any width.
fn set(registers: &mut Registers, register: Register, value: u64) {
    let whole = match register.full_register() {
        Register::RAX => &mut registers.rax,
        Register::RCX => &mut registers.rcx,
        Register::RDX => &mut registers.rdx,
        Register::RBX => &mut registers.rbx,
        Register::RSP => &mut registers.rsp,
        Register::RBP => &mut registers.rbp,
        Register::RSI => &mut registers.rsi,
        Register::RDI => &mut registers.rdi,
        Register::R8 => &mut registers.r8,
        Register::R9 => &mut registers.r9,
        Register::R10 => &mut registers.r10,
        Register::R11 => &mut registers.r11,
        Register::R12 => &mut registers.r12,
        Register::R13 => &mut registers.r13,
        Register::R14 => &mut registers.r14,
        _ => &mut registers.r15,
    };
    *whole = match register.size() {
        8 => value,
        // A write of 32 bits clears the upper half.
        4 => value & 0xffff_ffff,
        _ => *whole & !0xffff | value & 0xffff,
    };
}
