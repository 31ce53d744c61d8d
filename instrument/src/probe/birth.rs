//! Each thread gets counters of its own: code behind the system calls that make threads and
//! children gives the newborn a block.
//!
//! # The problem
//!
//! If several threads increment one word, increments get lost, or each costs a `lock`. The program
//! has no tracer, so the host does not learn of a new thread before it runs.
//!
//! # The idea
//!
//! Increments address `gs:[counter]`. The base of `gs`, which programs in 64-bit mode leave at 0,
//! selects the block: one instruction, no register, no `lock`, and no call is lost, because no
//! other thread writes the block. A new thread has its parent's base until it sets its own, so
//! nothing may be counted in between: the five bytes at the `syscall` instruction of `clone`,
//! `clone3` and `fork` in the C library become a jump to code that makes the call and, in the
//! newborn, takes a block and sets the base, before any instruction of the program.
//!
//! ```text
//!   C library          trampoline
//!   ...                syscall ──── rax ≠ 0: the parent, or an error ─────────────┐
//!   syscall ──jump──▶  rax = 0: the newborn                                       │
//!   test eax, eax        next block, atomically; none left: ask the host for one  │
//!   ...          ◀─┐     base of gs = that of the block (wrgsbase, or a call);    │
//!                  │     refused: tell the host, who locks all increments         │
//!                  └──── registers as the call left them  ◀───────────────────────┘
//! ```
//!
//! # Invariants
//!
//! - Between the call and the base nothing is counted, and nothing of the program runs.
//! - A block has one writer at a time. A child made by `vfork` shares its parent's, which waits
//!   meanwhile.
//! - If it is unknown which code makes threads ([`Births::Unknown`]), increments are locked: code
//!   outside the C library that makes system calls itself, or writes the base, or a C library whose
//!   calls do not look like glibc's.
//!
//! **Leaves out** signals that a newborn receives before it has its block; glibc blocks them for
//! new threads.

use super::mailbox::{self, request_code, system_call, HostRequest, MailboxAddress};
use super::prologue::{Prologue, READ_BYTES};
use super::sweep::Sweep;
use assembler::{Alu, Assembler, Condition, Gpr, Jump, Memory, Scale, Size};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

const CLONE: u32 = 56;
const FORK: u32 = 57;
const CLONE3: u32 = 435;
const ARCH_PRCTL: u32 = 158;
const ARCH_SET_GS: u32 = 0x1001;
/// First arguments of `syscall` that may make a thread or change the base.
pub(super) const SUSPECT_CALLS: [u32; 4] = [CLONE, FORK, CLONE3, ARCH_PRCTL];
/// First arguments of `arch_prctl` that change the base.
pub(super) const SUSPECT_BASES: [u32; 1] = [ARCH_SET_GS];

/// Which instructions of a module can make threads or children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Births {
    /// These `syscall` instructions only.
    At(Vec<u64>),
    /// Any instruction might.
    Unknown,
}

/// The kind of module that code belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    /// A C library, in which the calls that make threads must be found.
    C,
    /// Any other module.
    Other,
}

/// Finds the births in `code`, which lies at `start`; `starts` are the entries of its functions,
/// sorted. In a C library each of the functions `makers` must contain a call.
pub(super) fn births(code: &[u8], start: u64, starts: &[u64], library: Library, makers: &[u64]) -> Births {
    let calls = calls(code, start, starts);
    // Code that writes the base of `gs` takes the block away from its thread.
    if writes_base(code, start, starts) {
        return Births::Unknown;
    }
    // Outside the C library a call may be any call: its number need not be a constant.
    if library == Library::Other {
        return if calls.is_empty() { Births::At(Vec::new()) } else { Births::Unknown };
    }
    // In the C library the calls that make threads are known by their constant numbers, and each
    // function that makes threads must show one: otherwise it works in a way that is not known
    // here.
    let makes = |number: &Option<u32>| number.is_some_and(|number| [CLONE, FORK, CLONE3].contains(&number));
    let sites: Vec<u64> = calls.iter().filter(|(_, number)| makes(number)).map(|(at, _)| *at).collect();
    let shown = |&maker: &u64| {
        let end = starts.get(starts.partition_point(|&start| start <= maker)).copied().unwrap_or(u64::MAX);
        sites.iter().any(|at| (maker..end).contains(at))
    };
    if makers.iter().all(shown) {
        Births::At(sites)
    } else {
        Births::Unknown
    }
}

/// `syscall` instructions, with the number in `eax` where it is a constant.
fn calls(code: &[u8], start: u64, starts: &[u64]) -> Vec<(u64, Option<u32>)> {
    let mut found = Vec::new();
    for hit in positions(code, &[0x0f, 0x05]) {
        let mut number = None;
        // From the function's beginning, so that instructions are found as the processor finds
        // them.
        for instruction in &mut function(code, start, starts, hit) {
            if instruction.ip() == start + hit as u64 && instruction.code() == Code::Syscall {
                found.push((instruction.ip(), number));
            }
            number = after(&instruction, number);
        }
    }
    found
}

/// The constant in `eax` behind an instruction, if it is known.
fn after(instruction: &Instruction, before: Option<u32>) -> Option<u32> {
    if instruction.code() == Code::Mov_r32_imm32 && instruction.op0_register() == Register::EAX {
        return Some(instruction.immediate32());
    }
    // Any other write, and any branch, makes the number unknown.
    let writes = instruction.op0_register().full_register() == Register::RAX
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    before.filter(|_| instruction.flow_control() == FlowControl::Next && !writes)
}

/// Whether there is an instruction that writes the base of `gs`.
fn writes_base(code: &[u8], start: u64, starts: &[u64]) -> bool {
    let is = |instruction: &Instruction| {
        matches!(instruction.mnemonic(), Mnemonic::Wrgsbase | Mnemonic::Swapgs)
            || instruction.mnemonic() == Mnemonic::Mov && instruction.op0_register() == Register::GS
    };
    let near = |hit: usize| {
        function(code, start, starts, hit)
            .iter()
            .any(|instruction| is(&instruction) && instruction.next_ip() > start + hit as u64)
    };
    // `wrgsbase` and `swapgs`, then `mov gs, r`: bytes first, because decoding all code takes
    // long.
    let base = positions(code, &[0x0f, 0xae])
        .filter(|&at| code.get(at + 2).is_some_and(|modrm| modrm & 0xf8 == 0xd8));
    let selector =
        positions(code, &[0x8e]).filter(|&at| code.get(at + 1).is_some_and(|modrm| modrm & 0x38 == 0x28));
    base.chain(selector).any(near)
}

fn positions<'a>(code: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    code.windows(pattern.len()).enumerate().filter(move |(_, window)| *window == pattern).map(|(at, _)| at)
}

/// Instructions from the beginning of a function to the one that holds byte `hit`.
fn function<'a>(code: &'a [u8], start: u64, starts: &[u64], hit: usize) -> Decoder<'a> {
    let before = starts.partition_point(|&function| function <= start + hit as u64);
    let from = before.checked_sub(1).map_or(start, |index| starts[index].max(start));
    let end = (hit + 16).min(code.len());
    Decoder::with_ip(64, &code[(from - start) as usize..end], from, DecoderOptions::NONE)
}

/// The instructions that move away from the site: the `syscall` and those behind it, which must set
/// the flags before any instruction reads them.
pub(super) fn site(code: &[u8], start: u64, starts: &[u64], site: u64) -> Option<Prologue> {
    let at = (site - start) as usize;
    let mut head = code.get(at..)?.to_vec();
    head.truncate(READ_BYTES);
    // The trampoline makes the call and tests its result, which changes flags; so the program's
    // next instruction must set them anew.
    let following = Decoder::with_ip(64, &head[2..], site + 2, DecoderOptions::NONE).decode();
    if !matches!(following.mnemonic(), Mnemonic::Test | Mnemonic::Cmp) {
        return None;
    }
    let room = head.len() as u64;
    head.resize(READ_BYTES, 0);
    let prologue = Prologue::read(&head, site, room).ok()?;
    // No branch of the function may lead into what moves.
    let next = starts.get(starts.partition_point(|&function| function <= site)).copied().unwrap_or(u64::MAX);
    let from = starts
        .partition_point(|&function| function <= site)
        .checked_sub(1)
        .map_or(start, |index| starts[index].max(start));
    let end = next.min(start + code.len() as u64);
    let own = &code[(from - start) as usize..(end - start) as usize];
    let sweep = Sweep::new(own, from, &[from], &[site]);
    sweep.inside.is_empty().then(|| prologue.without_first())
}

/// How a thread sets its base of `gs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseSetting {
    /// By the instruction `wrgsbase`, which no filter of system calls can refuse. Linux 5.9 and
    /// later.
    Instruction,
    /// By a system call.
    Call,
}

/// The blocks of counters in the address space of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterBlocks {
    /// How many there are; they are numbered from 1.
    pub(super) count: u32,
    /// Bytes of each.
    pub(super) bytes: u32,
    /// Address of their owners' numbers, a word each.
    pub(super) owners: u64,
    /// The base for block 1.
    pub(super) first_base: u64,
    /// How a thread sets its base.
    pub(super) setting: BaseSetting,
}

impl CounterBlocks {
    /// The base for a block.
    pub(super) fn base(&self, block: u32) -> u64 {
        self.first_base.wrapping_add(u64::from(block - 1) * u64::from(self.bytes))
    }
}

/// Number of the system call that tells a thread its own number.
const GETTID: u64 = 186;
/// The red zone: what leaf functions keep below the stack pointer.
const RED_ZONE_BYTES: i32 = 128;

/// The code of a trampoline: the system call, and what a newborn does first. It keeps all registers
/// as the call leaves them, and the memory below the stack pointer.
pub(super) fn code(blocks: &CounterBlocks, to: MailboxAddress) -> Vec<u8> {
    let mut code = Assembler::default();
    let stack = Memory::at(Gpr::RSP);
    code.system_call();
    code.test(Size::Dword, Gpr::RAX, Gpr::RAX);
    // Only a newborn gets here.
    let parent = code.jump_if(Condition::NotEqual);
    // The newborn may share its parent's stack, so the red zone must stay.
    code.lea(Size::Qword, Gpr::RSP, stack.plus(-RED_ZONE_BYTES));
    code.push(Gpr::RDI);
    code.push(Gpr::RSI);
    let none_left = take_block(&mut code, blocks, to);
    let setting = code.here();
    let set = set_base(&mut code, blocks);
    code.extend(&request_code(HostRequest::Lock, to));
    let refused = code.jump();
    code.land(none_left);
    code.extend(&request_code(HostRequest::Block, to));
    code.test(Size::Dword, Gpr::RSI, Gpr::RSI);
    code.jump_back_if(Condition::NotEqual, setting);
    // The call leaves 0 in rax of a newborn.
    code.land(set);
    code.land(refused);
    code.pop(Gpr::RSI);
    code.pop(Gpr::RDI);
    code.lea(Size::Qword, Gpr::RSP, stack.plus(RED_ZONE_BYTES));
    code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
    code.land(parent);
    code.into_bytes()
}

/// Takes the next block: its number into `esi`, and the thread's number into the block's word.
/// Returns the jump that is taken if no block is left.
fn take_block(code: &mut Assembler, blocks: &CounterBlocks, to: MailboxAddress) -> Jump {
    code.mov_immediate(Gpr::RSI, 1);
    // Two newborns may take a number at the same time, so it is taken atomically.
    code.lock();
    let next = Memory::absolute((to.mailbox as usize + mailbox::NEXT) as i32);
    code.exchange_add(Size::Dword, next, Gpr::RSI);
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RSI, blocks.count as i32);
    let none_left = code.jump_if(Condition::Above);
    // The word names the block's owner, so that the block can be reused when the owner is gone.
    system_call(code, GETTID);
    let owner = Memory::absolute(blocks.owners as i32 - 4).index(Gpr::RSI, Scale::Four);
    code.mov(Size::Dword, owner, Gpr::RAX);
    none_left
}

/// Gives block `esi` to the thread. Returns the jump that is taken if the base could be set.
fn set_base(code: &mut Assembler, blocks: &CounterBlocks) -> Jump {
    code.decrement(Size::Dword, Gpr::RSI);
    // base = first base + (block − 1) × bytes
    code.multiply(Size::Qword, Gpr::RSI, Gpr::RSI, blocks.bytes as i32);
    code.mov_immediate(Gpr::RCX, blocks.first_base);
    code.alu(Alu::Add, Size::Qword, Gpr::RSI, Gpr::RCX);
    match blocks.setting {
        BaseSetting::Instruction => {
            code.write_gs_base(Gpr::RSI);
            code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
        }
        BaseSetting::Call => {
            code.mov_immediate(Gpr::RDI, ARCH_SET_GS.into());
            system_call(code, ARCH_PRCTL.into());
            code.test(Size::Dword, Gpr::RAX, Gpr::RAX);
        }
    }
    code.jump_if(Condition::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::mailbox::tests::sound;

    const START: u64 = 0x1000;

    /// mov eax, 56; syscall; test rax, rax; jz +2; ret; nop; ret
    const MAKER: [u8; 15] = [0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xc3, 0x90, 0xc3];

    #[test]
    fn calls_are_found_with_their_numbers() {
        assert_eq!(births(&MAKER, START, &[START], Library::C, &[START]), Births::At(vec![START + 5]));
        assert_eq!(births(&MAKER, START, &[START], Library::Other, &[]), Births::Unknown);
        let mut getpid = MAKER;
        getpid[1] = 39;
        assert_eq!(births(&getpid, START, &[START], Library::C, &[]), Births::At(Vec::new()));
        assert_eq!(births(&getpid, START, &[START], Library::C, &[START]), Births::Unknown);
        assert_eq!(births(&[0x90; 9], START, &[START], Library::Other, &[]), Births::At(Vec::new()));
        // The two bytes inside a constant are no call.
        assert_eq!(
            births(&[0xb8, 0x0f, 0x05, 0, 0, 0xc3], START, &[START], Library::Other, &[]),
            Births::At(Vec::new())
        );
    }

    #[test]
    fn a_module_that_writes_the_base_is_not_trusted() {
        for code in [&[0xf3, 0x48, 0x0f, 0xae, 0xd8, 0xc3][..], &[0x8e, 0xe8, 0xc3]] {
            assert_eq!(births(code, START, &[START], Library::C, &[]), Births::Unknown);
        }
        // wrfsbase, and mov fs
        for code in [&[0xf3, 0x48, 0x0f, 0xae, 0xd0, 0xc3][..], &[0x8e, 0xe0, 0xc3]] {
            assert_eq!(births(code, START, &[START], Library::C, &[]), Births::At(Vec::new()));
        }
    }

    #[test]
    fn a_site_moves_only_where_flags_are_set_again_and_nobody_jumps_in() {
        assert!(site(&MAKER, START, &[START], START + 5).is_some());
        let mut reads = MAKER;
        reads[7..10].copy_from_slice(&[0x0f, 0x94, 0xc1]); // setz cl
        assert!(site(&reads, START, &[START], START + 5).is_none());
        let mut jumps = MAKER;
        jumps[11] = 0xfb; // back to the test
        assert!(site(&jumps, START, &[START], START + 5).is_none());
    }

    #[test]
    fn a_newborn_takes_a_block_and_everybody_else_passes() {
        for setting in [BaseSetting::Instruction, BaseSetting::Call] {
            born(CounterBlocks {
                count: 9,
                bytes: 4096,
                owners: 0x5000_2000,
                first_base: 0x1fff_b000_0000,
                setting,
            });
        }
    }

    fn born(blocks: CounterBlocks) {
        let code = code(&blocks, MailboxAddress { mailbox: 0x5000_0000, image: 0 });
        let all = sound(&code);
        let passes = all.iter().find(|instruction| instruction.is_jcc_short_or_near()).unwrap();
        assert_eq!((passes.mnemonic(), passes.near_branch_target()), (Mnemonic::Jne, code.len() as u64));
        let target = |mnemonic: Mnemonic| {
            let to = all
                .iter()
                .rev()
                .find(|instruction| instruction.mnemonic() == mnemonic && instruction.is_jcc_short_or_near())
                .unwrap();
            all.iter().find(|instruction| instruction.ip() == to.near_branch_target()).unwrap().mnemonic()
        };
        // Above the last block: the request, which begins with no answer. Answered: to the setting.
        assert_eq!((target(Mnemonic::Ja), target(Mnemonic::Jne)), (Mnemonic::Xor, Mnemonic::Dec));
        let ends = all
            .iter()
            .filter(|instruction| instruction.near_branch_target() != 0)
            .map(|instruction| instruction.near_branch_target())
            .max();
        assert_eq!(ends, Some(code.len() as u64));
        assert_eq!(blocks.base(3), blocks.first_base + 2 * 4096);
    }
}
