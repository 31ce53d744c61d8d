//! Hand-overs: how a thread asks the host for code that does not exist yet.
//!
//! **The problem.** A breakpoint stops a thread by way of a signal and of ptrace. That takes the
//! kernel twice the time of putting one thread to sleep and waking another.
//!
//! **The idea.** The thread posts its request in its context, which the host maps too, rings the
//! run's bell, and sleeps on the request until it is answered (futex(2)):
//!
//! ```text
//!   thread                                  host
//!   EXIT = number                           sleeps on the bell
//!   save the registers that calls change
//!   POSTED = 1, PLACE = 1, bell = 1, wake ─▶ bell = 0, finds PLACE and POSTED, translates,
//!   sleep while POSTED = 1                  CONTINUE = code, EXIT = 0,
//!   restore, jump to CONTINUE ◀──────────── POSTED = 0, wakes the thread if it is ASLEEP
//! ```
//!
//! There may be hundreds of threads. So each has a place beside the bell (`target::bell`), and the
//! host looks at those threads only whose place was written.
//!
//! The host decides by a word of the context ([`context::HAND_OVER`]) whether a thread posts or
//! stops by a breakpoint. It can also answer a request with the address of the breakpoint, where it
//! must see registers or change them: the exit's number then stays, and the thread stops.
//!
//! **Invariants.** The routine changes no flags and no memory but the context and the bell; `xmm`
//! registers are not used. A thread that is stepped never sleeps here, because the host answers
//! after each step. No order between the stores needs a fence: a thread stores ASLEEP before the
//! kernel compares POSTED, and the host clears POSTED before it reads ASLEEP; both the kernel's
//! comparison and the host's exchange are fences. **Leaves out** system calls that the host must
//! see, which always stop by a breakpoint. Source: futex(2).

use super::assembler::{reg, Assembler};
use super::fragment::EXIT_RING;
use crate::target::layout::context;
use assembler::{Gpr, Memory, Size};

/// The registers that the routine uses, or that a system call changes.
const USED: [Gpr; 7] = [Gpr::RCX, Gpr::RAX, Gpr::RDX, Gpr::RSI, Gpr::RDI, Gpr::R10, Gpr::R11];

/// Emits a jump to the routine that the host has chosen for the thread.
pub(crate) fn enter(code: &mut Assembler) {
    code.jump_context(context::HAND_OVER);
}

/// Emits the hand-over of a full ring; the code behind it runs next.
pub(crate) fn leave_full_ring(code: &mut Assembler) {
    // The routine needs the address behind the jump, and the code may lie anywhere.
    code.store(reg::RCX, context::RING_SAVED);
    code.code().lea(Size::Qword, Gpr::RCX, Memory::rip(0));
    let from = code.len();
    code.jump_context(context::LEAVE_RING);
    code.set_displacement(from - 4, (code.len() - from) as i32);
}

/// Emits the routine that hands a full ring over. In rcx is the address where the thread goes on.
pub(crate) fn full_ring(code: &mut Assembler) {
    code.store(reg::RCX, context::CONTINUE);
    code.load(reg::RCX, context::RING_SAVED);
    code.store_imm32(context::EXIT, EXIT_RING);
    enter(code);
}

/// Emits a stop by a breakpoint, behind which the thread goes on where the host has said.
pub(crate) fn trap(code: &mut Assembler) {
    code.stop();
    code.jump_context(context::CONTINUE);
}

/// Emits the routine that posts the request of [`context::EXIT`], waits for the answer, and goes on
/// where the host has said. `bell` is the address of the run's bell, below 2 GB.
pub(crate) fn post(code: &mut Assembler, bell: u64) {
    let slot = |index: usize| context::HAND_OVER_SAVED + 8 * index as u32;
    for (index, register) in USED.iter().enumerate() {
        code.store(register.number(), slot(index));
    }
    code.store_imm32(context::ASLEEP, 0);
    code.store_imm32(context::POSTED, 1);
    // The host looks for requests at the places that are not 0.
    code.load(Gpr::RDI.number(), context::BELL_PLACE);
    code.code().mov_to_immediate(Size::Dword, Memory::at(Gpr::RDI), 1);
    // It sleeps while the bell is 0.
    code.mov_imm(Gpr::RDI.number(), bell);
    code.code().mov_to_immediate(Size::Dword, Memory::at(Gpr::RDI), 1);
    futex(code, libc::FUTEX_WAKE, 1);
    // A wait may end before the request is answered.
    let again = code.code().here();
    code.load32(reg::RCX, context::POSTED);
    let answered = code.code().short_jump_if_rcx_zero();
    code.store_imm32(context::ASLEEP, 1);
    code.load(Gpr::RDI.number(), context::POSTED_ADDRESS);
    futex(code, libc::FUTEX_WAIT, 1);
    code.code().jump_back(again);
    code.code().land_short(answered);
    for (index, register) in USED.iter().enumerate() {
        code.load(register.number(), slot(index));
    }
    code.jump_context(context::CONTINUE);
}

/// Emits `futex(rdi, operation, value)` without a timeout.
fn futex(code: &mut Assembler, operation: i32, value: u64) {
    code.mov_imm(Gpr::RSI.number(), operation as u64);
    code.mov_imm(Gpr::RDX.number(), value);
    code.mov_imm(Gpr::R10.number(), 0);
    code.mov_imm(reg::RAX, libc::SYS_futex as u64);
    code.code().system_call();
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

    #[test]
    fn a_post_changes_no_flags_and_gives_back_what_it_uses() {
        let mut code = Assembler::default();
        post(&mut code, 0x6001_0000);
        let decoded: Vec<_> =
            Decoder::with_ip(64, code.bytes(), 0x1000, DecoderOptions::NONE).iter().collect();
        assert!(decoded
            .iter()
            .all(|instruction| instruction.rflags_modified() == 0
                || instruction.mnemonic() == Mnemonic::Syscall));
        let calls = decoded.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Syscall);
        assert_eq!(calls.count(), 2, "one wakes the host, one waits");
        // Each saved register is loaded from its own slot behind the wait.
        let moves = |loads: bool| {
            let of = decoded.iter().filter(move |instruction| {
                let slot = instruction.memory_displacement32().wrapping_sub(context::HAND_OVER_SAVED);
                instruction.mnemonic() == Mnemonic::Mov
                    && slot < 8 * USED.len() as u32
                    && (instruction.op1_kind() == iced_x86::OpKind::Memory) == loads
            });
            of.map(move |instruction| {
                let register = if loads { instruction.op0_register() } else { instruction.op1_register() };
                (instruction.memory_displacement32(), register)
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(moves(false).len(), USED.len());
        assert_eq!(moves(false), moves(true));
        assert_eq!(decoded.last().map(|last| last.flow_control()), Some(FlowControl::IndirectBranch));
    }
}
