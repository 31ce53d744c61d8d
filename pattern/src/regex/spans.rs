//! Finds spans inside lines, by small deterministic automata if possible, else by the `meta` engine
//! of `regex-automata`.
//!
//! A matching line is short, and a general engine's preparation of each search costs several times
//! the search itself. Tables for a forward and a reverse automaton need no preparation. They are
//! made after many searches, are given up if they would be large (most Unicode classes), and return
//! a search that they cannot decide (a Unicode `\b` beside a character beyond ASCII). Where a line
//! is ASCII, the tables are those of the expression's twin, which are small. In all cases spans are
//! those of leftmost-first search.

use super::automaton::Automaton;
use super::options::Options;
use regex_automata::dfa::Automaton as _;
use regex_automata::dfa::{dense, regex, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::look::LookMatcher;
use regex_automata::{Anchored, HalfMatch, Input, MatchError, MatchKind};
use regex_syntax::hir::Hir;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Tables are made after this many searches.
const PATIENCE: u32 = 200;
/// Tables of the twin are made sooner, as the general engine takes as long to build.
const ASCII_PATIENCE: u32 = 8;
/// Longer parts are not looked at for other characters.
const ASCII_BYTES: usize = 1 << 10;
/// Longer parts are searched by the general engine, which skips to rare literals.
const LONG_BYTES: usize = 16 << 10;
/// Larger tables would not stay in the caches, and making them takes longer than it saves.
const TABLE_BYTES: usize = 512 << 10;

/// Both engines for one expression. A clone shares the tables.
#[derive(Clone)]
pub(super) struct Spans {
    general: Automaton,
    tables: Arc<SpanTables>,
    /// Those of the twin, if the expression has one.
    ascii: Option<Arc<SpanTables>>,
    /// The number of bytes of each match, where all have as many.
    bytes: Option<usize>,
}

struct SpanTables {
    hir: Arc<Hir>,
    /// The line end for `(?m)^` and `(?m)$`; `None` if tables cannot be used.
    line_end: Option<u8>,
    patience: u32,
    searches: AtomicU32,
    both: OnceLock<Option<regex::Regex>>,
}

impl Spans {
    /// Both engines; `ascii` is the expression's twin.
    pub(super) fn new(
        general: Automaton,
        hir: Arc<Hir>,
        ascii: Option<Arc<Hir>>,
        options: &Options,
    ) -> Spans {
        let (least, most) = (hir.properties().minimum_len(), hir.properties().maximum_len());
        let bytes = least.filter(|&bytes| bytes > 0 && least == most);
        let line_end = (!options.utf8).then_some(options.text_line_end);
        let tables = |hir, patience| {
            let (searches, both) = (AtomicU32::new(0), OnceLock::new());
            Arc::new(SpanTables { hir, line_end, patience, searches, both })
        };
        let ascii = ascii.map(|twin| tables(twin, ASCII_PATIENCE));
        Spans { general, tables: tables(hir, PATIENCE), ascii, bytes }
    }

    /// The engine that can answer all searches.
    pub(super) fn general(&self) -> &Automaton {
        &self.general
    }

    /// The leftmost-first match within a part of a text.
    #[inline]
    pub(super) fn search(&self, text: &[u8], part: Range<usize>) -> Option<Range<usize>> {
        if let Some(bytes) = self.bytes {
            return self.search_end(text, part).map(|end| end - bytes..end);
        }
        self.by_tables(text, &part, |both, input| {
            both.try_search(input).map(|found| found.map(|at| at.range()))
        })
        .unwrap_or_else(|input| self.general.search(&input).map(|found| found.range()))
    }

    /// The end of the leftmost-first match within a part of a text: cheaper than where it begins.
    #[inline]
    pub(super) fn search_end(&self, text: &[u8], part: Range<usize>) -> Option<usize> {
        let end = |found: Option<HalfMatch>| found.map(|at| at.offset());
        self.by_tables(text, &part, |both, input| both.forward().try_search_fwd(input).map(end))
            .unwrap_or_else(|input| end(self.general.search_half(&input)))
    }

    /// What a search by tables finds, those of the twin first; what was to be searched where no
    /// tables decide.
    #[inline(always)]
    fn by_tables<'t, T>(
        &self,
        text: &'t [u8],
        part: &Range<usize>,
        search: impl Fn(&regex::Regex, &Input<'t>) -> Result<T, MatchError>,
    ) -> Result<T, Input<'t>> {
        let input = Input::new(text).range(part.clone());
        let twin = self.ascii.as_ref().filter(|_| is_ascii_around(text, part));
        let tables = twin.and_then(|twin| twin.get());
        if let Some(found) = tables.and_then(|both| search(both, &input).ok()) {
            return Ok(found);
        }
        let tables = self.tables.get().filter(|_| part.len() <= LONG_BYTES);
        tables.and_then(|both| search(both, &input).ok()).ok_or(input)
    }

    /// The end of the preferred match among those that start at `start`.
    pub(super) fn end_of(&self, text: &[u8], start: usize) -> Option<usize> {
        let input = Input::new(text).range(start..text.len()).anchored(Anchored::Yes);
        self.general.search(&input).map(|found| found.end())
    }
}

/// Whether a short part, and the characters that assertions at its ends look at, are ASCII.
fn is_ascii_around(text: &[u8], part: &Range<usize>) -> bool {
    let seen = part.start.saturating_sub(1)..text.len().min(part.end + 1);
    seen.len() <= ASCII_BYTES && text[seen].is_ascii()
}

impl SpanTables {
    #[inline]
    fn get(&self) -> Option<&regex::Regex> {
        match self.both.get() {
            Some(both) => both.as_ref(),
            None if self.searches.fetch_add(1, Ordering::Relaxed) < self.patience => None,
            None => self.both.get_or_init(|| self.make()).as_ref(),
        }
    }

    fn make(&self) -> Option<regex::Regex> {
        let mut look = LookMatcher::new();
        look.set_line_terminator(self.line_end?);
        let nfa = |reverse| {
            let config = thompson::Config::new()
                .utf8(false)
                .reverse(reverse)
                .which_captures(thompson::WhichCaptures::None)
                .look_matcher(look.clone())
                .nfa_size_limit(Some(TABLE_BYTES));
            thompson::Compiler::new().configure(config).build_from_hir(&self.hir).ok()
        };
        let table = |nfa: thompson::NFA, kind, start| {
            let config = dense::Config::new()
                .match_kind(kind)
                .start_kind(start)
                .unicode_word_boundary(true)
                .dfa_size_limit(Some(TABLE_BYTES))
                .determinize_size_limit(Some(2 * TABLE_BYTES));
            dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
        };
        let forward = table(nfa(false)?, MatchKind::LeftmostFirst, StartKind::Unanchored)?;
        let reverse = table(nfa(true)?, MatchKind::All, StartKind::Anchored)?;
        Some(regex::Builder::new().build_from_dfas(forward, reverse))
    }
}
