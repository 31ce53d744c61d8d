//! Which memory an instruction touches: a template per opcode, worked out once.
//!
//! `event` defines what counts as a reference and in which order. Asking `iced-x86` for the memory
//! used by each instruction costs 60–100 ns; everything but the registers in the address is a
//! property of the opcode, so templates are kept by (opcode, has a memory operand, broadcast).
//! Complex references (repeats, gathers, masks, state areas) are named here and encoded in
//! `emit::complex`. The slow twin in `reference/` works the same facts out by itself, from the
//! manual.

use crate::code::assembler::{reg, Address};
use event::RecordKind;
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashMap;

/// Where a reference points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressForm {
    /// The instruction's memory operand.
    Operand,
    /// `[rsp + this]` before the instruction.
    Stack(i32),
    /// `[rsi]` or `[rdi]` with their segment (string instructions), or `[rbx + al]` and other
    /// implicit forms.
    Register(u8),
}

/// One reference of a simple instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) form: AddressForm,
    pub(crate) kind: RecordKind,
    pub(crate) size_bytes: u32,
}

/// References that need more than an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complex {
    /// `rep movs` and kin.
    Repeat,
    /// Contiguous vector access under an opmask register.
    Masked,
    /// `vmaskmov*`, `vpmaskmov*`, `maskmovdqu`: mask in a vector register.
    VectorMask,
    /// Gather or scatter.
    Gather,
    /// `xsave` and kin.
    State,
    /// AMX tile load or store.
    Tile,
    /// An address that also depends on a bit offset register.
    BitOffset,
    /// A size without a short code.
    Sized,
}

/// What is known of an opcode.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceShape {
    /// Simple references in order; empty when `complex`.
    pub(crate) simple: Vec<Template>,
    /// Complex form, if it is one.
    pub(crate) complex: Option<Complex>,
    /// Loads and stores of a complex form whose number is fixed after all.
    pub(crate) fixed: (u8, u8),
}

impl ReferenceShape {
    /// Loads and stores per execution; complex ones are counted as they happen.
    pub(crate) fn counts(&self) -> (u8, u8) {
        let mut counts = self.fixed;
        for t in &self.simple {
            match t.kind {
                RecordKind::Load => counts.0 += 1,
                RecordKind::Store => counts.1 += 1,
                RecordKind::Modify => counts = (counts.0 + 1, counts.1 + 1),
                _ => {}
            }
        }
        counts
    }
}

/// The templates seen so far.
pub(crate) struct ReferenceShapes {
    factory: InstructionInfoFactory,
    index: Vec<u32>,
    prefixed: HashMap<(Code, u8), u32>,
    shapes: Vec<ReferenceShape>,
    counts: Vec<(u8, u8)>,
}

impl Default for ReferenceShapes {
    fn default() -> ReferenceShapes {
        ReferenceShapes {
            factory: InstructionInfoFactory::new(),
            index: vec![0; iced_x86::Code::values().len() * 2],
            prefixed: HashMap::new(),
            shapes: vec![ReferenceShape::default()],
            counts: vec![(0, 0)],
        }
    }
}

impl ReferenceShapes {
    /// Number of the shape of `i`, to be looked up with [`ReferenceShapes::get`].
    pub(crate) fn of(&mut self, i: &Instruction) -> u32 {
        let memory = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory);
        let special = u8::from(i.has_rep_prefix() || i.has_repne_prefix())
            | u8::from(i.op_mask() != Register::None) << 1
            | u8::from(i.is_broadcast()) << 2;
        let nesting = if i.mnemonic() == Mnemonic::Enter { 8 + (i.immediate8_2nd() & 31) } else { 0 };
        let special = special | nesting;
        let slot = i.code() as usize * 2 + usize::from(memory);
        if special != 0 {
            let key = (i.code(), special << 1 | u8::from(memory));
            if let Some(&known) = self.prefixed.get(&key) {
                return known;
            }
            let number = self.add(i);
            self.prefixed.insert(key, number);
            return number;
        }
        if self.index[slot] == 0 {
            self.index[slot] = self.add(i);
        }
        self.index[slot]
    }

    /// The shape with that number.
    pub(crate) fn get(&self, number: u32) -> &ReferenceShape {
        &self.shapes[number as usize]
    }

    /// [`ReferenceShape::counts`] of it.
    pub(crate) fn counts(&self, number: u32) -> (u8, u8) {
        self.counts[number as usize]
    }

    fn add(&mut self, i: &Instruction) -> u32 {
        let shape = self.work_out(i);
        self.counts.push(shape.counts());
        self.shapes.push(shape);
        self.shapes.len() as u32 - 1
    }

    fn work_out(&mut self, i: &Instruction) -> ReferenceShape {
        // Complex ones first: what the decoder lists of them is not what they touch.
        if let Some(complex) = complex(i) {
            let fixed = match (complex, i.mnemonic()) {
                (Complex::BitOffset, Mnemonic::Bt | Mnemonic::Xlatb) => (1, 0),
                (Complex::BitOffset, _) => (1, 1),
                _ => (0, 0),
            };
            return ReferenceShape { simple: Vec::new(), complex: Some(complex), fixed };
        }
        if ignored(i) {
            return ReferenceShape::default();
        }
        if i.mnemonic() == Mnemonic::Enter {
            return enter(i);
        }
        if let Some(kind) = hint(i) {
            let simple = vec![Template { form: AddressForm::Operand, kind, size_bytes: 1 }];
            return ReferenceShape { simple, ..ReferenceShape::default() };
        }
        let mut simple: Vec<Template> = Vec::new();
        // The others as the decoder lists them, in the order that the definition wants.
        for m in self.factory.info(i).used_memory() {
            let Some(kinds) = kinds(m.access()) else { continue };
            let size_bytes = m.memory_size().size() as u32;
            let form = form(i, m);
            for &kind in kinds {
                simple.push(Template { form, kind, size_bytes });
            }
        }
        order(i, &mut simple);
        if simple.iter().any(|t| event::Code::new(t.kind, t.size_bytes).is_none()) {
            return ReferenceShape { complex: Some(Complex::Sized), ..ReferenceShape::default() };
        }
        ReferenceShape { simple, ..ReferenceShape::default() }
    }
}

/// `enter` pushes rbp and, when nested, a display and the new frame's address; what it reads of the
/// old display is not a reference.
fn enter(i: &Instruction) -> ReferenceShape {
    let nesting = i32::from(i.immediate8_2nd() & 31);
    let stores = 1 + nesting;
    let store =
        |n: i32| Template { form: AddressForm::Stack(-8 * n), kind: RecordKind::Store, size_bytes: 8 };
    ReferenceShape { simple: (1..=stores).map(store).collect(), ..ReferenceShape::default() }
}

fn kinds(access: OpAccess) -> Option<&'static [RecordKind]> {
    Some(match access {
        OpAccess::Read | OpAccess::CondRead => &[RecordKind::Load],
        OpAccess::Write | OpAccess::CondWrite => &[RecordKind::Store],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[RecordKind::Modify],
        _ => return None,
    })
}

fn form(i: &Instruction, m: &iced_x86::UsedMemory) -> AddressForm {
    let explicit = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory);
    if i.is_stack_instruction() && m.base() == Register::RSP {
        // Of `push m`, `call m` and `pop m`, one access is the operand's and the other the stack's.
        let read = matches!(m.access(), OpAccess::Read | OpAccess::CondRead);
        let operand_reads = i.stack_pointer_increment() < 0;
        if explicit && read == operand_reads {
            return AddressForm::Operand;
        }
        return AddressForm::Stack(i.stack_pointer_increment().min(0));
    }
    if explicit {
        return AddressForm::Operand;
    }
    AddressForm::Register(crate::code::decode::number(m.base()).unwrap_or(reg::RSP))
}

/// Loads before stores; the operand before the stack for pushes and calls, the stack before the
/// operand for pops.
fn order(i: &Instruction, simple: &mut [Template]) {
    let pop = matches!(i.mnemonic(), Mnemonic::Pop);
    simple.sort_by_key(|t| {
        let store = t.kind == RecordKind::Store;
        let stack = matches!(t.form, AddressForm::Stack(_));
        (store, if pop { !stack } else { stack })
    });
    if matches!(i.mnemonic(), Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq) {
        simple.sort_by_key(|t| t.form != AddressForm::Register(6));
    }
}

fn ignored(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
        Lea | Nop | Endbr64 | Endbr32 | Reservednop | Bndmk | Bndcl | Bndcu | Bndcn | Cldemote | Invlpg
    )
}

fn hint(i: &Instruction) -> Option<RecordKind> {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
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

fn complex(i: &Instruction) -> Option<Complex> {
    use Mnemonic::*;
    if i.is_string_instruction() {
        return (i.has_rep_prefix() || i.has_repne_prefix()).then_some(Complex::Repeat);
    }
    let memory = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory);
    if i.memory_index().is_vector_register() {
        return Some(Complex::Gather);
    }
    match i.mnemonic() {
        Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64 | Xsaves | Xsaves64 | Xrstor
        | Xrstor64 | Xrstors | Xrstors64 => return Some(Complex::State),
        Tileloadd | Tileloaddt1 | Tilestored => return Some(Complex::Tile),
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => return memory.then_some(Complex::VectorMask),
        Maskmovdqu | Vmaskmovdqu | Maskmovq => return Some(Complex::VectorMask),
        Xlatb => return Some(Complex::BitOffset),
        Bt | Bts | Btr | Btc if memory && i.op1_kind() == OpKind::Register => {
            return Some(Complex::BitOffset)
        }
        _ => {}
    }
    if memory && i.has_op_mask() && !crate::plan::masking::reads_whole_source(i.mnemonic()) {
        return Some(Complex::Masked);
    }
    None
}

/// The memory operand of `i` as an address; `None` when it has none that generated code can form.
pub(crate) fn operand(i: &Instruction) -> Option<Address> {
    use crate::code::decode::number;
    let base = i.memory_base();
    let fs = i.memory_segment() == Register::FS;
    if base == Register::RIP || base == Register::EIP {
        let displacement = i.ip_rel_memory_address() as i64;
        return Some(Address { base: None, index: None, scale_log2: 0, displacement, short: false, fs });
    }
    let index = i.memory_index();
    let short = matches!(i.memory_displ_size(), 4)
        && base == Register::None
        && index == Register::None
        && i.memory_displacement64() <= u64::from(u32::MAX)
        && i.memory_displacement64() > i32::MAX as u64;
    let narrow = |r: Register| r.is_gpr32();
    Some(Address {
        base: number(base),
        index: number(index),
        scale_log2: i.memory_index_scale().trailing_zeros() as u8,
        displacement: displacement(i),
        short: short || narrow(base) || narrow(index),
        fs,
    })
}

fn displacement(i: &Instruction) -> i64 {
    let d = i.memory_displacement64();
    if i.memory_base().is_gpr32() || i.memory_index().is_gpr32() {
        return i64::from(d as u32 as i32);
    }
    d as i64
}

/// The address of a simple reference of `i`.
pub(crate) fn address(i: &Instruction, form: AddressForm) -> Option<Address> {
    match form {
        AddressForm::Operand => operand(i).map(|a| pop_adjusted(i, a)),
        AddressForm::Stack(displacement) => Some(Address::based(reg::RSP, i64::from(displacement))),
        AddressForm::Register(r) => {
            let mut a = Address::based(r, 0);
            a.fs = i.segment_prefix() == Register::FS && r != 7;
            Some(a)
        }
    }
}

/// `pop [rsp + d]` forms its address with the incremented rsp.
fn pop_adjusted(i: &Instruction, mut a: Address) -> Address {
    if i.mnemonic() == Mnemonic::Pop && a.base == Some(reg::RSP) {
        a.displacement += i64::from(i.stack_pointer_increment());
    }
    a
}
