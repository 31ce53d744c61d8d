//! Decodes each instruction that the translator can write, and compares it with the manual's
//! syntax.

use super::*;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

fn decoded(code: Code) -> Vec<String> {
    let bytes = code.into_bytes();
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let instructions = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).into_iter();
    let written = instructions.map(|instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        text
    });
    written.collect()
}

fn one(emit: impl FnOnce(&mut Code)) -> String {
    let mut code = Code::default();
    emit(&mut code);
    decoded(code).join("; ")
}

const NAMED: &[(VectorInstruction, &str)] = &[
    (VPANDQ, "vpandq"),
    (VPANDNQ, "vpandnq"),
    (VPORQ, "vporq"),
    (VPXORQ, "vpxorq"),
    (VPADDQ, "vpaddq"),
    (VPSUBQ, "vpsubq"),
];

#[test]
fn registers_and_places_are_all_encoded() {
    for &(what, name) in NAMED {
        // These numbers cross the bits of the prefixes: 8 and 16 need other prefix bits than 7 and
        // 15.
        for register in [0, 1, 7, 8, 15, 16, 23, 24, 31] {
            let other = 31 - register;
            let text = one(|code| code.vector(what, register, other, Operand::Register(register)));
            assert_eq!(text, format!("{name} zmm{register}, zmm{other}, zmm{register}"));
        }
    }
    for (base, name) in [(RAX, "rax"), (RDX, "rdx"), (RSI, "rsi"), (RDI, "rdi"), (R8, "r8"), (R9, "r9")] {
        // EVEX compresses displacements: multiples of 64 up to 127·64 take one byte, others four.
        for bytes in [0, 8, -8, 64, -64, 127 * 64, 128 * 64, 1088 * 7 - 8, 1 << 20] {
            let place = Address { base, bytes };
            let sign = if bytes < 0 { "-" } else { "+" };
            let written = match bytes {
                0 => format!("[{name}]"),
                _ => format!("[{name}{sign}{}]", hexadecimal(bytes.unsigned_abs())),
            };
            let text = one(|code| code.vector(VPANDQ, 3, 17, Operand::Memory(place)));
            assert_eq!(text, format!("vpandq zmm3, zmm17, {written}"));
            let text = one(|code| code.load(30, Operand::Memory(place)));
            assert_eq!(text, format!("vmovdqu64 zmm30, {written}"));
            let text = one(|code| code.store(place, 9));
            assert_eq!(text, format!("vmovdqu64 {written}, zmm9"));
            let text = one(|code| code.load_integer(R10, place));
            assert_eq!(text, format!("mov r10d, {written}"));
            let text = one(|code| code.compare_zero(place));
            assert_eq!(text, format!("cmp qword ptr {written}, 0"));
            let text = one(|code| {
                code.store_integer(place, RAX);
                code.unite_integer(place, RAX);
            });
            assert_eq!(text, format!("mov {written}, eax; or {written}, eax"));
        }
    }
}

/// As the decoder writes numbers.
fn hexadecimal(number: u32) -> String {
    let digits = format!("{number:X}");
    match number {
        0..=9 => digits,
        _ if digits.starts_with(|c: char| c.is_ascii_alphabetic()) => format!("0{digits}h"),
        _ => format!("{digits}h"),
    }
}

#[test]
fn each_form_is_what_it_says() {
    let register = Operand::Register(20);
    let text = Address { base: RDI, bytes: 64 };
    type Encoded<'c> = (&'c dyn Fn(&mut Code), &'c str);
    let cases: &[Encoded<'_>] = &[
        (
            &|code| code.vector_immediate(VPTERNLOGQ, 1, 18, register, 0xCA),
            "vpternlogq zmm1, zmm18, zmm20, 0CAh",
        ),
        (&|code| code.vector_immediate(VALIGNQ, 29, 5, register, 7), "valignq zmm29, zmm5, zmm20, 7"),
        (&|code| code.vector_immediate(VPSHLDQ, 2, 3, register, 63), "vpshldq zmm2, zmm3, zmm20, 3Fh"),
        (&|code| code.vector_masked(VPSUBQ, 2, 2, Operand::Register(31), 1), "vpsubq zmm2{k1}, zmm2, zmm31"),
        (&|code| code.vector(VPERMB, 19, 20, Operand::Memory(text)), "vpermb zmm19, zmm20, [rdi+40h]"),
        (&|code| code.vector(VPERMB, 1, 20, register), "vpermb zmm1, zmm20, zmm20"),
        (
            &|code| code.vector_immediate(GF2P8AFFINEQB, 1, 18, register, 0),
            "vgf2p8affineqb zmm1, zmm18, zmm20, 0",
        ),
        (&|code| code.vector(VPUNPCKLQDQ, 1, 18, register), "vpunpcklqdq zmm1, zmm18, zmm20"),
        (&|code| code.vector(VPUNPCKHQDQ, 30, 2, register), "vpunpckhqdq zmm30, zmm2, zmm20"),
        (
            &|code| code.vector_immediate(VSHUFI64X2, 1, 18, register, 0xDD),
            "vshufi64x2 zmm1, zmm18, zmm20, 0DDh",
        ),
        (&|code| code.less(1, 19, register), "vpcmpltuq k1, zmm19, zmm20"),
        (&|code| code.equal_mask(2, 19, register), "vpcmpeqq k2, zmm19, zmm20"),
        (&|code| code.test_any(30, 29), "vptestmq k1, zmm30, zmm30; kortestb k1, k1"),
        (&|code| code.move_from_mask(RAX, 1), "kmovb eax, k1"),
        (&|code| code.move_from_mask(R9, 2), "kmovb r9d, k2"),
        (&|code| code.move_to_mask(1), "kmovb k1, eax"),
        (&|code| code.add(RAX, R9), "add eax, r9d"),
        (&|code| code.xor(RAX, R9), "xor eax, r9d"),
        (&|code| code.double_and_add(), "lea eax, [r10+rax*2]"),
        (&|code| code.shift_out_byte(), "shr eax, 8"),
        (&|code| code.add_bytes(RDI, 64), "add rdi, 40h"),
        (
            &|code| code.copy_word(Address { base: R8, bytes: 56 }, text),
            "mov rax, [rdi+40h]; mov [r8+38h], rax",
        ),
        (&|code| code.count_down(), "dec rcx"),
        (&|code| code.return_to_caller(), "vzeroupper; ret"),
    ];
    for (emit, expected) in cases {
        assert_eq!(&one(emit), expected);
    }
}

#[test]
fn memory_is_asked_for_ahead() {
    let mut code = Code::default();
    code.keep_sixth_argument();
    code.prefetch(Address { base: R11, bytes: 8256 });
    code.prefetch(Address { base: RDI, bytes: 64 });
    code.add_bytes(R11, 512);
    code.add_bytes(RDI, -512);
    let text = decoded(code).join("; ");
    let expected = "mov r11, r9; prefetcht0 [r11+2040h]; prefetcht0 [rdi+40h]; add r11, 200h; \
                    add rdi, 0FFFFFFFFFFFFFE00h";
    assert_eq!(text, expected);
}

#[test]
fn the_narrow_forms_are_what_they_say() {
    let mut code = Code::new(Target::Avx2);
    let memory = Operand::Memory(Address { base: R8, bytes: 64 });
    code.vector(VPANDQ, 1, 9, Operand::Register(14));
    code.vector(VPANDNQ, 9, 1, memory);
    code.vector(VPSUBQ, 12, 13, Operand::Memory(Address { base: R9, bytes: 0 }));
    code.load(15, memory);
    code.store(Address { base: RDI, bytes: -8 }, 8);
    code.equal(2, 10, Operand::Register(15));
    code.test_any(13, 14);
    code.rotate_words(13, 4);
    code.replace_first_word(14, 13, Address { base: RSI, bytes: 128 });
    code.shift_left(13, 4, 5);
    code.shift_right(14, 59);
    code.high_bits(RAX, 13);
    code.high_bits(R9, 2);
    code.address_by_nibble();
    let expected = "vpand ymm1, ymm9, ymm14; vpandn ymm9, ymm1, [r8+40h]; vpsubq ymm12, ymm13, [r9]; vmovdqu ymm15, [r8+40h]; \
                    vmovdqu [rdi-8], ymm8; vpcmpeqq ymm2, ymm10, ymm15; vptest ymm13, ymm13; vpermq ymm13, ymm4, 93h; \
                    vpblendd ymm14, ymm13, [rsi+80h], 3; vpsllq ymm13, ymm4, 5; vpsrlq ymm14, ymm14, 3Bh; vmovmskpd eax, ymm13; \
                    vmovmskpd r9d, ymm2; mov r9d, eax; and r9d, 0Fh; shl r9d, 6; add r9, r8; shr eax, 4";
    assert_eq!(decoded(code).join("; "), expected);
}

#[test]
fn sse2_writes_over_its_first_operand() {
    let two = |to, first, second| {
        let mut code = Code::new(Target::Sse2);
        code.vector(VPADDQ, to, first, second);
        code.vector(VPANDNQ, to, first, second);
        decoded(code).join("; ")
    };
    let memory = Operand::Memory(Address { base: R8, bytes: 64 });
    assert_eq!(two(1, 1, Operand::Register(9)), "paddq xmm1, xmm9; pandn xmm1, xmm9");
    assert_eq!(two(1, 1, Operand::Register(1)), "paddq xmm1, xmm1; pandn xmm1, xmm1");
    assert_eq!(two(1, 1, memory), "paddq xmm1, [r8+40h]; pandn xmm1, [r8+40h]");
    let copied = "movdqa xmm1, xmm2; paddq xmm1, xmm9; movdqa xmm1, xmm2; pandn xmm1, xmm9";
    assert_eq!(two(1, 2, Operand::Register(9)), copied);
    // Over the second operand: operands change places, and ¬a ∧ b is (a ∨ b) ⊕ a.
    assert_eq!(two(1, 2, Operand::Register(1)), "paddq xmm1, xmm2; por xmm1, xmm2; pxor xmm1, xmm2");
}

#[test]
#[should_panic = "a difference is not written over what it subtracts"]
fn a_difference_over_its_second_operand_is_refused() {
    Code::new(Target::Sse2).vector(VPSUBQ, 1, 2, Operand::Register(1));
}

#[test]
fn the_forms_of_sse2_are_what_they_say() {
    let mut code = Code::new(Target::Sse2);
    let place = Address { base: RSI, bytes: 128 };
    code.fill_ones(15);
    code.clear(3);
    code.load(4, Operand::Memory(place));
    code.load(4, Operand::Register(12));
    code.store(place, 4);
    code.test_any(12, 13);
    code.put_word_before(13, 4, place);
    code.shift_left(5, 4, 7);
    code.shift_left(5, 5, 7);
    code.shift_right(13, 57);
    code.load_carry(place);
    code.load_word(RAX, place);
    code.add_memory_with_carry(RAX, place);
    code.store_word(place, RAX);
    code.store_carry(place);
    code.unite_carry(place);
    code.load_words(4, place, 13);
    code.unite_byte(place);
    code.store_if_zero(place);
    code.count(place);
    code.return_to_caller();
    let expected = "pcmpeqd xmm15, xmm15; pxor xmm3, xmm3; movdqu xmm4, [rsi+80h]; movdqa xmm4, xmm12; \
                    movdqu [rsi+80h], xmm4; pxor xmm13, xmm13; pcmpeqb xmm13, xmm12; \
                    pmovmskb eax, xmm13; cmp eax, 0FFFFh; movq xmm13, [rsi+80h]; \
                    punpcklqdq xmm13, xmm4; movdqa xmm5, xmm4; psllq xmm5, 7; psllq xmm5, 7; \
                    psrlq xmm13, 39h; movzx r10d, byte ptr [rsi+80h]; add r10d, 0FFFFFFFFh; \
                    mov rax, [rsi+80h]; adc rax, [rsi+80h]; mov [rsi+80h], rax; setb [rsi+80h]; \
                    setb r10b; or [rsi+80h], r10b; movq xmm4, [rsi+80h]; movq xmm13, [rsi+88h]; \
                    punpcklqdq xmm4, xmm13; movzx r10d, byte ptr [rsi+80h]; or rax, r10; \
                    or rax, rax; sete [rsi+80h]; add qword ptr [rsi+80h], 1; ret";
    assert_eq!(decoded(code).join("; "), expected);
}

#[test]
fn jumps_land_where_they_should() {
    let mut code = Code::default();
    let top = code.here();
    let ahead = code.jump(When::Zero);
    let back = code.jump(When::NotZero);
    code.land_at(back, top);
    let over = code.jump(When::Always);
    code.land(ahead);
    code.land(over);
    code.return_to_caller();
    let text = decoded(code).join("; ");
    assert_eq!(text, "je 0000000000000011h; jne 0; jmp 0000000000000011h; vzeroupper; ret");
}
