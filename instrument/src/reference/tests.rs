//! The operand decoder on made-up registers: addresses that wrap, masks at their limits, layouts of
//! state areas.
//!
//! Expected values follow from the manual. `tests/agree.rs` checks whole instructions in a running
//! program.

use super::operands::{self, Modelled};
use super::state::{Component, ExtendedRegisters, GeneralRegisters, RegisterState, XsaveLayout};
use super::{Reference, SingleStep, StepEnding};
use event::Access::{self, Load, Prefetch, Store};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RBX: usize = 3;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

/// Registers made up for a test; memory reads as `memory` everywhere.
#[derive(Default)]
struct Fake {
    general: GeneralRegisters,
    extended: ExtendedRegisters,
    memory: u64,
}

impl RegisterState for Fake {
    fn general(&self) -> &GeneralRegisters {
        &self.general
    }

    fn extended(&mut self) -> &ExtendedRegisters {
        &self.extended
    }

    fn word(&self, _address: u64) -> u64 {
        self.memory
    }
}

impl Fake {
    fn new(values: &[(usize, u64)]) -> Fake {
        let mut fake = Fake::default();
        for &(number, value) in values {
            fake.general.numbered[number] = value;
        }
        fake.extended.layout = layout();
        fake.extended.image = vec![0; 4096];
        fake
    }

    /// Writes bytes into the image of the vector registers.
    fn image(mut self, offset: usize, bytes: &[u8]) -> Fake {
        self.extended.image[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Gives mask register `number` a value.
    fn mask(self, number: usize, value: u64) -> Fake {
        self.image(1088 + 8 * number, &value.to_le_bytes())
    }

    /// References of the instruction at address 0x1000.
    fn references(mut self, bytes: &[u8]) -> Vec<(Access, u64, u32)> {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid(), "{bytes:x?}");
        assert_eq!(instruction.len(), bytes.len());
        let mut out: Vec<Reference> = Vec::new();
        let modelled =
            operands::references(&instruction, &mut InstructionInfoFactory::new(), &mut self, &mut out);
        assert_eq!(modelled, Modelled::Exactly);
        out.iter().map(|reference| (reference.access, reference.address, reference.size_bytes)).collect()
    }
}

/// A layout as processors with AVX-512 have it, and a component 9 that the compact format aligns.
fn layout() -> XsaveLayout {
    let mut layout = XsaveLayout::default();
    for (number, offset, size, aligned) in [
        (2, 576, 256, false),
        (5, 1088, 64, false),
        (6, 1152, 512, false),
        (7, 1664, 1024, false),
        (9, 2688, 8, true),
    ] {
        layout.components[number] = Component { offset, size, aligned };
    }
    layout
}

#[test]
fn an_instruction_fetches_each_line_that_it_touches_once() {
    // rep movsq, two bytes before the end of a line
    let instruction = Decoder::with_ip(64, &[0xf3, 0x48, 0xa5], 0x103e, DecoderOptions::NONE).decode();
    let lines = |continues| {
        let (ip, ending) = (0x103e, StepEnding::Iterated);
        let instruction = &instruction;
        let step =
            SingleStep { ip, instruction, index: 0, starts_block: false, continues, references: &[], ending };
        step.lines(64).collect::<Vec<u64>>()
    };
    assert_eq!(lines(false), [0x1000, 0x1040]);
    assert_eq!(lines(true), []);
}

#[test]
fn addresses_wrap_and_take_segment_bases() {
    // mov rax, [rbx + rcx*8 - 1]
    let fake = Fake::new(&[(RBX, u64::MAX - 6), (RCX, 1)]);
    assert_eq!(fake.references(&[0x48, 0x8b, 0x44, 0xcb, 0xff]), [(Load, 0, 8)]);
    // mov eax, [ebx + ecx*4]: 32-bit addresses
    let fake = Fake::new(&[(RBX, 0x5_ffff_fff0), (RCX, 0x7_0000_0005)]);
    assert_eq!(fake.references(&[0x67, 0x8b, 0x04, 0x8b]), [(Load, 4, 4)]);
    // mov rax, fs:[0x28]; mov gs:[rdi], al
    let mut fake = Fake::new(&[]);
    fake.general.fs_base = 0x7000;
    assert_eq!(fake.references(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]), [(Load, 0x7028, 8)]);
    let mut fake = Fake::new(&[(RDI, 5)]);
    fake.general.gs_base = 0x9000;
    assert_eq!(fake.references(&[0x65, 0x88, 0x07]), [(Store, 0x9005, 1)]);
    // add dword ptr [rip + 0x10], 1: relative to the end of the instruction, immediate included
    assert_eq!(
        Fake::new(&[]).references(&[0x83, 0x05, 0x10, 0, 0, 0, 1]),
        [(Load, 0x1017, 4), (Store, 0x1017, 4)]
    );
}

#[test]
fn stack_operands_come_after_or_before_the_pointer_moves() {
    // push [rsp + 8] reads before, pop [rsp + 8] writes after
    let fake = Fake::new(&[(RSP, 0x100)]);
    assert_eq!(fake.references(&[0xff, 0x74, 0x24, 8]), [(Load, 0x108, 8), (Store, 0xf8, 8)]);
    let fake = Fake::new(&[(RSP, 0x100)]);
    assert_eq!(fake.references(&[0x8f, 0x44, 0x24, 8]), [(Load, 0x100, 8), (Store, 0x110, 8)]);
    // call [rsp]
    let fake = Fake::new(&[(RSP, 0x100)]);
    assert_eq!(fake.references(&[0xff, 0x14, 0x24]), [(Load, 0x100, 8), (Store, 0xf8, 8)]);
    // enter 0, 3 stores four words and is not charged for what it copies
    let fake = Fake::new(&[(RSP, 0x100)]);
    let stores = [(Store, 0xf8, 8), (Store, 0xf0, 8), (Store, 0xe8, 8), (Store, 0xe0, 8)];
    assert_eq!(fake.references(&[0xc8, 0, 0, 3]), stores);
}

#[test]
fn bit_strings_reach_in_both_directions() {
    // bt [rbx], rcx; bts [rbx], ecx; btr [rbx], cx with bit -1
    let at = |bytes: &[u8], bit: u64| Fake::new(&[(RBX, 0x1000), (RCX, bit)]).references(bytes);
    assert_eq!(at(&[0x48, 0x0f, 0xa3, 0x0b], u64::MAX), [(Load, 0xff8, 8)]);
    assert_eq!(at(&[0x0f, 0xab, 0x0b], u64::MAX), [(Load, 0xffc, 4), (Store, 0xffc, 4)]);
    assert_eq!(at(&[0x66, 0x0f, 0xb3, 0x0b], u64::MAX), [(Load, 0xffe, 2), (Store, 0xffe, 2)]);
    assert_eq!(at(&[0x48, 0x0f, 0xa3, 0x0b], 64), [(Load, 0x1008, 8)]);
    assert_eq!(at(&[0x0f, 0xa3, 0x0b], 63), [(Load, 0x1004, 4)]);
    // the same number in the instruction wraps around: bt dword ptr [rbx], 63
    assert_eq!(at(&[0x0f, 0xba, 0x23, 63], 0), [(Load, 0x1000, 4)]);
}

#[test]
fn repeated_instructions_touch_nothing_when_the_count_is_zero() {
    let registers = |count| Fake::new(&[(RSI, 0x100), (RDI, 0x200), (RCX, count)]);
    assert_eq!(registers(1).references(&[0xf3, 0x48, 0xa5]), [(Load, 0x100, 8), (Store, 0x200, 8)]);
    assert_eq!(registers(0).references(&[0xf3, 0x48, 0xa5]), []);
    assert_eq!(registers(0).references(&[0xf2, 0xae]), []);
    assert_eq!(registers(0).references(&[0xa6]), [(Load, 0x100, 1), (Load, 0x200, 1)]);
    // a 32-bit address size makes ecx the counter
    assert_eq!(registers(1 << 32).references(&[0x67, 0xf3, 0xaa]), []);
    assert_eq!(registers(1 << 32).references(&[0xf3, 0xaa]), [(Store, 0x200, 1)]);
}

#[test]
fn hints_and_no_operations() {
    // prefetcht0 [rax], clflush [rax], nop [rax], lea, endbr64
    assert_eq!(Fake::new(&[(RAX, 64)]).references(&[0x0f, 0x18, 0x08]), [(Prefetch, 64, 1)]);
    assert_eq!(Fake::new(&[(RAX, 64)]).references(&[0x0f, 0xae, 0x38]), [(Prefetch, 64, 1)]);
    assert_eq!(Fake::new(&[]).references(&[0x0f, 0x1f, 0x00]), []);
    assert_eq!(Fake::new(&[]).references(&[0x48, 0x8d, 0x00]), []);
    assert_eq!(Fake::new(&[]).references(&[0xf3, 0x0f, 0x1e, 0xfa]), []);
}

#[test]
fn masked_accesses_span_the_enabled_elements() {
    // vmovdqu8 zmm0{k1}, [rax]
    let at =
        |mask| Fake::new(&[(RAX, 0x100)]).mask(1, mask).references(&[0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x00]);
    assert_eq!(at(u64::MAX), [(Load, 0x100, 64)]);
    assert_eq!(at(1 << 63), [(Load, 0x13f, 1)]);
    assert_eq!(at(0), []);
    // vmovdqu32 [rax]{k1}, xmm0: bits beyond the fourth do not count
    let at =
        |mask| Fake::new(&[(RAX, 0x100)]).mask(1, mask).references(&[0x62, 0xf1, 0x7e, 0x09, 0x7f, 0x00]);
    assert_eq!(at(0xffff_fff0), []);
    assert_eq!(at(0b1010), [(Store, 0x104, 12)]);
    // vaddps zmm0{k1}, zmm0, [rax]{1to16}
    let at =
        |mask| Fake::new(&[(RAX, 0x100)]).mask(1, mask).references(&[0x62, 0xf1, 0x7c, 0x59, 0x58, 0x00]);
    assert_eq!(at(1 << 15), [(Load, 0x100, 4)]);
    assert_eq!(at(1 << 16), []);
    // vpcompressd [rax]{k1}, zmm0
    let at =
        |mask| Fake::new(&[(RAX, 0x100)]).mask(1, mask).references(&[0x62, 0xf2, 0x7d, 0x49, 0x8b, 0x00]);
    assert_eq!(at(0x8001), [(Store, 0x100, 8)]);
    assert_eq!(at(0), []);
    // vpermd zmm0{k1}, zmm0, [rax] reads all of its source
    let fake = Fake::new(&[(RAX, 0x100)]);
    assert_eq!(fake.references(&[0x62, 0xf2, 0x7d, 0x49, 0x36, 0x00]), [(Load, 0x100, 64)]);
}

#[test]
fn gathers_take_signed_indices_from_the_high_registers_too() {
    // vpgatherdd zmm0{k1}, [rax + zmm17*4]
    let fake = Fake::new(&[(RAX, 0x100)]).mask(1, 0x8001);
    let fake = fake.image(1664 + 64, &(-2i32).to_le_bytes()).image(1664 + 64 + 60, &3i32.to_le_bytes());
    assert_eq!(
        fake.references(&[0x62, 0xf2, 0x7d, 0x41, 0x90, 0x04, 0x88]),
        [(Load, 0xf8, 4), (Load, 0x10c, 4)]
    );
}

#[test]
fn state_areas_end_with_the_last_component_requested() {
    // xsave [rdi], xsavec [rdi], xrstor [rdi]
    let at = |bytes: &[u8], requested: u64, header| {
        let registers = [(RDI, 0x1000), (RAX, requested), (RDX, 0)];
        let mut fake = Fake::new(&registers).image(464, &0x2e7u64.to_le_bytes());
        fake.memory = header;
        fake.references(bytes)
    };
    let (save, compact, restore) = ([0x0f, 0xae, 0x27], [0x0f, 0xc7, 0x27], [0x0f, 0xae, 0x2f]);
    assert_eq!(at(&save, 3, 0), [(Store, 0x1000, 576)]);
    assert_eq!(at(&save, 0xe7, 0), [(Store, 0x1000, 2688)]);
    assert_eq!(at(&save, 0xffff_ffff, 0), [(Store, 0x1000, 2696)]);
    assert_eq!(at(&compact, 0xe7, 0), [(Store, 0x1000, 576 + 256 + 64 + 512 + 1024)]);
    assert_eq!(at(&compact, 0x24, 0), [(Store, 0x1000, 576 + 256 + 64)]);
    // component 9 after the 64 bytes of component 5 lies at 640 already; after nothing, at 576
    assert_eq!(at(&compact, 0x220, 0), [(Store, 0x1000, 648)]);
    assert_eq!(at(&restore, 0x20, 1 << 63 | 0x24), [(Load, 0x1000, 576 + 256 + 64)]);
    assert_eq!(at(&restore, 0x04, 1 << 63 | 0x24), [(Load, 0x1000, 576 + 256)]);
    assert_eq!(at(&restore, 0x04, 0), [(Load, 0x1000, 832)]);
}

#[test]
fn byte_masks_take_their_sign_bits() {
    // maskmovdqu xmm0, xmm1 with the signs of bytes 0 and 15
    let mut signs = [0x7f; 16];
    (signs[0], signs[15]) = (0x80, 0xff);
    let fake = Fake::new(&[(RDI, 0x100)]).image(160 + 16, &signs);
    assert_eq!(fake.references(&[0x66, 0x0f, 0xf7, 0xc1]), [(Store, 0x100, 16)]);
    let fake = Fake::new(&[(RDI, 0x100)]).image(160 + 16, &[0x7f; 16]);
    assert_eq!(fake.references(&[0x66, 0x0f, 0xf7, 0xc1]), []);
}
