//! Which patterns of a set match each line of a text, in one pass.
//!
//! **Problem.** Asking each pattern by itself costs as many passes as there are patterns; one
//! automaton for all has too many states, and finds only one pattern at a time.
//!
//! **Idea.** Two engines share the patterns among them, and a sample of the first text decides:
//!
//! ```text
//! patterns with a rare string ──▶ all strings at once ──▶ confirmed in their lines   (literals)
//! all others                  ──▶ one program, an output stream each                 (program)
//! those without a program     ──▶ the automaton, line by line
//! ```
//!
//! Each answers with bits by pattern and line. A text is cut into windows of whole lines that stay
//! in the second-level cache, so that every engine reads them from there.
//!
//! **Invariants.** The bits are those of each pattern by itself: an engine changes speed only.
//! **Leaves out** spans: callers search them in the lines that match.

mod confirm;
mod literals;
mod needle;
mod on_card;
mod program;
mod window;

use crate::bits::{BitKernel, Bitmap};
use crate::compile::{CompileOptions, Haystack};
use crate::regex::automaton::Automaton;
use confirm::Pattern;
use literals::Literals;
use program::SetProgram;
use regex_automata::Input;
use regex_syntax::hir::Hir;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};
use window::Window;
pub(crate) use window::WINDOW_BYTES;

/// The patterns are planned by a sample of at most this many bytes.
const SAMPLE_BYTES: usize = 128 << 10;

/// Receives lines and the patterns that match them, until it breaks.
pub(crate) type PushMatches<'p> = dyn FnMut(Range<usize>, &[usize]) -> ControlFlow<()> + 'p;

/// Bits by pattern and line.
#[derive(Debug, Default)]
pub(crate) struct SetBits {
    /// For each pattern a word for 64 lines, and one more.
    bits: Vec<Vec<u64>>,
    /// Lines of the windows before this one.
    lines: usize,
}

impl SetBits {
    pub(crate) fn new(patterns: usize) -> SetBits {
        SetBits { bits: vec![Vec::new(); patterns], lines: 0 }
    }

    /// Makes room for more lines.
    fn reserve(&mut self, lines: usize) {
        let words = (self.lines + lines) / 64 + 2;
        self.bits.iter_mut().for_each(|bits| bits.resize(words, 0));
    }

    /// The bit of a line of this window.
    fn get(&self, pattern: usize, line: usize) -> bool {
        let line = self.lines + line;
        self.bits[pattern][line / 64] >> (line % 64) & 1 == 1
    }

    fn set(&mut self, pattern: usize, line: usize) {
        let line = self.lines + line;
        self.bits[pattern][line / 64] |= 1 << (line % 64);
    }

    /// A bitmap for each pattern.
    pub(crate) fn into_bitmaps(self) -> Vec<Bitmap> {
        let lines = self.lines;
        self.bits.into_iter().map(|bits| Bitmap::from_words(bits, lines)).collect()
    }
}

/// A pattern of a set: what it is, and the automaton that defines it.
pub(crate) struct SetPattern {
    pub(crate) hir: Arc<Hir>,
    pub(crate) automaton: Automaton,
    /// Whether programs and tables may decide it.
    pub(crate) has_program: bool,
}

/// The engines of a set.
pub(crate) struct SetEngine {
    patterns: Vec<SetPattern>,
    options: CompileOptions,
    bits: &'static BitKernel,
    plan: OnceLock<SetPlan>,
}

#[derive(Debug)]
struct SetPlan {
    literals: Option<Literals>,
    programs: Vec<SetProgram>,
    alone: Vec<usize>,
}

impl SetEngine {
    pub(crate) fn new(patterns: Vec<SetPattern>, options: CompileOptions) -> SetEngine {
        SetEngine { patterns, options, bits: BitKernel::detect(), plan: OnceLock::new() }
    }

    /// Appends the lines of a text to the bits.
    pub(crate) fn scan(&self, text: &[u8], out: &mut SetBits) {
        let mut from = 0;
        while from < text.len() {
            let end = window::end_of(text, from, self.options.terminator);
            out.lines += self.window(&text[from..end], out);
            from = end;
        }
    }

    /// Pushes each line that a pattern matches, with the patterns that do, ascending.
    pub(crate) fn matching_lines(&self, text: &[u8], push: &mut PushMatches<'_>) -> ControlFlow<()> {
        let (mut from, mut found) = (0, Vec::new());
        while from < text.len() {
            let end = window::end_of(text, from, self.options.terminator);
            let mut bits = SetBits::new(self.patterns.len());
            bits.lines = self.window(&text[from..end], &mut bits);
            // By line, and then by pattern.
            let bitmaps = bits.into_bitmaps();
            let pairs = |(pattern, lines): (usize, &Bitmap)| {
                lines.ones().map(|line| (line, pattern)).collect::<Vec<_>>()
            };
            let mut pairs: Vec<(usize, usize)> = bitmaps.iter().enumerate().flat_map(pairs).collect();
            pairs.sort_unstable();
            let mut pairs = pairs.into_iter().peekable();
            for (number, line) in crate::line::each(&text[from..end], self.options.terminator).enumerate() {
                found.clear();
                while let Some((_, pattern)) = pairs.next_if(|&(line, _)| line == number) {
                    found.push(pattern);
                }
                if !found.is_empty() {
                    push(from + line.start..from + line.end, &found)?;
                }
                if pairs.peek().is_none() {
                    break;
                }
            }
            from = end;
        }
        ControlFlow::Continue(())
    }

    /// Searches a window of whole lines, whose number it returns.
    fn window(&self, text: &[u8], out: &mut SetBits) -> usize {
        let window = Window::new(text, self.options.terminator, self.bits);
        out.reserve(window.lines);
        let plan = self.plan.get_or_init(|| self.make_plan(text));
        if let Some(literals) = &plan.literals {
            literals.run(&window, out, &|number| self.pattern(number));
        }
        let mut confirm = |number: usize, line: &[u8]| self.matches(number, line);
        for program in &plan.programs {
            program.run(&window, self.bits, out, &mut confirm);
        }
        if !plan.alone.is_empty() {
            for (number, line) in crate::line::each(text, self.options.terminator).enumerate() {
                let content = crate::line::content(&text[line.clone()], self.options.terminator);
                for &pattern in &plan.alone {
                    if self.matches(pattern, &text[line.start..line.start + content]) {
                        out.set(pattern, number);
                    }
                }
            }
        }
        window.lines
    }

    fn make_plan(&self, text: &[u8]) -> SetPlan {
        let sample = &text[..text.len().min(SAMPLE_BYTES)];
        let hirs: Vec<&Hir> = self.patterns.iter().map(|pattern| &*pattern.hir).collect();
        let (literals, others) = Literals::new(&hirs, sample, self.options.terminator);
        let (with, mut alone): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|&number| self.patterns[number].has_program);
        let (programs, without) = SetProgram::all(&with, &hirs, &self.options);
        alone.extend(without);
        SetPlan { literals, programs, alone }
    }

    /// How the patterns are shared out among engines, in words; it depends on the first text.
    pub(crate) fn explain(&self) -> String {
        match self.plan.get() {
            None => "not planned before the first text".to_owned(),
            Some(plan) => format!(
                "{} patterns by strings, {} by {} programs, {} by automata",
                plan.literals.as_ref().map_or(0, Literals::patterns),
                plan.programs.iter().map(SetProgram::patterns).sum::<usize>(),
                plan.programs.len(),
                plan.alone.len(),
            ),
        }
    }

    fn pattern(&self, number: usize) -> Pattern<'_> {
        let SetPattern { hir, automaton, .. } = &self.patterns[number];
        let line_end = match self.options.haystack {
            Haystack::Line => self.options.terminator,
            Haystack::Row { line_end } | Haystack::MarkedRow { line_end } => line_end,
        };
        Pattern { hir, automaton, line_end }
    }

    /// The definition: whether a pattern matches in a line.
    pub(crate) fn matches(&self, number: usize, line: &[u8]) -> bool {
        self.patterns[number].automaton.search_half(&Input::new(line)).is_some()
    }
}
