//! The bit-stream programs of a pattern: one for any text, and one for lines of ASCII.
//!
//! **Problem.** Of the two programs the second is far cheaper, and most lines are for it, but which
//! lines those are is known only while a text is read.
//!
//! **Idea.** A pass goes through the text by windows that fit the first-level cache. As long as
//! they are ASCII, the twin's program ([`crate::regex::ascii`]) continues over them. Where a window
//! is not, the lines before it end the pass, and the program for any text takes over at the start
//! of a line. A line is searched by itself, so nothing is handed over. A text that has no other
//! characters never needs the large program, and no program is compiled before it is needed.
//!
//! For other lines there is a third, small program: the loose one marks candidates, which an
//! automaton confirms. It is left for the program for any text where candidates are many, and tried
//! again some parts later.

use super::{expression, MOST_LETTERS, MOST_OPERATIONS, STREAM_BYTES};
use crate::compile::{self, CompileError, CompileOptions};
use crate::kernel::ascii::is_ascii;
use crate::kernel::popcount::count_ones;
use crate::kernel::Scanner;
use crate::line;
use crate::regex::ascii::{ahead, end_of_others, loose, twin, Ahead, WINDOW_BYTES};
use crate::regex::options::Options;
use regex_syntax::hir::Hir;
use std::fmt::Write;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The programs of a pattern, compiled when they are first needed.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    any: Program,
    /// The program for lines of ASCII, if it is another one.
    ascii: Option<Program>,
    /// The program that finds candidates among other lines.
    loose: Option<Program>,
    /// Parts whose candidates are still taken for many.
    dense_parts: Arc<AtomicU32>,
}

/// Candidates are many if there are more than one in this many bytes, as confirming one costs as
/// much as the program for any text takes for them.
const SPARSE_BYTES: usize = 1 << 10;

/// Candidates of a text that are confirmed whatever its length.
const SLACK_CANDIDATES: usize = 8;

/// The number of parts after one with many candidates for which no candidates are looked for.
const DENSE_PARTS: u32 = 31;

/// A program that is compiled when it is needed first.
#[derive(Clone, Debug)]
struct Program {
    hir: Arc<Hir>,
    terminator: u8,
    /// Whether it marks candidates only.
    is_loose: bool,
    compiled: Arc<OnceLock<Option<CompiledStreams>>>,
}

/// A program on a kernel.
#[derive(Debug)]
pub(super) struct CompiledStreams {
    pub(super) scanner: Scanner,
    /// Whether the program marks exactly the matching lines; else it marks candidates.
    pub(super) exact: bool,
}

/// What a part of a text is searched with.
pub(super) enum Searched<'s> {
    /// By a program, whose marks have these offsets in the text.
    Marks(&'s CompiledStreams, usize, &'s [u64]),
    /// There is no program for the lines in this place.
    Lines(Range<usize>),
}

impl Streams {
    /// Streams for a pattern whose program is likely to be small enough.
    pub(super) fn new(hir: &Hir, options: &Options) -> Option<Streams> {
        // A character class behind half a character: left to the automaton, which decides such
        // cases byte by byte.
        if !hir.properties().is_utf8() && expression::has_long_characters(hir) {
            return None;
        }
        // Alternations of hundreds of words have as many operations as letters: not even tried.
        let terminator = options.terminator.byte();
        let program =
            |hir: Hir| Program { hir: Arc::new(hir), terminator, is_loose: false, compiled: Arc::default() };
        let loose = |hir: &Hir| Program { is_loose: true, ..program(loose(hir)) };
        (expression::letters(hir) <= MOST_LETTERS).then(|| Streams {
            any: program(hir.clone()),
            loose: twin(hir).map(|_| loose(hir)),
            ascii: twin(hir).map(program),
            dense_parts: Arc::default(),
        })
    }

    /// The program for any text.
    pub(super) fn compiled(&self) -> Option<&CompiledStreams> {
        self.any.compiled()
    }

    /// The program for any text, if it is compiled already.
    pub(super) fn compiled_before(&self, text: &[u8]) -> Option<&CompiledStreams> {
        self.program_for(text).compiled.get()?.as_ref()
    }

    /// The program for a short text.
    pub(super) fn compiled_for(&self, text: &[u8]) -> Option<&CompiledStreams> {
        self.program_for(text).compiled()
    }

    fn program_for(&self, text: &[u8]) -> &Program {
        self.ascii.as_ref().filter(|_| is_ascii(text)).unwrap_or(&self.any)
    }

    /// Whether a text that is short for streams is searched by them all the same, as the automaton
    /// takes longer to build than the program of the twin.
    pub(super) fn suits_short(&self, text: &[u8]) -> bool {
        self.ascii.is_some() && text.len() >= super::SHORT_STREAM_BYTES && text.is_ascii()
    }

    /// Whether the twin's program is likely to be faster on this text than a search for a string
    /// that every match contains.
    pub(super) fn outruns_required(&self, text: &[u8]) -> bool {
        let sample = &text[..text.len().min(STREAM_BYTES)];
        self.ascii.as_ref().is_some_and(|twin| !expression::has_rare_string(&twin.hir)) && is_ascii(sample)
    }

    /// Hands the marks of the whole text to `visit`, part by part.
    pub(super) fn search(
        &self,
        text: &[u8],
        mut visit: impl FnMut(Searched<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(ascii) = &self.ascii else { return whole(&self.any, text, 0..text.len(), &mut visit) };
        let mut at = 0;
        while at < text.len() {
            let end = ascii_lines(ascii, text, at, &mut visit)?;
            at = match end > at {
                true => end,
                false => {
                    let end = end_of_others(text, at, self.any.terminator);
                    self.other_lines(text, at..end, &mut visit)?;
                    end
                }
            };
        }
        ControlFlow::Continue(())
    }

    /// Searches lines that are not ASCII.
    fn other_lines(
        &self,
        text: &[u8],
        place: Range<usize>,
        visit: &mut impl FnMut(Searched<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Several threads may count one part twice or not at all: that changes speed only.
        let is_dense = self.dense_parts.load(Relaxed) > 0;
        if is_dense {
            let _ = self.dense_parts.fetch_update(Relaxed, Relaxed, |parts| parts.checked_sub(1));
        }
        let Some(loose) = self.loose.as_ref().filter(|_| !is_dense).and_then(Program::compiled) else {
            return whole(&self.any, text, place, visit);
        };
        let part = &text[place.clone()];
        let (mut candidates, mut seen) = (0, 0);
        // Where the program for any text goes on: the start of a line.
        let mut left = None;
        let found = loose.scanner.scan_for(part.len()).finish(part, |offset, words| {
            candidates += count_ones(words) as usize;
            seen = part.len().min(offset + 64 * words.len());
            if candidates > SLACK_CANDIDATES + seen / SPARSE_BYTES {
                left = Some(line::start_of(part, offset, self.any.terminator));
                return ControlFlow::Break(());
            }
            visit(Searched::Marks(loose, place.start + offset, words))
        });
        match left {
            None => found,
            Some(start) => {
                self.dense_parts.store(DENSE_PARTS, Relaxed);
                whole(&self.any, text, place.start + start..place.end, visit)
            }
        }
    }

    /// Lines of text about the programs.
    pub(super) fn explain(&self) -> String {
        let mut out = String::new();
        let _ = match self.compiled() {
            None => writeln!(
                out,
                "program: more than {MOST_OPERATIONS} operations, so the automaton runs instead"
            ),
            Some(CompiledStreams { scanner, exact }) => writeln!(
                out,
                "kernel: {}\nlines: {}\ntexts below {STREAM_BYTES} bytes: automaton",
                scanner.kernel().name(),
                if *exact { "exact" } else { "candidates, confirmed by the automaton" }
            ),
        };
        if let Some(compiled) = self.ascii.as_ref().and_then(Program::compiled) {
            let operations = compiled.scanner.program().instructions();
            let _ = writeln!(out, "lines of ASCII: a program of {operations} operations");
        }
        out
    }
}

impl Program {
    fn compiled(&self) -> Option<&CompiledStreams> {
        self.compiled.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(&self) -> Option<CompiledStreams> {
        let options =
            CompileOptions { terminator: self.terminator, operations: MOST_OPERATIONS, ..Default::default() };
        if self.is_loose {
            let program = compile::compile_near(&self.hir, &options).ok()?;
            return Some(CompiledStreams { scanner: Scanner::new(&program), exact: false });
        }
        // A Unicode word boundary that no program can decide is left out: the program then marks a
        // superset of the lines, and the automaton confirms them.
        let (program, exact) = match compile::compile(&self.hir, &options) {
            Ok(program) => (program, true),
            Err(CompileError::WordAhead { .. }) => {
                (compile::compile(&expression::without_word_boundaries(&self.hir), &options).ok()?, false)
            }
            Err(_) => return None,
        };
        Some(CompiledStreams { scanner: Scanner::new(&program), exact })
    }
}

/// Searches lines with a program.
fn whole(
    program: &Program,
    text: &[u8],
    place: Range<usize>,
    visit: &mut impl FnMut(Searched<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(compiled) = program.compiled() else { return visit(Searched::Lines(place)) };
    let part = &text[place.clone()];
    compiled
        .scanner
        .scan_for(part.len())
        .finish(part, |offset, words| visit(Searched::Marks(compiled, place.start + offset, words)))
}

/// Searches the lines of ASCII from `start` on, and answers where they end.
fn ascii_lines(
    program: &Program,
    text: &[u8],
    start: usize,
    visit: &mut impl FnMut(Searched<'_>) -> ControlFlow<()>,
) -> ControlFlow<(), usize> {
    // Without a program for them, lines of ASCII are searched as others are.
    let Some(compiled) = program.compiled() else { return ControlFlow::Continue(start) };
    let (mut at, mut scan) = (start, None);
    loop {
        let base = at;
        let mut marks = |offset: usize, words: &[u64]| visit(Searched::Marks(compiled, base + offset, words));
        let (end, is_last) = match ahead(&text[at..], program.terminator) {
            Ahead::Window => (at + WINDOW_BYTES, false),
            Ahead::Rest => (text.len(), true),
            Ahead::Lines(bytes) => (at + bytes, true),
            // The line that reaches up to here goes on with other characters. Its end has not been
            // seen, so nothing was said about it.
            Ahead::None => {
                let before = line::start_of(&text[start..], at - start, program.terminator);
                return ControlFlow::Continue(start + before);
            }
        };
        let mut own = scan.take().unwrap_or_else(|| compiled.scanner.scan_for(text.len() - start));
        if is_last {
            own.finish(&text[at..end], &mut marks)?;
            return ControlFlow::Continue(end);
        }
        own.feed(&text[at..end], &mut marks)?;
        (at, scan) = (end, Some(own));
    }
}
