//! Records of complex references: those that need more than an address.
//!
//! # The problem
//!
//! The bytes that a repeat, a mask, a gather or a state area touches depend on counts, mask bits
//! and vectors of indices, which are known at run time only. Computing the extent in line would
//! take as long as simulating it.
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
//! - A reference's values stand one behind the other in one segment: the ring's slack has room for
//!   all of them behind one check.
//! - The data filter never claims to know a line that such a reference may have brought: of a
//!   masked or computed reference the sets of its few bytes are emptied (string functions of a C
//!   library compare under masks; emptying all sets made a sixth of an interpreter's records),
//!   behind the others all of it.
//! - Behind a repeat flags and registers are the program's, and nothing may change them.

use super::emitter::Emitter;
use super::filter::{forget_lines, tables};
use crate::code::assembler::{gpr, in_context, reg, Address, Assembler};
use crate::code::buffer::{Label, Routine, Section};
use crate::code::decode::{number, Decoded};
use crate::code::state_area::extended_states;
use crate::code::state_map::FLAGS_BIT;
use crate::plan::masking;
use crate::plan::references::{operand, Complex};
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
    /// Before the instruction: its record, or what a repeat must remember.
    pub(super) fn complex_before(&mut self, decoded: &Decoded, complex: Complex, site: u32) {
        let i = &decoded.instruction;
        // The instruction's registers must hold the program's values while its record is made, and
        // scratch registers must be others.
        let needs = operand_registers(i) | implicit_registers(complex);
        self.let_go();
        self.free_flags();
        self.restore(needs & !FLAGS_BIT);
        let position = self.scratch(needs);
        self.buffer.hot.load(position, context::RING_POSITION);
        self.check_ring(position);
        // How far a repeat came is known only behind it, so its pointers are saved now.
        if complex == Complex::Repeat {
            self.buffer.hot.store(6, context::REPEAT);
            self.buffer.hot.store(7, context::REPEAT + 8);
            return;
        }
        // All other references are recorded now: one record for each value of their shape.
        let scratch = self.scratch(needs | 1 << position);
        let mut group =
            Values { hot: &mut self.buffer.hot, position, scratch, site, written: 0, wrote: Wrote::Nothing };
        group.hot.load(position, context::RING_POSITION);
        match complex {
            Complex::Masked => group.masked(i),
            Complex::VectorMask => group.vector_mask(i),
            Complex::Gather => group.gather(i),
            Complex::State => group.state(i),
            Complex::Tile => group.tile(i),
            Complex::BitOffset => group.computed(i),
            Complex::Sized => group.sized(i),
            Complex::Repeat => {}
        }
        // A reference to a few bytes empties only the sets of these bytes, for which its address is
        // formed again.
        let written = group.written;
        let wrote = group.wrote;
        let near = near_bytes(i, complex).filter(|_| matches!(self.setting.stream, Stream::Filtered(_)));
        if near.is_some() && complex != Complex::BitOffset {
            group.address(i);
        }
        // The position in memory moves behind all records at once.
        self.buffer.hot.lea(position, &Address::based(position, 16 * i64::from(written)));
        self.buffer.hot.store(position, context::RING_POSITION);
        // These references bypassed the filter, which must not claim to know the last line of their
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

    /// After a repeat: its group, from the registers before and after. Touches no flags.
    pub(super) fn complex_after(&mut self, decoded: &Decoded, complex: Complex, site: u32) {
        if complex != Complex::Repeat {
            return;
        }
        let shape = string_shape(&decoded.instruction);
        // The number of elements that were done follows from a pointer that certainly moved: rsi
        // for `lods`, rdi for all others.
        let moved =
            if matches!(shape, Shape::String { operation: StringOperation::Lods, .. }) { 6 } else { 7 };
        // Flags are the program's again, so nothing here may change them.
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
        // The pointers before, the pointer behind, and the segment's base where there is one.
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

    /// Calls the routine that empties the data filter, without the stack and without flags.
    fn empty_filter(&mut self) {
        if !matches!(self.setting.stream, Stream::Filtered(_)) {
            return;
        }
        self.buffer.hot.store(reg::RAX, context::TEMP);
        // The way back is an address in the context: a call would write to the program's stack.
        self.buffer.hot.code().lea(Size::Qword, Gpr::RAX, Memory::rip(0));
        let at = self.buffer.hot.len() - 4;
        self.buffer.hot.store(reg::RAX, context::RETURN);
        self.buffer.hot.load(reg::RAX, context::TEMP);
        let jump = self.buffer.hot.jump();
        self.buffer.want_routine(Section::Hot, jump, Routine::ClearFilter);
        self.buffer.link(Section::Hot, at, Label::Hot(self.buffer.hot.len()));
    }
}

/// A group being written: `position` holds the ring's position, `scratch` is free.
struct Values<'d> {
    hot: &'d mut Assembler,
    position: u8,
    scratch: u8,
    site: u32,
    written: u32,
    wrote: Wrote,
}

/// What has been written of a reference.
#[derive(Clone, Copy)]
enum Wrote {
    Nothing,
    /// Values of this shape.
    Values(Shape),
    /// A plain record with a size in bytes.
    Plain(u32),
}

impl Values<'_> {
    /// Appends the value in `r`.
    fn write(&mut self, r: u8, shape: Shape) {
        let at = 16 * self.written as u8;
        // The first value says what kind of reference it is, the others are its payloads.
        let (code, extra) = match self.written {
            0 => (COMPLEX_CODE, shape.extra()),
            n => (PAYLOAD_CODE, n),
        };
        self.wrote = Wrote::Values(shape);
        self.hot.store_at(r, self.position, at);
        self.hot.store_imm_at(self.position, at + 8, self.site << 8 | u32::from(code));
        self.hot.store_imm_at(self.position, at + 12, extra);
        self.written += 1;
    }

    /// The linear address of the memory operand into `a`.
    fn address(&mut self, i: &Instruction) {
        let mut address = match i.mnemonic() {
            // These have an implicit operand at rdi.
            Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => Address::based(7, 0),
            _ => operand(i).unwrap_or(Address::based(reg::RSP, 0)),
        };
        address.fs |= i.segment_prefix() == Register::FS;
        self.hot.lea(self.scratch, &address);
        self.hot.add_segment(self.scratch, &address);
    }

    fn masked(&mut self, i: &Instruction) {
        let whole = i.memory_size().size();
        let broadcast = masking::broadcast_element(i.mnemonic());
        // A broadcast reads one element, whatever the mask is; the others as many as the mask has
        // bits, each at its place or packed together.
        let (layout, element_bytes, count) = if i.is_broadcast() || broadcast.is_some() {
            (MaskedLayout::Broadcast, whole, broadcast_count(i, broadcast))
        } else {
            let element = i.memory_size().element_size();
            let element = masking::mask_granularity(i.mnemonic()).unwrap_or(element).max(1);
            let packed = masking::is_packing(i.mnemonic());
            (if packed { MaskedLayout::Packed } else { MaskedLayout::InPlace }, element, whole / element)
        };
        let (element_bytes, count) = (element_bytes as u8, count.clamp(1, 64) as u8);
        let shape = Shape::Masked { direction: direction(i), layout, element_bytes, count };
        // Where it begins, then the mask.
        self.address(i);
        self.write(self.scratch, shape);
        self.opmask(i.op_mask());
        self.write(self.scratch, shape);
    }

    /// `kmovq a, k`, or `kmovw` where there is no AVX512BW.
    fn opmask(&mut self, k: Register) {
        let k = (k as u32 - Register::K0 as u32) as u8;
        let wide = std::arch::is_x86_feature_detected!("avx512bw");
        let size = if wide { MaskSize::Qword } else { MaskSize::Word };
        self.hot.code().mask_to_register(size, gpr(self.scratch), Mask::numbered(k));
    }

    /// Sign bits of a mask vector.
    fn signs(&mut self, mask: Register, element_bytes: u8) {
        let (a, v) = (gpr(self.scratch), Vector::numbered(vector_number(mask)));
        let width = if mask.is_ymm() { Width::Bits256 } else { Width::Bits128 };
        match element_bytes {
            4 => self.hot.code().dword_signs(width, a, v),
            8 => self.hot.code().qword_signs(width, a, v),
            _ => self.hot.code().byte_signs(width, a, v),
        }
    }

    fn vector_mask(&mut self, i: &Instruction) {
        // The mask counts by the sign bits of elements of this size.
        let bytes = match i.mnemonic() {
            Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => 4,
            Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => 8,
            _ => 1,
        };
        let (direction, mask) = match bytes {
            1 => (Direction::Store, i.op2_register()),
            _ => (direction(i), i.op1_register()),
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
        // Where it begins, then the sign bits.
        self.address(i);
        self.write(self.scratch, shape);
        if mask.is_mm() {
            let v = (mask as u32 - Register::MM0 as u32) as u8;
            self.hot.code().byte_signs_mmx(gpr(self.scratch), Mmx::numbered(v));
        } else {
            self.signs(mask, bytes);
        }
        self.write(self.scratch, shape);
    }

    fn gather(&mut self, i: &Instruction) {
        let index = i.memory_index();
        let element_bytes = i.memory_size().element_size().max(4) as u8;
        // Indices of 8 or of 4 bytes, as the decoder knows the form.
        let index_bytes = if i.is_vsib64() { 8u8 } else { 4 };
        let index_width = if index.is_zmm() {
            64u8
        } else if index.is_ymm() {
            32
        } else {
            16
        };
        // A gather has its data in the first operand, a scatter in the second.
        let data = if i.op0_kind() == OpKind::Register { i.op0_register() } else { i.op1_register() };
        let data_width = if data.is_zmm() {
            64u8
        } else if data.is_ymm() {
            32
        } else {
            16
        };
        // The narrower of the two decides how many elements there are.
        let count = (index_width / index_bytes).min(data_width / element_bytes);
        let shape = Shape::Gather {
            direction: direction(i),
            scale: i.memory_index_scale() as u8,
            index_bytes,
            element_bytes,
            count,
            width: AddressWidth::Bits64,
        };
        // The base without the index, which is a vector.
        let base = Address {
            base: number(i.memory_base()),
            index: None,
            scale_log2: 0,
            displacement: i.memory_displacement64() as i64,
            short: false,
            fs: i.memory_segment() == Register::FS,
        };
        self.hot.lea(self.scratch, &base);
        self.hot.add_segment(self.scratch, &base);
        self.write(self.scratch, shape);
        // Which elements: by an opmask register, or by sign bits.
        if i.op_mask() != Register::None {
            self.opmask(i.op_mask());
        } else {
            self.signs(i.op2_register(), element_bytes);
        }
        self.write(self.scratch, shape);
        // The indices go by way of the context, 8 bytes a value.
        let evex = i.op_mask() != Register::None;
        let width = if evex { Width::Bits512 } else { Width::Bits256 };
        self.hot.store_vector(vector_number(index), width, context::VECTOR);
        for value in 2..shape.values() as u32 {
            self.hot.load(self.scratch, context::VECTOR + 8 * (value - 2));
            self.write(self.scratch, shape);
        }
    }

    fn state(&mut self, i: &Instruction) {
        use Mnemonic::*;
        let (direction, format) = match i.mnemonic() {
            Xrstor | Xrstor64 | Xrstors | Xrstors64 => (Direction::Load, StateFormat::Restore),
            Xsavec | Xsavec64 | Xsaves | Xsaves64 => (Direction::Store, StateFormat::Compact),
            _ => (Direction::Store, StateFormat::Standard),
        };
        let shape = Shape::State { direction, format };
        self.address(i);
        self.write(self.scratch, shape);
        // Which components: what eax asks for, as far as the system has enabled it.
        self.hot.mov(self.scratch, reg::RAX);
        self.hot.and_imm(self.scratch, extended_states() as i32);
        self.write(self.scratch, shape);
        // The header of the area, behind its legacy part, says which components it holds.
        if format == StateFormat::Restore {
            self.address(i);
            self.hot.load_program(self.scratch, &Address::based(self.scratch, 520));
            self.write(self.scratch, shape);
        }
    }

    fn tile(&mut self, i: &Instruction) {
        let shape = Shape::Tile { direction: direction(i) };
        let tile = if i.op0_kind() == OpKind::Register { i.op0_register() } else { i.op1_register() };
        let t = (tile as u32 - Register::TMM0 as u32) & 7;
        let whole = operand(i).unwrap_or(Address::based(reg::RSP, 0));
        // The address of the first row, the distance of rows, their number, their bytes.
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
        let a = gpr(self.scratch);
        // The processor tells of its tiles by a store of 64 bytes.
        self.hot.code().store_tile_configuration(in_context(context::VECTOR));
        let rows = in_context(context::VECTOR + 48 + t);
        self.hot.code().extend_into(Extend::ZeroByte, a, rows);
        self.write(self.scratch, shape);
        let row_bytes = in_context(context::VECTOR + 16 + 2 * t);
        self.hot.code().extend_into(Extend::ZeroWord, a, row_bytes);
        self.write(self.scratch, shape);
    }

    /// `bt` with a bit offset register, `xlat`: a plain record of an address that takes arithmetic.
    fn computed(&mut self, i: &Instruction) {
        let (kind, bytes) = match i.mnemonic() {
            Mnemonic::Xlatb => (RecordKind::Load, 1),
            Mnemonic::Bt => (RecordKind::Load, i.op1_register().size() as u32),
            _ => (RecordKind::Modify, i.op1_register().size() as u32),
        };
        // `xlat` adds al to rbx without its sign.
        if i.mnemonic() == Mnemonic::Xlatb {
            self.hot.code().extend_into(Extend::ZeroByte, gpr(self.scratch), Gpr::RAX);
            let mut sum = Address { index: Some(self.scratch), ..Address::based(3, 0) };
            sum.fs = i.segment_prefix() == Register::FS;
            self.hot.lea(self.scratch, &sum);
            self.hot.add_segment(self.scratch, &sum);
        } else {
            self.bit_address(i, bytes);
        }
        self.hot.store_at(self.scratch, self.position, 0);
        let code = Code::new(kind, bytes).map_or(0, |c| u32::from(c.0));
        self.hot.store_imm_at(self.position, 8, self.site << 8 | code);
        self.written = 1;
        self.wrote = Wrote::Plain(bytes);
    }

    /// operand + (signed bit offset >> log2(bits)) × bytes, by way of the context.
    fn bit_address(&mut self, i: &Instruction, bytes: u32) {
        let a = self.scratch;
        let offset = number(i.op1_register()).unwrap_or(reg::RAX);
        // The bit offset with its sign, as a number of operands of this size, in bytes.
        match bytes {
            8 => self.hot.mov(a, offset),
            4 => self.hot.code().extend_into(Extend::SignDword, gpr(a), gpr(offset)),
            _ => self.hot.code().extend_into(Extend::SignWord, gpr(a), gpr(offset)),
        }
        let shift = (bytes * 8).trailing_zeros() as u8;
        self.hot.code().shift(Shift::RightSigned, Size::Qword, gpr(a), shift);
        self.hot.code().shift(Shift::Left, Size::Qword, gpr(a), shift - 3);
        // The operand's address wants the register too: the sum is made by way of the context.
        self.hot.store(a, context::TEMP + 16);
        self.address(i);
        self.hot.add_context(a, context::TEMP + 16);
    }

    fn sized(&mut self, i: &Instruction) {
        let size_bytes = i.memory_size().size().clamp(1, 32767) as u16;
        let shape = Shape::Sized { direction: direction(i), size_bytes };
        self.address(i);
        self.write(self.scratch, shape);
    }
}

/// Most bytes of a reference behind which only their own sets are emptied.
const NEAR_BYTES_MAX: usize = 128;

/// Bytes from the address of a reference on that hold all that it touches, where these are few.
fn near_bytes(i: &Instruction, complex: Complex) -> Option<u32> {
    // More than the longest vector does not fit; areas and tiles are larger, repeats and gathers
    // lie anywhere.
    let bytes = match complex {
        Complex::Masked => i.memory_size().size().max(64),
        Complex::VectorMask => 32,
        Complex::BitOffset => 8,
        Complex::Sized => i.memory_size().size().max(1),
        Complex::Gather | Complex::State | Complex::Tile | Complex::Repeat => return None,
    };
    (bytes <= NEAR_BYTES_MAX).then_some(bytes as u32)
}

/// Elements of the result over which a broadcast spreads one.
fn broadcast_count(i: &Instruction, element: Option<usize>) -> usize {
    let register = (0..i.op_count()).filter(|&k| i.op_kind(k) == OpKind::Register).map(|k| i.op_register(k));
    // The widest vector register among the operands is the one that is filled.
    let width = register.filter(|r| r.is_vector_register()).map(|r| r.size()).max().unwrap_or(64);
    width / element.unwrap_or(i.memory_size().element_size()).max(1)
}

/// Registers of the memory operand and of explicit register operands.
fn operand_registers(i: &Instruction) -> u16 {
    let mut mask = operand(i).map_or(0, |address| address.registers());
    for k in 0..i.op_count() {
        if i.op_kind(k) == OpKind::Register {
            mask |= number(i.op_register(k)).map_or(0, |r| 1 << r);
        }
    }
    mask
}

fn implicit_registers(complex: Complex) -> u16 {
    match complex {
        Complex::Repeat => 1 << 1 | 1 << 6 | 1 << 7 | 1,
        Complex::VectorMask => 1 << 7,
        Complex::State => 1 | 1 << 2,
        Complex::BitOffset => 1 | 1 << 3,
        _ => 0,
    }
}

fn direction(i: &Instruction) -> Direction {
    // The destination comes first; a few name memory first and read it.
    let store = i.op_count() > 0
        && i.op0_kind() == OpKind::Memory
        && !matches!(
            i.mnemonic(),
            Mnemonic::Ldmxcsr | Mnemonic::Fldenv | Mnemonic::Frstor | Mnemonic::Fxrstor
        );
    if store {
        Direction::Store
    } else {
        Direction::Load
    }
}

fn vector_number(r: Register) -> u8 {
    let base = if r.is_zmm() {
        Register::ZMM0
    } else if r.is_ymm() {
        Register::YMM0
    } else {
        Register::XMM0
    };
    (r as u32 - base as u32) as u8
}
