//! The engine's slow twin: runs a program one instruction at a time and says exactly what it did.
//!
//! The processor's own single-step trap decides what an instruction is and whether it retired; the
//! references come from the decoded instruction and the registers before it. That is a page of
//! ideas and 200 times slower than the engine, hence the truth that the engine is held against:
//! instructions, order and address of every data reference, instruction lines. Implements the
//! definition in [`event`]. Differences from a native run: addresses are not randomised, `rseq`
//! answers ENOSYS (the engine refuses it too), and the trap flag is hidden again where the hardware
//! would show it (`pushf`, `r11` after `syscall`). Left out: threads and forked children (they run
//! on, uncounted), programs that set the trap flag themselves, and transactions (`xbegin` aborts at
//! once, as under the engine). Source: ptrace(2).

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

/// What became of an attempt at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnding {
    /// It retired; counted.
    Retired,
    /// One iteration of a repeated string instruction, and more to come.
    Iterated,
    /// It raised a fault and will be attempted again if a handler returns to it.
    Faulted,
}

/// One attempt at one instruction (or at one iteration of a repeated one).
#[derive(Debug)]
pub struct SingleStep<'a> {
    /// Address of the instruction.
    pub ip: u64,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Instructions retired before it.
    pub index: u64,
    /// Whether a dynamic basic block starts here.
    pub starts_block: bool,
    /// Whether this goes on with the repeated instruction of the last step: its bytes are not
    /// fetched again.
    pub continues: bool,
    /// What it touched, in order.
    pub references: &'a [Reference],
    /// How it ended.
    pub ending: StepEnding,
}

impl SingleStep<'_> {
    /// First bytes of the instruction lines that the instruction's bytes touch, ascending; none
    /// while a repetition goes on.
    pub fn lines(&self, line_bytes: u64) -> impl Iterator<Item = u64> {
        let first = self.ip / line_bytes * line_bytes;
        let end = if self.continues { first } else { self.ip + self.instruction.len() as u64 };
        (first..end).step_by(line_bytes as usize)
    }
}

/// What a whole run amounted to.
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
    /// Instructions whose references are not known completely (0 unless the program runs something
    /// very new).
    pub unmodelled: u64,
}

/// A program that could not be run, or was lost on the way.
#[derive(Debug)]
pub struct TraceError {
    doing: &'static str,
    cause: io::Error,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.cause)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already holds the system's words: a printed chain would repeat them.
        self.cause.source()
    }
}

/// Says what was being done when a system call failed.
fn while_doing(doing: &'static str) -> impl Fn(io::Error) -> TraceError {
    move |cause| TraceError { doing, cause }
}

/// Runs `command` to its end and shows every step to `observe`.
///
/// # Errors
/// When the program cannot be started (not found, not executable, ptrace or `personality` refused)
/// or a ptrace request fails.
pub fn run(command: &Command, observe: &mut dyn FnMut(&SingleStep<'_>)) -> Result<RunTotals, TraceError> {
    let tracee = Tracee::launch(command).map_err(while_doing("start the program"))?;
    SteppedRun::new(tracee, observe).finish()
}

/// Runs `command` and also says how often each instruction address retired.
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

/// The stopped program as the operand decoder sees it: vector registers are fetched when first
/// asked for.
struct StoppedProgram<'a> {
    tracee: &'a Tracee,
    general: GeneralRegisters,
    extended: &'a mut ExtendedRegisters,
    fetched: Fetched,
}

/// Whether the vector registers in [`StoppedProgram`] are those of this stop.
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

/// An instruction about to be attempted.
#[derive(Clone, Copy)]
struct Attempt {
    ip: u64,
    /// `None` where there are no readable or no valid bytes: the attempt can only fault.
    instruction: Option<Instruction>,
    /// `rax` as the program had it: the number of a system call.
    rax: u64,
    modelled: Modelled,
}

/// What the last stop said about the attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopVerdict {
    Retired,
    Faulted,
    /// A signal came first; if no handler takes it, the block goes on.
    NotAttempted,
    /// A handler was entered instead.
    Diverted,
}

/// One walk through a program.
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
    /// Instructions attempted in the current block; 0 when the next one starts a block.
    in_block: usize,
    /// The repeated instruction that is under way.
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

    /// Decodes the next instruction and notes what it will touch.
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

    /// The bytes are read at every step, since programs write code; only the decoding is
    /// remembered.
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

    /// A registered rseq area would make the kernel restart code behind the engine's back, so
    /// neither twin lets one exist: an invalid system call number answers ENOSYS by itself.
    fn refuse_rseq(&mut self, attempt: &Attempt, mut registers: user_regs_struct) -> Result<(), TraceError> {
        if attempt.mnemonic() == Some(Mnemonic::Syscall) && attempt.rax == libc::SYS_rseq as u64 {
            registers.rax = u64::MAX;
            self.tracee.set_registers(&registers).map_err(while_doing("refuse rseq"))?;
        }
        Ok(())
    }

    /// The program's last instruction: it retired if it asked for the end itself.
    fn end(mut self, attempt: &Attempt, injected: i32, exit: Exit) -> RunTotals {
        if injected == 0 && attempt.is_system_call() {
            self.retire(attempt);
        }
        self.outcome.exit = exit;
        self.outcome
    }

    /// The system call that made another program of this one has retired; its way out of the kernel
    /// is still a step, which executes nothing.
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

    /// Tells a completed step from a fault, from a signal that came before the instruction, and
    /// from the entry of a handler.
    fn judge(&self, attempt: &Attempt, signal: i32) -> Result<(StopVerdict, i32), TraceError> {
        /// `si_code` of the stop that the kernel makes on a handler's first instruction.
        const HANDLER_ENTERED: i32 = libc::SIGTRAP;
        let Some(code) = self.tracee.signal_code() else {
            return Ok((StopVerdict::NotAttempted, 0)); // a group stop: ptrace(2) lets the tracer go on
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

    /// A completed step, which for a repeated string instruction may be one iteration of many.
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

    /// Counts the instruction and closes the block where it ends one.
    fn retire(&mut self, attempt: &Attempt) {
        self.emit(attempt, StepEnding::Retired);
        self.outcome.instructions += 1;
        let flow = attempt.instruction.map_or(FlowControl::Next, |i| i.flow_control());
        if flow != FlowControl::Next || self.in_block == BLOCK_INSTRUCTIONS_MAX {
            self.in_block = 0;
        }
    }

    /// The trap flag that makes us see each step is in what `pushf` stores and in what `syscall`
    /// leaves in r11.
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
        self.instruction.map(|i| i.mnemonic())
    }

    fn is_system_call(&self) -> bool {
        matches!(self.mnemonic(), Some(Mnemonic::Syscall | Mnemonic::Sysenter)) || self.is_interrupt(0x80)
    }

    fn is_interrupt(&self, number: u8) -> bool {
        self.instruction.is_some_and(|i| i.mnemonic() == Mnemonic::Int && i.immediate8() == number)
    }

    /// Instructions whose own trap looks like a step's.
    fn is_breakpoint(&self) -> bool {
        matches!(self.mnemonic(), Some(Mnemonic::Int3 | Mnemonic::Int1)) || self.is_interrupt(3)
    }

    /// Whether a SIGTRAP after this instruction needs a second look.
    fn may_trap_itself(&self) -> bool {
        self.instruction.is_none() || self.is_system_call() || self.is_breakpoint()
    }
}
