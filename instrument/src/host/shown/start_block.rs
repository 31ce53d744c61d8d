//! What a program finds above its stack pointer when it starts: the auxiliary vector.
//!
//! The vector tells a program the processor's abilities, sixteen random bytes and where the vdso
//! is. The vdso reads clocks without a system call, so a run that repeats does not show it: the C
//! library then makes the calls.

use super::state::Open;
use crate::host::state::Host;
use crate::target::auxiliary::{Change, Key, StartBlock};
use crate::target::ptrace::{self, Registers};
use crate::virtual_machine::leaves::Leaves;

/// The bytes that a signal's frame needs at least, on a processor with AVX-512.
const FRAME_BYTES: u64 = 0xe30;

impl Host<'_> {
    /// Writes the shown machine's facts into the auxiliary vector of a program that starts.
    pub(super) fn write_start_block(&mut self, pid: i32) {
        let Some(leaves) = &self.shown.leaves else { return };
        let is_host = matches!(leaves, Leaves::Host);
        let [.., abilities] = leaves.answer(1, 0);
        let is_valgrinds = self.shown.is_valgrinds();
        let hides_vdso = self.shown.repeats() || is_valgrinds;
        let Some(registers) = ptrace::registers(pid) else { return };
        let Some(mut block) = StartBlock::read(pid, registers.rsp) else { return };
        block.change(|key| match key {
            Key::SYSINFO_EHDR if hides_vdso => Change::Remove,
            Key::HWCAP2 | Key::RSEQ_FEATURE_SIZE | Key::RSEQ_ALIGN | Key::MINSIGSTKSZ if is_valgrinds => {
                Change::Remove
            }
            Key::HWCAP if !is_host => Change::To(abilities.into()),
            Key::HWCAP2 if !is_host => Change::To(0),
            Key::MINSIGSTKSZ if !is_host => Change::To(FRAME_BYTES),
            _ => Change::Nothing,
        });
        if !self.shown.repeats() {
            block.write_in_place();
            return;
        }
        let mut random = [0u8; 16];
        self.shown.generator(pid).fill(&mut random);
        match block.rebuild(random, self.shown.machine.layout.shift_bytes()) {
            Some(rsp) => ptrace::set_registers(pid, &Registers { rsp, ..registers }),
            None => self.shown.leave_open(Open::StartBlock),
        }
    }
}
