//! How the program tells the host something without a tracer, and waits until it is done.
//!
//! Trampolines of their own kind: they save all registers that a function may change, write a request into shared memory, wake the host by a
//! futex, and sleep on it until the host has answered. Four things are told ([`Knock`]). A host that is gone is waited for a minute, once, then the program goes on
//! without it; a program that is killed while it asks is noticed by the host.
//! **Leaves out** a signal handler that interrupts a request and makes one of its own: it would wait for itself.

use crate::memory::Shared;

/// Bytes before the counters.
pub(super) const BYTES: usize = 4096;

/// Word offsets in the mailbox.
pub(super) const STATE: usize = 0;
pub(super) const PID: usize = 4;
pub(super) const TID: usize = 8;
pub(super) const KIND: usize = 12;
/// Seconds and nanoseconds that the program waits at most.
const PATIENCE: usize = 16;
/// On a machine busy enough it takes lightfoot seconds to be scheduled at all.
const PATIENCE_S: u64 = 60;
/// The number of the process image that asks.
pub(super) const IMAGE: usize = 32;
/// The host's answer: a block of counters.
pub(super) const ANSWER: usize = 36;
/// The next block of counters that nobody has had.
pub(super) const NEXT: usize = 40;
/// Not 0: nobody answers any more. Who has waited in vain says so too.
pub(super) const CLOSED: usize = 44;

/// Values of [`STATE`]; 1: somebody writes a request.
pub(super) const FREE: u32 = 0;
pub(super) const ASKED: u32 = 2;
pub(super) const ANSWERED: u32 = 3;

/// Where a request finds `rsi`, as the code it interrupts has it.
const SAVED_RSI: u8 = 40;

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knock {
    /// Files were mapped or unmapped.
    Mapped = 1,
    /// A thread may come that has no counters of its own.
    Lock = 2,
    /// A thread needs a block of counters, and all have had an owner. The answer comes in `rsi`; 0: there is none.
    Block = 3,
    /// The thread is about to execute another program.
    Exec = 4,
}

impl Knock {
    /// The one with that number.
    pub(super) fn numbered(number: u32) -> Knock {
        [Knock::Mapped, Knock::Lock, Knock::Block, Knock::Exec]
            .into_iter()
            .find(|knock| *knock as u32 == number)
            .unwrap_or(Knock::Mapped)
    }
}

/// Where a request goes, and from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Of the mailbox in the program; below 2 GB.
    pub(super) mailbox: u64,
    /// The image's number.
    pub(super) image: u32,
}

pub(super) fn prepare(shared: &Shared) {
    shared.write64(PATIENCE, PATIENCE_S);
    shared.write32(NEXT, 1);
}

/// Code that tells it. It can stand anywhere.
pub(super) fn knock(kind: Knock, to: Address) -> Vec<u8> {
    let word = |offset: usize| (to.mailbox as u32 + offset as u32).to_le_bytes();
    let (state, pid, tid, what, image) = (word(STATE), word(PID), word(TID), word(KIND), word(IMAGE));
    let mut acquire = vec![0x31, 0xc0, 0xb9, 1, 0, 0, 0]; // xor eax, eax; mov ecx, 1
    acquire.extend([&[0xf0, 0x0f, 0xb1, 0x0c, 0x25][..], &state].concat()); // lock cmpxchg [state], ecx
    acquire.extend([0x74, 9]); // je behind the yield
    acquire.extend([0xb8, 24, 0, 0, 0, 0x0f, 0x05]); // sched_yield
    acquire.extend([0xeb, 0u8.wrapping_sub(acquire.len() as u8 + 2)]); // again
    let mut ask = vec![0xb8, 39, 0, 0, 0, 0x0f, 0x05]; // getpid
    ask.extend([&[0x89, 0x04, 0x25][..], &pid].concat()); // mov [pid], eax
    ask.extend([0xb8, 186, 0, 0, 0, 0x0f, 0x05]); // gettid
    ask.extend([&[0x89, 0x04, 0x25][..], &tid].concat());
    ask.extend([&[0xc7, 0x04, 0x25][..], &image, &to.image.to_le_bytes()].concat());
    ask.extend([&[0xc7, 0x04, 0x25][..], &what, &(kind as u32).to_le_bytes()].concat());
    ask.extend([&[0xc7, 0x04, 0x25][..], &state, &ASKED.to_le_bytes()].concat());
    ask.extend([&[0xbf][..], &state].concat()); // mov edi, state
    ask.extend([0xbe, 1, 0, 0, 0, 0xba, 1, 0, 0, 0, 0xb8, 202, 0, 0, 0, 0x0f, 0x05]); // futex wake one
    let mut sleep = [&[0xbf][..], &state].concat(); // mov edi, state
    sleep.extend([0x31, 0xf6, 0xba, 2, 0, 0, 0]); // FUTEX_WAIT while it is 2
    sleep.extend([&[0x41, 0xba][..], &word(PATIENCE)].concat());
    sleep.extend([0xb8, 202, 0, 0, 0, 0x0f, 0x05, 0x83, 0xf8, 0x92]); // cmp eax, -ETIMEDOUT
    let close = [&[0xc7, 0x04, 0x25][..], &word(CLOSED), &[1, 0, 0, 0]].concat(); // mov [closed], 1
    let behind = (sleep.len() + 2 + close.len()) as u8;
    let mut wait = [&[0x8b, 0x04, 0x25][..], &state, &[0x83, 0xf8, 3, 0x74, behind]].concat();
    wait.extend(sleep);
    wait.extend([0x75, 0u8.wrapping_sub(wait.len() as u8 + 2)]);
    wait.extend(close);
    let mut release = Vec::new();
    if kind == Knock::Block {
        release.extend([&[0x8b, 0x04, 0x25][..], &word(ANSWER)].concat()); // mov eax, [answer]
        release.extend([0x48, 0x89, 0x44, 0x24, SAVED_RSI]); // mov [rsp + 40], rax
    }
    release.extend([&[0xc7, 0x04, 0x25][..], &state, &FREE.to_le_bytes()].concat());
    let mut told = vec![0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53];
    told.extend([acquire, ask, wait, release].concat());
    told.extend([0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, 0x5f, 0x5e, 0x5a, 0x59, 0x58]);
    let mut code = Vec::new();
    if kind == Knock::Block {
        code.extend([0x31, 0xf6]); // xor esi, esi
    }
    code.extend([&[0x83, 0x3c, 0x25][..], &word(CLOSED), &[0]].concat()); // cmp dword [closed], 0
    code.extend([&[0x0f, 0x85][..], &(told.len() as u32).to_le_bytes()].concat());
    code.extend(told);
    code
}

/// The same at the entry of a function, where its first argument is one of `numbers`.
pub(super) fn knock_if(numbers: &[u32], kind: Knock, to: Address) -> Vec<u8> {
    const CASE_BYTES: usize = 8;
    let told = knock(kind, to);
    let mut code = Vec::new();
    for (n, number) in numbers.iter().enumerate() {
        code.extend([0x81, 0xff]); // cmp edi, number
        code.extend(number.to_le_bytes());
        let behind = (numbers.len() - 1 - n) * CASE_BYTES + 5;
        code.extend([0x74, behind as u8]); // je to the request
    }
    code.push(0xe9); // past it
    code.extend((told.len() as u32).to_le_bytes());
    code.extend(told);
    code
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

    const TO: Address = Address { mailbox: 0x5000_0000, image: 3 };

    /// The code's instructions; all its jumps lead to one of them, or behind the last.
    pub(in super::super) fn sound(code: &[u8]) -> Vec<Instruction> {
        let all: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter().collect();
        assert!(all.iter().all(|i| !i.is_invalid()));
        assert_eq!(all.last().unwrap().next_ip(), code.len() as u64);
        let jumps = all
            .iter()
            .filter(|i| i.is_jcc_short_or_near() || i.flow_control() == FlowControl::UnconditionalBranch);
        for target in jumps.map(Instruction::near_branch_target) {
            let meets = target == code.len() as u64 || all.iter().any(|i| i.ip() == target);
            assert!(meets, "{target:#x}");
        }
        all
    }

    #[test]
    fn the_code_is_whole_and_its_jumps_meet_instructions() {
        for kind in [Knock::Mapped, Knock::Lock, Knock::Block, Knock::Exec] {
            let all = sound(&knock(kind, TO));
            let count = |m: Mnemonic| all.iter().filter(|i| i.mnemonic() == m).count();
            assert_eq!((count(Mnemonic::Push), count(Mnemonic::Pop), count(Mnemonic::Syscall)), (9, 9, 5));
            assert_eq!(Knock::numbered(kind as u32), kind);
        }
    }

    #[test]
    fn an_answer_is_put_where_rsi_is_taken_from() {
        let all = sound(&knock(Knock::Block, TO));
        let pushed: Vec<_> =
            all.iter().filter(|i| i.mnemonic() == Mnemonic::Push).map(Instruction::op0_register).collect();
        let rsi = pushed.iter().position(|r| *r == iced_x86::Register::RSI).unwrap();
        assert_eq!(usize::from(SAVED_RSI), 8 * (pushed.len() - 1 - rsi));
    }

    #[test]
    fn conditions_lead_to_the_request_or_past_it() {
        let told = knock(Knock::Lock, TO).len();
        let code = knock_if(&[56, 57, 435], Knock::Lock, TO);
        let all = sound(&code);
        let start = (code.len() - told) as u64;
        assert!(all[..6]
            .iter()
            .filter(|i| i.is_jcc_short_or_near())
            .all(|i| i.near_branch_target() == start));
        assert_eq!(all[6].near_branch_target(), code.len() as u64);
    }
}
