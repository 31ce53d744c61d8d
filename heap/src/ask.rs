//! The instrumentation: asks for events at calls, at allocating functions and at returns.

use crate::allocator::{Entries, Follows, Function};
use crate::word::{self, tag};
use crate::Call;
use instrument::tool::{opcode_name, BlockView, InstructionView, Register, Requests, Transfer, Value};
use instrument::Module;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use symbol::Listing;

/// The calls that have numbers, and whether any function allocates.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) calls: Vec<Call>,
    pub(crate) modules: Vec<Module>,
    pub(crate) has_allocator: bool,
}

/// What both sides know.
pub(crate) type SharedKnown = Arc<Mutex<Known>>;

/// Asks for the events of blocks.
pub(crate) struct Asker {
    known: SharedKnown,
    follows: Follows,
    /// Modules that were met, with the functions that they have.
    modules: Vec<(Module, Arc<Entries>)>,
    /// The module of the last block.
    last: usize,
    /// Numbers of calls by module and address.
    numbers: HashMap<(usize, u64), u32>,
    /// Gets each module with its symbols.
    on_module: Option<OnModule>,
}

/// Gets a module with its symbols.
type OnModule = Box<dyn FnMut(&Module, &Listing)>;

impl Asker {
    pub(crate) fn new(known: SharedKnown, follows: Follows) -> Asker {
        Asker { known, follows, modules: Vec::new(), last: 0, numbers: HashMap::new(), on_module: None }
    }

    /// Passes each module on when it is met first, if it is a file with symbols.
    pub(crate) fn with_modules(self, on_module: impl FnMut(&Module, &Listing) + 'static) -> Asker {
        Asker { on_module: Some(Box::new(on_module)), ..self }
    }

    /// Asks for the events of a block.
    pub(crate) fn ask(&mut self, block: &BlockView<'_>, requests: &mut Requests) {
        if self.follows == Follows::Nothing {
            return;
        }
        let module = self.module(block.module());
        let entries = self.modules[module].1.clone();
        if let Some(function) = entries.at(block.address()) {
            enters(function, requests);
        }
        if entries.stores(block.address()) {
            block.instructions().for_each(|instruction| stores(&instruction, requests));
        }
        let Some(last) = block.last() else { return };
        match last.transfer() {
            // A call of the next instruction only reads the program counter.
            Transfer::Call(target) if target == last.address() + last.bytes().len() as u64 => {}
            transfer @ (Transfer::Call(_) | Transfer::IndirectCall) => {
                let number = self.number(module, last.address());
                let word = match transfer {
                    _ if entries.is_empty() => word::CALL,
                    Transfer::Call(_) => word::CALL_WITHIN,
                    _ => word::CALL_OUT,
                };
                requests.before(&last, Value::Register(Register::Rsp), tag(word, number));
            }
            Transfer::Return if !entries.is_empty() => {
                requests.before(&last, Value::Register(Register::Rsp), tag(word::LEAVE, 0));
                requests.before(&last, Value::Register(Register::Rax), tag(word::RESULT, 0));
            }
            // A function that is left by a jump into another one makes no call, and its own calls
            // are over.
            Transfer::Jump(_) | Transfer::IndirectJump if ends_frame(block) => {
                requests.before(&last, Value::Register(Register::Rsp), tag(word::BACK, 0));
            }
            _ => {}
        }
    }

    /// The number of a module, whose symbols are read when it is met first.
    fn module(&mut self, module: &Module) -> usize {
        if self.modules.get(self.last).is_none_or(|known| known.0 != *module) {
            let known = self.modules.iter().position(|known| known.0 == *module);
            self.last = known.unwrap_or_else(|| {
                let listing = Listing::of_symbols(&module.path);
                let of_listing = |listing| Entries::of(module, listing, self.follows);
                let entries = listing.as_ref().map_or_else(Entries::default, of_listing);
                if let (Some(listing), Some(on_module)) = (&listing, &mut self.on_module) {
                    on_module(module, listing);
                }
                let mut shared = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                shared.has_allocator |= !entries.is_empty();
                shared.modules.push(module.clone());
                self.modules.push((module.clone(), Arc::new(entries)));
                self.modules.len() - 1
            });
        }
        self.last
    }

    /// The number of the call at an address of a module.
    fn number(&mut self, module: usize, address: u64) -> u32 {
        *self.numbers.entry((module, address)).or_insert_with(|| {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let number = (known.calls.len() as u32).min(word::NUMBER_MAX);
            known.calls.push(Call { module: module as u32, address });
            number
        })
    }
}

/// Whether a block takes a frame off the stack.
fn ends_frame(block: &BlockView<'_>) -> bool {
    let takes =
        |name: &str| ["Pop", "Add", "Lea", "Leave", "Mov"].iter().any(|start| name.starts_with(start));
    let moves = |instruction: &InstructionView<'_>| instruction.writes().contains(Register::Rsp);
    block.instructions().any(|instruction| moves(&instruction) && takes(&opcode_name(instruction.opcode())))
}

/// Asks for the arguments of an allocating function that begins with the block.
fn enters(function: Function, requests: &mut Requests) {
    let mut event = |register, word| requests.at_start(Value::Register(register), tag(word, function as u32));
    event(Register::Rsp, word::ENTER);
    event(Register::Rdi, word::FIRST);
    match function {
        Function::AllocateArray | Function::AllocateAligned | Function::Resize => {
            event(Register::Rsi, word::SECOND);
        }
        Function::AllocateAt | Function::Copy => event(Register::Rdx, word::THIRD),
        Function::Allocate | Function::AllocatePages | Function::Free => {}
    }
    requests.at_start(Value::Instructions, tag(word::NOW, 0));
}

/// Asks for what an instruction stores if it stores a register of eight bytes.
fn stores(instruction: &InstructionView<'_>, requests: &mut Requests) {
    let is_store = instruction.is_store() && instruction.touches().len() == 1;
    let Some(register) = instruction.register(1).filter(|_| is_store) else { return };
    if opcode_name(instruction.opcode()) == "Mov_rm64_r64" {
        requests.before(instruction, Value::Address(0), tag(word::PLACE, 0));
        requests.before(instruction, Value::Register(register), tag(word::STORED, 0));
    }
}
