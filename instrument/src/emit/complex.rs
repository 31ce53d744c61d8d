//! Records of references that need more than an address: repeats, masks, gathers, state areas, tiles.
//!
//! The values of `event::Shape` are written by general registers only; vector registers go by way of the context's memory.
//! These references bypass the data filter. Afterwards it is emptied: the sets of the few bytes that a masked or a computed reference may touch (string
//! functions of a C library compare under masks; emptying all sets made a sixth of an interpreter's records), all of it behind the others.

use super::add_segment;
use super::append::forget_lines;
use super::data::{check_ring, tables};
use super::draft::{Draft, Goal, Part, FLAGS_BIT};
use crate::assemble::{reg, Address, VectorWidth, Vex};
use crate::decode::{number, Decoded};
use crate::layout::context;
use crate::masking;
use crate::references::{operand, Complex};
use crate::translate::Translator;
use event::{
    AddressWidth, Code, Direction, MaskedLayout, RecordKind, Segment, Shape, StateFormat, Stream,
    StringOperation, COMPLEX_CODE, PAYLOAD_CODE,
};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Translator {
    /// Before the instruction: its record, or what a repeat must remember.
    pub(crate) fn complex_before(
        &mut self,
        d: &mut Draft,
        z: usize,
        decoded: &Decoded,
        complex: Complex,
        site: u32,
    ) {
        let i = &decoded.i;
        let needs = operand_registers(i) | implicit_registers(complex);
        d.let_go();
        d.free_flags();
        d.restore(needs & !FLAGS_BIT);
        let position = d.scratch(needs);
        d.hot.load(position, context::RING_POSITION);
        check_ring(d, position);
        if complex == Complex::Repeat {
            d.hot.store(6, context::REPEAT);
            d.hot.store(7, context::REPEAT + 8);
            return;
        }
        let a = d.scratch(needs | 1 << position);
        let mut group = Values { d, position, a, site, written: 0 };
        group.d.hot.load(position, context::RING_POSITION);
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
        let written = group.written;
        let near = near_bytes(i, complex).filter(|_| matches!(self.events.stream, Stream::Filtered(_)));
        if near.is_some() && complex != Complex::BitOffset {
            group.address(i);
        }
        d.hot.lea(position, &Address::based(position, 16 * i64::from(written)));
        d.hot.store(position, context::RING_POSITION);
        match (near, self.events.stream) {
            (Some(bytes), Stream::Filtered(filter)) => {
                let touched = |table| forget_lines(&mut d.hot, a, position, bytes, &table);
                tables(&filter, RecordKind::Load).for_each(touched);
            }
            _ => self.empty_filter(d, z),
        }
    }

    /// After a repeat: its group, from the registers before and after. Touches no flags.
    pub(crate) fn complex_after(
        &mut self,
        d: &mut Draft,
        z: usize,
        decoded: &Decoded,
        complex: Complex,
        site: u32,
    ) {
        if complex != Complex::Repeat {
            return;
        }
        let shape = string_shape(&decoded.i);
        let moved =
            if matches!(shape, Shape::String { operation: StringOperation::Lods, .. }) { 6 } else { 7 };
        d.hot.store(reg::RAX, context::TEMP);
        d.hot.store(reg::RDX, context::TEMP + 8);
        d.hot.load(reg::RDX, context::RING_POSITION);
        let mut group = Values { d, position: reg::RDX, a: reg::RAX, site, written: 0 };
        for slot in [context::REPEAT, context::REPEAT + 8] {
            group.d.hot.load(reg::RAX, slot);
            group.write(reg::RAX, shape);
        }
        group.write(moved, shape);
        if shape.values() == 4 {
            group.d.hot.load(reg::RAX, context::FS_BASE);
            group.write(reg::RAX, shape);
        }
        let written = group.written;
        d.hot.lea(reg::RDX, &Address::based(reg::RDX, 16 * i64::from(written)));
        d.hot.store(reg::RDX, context::RING_POSITION);
        d.hot.load(reg::RDX, context::TEMP + 8);
        d.hot.load(reg::RAX, context::TEMP);
        self.empty_filter(d, z);
    }

    /// Calls the routine that empties the data filter, without the stack and without flags.
    fn empty_filter(&mut self, d: &mut Draft, z: usize) {
        if !matches!(self.events.stream, Stream::Filtered(_)) {
            return;
        }
        d.hot.store(reg::RAX, context::TEMP);
        d.hot.raw(&[0x48, 0x8d, 0x05, 0, 0, 0, 0]); // lea rax, [rip + back]
        let at = d.hot.len() - 4;
        d.hot.store(reg::RAX, context::RETURN);
        d.hot.load(reg::RAX, context::TEMP);
        let jump = d.hot.jump();
        d.link(Part::Hot, jump, Goal::Address(self.cache.zones[z].routines.clear_filter));
        d.link(Part::Hot, at, Goal::Hot(d.hot.len()));
    }
}

/// A group being written: `position` holds the ring's position, `a` is free.
struct Values<'d> {
    d: &'d mut Draft,
    position: u8,
    a: u8,
    site: u32,
    written: u32,
}

impl Values<'_> {
    /// Appends the value in `r`.
    fn write(&mut self, r: u8, shape: Shape) {
        let at = 16 * self.written as u8;
        let (code, extra) = match self.written {
            0 => (COMPLEX_CODE, shape.extra()),
            n => (PAYLOAD_CODE, n),
        };
        self.d.hot.store_at(r, self.position, at);
        self.d.hot.store_imm_at(self.position, at + 8, self.site << 8 | u32::from(code));
        self.d.hot.store_imm_at(self.position, at + 12, extra);
        self.written += 1;
    }

    /// The linear address of the memory operand into `a`.
    fn address(&mut self, i: &Instruction) {
        let mut address = match i.mnemonic() {
            Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => Address::based(7, 0),
            _ => operand(i).unwrap_or(Address::based(reg::RSP, 0)),
        };
        address.fs |= i.segment_prefix() == Register::FS;
        self.d.hot.lea(self.a, &address);
        add_segment(&mut self.d.hot, self.a, &address);
    }

    fn masked(&mut self, i: &Instruction) {
        let whole = i.memory_size().size();
        let broadcast = masking::broadcast_element(i.mnemonic());
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
        self.address(i);
        self.write(self.a, shape);
        self.opmask(i.op_mask());
        self.write(self.a, shape);
    }

    /// `kmovq a, k`, or `kmovw` where there is no AVX512BW.
    fn opmask(&mut self, k: Register) {
        let k = (k as u32 - Register::K0 as u32) as u8;
        let wide = std::arch::is_x86_feature_detected!("avx512bw");
        let spec = Vex { map: 1, pp: if wide { 3 } else { 0 }, w: u8::from(wide), l: 0 };
        self.d.hot.vex_registers(spec, 0x93, self.a, k);
    }

    /// Sign bits of a mask vector.
    fn signs(&mut self, mask: Register, element_bytes: u8) {
        let v = vector_number(mask);
        let l = u8::from(mask.is_ymm());
        match element_bytes {
            4 => self.d.hot.vex_registers(Vex { map: 1, pp: 0, w: 0, l }, 0x50, self.a, v),
            8 => self.d.hot.vex_registers(Vex { map: 1, pp: 1, w: 0, l }, 0x50, self.a, v),
            _ => self.d.hot.vex_registers(Vex { map: 1, pp: 1, w: 0, l }, 0xd7, self.a, v),
        }
    }

    fn vector_mask(&mut self, i: &Instruction) {
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
        self.address(i);
        self.write(self.a, shape);
        if mask.is_mm() {
            let v = (mask as u32 - Register::MM0 as u32) as u8;
            self.d.hot.raw(&[0x40 | (self.a >> 3) << 2, 0x0f, 0xd7, 0xc0 | (self.a & 7) << 3 | v]);
        } else {
            self.signs(mask, bytes);
        }
        self.write(self.a, shape);
    }

    fn gather(&mut self, i: &Instruction) {
        let index = i.memory_index();
        let element_bytes = i.memory_size().element_size().max(4) as u8;
        let name = format!("{:?}", i.mnemonic());
        let index_bytes = if name.contains("gatherd") || name.contains("scatterd") { 4u8 } else { 8 };
        let index_width = if index.is_zmm() {
            64u8
        } else if index.is_ymm() {
            32
        } else {
            16
        };
        let data = if i.op0_kind() == OpKind::Register { i.op0_register() } else { i.op1_register() };
        let data_width = if data.is_zmm() {
            64u8
        } else if data.is_ymm() {
            32
        } else {
            16
        };
        let count = (index_width / index_bytes).min(data_width / element_bytes);
        let shape = Shape::Gather {
            direction: direction(i),
            scale: i.memory_index_scale() as u8,
            index_bytes,
            element_bytes,
            count,
            width: AddressWidth::Bits64,
        };
        let base = Address {
            base: number(i.memory_base()),
            index: None,
            scale_log2: 0,
            displacement: i.memory_displacement64() as i64,
            short: false,
            fs: i.memory_segment() == Register::FS,
        };
        self.d.hot.lea(self.a, &base);
        add_segment(&mut self.d.hot, self.a, &base);
        self.write(self.a, shape);
        if i.op_mask() != Register::None {
            self.opmask(i.op_mask());
        } else {
            self.signs(i.op2_register(), element_bytes);
        }
        self.write(self.a, shape);
        let evex = i.op_mask() != Register::None;
        let width = if evex { VectorWidth::Zmm } else { VectorWidth::Ymm };
        self.d.hot.store_vector(vector_number(index), width, context::VECTOR);
        for value in 2..shape.values() as u32 {
            self.d.hot.load(self.a, context::VECTOR + 8 * (value - 2));
            self.write(self.a, shape);
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
        self.write(self.a, shape);
        self.d.hot.mov(self.a, reg::RAX);
        self.d.hot.and_imm(self.a, extended_states() as i32);
        self.write(self.a, shape);
        if format == StateFormat::Restore {
            self.address(i);
            self.d.hot.load_program(self.a, &Address::based(self.a, 520));
            self.write(self.a, shape);
        }
    }

    fn tile(&mut self, i: &Instruction) {
        let shape = Shape::Tile { direction: direction(i) };
        let tile = if i.op0_kind() == OpKind::Register { i.op0_register() } else { i.op1_register() };
        let t = (tile as u32 - Register::TMM0 as u32) & 7;
        let whole = operand(i).unwrap_or(Address::based(reg::RSP, 0));
        let first = Address { index: None, scale_log2: 0, ..whole };
        self.d.hot.lea(self.a, &first);
        add_segment(&mut self.d.hot, self.a, &first);
        self.write(self.a, shape);
        let stride = Address { base: None, displacement: 0, fs: false, ..whole };
        match stride.index {
            Some(_) => self.d.hot.lea(self.a, &stride),
            None => self.d.hot.mov_imm(self.a, 0),
        }
        self.write(self.a, shape);
        self.d.hot.raw(&[0x65, 0xc4, 0xe2, 0x79, 0x49, 0x04, 0x25]); // sttilecfg gs:[VECTOR]
        self.d.hot.imm32(context::VECTOR);
        self.d.hot.load_narrow(0xb6, self.a, context::VECTOR + 48 + t);
        self.write(self.a, shape);
        self.d.hot.load_narrow(0xb7, self.a, context::VECTOR + 16 + 2 * t);
        self.write(self.a, shape);
    }

    /// `bt` with a bit offset register, `xlat`: a plain record of an address that takes arithmetic.
    fn computed(&mut self, i: &Instruction) {
        let (kind, bytes) = match i.mnemonic() {
            Mnemonic::Xlatb => (RecordKind::Load, 1),
            Mnemonic::Bt => (RecordKind::Load, i.op1_register().size() as u32),
            _ => (RecordKind::Modify, i.op1_register().size() as u32),
        };
        if i.mnemonic() == Mnemonic::Xlatb {
            self.d.hot.raw(&[0x40 | (self.a >> 3) << 2, 0x0f, 0xb6, 0xc0 | (self.a & 7) << 3]); // movzx a, al
            let mut sum = Address { index: Some(self.a), ..Address::based(3, 0) };
            sum.fs = i.segment_prefix() == Register::FS;
            self.d.hot.lea(self.a, &sum);
            add_segment(&mut self.d.hot, self.a, &sum);
        } else {
            self.bit_address(i, bytes);
        }
        self.d.hot.store_at(self.a, self.position, 0);
        let code = Code::new(kind, bytes).map_or(0, |c| u32::from(c.0));
        self.d.hot.store_imm_at(self.position, 8, self.site << 8 | code);
        self.written = 1;
    }

    /// operand + (signed bit offset >> log2(bits)) × bytes, by way of the context.
    fn bit_address(&mut self, i: &Instruction, bytes: u32) {
        let a = self.a;
        let offset = number(i.op1_register()).unwrap_or(reg::RAX);
        match bytes {
            8 => self.d.hot.mov(a, offset),
            4 => self.d.hot.raw(&[
                0x48 | (a >> 3) << 2 | offset >> 3,
                0x63,
                0xc0 | (a & 7) << 3 | (offset & 7),
            ]),
            _ => self.d.hot.raw(&[
                0x48 | (a >> 3) << 2 | offset >> 3,
                0x0f,
                0xbf,
                0xc0 | (a & 7) << 3 | (offset & 7),
            ]),
        }
        let shift = (bytes * 8).trailing_zeros() as u8;
        self.d.hot.raw(&[0x48 | a >> 3, 0xc1, 0xf8 | (a & 7), shift]); // sar
        self.d.hot.raw(&[0x48 | a >> 3, 0xc1, 0xe0 | (a & 7), shift - 3]); // shl
        self.d.hot.store(a, context::TEMP + 16);
        self.address(i);
        self.d.hot.add_context(a, context::TEMP + 16);
    }

    fn sized(&mut self, i: &Instruction) {
        let size_bytes = i.memory_size().size().clamp(1, 32767) as u16;
        let shape = Shape::Sized { direction: direction(i), size_bytes };
        self.address(i);
        self.write(self.a, shape);
    }
}

/// Most bytes of a reference behind which only their own sets are emptied.
const NEAR_BYTES_MAX: usize = 128;

/// Bytes from the address of a reference on that hold all that it touches, where these are few.
fn near_bytes(i: &Instruction, complex: Complex) -> Option<u32> {
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
    let width = register.filter(|r| r.is_vector_register()).map(|r| r.size()).max().unwrap_or(64);
    width / element.unwrap_or(i.memory_size().element_size()).max(1)
}

/// Registers of the memory operand and of explicit register operands.
fn operand_registers(i: &Instruction) -> u16 {
    let mut mask = operand(i).map_or(0, |a| a.registers());
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

pub(crate) fn string_shape(i: &Instruction) -> Shape {
    use Mnemonic::*;
    let (operation, element_bytes) = match i.mnemonic() {
        Movsb => (StringOperation::Movs, 1),
        Movsw => (StringOperation::Movs, 2),
        Movsd => (StringOperation::Movs, 4),
        Movsq => (StringOperation::Movs, 8),
        Stosb => (StringOperation::Stos, 1),
        Stosw => (StringOperation::Stos, 2),
        Stosd => (StringOperation::Stos, 4),
        Stosq => (StringOperation::Stos, 8),
        Lodsb => (StringOperation::Lods, 1),
        Lodsw => (StringOperation::Lods, 2),
        Lodsd => (StringOperation::Lods, 4),
        Lodsq => (StringOperation::Lods, 8),
        Scasb => (StringOperation::Scas, 1),
        Scasw => (StringOperation::Scas, 2),
        Scasd => (StringOperation::Scas, 4),
        Scasq => (StringOperation::Scas, 8),
        Cmpsb => (StringOperation::Cmps, 1),
        Cmpsw => (StringOperation::Cmps, 2),
        Cmpsd => (StringOperation::Cmps, 4),
        _ => (StringOperation::Cmps, 8),
    };
    let narrow = (0..i.op_count())
        .any(|k| matches!(i.op_kind(k), OpKind::MemorySegESI | OpKind::MemoryESEDI | OpKind::MemorySegEDI));
    let width = if narrow { AddressWidth::Bits32 } else { AddressWidth::Bits64 };
    let based = i.segment_prefix() == Register::FS
        && matches!(operation, StringOperation::Movs | StringOperation::Lods | StringOperation::Cmps);
    let segment = if based { Segment::Based } else { Segment::Flat };
    Shape::String { operation, element_bytes, width, segment }
}

/// Bits of XCR0: the state components that the system has enabled.
fn extended_states() -> u64 {
    let leaf = std::arch::x86_64::__cpuid_count(0xd, 0);
    u64::from(leaf.edx) << 32 | u64::from(leaf.eax)
}

/// Where this processor puts the components of an XSAVE area.
pub(crate) fn state_layout() -> event::StateLayout {
    let mut layout = event::StateLayout::default();
    for (bit, component) in layout.components.iter_mut().enumerate().skip(2) {
        *component = event::StateComponent::default();
        if extended_states() >> bit & 1 != 0 {
            let leaf = std::arch::x86_64::__cpuid_count(0xd, bit as u32);
            component.size_bytes = leaf.eax;
            component.offset_bytes = leaf.ebx;
            if leaf.ecx & 2 != 0 {
                component.alignment = event::StateAlignment::Line;
            }
        }
    }
    layout
}
