//! Transposition within translated code: 512 bytes of text become eight basis streams that stay in
//! registers.
//!
//! What the transposition of [`crate::transpose`] does in a pass of its own is done here at the top
//! of each block: no stream is stored and loaded again, and shuffles and logic of neighbouring
//! blocks overlap, which other execution ports do. Each row of 64 bytes is reversed in groups of
//! eight, its bits are transposed by a Galois-field multiplication and gathered by bit; three steps
//! of shuffles then transpose the 8×8 words. A shuffle whose streams nobody reads is left out.
//!
//! A text is read backwards by the same shuffles: rows from its end on, all of their bytes the
//! other way round.
//!
//! Programs that look back find their streams in the frame instead, each behind a copy of its last
//! word before the block. Source: Cameron et al. 2014, section 2.

use super::encode::*;
use super::frame::{Direction, FrameVector};
use super::registers::Registers;

/// Slots at the start of the frame: the three constants, the last words before this block and
/// before the next, streams.
pub(super) const SLOTS: u32 = FIRST_STREAM + 16;
const REVERSED: u32 = 0;
const BY_BIT: u32 = 1;
const IDENTITY: u32 = 2;
const BEFORE: u32 = 3;
const BEFORE_NEXT: u32 = 4;
const FIRST_STREAM: u32 = 5;

/// How far ahead of a block the text is asked for.
const AHEAD_BYTES: i32 = 4096;

/// Registers of the constants, free again behind the transposition.
const CONSTANTS: [u8; 3] = [16, 17, 18];

/// A register that is free from the second step on.
const SPARE: u8 = CONSTANTS[0];

/// Of four lanes of each operand the even ones, or the odd ones.
const EVEN: u8 = 0x88;
const ODD: u8 = 0xDD;

/// A slot of the frame.
pub(super) fn slot(number: u32) -> Address {
    Address { base: R8, bytes: number as i32 * 64 }
}

/// A stream in the frame, for programs that look back; the word before it is the last one of the
/// block before.
pub(super) fn stream_address(bit: u8) -> Address {
    slot(FIRST_STREAM + 2 * u32::from(bit) + 1)
}

/// The register that a stream is left in.
pub(super) fn stream_register(bit: u8) -> u8 {
    bit
}

/// What the frame holds at the start of a text, before which stand terminators.
pub(super) fn prepare(frame: &mut [FrameVector], terminator: u8, direction: Direction) {
    let bytes = |byte: fn(usize) -> usize| {
        FrameVector(std::array::from_fn(|word| {
            u64::from_le_bytes(std::array::from_fn(|at| byte(8 * word + at) as u8))
        }))
    };
    frame[REVERSED as usize] = match direction {
        Direction::Forwards => bytes(|at| at & !7 | (7 - (at & 7))),
        Direction::Backwards => bytes(|at| 63 - (at & !7 | (7 - (at & 7)))),
    };
    frame[BY_BIT as usize] = bytes(|at| (at & 7) << 3 | at >> 3);
    frame[IDENTITY as usize] = FrameVector([0x8040_2010_0804_0201; 8]);
    frame[BEFORE as usize] =
        FrameVector(std::array::from_fn(|bit| 0u64.wrapping_sub(u64::from(terminator >> bit & 1))));
}

/// The streams of the block at `rdi`, or of the one that ends there where the text is read
/// backwards, of those bits that `bits` has, in their registers.
pub(super) fn transpose(code: &mut Code, direction: Direction, bits: u8, keeps_last_words: bool) {
    // Each row of 64 bytes becomes eight words, word k with bit k of all its bytes:
    // bytes are turned round within groups of eight, a group's 8×8 bits are transposed by a product
    // with the identity matrix, and the results are gathered by bit.
    let [reversed, by_bit, identity] = CONSTANTS;
    code.load(reversed, Operand::Memory(slot(REVERSED)));
    code.load(by_bit, Operand::Memory(slot(BY_BIT)));
    code.load(identity, Operand::Memory(slot(IDENTITY)));
    for row in 0..8 {
        let (bytes, ahead) = match direction {
            Direction::Forwards => (64 * i32::from(row), AHEAD_BYTES),
            Direction::Backwards => (-64 * (i32::from(row) + 1), -AHEAD_BYTES),
        };
        code.prefetch(Address { base: RDI, bytes: bytes + ahead });
        code.vector(VPERMB, row, reversed, Operand::Memory(Address { base: RDI, bytes }));
        code.vector_immediate(GF2P8AFFINEQB, row, identity, Operand::Register(row), 0);
        code.vector(VPERMB, row, by_bit, Operand::Register(row));
    }
    if keeps_last_words {
        // A row holds one word of each stream.
        code.store(slot(BEFORE_NEXT), 7);
    }
    transpose_words(code, bits);
}

/// Rows in registers 0 to 7 become streams there; registers 8 to 15 are used.
fn transpose_words(code: &mut Code, bits: u8) {
    // Row r holds word r of each stream; stream k wants word k of each row. Pairs of words first:
    // register 8 + 2p + odd gets words of rows 2p and 2p + 1, of even or of odd streams.
    let wanted = |bit: u8| bits >> bit & 1 == 1;
    for odd in 0..2 {
        let unpack = if odd == 0 { VPUNPCKLQDQ } else { VPUNPCKHQDQ };
        if bits & (0x55 << odd) != 0 {
            for pair in 0..4 {
                code.vector(unpack, 8 + 2 * pair + odd, 2 * pair, Operand::Register(2 * pair + 1));
            }
        }
    }
    // Then lanes of two words: two steps choose every second lane of two registers, and so bring
    // the four pairs of one stream together.
    for odd in 0..2 {
        for (lane, lanes) in [(0, EVEN), (1, ODD)] {
            let (low, high) = (2 * lane + odd, 2 * lane + 4 + odd);
            if !wanted(low) && !wanted(high) {
                continue;
            }
            code.vector_immediate(VSHUFI64X2, SPARE, 8 + odd, Operand::Register(10 + odd), lanes);
            code.vector_immediate(VSHUFI64X2, high, 12 + odd, Operand::Register(14 + odd), lanes);
            if wanted(low) {
                code.vector_immediate(VSHUFI64X2, low, SPARE, Operand::Register(high), EVEN);
            }
            if wanted(high) {
                code.vector_immediate(VSHUFI64X2, high, SPARE, Operand::Register(high), ODD);
            }
        }
    }
}

/// Goes on where the block and the 64 bytes before it are ASCII: the jumps that are taken where
/// they are not.
pub(super) fn unless_ascii(code: &mut Code) -> [Jump; 2] {
    code.test_any(stream_register(7), SPARE);
    let here = code.jump(When::NotZero);
    let last = slot(BEFORE);
    code.compare_zero(Address { bytes: last.bytes + 7 * 8, ..last });
    [here, code.jump(When::NotZero)]
}

/// Streams to the frame, each behind its last word of the block before.
pub(super) fn store_streams(code: &mut Code) {
    for bit in 0..8 {
        let place = stream_address(bit);
        code.store(place, stream_register(bit));
        let before = Address { bytes: slot(BEFORE).bytes + 8 * i32::from(bit), ..slot(BEFORE) };
        code.copy_word(Address { bytes: place.bytes - 8, ..place }, before);
    }
}

/// The block becomes the one before.
pub(super) fn keep_last_words(code: &mut Code, registers: Registers) {
    code.load(registers.scratch, Operand::Memory(slot(BEFORE_NEXT)));
    code.store(slot(BEFORE), registers.scratch);
}
