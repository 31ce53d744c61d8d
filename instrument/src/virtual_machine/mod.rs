//! The machine that a program is shown in place of the one that it runs on.
//!
//! **The problem.** A C library picks its string routines by CPUID, a hash map takes its seed from
//! the system, a runtime asks how many processors there are. So the same program executes other
//! instructions on another machine, and in the next run.
//!
//! **The idea.** Whatever tells machines and runs apart is answered by the host: instructions that
//! ask the processor stop the thread as special system calls do. This room knows the answers: which
//! [`Processor`] is declared, what time it is (`clock`), which random bytes come next
//! (`random`). It knows neither threads nor stops; `host` asks it.

pub(crate) mod clock;
mod feature;
pub(crate) mod files;
pub(crate) mod leaves;
mod processor;
pub(crate) mod random;
mod valgrind;

pub use processor::{Processor, PROCESSORS};

use iced_x86::Mnemonic;
use leaves::{machine_states, Leaves};

/// Whether a run is to repeat exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeats {
    /// Clocks, random bytes and numbers of processes are the system's.
    #[default]
    AsNatively,
    /// They are equal in every run.
    Exactly,
}

/// The machine that a program is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualMachine {
    /// The processor that is declared; `None` for the machine's own.
    pub processor: Option<&'static Processor>,
    /// Whether the run is to repeat exactly.
    pub repeats: Repeats,
    /// The order of threads.
    pub threads: ThreadOrder,
    /// Where the stack of a run that repeats begins.
    pub layout: Layout,
}

/// The order of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// They run at the same time.
    #[default]
    AsNatively,
    /// Those of the program run one at a time; a turn ends where a thread may wait. The run must
    /// repeat exactly.
    OneAtATime,
    /// Those of the program run one at a time; a turn ends where a thread may wait, and at the
    /// first check of its ring behind this many instructions. What a turn has recorded is told
    /// before the next turn begins, so that an observer sees all records in the order in which
    /// they were made. The run must have a tool with the full stream and running sums.
    InTurnsOf(u32),
}

/// A place of the stack's beginning, by a number: 0 is the usual one, others are spread over
/// sixteen pages at random. Natively the environment's length decides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout(pub u32);

impl Layout {
    /// How much lower than usual the stack begins.
    pub(crate) fn shift_bytes(self) -> u64 {
        const PLACES: u64 = 4096;
        if self.0 == 0 {
            return 0;
        }
        16 * (1 + random::Random::numbered(self.0.into()).word() % (PLACES - 1))
    }
}

impl VirtualMachine {
    /// The processor's answers. A run that repeats has a processor in any case.
    pub(crate) fn leaves(&self) -> Option<Leaves> {
        match (self.processor, self.repeats) {
            (Some(processor), _) => Some(processor.leaves()),
            (None, Repeats::Exactly) => Some(Processor::host().leaves()),
            (None, Repeats::AsNatively) => None,
        }
    }

    /// The variables that the environment has beyond the caller's; `None` if it is the caller's.
    pub(crate) fn environment(&self) -> Option<Vec<(&'static str, String)>> {
        let is_valgrinds = self.processor.is_some_and(Processor::is_valgrinds);
        is_valgrinds.then(valgrind::environment)
    }

    /// What a report must say about the machine that is shown.
    pub(crate) fn warning(&self) -> Option<String> {
        let lacks = self.environment()?.iter().all(|(name, _)| *name != valgrind::PRELOAD);
        lacks.then(|| {
            "Valgrind is not installed here, and its library that programs load first is not either: the loader executes \
             fewer instructions than under Valgrind"
                .into()
        })
    }

    /// The instructions that the host answers.
    pub(crate) fn answered(&self) -> Answered {
        let states = self.leaves().map(|leaves| leaves.extended_states());
        Answered {
            processor: states.is_some(),
            repeats: self.repeats == Repeats::Exactly,
            states: states.filter(|&states| states != machine_states()),
        }
    }
}

/// The instructions that stop for the host, which answers them. Generated code depends on nothing
/// else of a virtual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Those that ask what the processor is.
    processor: bool,
    /// Those that read a clock or random bits.
    repeats: bool,
    /// The state components that the declared processor has, if the machine's own has others: then
    /// the instructions that save and restore states are those of the declared one.
    states: Option<u64>,
}

impl Answered {
    /// Whether the host answers an instruction.
    pub(crate) fn has(&self, mnemonic: Mnemonic) -> bool {
        match mnemonic {
            Mnemonic::Cpuid | Mnemonic::Xgetbv => self.processor,
            Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Rdpid | Mnemonic::Rdrand | Mnemonic::Rdseed => {
                self.repeats
            }
            _ => self.states.is_some() && handles_states(mnemonic),
        }
    }

    /// The state components that instructions save and restore.
    pub(crate) fn states(&self) -> u64 {
        self.states.unwrap_or_else(machine_states)
    }

    /// What distinguishes generated code, for those who keep it; `None` for a run without a virtual
    /// machine.
    pub(crate) fn setting(&self) -> Option<String> {
        (*self != Answered::default()).then(|| format!("{self:?}"))
    }
}

/// Whether an instruction saves or restores the components that `edx:eax` requests.
pub(crate) fn handles_states(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64 | Xrstor | Xrstor64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_options_answers_nothing() {
        let plain = VirtualMachine::default().answered();
        assert!(!plain.has(Mnemonic::Cpuid) && !plain.has(Mnemonic::Rdtsc) && plain.setting().is_none());
    }

    #[test]
    fn a_declared_processor_is_asked_and_clocks_are_not() {
        let processor = Some(Processor::host());
        let answered = VirtualMachine { processor, ..VirtualMachine::default() }.answered();
        assert!(answered.has(Mnemonic::Cpuid) && !answered.has(Mnemonic::Rdtsc));
        assert!(!answered.has(Mnemonic::Xsave), "the host's states are its own");
        let exact = VirtualMachine { repeats: Repeats::Exactly, ..VirtualMachine::default() }.answered();
        assert!(exact.has(Mnemonic::Cpuid) && exact.has(Mnemonic::Rdrand));
        assert_ne!(exact.setting(), answered.setting());
    }
}
