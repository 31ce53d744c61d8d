//! Kernels: how a program runs over a text, and the choice among them.
//!
//! A [`Scanner`] is a program on a kernel of [`KERNELS`]; the choice is made once, when it is built. A [`Scan`] holds what one pass
//! over a text needs: streams, and the carries that one chunk hands to the next. Each chunk is transposed, the program computes its output stream, and
//! the bits of that stream are the ends of matching lines.
//!
//! Every kernel gives the same bits; `tests/agree.rs` holds them against [`crate::reference`].

mod interpret;
mod liveness;

use crate::program::BitProgram;
use crate::transpose::{Basis, Transposer, BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS};
use interpret::{Arena, Carries, Interpreter, Isa};
use std::ops::{ControlFlow, Range};

/// A way to run programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Interpreted, with AVX-512.
    Avx512,
    /// Interpreted, with AVX2.
    Avx2,
    /// Interpreted, with SSE2 for the transposition.
    Sse2,
    /// Interpreted, with NEON for the transposition.
    Neon,
    /// Interpreted, plain Rust.
    Portable,
}

/// Every kernel, fastest first; not all of them run on one machine.
pub const KERNELS: &[Kernel] = &[Kernel::Avx512, Kernel::Avx2, Kernel::Sse2, Kernel::Neon, Kernel::Portable];

impl Kernel {
    /// The name that `--explain` prints and that selects it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Avx512 => "avx512",
            Kernel::Avx2 => "avx2",
            Kernel::Sse2 => "sse2",
            Kernel::Neon => "neon",
            Kernel::Portable => "portable",
        }
    }

    /// The kernel called `name`.
    pub fn from_name(name: &str) -> Option<Kernel> {
        KERNELS.iter().copied().find(|kernel| kernel.name() == name)
    }

    fn transposer(self) -> Option<Transposer> {
        match self {
            Kernel::Portable => Transposer::named("scalar"),
            other => Transposer::named(other.name()),
        }
    }

    fn isa(self) -> Isa {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Isa::Avx512,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Isa::Avx2,
            _ => Isa::Portable,
        }
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        let has_isa = match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => is_x86_feature_detected!("bmi2"),
            _ => true,
        };
        has_isa && self.transposer().is_some()
    }

    /// The fastest that this machine can run.
    pub fn detect() -> Kernel {
        KERNELS.iter().copied().find(|kernel| kernel.is_available()).unwrap_or(Kernel::Portable)
    }
}

/// A program on a kernel, to be run over any number of texts, by any number of threads at once.
#[derive(Debug)]
pub struct Scanner {
    program: BitProgram,
    kernel: Kernel,
    transposer: Transposer,
    interpreter: Interpreter,
}

impl Scanner {
    /// On the best kernel of this machine.
    ///
    /// # Panics
    /// When the program breaks a rule of [`BitProgram::verify`].
    pub fn new(program: &BitProgram) -> Scanner {
        Scanner::with_kernel(program, Kernel::detect()).expect("the portable kernel runs everywhere")
    }

    /// On a given kernel; nothing where this machine cannot run it.
    ///
    /// # Panics
    /// When the program breaks a rule of [`BitProgram::verify`].
    pub fn with_kernel(program: &BitProgram, kernel: Kernel) -> Option<Scanner> {
        if let Err(fault) = program.verify() {
            panic!("a program that breaks a rule cannot run: {fault}");
        }
        let transposer = kernel.transposer().filter(|_| kernel.is_available())?;
        Some(Scanner { interpreter: Interpreter::new(program), program: program.clone(), kernel, transposer })
    }

    /// What it runs on.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The program.
    pub fn program(&self) -> &BitProgram {
        &self.program
    }

    /// A fresh pass, to be fed the text piece by piece.
    pub fn scan(&self) -> Scan<'_> {
        Scan {
            scanner: self,
            basis: Basis::new(self.program.terminator),
            arena: Arena::new(),
            carries: Carries::new(&self.program),
            ends: [0; CHUNK_WORDS],
            last: None,
        }
    }

    /// How many lines match.
    pub fn count_lines(&self, text: &[u8]) -> u64 {
        let mut count = 0;
        let _ = self.scan().finish(text, |_, ends| {
            count += ends.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            ControlFlow::Continue(())
        });
        count
    }

    /// Whether any line matches; reads no further than the chunk with the first one.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let found = self.scan().finish(text, |_, ends| match ends.iter().any(|&word| word != 0) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// Calls `visit` with the bytes of each matching line, its terminator included where it has one, in order, until it breaks.
    pub fn for_each_matching_line(
        &self,
        text: &[u8],
        mut visit: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let terminator = self.program.terminator;
        self.for_each_line_end(text, |end| {
            let start = text[..end].iter().rposition(|&byte| byte == terminator).map_or(0, |at| at + 1);
            visit(start..text.len().min(end + 1))
        })
    }

    /// Calls `visit` with the position of the terminator of each matching line (`text.len()` for a last line that has none).
    pub fn for_each_line_end(
        &self,
        text: &[u8],
        mut visit: impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.scan().finish(text, |offset, ends| {
            for (at, &word) in ends.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    visit(offset + 64 * at + left.trailing_zeros() as usize)?;
                    left &= left - 1;
                }
            }
            ControlFlow::Continue(())
        })
    }
}

/// One pass over one text. What it keeps between pieces is bounded, whatever the length of lines.
pub struct Scan<'s> {
    scanner: &'s Scanner,
    basis: Box<Basis>,
    arena: Arena,
    carries: Carries,
    ends: [u64; CHUNK_WORDS],
    /// The last byte that was fed.
    last: Option<u8>,
}

impl Scan<'_> {
    /// Feeds a piece that is not the last. `visit` gets an offset into the piece and the line-end bits of the bytes from there on: bit `i % 64` of
    /// word `i / 64` is set where byte `offset + i` ends a matching line.
    ///
    /// # Panics
    /// When the length is not a multiple of [`CHUNK_BYTES`].
    pub fn feed(
        &mut self,
        piece: &[u8],
        mut visit: impl FnMut(usize, &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(piece.len().is_multiple_of(CHUNK_BYTES), "a piece is a multiple of {CHUNK_BYTES} bytes");
        self.last = piece.last().copied().or(self.last);
        for (number, chunk) in piece.chunks_exact(CHUNK_BYTES).enumerate() {
            visit(number * CHUNK_BYTES, self.chunk(chunk))?;
        }
        ControlFlow::Continue(())
    }

    /// Feeds the last piece, of any length, and ends the pass. A last line without terminator ends at the piece's length.
    pub fn finish(
        mut self,
        piece: &[u8],
        mut visit: impl FnMut(usize, &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let whole = piece.len() / CHUNK_BYTES * CHUNK_BYTES;
        self.feed(&piece[..whole], &mut visit)?;
        let rest = &piece[whole..];
        let terminator = self.scanner.program.terminator;
        // Where the piece fills its last chunk, the missing terminator stands alone in one more.
        let last = piece.last().copied().or(self.last);
        let open = last.is_some_and(|last| last != terminator);
        if rest.is_empty() && !open {
            return ControlFlow::Continue(());
        }
        let mut padded = [!terminator; CHUNK_BYTES + BLOCK_BYTES];
        padded[..rest.len()].copy_from_slice(rest);
        if open {
            padded[rest.len()] = terminator;
        }
        let length = (rest.len() + usize::from(open)).next_multiple_of(BLOCK_BYTES);
        for (number, chunk) in padded[..length].chunks(CHUNK_BYTES).enumerate() {
            visit(whole + number * CHUNK_BYTES, self.chunk(chunk))?;
        }
        ControlFlow::Continue(())
    }

    /// The line-end bits of the next chunk.
    fn chunk(&mut self, text: &[u8]) -> &[u64] {
        let words = text.len() / 64;
        self.scanner.transposer.run(text, &mut self.basis);
        let interpreter = &self.scanner.interpreter;
        let step = interpreter.chunk_words();
        for first in (0..words).step_by(step) {
            let range = first..words.min(first + step);
            let ends = &mut self.ends[range.clone()];
            let isa = self.scanner.kernel.isa();
            interpreter.run(isa, &self.basis, range, &mut self.arena, &mut self.carries, ends);
        }
        self.basis.forget(words);
        &self.ends[..words]
    }
}
