//! The type of what a call returned, by what the code behind the call does with it.
//!
//! **The problem.** An allocating function returns a pointer to nothing in particular; the type is
//! that of the variable, field, parameter or function that gets it. **The idea.** The result is in
//! `rax`. The instructions behind the call are followed for a few steps, with the set of registers
//! that hold it:
//!
//! | the code | the type is that of |
//! |---|---|
//! | keeps it in a register in which debug information says that a variable is | the variable |
//! | stores it in a variable of the function, or of all | the variable |
//! | stores it behind a pointer in a register that has a variable | the field there |
//! | passes it to a function of the file | the parameter |
//! | returns it | the function; if that is `void *`, the caller is asked the same question |
//!
//! A pointer to void says nothing, and one to bytes counts only if nothing else is found: both are
//! what functions around an allocator have. **Leaves out** variables by offsets from `rsp`.

use super::entries::{DebugFile, Entry, EntryId};
use super::function::{is_in_scope, scopes_of, variables_of};
use gimli::{AttributeValue, Operation};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Instructions that are followed.
const STEPS: usize = 40;
/// Bytes of code that are read at once.
const CODE_BYTES: usize = 256;

/// What becomes of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is a pointer to this type, and what told so.
    Known(EntryId, String),
    /// The function returns it, and does not say what it is.
    Returned,
    /// Nothing tells.
    Unknown,
}

/// A call in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace {
    /// Its link address.
    pub(crate) address: u64,
    /// Its offset in the file.
    pub(crate) offset: u64,
}

/// General registers by their numbers in DWARF.
const REGISTERS: [Register; 16] = [
    Register::RAX,
    Register::RDX,
    Register::RCX,
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::RSP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
/// Registers of arguments, in order.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// Registers that a called function keeps.
const KEPT: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// Follows the result of a call.
struct Following<'a> {
    file: &'a mut DebugFile,
    unit: u32,
    function: EntryId,
    /// Variables and parameters of the function, with the ranges in which they are in scope.
    variables: Vec<(EntryId, Entry)>,
    held: Vec<Register>,
    /// A pointer to bytes, and what told so.
    bytes: Option<(EntryId, String)>,
}

/// What becomes of the result of a call.
pub(crate) fn fate(file: &mut DebugFile, call: CallPlace) -> Fate {
    let Some(unit) = file.unit_at(call.address) else { return Fate::Unknown };
    let Some(function) = file.function_at(unit, call.address) else { return Fate::Unknown };
    let variables = variables_of(file, function);
    let mut following = Following { file, unit, function, variables, held: vec![Register::RAX], bytes: None };
    let found = following.follow(call);
    match (found, following.bytes) {
        (Fate::Known(id, way), _) => Fate::Known(id, way),
        (_, Some((id, way))) => Fate::Known(id, way),
        (fate, None) => fate,
    }
}

impl Following<'_> {
    fn follow(&mut self, call: CallPlace) -> Fate {
        let shift = call.address.wrapping_sub(call.offset);
        let mut at = call.address;
        let mut code = self.file.bytes(call.offset, CODE_BYTES);
        let mut decoder = Decoder::with_ip(64, &code, at, DecoderOptions::NONE);
        let first = decoder.decode();
        at = first.next_ip();
        let mut before = first;
        for _ in 0..STEPS {
            if let Some((id, way)) = self.variable_in_register(at) {
                return Fate::Known(id, way);
            }
            let offset = at.wrapping_sub(shift);
            code = self.file.bytes(offset, 16);
            let instruction = Decoder::with_ip(64, &code, at, DecoderOptions::NONE).decode();
            if instruction.code() == Code::INVALID {
                return Fate::Unknown;
            }
            at = match self.step(&instruction, &before) {
                Ok(next) => next,
                Err(fate) => return fate,
            };
            if self.held.is_empty() {
                return Fate::Unknown;
            }
            before = instruction;
        }
        Fate::Unknown
    }

    /// Follows one instruction; returns the address of the next one, or what was found.
    fn step(&mut self, instruction: &Instruction, before: &Instruction) -> Result<u64, Fate> {
        match instruction.flow_control() {
            FlowControl::Return if self.held.contains(&Register::RAX) => return Err(self.returned()),
            FlowControl::Return => return Err(Fate::Unknown),
            FlowControl::UnconditionalBranch => return Ok(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => {
                // `test rax, rax` and a jump if it is not 0: the result is good at the target.
                let tests = before.mnemonic() == Mnemonic::Test && self.held.contains(&before.op0_register());
                let is_good = tests && instruction.mnemonic() == Mnemonic::Jne;
                return Ok(if is_good { instruction.near_branch_target() } else { instruction.next_ip() });
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                if let Some((id, way)) = self.parameter(instruction) {
                    return Err(Fate::Known(id, way));
                }
                self.held.retain(|register| KEPT.contains(register));
                return Ok(instruction.next_ip());
            }
            FlowControl::Next => {}
            _ => return Err(Fate::Unknown),
        }
        let is_move = instruction.mnemonic() == Mnemonic::Mov && instruction.op_count() == 2;
        let source = instruction.op1_register();
        let moves = is_move && instruction.op1_kind() == OpKind::Register && self.held.contains(&source);
        match instruction.op0_kind() {
            OpKind::Register if moves => {
                let to = instruction.op0_register();
                if !self.held.contains(&to) {
                    self.held.push(to);
                }
            }
            OpKind::Memory if moves => {
                if let Some((id, way)) = self.stored(instruction) {
                    return Err(Fate::Known(id, way));
                }
            }
            OpKind::Register => {
                let reads = [Mnemonic::Test, Mnemonic::Cmp, Mnemonic::Push];
                let written = instruction.op0_register().full_register();
                if !reads.contains(&instruction.mnemonic()) {
                    self.held.retain(|register| *register != written);
                }
            }
            _ => {}
        }
        Ok(instruction.next_ip())
    }

    /// The function's own type, if it says what it returns.
    fn returned(&mut self) -> Fate {
        let name = self.file.name_of(self.function).unwrap_or_default();
        let of = self.file.type_of(self.function);
        match of.and_then(|of| self.pointee(of, || format!("returned by {name}"))) {
            Some((id, way)) => Fate::Known(id, way),
            None => Fate::Returned,
        }
    }

    /// What a type points to, if that is told apart from bytes; bytes are noted.
    fn pointee(&mut self, of: EntryId, way: impl FnOnce() -> String) -> Option<(EntryId, String)> {
        let to = self.file.pointee(of)?;
        match self.file.size_of(to)? {
            0 => None,
            1 => {
                self.bytes.get_or_insert_with(|| (to, way()));
                None
            }
            _ => Some((to, way())),
        }
    }

    fn is_in_scope(&mut self, entry: &Entry, address: u64) -> bool {
        is_in_scope(&scopes_of(self.file, self.function, entry), address)
    }

    /// The operation by which a variable is found at an address.
    fn operation(&mut self, entry: &Entry, address: u64) -> Option<Operation<symbol::SectionReader>> {
        let expression = self.file.location_at(self.unit, entry.location.as_ref()?, address)?;
        self.file.single(self.unit, expression)
    }

    /// The variable that is in a register that holds the result.
    fn variable_in_register(&mut self, address: u64) -> Option<(EntryId, String)> {
        let held = self.held.clone();
        self.variable_where(address, |operation| match operation {
            Operation::Register { register } | Operation::RegisterOffset { register, offset: 0, .. } => {
                REGISTERS.get(usize::from(register.0)).is_some_and(|register| held.contains(register))
            }
            _ => false,
        })
    }

    /// What the first variable points to whose place at an address is accepted.
    fn variable_where(
        &mut self,
        address: u64,
        accepted: impl Fn(&Operation<symbol::SectionReader>) -> bool,
    ) -> Option<(EntryId, String)> {
        for (id, entry) in self.variables.clone() {
            let is_there = self.operation(&entry, address).is_some_and(|operation| accepted(&operation));
            if !is_there || !self.is_in_scope(&entry, address) {
                continue;
            }
            let name = self.file.name_of(id).unwrap_or_default();
            let of = self.file.type_of(id);
            let found = of.and_then(|of| self.pointee(of, || format!("variable {name}")));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// What the place points to in which an instruction stores the result.
    fn stored(&mut self, instruction: &Instruction) -> Option<(EntryId, String)> {
        let address = instruction.ip();
        let displacement = instruction.memory_displacement64();
        if instruction.is_ip_rel_memory_operand() || instruction.memory_base() == Register::None {
            let variable = self.file.variable_at(displacement)?;
            let name = self.file.name_of(variable).unwrap_or_default();
            let of = self.file.type_of(variable)?;
            return self.pointee(of, || format!("variable {name}"));
        }
        if instruction.memory_base() == Register::RBP {
            let base = self.frame_base_from_rbp()?;
            let wanted = (displacement as i64).wrapping_sub(base);
            return self.variable_where(
                address,
                |operation| matches!(operation, Operation::FrameOffset { offset } if *offset == wanted),
            );
        }
        if instruction.memory_index() != Register::None {
            return None;
        }
        self.field(address, instruction.memory_base(), displacement)
    }

    /// What `DW_OP_fbreg` counts from, less `rbp`.
    fn frame_base_from_rbp(&mut self) -> Option<i64> {
        let AttributeValue::Exprloc(base) = self.file.entry(self.function)?.frame_base? else {
            return None;
        };
        match self.file.single(self.unit, base)? {
            // Behind a prologue, the caller's frame begins above the saved `rbp` and the return
            // address.
            Operation::CallFrameCFA => Some(16),
            Operation::Register { register } if register.0 == 6 => Some(0),
            _ => None,
        }
    }

    /// What the field points to at an offset from the variable in a register.
    fn field(&mut self, address: u64, base: Register, offset: u64) -> Option<(EntryId, String)> {
        for (id, entry) in self.variables.clone() {
            let is_there = matches!(
                self.operation(&entry, address),
                Some(Operation::Register { register }) if REGISTERS.get(usize::from(register.0)) == Some(&base)
            );
            if !is_there || !self.is_in_scope(&entry, address) {
                continue;
            }
            let of = self.file.type_of(id)?;
            let Some(to) = self.file.pointee(of) else { continue };
            let structure = self.file.type_name(to);
            let Some((member, name)) = self.file.member_at(to, offset) else { continue };
            let found = self.pointee(member, || format!("field {structure}.{name}"));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// What the parameter points to as which the result is passed.
    fn parameter(&mut self, call: &Instruction) -> Option<(EntryId, String)> {
        if call.op0_kind() != OpKind::NearBranch64 {
            return None;
        }
        let number = ARGUMENTS.iter().position(|register| self.held.contains(register))?;
        let target = call.near_branch_target();
        let unit = self.file.unit_at(target)?;
        let function = self.file.function_at(unit, target)?;
        let rows = self.file.rows(unit);
        let own = &rows[function.row as usize];
        if own.ranges.first().is_none_or(|range| range.start != target) {
            return None;
        }
        let is_parameter = |row: &u32| {
            let entry = &rows[*row as usize];
            entry.tag == gimli::DW_TAG_formal_parameter && entry.parent == Some(function.row)
        };
        let row = (function.row + 1..own.end).filter(is_parameter).nth(number)?;
        let parameter = EntryId { unit, row };
        let name = self.file.name_of(function).unwrap_or_default();
        let of = self.file.type_of(parameter)?;
        self.pointee(of, || format!("passed to {name}"))
    }
}

impl DebugFile {
    /// The type and name of the member at an offset of a structure.
    fn member_at(&mut self, id: EntryId, offset: u64) -> Option<(EntryId, String)> {
        let (mut id, mut offset) = (self.peeled(id)?, offset);
        for _ in 0..4 {
            let end = self.entry(id)?.end;
            let members: Vec<Entry> = (id.row + 1..end)
                .filter_map(|row| self.entry(EntryId { row, ..id }).cloned())
                .filter(|entry| entry.tag == gimli::DW_TAG_member && entry.parent == Some(id.row))
                .collect();
            let begins = |entry: &&Entry| entry.member_offset.unwrap_or(0) <= offset && entry.of.is_some();
            let member =
                members.iter().filter(begins).max_by_key(|entry| entry.member_offset.unwrap_or(0))?;
            let of = self.at(member.of?)?;
            let inner = self.peeled(of)?;
            let name = member.name.clone().unwrap_or_default();
            offset -= member.member_offset.unwrap_or(0);
            if offset == 0 && self.pointee(of).is_some() {
                return Some((of, name));
            }
            id = inner;
        }
        None
    }
}
