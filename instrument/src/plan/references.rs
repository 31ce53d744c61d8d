//! The memory references of an instruction: one list of templates for each opcode, computed once.
//!
//! Crate `event` defines what counts as a reference, and the order of an instruction's references.
//! **Problem.** `iced-x86` can list the memory that an instruction uses, but that takes 60–100 ns,
//! and the translator needs it for every instruction. **Idea.** Only the address depends on the
//! instruction; the number, kinds and sizes of its references are properties of its opcode. So the
//! list is made once for each combination of opcode, memory operand (or none), repeat prefix,
//! opmask, broadcast and nesting level of `enter`, and kept. **Complex references** (repeats,
//! gathers, masks, state areas) are only recognised here; `emit::complex` encodes them. The slow
//! twin in `reference/` derives the same facts independently from the manual.

use crate::code::assembler::{reg, Address};
use event::{ModifyFilter, RecordKind, Stream};
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashMap;

/// How a reference's address is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressForm {
    /// The address of the instruction's memory operand.
    Operand,
    /// `[rsp + displacement]`, with the value of rsp before the instruction.
    Stack(i32),
    /// `[register]`, by hardware number: rsi or rdi of string instructions (rsi with the
    /// instruction's segment), or the base of another implicit operand.
    Register(u8),
}

/// One reference of an instruction whose references all have a fixed number and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) form: AddressForm,
    pub(crate) kind: RecordKind,
    pub(crate) size_bytes: u32,
}

/// Why an instruction's references cannot be described by templates: their number, addresses or
/// sizes depend on more than an address expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complex {
    /// A string instruction with a repeat prefix, such as `rep movs`.
    Repeat,
    /// A contiguous vector access under an opmask register (AVX-512).
    Masked,
    /// `vmaskmov*`, `vpmaskmov*` or `maskmovdqu`, whose mask is a vector register.
    VectorMask,
    /// A gather or scatter: one reference per selected element.
    Gather,
    /// `xsave`, `xrstor` and their variants, whose extent depends on the requested components.
    State,
    /// An AMX tile load or store, whose extent depends on the tile configuration.
    Tile,
    /// The address depends on a register that is not part of the operand: `bt` and its variants
    /// with a bit offset in a register, and `xlatb`.
    BitOffset,
    /// A size that the short code of a record cannot express.
    Sized,
}

/// The references of an opcode.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceShape {
    /// The references in the order in which they are recorded; empty if `complex` is set.
    pub(crate) simple: Vec<Template>,
    /// Set if templates cannot describe the references.
    pub(crate) complex: Option<Complex>,
    /// Loads and stores per execution of a complex form whose number of references is fixed; (0, 0)
    /// for all others.
    pub(crate) fixed: (u8, u8),
}

impl ReferenceShape {
    /// Loads and stores per execution. Complex references of varying number are not included: they
    /// are counted while the program runs.
    pub(crate) fn counts(&self) -> (u8, u8) {
        let mut counts = self.fixed;
        for template in &self.simple {
            match template.kind {
                RecordKind::Load => counts.0 += 1,
                RecordKind::Store => counts.1 += 1,
                RecordKind::Modify => counts = (counts.0 + 1, counts.1 + 1),
                _ => {}
            }
        }
        counts
    }
}

/// The shapes of all opcodes seen so far. A shape's number is its index in `shapes`; number 0 means
/// "not computed yet".
pub(crate) struct ReferenceShapes {
    factory: InstructionInfoFactory,
    /// What is recorded of instructions that load and store at one address.
    modifies: ModifyFilter,
    /// Shape numbers of instructions without prefixes that matter, by opcode × 2 + (1 with a memory
    /// operand).
    index: Vec<u32>,
    /// Shape numbers of all other instructions, by opcode and the bits that [`ReferenceShapes::of`]
    /// packs.
    prefixed: HashMap<(Code, u8), u32>,
    shapes: Vec<ReferenceShape>,
    /// [`ReferenceShape::counts`] of each shape.
    counts: Vec<(u8, u8)>,
}

impl ReferenceShapes {
    /// Without any shape yet, for a run that records `stream`.
    pub(crate) fn new(stream: &Stream) -> ReferenceShapes {
        ReferenceShapes {
            factory: InstructionInfoFactory::new(),
            modifies: modifies(stream),
            index: vec![0; iced_x86::Code::values().len() * 2],
            prefixed: HashMap::new(),
            shapes: vec![ReferenceShape::default()],
            counts: vec![(0, 0)],
        }
    }

    /// Returns the number of `instruction`'s shape, for [`ReferenceShapes::get`].
    pub(crate) fn of(&mut self, instruction: &Instruction) -> u32 {
        let memory =
            (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        // Everything besides the opcode that changes the references, packed into a byte: repeat
        // prefix, opmask, broadcast; for `enter`, 8 plus its nesting level. Nearly all instructions
        // have none of these and find their shape in a flat table.
        let special = u8::from(instruction.has_rep_prefix() || instruction.has_repne_prefix())
            | u8::from(instruction.op_mask() != Register::None) << 1
            | u8::from(instruction.is_broadcast()) << 2
            | u8::from(instruction.has_lock_prefix() && self.modifies != ModifyFilter::Both) << 6;
        let nesting = if instruction.mnemonic() == Mnemonic::Enter {
            8 + (instruction.immediate8_2nd() & 31)
        } else {
            0
        };
        let special = special | nesting;
        let slot = instruction.code() as usize * 2 + usize::from(memory);
        if special != 0 {
            let key = (instruction.code(), special << 1 | u8::from(memory));
            if let Some(&known) = self.prefixed.get(&key) {
                return known;
            }
            let number = self.add(instruction);
            self.prefixed.insert(key, number);
            return number;
        }
        if self.index[slot] == 0 {
            self.index[slot] = self.add(instruction);
        }
        self.index[slot]
    }

    /// The shape with number `number`.
    pub(crate) fn get(&self, number: u32) -> &ReferenceShape {
        &self.shapes[number as usize]
    }

    /// Loads and stores per execution of the shape with number `number`.
    pub(crate) fn counts(&self, number: u32) -> (u8, u8) {
        self.counts[number as usize]
    }

    fn add(&mut self, instruction: &Instruction) -> u32 {
        let shape = self.work_out(instruction);
        self.counts.push(shape.counts());
        self.shapes.push(shape);
        self.shapes.len() as u32 - 1
    }

    /// Computes the shape of `instruction`.
    fn work_out(&mut self, instruction: &Instruction) -> ReferenceShape {
        // Complex forms come first, because the decoder's list of their memory is incomplete.
        if let Some(complex) = complex(instruction) {
            let fixed = match (complex, instruction.mnemonic()) {
                (Complex::BitOffset, Mnemonic::Bt | Mnemonic::Xlatb) => (1, 0),
                (Complex::BitOffset, _) => match modified(instruction, self.modifies) {
                    [RecordKind::Modify] => (1, 1),
                    [RecordKind::Store] => (0, 1),
                    loads => (loads.len() as u8, 0),
                },
                _ => (0, 0),
            };
            return ReferenceShape { simple: Vec::new(), complex: Some(complex), fixed };
        }
        if ignored(instruction) {
            return ReferenceShape::default();
        }
        if instruction.mnemonic() == Mnemonic::Enter {
            return enter(instruction);
        }
        if let Some(kind) = hint(instruction) {
            let simple = vec![Template { form: AddressForm::Operand, kind, size_bytes: 1 }];
            return ReferenceShape { simple, ..ReferenceShape::default() };
        }
        let mut simple: Vec<Template> = Vec::new();
        // All others: the decoder's list, brought into the order that `event` defines.
        for used in self.factory.info(instruction).used_memory() {
            let kinds = match kinds(used.access()) {
                Some(&[RecordKind::Modify]) => modified(instruction, self.modifies),
                Some(kinds) => kinds,
                None => continue,
            };
            let size_bytes = used.memory_size().size() as u32;
            let form = form(instruction, used);
            for &kind in kinds {
                simple.push(Template { form, kind, size_bytes });
            }
        }
        order(instruction, &mut simple);
        // A record's code has room for common sizes only; other sizes need a record of their own.
        if simple.iter().any(|template| event::Code::new(template.kind, template.size_bytes).is_none()) {
            return ReferenceShape { complex: Some(Complex::Sized), ..ReferenceShape::default() };
        }
        ReferenceShape { simple, ..ReferenceShape::default() }
    }
}

/// The references of `enter`: it pushes rbp and, with a nesting level, a display of frame pointers
/// and the new frame's address. Its loads from the old display do not count as references.
fn enter(instruction: &Instruction) -> ReferenceShape {
    let nesting = i32::from(instruction.immediate8_2nd() & 31);
    let stores = 1 + nesting;
    let store =
        |nth: i32| Template { form: AddressForm::Stack(-8 * nth), kind: RecordKind::Store, size_bytes: 8 };
    ReferenceShape { simple: (1..=stores).map(store).collect(), ..ReferenceShape::default() }
}

/// The references of a memory operand with this access; `None` if it only forms an address.
fn kinds(access: OpAccess) -> Option<&'static [RecordKind]> {
    Some(match access {
        OpAccess::Read | OpAccess::CondRead => &[RecordKind::Load],
        OpAccess::Write | OpAccess::CondWrite => &[RecordKind::Store],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[RecordKind::Modify],
        _ => return None,
    })
}

/// What `stream` records of instructions that load and store at one address.
pub(crate) fn modifies(stream: &Stream) -> ModifyFilter {
    match stream {
        Stream::Filtered(filter) => filter.modifies,
        _ => ModifyFilter::Both,
    }
}

/// The records of `instruction`, which loads and stores at one address, without what `modifies`
/// leaves out. Locked instructions keep the load before they compare and exchange; those that only
/// compare and exchange have none.
pub(crate) fn modified(instruction: &Instruction, modifies: ModifyFilter) -> &'static [RecordKind] {
    use Mnemonic::{Cmpxchg, Cmpxchg16b, Cmpxchg8b, Xchg};
    let mnemonic = instruction.mnemonic();
    let locked = (instruction.has_lock_prefix() || mnemonic == Xchg)
        && !matches!(mnemonic, Cmpxchg | Cmpxchg8b | Cmpxchg16b);
    match (modifies, locked) {
        (ModifyFilter::Both, _) | (ModifyFilter::StoreAlone, true) => &[RecordKind::Modify],
        (ModifyFilter::StoreAlone, false) => &[RecordKind::Store],
        (ModifyFilter::LoadAlone, true) => &[RecordKind::Load, RecordKind::Load],
        (ModifyFilter::LoadAlone, false) => &[RecordKind::Load],
    }
}

/// How the address of `access`, one entry of the decoder's list for `instruction`, is formed.
fn form(instruction: &Instruction, used: &iced_x86::UsedMemory) -> AddressForm {
    let explicit = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if instruction.is_stack_instruction() && used.base() == Register::RSP {
        // `push m`, `call m` and `pop m` have two accesses: one to the operand and one to the
        // stack. A push or call loads from its operand, and a pop stores to it.
        let read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        let operand_reads = instruction.stack_pointer_increment() < 0;
        if explicit && read == operand_reads {
            return AddressForm::Operand;
        }
        return AddressForm::Stack(instruction.stack_pointer_increment().min(0));
    }
    if explicit {
        return AddressForm::Operand;
    }
    AddressForm::Register(crate::code::decode::number(used.base()).unwrap_or(reg::RSP))
}

/// Sorts references: loads before stores; operand before stack for pushes and calls, stack before
/// operand for pops; `[rsi]` before `[rdi]` for `cmps`.
fn order(instruction: &Instruction, simple: &mut [Template]) {
    let pop = matches!(instruction.mnemonic(), Mnemonic::Pop);
    arrange(simple, &|template| {
        let store = template.kind == RecordKind::Store;
        let stack = matches!(template.form, AddressForm::Stack(_));
        (store, if pop { !stack } else { stack })
    });
    if matches!(instruction.mnemonic(), Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq)
    {
        arrange(simple, &|template| (template.form != AddressForm::Register(6), false));
    }
}

/// Sorts the few references of an instruction; equal ones keep their order.
fn arrange(simple: &mut [Template], key: &dyn Fn(&Template) -> (bool, bool)) {
    for end in 1..simple.len() {
        let mut at = end;
        while at > 0 && key(&simple[at]) < key(&simple[at - 1]) {
            simple.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Whether an instruction's memory operand is not a reference: it only forms an address, or names a
/// cache line or page without touching it.
fn ignored(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Lea | Nop | Endbr64 | Endbr32 | Reservednop | Bndmk | Bndcl | Bndcu | Bndcn | Cldemote | Invlpg
    )
}

/// The kind of reference if the instruction is a prefetch or a cache-line flush.
fn hint(instruction: &Instruction) -> Option<RecordKind> {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Prefetch
            | Prefetchw
            | Prefetchwt1
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchit0
            | Prefetchit1
            | Clflush
            | Clflushopt
            | Clwb
    )
    .then_some(RecordKind::Prefetch)
}

/// Why templates cannot describe the references of `instruction`; `None` if they can.
fn complex(instruction: &Instruction) -> Option<Complex> {
    use Mnemonic::*;
    if instruction.is_string_instruction() {
        return (instruction.has_rep_prefix() || instruction.has_repne_prefix()).then_some(Complex::Repeat);
    }
    let memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if instruction.memory_index().is_vector_register() {
        return Some(Complex::Gather);
    }
    match instruction.mnemonic() {
        Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64 | Xsaves | Xsaves64 | Xrstor
        | Xrstor64 | Xrstors | Xrstors64 => return Some(Complex::State),
        Tileloadd | Tileloaddt1 | Tilestored => return Some(Complex::Tile),
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => return memory.then_some(Complex::VectorMask),
        Maskmovdqu | Vmaskmovdqu | Maskmovq => return Some(Complex::VectorMask),
        Xlatb => return Some(Complex::BitOffset),
        Bt | Bts | Btr | Btc if memory && instruction.op1_kind() == OpKind::Register => {
            return Some(Complex::BitOffset)
        }
        _ => {}
    }
    if memory
        && instruction.has_op_mask()
        && !crate::plan::masking::reads_whole_source(instruction.mnemonic())
    {
        return Some(Complex::Masked);
    }
    None
}

/// The memory operand of `instruction` as an address; `None` if it has none that generated code can
/// form.
pub(crate) fn operand(instruction: &Instruction) -> Option<Address> {
    use crate::code::decode::number;
    let base = instruction.memory_base();
    let fs = instruction.memory_segment() == Register::FS;
    if base == Register::RIP || base == Register::EIP {
        let displacement = instruction.ip_rel_memory_address() as i64;
        return Some(Address { base: None, index: None, scale_log2: 0, displacement, short: false, fs });
    }
    let index = instruction.memory_index();
    let short = matches!(instruction.memory_displ_size(), 4)
        && base == Register::None
        && index == Register::None
        && instruction.memory_displacement64() <= u64::from(u32::MAX)
        && instruction.memory_displacement64() > i32::MAX as u64;
    let narrow = |register: Register| register.is_gpr32();
    Some(Address {
        base: number(base),
        index: number(index),
        scale_log2: instruction.memory_index_scale().trailing_zeros() as u8,
        displacement: displacement(instruction),
        short: short || narrow(base) || narrow(index),
        fs,
    })
}

/// The operand's displacement in bytes, sign-extended if the address has 32 bits.
fn displacement(instruction: &Instruction) -> i64 {
    let bits = instruction.memory_displacement64();
    if instruction.memory_base().is_gpr32() || instruction.memory_index().is_gpr32() {
        return i64::from(bits as u32 as i32);
    }
    bits as i64
}

/// The address of the reference of `instruction` with this form.
pub(crate) fn address(instruction: &Instruction, form: AddressForm) -> Option<Address> {
    match form {
        AddressForm::Operand => operand(instruction).map(|address| pop_adjusted(instruction, address)),
        AddressForm::Stack(displacement) => Some(Address::based(reg::RSP, i64::from(displacement))),
        AddressForm::Register(register) => {
            let mut address = Address::based(register, 0);
            address.fs = instruction.segment_prefix() == Register::FS && register != 7;
            Some(address)
        }
    }
}

/// Corrects the address of `pop [rsp + d]`, which the processor forms with the rsp after the pop.
fn pop_adjusted(instruction: &Instruction, mut address: Address) -> Address {
    if instruction.mnemonic() == Mnemonic::Pop && address.base == Some(reg::RSP) {
        address.displacement += i64::from(instruction.stack_pointer_increment());
    }
    address
}
