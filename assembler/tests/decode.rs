//! Every form is decoded again by another's decoder, with every register and every shape of memory.
//!
//! What should be written is said as text in the manual's syntax, put together here from names and
//! numbers, and compared with what the decoder reads in the bytes.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use lightfoot_assembler::vector::*;
use lightfoot_assembler::*;

const QWORDS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const DWORDS: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
const BYTES: [&str; 16] = [
    "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b",
    "r15b",
];

const SIZES: [(Size, &[&str; 16], &str); 3] =
    [(Size::Byte, &BYTES, "byte"), (Size::Dword, &DWORDS, "dword"), (Size::Qword, &QWORDS, "qword")];

/// The instructions of some code, in the manual's syntax.
fn decoded(code: &Assembler) -> Vec<String> {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_rip_relative_addresses(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_memory_size_options(iced_x86::MemorySizeOptions::Never);
    let decoder = Decoder::with_ip(64, code.bytes(), 0, DecoderOptions::NONE);
    let texts = decoder.into_iter().map(|instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        assert!(!instruction.is_invalid(), "{:x?}", code.bytes());
        text
    });
    texts.collect()
}

/// One instruction.
#[track_caller]
fn is(expected: &str, emit: impl FnOnce(&mut Assembler)) {
    let mut code = Assembler::default();
    emit(&mut code);
    assert_eq!(decoded(&code), [expected], "{:x?}", code.bytes());
}

fn hexadecimal(value: i32) -> String {
    match value {
        0.. => format!("+{value:#x}"),
        _ => format!("-{:#x}", value.unsigned_abs()),
    }
}

/// Operands in memory with their texts.
fn memories() -> Vec<(Memory, String)> {
    let mut all = Vec::new();
    let displacements = [0, 1, -1, 8, 64, 127, -128, 128, -129, 64 * 127, 64 * 128, 0x12345, i32::MIN];
    for base in 0..16u8 {
        for displacement in displacements {
            let end = if displacement == 0 { String::new() } else { hexadecimal(displacement) };
            let name = QWORDS[usize::from(base)];
            let plain = Memory::at(Gpr::numbered(base)).plus(displacement);
            all.push((plain, format!("[{name}{end}]")));
            all.push((plain.gs(), format!("gs:[{name}{end}]")));
            all.push((plain.fs(), format!("fs:[{name}{end}]")));
            for index in (0..16u8).filter(|&index| index != 4) {
                let scaled = plain.index(Gpr::numbered(index), Scale::power(index));
                let times = ["", "*2", "*4", "*8"][usize::from(index & 3)];
                all.push((scaled, format!("[{name}+{}{times}{end}]", QWORDS[usize::from(index)])));
            }
        }
        let short = Memory::at(Gpr::numbered(base)).plus(16).truncated();
        all.push((short, format!("[{}+0x10]", DWORDS[usize::from(base)])));
    }
    for address in [0, 0x40, 0x1234_5678] {
        all.push((Memory::absolute(address), format!("[{address:#x}]")));
        all.push((Memory::absolute(address).gs(), format!("gs:[{address:#x}]")));
        let row = Memory::absolute(address).index(Gpr::R9, Scale::Eight);
        let end = if address == 0 { String::new() } else { hexadecimal(address) };
        all.push((row, format!("[r9*8{end}]")));
    }
    all
}

#[test]
fn memory_is_what_it_says_whatever_refers_to_it() {
    for (memory, text) in memories() {
        is(&format!("mov r10, {text}"), |code| code.mov_from(Size::Qword, Gpr::R10, memory));
        is(&format!("mov {text}, ecx"), |code| code.mov(Size::Dword, memory, Gpr::RCX));
        // An address has no segment.
        let address = text.trim_start_matches(['f', 'g', 's', ':']);
        is(&format!("lea rbp, {address}"), |code| code.lea(Size::Qword, Gpr::RBP, memory));
        is(&format!("jmp {text}"), |code| code.jump_through(memory));
        is(&format!("call {text}"), |code| code.call_through(memory));
        is(&format!("push {text}"), |code| code.push_from(memory));
        is(&format!("add {text}, 0x7f"), |code| {
            code.alu_immediate(Alu::Add, Size::Qword, memory, 127);
        });
        is(&format!("mov {text}, 0x7"), |code| code.mov_to_immediate(Size::Dword, memory, 7));
        is(&format!("pext r9, r15, {text}"), |code| code.extract_bits(Gpr::R9, Gpr::R15, memory));
        let (v3, v17) = (Vector::numbered(3), Vector::numbered(17));
        is(&format!("vpandq zmm3, zmm17, {text}"), |code| {
            code.vector(VPANDQ, Width::Bits512, v3, v17, memory);
        });
        is(&format!("vpand ymm3, ymm1, {text}"), |code| {
            code.vector(VPANDQ, Width::Bits256, v3, Vector::numbered(1), memory);
        });
        is(&format!("vmovdqu64 {text}, zmm17"), |code| {
            code.vector_store(Width::Bits512, memory, v17);
        });
        is(&format!("sttilecfg {text}"), |code| code.store_tile_configuration(memory));
        is(&format!("pandn xmm3, {text}"), |code| code.sse(VPANDNQ, v3, memory));
        is(&format!("movq xmm3, {text}"), |code| code.sse_load_word(v3, memory));
        is(&format!("movdqu {text}, xmm11"), |code| code.sse_store(memory, Vector::numbered(11)));
    }
}

#[test]
fn wide_displacements_have_four_bytes_and_rip_counts_from_the_end() {
    let mut code = Assembler::default();
    code.lea(Size::Qword, Gpr::RSP, Memory::at(Gpr::RSP).plus(8).wide());
    assert_eq!(code.bytes().len(), 8);
    assert_eq!(decoded(&code), ["lea rsp, [rsp+0x8]"]);
    is("lea rax, [rip+0x10]", |code| code.lea(Size::Qword, Gpr::RAX, Memory::rip(16)));
    is("push [rip-0x10]", |code| code.push_from(Memory::rip(-16)));
}

const ALU: [(Alu, &str); 8] = [
    (Alu::Add, "add"),
    (Alu::Or, "or"),
    (Alu::Adc, "adc"),
    (Alu::Sbb, "sbb"),
    (Alu::And, "and"),
    (Alu::Sub, "sub"),
    (Alu::Xor, "xor"),
    (Alu::Cmp, "cmp"),
];

#[test]
fn arithmetic_takes_every_register_size_and_immediate() {
    for (op, name) in ALU {
        for (size, names, _) in SIZES {
            for n in 0..16 {
                let (to, from) = (Gpr::numbered(n), Gpr::numbered(15 - n));
                let (first, second) = (names[usize::from(n)], names[usize::from(15 - n)]);
                is(&format!("{name} {first}, {second}"), |code| code.alu(op, size, to, from));
                is(&format!("{name} {first}, gs:[rsi+0x8]"), |code| {
                    code.alu_from(op, size, to, Memory::at(Gpr::RSI).plus(8).gs());
                });
                for value in [0, 1, 127] {
                    is(&format!("{name} {first}, {value:#x}"), |code| {
                        code.alu_immediate(op, size, to, value);
                    });
                }
            }
        }
        is(&format!("{name} r9, 0x12345"), |code| {
            code.alu_immediate(op, Size::Qword, Gpr::R9, 0x12345);
        });
        is(&format!("{name} ecx, 0xffffffff"), |code| {
            code.alu_immediate(op, Size::Dword, Gpr::RCX, -1);
        });
    }
}

#[test]
fn moves_take_every_register_and_immediates_the_shortest_form() {
    for (size, names, _) in SIZES {
        for n in 0..16 {
            let (to, from) = (Gpr::numbered(n), Gpr::numbered(n ^ 5));
            let (first, second) = (names[usize::from(n)], names[usize::from(n ^ 5)]);
            is(&format!("mov {first}, {second}"), |code| code.mov(size, to, from));
            is(&format!("mov {first}, [rdi]"), |code| code.mov_from(size, to, Memory::at(Gpr::RDI)));
        }
    }
    let values = [(0, 5), (u64::from(u32::MAX), 5), (1 << 32, 10), (u64::MAX, 7), (i32::MIN as u64, 7)];
    for n in 0..16u8 {
        let (half, whole) = (DWORDS[usize::from(n)], QWORDS[usize::from(n)]);
        for (value, len) in values {
            let mut code = Assembler::default();
            code.mov_immediate(Gpr::numbered(n), value);
            let prefix = usize::from(n > 7 && len == 5);
            assert_eq!(code.len(), len + prefix, "{value:#x}");
            let name = if len == 5 { half } else { whole };
            assert_eq!(decoded(&code), [format!("mov {name}, {value:#x}")]);
        }
    }
    is("mov rax, [0x123456789abcdef0]", |code| code.mov_rax_from(0x1234_5678_9abc_def0));
    is("mov gs:[0x40], 0xffffffffffffffff", |code| {
        code.mov_to_immediate(Size::Qword, Memory::absolute(0x40).gs(), -1);
    });
}

#[test]
fn narrow_values_are_extended() {
    for n in 0..16u8 {
        let (to, from) = (Gpr::numbered(n), Gpr::numbered(n ^ 6));
        let (half, whole) = (DWORDS[usize::from(n)], QWORDS[usize::from(n)]);
        let other = usize::from(n ^ 6);
        let word = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
        let word = match other {
            0..8 => word[other].to_string(),
            _ => format!("r{other}w"),
        };
        is(&format!("movzx {half}, {}", BYTES[other]), |code| {
            code.extend_into(Extend::ZeroByte, to, from);
        });
        is(&format!("movzx {half}, {word}"), |code| code.extend_into(Extend::ZeroWord, to, from));
        is(&format!("movsx {whole}, {word}"), |code| code.extend_into(Extend::SignWord, to, from));
        is(&format!("movsxd {whole}, {}", DWORDS[other]), |code| {
            code.extend_into(Extend::SignDword, to, from);
        });
        let table = Memory::at(from).plus(0x1000);
        is(&format!("movzx {half}, [{}+0x1000]", QWORDS[other]), |code| {
            code.extend_into(Extend::ZeroByte, to, table);
        });
    }
}

#[test]
fn single_operands_take_registers_and_memory() {
    let memory = Memory::absolute(0x80).index(Gpr::RDX, Scale::Eight).gs();
    let place = "gs:[rdx*8+0x80]";
    for (size, names, _) in SIZES {
        for n in 0..16u8 {
            let (r, name) = (Gpr::numbered(n), names[usize::from(n)]);
            is(&format!("neg {name}"), |code| code.negate(size, r));
            let other = names[usize::from(15 - n)];
            is(&format!("test {name}, {other}"), |code| code.test(size, r, Gpr::numbered(15 - n)));
            is(&format!("not {name}"), |code| code.not(size, r));
            is(&format!("inc {name}"), |code| code.increment(size, r));
            is(&format!("dec {name}"), |code| code.decrement(size, r));
            is(&format!("test {name}, 0xf"), |code| code.test_immediate(size, r, 15));
            is(&format!("shl {name}, 0x3"), |code| code.shift(Shift::Left, size, r, 3));
            is(&format!("shr {name}, 0x3"), |code| code.shift(Shift::Right, size, r, 3));
            is(&format!("sar {name}, 0x3"), |code| code.shift(Shift::RightSigned, size, r, 3));
        }
        is(&format!("not {place}"), |code| code.not(size, memory));
        is(&format!("inc {place}"), |code| code.increment(size, memory));
        is(&format!("test {place}, 0x1"), |code| code.test_immediate(size, memory, 1));
    }
    for n in 0..16u8 {
        let (r, name) = (Gpr::numbered(n), QWORDS[usize::from(n)]);
        is(&format!("push {name}"), |code| code.push(r));
        is(&format!("pop {name}"), |code| code.pop(r));
        is(&format!("jmp {name}"), |code| code.jump_through(r));
        is(&format!("call {name}"), |code| code.call_through(r));
    }
    is("push 0xffffffffffffffff", |code| code.push_immediate(-1));
}

#[test]
fn conditions_have_their_numbers() {
    const NAMES: [&str; 16] =
        ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
    for (n, (condition, name)) in Condition::ALL.into_iter().zip(NAMES).enumerate() {
        assert_eq!(Condition::numbered(n as u8), condition);
        is(&format!("cmov{name} r9, rdx"), |code| {
            code.mov_if(condition, Size::Qword, Gpr::R9, Gpr::RDX);
        });
        is(&format!("cmov{name} edi, ecx"), |code| {
            code.mov_if(condition, Size::Dword, Gpr::RDI, Gpr::RCX);
        });
        is(&format!("set{name} sil"), |code| code.set_if(condition, Gpr::RSI));
        let mut code = Assembler::default();
        let jump = code.jump_if(condition);
        code.nop();
        code.land(jump);
        assert_eq!(decoded(&code), [format!("j{name} 0x7"), "nop".into()]);
    }
}

#[test]
fn atomic_and_single_instructions() {
    let state = Memory::absolute(0x5000_0000);
    let mut code = Assembler::default();
    code.lock();
    code.compare_exchange(Size::Dword, state, Gpr::RCX);
    code.lock();
    code.alu(Alu::Add, Size::Qword, state, Gpr::RAX);
    code.lock();
    code.increment(Size::Qword, state.gs());
    code.lock();
    code.exchange_add(Size::Dword, state, Gpr::RSI);
    code.multiply(Size::Qword, Gpr::RSI, Gpr::R9, 4096);
    code.write_gs_base(Gpr::RSI);
    code.write_gs_base(Gpr::R9);
    code.lowest_bit(Size::Qword, Gpr::RSI, Gpr::R9);
    code.highest_bit(Size::Qword, Gpr::R10, Gpr::RCX);
    code.count_ones(Size::Qword, Gpr::RCX, Gpr::R12);
    code.flags_to_ah();
    code.set_if(Condition::Overflow, Gpr::RAX);
    code.alu_immediate(Alu::Add, Size::Byte, Gpr::RAX, 0x7f);
    code.ah_to_flags();
    code.nop();
    code.breakpoint();
    code.undefined();
    code.system_call();
    code.ret();
    code.prefetch(Prefetch::Read, Memory::at(Gpr::R11).plus(8256));
    code.prefetch(Prefetch::Write, Memory::at(Gpr::R13).plus(64).gs());
    code.zero_upper();
    let expected = [
        "lock cmpxchg [0x50000000], ecx",
        "lock add [0x50000000], rax",
        "lock inc gs:[0x50000000]",
        "lock xadd [0x50000000], esi",
        "imul rsi, r9, 0x1000",
        "wrgsbase rsi",
        "wrgsbase r9",
        "bsf rsi, r9",
        "bsr r10, rcx",
        "popcnt rcx, r12",
        "lahf",
        "seto al",
        "add al, 0x7f",
        "sahf",
        "nop",
        "int3",
        "ud2",
        "syscall",
        "ret",
        "prefetcht0 [r11+0x2040]",
        "prefetchw gs:[r13+0x40]",
        "vzeroupper",
    ];
    assert_eq!(decoded(&code), expected);
}

#[test]
fn jumps_land_where_they_should() {
    let mut code = Assembler::default();
    let top = code.here();
    let ahead = code.jump_if(Condition::Equal);
    let over = code.short_jump();
    let out = code.short_jump_if(Condition::Below);
    let zero = code.short_jump_if_rcx_zero();
    code.land_short(over);
    code.jump_back_if(Condition::NotEqual, top);
    code.land_short(out);
    code.jump_back(top);
    code.land(ahead);
    code.land_short(zero);
    code.ret();
    let expected =
        ["je 0x10", "jmp 0xc", "jb 0xe", "jrcxz 0x10", "jne 0x0", "jmp 0x0", "ret"].map(String::from);
    assert_eq!(decoded(&code), expected);

    let mut code = Assembler::default();
    let top = code.here();
    (0..200).for_each(|_| code.nop());
    code.jump_back(top);
    code.jump_back_if(Condition::Sign, top);
    let call = code.call();
    code.land_at(call, Label::new(3));
    code.jump_by(-5);
    let texts = decoded(&code);
    assert_eq!(texts[200..], ["jmp 0x0", "js 0x0", "call 0x3", "jmp 0xd8"].map(String::from));
}

#[test]
#[should_panic = "a short jump reaches 127 bytes"]
fn a_short_jump_that_cannot_reach_is_refused() {
    let mut code = Assembler::default();
    let jump = code.short_jump();
    (0..128).for_each(|_| code.nop());
    code.land_short(jump);
}

#[test]
fn far_addresses_stand_behind_the_jump() {
    let mut code = Assembler::default();
    let at = code.jump_to_address(0x1122_3344_5566_7788);
    assert_eq!((at, code.len()), (6, 14));
    assert_eq!(code.bytes()[6..], 0x1122_3344_5566_7788u64.to_le_bytes());
    let mut jump = Assembler::default();
    jump.extend(&code.bytes()[..6]);
    assert_eq!(decoded(&jump), ["jmp [rip]"]);
}

const BOTH_WIDTHS: [(VectorInstruction, &str, &str); 6] = [
    (VPANDQ, "vpandq", "vpand"),
    (VPANDNQ, "vpandnq", "vpandn"),
    (VPORQ, "vporq", "vpor"),
    (VPXORQ, "vpxorq", "vpxor"),
    (VPADDQ, "vpaddq", "vpaddq"),
    (VPSUBQ, "vpsubq", "vpsubq"),
];

#[test]
fn vectors_of_both_widths_take_every_register() {
    for (what, evex, vex) in BOTH_WIDTHS {
        for n in 0..32u8 {
            let (to, a, b) = (n, 31 - n, n ^ 9);
            let registers = [to, a, b].map(Vector::numbered);
            is(&format!("{evex} zmm{to}, zmm{a}, zmm{b}"), |code| {
                code.vector(what, Width::Bits512, registers[0], registers[1], registers[2]);
            });
            let (to, a, b) = (n & 15, (31 - n) & 15, (n ^ 9) & 15);
            let registers = [to, a, b].map(Vector::numbered);
            is(&format!("{vex} ymm{to}, ymm{a}, ymm{b}"), |code| {
                code.vector(what, Width::Bits256, registers[0], registers[1], registers[2]);
            });
            is(&format!("{vex} xmm{to}, xmm{a}, xmm{b}"), |code| {
                code.vector(what, Width::Bits128, registers[0], registers[1], registers[2]);
            });
        }
    }
}

#[test]
fn each_vector_form_is_what_it_says() {
    let v = Vector::numbered;
    let k = Mask::numbered;
    let text = Memory::at(Gpr::RDI).plus(64);
    let wide = Width::Bits512;
    type Case<'c> = (&'c dyn Fn(&mut Assembler), &'c str);
    let cases: &[Case<'_>] = &[
        (
            &|c| c.vector_immediate(VPTERNLOGQ, wide, v(1), v(18), v(20), 0xca),
            "vpternlogq zmm1, zmm18, zmm20, 0xca",
        ),
        (&|c| c.vector_immediate(VALIGNQ, wide, v(29), v(5), v(20), 7), "valignq zmm29, zmm5, zmm20, 0x7"),
        (&|c| c.vector_immediate(VPSHLDQ, wide, v(2), v(3), v(20), 63), "vpshldq zmm2, zmm3, zmm20, 0x3f"),
        (&|c| c.vector_masked(VPSUBQ, v(2), v(2), v(31), k(1)), "vpsubq zmm2{k1}, zmm2, zmm31"),
        (&|c| c.vector(VPERMB, wide, v(19), v(20), text), "vpermb zmm19, zmm20, [rdi+0x40]"),
        (
            &|c| c.vector_immediate(GF2P8AFFINEQB, wide, v(1), v(18), v(20), 0),
            "vgf2p8affineqb zmm1, zmm18, zmm20, 0x0",
        ),
        (&|c| c.vector(VPUNPCKLQDQ, wide, v(1), v(18), v(20)), "vpunpcklqdq zmm1, zmm18, zmm20"),
        (&|c| c.vector(VPUNPCKHQDQ, wide, v(30), v(2), v(20)), "vpunpckhqdq zmm30, zmm2, zmm20"),
        (
            &|c| c.vector_immediate(VSHUFI64X2, wide, v(1), v(18), v(20), 0xdd),
            "vshufi64x2 zmm1, zmm18, zmm20, 0xdd",
        ),
        (&|c| c.words_below(k(1), v(19), v(20)), "vpcmpltuq k1, zmm19, zmm20"),
        (&|c| c.words_equal(k(2), v(19), v(20)), "vpcmpeqq k2, zmm19, zmm20"),
        (&|c| c.words_common(k(1), v(30), v(30)), "vptestmq k1, zmm30, zmm30"),
        (&|c| c.vector(VPCMPEQQ, Width::Bits256, v(2), v(10), v(15)), "vpcmpeqq ymm2, ymm10, ymm15"),
        (&|c| c.masks_test(k(1), k(3)), "kortestb k1, k3"),
        (&|c| c.mask_to_register(MaskSize::Byte, Gpr::R9, k(2)), "kmovb r9d, k2"),
        (&|c| c.mask_to_register(MaskSize::Word, Gpr::R9, k(7)), "kmovw r9d, k7"),
        (&|c| c.mask_to_register(MaskSize::Qword, Gpr::R14, k(2)), "kmovq r14, k2"),
        (&|c| c.register_to_mask(k(1), Gpr::RAX), "kmovb k1, eax"),
        (&|c| c.vector_load(wide, v(30), text), "vmovdqu64 zmm30, [rdi+0x40]"),
        (&|c| c.vector_load(Width::Bits256, v(15), text), "vmovdqu ymm15, [rdi+0x40]"),
        (&|c| c.vector_load(wide, v(30), v(3)), "vmovdqu64 zmm30, zmm3"),
        (&|c| c.vector_store(Width::Bits256, text, v(8)), "vmovdqu [rdi+0x40], ymm8"),
        (&|c| c.vector_test(v(13), v(13)), "vptest ymm13, ymm13"),
        (&|c| c.permute_words(v(13), v(4), 0x93), "vpermq ymm13, ymm4, 0x93"),
        (&|c| c.blend_halves(v(14), v(13), text, 3), "vpblendd ymm14, ymm13, [rdi+0x40], 0x3"),
        (&|c| c.shift_words_left(v(13), v(4), 5), "vpsllq ymm13, ymm4, 0x5"),
        (&|c| c.shift_words_right(v(14), v(14), 59), "vpsrlq ymm14, ymm14, 0x3b"),
        (&|c| c.dword_signs(Width::Bits128, Gpr::R9, v(3)), "vmovmskps r9d, xmm3"),
        (&|c| c.dword_signs(Width::Bits256, Gpr::RAX, v(13)), "vmovmskps eax, ymm13"),
        (&|c| c.qword_signs(Width::Bits128, Gpr::R9, v(3)), "vmovmskpd r9d, xmm3"),
        (&|c| c.qword_signs(Width::Bits256, Gpr::RAX, v(13)), "vmovmskpd eax, ymm13"),
        (&|c| c.byte_signs(Width::Bits128, Gpr::R12, v(3)), "vpmovmskb r12d, xmm3"),
        (&|c| c.byte_signs_mmx(Gpr::R12, Mmx::numbered(5)), "pmovmskb r12d, mm5"),
    ];
    for (emit, expected) in cases {
        is(expected, emit);
    }
    for n in 0..16u8 {
        let (half, whole) = (DWORDS[usize::from(n)], QWORDS[usize::from(n)]);
        let (to, from) = (Gpr::numbered(n), Gpr::numbered(n ^ 12));
        is(&format!("rorx {half}, {}, 0x6", DWORDS[usize::from(n ^ 12)]), |c| {
            c.rotate_right(Size::Dword, to, from, 6);
        });
        is(&format!("rorx {whole}, {}, 0x6", QWORDS[usize::from(n ^ 12)]), |c| {
            c.rotate_right(Size::Qword, to, from, 6);
        });
    }
}

#[test]
fn vectors_of_sse2_take_every_register() {
    let two_operands = [
        (VPANDQ, "pand"),
        (VPANDNQ, "pandn"),
        (VPORQ, "por"),
        (VPXORQ, "pxor"),
        (VPADDQ, "paddq"),
        (VPSUBQ, "psubq"),
        (VPUNPCKLQDQ, "punpcklqdq"),
        (VPUNPCKHQDQ, "punpckhqdq"),
        (VPCMPEQB, "pcmpeqb"),
        (VPCMPEQD, "pcmpeqd"),
    ];
    for n in 0..16u8 {
        for m in 0..16u8 {
            let (to, from) = (Vector::numbered(n), Vector::numbered(m));
            for (what, name) in two_operands {
                is(&format!("{name} xmm{n}, xmm{m}"), |c| c.sse(what, to, from));
            }
            is(&format!("movdqa xmm{n}, xmm{m}"), |c| c.sse_load(to, from));
            let half = DWORDS[usize::from(m)];
            is(&format!("pmovmskb {half}, xmm{n}"), |c| c.sse_byte_signs(Gpr::numbered(m), to));
        }
        let words = Vector::numbered(n);
        let text = Memory::at(Gpr::numbered(n)).plus(0x40);
        let place = format!("[{}+0x40]", QWORDS[usize::from(n)]);
        is(&format!("movdqu xmm{n}, {place}"), |c| c.sse_load(words, text));
        is(&format!("psllq xmm{n}, 0x5"), |c| c.sse_shift_words_left(words, 5));
        is(&format!("psrlq xmm{n}, 0x3b"), |c| c.sse_shift_words_right(words, 59));
    }
}
