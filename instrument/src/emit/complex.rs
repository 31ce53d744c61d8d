//! Records of complex references: those that need more than an address.
//!
//! # The problem
//!
//! The bytes that a repeat, a mask, a gather or a state area touches depend on counts, mask bits
//! and vectors of indices, which are known at run time only. Inline code that computes the extent
//! would take as long as simulating it.
//!
//! # The idea
//!
//! Generated code writes down the values on which the extent depends (those of `event::Shape`), one
//! record each, and the reader of the records computes the extent. Values pass through general
//! registers, vectors through the context's memory.
//!
//! ```text
//!   before the instruction                        behind it (repeats only)
//!   ┌─────────────────────────────────────┐       ┌──────────────────────────────────┐
//!   │ make sure that the ring has room    │       │ pointers before, pointer behind, │
//!   │ value 0: shape and first address    │       │ base of the segment              │
//!   │ value 1…: mask, indices, sizes      │       └──────────────────────────────────┘
//!   │ position += 16 × values             │
//!   │ filter: empty what may be touched   │
//!   └─────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! - The values of a reference stand one behind the other in one segment: behind one check of the
//!   limit, the ring's slack has room for all of them.
//! - After such a reference the data filter no longer knows any line that the reference may have
//!   replaced. A masked or computed reference empties only the sets of its few bytes, because
//!   string functions of a C library compare under masks: emptying all sets made a sixth of an
//!   interpreter's records. All other references empty the whole filter.
//! - Behind a repeat all flags and registers hold the program's values, and must not change.

use super::emitter::Emitter;
use super::filter::{forget_lines, tables};
use crate::code::assembler::{gpr, in_context, reg, Address, Assembler};
use crate::code::buffer::{Label, Routine, Section};
use crate::code::decode::{number, Decoded};
use crate::code::state_map::FLAGS_BIT;
use crate::plan::block::data_filter;
use crate::plan::masking;
use crate::plan::references::{modified, modifies, operand, Complex};
use crate::plan::string::string_shape;
use crate::target::layout::context;
use assembler::vector::{MaskSize, Width};
use assembler::{Extend, Gpr, Mask, Memory, Mmx, Shift, Size, Vector};
use event::{
    AddressWidth, Code, Direction, MaskedLayout, RecordKind, Shape, StateFormat, Stream, StringOperation,
    COMPLEX_CODE, PAYLOAD_CODE,
};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Emitter {
    /// Emits the code before the instruction: its record, or, for a repeat, the saves of its
    /// pointers.
    pub(super) fn complex_before(&mut self, decoded: &Decoded, complex: Complex, site: u32) {
        let instruction = &decoded.instruction;
        // The instruction's registers must hold the program's values while its record is made, and
        // scratch registers must be others.
        let needs = operand_registers(instruction) | implicit_registers(complex);
        self.let_go();
        self.free_flags();
        self.restore(needs & !FLAGS_BIT);
        let position = self.scratch(needs);
        self.buffer.hot.load(position, context::RING_POSITION);
        self.check_ring(position);
        // The extent of a repeat is known only behind it, so its pointers are saved now.
        if complex == Complex::Repeat {
            self.buffer.hot.store(6, context::REPEAT);
            self.buffer.hot.store(7, context::REPEAT + 8);
            return;
        }
        // All other references are recorded now: one record for each value of their shape.
        let scratch = self.scratch(needs | 1 << position);
        let states = self.setting.answered.states();
        let mut group =
            Values { hot: &mut self.buffer.hot, position, scratch, site, written: 0, wrote: Wrote::Nothing };
        group.hot.load(position, context::RING_POSITION);
        match complex {
            Complex::Masked => group.masked(instruction),
            Complex::VectorMask => group.vector_mask(instruction),
            Complex::Gather => group.gather(instruction),
            Complex::State => group.state(instruction, states),
            Complex::Tile => group.tile(instruction),
            Complex::BitOffset => {
                // Behind a locked load, a second one would meet the same line.
                let kind = modified(instruction, modifies(&self.setting.stream))[0];
                group.computed(instruction, kind);
            }
            Complex::Sized => group.sized(instruction),
            Complex::Repeat => {}
        }
        // A reference to a few bytes empties only the sets of these bytes. For that its address is
        // computed again.
        let written = group.written;
        let wrote = group.wrote;
        let near = near_bytes(instruction, complex).filter(|_| data_filter(&self.setting.stream).is_some());
        if near.is_some() && complex != Complex::BitOffset {
            group.address(instruction);
        }
        // The position in memory moves behind all records at once.
        self.buffer.hot.lea(position, &Address::based(position, 16 * i64::from(written)));
        self.buffer.hot.store(position, context::RING_POSITION);
        // These references have bypassed the filter, so it no longer knows the last line of their
        // sets.
        match (near, self.setting.stream) {
            (Some(bytes), Stream::Filtered(filter)) => {
                let touched = |table| forget_lines(&mut self.buffer.hot, scratch, position, bytes, &table);
                tables(&filter, RecordKind::Load).for_each(touched);
            }
            _ => self.empty_filter(),
        }
        match wrote {
            Wrote::Nothing => {}
            Wrote::Values(shape) => self.use_pages_of_complex(shape, site),
            Wrote::Plain(size_bytes) => self.use_pages_of_recorded(scratch, size_bytes, site),
        }
    }

    /// Emits the code behind a repeat: its group of values, from the registers before and after it.
    /// Changes no flags.
    pub(super) fn complex_after(&mut self, decoded: &Decoded, complex: Complex, site: u32) {
        if complex != Complex::Repeat {
            return;
        }
        // A check of the ring's limit may have left the position in a register.
        self.let_go();
        let shape = string_shape(&decoded.instruction);
        // The number of completed elements follows from a pointer that every operation moves: rsi
        // for `lods`, rdi for all others.
        let moved =
            if matches!(shape, Shape::String { operation: StringOperation::Lods, .. }) { 6 } else { 7 };
        // The flags are the program's here, so no instruction may change them.
        self.buffer.hot.store(reg::RAX, context::TEMP);
        self.buffer.hot.store(reg::RDX, context::TEMP + 8);
        self.buffer.hot.load(reg::RDX, context::RING_POSITION);
        let mut group = Values {
            hot: &mut self.buffer.hot,
            position: reg::RDX,
            scratch: reg::RAX,
            site,
            written: 0,
            wrote: Wrote::Nothing,
        };
        // The values are the pointers before, the pointer behind, and the segment's base if the
        // repeat uses one.
        for slot in [context::REPEAT, context::REPEAT + 8] {
            group.hot.load(reg::RAX, slot);
            group.write(reg::RAX, shape);
        }
        group.write(moved, shape);
        if shape.values() == 4 {
            group.hot.load(reg::RAX, context::FS_BASE);
            group.write(reg::RAX, shape);
        }
        let written = group.written;
        self.buffer.hot.lea(reg::RDX, &Address::based(reg::RDX, 16 * i64::from(written)));
        self.buffer.hot.store(reg::RDX, context::RING_POSITION);
        self.buffer.hot.load(reg::RDX, context::TEMP + 8);
        self.buffer.hot.load(reg::RAX, context::TEMP);
        self.empty_filter();
        self.use_pages_of_complex(shape, site);
    }

    /// Emits a call of the routine that empties the data filter. It uses no stack and changes no
    /// flags.
    fn empty_filter(&mut self) {
        if data_filter(&self.setting.stream).is_none() {
            return;
        }
        self.buffer.hot.store(reg::RAX, context::TEMP);
        // The return address goes into the context, because a call would write to the program's
        // stack.
        self.buffer.hot.code().lea(Size::Qword, Gpr::RAX, Memory::rip(0));
        let at = self.buffer.hot.len() - 4;
        self.buffer.hot.store(reg::RAX, context::RETURN);
        self.buffer.hot.load(reg::RAX, context::TEMP);
        let jump = self.buffer.hot.jump();
        self.buffer.want_routine(Section::Hot, jump, Routine::ClearFilter);
        self.buffer.link(Section::Hot, at, Label::Hot(self.buffer.hot.len()));
    }
}

/// Writes the values of one reference into the ring.
struct Values<'d> {
    hot: &'d mut Assembler,
    /// The register that holds the ring's position.
    position: u8,
    /// A free register.
    scratch: u8,
    site: u32,
    /// The number of values written.
    written: u32,
    wrote: Wrote,
}

/// The form in which a reference was written.
#[derive(Clone, Copy)]
enum Wrote {
    /// Nothing is written yet.
    Nothing,
    /// Values of this shape.
    Values(Shape),
    /// A plain record with this size in bytes.
    Plain(u32),
}

impl Values<'_> {
    /// Appends the value in `register` as a record.
    fn write(&mut self, register: u8, shape: Shape) {
        let at = 16 * self.written as u8;
        // The first record holds the shape of the reference; the others are its payloads.
        let (code, extra) = match self.written {
            0 => (COMPLEX_CODE, shape.extra()),
            payload => (PAYLOAD_CODE, payload),
        };
        self.wrote = Wrote::Values(shape);
        self.hot.store_at(register, self.position, at);
        self.hot.store_imm_at(self.position, at + 8, self.site << 8 | u32::from(code));
        self.hot.store_imm_at(self.position, at + 12, extra);
        self.written += 1;
    }

    /// Computes the linear address of the memory operand in the scratch register.
    fn address(&mut self, instruction: &Instruction) {
        let mut address = match instruction.mnemonic() {
            // These instructions have an implicit operand at rdi.
            Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => Address::based(7, 0),
            _ => operand(instruction).unwrap_or(Address::based(reg::RSP, 0)),
        };
        address.fs |= instruction.segment_prefix() == Register::FS;
        self.hot.lea(self.scratch, &address);
        self.hot.add_segment(self.scratch, &address);
    }

    /// Writes a reference that an opmask register masks: its address and its mask.
    fn masked(&mut self, instruction: &Instruction) {
        let whole = instruction.memory_size().size();
        let broadcast = masking::broadcast_element(instruction.mnemonic());
        // A broadcast reads one element, whatever the mask is. The others access one element for
        // each bit of the mask, each at its own place or packed together.
        let (layout, element_bytes, count) = if instruction.is_broadcast() || broadcast.is_some() {
            (MaskedLayout::Broadcast, whole, broadcast_count(instruction, broadcast))
        } else {
            let element = instruction.memory_size().element_size();
            let element = masking::mask_granularity(instruction.mnemonic()).unwrap_or(element).max(1);
            let packed = masking::is_packing(instruction.mnemonic());
            (if packed { MaskedLayout::Packed } else { MaskedLayout::InPlace }, element, whole / element)
        };
        let (element_bytes, count) = (element_bytes as u8, count.clamp(1, 64) as u8);
        let shape = Shape::Masked { direction: direction(instruction), layout, element_bytes, count };
        // The values are the address and the mask.
        self.address(instruction);
        self.write(self.scratch, shape);
        self.opmask(instruction.op_mask());
        self.write(self.scratch, shape);
    }

    /// Emits `kmovq scratch, mask`, or `kmovw` without AVX512BW.
    fn opmask(&mut self, mask: Register) {
        let mask = (mask as u32 - Register::K0 as u32) as u8;
        let wide = std::arch::is_x86_feature_detected!("avx512bw");
        let size = if wide { MaskSize::Qword } else { MaskSize::Word };
        self.hot.code().mask_to_register(size, gpr(self.scratch), Mask::numbered(mask));
    }

    /// Moves the sign bits of a mask vector into the scratch register.
    fn signs(&mut self, mask: Register, element_bytes: u8) {
        let (general, vector) = (gpr(self.scratch), Vector::numbered(vector_number(mask)));
        let width = if mask.is_ymm() { Width::Bits256 } else { Width::Bits128 };
        match element_bytes {
            4 => self.hot.code().dword_signs(width, general, vector),
            8 => self.hot.code().qword_signs(width, general, vector),
            _ => self.hot.code().byte_signs(width, general, vector),
        }
    }

    /// Writes a reference that a vector register masks: its address and the sign bits of the mask.
    fn vector_mask(&mut self, instruction: &Instruction) {
        // The mask consists of the sign bits of elements of this size.
        let bytes = match instruction.mnemonic() {
            Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => 4,
            Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => 8,
            _ => 1,
        };
        let (direction, mask) = match bytes {
            1 => (Direction::Store, instruction.op2_register()),
            _ => (direction(instruction), instruction.op1_register()),
        };
        let width = if mask.is_ymm() {
            32
        } else if mask.is_mm() {
            8
        } else {
            16
        };
        let layout = MaskedLayout::InPlace;
        let shape = Shape::Masked { direction, layout, element_bytes: bytes, count: width / bytes };
        // The values are the address and the sign bits.
        self.address(instruction);
        self.write(self.scratch, shape);
        if mask.is_mm() {
            let vector = (mask as u32 - Register::MM0 as u32) as u8;
            self.hot.code().byte_signs_mmx(gpr(self.scratch), Mmx::numbered(vector));
        } else {
            self.signs(mask, bytes);
        }
        self.write(self.scratch, shape);
    }

    /// Writes a gather or scatter: its base, its mask, and its indices.
    fn gather(&mut self, instruction: &Instruction) {
        let index = instruction.memory_index();
        let element_bytes = instruction.memory_size().element_size().max(4) as u8;
        // The decoder knows whether an index has 8 or 4 bytes.
        let index_bytes = if instruction.is_vsib64() { 8u8 } else { 4 };
        let index_width = if index.is_zmm() {
            64u8
        } else if index.is_ymm() {
            32
        } else {
            16
        };
        // A gather has its data in the first operand, a scatter in the second.
        let data = if instruction.op0_kind() == OpKind::Register {
            instruction.op0_register()
        } else {
            instruction.op1_register()
        };
        let data_width = if data.is_zmm() {
            64u8
        } else if data.is_ymm() {
            32
        } else {
            16
        };
        // The narrower of the two vectors limits the number of elements.
        let count = (index_width / index_bytes).min(data_width / element_bytes);
        let shape = Shape::Gather {
            direction: direction(instruction),
            scale: instruction.memory_index_scale() as u8,
            index_bytes,
            element_bytes,
            count,
            width: AddressWidth::Bits64,
        };
        // The base address leaves out the index, which is a vector.
        let base = Address {
            base: number(instruction.memory_base()),
            index: None,
            scale_log2: 0,
            displacement: instruction.memory_displacement64() as i64,
            short: false,
            fs: instruction.memory_segment() == Register::FS,
        };
        self.hot.lea(self.scratch, &base);
        self.hot.add_segment(self.scratch, &base);
        self.write(self.scratch, shape);
        // The enabled elements: an opmask register, or the sign bits of a vector.
        if instruction.op_mask() != Register::None {
            self.opmask(instruction.op_mask());
        } else {
            self.signs(instruction.op2_register(), element_bytes);
        }
        self.write(self.scratch, shape);
        // The indices pass through the context, 8 bytes in each value.
        let evex = instruction.op_mask() != Register::None;
        let width = if evex { Width::Bits512 } else { Width::Bits256 };
        self.hot.store_vector(vector_number(index), width, context::VECTOR);
        for value in 2..shape.values() as u32 {
            self.hot.load(self.scratch, context::VECTOR + 8 * (value - 2));
            self.write(self.scratch, shape);
        }
    }

    /// Writes a save or restore of a state area: its address, the requested components, and, for a
    /// restore, the components that the area holds.
    fn state(&mut self, instruction: &Instruction, states: u64) {
        use Mnemonic::*;
        let (direction, format) = match instruction.mnemonic() {
            Xrstor | Xrstor64 | Xrstors | Xrstors64 => (Direction::Load, StateFormat::Restore),
            Xsavec | Xsavec64 | Xsaves | Xsaves64 => (Direction::Store, StateFormat::Compact),
            _ => (Direction::Store, StateFormat::Standard),
        };
        let shape = Shape::State { direction, format };
        self.address(instruction);
        self.write(self.scratch, shape);
        // The components that eax requests, as far as the system has enabled them.
        self.hot.mov(self.scratch, reg::RAX);
        self.hot.and_imm(self.scratch, states as i32);
        self.write(self.scratch, shape);
        // The header of the area, behind its legacy part, lists the components that it holds.
        if format == StateFormat::Restore {
            self.address(instruction);
            self.hot.load_program(self.scratch, &Address::based(self.scratch, 520));
            self.write(self.scratch, shape);
        }
    }

    /// Writes a load or store of a tile: first row, distance of rows, their number, their bytes.
    fn tile(&mut self, instruction: &Instruction) {
        let shape = Shape::Tile { direction: direction(instruction) };
        let tile = if instruction.op0_kind() == OpKind::Register {
            instruction.op0_register()
        } else {
            instruction.op1_register()
        };
        let tile = (tile as u32 - Register::TMM0 as u32) & 7;
        let whole = operand(instruction).unwrap_or(Address::based(reg::RSP, 0));
        // The first value is the address of the first row, the second one the distance of rows.
        let first = Address { index: None, scale_log2: 0, ..whole };
        self.hot.lea(self.scratch, &first);
        self.hot.add_segment(self.scratch, &first);
        self.write(self.scratch, shape);
        let stride = Address { base: None, displacement: 0, fs: false, ..whole };
        match stride.index {
            Some(_) => self.hot.lea(self.scratch, &stride),
            None => self.hot.mov_imm(self.scratch, 0),
        }
        self.write(self.scratch, shape);
        let general = gpr(self.scratch);
        // The processor stores the shapes of its tiles as 64 bytes. They hold the number of rows
        // and the bytes of a row.
        self.hot.code().store_tile_configuration(in_context(context::VECTOR));
        let rows = in_context(context::VECTOR + 48 + tile);
        self.hot.code().extend_into(Extend::ZeroByte, general, rows);
        self.write(self.scratch, shape);
        let row_bytes = in_context(context::VECTOR + 16 + 2 * tile);
        self.hot.code().extend_into(Extend::ZeroWord, general, row_bytes);
        self.write(self.scratch, shape);
    }

    /// Writes `xlat`, or `bt` and its variants with a bit offset in a register: a plain record,
    /// whose address takes arithmetic. What changes its bit has a record of the kind `modified`.
    fn computed(&mut self, instruction: &Instruction, modified: RecordKind) {
        let (kind, bytes) = match instruction.mnemonic() {
            Mnemonic::Xlatb => (RecordKind::Load, 1),
            Mnemonic::Bt => (RecordKind::Load, instruction.op1_register().size() as u32),
            _ => (modified, instruction.op1_register().size() as u32),
        };
        // `xlat` adds al to rbx without its sign.
        if instruction.mnemonic() == Mnemonic::Xlatb {
            self.hot.code().extend_into(Extend::ZeroByte, gpr(self.scratch), Gpr::RAX);
            let mut sum = Address { index: Some(self.scratch), ..Address::based(3, 0) };
            sum.fs = instruction.segment_prefix() == Register::FS;
            self.hot.lea(self.scratch, &sum);
            self.hot.add_segment(self.scratch, &sum);
        } else {
            self.bit_address(instruction, bytes);
        }
        self.hot.store_at(self.scratch, self.position, 0);
        let code = Code::new(kind, bytes).map_or(0, |code| u32::from(code.0));
        self.hot.store_imm_at(self.position, 8, self.site << 8 | code);
        self.written = 1;
        self.wrote = Wrote::Plain(bytes);
    }

    /// Computes operand + (signed bit offset >> log2(bits)) × bytes in the scratch register.
    fn bit_address(&mut self, instruction: &Instruction, bytes: u32) {
        let scratch = self.scratch;
        let offset = number(instruction.op1_register()).unwrap_or(reg::RAX);
        // Extend the bit offset by its sign. The shifts turn it into a multiple of the operand's
        // size, in bytes.
        match bytes {
            8 => self.hot.mov(scratch, offset),
            4 => self.hot.code().extend_into(Extend::SignDword, gpr(scratch), gpr(offset)),
            _ => self.hot.code().extend_into(Extend::SignWord, gpr(scratch), gpr(offset)),
        }
        let shift = (bytes * 8).trailing_zeros() as u8;
        self.hot.code().shift(Shift::RightSigned, Size::Qword, gpr(scratch), shift);
        self.hot.code().shift(Shift::Left, Size::Qword, gpr(scratch), shift - 3);
        // The operand's address needs the scratch register too, so the sum uses the context.
        self.hot.store(scratch, context::TEMP + 16);
        self.address(instruction);
        self.hot.add_context(scratch, context::TEMP + 16);
    }

    /// Writes a reference of a fixed large size: its address.
    fn sized(&mut self, instruction: &Instruction) {
        let size_bytes = instruction.memory_size().size().clamp(1, 32767) as u16;
        let shape = Shape::Sized { direction: direction(instruction), size_bytes };
        self.address(instruction);
        self.write(self.scratch, shape);
    }
}

/// The most bytes of a reference after which only the sets of these bytes are emptied.
const NEAR_BYTES_MAX: usize = 128;

/// The number of bytes, from the address of a reference on, that contain all that it touches;
/// `None` if these are many.
fn near_bytes(instruction: &Instruction, complex: Complex) -> Option<u32> {
    // No vector is longer than 64 bytes. Areas and tiles are larger; repeats and gathers may touch
    // any address.
    let bytes = match complex {
        Complex::Masked => instruction.memory_size().size().max(64),
        Complex::VectorMask => 32,
        Complex::BitOffset => 8,
        Complex::Sized => instruction.memory_size().size().max(1),
        Complex::Gather | Complex::State | Complex::Tile | Complex::Repeat => return None,
    };
    (bytes <= NEAR_BYTES_MAX).then_some(bytes as u32)
}

/// The number of elements of the result that a broadcast fills.
fn broadcast_count(instruction: &Instruction, element: Option<usize>) -> usize {
    let register = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    // A broadcast fills the widest vector register among its operands.
    let width = register
        .filter(|register| register.is_vector_register())
        .map(|register| register.size())
        .max()
        .unwrap_or(64);
    width / element.unwrap_or(instruction.memory_size().element_size()).max(1)
}

/// The registers of the memory operand and of the explicit register operands, as bits.
fn operand_registers(instruction: &Instruction) -> u16 {
    let mut mask = operand(instruction).map_or(0, |address| address.registers());
    for index in 0..instruction.op_count() {
        if instruction.op_kind(index) == OpKind::Register {
            mask |= number(instruction.op_register(index)).map_or(0, |number| 1 << number);
        }
    }
    mask
}

/// The registers that an instruction of this form uses without naming them, as bits.
fn implicit_registers(complex: Complex) -> u16 {
    match complex {
        Complex::Repeat => 1 << 1 | 1 << 6 | 1 << 7 | 1,
        Complex::VectorMask => 1 << 7,
        Complex::State => 1 | 1 << 2,
        Complex::BitOffset => 1 | 1 << 3,
        _ => 0,
    }
}

fn direction(instruction: &Instruction) -> Direction {
    // The destination is the first operand, except in a few instructions that read memory and name
    // it first.
    let store = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Memory
        && !matches!(
            instruction.mnemonic(),
            Mnemonic::Ldmxcsr | Mnemonic::Fldenv | Mnemonic::Frstor | Mnemonic::Fxrstor
        );
    if store {
        Direction::Store
    } else {
        Direction::Load
    }
}

fn vector_number(register: Register) -> u8 {
    let base = if register.is_zmm() {
        Register::ZMM0
    } else if register.is_ymm() {
        Register::YMM0
    } else {
        Register::XMM0
    };
    (register as u32 - base as u32) as u8
}
