//! Births: each new thread or child gets counters of its own, by code behind the system calls that
//! make them.
//!
//! # The problem
//!
//! If several threads increment one word without a `lock`, increments get lost; a `lock` makes each
//! increment slow. The program has no tracer, so the host cannot prepare a new thread before it
//! runs.
//!
//! # The idea
//!
//! Increments address `gs:[counter]`. The base of `gs`, which programs in 64-bit mode leave at 0,
//! selects the block. So an increment is one instruction without a register or `lock`, and no call
//! is lost, because no other thread writes the block. A new thread has its parent's base until it
//! sets its own, so nothing may be counted in between. Therefore the five bytes at the `syscall`
//! instruction of `clone`, `clone3` and `fork` in the C library become a jump to a trampoline. The
//! trampoline makes the call; in the new thread it takes a block and sets the base, before any
//! instruction of the program.
//!
//! ```text
//!   C library          trampoline
//!   ...                syscall ──── rax ≠ 0: the parent, or an error ─────────────┐
//!   syscall ──jump──▶  rax = 0: the new thread                                    │
//!   test eax, eax        takes the next block atomically; if none is left, it     │
//!   ...          ◀─┐     requests one from the host                               │
//!                  │     sets the base of gs (wrgsbase, or a call); if that is    │
//!                  │     refused, it requests that all increments are locked      │
//!                  └──── registers as the call left them  ◀───────────────────────┘
//! ```
//!
//! # Invariants
//!
//! - Between the call and the setting of the base nothing is counted, and no instruction of the
//!   program runs.
//! - A block has one writer at a time. A child made by `vfork` shares the block of its parent,
//!   which waits.
//! - If any code may make threads without passing these calls ([`Births::Unknown`]), all increments
//!   are locked. Such code makes system calls outside the C library, or writes the base, or is a C
//!   library whose calls do not look like those of glibc.
//!
//! **Leaves out** signals that a new thread receives before it has its block; glibc blocks them.

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
/// First arguments of the function `syscall` that may make a thread or change the base.
pub(super) const SUSPECT_CALLS: [u32; 4] = [CLONE, FORK, CLONE3, ARCH_PRCTL];
/// First arguments of `arch_prctl` that change the base.
pub(super) const SUSPECT_BASES: [u32; 1] = [ARCH_SET_GS];

/// The instructions of a module that can make threads or children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Births {
    /// Only these `syscall` instructions can.
    At(Vec<u64>),
    /// Other instructions may, too.
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

/// Finds the instructions in `code` that make threads or children. `code` lies at `start`; `starts`
/// are the sorted entries of its functions. In a C library each of the functions `makers` must
/// contain such an instruction.
pub(super) fn births(code: &[u8], start: u64, starts: &[u64], library: Library, makers: &[u64]) -> Births {
    let calls = calls(code, start, starts);
    // Code that writes the base of `gs` would take the block away from its thread.
    if writes_base(code, start, starts) {
        return Births::Unknown;
    }
    // Outside the C library a `syscall` may make any call, because its number need not be a
    // constant.
    if library == Library::Other {
        return if calls.is_empty() { Births::At(Vec::new()) } else { Births::Unknown };
    }
    // In the C library the calls that make threads have constant numbers. Each function that makes
    // threads must contain one; otherwise it makes them in an unknown way.
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

/// The `syscall` instructions in `code`, each with the number in `eax` if it is a constant.
fn calls(code: &[u8], start: u64, starts: &[u64]) -> Vec<(u64, Option<u32>)> {
    let mut found = Vec::new();
    for hit in positions(code, &[0x0f, 0x05]) {
        let mut number = None;
        // Decode from the function's beginning, so that the instructions are those that the
        // processor executes.
        for instruction in &mut function(code, start, starts, hit) {
            if instruction.ip() == start + hit as u64 && instruction.code() == Code::Syscall {
                found.push((instruction.ip(), number));
            }
            number = after(&instruction, number);
        }
    }
    found
}

/// The constant in `eax` behind an instruction, if it is known; `before` is that before it.
fn after(instruction: &Instruction, before: Option<u32>) -> Option<u32> {
    if instruction.code() == Code::Mov_r32_imm32 && instruction.op0_register() == Register::EAX {
        return Some(instruction.immediate32());
    }
    // Any other write, and any branch, makes the number unknown.
    let writes = instruction.op0_register().full_register() == Register::RAX
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    before.filter(|_| instruction.flow_control() == FlowControl::Next && !writes)
}

/// Whether `code` has an instruction that writes the base of `gs`.
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
    // Search for the bytes of `wrgsbase` and `swapgs`, then of `mov gs, register`. Only the matches
    // are decoded, because decoding all code takes long.
    let base = positions(code, &[0x0f, 0xae])
        .filter(|&at| code.get(at + 2).is_some_and(|modrm| modrm & 0xf8 == 0xd8));
    let selector =
        positions(code, &[0x8e]).filter(|&at| code.get(at + 1).is_some_and(|modrm| modrm & 0x38 == 0x28));
    base.chain(selector).any(near)
}

/// The positions of a pattern of bytes in `code`.
fn positions<'a>(code: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    code.windows(pattern.len()).enumerate().filter(move |(_, window)| *window == pattern).map(|(at, _)| at)
}

/// A decoder of the instructions from the beginning of a function to the one that holds byte `hit`.
fn function<'a>(code: &'a [u8], start: u64, starts: &[u64], hit: usize) -> Decoder<'a> {
    let before = starts.partition_point(|&function| function <= start + hit as u64);
    let from = before.checked_sub(1).map_or(start, |index| starts[index].max(start));
    let end = (hit + 16).min(code.len());
    Decoder::with_ip(64, &code[(from - start) as usize..end], from, DecoderOptions::NONE)
}

/// The instructions that move from a site to a trampoline, without the `syscall` itself. `None` if
/// they cannot move: the first of them must set the flags, and no branch may lead to one of them.
pub(super) fn site(code: &[u8], start: u64, starts: &[u64], site: u64) -> Option<Prologue> {
    let at = (site - start) as usize;
    let mut head = code.get(at..)?.to_vec();
    head.truncate(READ_BYTES);
    // The trampoline tests the call's result, which changes flags. So the program's next
    // instruction must overwrite the flags.
    let following = Decoder::with_ip(64, &head[2..], site + 2, DecoderOptions::NONE).decode();
    if !matches!(following.mnemonic(), Mnemonic::Test | Mnemonic::Cmp) {
        return None;
    }
    let room = head.len() as u64;
    head.resize(READ_BYTES, 0);
    let prologue = Prologue::read(&head, site, room).ok()?;
    // No branch of the function may lead to a moved instruction.
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
    /// The thread executes `wrgsbase`, which no filter of system calls can refuse. This needs Linux
    /// 5.9 or later.
    Instruction,
    /// The thread makes a system call.
    Call,
}

/// The blocks of counters in the address space of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterBlocks {
    /// The number of blocks; they are numbered from 1.
    pub(super) count: u32,
    /// Bytes of a block.
    pub(super) bytes: u32,
    /// Address of a table with one word for each block: the number of the thread that owns it.
    pub(super) owners: u64,
    /// The base of `gs` for block 1.
    pub(super) first_base: u64,
    /// How a thread sets its base of `gs`.
    pub(super) setting: BaseSetting,
}

impl CounterBlocks {
    /// The base of `gs` for a block.
    pub(super) fn base(&self, block: u32) -> u64 {
        self.first_base.wrapping_add(u64::from(block - 1) * u64::from(self.bytes))
    }
}

/// Number of the system call that returns the calling thread's number.
const GETTID: u64 = 186;
/// Bytes of the red zone, in which leaf functions keep values below the stack pointer.
const RED_ZONE_BYTES: i32 = 128;

/// The code of a trampoline: the system call, and the first steps of a new thread. The code leaves
/// all registers as the call leaves them, and does not change the red zone.
pub(super) fn code(blocks: &CounterBlocks, to: MailboxAddress) -> Vec<u8> {
    let mut code = Assembler::default();
    let stack = Memory::at(Gpr::RSP);
    code.system_call();
    code.test(Size::Dword, Gpr::RAX, Gpr::RAX);
    // The parent jumps, so only the new thread executes the following code.
    let parent = code.jump_if(Condition::NotEqual);
    // The new thread may share its parent's stack, so the red zone must not change.
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
    // The system call returns 0 in rax of the new thread.
    code.land(set);
    code.land(refused);
    code.pop(Gpr::RSI);
    code.pop(Gpr::RDI);
    code.lea(Size::Qword, Gpr::RSP, stack.plus(RED_ZONE_BYTES));
    code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
    code.land(parent);
    code.into_bytes()
}

/// Emits code that takes the next block: it loads the block's number into `esi` and stores the
/// thread's number in the table of owners. Returns the jump that is taken if no block is left.
fn take_block(code: &mut Assembler, blocks: &CounterBlocks, to: MailboxAddress) -> Jump {
    code.mov_immediate(Gpr::RSI, 1);
    // Two new threads may take a block at the same time, so the addition is atomic.
    code.lock();
    let next = Memory::absolute((to.mailbox as usize + mailbox::NEXT) as i32);
    code.exchange_add(Size::Dword, next, Gpr::RSI);
    code.alu_immediate(Alu::Cmp, Size::Dword, Gpr::RSI, blocks.count as i32);
    let none_left = code.jump_if(Condition::Above);
    // The table of owners allows the host to reuse the block when its owner has ended.
    system_call(code, GETTID);
    let owner = Memory::absolute(blocks.owners as i32 - 4).index(Gpr::RSI, Scale::Four);
    code.mov(Size::Dword, owner, Gpr::RAX);
    none_left
}

/// Emits code that sets the base of `gs` to block `esi`. Returns the jump that is taken if the base
/// could be set.
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
        // The bytes of `syscall` within a constant are no call.
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
        // If no block is left, the code makes a request, which starts by clearing the answer. With
        // an answer it goes on to set the base.
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
