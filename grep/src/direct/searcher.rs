//! The searcher of the direct path. The other files of this folder define its methods.

use super::bits::Dense;
use super::folder::Folder;
use super::format::Format;
use super::piece::Sizes;
use crate::arguments::{Binary, Encoding, Mapping, Output};
use crate::flag;
use crate::matching::Matching;
use crate::query::Query;
use crate::settings::Settings;
use grep_matcher::Matcher;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// The kind of output of the direct path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Lines,
    Matches,
    Count,
    CountMatches,
    Path,
    PathWithout,
    Quiet,
    QuietWithout,
}

/// A searcher of files.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    pub(super) query: Query,
    pub(super) answer: Answer,
    pub(super) format: Format,
    pub(super) invert: bool,
    pub(super) max_count: Option<u64>,
    /// Whether named files are text until a line to be printed has a NUL byte, as mapped files are
    /// in ripgrep.
    pub(super) as_mapped: bool,
    /// Whether large files are mapped or read.
    pub(super) mapping: Mapping,
    pub(super) text: bool,
    /// Whether files that were found end at their first NUL byte.
    pub(super) quits: bool,
    /// Whether files that were found are searched beyond NUL bytes.
    pub(super) searches_binary: bool,
    pub(super) sniff: bool,
    pub(super) include_zero: bool,
    /// The number of threads; `None` for as many as the system offers.
    pub(super) threads: Option<usize>,
    /// Programs for texts in which many lines match.
    pub(super) dense: Arc<OnceLock<Option<Dense>>>,
    pub(super) buffer: Vec<u8>,
    pub(super) folder: Folder,
    pub(super) sizes: Sizes,
}

impl Direct {
    /// The direct path for these settings; `None` if it does not implement them.
    pub(crate) fn new(settings: &Settings, matching: &Matching) -> Option<Direct> {
        let Matching::Query(query) = matching else { return None };
        let arguments = &settings.arguments;
        // Separators between files depend on the results of both paths; with several threads the
        // writer adds them, and one file has none.
        let separated = settings.threads == 1 && settings.file_separator.is_some() && !settings.one_file;
        let answer = answer(settings)?;
        let spans = matches!(answer, Answer::Matches | Answer::CountMatches);
        let empty = spans && (query.main().can_be_empty() || arguments.invert_match);
        // Matches may span lines.
        let is_by_lines = query.main().line_terminator().is_some();
        if !flag::direct_implements(flag::FLAGS, settings) || separated || empty || !is_by_lines {
            return None;
        }
        let format = Format::new(settings);
        if answer == Answer::Lines && format.shows_spans() {
            // Where lines without a match are reported, or printed around others, they may have
            // matches all the same.
            let others = arguments.invert_match && !(query.is_plain() && format.around.is_none());
            if others || query.main().can_be_empty() {
                return None;
            }
        }
        Some(Direct {
            query: query.clone(),
            answer,
            format,
            invert: arguments.invert_match,
            max_count: arguments.max_count,
            as_mapped: settings.as_mapped,
            mapping: arguments.mapping,
            text: arguments.binary == Binary::Text,
            quits: arguments.binary == Binary::Auto
                && !matches!(answer, Answer::PathWithout | Answer::QuietWithout),
            searches_binary: arguments.binary == Binary::Search,
            sniff: matches!(arguments.encoding, Encoding::Auto),
            include_zero: arguments.include_zero,
            threads: if settings.one_file { settings.file_threads } else { Some(1) },
            dense: Arc::default(),
            buffer: Vec::new(),
            folder: Folder::default(),
            sizes: Sizes::USUAL,
        })
    }

    pub(super) fn any(&self, text: &[u8]) -> bool {
        self.lines(text, |_| ControlFlow::Break(())).is_break()
    }

    /// Pushes the lines to be reported.
    pub(super) fn lines(
        &self,
        text: &[u8],
        mut push: impl FnMut(std::ops::Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.invert {
            return self.query.matching_lines(text, push);
        }
        let mut at = 0;
        self.query.matching_lines(text, |line| {
            for other in pattern::line::each(&text[at..line.start], b'\n') {
                push(at + other.start..at + other.end)?;
            }
            at = line.end;
            ControlFlow::Continue(())
        })?;
        for other in pattern::line::each(&text[at..], b'\n') {
            push(at + other.start..at + other.end)?;
        }
        ControlFlow::Continue(())
    }
}

fn answer(settings: &Settings) -> Option<Answer> {
    let without = settings.output == Output::PathsWithout;
    Some(match settings.output {
        Output::Json => return None,
        _ if settings.arguments.quiet => {
            if without {
                Answer::QuietWithout
            } else {
                Answer::Quiet
            }
        }
        Output::Lines if settings.arguments.only_matching => Answer::Matches,
        Output::Lines => Answer::Lines,
        Output::Count => Answer::Count,
        Output::CountMatches => Answer::CountMatches,
        Output::Paths => Answer::Path,
        Output::PathsWithout => Answer::PathWithout,
    })
}

/// Whether a text begins with a byte order mark.
pub(super) fn is_marked(text: &[u8]) -> bool {
    [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| text.starts_with(mark))
}
