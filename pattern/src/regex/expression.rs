//! A compiled expression: finds matching lines, and places in them.

use super::ascii::{end_of_ascii, end_of_others};
use super::automaton::Automaton;
use super::ends::Ends;
use super::long_line::LongLine;
use super::options::{Options, Terminator, Unit};
use super::spans::Spans;
use super::starts::{Scratch, Starts, BATCH_MATCHES};
use crate::line::Wanted;
use crate::plan::Plan;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// Number of bytes that [`Regex::first_line`] searches before it sets up streams.
const NEAR_BYTES: usize = 2 << 10;

/// Shorter parts of a text that are not ASCII are searched line by line when all matches are asked
/// for: marking starts in them costs more.
const MARKED_BYTES: usize = 4 << 10;

/// Shorter ones are searched so even where ends are marked, which costs little to begin.
const COUNTED_BYTES: usize = 256;

/// In shorter texts a single match is found sooner without a look for its line.
const FAR_BYTES: usize = 16 << 10;

/// In longer ones, the lines that end behind so many bytes are searched for it before the others
/// are looked through: few, so that small tables take them.
const NEXT_BYTES: usize = 512;

/// A compiled expression.
///
/// A clone is cheap and should be made for each thread, as clones do not share scratch memory.
#[derive(Clone)]
pub struct Regex {
    pub(super) spans: Spans,
    pub(super) plan: Plan,
    pub(super) options: Options,
    /// A byte that no match contains and that ends lines, where matches lie within lines.
    pub(super) within_lines: bool,
    pub(super) can_be_empty: bool,
    pub(super) hir: std::sync::Arc<regex_syntax::hir::Hir>,
    pub(super) starts: std::sync::Arc<std::sync::OnceLock<Option<Starts>>>,
    /// The twin for lines of ASCII, if it is another expression.
    pub(super) ascii: Option<std::sync::Arc<regex_syntax::hir::Hir>>,
    pub(super) ascii_starts: std::sync::Arc<std::sync::OnceLock<Option<Starts>>>,
    /// What finds matches of one number of characters in other lines.
    pub(super) ends: std::sync::Arc<std::sync::OnceLock<Option<Ends>>>,
}

impl Regex {
    /// The options it was built with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether any line of `text` matches.
    ///
    /// ```
    /// let regex = lightfoot_pattern::Regex::new(r"\d+ms$")?;
    /// assert!(regex.is_match(b"start\nready after 20ms\nend\n"));
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn is_match(&self, text: &[u8]) -> bool {
        match self.options.unit {
            Unit::Text => self.spans().is_match(text),
            Unit::Line => {
                self.plan.lines(self.spans(), text, Wanted::Ends, &mut |_| ControlFlow::Break(())).is_break()
            }
        }
    }

    /// The number of lines of `text` that match. A last line without terminator counts; the empty
    /// text has no line.
    pub fn count_lines(&self, text: &[u8]) -> u64 {
        if self.options.unit == Unit::Line {
            return self.plan.count(self.spans(), text);
        }
        let mut count = 0;
        let _ = self.matching_lines(text, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Pushes each matching line, its terminator included, in order, until `push` breaks.
    ///
    /// With [`Unit::Text`] a line matches when a match begins in it.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// let regex = lightfoot_pattern::Regex::new("o")?;
    /// let mut lines = Vec::new();
    /// let _ = regex.matching_lines(b"one\nsix\ntwo", |line| {
    ///     lines.push(line);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(lines, [0..4, 8..11]);
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn matching_lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.options.unit {
            Unit::Line => self.plan.lines(self.spans(), text, Wanted::Lines, &mut push),
            Unit::Text => self.lines_of_matches(text, &mut push),
        }
    }

    /// The end of the first matching line, its terminator included.
    ///
    /// Cost: where lines are long, less than [`Regex::matching_lines`] takes up to there, which
    /// also looks for the start of the line.
    ///
    /// ```
    /// let regex = lightfoot_pattern::Regex::new("o")?;
    /// assert_eq!(regex.first_line_end(b"six\none\n"), Some(8));
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn first_line_end(&self, text: &[u8]) -> Option<usize> {
        let mut end = None;
        let mut first = |line: Range<usize>| {
            end = Some(line.end);
            ControlFlow::Break(())
        };
        let _ = match self.options.unit {
            Unit::Line => self.plan.lines(self.spans(), text, Wanted::Ends, &mut first),
            Unit::Text => self.lines_of_matches(text, &mut first),
        };
        end
    }

    /// The first matching line, its terminator included.
    ///
    /// For callers that search again behind each result: if lines match often, searching the next
    /// two kilobytes by the automaton is much cheaper than setting up streams.
    pub fn first_line(&self, text: &[u8]) -> Option<Range<usize>> {
        let near = text.len().min(NEAR_BYTES);
        let near =
            if near == 0 { 0 } else { crate::line::end_of(text, near - 1, self.options.terminator.byte()) };
        let mut found = None;
        let mut first = |line: Range<usize>| {
            found = Some(line);
            ControlFlow::Break(())
        };
        let near_has = match self.options.unit {
            Unit::Line => self.plan.lines_nearby(self.spans(), &text[..near], &mut first),
            Unit::Text => self.lines_of_matches(text, &mut first),
        };
        if near_has.is_continue() && self.options.unit == Unit::Line {
            let mut first = |line: Range<usize>| first(near + line.start..near + line.end);
            let _ = self.plan.lines(self.spans(), &text[near..], Wanted::Lines, &mut first);
        }
        found
    }

    fn lines_of_matches(
        &self,
        text: &[u8],
        push: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut past = 0;
        for found in self.find_iter(text) {
            if found.start >= past && found.start < text.len() {
                let line = crate::line::around(text, found.start, self.options.terminator.byte());
                past = line.end;
                push(line)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The first match at or after `at`; what lies before `at` is seen by look-behind such as `\b`.
    ///
    /// Cost: what lies before a rare match is passed at the speed of [`Regex::count_lines`].
    pub fn find_at(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        // With another terminator, an assertion may look at more than one byte between lines.
        let is_of_lines = self.options.unit == Unit::Line && self.options.terminator == Terminator::LineFeed;
        match is_of_lines && !self.can_be_empty && text.len().saturating_sub(at) > FAR_BYTES {
            true => self.find_by_lines(text, at),
            false => self.spans.search(text, at..text.len()),
        }
    }

    /// The first match at or after `at`, where matches lie within lines: in some lines nearby, or
    /// in the next line that matches.
    fn find_by_lines(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        let mut lines = at..crate::line::end_of(text, at + NEXT_BYTES, b'\n');
        loop {
            let end = lines.start + crate::line::content(&text[lines.clone()], b'\n');
            if let Some(found) = self.spans.search(text, lines.start..end) {
                return Some(found);
            }
            let next = self.first_line(&text[lines.end..])?;
            lines = lines.end + next.start..lines.end + next.end;
        }
    }

    /// Pushes the matches of one line, given without its terminator, in order.
    ///
    /// ```
    /// let mut found = Vec::new();
    /// let regex = lightfoot_pattern::Regex::new("[0-9]+")?;
    /// regex.matches_of_line(b"7 of 12", |span| found.push(span));
    /// assert_eq!(found, [0..1, 5..7]);
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn matches_of_line(&self, line: &[u8], mut push: impl FnMut(Range<usize>)) {
        let (mut at, mut last_end) = (0, None);
        while let Some(found) = self.next_match(line, at, line.len(), last_end) {
            (at, last_end) = (found.end, Some(found.end));
            push(found);
        }
    }

    /// Pushes all matches of a text of whole lines, those that [`Regex::find_iter`] finds, in order
    /// and some at a time: the way for texts in which matches are many. The number of places that
    /// took the general engine, which costs more than asking it for whole lines; none, and nothing
    /// was pushed, where there is no such way for this expression.
    ///
    /// Cost: the text is scanned once, whether or not it matches, and each match costs a look at
    /// its bytes, or none where all matches have one length.
    ///
    /// ```
    /// use lightfoot_pattern::regex::Scratch;
    /// let regex = lightfoot_pattern::Regex::new("[a-z]+ing")?;
    /// let mut found = Vec::new();
    /// let text = b"sing\ndancing\n";
    /// let way = regex.each_match(text, &mut Scratch::default(), &mut |spans| found.extend_from_slice(spans));
    /// assert!(way.is_none() || found == [0..4, 5..12]);
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn each_match(
        &self,
        text: &[u8],
        scratch: &mut Scratch,
        push: &mut dyn FnMut(&[Range<usize>]),
    ) -> Option<u64> {
        let any = || self.starts.get_or_init(|| Starts::new(&self.hir, &self.options)).as_ref();
        let Some(ascii) = self.ascii_starts() else {
            return Some(self.matches_by_starts(any()?, text, 0..text.len(), scratch, push));
        };
        let (mut at, mut undecided) = (0, 0);
        while at < text.len() {
            let end = end_of_ascii(text, at, b'\n');
            undecided += self.matches_by_starts(ascii, text, at..end, scratch, push);
            at = end;
            if at < text.len() {
                let others = at..end_of_others(text, at, b'\n');
                at = others.end;
                if let Some(ends) = self.ends().filter(|_| others.len() >= COUNTED_BYTES) {
                    if let Some(spans) = ends.matches(&text[others.clone()], others.start, scratch) {
                        spans.chunks(BATCH_MATCHES).for_each(&mut *push);
                        continue;
                    }
                }
                match any().filter(|_| others.len() >= MARKED_BYTES) {
                    Some(any) => undecided += self.matches_by_starts(any, text, others, scratch, push),
                    // A few lines are searched as the caller would search them.
                    None => self.matches_by_lines(text, others, push),
                }
            }
        }
        Some(undecided)
    }

    /// What finds all matches in lines of ASCII, if they have a way of their own. Without classes
    /// of Unicode, starts in any text are marked by bytes as well.
    fn ascii_starts(&self) -> Option<&Starts> {
        let twin = self.ascii.as_ref().filter(|_| crate::plan::has_long_characters(&self.hir))?;
        self.ascii_starts.get_or_init(|| Starts::new(twin, &self.options)).as_ref()
    }

    /// What finds all matches in any lines by their ends, where they have one number of characters.
    fn ends(&self) -> Option<&Ends> {
        self.ends.get_or_init(|| Ends::new(&self.hir, &self.options)).as_ref()
    }

    /// Pushes the matches in some lines; the number of places that took the general engine.
    fn matches_by_starts(
        &self,
        starts: &Starts,
        text: &[u8],
        lines: Range<usize>,
        scratch: &mut Scratch,
        push: &mut dyn FnMut(&[Range<usize>]),
    ) -> u64 {
        let (base, text) = (lines.start, &text[lines]);
        starts.each_match(text, base, scratch, &|start| self.end_within_line(text, start), push)
    }

    /// Pushes the matches in some lines, line by line.
    fn matches_by_lines(&self, text: &[u8], lines: Range<usize>, push: &mut dyn FnMut(&[Range<usize>])) {
        let (base, text) = (lines.start, &text[lines]);
        let _ = self.matching_lines(text, |line| {
            let content = line.start..line.start + crate::line::content(&text[line.clone()], b'\n');
            self.matches_of_line(&text[content], |found| {
                let found = base + line.start + found.start..base + line.start + found.end;
                push(std::slice::from_ref(&found));
            });
            ControlFlow::Continue(())
        });
    }

    /// Where the match that starts at `start` ends, by the general engine in the rest of the line.
    fn end_within_line(&self, text: &[u8], start: usize) -> Option<usize> {
        // Look-behind depends on at most one character.
        let near = start.saturating_sub(4);
        let from = near + crate::line::start_of(&text[near..], start - near, b'\n');
        let end = start + memchr::memchr(b'\n', &text[start..]).unwrap_or(text.len() - start);
        self.spans.end_of(&text[from..end], start - from).map(|end| from + end)
    }

    /// The next match within `at..end`, by the rules of `regex`: an empty match right behind a
    /// match is skipped.
    #[inline]
    pub(super) fn next_match(
        &self,
        text: &[u8],
        mut at: usize,
        end: usize,
        last_end: Option<usize>,
    ) -> Option<Range<usize>> {
        while at <= end {
            let found = self.spans.search(text, at..end)?;
            if !found.is_empty() || last_end != Some(found.end) {
                return Some(found);
            }
            // With UTF-8 semantics the automaton itself skips the rest of a character.
            at = found.end + 1;
        }
        None
    }

    /// The search of one line that comes in pieces; `None` if the expression has no exact program,
    /// or only a slow one.
    /// The empty line is none, as the empty text has no line.
    ///
    /// ```
    /// let regex = lightfoot_pattern::Regex::new("a.*z")?;
    /// let mut line = regex.long_line().expect("this pattern has a program");
    /// line.feed(b"from a");
    /// line.feed(b" to z");
    /// assert!(line.finish());
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn long_line(&self) -> Option<LongLine<'_>> {
        self.plan.scan_of_any_text().map(LongLine::new)
    }

    /// Whether a text without a certain string is passed over at the speed of memory, which a line
    /// that comes in pieces is not ([`Regex::long_line`]).
    ///
    /// ```
    /// assert!(lightfoot_pattern::Regex::new(r"\w+@\w+")?.looks_for_string());
    /// assert!(!lightfoot_pattern::Regex::new("[a-z]+")?.looks_for_string());
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn looks_for_string(&self) -> bool {
        self.plan.looks_for_string()
    }

    /// Whether an empty string can be a match.
    pub fn can_be_empty(&self) -> bool {
        self.can_be_empty
    }

    /// Describes the chosen engine and the reasons, in lines of text.
    ///
    /// ```
    /// let regex = lightfoot_pattern::Regex::new("needle")?;
    /// assert!(regex.explain().starts_with("engine: literal"));
    /// # Ok::<(), lightfoot_pattern::regex::Error>(())
    /// ```
    pub fn explain(&self) -> String {
        self.plan.explain()
    }

    /// The parsed patterns, with the options applied.
    pub fn hir(&self) -> &regex_syntax::hir::Hir {
        &self.hir
    }

    /// The bit-stream program that the engine runs, if it runs one.
    pub fn program(&self) -> Option<&crate::program::BitProgram> {
        self.plan.program()
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        self.plan.engine()
    }

    /// The pattern on the machine's card, for texts that live there:
    /// [`crate::kernel::cuda::GpuText::upload`] brings them, and any number of patterns search
    /// them.
    ///
    /// # Errors
    /// The pattern has no exact program, or there is no card, in one sentence.
    pub fn on_card(&self) -> Result<crate::kernel::cuda::GpuProgram, crate::kernel::cuda::CudaError> {
        crate::plan::for_card(&self.hir, &self.options)
    }

    pub(crate) fn spans(&self) -> &Automaton {
        self.spans.general()
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regex").field("engine", &self.engine()).field("options", &self.options).finish()
    }
}
