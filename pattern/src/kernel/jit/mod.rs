//! The translator: a program becomes machine code for AVX-512 or AVX2 that keeps its streams in registers.
//!
//! One pass of the code is one block of 512 positions (256 with AVX2): it reads the basis streams that the transposition left in the first-level cache, and writes the output's
//! eight (four) words. With AVX-512 three-input logic is one instruction ([`crate::program::pass::with_ternaries`]); an advance is `valignq` and `vpshldq` on the
//! operand and what it was one block before; an addition is the paper's long-stream addition on eight words:
//!
//! ```text
//! r = m + c;   g = r < c;   b = r = 111…1;   i = (2g + carry) + b ⊕ b;   r −= −1 where i;   carry = i >> 8
//! ```
//!
//! Programs with Unicode classes are translated twice: blocks of ASCII behind 64 bytes of ASCII run the program for those.
//! Carries are 64 bytes each, so that loads and stores are whole vectors; a second bank collects those of loops.
//! AVX2 has neither masks nor three-input logic: overflow is a sign bit of `m ∧ c ∨ c ∧ ¬r`, increments come from a table of sixteen vectors at the
//! start of the frame, and an advance puts together shifted words. Left out: two blocks at a time: the processor overlaps blocks by itself, only carries tie them.
//! The transposition reads memory in bursts and the program none, so the program asks for half of the text that the next transposition
//! reads: complicated programs gain up to a third, the simplest lose a fiftieth.
//! Source: Cameron et al. 2014, section 3.

mod allocate;
mod emit;
mod encode;
mod memory;

use crate::program::pass::{for_ascii, with_ternaries};
use crate::program::{BitProgram, Instruction, Op};
use crate::transpose::{Basis, CHUNK_BYTES, HISTORY_WORDS};
use allocate::{basis_place, Registers};
use emit::{emit_program, CHOICE};
pub(crate) use encode::Target;
use encode::*;
use memory::Executable;

/// `basis` (first block of stream 0), `carries`, `output`, number of blocks, `frame`, the chunk's text.
type Entry = unsafe extern "sysv64" fn(*const u64, *mut Line, *mut u64, u64, *mut Line, *const u8);

/// How far ahead of its own text a block asks for some: the next chunk.
const AHEAD_BYTES: i32 = CHUNK_BYTES as i32;

/// This part of each block's lines is asked for; the rest is left to the transposition, as simple programs lose by more.
const ASKED_PART: u8 = 2;

/// One vector in memory.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u64; 8]);

/// A translated program.
#[derive(Debug)]
pub(crate) struct Translation {
    memory: Executable,
    target: Target,
    carries: usize,
    frames: usize,
    starts: Vec<bool>,
}

/// What one pass over a text needs: carries in two banks, and memory for values that lack a register.
pub(crate) struct Frame {
    carries: Vec<Line>,
    values: Vec<Line>,
}

impl Translation {
    /// Translates; nothing where the system refuses executable memory, or for logic that the target lacks. The machine must have the target's
    /// instructions: AVX-512 with VBMI2, or AVX2.
    pub(crate) fn new(program: &BitProgram, target: Target) -> Option<Translation> {
        let suited = |program: &BitProgram| match target {
            Target::Avx512 => Some(with_ternaries(program)),
            Target::Avx2 => only_choices(&program.body).then(|| program.clone()),
        };
        let full = suited(program)?;
        let ascii = match super::looks_back(program) {
            true => Some(suited(&for_ascii(program))?),
            false => None,
        };
        let (code, frames) = translate(&full, ascii.as_ref(), target);
        let memory = Executable::new(&code).ok()?;
        let starts = program.carries.clone();
        Some(Translation { memory, target, carries: starts.len(), frames: frames as usize, starts })
    }

    pub(crate) fn frame(&self) -> Frame {
        let mut carries = vec![Line([0; 8]); 2 * self.carries + 1];
        let last_word = if self.target == Target::Avx512 { 7 } else { 0 };
        for (line, &starts) in carries.iter_mut().zip(&self.starts) {
            line.0[last_word] = u64::from(starts) << 63;
        }
        let mut values = vec![Line([0; 8]); self.frames + 1];
        if self.target == Target::Avx2 {
            for (nibble, line) in values.iter_mut().take(INCREMENTS as usize).enumerate() {
                *line = Line(std::array::from_fn(|word| 0u64.wrapping_sub((nibble >> word & 1) as u64)));
            }
        }
        Frame { carries, values }
    }

    /// Computes the output of a chunk of whole blocks; `text` is what the basis streams were made of, and only says what to ask memory for.
    pub(crate) fn run(&self, text: &[u8], basis: &Basis, frame: &mut Frame, output: &mut [u64]) {
        assert!(
            output.len().is_multiple_of(8)
                && frame.carries.len() > 2 * self.carries
                && frame.values.len() > self.frames
        );
        assert!(output.len() <= basis.stream(0).len());
        if output.is_empty() {
            return;
        }
        let blocks = output.len() as u64 * 8 / u64::from(vector_bytes(self.target));
        // SAFETY: the mapping holds a function of this type; it reads `blocks` vectors of each basis stream and one word before, and writes as many of the output, the carries and
        // the frame, all of which are as long as asserted above. Of the text it uses the address, to prefetch, which cannot fault. A translation exists only where the processor has the instructions.
        unsafe {
            let entry: Entry = std::mem::transmute(self.memory.entry());
            let first = basis.streams.as_ptr().cast::<u64>().add(HISTORY_WORDS);
            let (carries, values) = (frame.carries.as_mut_ptr(), frame.values.as_mut_ptr());
            entry(first, carries, output.as_mut_ptr(), blocks, values, text.as_ptr());
        }
    }
}

/// Vectors at the start of an AVX2 frame: minus one in each word whose bit the vector's number has.
const INCREMENTS: u32 = 16;

fn vector_bytes(target: Target) -> u8 {
    match target {
        Target::Avx512 => 64,
        Target::Avx2 => 32,
    }
}

/// Whether choices are the only three-input logic.
fn only_choices(body: &[Instruction]) -> bool {
    body.iter().all(|one| {
        !matches!(one.op, Op::Ternary { table, .. } if table != CHOICE)
            && one.op.body().is_none_or(only_choices)
    })
}

/// The function's code, and the frame slots that it needs.
fn translate(full: &BitProgram, ascii: Option<&BitProgram>, target: Target) -> (Vec<u8>, u32) {
    let mut code = Code::new(target);
    let Registers { ones, scratch, .. } = Registers::of(target);
    let mut frames = 0;
    match target {
        Target::Avx512 => code.vector_immediate(VPTERNLOGQ, ones, ones, Operand::Register(ones), 0xFF),
        Target::Avx2 => {
            frames = INCREMENTS;
            code.equal(ones, ones, Operand::Register(ones));
        }
    }
    code.keep_sixth_argument();
    let top = code.here();
    ask_ahead(&mut code, target);
    let mut after_ascii = None;
    if let Some(ascii) = ascii {
        let high = basis_place(7);
        code.load(scratch, Operand::Memory(high));
        code.test_any(scratch);
        let here = code.jump(When::NotZero);
        code.compare_zero(Place { bytes: high.bytes - 8, ..high });
        let before = code.jump(When::NotZero);
        frames = emit_program(&mut code, ascii, target, frames);
        after_ascii = Some(code.jump(When::Always));
        code.land(here);
        code.land(before);
    }
    frames = emit_program(&mut code, full, target, frames);
    if let Some(jump) = after_ascii {
        code.land(jump);
    }
    code.add_bytes(RDI, vector_bytes(target));
    code.add_bytes(RDX, vector_bytes(target));
    code.count_down();
    let again = code.jump(When::NotZero);
    code.land_at(again, top);
    code.return_to_caller();
    (code.into_bytes(), frames)
}

/// Prefetches for one block.
fn ask_ahead(code: &mut Code, target: Target) {
    // A bit of a vector is a byte of the text.
    let lines = vector_bytes(target) / 8;
    for line in lines / ASKED_PART..lines {
        code.prefetch(Place { base: R11, bytes: AHEAD_BYTES + 64 * i32::from(line) });
    }
    code.add_many_bytes(R11, 64 * i32::from(lines));
}
