//! Kernels: how a program runs over a text, and the choice among them.
//!
//! A [`Scanner`] is a program on a kernel of [`KERNELS`]; the choice is made once, when it is
//! built. A [`Scan`] holds what one pass over a text needs: streams, and the carries that one chunk
//! hands to the next. Each chunk is transposed, the program computes its output stream, and the
//! bits of that stream are the ends of matching lines.
//!
//! One kernel is one file (its transposer, the instructions that it needs, what it interprets or
//! translates with) and one entry in the table of this file; names, detection, tests and benches go
//! through the table. `word_by_word` is the proof: a kernel of the tests that has its file and its
//! entry and nothing more. Every kernel gives the same bits; `tests/agree.rs` holds them against
//! [`crate::reference`].

#[macro_use]
mod translate;

pub(crate) mod ascii;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cuda;
mod interpret;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit_avx2;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit_avx512;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit_sse2;
mod liveness;
mod member;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod popcount;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod word_by_word;

use crate::program::pass::for_ascii;
use crate::program::BitProgram;
use crate::transpose::{Basis, Transposer, BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS};
use interpret::{Arena, Carries, Interpreter};
#[cfg(all(target_arch = "x86_64", unix))]
use jit::{Direction, Skips};
use member::Member;
pub(crate) use popcount::count_ones;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Makes the family from its table: [`Kernel`], [`KERNELS`], and what leads to a kernel's parts.
/// `where` says on which targets the kernel's file is compiled; elsewhere it is never available.
macro_rules! define_kernels {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($present:meta)])?
        $kernel:ident = $module:ident, $name:literal where $target:meta;
    )*) => {
        /// A way to run programs.
        ///
        /// ```
        /// use lightfoot_pattern::compile::{compile, CompileOptions};
        /// use lightfoot_pattern::kernel::{Scanner, KERNELS};
        ///
        /// let hir = regex_syntax::parse("b.*b").unwrap();
        /// let program = compile(&hir, &CompileOptions::default())?;
        /// for &kernel in KERNELS {
        ///     // Nothing where this machine lacks the kernel's instructions.
        ///     let Some(scanner) = Scanner::with_kernel(&program, kernel) else { continue };
        ///     assert_eq!(scanner.count_lines(b"abcb\nxyz\n"), 1, "{}", kernel.name());
        /// }
        /// # Ok::<(), lightfoot_pattern::compile::CompileError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kernel {
            $( $(#[doc = $doc])* $(#[cfg($present)])? $kernel, )*
        }

        /// Every kernel, fastest first; not all of them run on one machine.
        pub const KERNELS: &[Kernel] = &[$( $(#[cfg($present)])? Kernel::$kernel, )*];

        impl Kernel {
            /// The name that `--explain` prints and that selects the kernel.
            pub fn name(self) -> &'static str {
                match self {
                    $( $(#[cfg($present)])? Kernel::$kernel => $name, )*
                }
            }

            /// What the kernel is made of, where this target can have it.
            fn member(self) -> Option<&'static Member> {
                match self {
                    $( #[cfg($target)] Kernel::$kernel => Some(&$module::MEMBER), )*
                    #[allow(unreachable_patterns, reason = "which are foreign depends on the target")]
                    _ => None,
                }
            }
        }
    };
}

define_kernels! {
    /// Translated to machine code, with AVX-512.
    JitAvx512 = jit_avx512, "jit-avx512" where all(target_arch = "x86_64", unix);
    /// Translated to machine code, with AVX2.
    JitAvx2 = jit_avx2, "jit-avx2" where all(target_arch = "x86_64", unix);
    /// Translated to machine code, with SSE2.
    JitSse2 = jit_sse2, "jit-sse2" where all(target_arch = "x86_64", unix);
    /// Interpreted, with AVX-512.
    Avx512 = avx512, "avx512" where target_arch = "x86_64";
    /// Interpreted, with AVX2.
    Avx2 = avx2, "avx2" where target_arch = "x86_64";
    /// Interpreted, with SSE2 for the transposition.
    Sse2 = sse2, "sse2" where target_arch = "x86_64";
    /// Interpreted, with NEON for the transposition.
    Neon = neon, "neon" where target_arch = "aarch64";
    /// Interpreted, plain Rust.
    Portable = portable, "portable" where all();
    /// Interpreted, plain Rust: the family's dummy member.
    #[cfg(test)]
    WordByWord = word_by_word, "word-by-word" where test;
}

impl Kernel {
    /// The kernel called `name`.
    pub fn from_name(name: &str) -> Option<Kernel> {
        KERNELS.iter().copied().find(|kernel| kernel.name() == name)
    }

    /// What the kernel is made of, where this machine can run it.
    fn available(self) -> Option<(&'static Member, Transposer)> {
        let member = self.member().filter(|member| (member.is_available)())?;
        Some((member, Transposer::named(member.transposer)?))
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        self.available().is_some()
    }

    /// The fastest that this machine can run.
    pub fn detect() -> Kernel {
        KERNELS.iter().copied().find(|kernel| kernel.is_available()).unwrap_or(Kernel::Portable)
    }
}

/// Texts are interpreted until this many bytes have been scanned, unless a kernel was asked for:
/// translating costs more than it saves before.
const TRANSLATE_FROM_BYTES: usize = 64 << 10;

/// Words of the largest vector.
const ALIGNED_WORDS: usize = 8;

/// A program on a kernel, to be run over any number of texts, by any number of threads at once.
#[derive(Debug)]
pub struct Scanner {
    program: BitProgram,
    kernel: Kernel,
    member: &'static Member,
    transposer: Transposer,
    /// The interpreter, prepared when first needed.
    interpreter: OnceLock<Interpreter>,
    /// For programs that look back: the simpler program that suffices where the text is ASCII.
    for_ascii: Option<Interpreter>,
    translate_from_bytes: usize,
    /// Bytes of the texts so far, counted until they suffice for a translation.
    seen_bytes: AtomicUsize,
    #[cfg(all(target_arch = "x86_64", unix))]
    translation: OnceLock<Option<jit::Translation>>,
    /// The one that jumps over nothing, for texts where jumps are worth nothing.
    #[cfg(all(target_arch = "x86_64", unix))]
    plain_translation: OnceLock<Option<jit::Translation>>,
    /// The translation for texts that are read backwards; prepared when first needed.
    #[cfg(all(target_arch = "x86_64", unix))]
    backwards: OnceLock<Option<jit::Translation>>,
}

impl Scanner {
    /// A scanner on the best kernel of this machine; short texts are interpreted.
    ///
    /// # Panics
    /// When the program breaks a rule of [`BitProgram::verify`].
    pub fn new(program: &BitProgram) -> Scanner {
        let scanner =
            Scanner::with_kernel(program, Kernel::detect()).expect("the portable kernel runs everywhere");
        Scanner { translate_from_bytes: TRANSLATE_FROM_BYTES, ..scanner }
    }

    /// A scanner on a given kernel, or `None` where this machine cannot run it.
    ///
    /// # Panics
    /// When the program breaks a rule of [`BitProgram::verify`].
    pub fn with_kernel(program: &BitProgram, kernel: Kernel) -> Option<Scanner> {
        if let Err(fault) = program.verify() {
            panic!("a program that breaks a rule cannot run: {fault}");
        }
        let (member, transposer) = kernel.available()?;
        Some(Scanner {
            interpreter: OnceLock::new(),
            for_ascii: program.looks_back().then(|| Interpreter::new(&for_ascii(program))),
            program: program.clone(),
            kernel,
            member,
            transposer,
            translate_from_bytes: 0,
            seen_bytes: AtomicUsize::new(0),
            #[cfg(all(target_arch = "x86_64", unix))]
            translation: OnceLock::new(),
            #[cfg(all(target_arch = "x86_64", unix))]
            plain_translation: OnceLock::new(),
            #[cfg(all(target_arch = "x86_64", unix))]
            backwards: OnceLock::new(),
        })
    }

    /// The kernel that it runs on.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The program.
    pub fn program(&self) -> &BitProgram {
        &self.program
    }

    /// A fresh pass, to be fed the text piece by piece.
    pub fn scan(&self) -> Scan<'_> {
        self.scan_for(usize::MAX)
    }

    /// A fresh pass over a text of about this length.
    pub fn scan_for(&self, bytes: usize) -> Scan<'_> {
        // Where rows end stands in the output's place first, and is read as an aligned vector.
        let ends = vec![0u64; (1 + self.program.kept.len()) * CHUNK_WORDS + ALIGNED_WORDS];
        let first = ends.as_ptr().align_offset(8 * ALIGNED_WORDS).min(ALIGNED_WORDS);
        Scan { scanner: self, engine: self.engine(bytes), ends, first, last: None }
    }

    /// Whether a text of `bytes` bytes, together with the texts before it, repays a translation.
    #[cfg(all(target_arch = "x86_64", unix))]
    fn is_worth_translating(&self, bytes: usize) -> bool {
        let seen = self.seen_bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if seen < self.translate_from_bytes {
            // Threads that overwrite each other's sums only translate later.
            self.seen_bytes.store(seen, Ordering::Relaxed);
            return false;
        }
        self.seen_bytes.store(self.translate_from_bytes, Ordering::Relaxed);
        true
    }

    fn engine(&self, bytes: usize) -> ScanEngine<'_> {
        #[cfg(all(target_arch = "x86_64", unix))]
        if let Some(target) = self.member.translates_to.filter(|_| self.is_worth_translating(bytes)) {
            // Where the system forbids executable memory, the interpreter does it.
            let translate =
                |skips| move || jit::Translation::new(&self.program, target, Direction::Forwards, skips);
            let mut translation = self.translation.get_or_init(translate(Skips::Chosen));
            if translation.as_ref().is_some_and(jit::Translation::is_vain) {
                translation = self.plain_translation.get_or_init(translate(Skips::None));
            }
            if let Some(translation) = translation {
                return ScanEngine::Translated(translation, translation.frame());
            }
        }
        let _ = bytes;
        ScanEngine::Interpreted(
            Basis::new(self.program.terminator),
            Arena::new(),
            Carries::new(&self.program),
        )
    }

    /// The number of lines that match.
    pub fn count_lines(&self, text: &[u8]) -> u64 {
        let mut count = 0;
        let _ = self.scan_for(text.len()).finish(text, |_, ends| {
            count += popcount::count_ones(ends);
            ControlFlow::Continue(())
        });
        count
    }

    /// The output for a text that is read backwards, as for its reversed copy with a terminator at
    /// its end; none where the kernel only reads forwards.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub(crate) fn mark_backwards(&self, text: &[u8], marks: &mut Vec<u64>) -> Option<()> {
        if self.member.translates_to != Some(jit::Target::Avx512) || !self.is_worth_translating(text.len()) {
            return None;
        }
        let translate =
            || jit::Translation::new(&self.program, jit::Target::Avx512, Direction::Backwards, Skips::None);
        let translation = self.backwards.get_or_init(translate).as_ref()?;
        let mut frame = translation.frame();
        let (head, blocks) = text.split_at(text.len() % BLOCK_BYTES);
        let is_open = text.first().is_some_and(|&first| first != self.program.terminator);
        let length = text.len() + usize::from(is_open);
        marks.resize(length.next_multiple_of(BLOCK_BYTES) / 64, 0);
        let (of_blocks, of_head) = marks.split_at_mut(blocks.len() / 64);
        translation.run(blocks, &mut frame, of_blocks);
        if !of_head.is_empty() {
            let mut padded = [!self.program.terminator; BLOCK_BYTES];
            let start = BLOCK_BYTES - head.len();
            padded[start..].copy_from_slice(head);
            if is_open {
                padded[start - 1] = self.program.terminator;
            }
            translation.run(&padded, &mut frame, of_head);
        }
        Some(())
    }

    /// On this machine kernels only read forwards.
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    pub(crate) fn mark_backwards(&self, _: &[u8], _: &mut Vec<u64>) -> Option<()> {
        None
    }

    /// Whether any line matches; reads no further than the chunk with the first one.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let found =
            self.scan_for(text.len()).finish(text, |_, ends| match ends.iter().any(|&word| word != 0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        found.is_break()
    }

    /// Calls `visit` with the bytes of each matching line, its terminator included where it has
    /// one, in order, until it breaks.
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

    /// Calls `visit` with the position of the terminator of each matching line (`text.len()` for a
    /// last line that has none).
    pub fn for_each_line_end(
        &self,
        text: &[u8],
        mut visit: impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.scan_for(text.len()).finish(text, |offset, ends| {
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

/// What runs the program, with its streams and carries.
enum ScanEngine<'s> {
    Interpreted(Box<Basis>, Arena, Carries),
    #[cfg(all(target_arch = "x86_64", unix))]
    Translated(&'s jit::Translation, jit::Frame),
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    #[allow(dead_code, reason = "the lifetime is used on other machines")]
    Never(std::marker::PhantomData<&'s ()>),
}

/// One pass over one text. What it keeps between pieces is bounded, whatever the length of lines.
pub struct Scan<'s> {
    scanner: &'s Scanner,
    engine: ScanEngine<'s>,
    /// The output of a chunk, and behind it the streams that are kept.
    ends: Vec<u64>,
    /// The output's first word, which is aligned.
    first: usize,
    /// The last byte of the pieces so far.
    last: Option<u8>,
}

impl Scan<'_> {
    /// Feeds a piece that is not the last. `visit` gets an offset into the piece and the line-end
    /// bits of the bytes from there on: bit `i % 64` of word `i / 64` is set where byte `offset +
    /// i` ends a matching line.
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

    /// Feeds the last piece, of any length, and ends the pass. A last line without terminator ends
    /// at the piece's length.
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

    /// Feeds a chunk of rows that lie one behind the other, or a part of one that is whole blocks.
    /// Bit `i % 64` of word `i / 64` of `row_ends` is set where byte `i` is the last one of its
    /// row. The answer has the output's bits, which are those of rows that match where the program
    /// was compiled for [`crate::compile::Haystack::MarkedRow`].
    ///
    /// # Panics
    /// When the chunk is longer than [`CHUNK_BYTES`], its length is no multiple of [`BLOCK_BYTES`],
    /// or `row_ends` has not a word for 64 bytes.
    pub fn feed_rows(&mut self, chunk: &[u8], row_ends: &[u64]) -> &[u64] {
        assert!(chunk.len() <= CHUNK_BYTES && chunk.len().is_multiple_of(BLOCK_BYTES));
        assert_eq!(row_ends.len(), chunk.len() / 64, "a word of row ends for 64 bytes");
        self.ends[self.first..self.first + row_ends.len()].copy_from_slice(row_ends);
        self.chunk(chunk)
    }

    /// Feeds a whole text and ends the pass. `visit` gets, chunk by chunk, an offset into the text
    /// and the words of each stream that the program keeps, as [`Scan::feed`] has them.
    pub(crate) fn finish_streams(
        mut self,
        text: &[u8],
        mut visit: impl FnMut(usize, &[&[u64]]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let terminator = self.scanner.program.terminator;
        let is_open = text.last().is_some_and(|&last| last != terminator);
        let (whole, rest) = text.split_at(text.len() / CHUNK_BYTES * CHUNK_BYTES);
        let mut padded = [!terminator; CHUNK_BYTES + BLOCK_BYTES];
        padded[..rest.len()].copy_from_slice(rest);
        if is_open {
            padded[rest.len()] = terminator;
        }
        let length = (rest.len() + usize::from(is_open)).next_multiple_of(BLOCK_BYTES);
        let chunks = whole.chunks(CHUNK_BYTES).chain(padded[..length].chunks(CHUNK_BYTES));
        for (number, chunk) in chunks.enumerate() {
            let words = self.chunk(chunk).len();
            let chunks = self.ends[self.first..].chunks_exact(CHUNK_WORDS);
            let streams: Vec<&[u64]> = chunks.skip(1).map(|stream| &stream[..words]).collect();
            visit(number * CHUNK_BYTES, &streams)?;
        }
        ControlFlow::Continue(())
    }

    /// The line-end bits of the next chunk.
    fn chunk(&mut self, text: &[u8]) -> &[u64] {
        let words = text.len() / 64;
        let ends = match self.scanner.program.kept.len() {
            0 => &mut self.ends[self.first..self.first + words],
            _ => &mut self.ends[self.first..],
        };
        match &mut self.engine {
            ScanEngine::Interpreted(basis, arena, carries) => {
                self.scanner.transposer.run(text, basis);
                self.scanner.interpret(basis, arena, carries, words, ends);
                basis.forget(words);
            }
            #[cfg(all(target_arch = "x86_64", unix))]
            ScanEngine::Translated(translation, frame) => translation.run(text, frame, ends),
            #[cfg(not(all(target_arch = "x86_64", unix)))]
            ScanEngine::Never(_) => {}
        }
        &self.ends[self.first..self.first + words]
    }
}

impl Scanner {
    /// Interprets a chunk, part by part where the program has loops.
    fn interpret(
        &self,
        basis: &Basis,
        arena: &mut Arena,
        carries: &mut Carries,
        words: usize,
        ends: &mut [u64],
    ) {
        // Short parts where Unicode costs much, so that more of them are ASCII.
        let short = if self.for_ascii.is_some() { 32 } else { CHUNK_WORDS };
        let step = interpret::chunk_words(&self.program).min(short);
        for first in (0..words).step_by(step) {
            let range = first..words.min(first + step);
            // The streams behind the output are as far behind each part of it.
            let part = match self.program.kept.len() {
                0 => &mut ends[range.clone()],
                _ => &mut ends[first..],
            };
            let before = if first == 0 { basis.history(7) } else { basis.stream(7)[first - 1] };
            let is_ascii = before == 0 && basis.stream(7)[range.clone()].iter().all(|&word| word == 0);
            let interpreter = match &self.for_ascii {
                Some(for_ascii) if is_ascii => for_ascii,
                _ => self.interpreter.get_or_init(|| Interpreter::new(&self.program)),
            };
            interpreter.run(self.member.interpret, basis, range, arena, carries, part);
        }
    }
}

#[cfg(test)]
mod tests;
