//! The translator: a program becomes machine code for AVX-512, AVX2 or SSE2 that keeps its streams
//! in registers.
//!
//! One pass of the code is one block of 512 positions (256 with AVX2, 128 with SSE2): it transposes
//! the text into registers (AVX2 and SSE2 read the basis streams that a transposition of the chunk
//! left in the first-level cache), and writes the output's eight (four, two) words. With AVX-512
//! three-input logic is one instruction ([`crate::program::pass::with_ternaries`]); an advance is
//! `valignq` and `vpshldq` on the operand and what it was one block before; an addition is the
//! paper's long-stream addition on eight words:
//!
//! ```text
//! r = m + c;   g = r < c;   b = r = 111…1;   i = (2g + carry) + b ⊕ b;
//! r −= −1 where i;   carry = i >> 8
//! ```
//!
//! Programs with Unicode classes are translated twice: blocks of ASCII behind 64 bytes of ASCII run
//! the program for those. Carries are 64 bytes each, so that loads and stores are whole vectors; a
//! second bank collects those of loops. AVX2 has neither masks nor three-input logic: overflow is a
//! sign bit of `m ∧ c ∨ c ∧ ¬r`, increments come from a table of sixteen vectors at the start of
//! the frame, and an advance puts together shifted words. SSE2 adds its two words in general
//! registers, and its instructions write over their first operand. Both jump over parts of a
//! program that few blocks need ([`skips`]). Left out: two blocks at a time: the processor overlaps
//! blocks by itself, only carries tie them. Without AVX-512 the transposition reads memory in
//! bursts and the program none, so the program asks for half of the text that the next
//! transposition reads: with AVX2 complicated programs gain up to a third, the simplest lose a
//! fiftieth. Source: Cameron et al. 2014, section 3.

mod allocate;
mod emit;
mod encode;
mod frame;
mod memory;
mod registers;
mod skips;
mod transpose;

use crate::program::pass::{bases, for_ascii, with_ternaries};
use crate::program::{BitProgram, Instruction, Op};
use crate::transpose::{Basis, Transposer, BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS, HISTORY_WORDS};
use allocate::basis_address;
use emit::{emit_program, CHOICE, SUMS};
pub(crate) use encode::Target;
use encode::*;
use frame::FrameVector;
pub(crate) use frame::{Direction, Frame};
use memory::Executable;
use registers::Registers;
use skips::{with_skips, Worth};
use std::sync::atomic::{AtomicBool, Ordering};

/// Text (AVX-512) or the first block of basis stream 0, `carries`, `output`, number of blocks,
/// `frame`, the chunk's text.
type EntryFunction =
    unsafe extern "sysv64" fn(*const u8, *mut FrameVector, *mut u64, u64, *mut FrameVector, *const u8);

/// How far ahead of its own text a block asks for some: the next chunk.
const AHEAD_BYTES: i32 = CHUNK_BYTES as i32;

/// After so many blocks jumps are judged by how often they were taken.
const JUDGED_BLOCKS: u64 = 4096;

/// This part of each block's lines is asked for; the rest is left to the transposition, as simple
/// programs lose by more.
const ASKED_PART: i32 = 2;

/// A translated program.
#[derive(Debug)]
pub(crate) struct Translation {
    memory: Executable,
    target: Target,
    direction: Direction,
    carries: usize,
    frames: usize,
    kept: usize,
    has_row_ends: bool,
    starts: Vec<bool>,
    terminator: u8,
    /// What fills the basis streams, where the code does not make them itself.
    transposer: Option<Transposer>,
    /// The slot that counts how often parts ran that may be jumped over, and what jumps are worth.
    runs: Option<usize>,
    worth: Worth,
    /// Whether a text was seen in which they are worth nothing.
    is_vain: AtomicBool,
}

/// Whether parts of a program may be jumped over where that is expected to be worth it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skips {
    Chosen,
    None,
}

impl Translation {
    /// Translates; nothing where the system refuses executable memory, or for logic that the target
    /// lacks. The machine must have the target's instructions: AVX-512 with VBMI2, AVX2, or SSE2.
    pub(crate) fn new(
        program: &BitProgram,
        target: Target,
        direction: Direction,
        skips: Skips,
    ) -> Option<Translation> {
        assert!(direction == Direction::Forwards || target == Target::Avx512, "AVX2 and SSE2 read forwards");
        let suited = |program: &BitProgram| match target {
            Target::Avx512 => Some(with_ternaries(program)),
            Target::Avx2 | Target::Sse2 => only_choices(&program.body).then(|| program.clone()),
        };
        let full = suited(program)?;
        let ascii = match program.looks_back() {
            true => Some(suited(&for_ascii(program))?),
            false => None,
        };
        let transposer = match target {
            Target::Avx512 => None,
            Target::Avx2 => Some(Transposer::named("avx2")?),
            Target::Sse2 => Some(Transposer::named("sse2")?),
        };
        // Parts that few blocks need are jumped over, in the program for ASCII if there are two: of
        // what holds when the other one has run nothing is known.
        let has_skips = skips == Skips::Chosen && target != Target::Avx512;
        let skipping = |program| with_skips(program, 8 * vector_bytes(target));
        let (full, ascii, worth) = match ascii {
            Some(ascii) if has_skips => {
                let (ascii, worth) = skipping(ascii);
                (full, Some(ascii), worth)
            }
            None if has_skips => {
                let (full, worth) = skipping(full);
                (full, None, worth)
            }
            ascii => (full, ascii, Worth::default()),
        };
        let (code, frames, runs) = translate(&full, ascii.as_ref(), target, direction);
        let memory = Executable::new(&code).ok()?;
        let (starts, terminator) = (program.carries.clone(), program.terminator);
        let (carries, frames) = (starts.len(), frames as usize);
        Some(Translation {
            memory,
            target,
            direction,
            carries,
            frames,
            kept: program.kept.len(),
            has_row_ends: program.has_row_ends(),
            starts,
            terminator,
            transposer,
            runs,
            worth,
            is_vain: AtomicBool::new(false),
        })
    }

    pub(crate) fn frame(&self) -> Frame {
        // Two banks of carries. One that starts as if a bit had come from before the text has it at
        // the end of its vector, where a vector of the text would have it.
        let mut carries = vec![FrameVector([0; 8]); 2 * self.carries + 1];
        let last_word = match self.target {
            Target::Avx512 => 7,
            // The vector is kept rotated.
            Target::Avx2 => 0,
            Target::Sse2 => 1,
        };
        for (line, &starts) in carries.iter_mut().zip(&self.starts) {
            line.0[last_word] = u64::from(starts) << 63;
        }
        // Constants at the start of the frame, then slots for values that lack a register.
        let mut values = vec![FrameVector([0; 8]); self.frames + 1];
        match self.target {
            Target::Avx512 => transpose::prepare(&mut values, self.terminator, self.direction),
            Target::Avx2 => {
                for (nibble, line) in values.iter_mut().take(INCREMENTS as usize).enumerate() {
                    *line = FrameVector(std::array::from_fn(|word| {
                        0u64.wrapping_sub((nibble >> word & 1) as u64)
                    }));
                }
            }
            Target::Sse2 => {}
        }
        let basis = self.transposer.map(|_| Basis::new(self.terminator));
        Frame { carries, values, basis, blocks: 0 }
    }

    /// Whether jumps over parts of the program have turned out to be worth nothing.
    pub(crate) fn is_vain(&self) -> bool {
        self.is_vain.load(Ordering::Relaxed)
    }

    /// Computes the output of a part of the text, of whole blocks; the output's first bit is the
    /// byte that is read first. Where rows end is read from the output's place before it is
    /// written. Streams that are kept follow the output, a chunk's words apart.
    pub(crate) fn run(&self, text: &[u8], frame: &mut Frame, output: &mut [u64]) {
        let words = text.len() / 64;
        assert!(text.len().is_multiple_of(BLOCK_BYTES));
        match self.kept {
            0 => assert!(output.len() == words),
            kept => assert!(words <= CHUNK_WORDS && output.len() >= kept * CHUNK_WORDS + words),
        }
        assert!(frame.carries.len() > 2 * self.carries && frame.values.len() > self.frames);
        // SSE2 reads where rows end as it reads all vectors in memory.
        assert!(!self.has_row_ends || output.as_ptr().cast::<FrameVector>().is_aligned());
        if words == 0 {
            return;
        }
        // With AVX2 and SSE2 the text is transposed first, and the code reads basis streams.
        let blocks = words as u64 * 8 / vector_bytes(self.target) as u64;
        let from: *const u8 = match (self.transposer, &mut frame.basis) {
            (Some(transposer), Some(basis)) => {
                transposer.run(text, basis);
                // SAFETY: the streams follow each other within the basis, each behind its history.
                unsafe { basis.streams.as_ptr().cast::<u64>().add(HISTORY_WORDS).cast() }
            }
            _ if self.direction == Direction::Backwards => text.as_ptr_range().end,
            _ => text.as_ptr(),
        };
        // SAFETY: the mapping holds a function of this type. With AVX-512 it reads as many bytes of
        // the text as asserted above, from its end or its start on; else `blocks` vectors of each
        // basis stream, which the transposer asserts to hold that much, and one word before.
        // Streams, carries and frame are aligned to 64 bytes and the distances between their
        // vectors to 16, as SSE2 wants its operands in memory.
        // It writes as many vectors of the output and of the streams behind it, of the carries and
        // of the frame, all of which are as long as asserted. Text that it asks memory for ahead
        // may lie anywhere, as that cannot fault. A translation exists only where the processor has
        // the instructions.
        unsafe {
            let entry: EntryFunction = std::mem::transmute(self.memory.entry());
            let (carries, values) = (frame.carries.as_mut_ptr(), frame.values.as_mut_ptr());
            entry(from, carries, output.as_mut_ptr(), blocks, values, text.as_ptr());
        }
        if let Some(basis) = &mut frame.basis {
            basis.forget(words);
        }
        if let Some(runs) = self.runs {
            frame.blocks += blocks;
            if frame.blocks >= JUDGED_BLOCKS && self.worth.is_vain(frame.values[runs].0[0], frame.blocks) {
                self.is_vain.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Vectors at the start of an AVX2 frame: minus one in each word whose bit the vector's number has.
const INCREMENTS: u32 = 16;

// SSE2 faults on operands that are not aligned to its vectors.
const _: () = assert!(std::mem::align_of::<Basis>() >= 16 && std::mem::align_of::<FrameVector>() >= 16);
const _: () = assert!((HISTORY_WORDS * 8).is_multiple_of(16) && allocate::STREAM_BYTES % 16 == 0);

fn vector_bytes(target: Target) -> i32 {
    match target {
        Target::Avx512 => 64,
        Target::Avx2 => 32,
        Target::Sse2 => 16,
    }
}

/// Whether choices are the only three-input logic.
fn only_choices(body: &[Instruction]) -> bool {
    body.iter().all(|one| {
        !matches!(one.op, Op::Ternary { table, .. } if table != CHOICE)
            && one.op.body().is_none_or(only_choices)
    })
}

/// The function's code, the frame slots that it needs, and the one that counts runs of parts.
fn translate(
    full: &BitProgram,
    ascii: Option<&BitProgram>,
    target: Target,
    direction: Direction,
) -> (Vec<u8>, u32, Option<usize>) {
    // In front of the loop: the register of all ones, and where the code does not transpose the
    // text's address, which comes as the sixth argument and is kept for asking memory ahead.
    let mut code = Code::new(target);
    let registers = Registers::of(target);
    code.fill_ones(registers.ones);
    if target != Target::Avx512 {
        code.keep_sixth_argument();
    }
    let top = code.here();
    // The block's basis streams, or a request for the text of a later one.
    let mut frames = match target {
        Target::Avx512 => {
            let bits = if ascii.is_some() { 0xFF } else { bases(&full.body) };
            transpose::transpose(&mut code, direction, bits, ascii.is_some());
            transpose::SLOTS
        }
        Target::Avx2 | Target::Sse2 => {
            ask_ahead(&mut code, target);
            if target == Target::Avx2 {
                INCREMENTS
            } else {
                SUMS.len() as u32
            }
        }
    };
    // A block of ASCII behind ASCII runs the program that is left of it there, and jumps over the
    // whole one.
    let mut after_ascii = None;
    let mut runs = None;
    if let Some(ascii) = ascii {
        let beyond = unless_ascii(&mut code, target, registers);
        if ascii.looks_back() {
            store_streams(&mut code, target);
        }
        let emitted = emit_program(&mut code, ascii, target, frames);
        (frames, runs) = (emitted.frames, emitted.runs);
        after_ascii = Some(code.jump(When::Always));
        beyond.into_iter().for_each(|jump| code.land(jump));
        // The whole program may leave carries in what the other one has left out.
        if !emitted.idle.is_empty() {
            code.clear(registers.scratch);
            emitted.idle.iter().for_each(|&place| code.store(place, registers.scratch));
        }
    }
    if full.looks_back() {
        store_streams(&mut code, target);
    }
    let emitted = emit_program(&mut code, full, target, frames);
    (frames, runs) = (emitted.frames, runs.or(emitted.runs));
    if let Some(jump) = after_ascii {
        code.land(jump);
    }
    if target == Target::Avx512 && ascii.is_some() {
        transpose::keep_last_words(&mut code, registers);
    }
    // On to the next block of text (or of streams) and of output, while blocks are left.
    match (target, direction) {
        (Target::Avx512, Direction::Forwards) => code.add_bytes(RDI, BLOCK_BYTES as i32),
        (Target::Avx512, Direction::Backwards) => code.add_bytes(RDI, -(BLOCK_BYTES as i32)),
        (Target::Avx2 | Target::Sse2, _) => code.add_bytes(RDI, vector_bytes(target)),
    }
    code.add_bytes(RDX, vector_bytes(target));
    code.count_down();
    let again = code.jump(When::NotZero);
    code.land_at(again, top);
    code.return_to_caller();
    (code.into_bytes(), frames, runs.map(slot_number))
}

/// Goes on where the block and the 64 bytes before it are ASCII: the jumps that are taken where
/// they are not.
fn unless_ascii(code: &mut Code, target: Target, registers: Registers) -> [Jump; 2] {
    if target == Target::Avx512 {
        return transpose::unless_ascii(code);
    }
    let high = basis_address(target, 7);
    code.load(registers.scratch, Operand::Memory(high));
    code.test_any(registers.scratch, registers.scratch_2);
    let here = code.jump(When::NotZero);
    code.compare_zero(Address { bytes: high.bytes - 8, ..high });
    [here, code.jump(When::NotZero)]
}

/// Streams to where a program that looks back reads them.
fn store_streams(code: &mut Code, target: Target) {
    if target == Target::Avx512 {
        transpose::store_streams(code);
    }
}

/// The number of a slot of the frame.
fn slot_number(place: Address) -> usize {
    place.bytes as usize / size_of::<FrameVector>()
}

/// Prefetches for one block.
fn ask_ahead(code: &mut Code, target: Target) {
    // A bit of a vector is a byte of the text.
    let lines = vector_bytes(target) / 8;
    for line in lines / ASKED_PART..lines {
        code.prefetch(Address { base: R11, bytes: AHEAD_BYTES + 64 * line });
    }
    code.add_bytes(R11, 64 * lines);
}

#[cfg(test)]
mod tests;
