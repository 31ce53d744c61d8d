//! The instrumentation: asks for events at atomic instructions and at allocating functions.
//!
//! Events stand in the stream of the thread, before the references of their instruction. Their tags
//! say what they are:
//!
//! ```text
//!   ATOMIC  a number                   before an instruction that reads and writes in one step
//!   LOCK    address                    before one that compares or exchanges
//!   ENTER   stack pointer    ┐
//!   FIRST   first argument   │
//!   SECOND  second argument  │         where an allocating function begins
//!   THIRD   third argument   ┘
//!   PLACE   address          ┐
//!   STORED  value            ┘         before a store of an address where an argument points
//!   STUB    stack pointer              where a stub begins that jumps to a function of another module
//!   LEAVE   stack pointer    ┐
//!   RESULT  rax              ┘         before a return in a module that allocates
//! ```

use heap::{Entries, Follows, Function};
use instrument::tool::{opcode_name, BlockView, InstructionView, Register, Requests, Transfer, Value};
use instrument::Module;
use std::sync::Arc;
use symbol::Listing;

pub(crate) const ATOMIC: u32 = 0;
pub(crate) const LOCK: u32 = 1;
pub(crate) const ENTER: u32 = 2;
pub(crate) const FIRST: u32 = 3;
pub(crate) const SECOND: u32 = 4;
pub(crate) const THIRD: u32 = 5;
pub(crate) const PLACE: u32 = 6;
pub(crate) const STORED: u32 = 7;
pub(crate) const LEAVE: u32 = 8;
pub(crate) const RESULT: u32 = 9;
pub(crate) const STUB: u32 = 10;

/// The most instructions of a stub.
const STUB_INSTRUCTIONS_MAX: usize = 3;

/// Bits of a tag that say what the event is; the others are the number of the function.
const BITS: u32 = 4;

fn tag(word: u32, function: Function) -> u32 {
    (function as u32) << BITS | word
}

/// What an event is, and the number of its function.
#[inline(always)]
pub(crate) fn of_tag(tag: u32) -> (u32, u32) {
    (tag & ((1 << BITS) - 1), tag >> BITS)
}

/// Asks for the events of blocks.
#[derive(Default)]
pub(crate) struct Asker {
    /// Modules that were met, with the functions that they have.
    modules: Vec<(Module, Arc<Entries>)>,
    /// The module of the last block.
    last: usize,
}

impl Asker {
    /// Asks for the events of a block.
    pub(crate) fn ask(&mut self, block: &BlockView<'_>, requests: &mut Requests) {
        let entries = self.entries(block.module());
        if let Some(function) = entries.at(block.address()) {
            enters(function, requests);
        }
        if is_stub(block) {
            requests.at_start(Value::Register(Register::Rsp), STUB);
        }
        let stores = entries.stores(block.address());
        for instruction in block.instructions() {
            match atomic(&instruction) {
                Atomic::No => {}
                Atomic::Computes => requests.before(&instruction, Value::Constant(1), ATOMIC),
                Atomic::Locks => requests.before(&instruction, Value::Address(0), LOCK),
            }
            if stores {
                stored(&instruction, requests);
            }
        }
        let last = block.last().filter(|last| last.transfer() == Transfer::Return && !entries.is_empty());
        if let Some(last) = last {
            requests.before(&last, Value::Register(Register::Rsp), LEAVE);
            requests.before(&last, Value::Register(Register::Rax), RESULT);
        }
    }

    /// The allocating functions of a module, whose symbols are read when it is met first.
    fn entries(&mut self, module: &Module) -> Arc<Entries> {
        if self.modules.get(self.last).is_none_or(|known| known.0 != *module) {
            let known = self.modules.iter().position(|known| known.0 == *module);
            self.last = known.unwrap_or_else(|| {
                let listing = Listing::of_symbols(&module.path);
                let entries =
                    listing.map_or_else(Entries::default, |it| Entries::of(module, &it, Follows::Blocks));
                self.modules.push((module.clone(), Arc::new(entries)));
                self.modules.len() - 1
            });
        }
        self.modules[self.last].1.clone()
    }
}

/// Whether a block is a stub of the procedure linkage table: all that it does is a jump to an
/// address in a fixed place.
fn is_stub(block: &BlockView<'_>) -> bool {
    let is_short = block.instructions().len() <= STUB_INSTRUCTIONS_MAX;
    is_short && block.last().is_some_and(|last| jumps_by_place(last.bytes()))
}

/// Whether an instruction is a jump to the address that lies at a distance from it.
fn jumps_by_place(bytes: &[u8]) -> bool {
    const BOUND: u8 = 0xf2;
    let bytes = bytes.strip_prefix(&[BOUND]).unwrap_or(bytes);
    bytes.starts_with(&[0xff, 0x25])
}

/// Whether an instruction reads and writes memory in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    No,
    /// It adds, sets bits and the like.
    Computes,
    /// It compares or exchanges, as the taking of a lock does.
    Locks,
}

fn atomic(instruction: &InstructionView<'_>) -> Atomic {
    if !(instruction.is_load() && instruction.is_store()) || instruction.touches().len() != 1 {
        return Atomic::No;
    }
    let name = opcode_name(instruction.opcode());
    // `xchg` with memory needs no prefix.
    let locks = name.starts_with("Xchg") || name.starts_with("Cmpxchg");
    match (has_lock_prefix(instruction.bytes()), locks) {
        (true, true) => Atomic::Locks,
        (false, true) if name.starts_with("Xchg") => Atomic::Locks,
        (true, false) => Atomic::Computes,
        (false, _) => Atomic::No,
    }
}

/// Whether a lock prefix stands among the prefixes of an instruction.
fn has_lock_prefix(bytes: &[u8]) -> bool {
    const PREFIXES: [u8; 11] = [0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x66, 0x67];
    bytes.iter().take_while(|byte| PREFIXES.contains(byte)).any(|&byte| byte == 0xf0)
}

/// Asks for the arguments of an allocating function that begins with the block.
fn enters(function: Function, requests: &mut Requests) {
    let mut event = |register, word| requests.at_start(Value::Register(register), tag(word, function));
    event(Register::Rsp, ENTER);
    event(Register::Rdi, FIRST);
    match function {
        Function::AllocateArray | Function::AllocateAligned | Function::Resize => {
            event(Register::Rsi, SECOND);
        }
        Function::AllocateAt => event(Register::Rdx, THIRD),
        Function::Allocate | Function::AllocatePages | Function::Free | Function::Copy => {}
    }
}

/// Asks for what an instruction stores if it stores a register of eight bytes.
fn stored(instruction: &InstructionView<'_>, requests: &mut Requests) {
    let is_store = instruction.is_store() && instruction.touches().len() == 1;
    let Some(register) = instruction.register(1).filter(|_| is_store) else { return };
    if opcode_name(instruction.opcode()) == "Mov_rm64_r64" {
        requests.before(instruction, Value::Address(0), PLACE);
        requests.before(instruction, Value::Register(register), STORED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_jump_by_a_place() {
        assert!(jumps_by_place(&[0xff, 0x25, 1, 2, 3, 4]) && jumps_by_place(&[0xf2, 0xff, 0x25, 1, 2, 3, 4]));
        assert!(!jumps_by_place(&[0xff, 0xe0]) && !jumps_by_place(&[0xff, 0x15, 1, 2, 3, 4]));
    }

    #[test]
    fn a_lock_prefix_is_found_among_prefixes_only() {
        assert!(has_lock_prefix(&[0xf0, 0x48, 0x01, 0x07]));
        assert!(has_lock_prefix(&[0x66, 0xf0, 0x01, 0x07]));
        assert!(!has_lock_prefix(&[0x48, 0x81, 0x07, 0xf0, 0, 0, 0]));
    }
}
