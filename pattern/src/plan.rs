//! Which engine a pattern gets.
//!
//! An engine answers one question about a text: which of its lines match. [`ENGINES`] lists them with the question whether they take a
//! pattern; the first that does is chosen, so the order of the list is the order of preference. All engines give the same answers,
//! which the agreement test holds them to.

use crate::line;
use crate::regex::{Options, Terminator, Unit};
use regex_automata::{meta, Input};
use regex_syntax::hir::Hir;
use std::ops::{ControlFlow, Range};

/// Receives lines.
pub(crate) type Push<'p> = dyn FnMut(Range<usize>) -> ControlFlow<()> + 'p;

/// A way to find matching lines.
#[derive(Debug)]
pub struct EngineKind {
    /// As `--explain` says it.
    pub name: &'static str,
    /// What it is good for, in one sentence.
    pub about: &'static str,
    /// The engine for a pattern, where it takes it.
    build: fn(&Hir, &Options) -> Option<Engine>,
}

/// All engines, the preferred ones first.
pub const ENGINES: &[EngineKind] = &[
    EngineKind {
        name: "records",
        about: "the automaton on one record after the other",
        build: |_, options| (options.terminator == Terminator::Nul).then_some(Engine::Records),
    },
    EngineKind {
        name: "automaton",
        about: "regex-automata on the whole text, then on from the next line",
        build: |_, _| Some(Engine::Automaton),
    },
];

/// A chosen engine.
#[derive(Clone, Debug)]
enum Engine {
    Records,
    Automaton,
}

/// The engine of a pattern, and why.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    name: &'static str,
    about: &'static str,
    engine: Engine,
    terminator: u8,
}

impl Plan {
    /// The first engine of the list that takes the pattern; `wanted` first of all.
    pub(crate) fn new(hir: &Hir, options: &Options, wanted: Option<&str>) -> Plan {
        let preferred = ENGINES.iter().filter(|kind| Some(kind.name) == wanted);
        let usable = preferred.chain(ENGINES).filter(|_| options.unit == Unit::Line);
        let chosen = usable.filter_map(|kind| Some((kind, (kind.build)(hir, options)?))).next();
        let terminator = options.terminator.byte();
        match chosen {
            Some((kind, engine)) => Plan { name: kind.name, about: kind.about, engine, terminator },
            None => Plan {
                name: "text",
                about: "regex-automata on the whole text, as matches may span lines",
                engine: Engine::Automaton,
                terminator,
            },
        }
    }

    pub(crate) fn engine(&self) -> &'static str {
        self.name
    }

    pub(crate) fn explain(&self) -> String {
        format!("engine: {} ({})\n", self.name, self.about)
    }

    pub(crate) fn count(&self, spans: &meta::Regex, text: &[u8]) -> u64 {
        let mut count = 0;
        let _ = self.lines(spans, text, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    pub(crate) fn lines(&self, spans: &meta::Regex, text: &[u8], push: &mut Push<'_>) -> ControlFlow<()> {
        match &self.engine {
            Engine::Records => records(spans, text, self.terminator, push),
            Engine::Automaton => automaton(spans, text, self.terminator, push),
        }
    }
}

fn records(spans: &meta::Regex, text: &[u8], terminator: u8, push: &mut Push<'_>) -> ControlFlow<()> {
    for record in line::each(text, terminator) {
        let content = line::content(&text[record.clone()], terminator);
        if spans.is_match(&text[record.start..record.start + content]) {
            push(record)?;
        }
    }
    ControlFlow::Continue(())
}

fn automaton(spans: &meta::Regex, text: &[u8], terminator: u8, push: &mut Push<'_>) -> ControlFlow<()> {
    let mut at = 0;
    while at < text.len() {
        let input = Input::new(text).span(at..text.len()).earliest(true);
        let Some(half) = spans.search_half(&input) else { break };
        // An empty match behind the last terminator lies in no line.
        if half.offset() == text.len() && text.last() == Some(&terminator) {
            break;
        }
        let end = line::end_of(text, half.offset(), terminator);
        let start = line::start_of(text, half.offset(), terminator).max(at);
        at = end;
        push(start..end)?;
    }
    ControlFlow::Continue(())
}
