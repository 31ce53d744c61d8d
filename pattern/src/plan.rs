//! Which engine a pattern gets.
//!
//! An engine answers one question about a text: which of its lines match. [`ENGINES`] lists them with the question whether they take a
//! pattern; the first that does is chosen, so the order of the list is the order of preference. All engines give the same answers,
//! which the agreement test holds them to.
//!
//! | pattern | engine | because |
//! |---|---|---|
//! | one string | `literal` | its rarest bytes are looked for; where it is dense, bit streams |
//! | many strings | `words` | windows of all of them are hashed and looked up at once |
//! | what cannot match without some string | `required` | that string is looked for and its lines confirmed; where it is dense, bit streams |
//! | what has a bit-stream program of bounded size | `streams` | a cost per byte that no text changes |
//! | anything else | `automaton` | a lazy automaton needs no more than a look at each byte |
//! | where it is asked for by name | `cuda` | a graphics card runs the program; what it fails at, the processor does |
//!
//! Programs are compiled when the first text comes that is large enough to repay it; smaller ones go through the automaton.

use crate::compile::{self, CompileError, CompileOptions};
use crate::kernel::cuda::{Cuda, CudaError, GpuProgram, HostText, Reach};
use crate::kernel::Scanner;
use crate::line;
use crate::literal::required::{self, Cost, Required};
use crate::literal::Literal;
use crate::program::BitProgram;
use crate::regex::{Automaton, Options, Terminator, Unit};
use crate::words::Words;
use regex_automata::Input;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::fmt::Write;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

/// Receives lines.
pub(crate) type Push<'p> = dyn FnMut(Range<usize>) -> ControlFlow<()> + 'p;

/// Texts below this go through the automaton: setting up streams costs more.
const STREAM_BYTES: usize = 4 << 10;

/// Programs may have no more operations. Most of a large one is for characters beyond ASCII and skipped where there are none.
pub const MOST_OPERATIONS: usize = 20_000;

/// Expressions with more letters have programs that are slower than the automaton on any text.
const MOST_LETTERS: usize = 1500;

/// Words with fewer letters in all have programs that are faster than the engine for words.
const FEW_LETTERS: usize = 40;

/// Streams without Unicode classes are nearly as fast as memory: only strings with pairs of bytes that are this rare are looked for first.
const RARE_PAIR: u32 = 11;

/// Where streams need no Unicode classes, a confirmed line costs what they need for so many bytes, and their program what so many lines do.
const COST: Cost = Cost { sparse_bytes: 1 << 10, patience_lines: 256 };

/// The same where they need Unicode classes.
const UNICODE_COST: Cost = Cost { sparse_bytes: 384, patience_lines: 4 << 10 };

/// Groups of fewer lines are confirmed by the automaton.
const FEW_LINES: usize = 8;

/// A way to find matching lines.
#[derive(Debug)]
pub struct EngineKind {
    /// As `--explain` says it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// The engine for a pattern, where it takes it.
    build: fn(&Hir, &Options) -> Option<Engine>,
    /// Whether it is likely to be faster than those behind it.
    suits: fn(&Hir) -> bool,
}

/// All engines, the preferred ones first.
pub const ENGINES: &[EngineKind] = &[
    EngineKind {
        name: "records",
        about:
            "the automaton on one record after the other, as ^ also matches behind line feeds within a record",
        build: |_, options| (options.terminator == Terminator::Nul).then_some(Engine::Records),
        suits: |_| true,
    },
    EngineKind {
        name: "literal",
        about: "substring search by rare bytes; bit streams where the string is dense",
        build: |hir, options| match hir.kind() {
            HirKind::Literal(literal) => {
                Some(Engine::Literal(Arc::new(Literal::new(&literal.0)), Streams::new(hir, options)?))
            }
            _ => None,
        },
        suits: |_| true,
    },
    EngineKind {
        name: "words",
        about: "hashed windows of many strings at once, then a table",
        build: |hir, options| {
            let by_line = options.unit == Unit::Line && options.terminator != Terminator::Nul;
            by_line
                .then(|| Words::new(hir, letters(hir)))
                .flatten()
                .map(|words| Engine::Words(Arc::new(words)))
        },
        suits: |hir| letters(hir) > FEW_LETTERS,
    },
    EngineKind {
        name: "required",
        about: "a string that every match contains, its lines confirmed in groups; bit streams where the string is dense",
        build: |hir, options| {
            let by_line = options.unit == Unit::Line && options.terminator != Terminator::Nul;
            let required = by_line.then(|| Required::of(hir, cost_of_streams(hir))).flatten()?;
            Some(Engine::Required(Arc::new(required), Streams::new(hir, options)?))
        },
        suits: has_rare_string,
    },
    EngineKind {
        name: "streams",
        about: "a bit-stream program over all bytes at once",
        build: |hir, options| Some(Engine::Streams(Streams::new(hir, options)?)),
        suits: |_| true,
    },
    EngineKind {
        name: "automaton",
        about: "regex-automata on the whole text, then on from the next line",
        build: |_, _| Some(Engine::Automaton),
        suits: |_| true,
    },
    EngineKind {
        name: "cuda",
        about: "a bit-stream program on a graphics card, to which texts are copied in pieces",
        build: |hir, options| {
            let program = for_card(hir, options).ok()?;
            Some(Engine::Cuda(Arc::new(program), Streams::new(hir, options)?))
        },
        suits: |_| false,
    },
];

/// A chosen engine.
#[derive(Clone, Debug)]
enum Engine {
    Records,
    Literal(Arc<Literal>, Streams),
    Words(Arc<Words>),
    Required(Arc<Required>, Streams),
    Streams(Streams),
    Automaton,
    Cuda(Arc<GpuProgram>, Streams),
}

/// The engine of a pattern, and why.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    name: &'static str,
    about: &'static str,
    engine: Engine,
    terminator: u8,
    /// Smaller texts go through the automaton.
    small_bytes: usize,
}

impl Plan {
    /// The first engine of the list that takes the pattern; `wanted` first of all, and then for every text.
    pub(crate) fn new(hir: &Hir, options: &Options, wanted: Option<&str>) -> Plan {
        let preferred = ENGINES.iter().filter(|kind| Some(kind.name) == wanted);
        let usable = preferred.chain(ENGINES.iter().filter(|kind| (kind.suits)(hir)));
        let usable = usable.filter(|_| options.unit == Unit::Line);
        let chosen = usable.filter_map(|kind| Some((kind, (kind.build)(hir, options)?))).next();
        let terminator = options.terminator.byte();
        let small_bytes = if wanted.is_some() { 0 } else { STREAM_BYTES };
        match chosen {
            Some((kind, engine)) => {
                Plan { name: kind.name, about: kind.about, engine, terminator, small_bytes }
            }
            None => Plan {
                name: "text",
                about: "regex-automata on the whole text, as matches may span lines",
                engine: Engine::Automaton,
                terminator,
                small_bytes,
            },
        }
    }

    pub(crate) fn engine(&self) -> &'static str {
        self.name
    }

    pub(crate) fn explain(&self) -> String {
        let mut out = format!("engine: {} ({})\n", self.name, self.about);
        if let Some(streams) = self.streams().filter(|_| self.name != "cuda") {
            out += &streams.explain();
        }
        if let Engine::Required(required, _) = &self.engine {
            let string = String::from_utf8_lossy(required.string());
            let _ = writeln!(
                out,
                "looked for: {string:?} by {}, unless a text has it more than once in {} bytes",
                required.kernel(),
                required.sparse_bytes()
            );
        }
        if let Engine::Literal(literal, _) = &self.engine {
            let _ = writeln!(out, "looked for by: {}", literal.kernel());
        }
        if let Engine::Cuda(program, _) = &self.engine {
            let _ = writeln!(out, "card: {}", program.cuda().card().name);
        }
        if let Engine::Words(words) = &self.engine {
            let _ = writeln!(out, "kernel: {}", words.kernel());
        }
        out
    }

    /// The program that the engine runs, where it runs one.
    pub(crate) fn program(&self) -> Option<&BitProgram> {
        Some(self.streams()?.compiled()?.scanner.program())
    }

    fn streams(&self) -> Option<&Streams> {
        match &self.engine {
            Engine::Literal(_, streams)
            | Engine::Required(_, streams)
            | Engine::Streams(streams)
            | Engine::Cuda(_, streams) => Some(streams),
            Engine::Records | Engine::Words(_) | Engine::Automaton => None,
        }
    }

    pub(crate) fn count(&self, spans: &Automaton, text: &[u8]) -> u64 {
        match &self.engine {
            Engine::Literal(literal, _) => {
                let (count, at) = literal.count(text, self.terminator);
                count + if at < text.len() { self.count_streams(spans, &text[at..]) } else { 0 }
            }
            Engine::Required(required, _) => {
                let mut count = 0;
                let at = self.lines_by_required(required, spans, text, &mut |_| {
                    count += 1;
                    ControlFlow::Continue(())
                });
                match at {
                    ControlFlow::Continue(at) if at < text.len() => {
                        count + self.count_streams(spans, &text[at..])
                    }
                    _ => count,
                }
            }
            Engine::Streams(_) => self.count_streams(spans, text),
            Engine::Cuda(program, _) => program
                .count_lines_from_host(HostText::Pageable(text))
                .unwrap_or_else(|_| self.count_streams(spans, text)),
            Engine::Words(words) => words.count(spans, text, self.terminator),
            Engine::Records | Engine::Automaton => self.count_pushed(spans, text),
        }
    }

    fn count_streams(&self, spans: &Automaton, text: &[u8]) -> u64 {
        match self.compiled(text) {
            Some(compiled) if compiled.exact => compiled.scanner.count_lines(text),
            _ => self.count_pushed(spans, text),
        }
    }

    fn count_pushed(&self, spans: &Automaton, text: &[u8]) -> u64 {
        let mut count = 0;
        let _ = self.lines(spans, text, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    pub(crate) fn lines(&self, spans: &Automaton, text: &[u8], push: &mut Push<'_>) -> ControlFlow<()> {
        match &self.engine {
            Engine::Records => records(spans, text, self.terminator, push),
            Engine::Automaton => automaton(spans, text, self.terminator, push),
            Engine::Words(words) => words.lines(spans, text, self.terminator, push),
            Engine::Streams(_) => self.lines_by_streams(spans, text, push),
            Engine::Cuda(program, _) => match program.line_ends_from_host(HostText::Pageable(text)) {
                Ok(ends) => self.lines_that_end(text, &ends, push),
                Err(_) => self.lines_by_streams(spans, text, push),
            },
            Engine::Literal(literal, _) => {
                let at = literal.lines(text, self.terminator, push)?;
                self.rest_by_streams(spans, text, at, push)
            }
            Engine::Required(required, _) => {
                let at = self.lines_by_required(required, spans, text, push)?;
                self.rest_by_streams(spans, text, at, push)
            }
        }
    }

    /// The lines that end at these places.
    fn lines_that_end(&self, text: &[u8], ends: &[u64], push: &mut Push<'_>) -> ControlFlow<()> {
        let mut past = 0;
        ends.iter().try_for_each(|&end| {
            let end = end as usize;
            let start = past + line::start_of(&text[past..], end - past, self.terminator);
            past = text.len().min(end + 1);
            push(start..past)
        })
    }

    /// The lines up to where the string is dense, and that place.
    fn lines_by_required(
        &self,
        required: &Required,
        spans: &Automaton,
        text: &[u8],
        push: &mut Push<'_>,
    ) -> ControlFlow<(), usize> {
        let mut copies = Vec::new();
        let mut confirm = |lines: &[Range<usize>], push: &mut Push<'_>| match self.confirming(required, lines)
        {
            Some(scanner) => confirmed(scanner, text, lines, &mut copies, push),
            None => lines.iter().try_for_each(|line| {
                let content = line.start + line::content(&text[line.clone()], self.terminator);
                // Not `is_match`: where the earliest end of a match is asked for, the fastest engine for Unicode's `\b` is left out.
                match spans.search_half(&Input::new(&text[line.start..content])) {
                    Some(_) => push(line.clone()),
                    None => ControlFlow::Continue(()),
                }
            }),
        };
        required.lines(text, self.terminator, &mut confirm, push)
    }

    /// The program that confirms these lines, where that is faster than the automaton.
    fn confirming(&self, required: &Required, lines: &[Range<usize>]) -> Option<&Scanner> {
        let compiled = match required.repays_program(lines.len()) {
            true => self.streams()?.compiled(),
            false => self.streams()?.compiled.get()?.as_ref(),
        };
        compiled
            .filter(|compiled| compiled.exact && lines.len() >= FEW_LINES)
            .map(|compiled| &compiled.scanner)
    }

    /// The lines from `at` on, the start of a line or the end of the text.
    fn rest_by_streams(
        &self,
        spans: &Automaton,
        text: &[u8],
        at: usize,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        if at == text.len() {
            return ControlFlow::Continue(());
        }
        self.lines_by_streams(spans, &text[at..], &mut |line| push(at + line.start..at + line.end))
    }

    /// The same lines without any preparation, for texts of a few lines.
    pub(crate) fn lines_nearby(
        &self,
        spans: &Automaton,
        text: &[u8],
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        match self.engine {
            Engine::Records => records(spans, text, self.terminator, push),
            _ => automaton(spans, text, self.terminator, push),
        }
    }

    /// The program, where the text is large enough for it and there is one.
    fn compiled(&self, text: &[u8]) -> Option<&Compiled> {
        if text.len() < self.small_bytes {
            return None;
        }
        self.streams()?.compiled()
    }

    fn lines_by_streams(&self, spans: &Automaton, text: &[u8], push: &mut Push<'_>) -> ControlFlow<()> {
        let Some(compiled) = self.compiled(text) else {
            return automaton(spans, text, self.terminator, push);
        };
        let mut past = 0;
        compiled.scanner.for_each_line_end(text, |end| {
            let start = past + line::start_of(&text[past..], end - past, self.terminator);
            past = text.len().min(end + 1);
            let content = &text[start..end];
            if compiled.exact || spans.is_match(content) {
                push(start..past)?;
            }
            ControlFlow::Continue(())
        })
    }
}

/// The program of a pattern on the machine's card.
///
/// # Errors
/// Lines of the pattern depend on more than themselves, it has no exact program, or there is no card.
pub(crate) fn for_card(hir: &Hir, options: &Options) -> Result<GpuProgram, CudaError> {
    let refused = |reason: &str| Err(CudaError::NoProgram { reason: reason.to_owned() });
    if options.unit == Unit::Text {
        return refused("a match may span lines");
    }
    if options.terminator == Terminator::Nul {
        return refused("with lines that end with NUL, ^ also matches behind line feeds");
    }
    let Some(streams) = Streams::new(hir, options) else {
        return refused("it has too many letters, or classes behind a part of a character");
    };
    match streams.compiled() {
        None => refused("it has more operations than a program may have"),
        Some(Compiled { exact: false, .. }) => refused("its lines would have to be confirmed one by one"),
        Some(compiled) => GpuProgram::new(&Cuda::shared()?, compiled.scanner.program(), Reach::Line),
    }
}

/// A bit-stream program that is compiled when it is needed first.
#[derive(Clone, Debug)]
struct Streams {
    hir: Arc<Hir>,
    terminator: u8,
    compiled: Arc<OnceLock<Option<Compiled>>>,
}

/// A program on a kernel.
#[derive(Debug)]
struct Compiled {
    scanner: Scanner,
    /// It marks the matching lines and no others; else they are candidates.
    exact: bool,
}

impl Streams {
    /// Streams for a pattern whose program is likely to be small enough.
    fn new(hir: &Hir, options: &Options) -> Option<Streams> {
        // A character class behind half a character: left to the automaton, which decides such cases byte by byte.
        if !hir.properties().is_utf8() && has_long_characters(hir) {
            return None;
        }
        // Alternations of hundreds of words have as many operations as letters: not even tried.
        let terminator = options.terminator.byte();
        let compiled = Arc::new(OnceLock::new());
        (letters(hir) <= MOST_LETTERS).then(|| Streams { hir: Arc::new(hir.clone()), terminator, compiled })
    }

    fn compiled(&self) -> Option<&Compiled> {
        self.compiled.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(&self) -> Option<Compiled> {
        let options =
            CompileOptions { terminator: self.terminator, operations: MOST_OPERATIONS, ..Default::default() };
        let (program, exact) = match compile::compile(&self.hir, &options) {
            Ok(program) => (program, true),
            Err(CompileError::WordAhead { .. }) => {
                (compile::compile(&without_word_boundaries(&self.hir), &options).ok()?, false)
            }
            Err(_) => return None,
        };
        Some(Compiled { scanner: Scanner::new(&program), exact })
    }

    fn explain(&self) -> String {
        let mut out = String::new();
        let _ = match self.compiled() {
            None => writeln!(
                out,
                "program: more than {MOST_OPERATIONS} operations, so the automaton runs instead"
            ),
            Some(Compiled { scanner, exact }) => writeln!(
                out,
                "kernel: {}\nlines: {}\ntexts below {STREAM_BYTES} bytes: automaton",
                scanner.kernel().name(),
                if *exact { "exact" } else { "candidates, confirmed by the automaton" }
            ),
        };
        out
    }
}

/// Pushes those of some lines that a program marks in copies of them, side by side.
fn confirmed(
    scanner: &Scanner,
    text: &[u8],
    lines: &[Range<usize>],
    copies: &mut Vec<u8>,
    push: &mut Push<'_>,
) -> ControlFlow<()> {
    copies.clear();
    lines.iter().for_each(|line| copies.extend_from_slice(&text[line.clone()]));
    let (mut lines, mut past) = (lines.iter(), 0);
    scanner.for_each_line_end(copies, |end| {
        // Only the last line may lack its terminator.
        let end = copies.len().min(end + 1);
        let line = lines.by_ref().find(|line| {
            past += line.len();
            past >= end
        });
        line.map_or(ControlFlow::Continue(()), |line| push(line.clone()))
    })
}

/// Whether a class holds characters of several bytes.
fn has_long_characters(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.maximum_len().is_some_and(|bytes| bytes > 1),
        HirKind::Repetition(repetition) => has_long_characters(&repetition.sub),
        HirKind::Capture(capture) => has_long_characters(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(has_long_characters),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => false,
    }
}

/// Whether a string that every match contains is likely to be found faster than streams run.
fn has_rare_string(hir: &Hir) -> bool {
    required::rarest(hir).is_some_and(|string| match has_long_characters(hir) {
        true => string.len() > 1,
        false => string.len() > 2 && required::rarest_pair(string) <= RARE_PAIR,
    })
}

/// What streams cost that a search for a string may spare.
fn cost_of_streams(hir: &Hir) -> Cost {
    if has_long_characters(hir) {
        UNICODE_COST
    } else {
        COST
    }
}

/// Letters of all literals and classes.
fn letters(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => letters(&repetition.sub),
        HirKind::Capture(capture) => letters(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().map(letters).sum(),
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// What matches wherever `hir` does, without assertions about words.
fn without_word_boundaries(hir: &Hir) -> Hir {
    let all = |subs: &[Hir]| subs.iter().map(without_word_boundaries).collect();
    match hir.kind() {
        HirKind::Look(look) if regex_syntax::hir::LookSet::singleton(*look).contains_word() => Hir::empty(),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_word_boundaries(&repetition.sub));
            Hir::repetition(regex_syntax::hir::Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => without_word_boundaries(&capture.sub),
        HirKind::Concat(subs) => Hir::concat(all(subs)),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)),
        _ => hir.clone(),
    }
}

fn records(spans: &Automaton, text: &[u8], terminator: u8, push: &mut Push<'_>) -> ControlFlow<()> {
    for record in line::each(text, terminator) {
        let content = line::content(&text[record.clone()], terminator);
        if spans.is_match(&text[record.start..record.start + content]) {
            push(record)?;
        }
    }
    ControlFlow::Continue(())
}

fn automaton(spans: &Automaton, text: &[u8], terminator: u8, push: &mut Push<'_>) -> ControlFlow<()> {
    let mut at = 0;
    while at < text.len() {
        let input = Input::new(text).span(at..text.len()).earliest(true);
        let Some(half) = spans.search_half(&input) else { break };
        // An empty match behind the last terminator lies in no line.
        if half.offset() == text.len() && text.last() == Some(&terminator) {
            break;
        }
        let end = line::end_of(text, half.offset(), terminator);
        let start = at + line::start_of(&text[at..], half.offset() - at, terminator);
        at = end;
        push(start..end)?;
    }
    ControlFlow::Continue(())
}
