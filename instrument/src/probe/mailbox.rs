//! The mailbox: how the program sends a request to the host without a tracer, and waits for the
//! answer.
//!
//! ```text
//!   state   FREE ──▶ 1 ──────────▶ ASKED ────────────▶ ANSWERED ──────────▶ FREE
//!               thread takes   thread writes the   host answers and    thread reads the
//!               the mailbox    request, wakes      wakes the thread    answer
//!                              the host, sleeps
//! ```
//!
//! The trampoline saves all registers that a function may change, writes the request
//! ([`HostRequest`]) into shared memory, wakes the host by a futex, and sleeps on the futex until
//! the host has answered.
//!
//! **Invariant.** Every wait ends. If the host is gone, the first request waits for a minute and
//! closes the mailbox, and the program goes on without probes for new code. If a thread is killed
//! while it has the mailbox, the host frees the mailbox; without a host, the next request closes it
//! after a minute. **Leaves out** a signal handler that interrupts a request and makes a request
//! itself: it waits in vain for the interrupted one, for a minute.

use crate::target::memory::Shared;
use assembler::{Alu, Assembler, Condition, Gpr, Jump, Memory, Size};

/// Bytes of the mailbox, which lies before the counters.
pub(super) const BYTES: usize = 4096;

/// Offset in the mailbox of its state.
pub(super) const STATE: usize = 0;
/// Offset in the mailbox of the process that makes a request.
pub(super) const PID: usize = 4;
/// Offset in the mailbox of the thread that makes a request.
pub(super) const TID: usize = 8;
/// Offset in the mailbox of the request's kind.
pub(super) const KIND: usize = 12;
/// Offset in the mailbox of the longest wait for an answer, in seconds and nanoseconds.
const PATIENCE: usize = 16;
/// Seconds of the longest wait. On a very busy machine the host may be scheduled only after
/// seconds.
const PATIENCE_S: u64 = 60;
/// Offset in the mailbox of the number of the process image that makes a request.
pub(super) const IMAGE: usize = 32;
/// Offset in the mailbox of the host's answer, a block of counters.
pub(super) const ANSWER: usize = 36;
/// Offset in the mailbox of the lowest number of a block of counters that never had an owner.
pub(super) const NEXT: usize = 40;
/// Offset in the mailbox of one wait for the mailbox, in seconds and nanoseconds.
const TURN: usize = 48;
/// Nanoseconds of one wait for the mailbox while another request has it.
const TURN_NS: u64 = 10_000_000;
/// The most waits for the mailbox.
const TURNS_MAX: u32 = (PATIENCE_S * 1_000_000_000 / TURN_NS) as u32;
/// Offset in the mailbox of a word that is not 0 if the mailbox is closed, so that no request is
/// answered. The host sets it at its end, and a thread sets it after it has waited in vain.
pub(super) const CLOSED: usize = 44;

/// Value of [`STATE`]: no request is made. The value 1 means that a thread is writing a request.
pub(super) const FREE: u32 = 0;
/// Value of [`STATE`]: a request waits for its answer.
pub(super) const ASKED: u32 = 2;
/// Value of [`STATE`]: the host has answered the request.
pub(super) const ANSWERED: u32 = 3;

/// Offset of the saved `rsi` on the stack during a request.
const SAVED_RSI: u8 = 40;

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostRequest {
    /// Files were mapped or unmapped.
    Mapped = 1,
    /// A thread without counters of its own may be made.
    Lock = 2,
    /// A thread needs a block of counters, and none is left that never had an owner. The answer is
    /// the block's number in `rsi`, or 0 if there is none.
    Block = 3,
    /// The thread is about to execute another program.
    Exec = 4,
}

impl HostRequest {
    /// The kind with this number.
    pub(super) fn numbered(number: u32) -> HostRequest {
        [HostRequest::Mapped, HostRequest::Lock, HostRequest::Block, HostRequest::Exec]
            .into_iter()
            .find(|request| *request as u32 == number)
            .unwrap_or(HostRequest::Mapped)
    }
}

/// The destination of a request, and the image that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MailboxAddress {
    /// Address of the mailbox in the program; below 2 GB.
    pub(super) mailbox: u64,
    /// The image's number.
    pub(super) image: u32,
}

pub(super) fn prepare(shared: &Shared) {
    shared.write64(PATIENCE, PATIENCE_S);
    shared.write64(TURN + 8, TURN_NS);
    shared.write32(NEXT, 1);
}

/// Numbers of system calls.
const GETPID: u64 = 39;
const GETTID: u64 = 186;
const FUTEX: u64 = 202;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;

/// Registers that the code uses or that system calls change, as they are pushed.
const SAVED: [Gpr; 9] =
    [Gpr::RAX, Gpr::RCX, Gpr::RDX, Gpr::RSI, Gpr::RDI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];

/// Code that makes a request and waits for its answer. It is position-independent. If the mailbox
/// is closed, it makes no request. A request for a block leaves the answer in `rsi`, or 0 if there
/// is none.
pub(super) fn request_code(kind: HostRequest, to: MailboxAddress) -> Vec<u8> {
    let mut code = Assembler::default();
    if kind == HostRequest::Block {
        code.alu(Alu::Xor, Size::Dword, Gpr::RSI, Gpr::RSI);
    }
    code.alu_immediate(Alu::Cmp, Size::Dword, word(to, CLOSED), 0);
    let closed = code.jump_if(Condition::NotEqual);
    SAVED.iter().for_each(|&register| code.push(register));
    let given_up = until_free(&mut code, to);
    ask(&mut code, kind, to);
    let lost = until_answered(&mut code, to);
    if kind == HostRequest::Block {
        // The answer replaces the saved rsi, which is restored last.
        code.mov_from(Size::Dword, Gpr::RAX, word(to, ANSWER));
        code.mov(Size::Qword, Memory::at(Gpr::RSP).plus(SAVED_RSI.into()), Gpr::RAX);
    }
    code.mov_to_immediate(Size::Dword, word(to, STATE), FREE as i32);
    given_up.into_iter().chain([lost]).for_each(|jump| code.land(jump));
    SAVED.iter().rev().for_each(|&register| code.pop(register));
    code.land(closed);
    code.into_bytes()
}

/// A word of the mailbox, which lies below 2 GB.
fn word(to: MailboxAddress, offset: usize) -> Memory {
    Memory::absolute((to.mailbox as usize + offset) as i32)
}

/// Emits a system call; its arguments must be in their registers.
pub(super) fn system_call(code: &mut Assembler, number: u64) {
    code.mov_immediate(Gpr::RAX, number);
    code.system_call();
}

/// Emits `futex(state, operation, value, time)`; `edx` must hold the value.
fn futex(code: &mut Assembler, to: MailboxAddress, operation: u64, time: usize) {
    code.mov_immediate(Gpr::RDI, to.mailbox + STATE as u64);
    code.mov_immediate(Gpr::RSI, operation);
    code.mov_immediate(Gpr::R10, to.mailbox + time as u64);
    system_call(code, FUTEX);
}

/// Emits code that closes the mailbox.
fn close(code: &mut Assembler, to: MailboxAddress) {
    code.mov_to_immediate(Size::Dword, word(to, CLOSED), 1);
}

/// Emits code that writes the request and wakes the host.
fn ask(code: &mut Assembler, kind: HostRequest, to: MailboxAddress) {
    system_call(code, GETPID);
    code.mov(Size::Dword, word(to, PID), Gpr::RAX);
    system_call(code, GETTID);
    code.mov(Size::Dword, word(to, TID), Gpr::RAX);
    code.mov_to_immediate(Size::Dword, word(to, IMAGE), to.image as i32);
    code.mov_to_immediate(Size::Dword, word(to, KIND), kind as i32);
    code.mov_to_immediate(Size::Dword, word(to, STATE), ASKED as i32);
    code.mov_immediate(Gpr::RDX, 1);
    futex(code, to, FUTEX_WAKE, PATIENCE);
}

/// Emits code that takes the mailbox. While another request has it, the thread sleeps for a turn at
/// a time. That request's thread may have been killed, and the host too. So after [`TURNS_MAX`]
/// turns, or if the mailbox is closed, the code takes the jumps that are returned.
fn until_free(code: &mut Assembler, to: MailboxAddress) -> [Jump; 2] {
    code.mov_immediate(Gpr::R8, TURNS_MAX.into());
    let again = code.here();
    code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
    code.mov_immediate(Gpr::RCX, 1);
    code.lock();
    code.compare_exchange(Size::Dword, word(to, STATE), Gpr::RCX);
    let taken = code.jump_if(Condition::Equal);
    // The exchange left the mailbox's state in eax; sleep as long as it stays the same.
    code.mov(Size::Dword, Gpr::RDX, Gpr::RAX);
    futex(code, to, FUTEX_WAIT, TURN);
    code.alu_immediate(Alu::Cmp, Size::Dword, word(to, CLOSED), 0);
    let closed = code.jump_if(Condition::NotEqual);
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RAX, -libc::ETIMEDOUT);
    code.jump_back_if(Condition::NotEqual, again);
    code.decrement(Size::Dword, Gpr::R8);
    code.jump_back_if(Condition::NotEqual, again);
    close(code, to);
    let given_up = code.jump();
    code.land(taken);
    [closed, given_up]
}

/// Emits code that sleeps until the request is answered or the time is up. If another request has
/// taken the mailbox meanwhile, the code takes the jump that is returned.
fn until_answered(code: &mut Assembler, to: MailboxAddress) -> Jump {
    let again = code.here();
    code.mov_from(Size::Dword, Gpr::RAX, word(to, STATE));
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RAX, ANSWERED as i32);
    let answered = code.jump_if(Condition::Equal);
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RAX, ASKED as i32);
    // In any other state the host has freed the mailbox, and another request may have it.
    let lost = code.jump_if(Condition::NotEqual);
    code.mov_immediate(Gpr::RDX, ASKED.into());
    futex(code, to, FUTEX_WAIT, PATIENCE);
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RAX, -libc::ETIMEDOUT);
    code.jump_back_if(Condition::NotEqual, again);
    close(code, to);
    code.land(answered);
    lost
}

/// Code that makes a request at the entry of a function, if the function's first argument is one of
/// `numbers`.
pub(super) fn request_code_if(numbers: &[u32], kind: HostRequest, to: MailboxAddress) -> Vec<u8> {
    let mut code = Assembler::default();
    let compare = |&number: &u32| {
        code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RDI, number as i32);
        code.jump_if(Condition::Equal)
    };
    let wanted: Vec<Jump> = numbers.iter().map(compare).collect();
    let past = code.jump();
    wanted.into_iter().for_each(|jump| code.land(jump));
    code.extend(&request_code(kind, to));
    code.land(past);
    code.into_bytes()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

    const TO: MailboxAddress = MailboxAddress { mailbox: 0x5000_0000, image: 3 };

    /// The code's instructions; all its jumps lead to one of them, or behind the last.
    pub(in super::super) fn sound(code: &[u8]) -> Vec<Instruction> {
        let all: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter().collect();
        assert!(all.iter().all(|instruction| !instruction.is_invalid()));
        assert_eq!(all.last().unwrap().next_ip(), code.len() as u64);
        let jumps = all.iter().filter(|instruction| {
            instruction.is_jcc_short_or_near()
                || instruction.flow_control() == FlowControl::UnconditionalBranch
        });
        for target in jumps.map(Instruction::near_branch_target) {
            let meets =
                target == code.len() as u64 || all.iter().any(|instruction| instruction.ip() == target);
            assert!(meets, "{target:#x}");
        }
        all
    }

    #[test]
    fn the_code_is_whole_and_its_jumps_meet_instructions() {
        for kind in [HostRequest::Mapped, HostRequest::Lock, HostRequest::Block, HostRequest::Exec] {
            let all = sound(&request_code(kind, TO));
            let count = |mnemonic: Mnemonic| {
                all.iter().filter(|instruction| instruction.mnemonic() == mnemonic).count()
            };
            assert_eq!((count(Mnemonic::Push), count(Mnemonic::Pop), count(Mnemonic::Syscall)), (9, 9, 5));
            assert_eq!(HostRequest::numbered(kind as u32), kind);
        }
    }

    #[test]
    fn an_answer_is_put_where_rsi_is_taken_from() {
        let all = sound(&request_code(HostRequest::Block, TO));
        let pushed: Vec<_> = all
            .iter()
            .filter(|instruction| instruction.mnemonic() == Mnemonic::Push)
            .map(Instruction::op0_register)
            .collect();
        let rsi = pushed.iter().position(|register| *register == iced_x86::Register::RSI).unwrap();
        assert_eq!(usize::from(SAVED_RSI), 8 * (pushed.len() - 1 - rsi));
    }

    #[test]
    fn conditions_lead_to_the_request_or_past_it() {
        let request_bytes = request_code(HostRequest::Lock, TO).len();
        let code = request_code_if(&[56, 57, 435], HostRequest::Lock, TO);
        let all = sound(&code);
        let start = (code.len() - request_bytes) as u64;
        assert!(all[..6]
            .iter()
            .filter(|instruction| instruction.is_jcc_short_or_near())
            .all(|instruction| instruction.near_branch_target() == start));
        assert_eq!(all[6].near_branch_target(), code.len() as u64);
    }
}
