//! The engine's slow twin: runs a program one instruction at a time and reports exactly what it
//! did.
//!
//! **How.** The processor's single-step trap decides what an instruction is and whether it retired.
//! The references follow from the decoded instruction and the registers before it. This method is
//! simple and 200 times slower than the engine, so tests compare the engine with it: instructions,
//! order and address of every data reference, instruction lines. It implements the definition in
//! [`event`]. **Differences from a native run.** Addresses are not randomised, `rseq` returns
//! ENOSYS (as under the engine), and the trap flag is hidden from the program (`pushf`, `r11` after
//! `syscall`). **Leaves out** threads and forked children (they run on, uncounted), programs that
//! set the trap flag themselves, and transactions (`xbegin` aborts at once, as under the engine).
//! Source: ptrace(2).

mod address;
mod operands;
mod record;
mod state;
#[cfg(test)]
mod tests;
mod trace;
mod vector;

pub use record::Reference;

use crate::outcome::{Command, Exit};
use event::BLOCK_INSTRUCTIONS_MAX;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic};
use libc::user_regs_struct;
use operands::Modelled;
use state::{ExtendedRegisters, GeneralRegisters, RegisterState, XsaveLayout};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use trace::{Tracee, WaitStatus};

/// The outcome of an attempt to execute an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnding {
    /// The instruction retired, and counts.
    Retired,
    /// One iteration of a repeated string instruction has completed, and more follow.
    Iterated,
    /// The instruction raised a fault. It will be attempted again if a handler returns to it.
    Faulted,
}

/// One attempt at one instruction (or at one iteration of a repeated one).
#[derive(Debug)]
pub struct SingleStep<'a> {
    /// Address of the instruction.
    pub ip: u64,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// The number of instructions that retired before this one.
    pub index: u64,
    /// Whether a dynamic basic block starts here.
    pub starts_block: bool,
    /// Whether this step continues the repeated instruction of the last step, whose bytes are not
    /// fetched again.
    pub continues: bool,
    /// The data references of the attempt, in order.
    pub references: &'a [Reference],
    /// How the attempt ended.
    pub ending: StepEnding,
}

impl SingleStep<'_> {
    /// The addresses of the instruction lines that the instruction's bytes touch, ascending; none
    /// if the step continues a repeated instruction.
    pub fn lines(&self, line_bytes: u64) -> impl Iterator<Item = u64> {
        let first = self.ip / line_bytes * line_bytes;
        let end = if self.continues { first } else { self.ip + self.instruction.len() as u64 };
        (first..end).step_by(line_bytes as usize)
    }
}

/// The totals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTotals {
    /// How the program ended.
    pub exit: Exit,
    /// Instructions retired; a repeated string instruction counts once.
    pub instructions: u64,
    /// Iterations of repeated string instructions beyond the first of each: add them to count every
    /// iteration.
    pub repeats: u64,
    /// Dynamic basic blocks.
    pub blocks: u64,
    /// Instructions whose references are not known completely; 0 unless the program has
    /// instructions that the decoder does not describe.
    pub unmodelled: u64,
}

/// The error of a program that could not be started or followed.
#[derive(Debug)]
pub struct TraceError {
    doing: &'static str,
    cause: io::Error,
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {}: {}", self.doing, self.cause)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already holds the system's words: a printed chain would repeat them.
        self.cause.source()
    }
}

/// Adds a description of the failed step to the error of a system call.
fn while_doing(doing: &'static str) -> impl Fn(io::Error) -> TraceError {
    move |cause| TraceError { doing, cause }
}

/// Runs `command` to its end and passes every step to `observe`.
///
/// # Errors
/// If the program cannot be started (not found, not executable, ptrace or `personality` refused),
/// or a ptrace request fails.
pub fn run(command: &Command, observe: &mut dyn FnMut(&SingleStep<'_>)) -> Result<RunTotals, TraceError> {
    let tracee = Tracee::launch(command).map_err(while_doing("start the program"))?;
    SteppedRun::new(tracee, observe).finish()
}

/// Runs `command`, and also counts the retired instructions of each address.
///
/// # Errors
/// As [`run`].
pub fn histogram(command: &Command) -> Result<(RunTotals, BTreeMap<u64, u64>), TraceError> {
    let mut counts = BTreeMap::new();
    let outcome = run(command, &mut |step| {
        if step.ending == StepEnding::Retired {
            *counts.entry(step.ip).or_insert(0) += 1;
        }
    })?;
    Ok((outcome, counts))
}

/// The registers of the stopped program, for the operand decoder. Vector registers are fetched when
/// the decoder first needs them.
struct StoppedProgram<'a> {
    tracee: &'a Tracee,
    general: GeneralRegisters,
    extended: &'a mut ExtendedRegisters,
    fetched: Fetched,
}

/// Whether the vector registers in [`StoppedProgram`] were fetched at this stop.
#[derive(PartialEq)]
enum Fetched {
    Yes,
    No,
}

impl RegisterState for StoppedProgram<'_> {
    fn general(&self) -> &GeneralRegisters {
        &self.general
    }

    fn extended(&mut self) -> &ExtendedRegisters {
        if self.fetched == Fetched::No {
            self.extended.image = self.tracee.extended().unwrap_or_default();
            self.fetched = Fetched::Yes;
        }
        self.extended
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.tracee.read(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// An instruction that is about to be attempted.
#[derive(Clone, Copy)]
struct Attempt {
    ip: u64,
    /// The decoded instruction; `None` if its bytes cannot be read or are not valid, so that the
    /// attempt can only fault.
    instruction: Option<Instruction>,
    /// The program's `rax`, which holds the number of a system call.
    rax: u64,
    modelled: Modelled,
}

/// The meaning of a stop for the attempt before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopVerdict {
    /// The instruction retired.
    Retired,
    /// The instruction faulted.
    Faulted,
    /// A signal came first. If no handler takes it, the block continues.
    NotAttempted,
    /// A handler was entered instead.
    Diverted,
}

/// A run of a program by single steps.
struct SteppedRun<'a> {
    tracee: Tracee,
    observe: &'a mut dyn FnMut(&SingleStep<'_>),
    decoded: HashMap<u64, ([u8; 15], Instruction)>,
    factory: InstructionInfoFactory,
    extended: ExtendedRegisters,
    references: Vec<Reference>,
    outcome: RunTotals,
    /// Signal to deliver with the next step.
    signal: i32,
    /// Instructions attempted in the current block; 0 if the next one starts a block.
    in_block: usize,
    /// Address of the repeated instruction that has not completed yet, if any.
    repeating: Option<u64>,
}

impl<'a> SteppedRun<'a> {
    fn new(tracee: Tracee, observe: &'a mut dyn FnMut(&SingleStep<'_>)) -> SteppedRun<'a> {
        let outcome =
            RunTotals { exit: Exit::Code(0), instructions: 0, repeats: 0, blocks: 0, unmodelled: 0 };
        SteppedRun {
            tracee,
            observe,
            decoded: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            extended: ExtendedRegisters { image: Vec::new(), layout: XsaveLayout::host() },
            references: Vec::new(),
            outcome,
            signal: 0,
            in_block: 0,
            repeating: None,
        }
    }

    fn finish(mut self) -> Result<RunTotals, TraceError> {
        loop {
            let registers = self.tracee.registers().map_err(while_doing("read registers"))?;
            let attempt = self.attempt(&registers);
            self.refuse_rseq(&attempt, registers)?;
            let stop = self.tracee.step(self.signal).map_err(while_doing("step the program"))?;
            let injected = std::mem::replace(&mut self.signal, 0);
            match stop {
                WaitStatus::Exited(code) => return Ok(self.end(&attempt, injected, Exit::Code(code))),
                WaitStatus::Killed(signal) => return Ok(self.end(&attempt, injected, Exit::Signal(signal))),
                WaitStatus::Exec => self.after_exec(&attempt)?,
                WaitStatus::Signal(signal) => self.after_stop(&attempt, injected, signal)?,
            }
        }
    }

    /// Decodes the next instruction and computes its references.
    fn attempt(&mut self, registers: &user_regs_struct) -> Attempt {
        let ip = registers.rip;
        let instruction = self.decode(ip);
        self.references.clear();
        let mut modelled = Modelled::Exactly;
        if let Some(instruction) = &instruction {
            let mut state = StoppedProgram {
                tracee: &self.tracee,
                general: GeneralRegisters::new(registers),
                extended: &mut self.extended,
                fetched: Fetched::No,
            };
            modelled = operands::references(instruction, &mut self.factory, &mut state, &mut self.references);
        }
        Attempt { ip, instruction, rax: registers.rax, modelled }
    }

    /// The instruction at `ip`. Its bytes are read at every step, because programs may change code;
    /// only the decoded instruction is cached.
    fn decode(&mut self, ip: u64) -> Option<Instruction> {
        let mut bytes = [0; 15];
        let length = self.tracee.read(ip, &mut bytes);
        if let Some((known, instruction)) = self.decoded.get(&ip) {
            if *known == bytes {
                return Some(*instruction);
            }
        }
        let instruction = Decoder::with_ip(64, &bytes[..length], ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        self.decoded.insert(ip, (bytes, instruction));
        Some(instruction)
    }

    /// Replaces the number of an `rseq` call by an invalid one, so that the kernel returns ENOSYS.
    /// With a registered area the kernel could restart code without the engine's knowledge, so
    /// neither twin allows one.
    fn refuse_rseq(&mut self, attempt: &Attempt, mut registers: user_regs_struct) -> Result<(), TraceError> {
        if attempt.mnemonic() == Some(Mnemonic::Syscall) && attempt.rax == libc::SYS_rseq as u64 {
            registers.rax = u64::MAX;
            self.tracee.set_registers(&registers).map_err(while_doing("refuse rseq"))?;
        }
        Ok(())
    }

    /// Ends the run. The last instruction has retired if it is the system call that ended the
    /// program.
    fn end(mut self, attempt: &Attempt, injected: i32, exit: Exit) -> RunTotals {
        if injected == 0 && attempt.is_system_call() {
            self.retire(attempt);
        }
        self.outcome.exit = exit;
        self.outcome
    }

    /// Handles an exec: its system call has retired. The return from the kernel is still a step,
    /// which executes no instruction.
    fn after_exec(&mut self, attempt: &Attempt) -> Result<(), TraceError> {
        self.retire(attempt);
        self.decoded.clear();
        let entry = self.tracee.registers().map_err(while_doing("read registers"))?.rip;
        self.tracee.step(0).map_err(while_doing("step the program"))?;
        let now = self.tracee.registers().map_err(while_doing("read registers"))?.rip;
        if now != entry {
            return Err(while_doing("follow exec")(io::Error::other("the first instruction went by unseen")));
        }
        Ok(())
    }

    fn after_stop(&mut self, attempt: &Attempt, injected: i32, signal: i32) -> Result<(), TraceError> {
        let plain = signal == libc::SIGTRAP && injected == 0 && !attempt.may_trap_itself();
        let (verdict, deliver) = if plain { (StopVerdict::Retired, 0) } else { self.judge(attempt, signal)? };
        self.signal = deliver;
        match verdict {
            StopVerdict::Retired => self.retired(attempt)?,
            StopVerdict::Faulted => {
                self.emit(attempt, StepEnding::Faulted);
                self.in_block = 0;
            }
            StopVerdict::NotAttempted => {}
            StopVerdict::Diverted => self.in_block = 0,
        }
        Ok(())
    }

    /// Decides whether a stop is a completed step, a fault, a signal that came before the
    /// instruction, or the entry of a handler. Also returns the signal to deliver.
    fn judge(&self, attempt: &Attempt, signal: i32) -> Result<(StopVerdict, i32), TraceError> {
        /// `si_code` of the kernel's stop at a handler's first instruction.
        const HANDLER_ENTERED: i32 = libc::SIGTRAP;
        let Some(code) = self.tracee.signal_code() else {
            // In a group stop ptrace(2) allows the tracer to step on.
            return Ok((StopVerdict::NotAttempted, 0));
        };
        let synchronous = code > 0;
        let moved = || -> Result<bool, TraceError> {
            Ok(self.tracee.registers().map_err(while_doing("read registers"))?.rip != attempt.ip)
        };
        Ok(match signal {
            libc::SIGTRAP if code == HANDLER_ENTERED => (StopVerdict::Diverted, 0),
            libc::SIGTRAP if synchronous && !attempt.is_breakpoint() => (StopVerdict::Retired, 0),
            libc::SIGTRAP if synchronous => (StopVerdict::Retired, signal),
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL if synchronous => {
                (StopVerdict::Faulted, signal)
            }
            _ if moved()? => (StopVerdict::Retired, signal),
            _ => (StopVerdict::NotAttempted, signal),
        })
    }

    /// Handles a completed step. For a repeated string instruction it may be one iteration of many.
    fn retired(&mut self, attempt: &Attempt) -> Result<(), TraceError> {
        let Some(instruction) = &attempt.instruction else { return Ok(()) };
        if operands::repeats(instruction) {
            let now = self.tracee.registers().map_err(while_doing("read registers"))?.rip;
            if now == attempt.ip {
                self.outcome.repeats += 1;
                self.emit(attempt, StepEnding::Iterated);
                self.repeating = Some(attempt.ip);
                return Ok(());
            }
        }
        self.hide_trap_flag(attempt)?;
        self.retire(attempt);
        Ok(())
    }

    /// Counts the instruction, and ends the block if it ends one.
    fn retire(&mut self, attempt: &Attempt) {
        self.emit(attempt, StepEnding::Retired);
        self.outcome.instructions += 1;
        let flow = attempt.instruction.map_or(FlowControl::Next, |instruction| instruction.flow_control());
        if flow != FlowControl::Next || self.in_block == BLOCK_INSTRUCTIONS_MAX {
            self.in_block = 0;
        }
    }

    /// Removes the trap flag, which single steps set, from the word that `pushf` stores and from
    /// r11 after `syscall`.
    fn hide_trap_flag(&mut self, attempt: &Attempt) -> Result<(), TraceError> {
        const TRAP_FLAG: u64 = 0x100;
        match attempt.mnemonic() {
            Some(Mnemonic::Pushf | Mnemonic::Pushfq) => {
                let rsp = self.tracee.registers().map_err(while_doing("read registers"))?.rsp;
                let mut high = [0];
                self.tracee.read(rsp + 1, &mut high);
                self.tracee.write(rsp + 1, &[high[0] & !1]).map_err(while_doing("write the stack"))
            }
            Some(Mnemonic::Syscall) if attempt.rax != libc::SYS_rt_sigreturn as u64 => {
                let mut registers = self.tracee.registers().map_err(while_doing("read registers"))?;
                registers.r11 &= !TRAP_FLAG;
                self.tracee.set_registers(&registers).map_err(while_doing("write registers"))
            }
            _ => Ok(()),
        }
    }

    fn emit(&mut self, attempt: &Attempt, ending: StepEnding) {
        let Some(instruction) = &attempt.instruction else { return };
        let continues = self.repeating.take() == Some(attempt.ip) && self.in_block != 0;
        let starts_block = self.in_block == 0;
        self.in_block += usize::from(!continues);
        self.outcome.blocks += u64::from(starts_block);
        self.outcome.unmodelled +=
            u64::from(attempt.modelled == Modelled::Incompletely && ending == StepEnding::Retired);
        (self.observe)(&SingleStep {
            ip: attempt.ip,
            instruction,
            index: self.outcome.instructions,
            starts_block,
            continues,
            references: &self.references,
            ending,
        });
    }
}

impl Attempt {
    fn mnemonic(&self) -> Option<Mnemonic> {
        self.instruction.map(|instruction| instruction.mnemonic())
    }

    fn is_system_call(&self) -> bool {
        matches!(self.mnemonic(), Some(Mnemonic::Syscall | Mnemonic::Sysenter)) || self.is_interrupt(0x80)
    }

    fn is_interrupt(&self, number: u8) -> bool {
        self.instruction.is_some_and(|instruction| {
            instruction.mnemonic() == Mnemonic::Int && instruction.immediate8() == number
        })
    }

    /// Whether the instruction raises a trap that looks like a step's.
    fn is_breakpoint(&self) -> bool {
        matches!(self.mnemonic(), Some(Mnemonic::Int3 | Mnemonic::Int1)) || self.is_interrupt(3)
    }

    /// Whether a SIGTRAP after this instruction may have another reason than the step.
    fn may_trap_itself(&self) -> bool {
        self.instruction.is_none() || self.is_system_call() || self.is_breakpoint()
    }
}
