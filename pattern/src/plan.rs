//! Which engine a pattern gets.
//!
//! **Problem.** Every search asks which lines of a text match. No method is the fastest for all
//! patterns: a rare string is found at the speed of memory, bit streams have the same cost for
//! every text, an automaton needs no preparation.
//!
//! **Idea.** [`ENGINES`] lists the methods with two functions each: `build` says whether the method
//! can take the pattern, `suits` whether it is likely to be faster than the methods behind it in
//! the list. The first engine for which both are true is chosen, so the order of the list is the
//! order of preference.
//!
//! | pattern | engine | because |
//! |---|---|---|
//! | one string | `literal` | its rarest bytes are looked for; where it is dense, bit streams |
//! | many strings | `words` | windows of all of them are hashed and looked up at once |
//! | no match without some string | `required` | it is looked for and its lines confirmed |
//! | any with a small program | `streams` | a cost per byte that no text changes |
//! | anything else | `automaton` | a lazy automaton needs no more than a look at each byte |
//! | asked for by name | `cuda` | a graphics card; what it fails at, the processor does |
//!
//! **What the text decides.** The plan is made before any text is known, so five decisions are
//! made for each text:
//!
//! ```text
//! shorter than STREAM_BYTES, and not among the first ────▶ automaton, line after line
//! lines of ASCII, where the pattern has other characters ▶ the program of its ASCII twin
//! the string of `literal`, `required` is dense from here ▶ streams for the rest of the text
//! no line of a stretch has a string that matches have ───▶ the stretch is skipped
//! enough lines to confirm ──────────────────────────────▶ a program, compiled when first needed
//! ```
//!
//! **Invariants.**
//!
//! 1. All engines give the same lines, in order; the agreement test holds them to it.
//! 2. A place where one engine hands over to another is the start of a line, so that neither has to
//!    know what the other saw.
//! 3. Candidates (`exact` is false) are confirmed one by one; nothing is ever approximated.

mod by_automaton;
mod card;
pub(crate) mod expression;
mod skip;
mod streams;

use crate::kernel::cuda::{GpuProgram, HostText};
use crate::kernel::popcount::count_ones;
use crate::kernel::Scan;
use crate::line::{self, Push, Wanted};
use crate::literal::required::Required;
use crate::literal::Literal;
use crate::program::BitProgram;
use crate::regex::automaton::Automaton;
use crate::regex::options::{Options, Terminator, Unit};
use crate::words::Words;
use by_automaton::{automaton, matches_content, records};
pub(crate) use card::for_card;
pub(crate) use expression::has_long_characters;
use expression::{cost_of_streams, has_rare_string, letters};
use regex_syntax::hir::{Hir, HirKind};
use std::fmt::Write;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use streams::{CompiledStreams, Copies, Searched, Streams, Sure};

/// Shorter texts go through the automaton: setting up streams costs more.
const STREAM_BYTES: usize = 4 << 10;

/// Shorter texts go through the automaton where the twin for ASCII would do, too.
const SHORT_STREAM_BYTES: usize = 128;

/// So many short texts are searched by streams, as the automaton takes longer to build than they
/// take in all.
const FIRST_TEXTS: u32 = 16;

/// The most operations of a program. Most of a large one are for characters beyond ASCII and are
/// skipped where there are none.
pub const MOST_OPERATIONS: usize = 20_000;

/// Expressions with more letters have programs that are slower than the automaton on any text.
pub(crate) const MOST_LETTERS: usize = 1500;

/// Words with fewer letters in all have programs that are faster than the engine for words.
const FEW_LETTERS: usize = 40;

/// Groups of fewer lines are confirmed by the automaton.
const FEW_LINES: usize = 8;

/// A way to find matching lines.
#[derive(Debug)]
pub struct EngineKind {
    /// The name that `--explain` prints and that selects the engine.
    pub name: &'static str,
    /// What the engine does, in one sentence.
    pub about: &'static str,
    /// The engine for a pattern, or `None` if it cannot take the pattern.
    build: fn(&Hir, &Options) -> Option<Engine>,
    /// Whether it is likely to be faster than the engines behind it.
    suits: fn(&Hir) -> bool,
}

/// All engines, the preferred ones first.
///
/// ```
/// use lightfoot_pattern::{plan::ENGINES, RegexBuilder};
/// for engine in ENGINES {
///     // An engine that cannot take the pattern leaves it to the others.
///     let regex = RegexBuilder::new().engine(engine.name).build("o+")?;
///     assert_eq!(regex.count_lines(b"foo\nbar\n"), 1, "{}", regex.engine());
/// }
/// # Ok::<(), lightfoot_pattern::regex::Error>(())
/// ```
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
    /// The first engine of the list that takes the pattern; `wanted` first of all, and then for
    /// every text.
    pub(crate) fn new(hir: &Hir, options: &Options, wanted: Option<&str>) -> Plan {
        // The engine that was requested by name comes first; if it cannot take the pattern, the
        // others follow in order of preference.
        let preferred = ENGINES.iter().filter(|kind| Some(kind.name) == wanted);
        let usable = preferred.chain(ENGINES.iter().filter(|kind| (kind.suits)(hir)));
        let usable = usable.filter(|_| options.unit == Unit::Line);
        let chosen = usable.filter_map(|kind| Some((kind, (kind.build)(hir, options)?))).next();
        let terminator = options.terminator.byte();
        // An engine that was requested by name runs on every text, also on short ones, for tests.
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
        // First what every engine has, then what is special to some.
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

    /// A pass of the program for any text, if it is exact and not much slower than the others.
    pub(crate) fn scan_of_any_text(&self) -> Option<Scan<'_>> {
        let compiled = self.streams()?.quick_for_any_text()?;
        compiled.exact.then(|| compiled.scanner.scan())
    }

    /// Whether texts without some string are passed over.
    pub(crate) fn looks_for_string(&self) -> bool {
        match &self.engine {
            Engine::Literal(..) | Engine::Required(..) => true,
            Engine::Streams(streams) => streams.skips(),
            Engine::Words(_) | Engine::Records | Engine::Automaton | Engine::Cuda(..) => false,
        }
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
                // Behind `at` the string is dense: streams count the rest.
                let (count, at) = literal.count(text, self.terminator);
                count + if at < text.len() { self.count_streams(spans, &text[at..]) } else { 0 }
            }
            Engine::Required(_, streams) if streams.outruns_required(text) => self.count_streams(spans, text),
            Engine::Required(required, _) => {
                let mut count = 0;
                let at = self.lines_by_required(required, spans, text, Wanted::Ends, &mut |_| {
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
            // If the card fails, the processor computes the answer.
            Engine::Cuda(program, _) => program
                .count_lines_from_host(HostText::Pageable(text))
                .unwrap_or_else(|_| self.count_streams(spans, text)),
            Engine::Words(words) => words.count(spans, text, self.terminator),
            Engine::Records | Engine::Automaton => self.count_pushed(spans, text),
        }
    }

    fn count_streams(&self, spans: &Automaton, text: &[u8]) -> u64 {
        let Some(streams) = self.streams_for(spans, text) else { return self.count_pushed(spans, text) };
        let (mut count, mut copies) = (0, Copies::default());
        let _ = streams.search(text, |searched| {
            match searched {
                Searched::Marks(_, words, Sure::All) => count += count_ones(words),
                Searched::Marks(offset, words, sure) => {
                    count += copies.take(text, offset, words, sure, self.terminator);
                    if copies.are_many() {
                        count += self.count_copies(spans, streams, &mut copies);
                    }
                }
                Searched::Lines(place) => {
                    let _ = automaton(spans, &text[place], self.terminator, &mut |_| {
                        count += 1;
                        ControlFlow::Continue(())
                    });
                }
            }
            ControlFlow::Continue(())
        });
        count + self.count_copies(spans, streams, &mut copies)
    }

    /// The number of matching lines among copies, which are then forgotten: by the program for any
    /// text where it repays itself, else by the automaton.
    fn count_copies(&self, spans: &Automaton, streams: &Streams, copies: &mut Copies) -> u64 {
        let lines = std::mem::take(copies);
        if let Some(compiled) = streams.confirming(lines.count) {
            return compiled.scanner.count_lines(&lines.text);
        }
        let each = line::each(&lines.text, self.terminator);
        each.filter(|line| {
            let content = line::content(&lines.text[line.clone()], self.terminator);
            matches_content(spans, &lines.text[line.start..line.start + content])
        })
        .count() as u64
    }

    fn count_pushed(&self, spans: &Automaton, text: &[u8]) -> u64 {
        let mut count = 0;
        let _ = self.lines(spans, text, Wanted::Ends, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Pushes what is wanted of the lines that match.
    pub(crate) fn lines(
        &self,
        spans: &Automaton,
        text: &[u8],
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        match &self.engine {
            Engine::Records => records(spans, text, self.terminator, push),
            Engine::Automaton => automaton(spans, text, self.terminator, push),
            Engine::Words(words) => words.lines(spans, text, self.terminator, wanted, push),
            Engine::Streams(_) => self.lines_by_streams(spans, text, wanted, push),
            Engine::Cuda(program, _) => match program.line_ends_from_host(HostText::Pageable(text)) {
                Ok(ends) => self.lines_that_end(text, &ends, wanted, push),
                Err(_) => self.lines_by_streams(spans, text, wanted, push),
            },
            Engine::Literal(literal, _) => {
                let at = literal.lines(text, self.terminator, wanted, push)?;
                self.rest_by_streams(spans, text, at, wanted, push)
            }
            Engine::Required(_, streams) if streams.outruns_required(text) => {
                self.lines_by_streams(spans, text, wanted, push)
            }
            Engine::Required(required, _) => {
                let at = self.lines_by_required(required, spans, text, wanted, push)?;
                self.rest_by_streams(spans, text, at, wanted, push)
            }
        }
    }

    /// The lines that end at these places.
    fn lines_that_end(
        &self,
        text: &[u8],
        ends: &[u64],
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        // A line's start is looked for from the end of the last line that matched, no further.
        let mut past = 0;
        ends.iter().try_for_each(|&end| {
            let end = end as usize;
            let start = wanted.start(text, past, end, self.terminator);
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
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<(), usize> {
        // Lines with the string come in groups. Large groups are copied side by side and confirmed
        // by a program in one go, small ones by the automaton, line by line.
        let mut copies = Vec::new();
        let mut confirm = |lines: &[Range<usize>], push: &mut Push<'_>| {
            copies.clear();
            lines.iter().for_each(|line| copies.extend_from_slice(&text[line.clone()]));
            let Some(compiled) = self.confirming(required, lines.len(), &copies) else {
                return self.confirmed_singly(spans, text, lines, push);
            };
            confirmed(compiled, lines, &copies, push)
        };
        required.lines(text, self.terminator, wanted, &mut confirm, push)
    }

    /// Pushes those of some lines that the automaton finds to match.
    fn confirmed_singly(
        &self,
        spans: &Automaton,
        text: &[u8],
        lines: &[Range<usize>],
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        lines.iter().try_for_each(|line| {
            let content = line.start + line::content(&text[line.clone()], self.terminator);
            match matches_content(spans, &text[line.start..content]) {
                true => push(line.clone()),
                false => ControlFlow::Continue(()),
            }
        })
    }

    /// The program that confirms lines, of which these are copies, where that is faster than the
    /// automaton.
    fn confirming(&self, required: &Required, lines: usize, copies: &[u8]) -> Option<&CompiledStreams> {
        // A program is compiled after enough lines were confirmed to repay it, and used once it is
        // there.
        let compiled = match required.repays_program(lines) {
            true => self.streams()?.compiled_for(copies),
            false => self.streams()?.compiled_before(copies),
        };
        compiled.filter(|compiled| compiled.exact && lines >= FEW_LINES)
    }

    /// The lines from `at` on, the start of a line or the end of the text.
    fn rest_by_streams(
        &self,
        spans: &Automaton,
        text: &[u8],
        at: usize,
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        if at == text.len() {
            return ControlFlow::Continue(());
        }
        self.lines_by_streams(spans, &text[at..], wanted, &mut |line| push(at + line.start..at + line.end))
    }

    /// Pushes the matching lines without any preparation, for texts of a few lines.
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

    /// The streams, where the text is large enough for them, or the automaton is not built yet.
    fn streams_for(&self, spans: &Automaton, text: &[u8]) -> Option<&Streams> {
        let streams = self.streams()?;
        let suits = text.len() >= self.small_bytes
            || streams.suits_short(text)
            || (!spans.is_built() && streams.suits_first(text));
        suits.then_some(streams)
    }

    fn lines_by_streams(
        &self,
        spans: &Automaton,
        text: &[u8],
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        let Some(streams) = self.streams_for(spans, text) else {
            return automaton(spans, text, self.terminator, push);
        };
        let mut past = 0;
        streams.search(text, |searched| self.lines_of(spans, text, searched, &mut past, wanted, push))
    }

    /// Pushes what is wanted of the lines of a part of a text; `past` is the end of the last line
    /// before.
    fn lines_of(
        &self,
        spans: &Automaton,
        text: &[u8],
        searched: Searched<'_>,
        past: &mut usize,
        wanted: Wanted,
        push: &mut Push<'_>,
    ) -> ControlFlow<()> {
        let (offset, words, sure) = match searched {
            Searched::Marks(offset, words, sure) => (offset, words, sure),
            Searched::Lines(place) => {
                let base = place.start;
                return automaton(spans, &text[place], self.terminator, &mut |line| {
                    push(base + line.start..base + line.end)
                });
            }
        };
        for (at, &word) in words.iter().enumerate() {
            let (mut left, unsure) = (word, sure.unsure(at));
            while left != 0 {
                // The program marks the ends of lines; their starts are looked for where they are
                // needed.
                let bit = left & left.wrapping_neg();
                let end = offset + 64 * at + left.trailing_zeros() as usize;
                left ^= bit;
                let is_sure = bit & unsure == 0;
                let wanted = if is_sure { wanted } else { Wanted::Lines };
                let start = wanted.start(text, *past, end, self.terminator);
                *past = text.len().min(end + 1);
                if is_sure || matches_content(spans, &text[start..end]) {
                    push(start..*past)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Pushes those of some lines that a program marks in copies of them, side by side.
fn confirmed(
    compiled: &CompiledStreams,
    lines: &[Range<usize>],
    copies: &[u8],
    push: &mut Push<'_>,
) -> ControlFlow<()> {
    // The program runs over the copies; the end of a marked copy leads back to its line, because
    // copies lie in the order of their lines.
    let (mut lines, mut past) = (lines.iter(), 0);
    compiled.scanner.for_each_line_end(copies, |end| {
        // Only the last line may lack its terminator.
        let end = copies.len().min(end + 1);
        let line = lines.by_ref().find(|line| {
            past += line.len();
            past >= end
        });
        line.map_or(ControlFlow::Continue(()), |line| push(line.clone()))
    })
}
