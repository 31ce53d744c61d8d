//! The bit-stream programs of a pattern: one for any text, and small ones of bytes.
//!
//! **Problem.** The program for any text has hundreds of operations where classes are Unicode's.
//! Nearly all lines would be decided by a program of bytes, but which lines those are is known only
//! while a text is read.
//!
//! **Idea.** A program of bytes ([`crate::regex::ascii`]) runs over the whole text without a stop.
//! A line is searched by itself, so what it marks in a line of ASCII is right, whatever the lines
//! around it hold. A chunk of ASCII needs no second look. In other chunks the lines with other
//! characters are found, and those that the program marked, or all of them where the program says
//! nothing about such lines, are decided by the automaton. Where they are many, the lines from
//! there on are left to the loose program and to the one for any text. No program is compiled
//! before it is needed, and most texts never need the large one.

use super::skip::Skipper;
use super::{expression, MOST_LETTERS, MOST_OPERATIONS, STREAM_BYTES};
use crate::compile::{self, CompileError, CompileOptions};
use crate::kernel::ascii::{ascii_prefix, is_ascii};
use crate::kernel::popcount::count_ones;
use crate::kernel::Scanner;
use crate::line;
use crate::regex::ascii::{end_of_others, is_exact_on_ascii, loose, twin, WINDOW_BYTES};
use crate::regex::options::Options;
use crate::transpose::{BLOCK_BYTES, CHUNK_WORDS};
use regex_syntax::hir::Hir;
use std::fmt::Write;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The programs of a pattern, compiled when they are first needed.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    any: Program,
    /// The program that is exact on lines of ASCII, if it is another one: the loose one where that
    /// is exact on them, or else the twin's.
    ascii: Option<Program>,
    /// The program that finds candidates among other lines.
    loose: Option<Program>,
    /// Whether those two are the same.
    is_one: bool,
    /// What skips stretches without something that every match contains.
    skipper: Option<Arc<Skipper>>,
    /// Parts whose candidates are still taken for many.
    dense_parts: Arc<AtomicU32>,
    /// Candidates that were confirmed so far, as far as they are counted.
    confirmed: Arc<AtomicU32>,
    /// Short texts that were searched in place of the automaton.
    first_texts: Arc<AtomicU32>,
}

/// Compiling the program for any text costs as much as confirming this many lines without it.
const PATIENCE_LINES: u32 = 512;

/// Words of a block; the last chunk of a text may be longer by one block.
const BLOCK_WORDS: usize = BLOCK_BYTES / 64;

/// Candidates are many if there are more than one in this many bytes, as confirming one costs as
/// much as the program for any text takes for them.
const SPARSE_BYTES: usize = 1 << 10;

/// Candidates of a text that are confirmed whatever its length.
const SLACK_CANDIDATES: usize = 8;

/// Lines of a chunk that are looked at one by one, before the chunk is searched for characters that
/// are not ASCII.
const FEW_MARKED: usize = 4;

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
    /// Whether the program marks exactly the matching lines, those of ASCII if it is one of bytes;
    /// else it marks candidates.
    pub(super) exact: bool,
}

/// What is known about a part of a text.
pub(super) enum Searched<'s> {
    /// A program marked the ends of lines from this offset on.
    Marks(usize, &'s [u64], Sure<'s>),
    /// There is no program for the lines in this place.
    Lines(Range<usize>),
}

/// Which of the marked lines match.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sure<'s> {
    All,
    None,
    /// All but these.
    But(&'s [u64]),
}

/// Copies of lines, side by side, of which only the number of those that match is asked.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub(super) text: Vec<u8>,
    pub(super) count: usize,
}

/// Copies of more bytes are searched at once.
const COPIED_BYTES: usize = 64 << 10;

impl Copies {
    /// Takes the marked lines that are not sure; the number of those that are.
    pub(super) fn take(
        &mut self,
        text: &[u8],
        offset: usize,
        words: &[u64],
        sure: Sure<'_>,
        terminator: u8,
    ) -> u64 {
        let mut count = 0;
        for (at, &word) in words.iter().enumerate() {
            let mut unsure = word & sure.unsure(at);
            count += u64::from((word & !unsure).count_ones());
            while unsure != 0 {
                let end = offset + 64 * at + unsure.trailing_zeros() as usize;
                unsure &= unsure - 1;
                self.text.extend_from_slice(&text[line::start_of(text, end, terminator)..end]);
                self.text.push(terminator);
                self.count += 1;
            }
        }
        count
    }

    /// Whether there are enough for a search.
    pub(super) fn are_many(&self) -> bool {
        self.text.len() > COPIED_BYTES
    }
}

impl Sure<'_> {
    /// The bits of a word that are not sure.
    #[inline]
    pub(super) fn unsure(self, word: usize) -> u64 {
        match self {
            Sure::All => 0,
            Sure::None => u64::MAX,
            Sure::But(unsure) => unsure[word],
        }
    }
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
        let twin = twin(hir);
        let loose = twin.as_ref().map(|_| Program { is_loose: true, ..program(loose(hir)) });
        (expression::letters(hir) <= MOST_LETTERS).then(|| Streams {
            any: program(hir.clone()),
            ascii: match is_exact_on_ascii(hir) {
                true => loose.clone(),
                false => twin.map(program),
            },
            loose,
            is_one: is_exact_on_ascii(hir),
            skipper: Skipper::of(hir).map(Arc::new),
            dense_parts: Arc::default(),
            confirmed: Arc::default(),
            first_texts: Arc::default(),
        })
    }

    /// The program for any text.
    pub(super) fn compiled(&self) -> Option<&CompiledStreams> {
        self.any.compiled()
    }

    /// The program that confirms this many lines side by side, where that is faster than the
    /// automaton.
    pub(super) fn confirming(&self, lines: usize) -> Option<&CompiledStreams> {
        // Threads that overwrite each other's sums only compile later.
        let confirmed = self.confirmed.load(Relaxed).saturating_add(lines as u32);
        self.confirmed.store(confirmed, Relaxed);
        let compiled = match confirmed >= PATIENCE_LINES {
            true => self.any.compiled(),
            false => self.any.compiled.get()?.as_ref(),
        };
        compiled.filter(|compiled| compiled.exact && lines >= super::FEW_LINES)
    }

    /// The program for any text, unless that of the twin is faster by a multiple: it counts bytes
    /// where this one counts characters, and has an addition where this one has a loop.
    pub(super) fn quick_for_any_text(&self) -> Option<&CompiledStreams> {
        if self.ascii.is_some() && !self.is_one {
            return None;
        }
        let is_quick =
            |compiled: &&CompiledStreams| self.ascii.is_none() || !compiled.scanner.program().has_loops();
        self.compiled().filter(is_quick)
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

    /// Whether a short text is among the first ones, which are searched before the automaton is
    /// built. The program has to be a small one.
    pub(super) fn suits_first(&self, text: &[u8]) -> bool {
        self.ascii.is_none()
            && text.len() >= super::SHORT_STREAM_BYTES
            && self.first_texts.fetch_add(1, Relaxed) < super::FIRST_TEXTS
    }

    /// Whether the twin's program is likely to be faster on this text than a search for a string
    /// that every match contains.
    pub(super) fn outruns_required(&self, text: &[u8]) -> bool {
        let sample = &text[..text.len().min(STREAM_BYTES)];
        self.ascii.as_ref().is_some_and(|twin| !expression::has_rare_string(&twin.hir)) && is_ascii(sample)
    }

    /// Whether stretches of a text are skipped.
    pub(super) fn skips(&self) -> bool {
        self.skipper.is_some()
    }

    /// Hands the marks of the text to `visit`, part by part; parts in which no line can match may
    /// be left out.
    pub(super) fn search(
        &self,
        text: &[u8],
        mut visit: impl FnMut(Searched<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(skipper) = &self.skipper else { return self.lines_in(text, 0..text.len(), &mut visit) };
        skipper.stretches(text, self.any.terminator, |place| self.lines_in(text, place, &mut visit))
    }

    /// Searches the lines in a place.
    fn lines_in(
        &self,
        text: &[u8],
        place: Range<usize>,
        visit: &mut impl FnMut(Searched<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(ascii) = self.ascii.as_ref().and_then(Program::compiled) else {
            return whole(&self.any, text, place, visit);
        };
        let text = &text[..place.end];
        let mut at = place.start;
        while at < text.len() {
            // Where candidates of the one small program are known to be many, it is not tried.
            if !(self.is_one && self.dense_parts.load(Relaxed) > 0) {
                at = self.lines_by_bytes(ascii, text, at, visit)?;
            }
            if at < text.len() {
                let far = line::end_of(text, text.len().min(at + WINDOW_BYTES) - 1, self.any.terminator);
                let end = far.max(end_of_others(text, at, self.any.terminator));
                self.other_lines(text, at..end, visit)?;
                at = end;
            }
        }
        ControlFlow::Continue(())
    }

    /// Searches the lines from `start` on with the program of bytes. Answers where lines with other
    /// characters, which it does not decide, are many: the start of a line, or the end of the text.
    fn lines_by_bytes(
        &self,
        ascii: &CompiledStreams,
        text: &[u8],
        start: usize,
        visit: &mut impl FnMut(Searched<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<(), usize> {
        let terminator = self.any.terminator;
        let mut others = OtherLines { terminator, ..OtherLines::default() };
        let (mut unsure_lines, mut left) = (0, None);
        let found = ascii.scanner.scan_for(text.len() - start).finish(&text[start..], |offset, words| {
            let offset = start + offset;
            // The loose program marks candidates among lines with other characters, the twin's
            // nothing that counts.
            let is_any = match self.is_one {
                true => others.find_marked(&text[start..], offset - start, words),
                false => others.find(text, offset, words.len()),
            };
            if !is_any {
                return visit(Searched::Marks(offset, words, Sure::All));
            }
            let unsure = &others.ends[..words.len()];
            unsure_lines += count_ones(unsure) as usize;
            if unsure_lines > SLACK_CANDIDATES + (offset - start) / SPARSE_BYTES {
                left = Some(start + line::start_of(&text[start..], offset - start, terminator));
                return ControlFlow::Break(());
            }
            let mut marks = [0; CHUNK_WORDS + BLOCK_WORDS];
            let marks = &mut marks[..words.len()];
            for ((mark, unsure), word) in marks.iter_mut().zip(unsure).zip(words) {
                *mark = word | unsure;
            }
            visit(Searched::Marks(offset, marks, Sure::But(unsure)))
        });
        match left {
            Some(left) => {
                if self.is_one {
                    self.dense_parts.store(DENSE_PARTS, Relaxed);
                }
                ControlFlow::Continue(left)
            }
            None => {
                found?;
                ControlFlow::Continue(text.len())
            }
        }
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
            visit(Searched::Marks(place.start + offset, words, Sure::None))
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
        if let Some(skipper) = &self.skipper {
            let _ = writeln!(out, "skipped: stretches of a text without {}", skipper.needed());
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
            return Some(CompiledStreams { scanner: Scanner::new(&program), exact: true });
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
    let sure = if compiled.exact { Sure::All } else { Sure::None };
    compiled
        .scanner
        .scan_for(part.len())
        .finish(part, |offset, words| visit(Searched::Marks(place.start + offset, words, sure)))
}

/// Finds the lines that hold other characters than ASCII, chunk by chunk.
#[derive(Debug)]
struct OtherLines {
    terminator: u8,
    /// Whether the line that reaches into the next chunk holds some.
    is_open: bool,
    /// The ends of such lines in the current chunk.
    ends: [u64; CHUNK_WORDS + BLOCK_WORDS],
}

impl Default for OtherLines {
    fn default() -> OtherLines {
        OtherLines { terminator: b'\n', is_open: false, ends: [0; CHUNK_WORDS + BLOCK_WORDS] }
    }
}

impl OtherLines {
    /// Looks through the lines whose ends are marked in the chunk at `offset`; whether any of them
    /// holds other characters. Cost: nothing where nothing is marked; in a chunk of ASCII a look at
    /// one line.
    fn find_marked(&mut self, text: &[u8], offset: usize, words: &[u64]) -> bool {
        let mut is_any = false;
        let (mut past, mut looked_at, mut is_ascii_chunk) = (0, 0, false);
        let chunk = &text[offset.min(text.len())..text.len().min(offset + 64 * words.len())];
        self.ends[..words.len()].fill(0);
        for (at, &word) in words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                let end = offset + 64 * at + left.trailing_zeros() as usize;
                left ^= bit;
                // Of the lines that lie within the chunk, most need no look of their own.
                if past > offset && looked_at == 0 {
                    is_ascii_chunk = is_ascii(&chunk[past - offset..]);
                }
                looked_at += usize::from(past > offset);
                if is_ascii_chunk {
                    return is_any;
                }
                if looked_at > FEW_MARKED {
                    return self.find_among(chunk, past - offset, words) || is_any;
                }
                let start = past + line::start_of(&text[past..], end - past, self.terminator);
                past = text.len().min(end + 1);
                if !is_ascii(&text[start..end]) {
                    self.ends[at] |= bit;
                    is_any = true;
                }
            }
        }
        is_any
    }

    /// Goes from character to character beyond ASCII, from the start of a line in a chunk on, to
    /// those of the lines that are marked; whether there are any.
    fn find_among(&mut self, chunk: &[u8], mut at: usize, words: &[u64]) -> bool {
        let mut is_any = false;
        loop {
            at += ascii_prefix(&chunk[at..]);
            if at == chunk.len() {
                return is_any;
            }
            // A line that goes on is looked at as a whole where its end is marked. The last one
            // may have no terminator, and is marked behind the chunk's text.
            at = memchr::memchr(self.terminator, &chunk[at..]).map_or(chunk.len(), |end| at + end);
            if let Some(word) = words.get(at / 64) {
                let bit = word & 1 << (at % 64);
                self.ends[at / 64] |= bit;
                is_any |= bit != 0;
            }
            at = chunk.len().min(at + 1);
        }
    }

    /// Looks through the chunk of `words` words at `offset`; whether any such line is in it.
    fn find(&mut self, text: &[u8], offset: usize, words: usize) -> bool {
        let chunk = &text[offset.min(text.len())..text.len().min(offset + 64 * words)];
        let first = ascii_prefix(chunk);
        if first == chunk.len() && !self.is_open {
            return false;
        }
        self.ends[..words].fill(0);
        let mut at = if self.is_open { 0 } else { first };
        loop {
            // Somewhere before `at`, or there, is a character of this line that is not ASCII.
            let end = match memchr::memchr(self.terminator, &chunk[at..]) {
                Some(end) => at + end,
                // The last line may have no terminator; then its end is marked behind the text.
                None if offset + chunk.len() == text.len() => chunk.len(),
                None => {
                    self.is_open = true;
                    return true;
                }
            };
            self.is_open = false;
            if let Some(word) = self.ends[..words].get_mut(end / 64) {
                *word |= 1 << (end % 64);
            } else {
                // The end stands in one more chunk, alone.
                self.is_open = true;
                return true;
            }
            let next = (end + 1).min(chunk.len());
            let rest = ascii_prefix(&chunk[next..]);
            if next + rest == chunk.len() {
                return true;
            }
            at = next + rest;
        }
    }
}
