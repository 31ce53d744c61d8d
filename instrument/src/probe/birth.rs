//! Every thread its own counters: the system calls that make threads and children are followed by code of ours, which gives the newborn a block.
//!
//! **What.** Increments address `gs:[counter]`. The base of `gs`, which programs in 64-bit mode leave at 0, tells blocks apart: one instruction, no register, no `lock`, and no call is
//! lost, because nobody else writes the block. A new thread has its parent's base until it sets its own, so nothing may be counted in between: the five bytes at the
//! `syscall` instruction of `clone`, `clone3` and `fork` in the C library become a jump to code that makes the call and, where it returned 0, takes a block and sets the base
//! (`wrgsbase`, or `arch_prctl` where the kernel does not allow that), before any instruction of the program. A child made by `vfork` shares its parent's block, which waits meanwhile.
//!
//! **Where that cannot be known** ([`Births::Unknown`]): code outside the C library that makes system calls itself, or writes the base, or a C library whose calls do not look like
//! glibc's. Then increments are locked. **Leaves out** signals that arrive at a newborn in between, which glibc blocks for threads.

use super::mailbox::{self, knock, Address, Knock};
use super::prologue::{Prologue, READ_BYTES};
use super::sweep::Sweep;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

const CLONE: u32 = 56;
const FORK: u32 = 57;
const CLONE3: u32 = 435;
const ARCH_PRCTL: u32 = 158;
const ARCH_SET_GS: u32 = 0x1001;
/// First arguments of `syscall` behind which a thread may be born, or the base may change.
pub(super) const SUSPECT_CALLS: [u32; 4] = [CLONE, FORK, CLONE3, ARCH_PRCTL];
/// First arguments of `arch_prctl` that change the base.
pub(super) const SUSPECT_BASES: [u32; 1] = [ARCH_SET_GS];

/// What is known of the births that a module's code can make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Births {
    /// At these `syscall` instructions and nowhere else.
    At(Vec<u64>),
    /// Anywhere.
    Unknown,
}

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    /// A C library's: what makes threads is to be found in it.
    C,
    /// Anybody's.
    Other,
}

/// What `code`, which lies at `start`, says; `starts` are entries of its functions, sorted. A C library must show a call in each of the functions `makers`.
pub(super) fn births(code: &[u8], start: u64, starts: &[u64], library: Library, makers: &[u64]) -> Births {
    let calls = calls(code, start, starts);
    if writes_base(code, start, starts) {
        return Births::Unknown;
    }
    if library == Library::Other {
        return if calls.is_empty() { Births::At(Vec::new()) } else { Births::Unknown };
    }
    let makes = |number: &Option<u32>| number.is_some_and(|n| [CLONE, FORK, CLONE3].contains(&n));
    let sites: Vec<u64> = calls.iter().filter(|(_, n)| makes(n)).map(|(at, _)| *at).collect();
    let shown = |&maker: &u64| {
        let end = starts.get(starts.partition_point(|&s| s <= maker)).copied().unwrap_or(u64::MAX);
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
        for i in &mut function(code, start, starts, hit) {
            if i.ip() == start + hit as u64 && i.code() == Code::Syscall {
                found.push((i.ip(), number));
            }
            number = after(&i, number);
        }
    }
    found
}

/// What is in `eax` behind an instruction.
fn after(i: &Instruction, before: Option<u32>) -> Option<u32> {
    if i.code() == Code::Mov_r32_imm32 && i.op0_register() == Register::EAX {
        return Some(i.immediate32());
    }
    let writes = i.op0_register().full_register() == Register::RAX
        && !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    before.filter(|_| i.flow_control() == FlowControl::Next && !writes)
}

/// Whether there is an instruction that writes the base of `gs`.
fn writes_base(code: &[u8], start: u64, starts: &[u64]) -> bool {
    let is = |i: &Instruction| {
        matches!(i.mnemonic(), Mnemonic::Wrgsbase | Mnemonic::Swapgs)
            || i.mnemonic() == Mnemonic::Mov && i.op0_register() == Register::GS
    };
    let near = |hit: usize| {
        function(code, start, starts, hit).iter().any(|i| is(&i) && i.next_ip() > start + hit as u64)
    };
    let base =
        positions(code, &[0x0f, 0xae]).filter(|&at| code.get(at + 2).is_some_and(|m| m & 0xf8 == 0xd8));
    let selector = positions(code, &[0x8e]).filter(|&at| code.get(at + 1).is_some_and(|m| m & 0x38 == 0x28));
    base.chain(selector).any(near)
}

fn positions<'a>(code: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    code.windows(pattern.len()).enumerate().filter(move |(_, w)| *w == pattern).map(|(at, _)| at)
}

/// Instructions from the beginning of a function to the one that holds byte `hit`.
fn function<'a>(code: &'a [u8], start: u64, starts: &[u64], hit: usize) -> Decoder<'a> {
    let before = starts.partition_point(|&s| s <= start + hit as u64);
    let from = before.checked_sub(1).map_or(start, |n| starts[n].max(start));
    let end = (hit + 16).min(code.len());
    Decoder::with_ip(64, &code[(from - start) as usize..end], from, DecoderOptions::NONE)
}

/// What moves away from the site: the `syscall` and what follows it, which must set the flags before anybody reads them.
pub(super) fn site(code: &[u8], start: u64, starts: &[u64], site: u64) -> Option<Prologue> {
    let at = (site - start) as usize;
    let mut head = code.get(at..)?.to_vec();
    head.truncate(READ_BYTES);
    let following = Decoder::with_ip(64, &head[2..], site + 2, DecoderOptions::NONE).decode();
    if !matches!(following.mnemonic(), Mnemonic::Test | Mnemonic::Cmp) {
        return None;
    }
    let room = head.len() as u64;
    head.resize(READ_BYTES, 0);
    let prologue = Prologue::read(&head, site, room).ok()?;
    let next = starts.get(starts.partition_point(|&s| s <= site)).copied().unwrap_or(u64::MAX);
    let from = starts.partition_point(|&s| s <= site).checked_sub(1).map_or(start, |n| starts[n].max(start));
    let end = next.min(start + code.len() as u64);
    let own = &code[(from - start) as usize..(end - start) as usize];
    let sweep = Sweep::new(own, from, &[from], &[site]);
    sweep.inside.is_empty().then(|| prologue.without_first())
}

/// How the base is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// By an instruction, which no filter of system calls sees. Linux 5.9 and later.
    Instruction,
    /// By a system call.
    Call,
}

/// Blocks of counters, as a process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// How many there are; they are numbered from 1.
    pub(super) count: u32,
    /// Bytes of each.
    pub(super) bytes: u32,
    /// Where their owners are noted, a word each.
    pub(super) owners: u64,
    /// The base for block 1.
    pub(super) first_base: u64,
    /// How a thread gets one.
    pub(super) setting: Setting,
}

impl Blocks {
    /// The base for a block.
    pub(super) fn base(&self, block: u32) -> u64 {
        self.first_base.wrapping_add(u64::from(block - 1) * u64::from(self.bytes))
    }
}

/// The system call, and what a newborn does first. Registers are as the call leaves them; what lies below the stack pointer stays.
pub(super) fn code(blocks: &Blocks, to: Address) -> Vec<u8> {
    let next = (to.mailbox as u32 + mailbox::NEXT as u32).to_le_bytes();
    let mut take = vec![0xbe, 1, 0, 0, 0]; // mov esi, 1
    take.extend([&[0xf0, 0x0f, 0xc1, 0x34, 0x25][..], &next].concat()); // lock xadd [next], esi
    take.extend([&[0x81, 0xfe][..], &blocks.count.to_le_bytes()].concat()); // cmp esi, count
    let mut own = vec![0xb8, 186, 0, 0, 0, 0x0f, 0x05]; // gettid
    own.extend([0x89, 0x04, 0xb5]); // mov [owners - 4 + rsi * 4], eax
    own.extend((blocks.owners as u32 - 4).to_le_bytes());
    let mut set = vec![0xff, 0xce, 0x48, 0x69, 0xf6]; // dec esi; imul rsi, rsi, bytes
    set.extend(blocks.bytes.to_le_bytes());
    set.extend([0x48, 0xb9]); // mov rcx, first base
    set.extend(blocks.first_base.to_le_bytes());
    set.extend([0x48, 0x01, 0xce]); // add rsi, rcx
    match blocks.setting {
        Setting::Instruction => set.extend([0xf3, 0x48, 0x0f, 0xae, 0xde, 0x31, 0xc0]), // wrgsbase rsi; xor eax, eax
        Setting::Call => {
            set.push(0xbf); // mov edi, ARCH_SET_GS
            set.extend(ARCH_SET_GS.to_le_bytes());
            set.push(0xb8); // arch_prctl
            set.extend(ARCH_PRCTL.to_le_bytes());
            set.extend([0x0f, 0x05, 0x85, 0xc0]); // test eax, eax
        }
    }
    let refused = knock(Knock::Lock, to);
    let mut ask = knock(Knock::Block, to);
    ask.extend([0x85, 0xf6]); // test esi, esi
    let back = ask.len() + 6 + refused.len() + 5 + 6 + set.len();
    ask.extend([0x0f, 0x85]); // jnz to the setting
    ask.extend((back as u32).wrapping_neg().to_le_bytes());
    let mut refusing = refused;
    refusing.push(0xe9); // past the asking
    refusing.extend((ask.len() as u32).to_le_bytes());
    let jump = |condition: u8, over: usize| [&[0x0f, condition][..], &(over as u32).to_le_bytes()].concat();
    let born = [
        &[0x48, 0x8d, 0x64, 0x24, 0x80, 0x57, 0x56][..], // lea rsp, [rsp - 128]; push rdi; push rsi
        &take,
        &jump(0x87, own.len() + set.len() + 6 + refusing.len()), // ja to the asking
        &own,
        &set,
        &jump(0x84, refusing.len() + ask.len()), // jz to the end
        &refusing,
        &ask,
        &[0x5e, 0x5f, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, 0x31, 0xc0], // and back; xor eax, eax
    ]
    .concat();
    // syscall; test eax, eax; a newborn alone goes on here.
    [&[0x0f, 0x05, 0x85, 0xc0][..], &jump(0x85, born.len()), &born].concat()
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
        for setting in [Setting::Instruction, Setting::Call] {
            born(Blocks {
                count: 9,
                bytes: 4096,
                owners: 0x5000_2000,
                first_base: 0x1fff_b000_0000,
                setting,
            });
        }
    }

    fn born(blocks: Blocks) {
        let code = code(&blocks, Address { mailbox: 0x5000_0000, image: 0 });
        let all = sound(&code);
        let passes = all.iter().find(|i| i.is_jcc_short_or_near()).unwrap();
        assert_eq!((passes.mnemonic(), passes.near_branch_target()), (Mnemonic::Jne, code.len() as u64));
        let target = |m: Mnemonic| {
            let to = all.iter().rev().find(|i| i.mnemonic() == m && i.is_jcc_short_or_near()).unwrap();
            all.iter().find(|i| i.ip() == to.near_branch_target()).unwrap().mnemonic()
        };
        // Above the last block: the request, which begins with no answer. Answered: to the setting.
        assert_eq!((target(Mnemonic::Ja), target(Mnemonic::Jne)), (Mnemonic::Xor, Mnemonic::Dec));
        let ends = all.iter().filter(|i| i.near_branch_target() != 0).map(|i| i.near_branch_target()).max();
        assert_eq!(ends, Some(code.len() as u64));
        assert_eq!(blocks.base(3), blocks.first_base + 2 * 4096);
    }
}
