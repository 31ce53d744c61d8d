//! Searches one haystack after the other and prints into a writer: the general path, with every
//! kind of output.
//!
//! It joins a matcher, a searcher (`grep-searcher`) and a printer (`grep-printer`): JSON, matches
//! over several lines, `--vimgrep`, statistics, encodings and preprocessors. Searches without these
//! take the fast path instead, which prints the same bytes.

use super::arguments::{Encoding, Output};
use super::direct::{Direct, Streamed};
use super::matching::Matching;
use super::outcome::SearchOutcome;
use super::settings::Settings;
use super::walk::{self, Haystack};
use super::writer::Writer;
use anyhow::Result;
use grep_cli::{CommandReaderBuilder, DecompressionReader, DecompressionReaderBuilder};
use grep_matcher::LineTerminator;
use grep_printer::{JSONBuilder, Standard, StandardBuilder, Summary, SummaryBuilder, SummaryKind, JSON};
use grep_searcher::{Searcher, SearcherBuilder};
use ignore::overrides::Override;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The printer for each kind of output.
#[derive(Debug)]
enum Printer<'r, 's> {
    Lines(Standard<Writer<'r, 's>>),
    Summary(Summary<Writer<'r, 's>>),
    Json(JSON<Writer<'r, 's>>),
}

/// A searcher with its matcher and printer. Each thread has its own.
#[derive(Debug)]
pub(super) struct Worker<'r, 's> {
    matching: Matching,
    builder: SearcherBuilder,
    /// Made when the general path searches first: it clears 72 KB of buffers, which takes as long
    /// as searching a small file.
    searcher: Option<Searcher>,
    printer: Printer<'r, 's>,
    pre: Option<PathBuf>,
    pre_globs: Override,
    unzip: Option<DecompressionReaderBuilder>,
    binary: [grep_searcher::BinaryDetection; 2],
    as_mapped: bool,
    direct: Option<Direct>,
    whole: Vec<u8>,
}

/// Named files up to this size are read as a whole, so that binary files are recognised as in
/// mapped files.
const WHOLE_BYTES: u64 = 16 << 20;

impl<'r, 's> Worker<'r, 's> {
    /// A worker that prints into `writer`.
    ///
    /// # Errors
    /// When a preprocessor is not found, or a glob is malformed.
    pub(super) fn new(
        settings: &Settings,
        matching: Matching,
        writer: Writer<'r, 's>,
    ) -> Result<Worker<'r, 's>> {
        let pre = settings.arguments.pre.as_ref().map(|path| resolve(path)).transpose()?;
        let unzip = settings.arguments.search_zip.then(|| {
            let mut builder = DecompressionReaderBuilder::new();
            builder.async_stderr(true);
            builder
        });
        Ok(Worker {
            direct: Direct::new(settings, &matching),
            matching,
            builder: searcher_builder(settings),
            searcher: None,
            printer: printer(settings, writer),
            pre,
            pre_globs: walk::pre_globs(settings)?,
            unzip,
            binary: [settings.binary(false), settings.binary(true)],
            as_mapped: settings.as_mapped,
            whole: Vec::new(),
        })
    }

    /// A worker for another thread, which prints into `writer`.
    pub(super) fn another<'t>(&self, settings: &Settings, writer: Writer<'t, 's>) -> Worker<'t, 's> {
        Worker {
            matching: self.matching.clone(),
            builder: self.builder.clone(),
            searcher: None,
            printer: printer(settings, writer),
            pre: self.pre.clone(),
            pre_globs: self.pre_globs.clone(),
            unzip: self.unzip.clone(),
            binary: self.binary.clone(),
            as_mapped: self.as_mapped,
            direct: self.direct.clone(),
            whole: Vec::new(),
        }
    }

    /// The writer of the results.
    pub(super) fn writer(&mut self) -> &mut Writer<'r, 's> {
        match &mut self.printer {
            Printer::Lines(printer) => printer.get_mut(),
            Printer::Summary(printer) => printer.get_mut(),
            Printer::Json(printer) => printer.get_mut(),
        }
    }

    /// Searches and prints.
    ///
    /// # Errors
    /// When the haystack cannot be read, or the results cannot be written.
    pub(super) fn search(&mut self, haystack: &Haystack) -> io::Result<SearchOutcome> {
        let mut read = Vec::new();
        // The fast path is tried first. It is taken out of `self`, because it prints into the
        // writer of `self`.
        if let Some(mut direct) = self.direct.take() {
            let found = if haystack.stdin {
                match direct.stream(haystack, io::stdin().lock(), self.writer()) {
                    Streamed::Searched(found) => Some(found),
                    Streamed::Left(bytes) => {
                        // The general path searches these bytes first, because standard input
                        // cannot be read twice.
                        read = bytes;
                        None
                    }
                }
            } else {
                direct.search(haystack, self.writer())
            };
            self.direct = Some(direct);
            if let Some(found) = found {
                return found;
            }
        }
        // From here on the general path searches. By default, a file that was named is searched
        // beyond its NUL bytes, and one that was found only up to the first.
        let searcher = self.searcher.get_or_insert_with(|| self.builder.build());
        searcher.set_binary_detection(self.binary[usize::from(haystack.named)].clone());
        let path = &haystack.path;
        if haystack.stdin {
            self.read(haystack.shown(), read.as_slice().chain(io::stdin().lock()))
        } else if self.preprocesses(path) {
            self.preprocessed(haystack)
        } else if let Some(reader) = self.unzipped(path)? {
            self.read_and_close(path, reader)
        } else {
            self.search_path(haystack)
        }
    }

    fn preprocesses(&self, path: &Path) -> bool {
        self.pre.is_some() && (self.pre_globs.is_empty() || !self.pre_globs.matched(path, false).is_ignore())
    }

    fn preprocessed(&mut self, haystack: &Haystack) -> io::Result<SearchOutcome> {
        let Some(program) = &self.pre else { return self.search_path(haystack) };
        let path = &haystack.path;
        let mut command = Command::new(program);
        command.arg(path).stdin(Stdio::from(File::open(path)?));
        let failed = |error: &dyn std::fmt::Display, command: &Command| {
            io::Error::other(format!("preprocessor {command:?} failed: {error}"))
        };
        let mut builder = CommandReaderBuilder::new();
        let mut reader =
            builder.async_stderr(true).build(&mut command).map_err(|error| failed(&error, &command))?;
        let found = self.read(path, &mut reader).map_err(|error| failed(&error, &command));
        let closed = reader.close();
        let found = found?;
        closed?;
        Ok(found)
    }

    fn unzipped(&self, path: &Path) -> io::Result<Option<DecompressionReader>> {
        match &self.unzip {
            Some(builder) if builder.get_matcher().has_command(path) => Ok(Some(builder.build(path)?)),
            _ => Ok(None),
        }
    }

    fn read_and_close(&mut self, path: &Path, mut reader: DecompressionReader) -> io::Result<SearchOutcome> {
        let found = self.read(path, &mut reader);
        let closed = reader.close();
        let found = found?;
        closed?;
        Ok(found)
    }

    fn search_path(&mut self, haystack: &Haystack) -> io::Result<SearchOutcome> {
        let path = &haystack.path;
        let mut file = File::open(path)?;
        if !(self.as_mapped && haystack.named && is_held(&file)) {
            return self.search_file(path, &file);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        let found = file.read_to_end(&mut whole).and_then(|_| self.search_slice(path, &whole));
        self.whole = whole;
        found
    }

    fn search_slice(&mut self, path: &Path, text: &[u8]) -> io::Result<SearchOutcome> {
        let searcher = self.searcher.get_or_insert_with(|| self.builder.build());
        let matching = &self.matching;
        search(&mut self.printer, matching, path, |sink| sink.slice(searcher, matching, text))
    }

    fn search_file(&mut self, path: &Path, file: &File) -> io::Result<SearchOutcome> {
        let searcher = self.searcher.get_or_insert_with(|| self.builder.build());
        let matching = &self.matching;
        search(&mut self.printer, matching, path, |sink| sink.file(searcher, matching, file))
    }

    fn read(&mut self, path: &Path, mut reader: impl Read) -> io::Result<SearchOutcome> {
        let searcher = self.searcher.get_or_insert_with(|| self.builder.build());
        let matching = &self.matching;
        search(&mut self.printer, matching, path, |sink| sink.reader(searcher, matching, &mut reader))
    }
}

/// Whether a file is read as a whole. A file without a length may have no end.
fn is_held(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && (1..=WHOLE_BYTES).contains(&about.len()))
}

/// A sink as a trait object.
trait Sink {
    fn slice(&mut self, searcher: &mut Searcher, matcher: &Matching, text: &[u8]) -> io::Result<()>;
    fn file(&mut self, searcher: &mut Searcher, matcher: &Matching, file: &File) -> io::Result<()>;
    fn reader(
        &mut self,
        searcher: &mut Searcher,
        matcher: &Matching,
        reader: &mut dyn Read,
    ) -> io::Result<()>;
}

impl<S: grep_searcher::Sink<Error = io::Error>> Sink for S {
    fn slice(&mut self, searcher: &mut Searcher, matcher: &Matching, text: &[u8]) -> io::Result<()> {
        searcher.search_slice(matcher, text, self)
    }

    fn file(&mut self, searcher: &mut Searcher, matcher: &Matching, file: &File) -> io::Result<()> {
        searcher.search_file(matcher, file, self)
    }

    fn reader(
        &mut self,
        searcher: &mut Searcher,
        matcher: &Matching,
        reader: &mut dyn Read,
    ) -> io::Result<()> {
        searcher.search_reader(matcher, reader, self)
    }
}

fn search(
    printer: &mut Printer<'_, '_>,
    matcher: &Matching,
    path: &Path,
    mut run: impl FnMut(&mut dyn Sink) -> io::Result<()>,
) -> io::Result<SearchOutcome> {
    match printer {
        Printer::Lines(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            run(&mut sink)?;
            Ok(SearchOutcome { any: sink.has_match(), stats: sink.stats().cloned() })
        }
        Printer::Summary(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            run(&mut sink)?;
            Ok(SearchOutcome { any: sink.has_match(), stats: sink.stats().cloned() })
        }
        Printer::Json(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            run(&mut sink)?;
            Ok(SearchOutcome { any: sink.has_match(), stats: Some(sink.stats().clone()) })
        }
    }
}

fn resolve(program: &Path) -> Result<PathBuf> {
    grep_cli::resolve_binary(program)
        .map_err(|error| anyhow::anyhow!("the preprocessor {} cannot be found: {error}", program.display()))
}

fn searcher_builder(settings: &Settings) -> SearcherBuilder {
    let arguments = &settings.arguments;
    let terminator = match (arguments.crlf, arguments.null_data) {
        (true, _) => LineTerminator::crlf(),
        (_, true) => LineTerminator::byte(0),
        _ => LineTerminator::byte(b'\n'),
    };
    let mut builder = SearcherBuilder::new();
    builder
        .max_matches(arguments.max_count)
        .line_terminator(terminator)
        .invert_match(arguments.invert_match)
        .line_number(settings.line_number)
        .multi_line(arguments.multiline)
        .stop_on_nonmatch(arguments.stop_on_nonmatch);
    // With all lines as context, the searcher ignores the numbers of lines around a match.
    if arguments.around.all {
        builder.passthru(true);
    } else {
        let (before, after) = arguments.around.lines();
        builder.before_context(before).after_context(after);
    }
    // By default, the searcher looks for a byte order mark and decodes UTF-16 behind one.
    match settings.encoding() {
        Encoding::Auto => (),
        Encoding::Raw => {
            builder.bom_sniffing(false);
        }
        Encoding::From(encoding) => {
            builder.encoding(Some(encoding.clone()));
        }
    }
    builder
}

fn printer<'r, 's>(settings: &Settings, writer: Writer<'r, 's>) -> Printer<'r, 's> {
    let without = settings.output == Output::PathsWithout;
    let kind = match settings.output {
        Output::Json if !settings.arguments.quiet => return Printer::Json(json(settings, writer)),
        Output::Lines if !settings.arguments.quiet => return Printer::Lines(lines(settings, writer)),
        _ if settings.arguments.quiet && without => SummaryKind::QuietWithoutMatch,
        _ if settings.arguments.quiet => SummaryKind::QuietWithMatch,
        Output::Paths => SummaryKind::PathWithMatch,
        Output::PathsWithout => SummaryKind::PathWithoutMatch,
        Output::CountMatches => SummaryKind::CountMatches,
        Output::Count | Output::Lines | Output::Json => SummaryKind::Count,
    };
    Printer::Summary(summary(settings, kind, writer))
}

fn json<'r, 's>(settings: &Settings, writer: Writer<'r, 's>) -> JSON<Writer<'r, 's>> {
    JSONBuilder::new().replacement(settings.arguments.replace.clone()).build(writer)
}

fn lines<'r, 's>(settings: &Settings, writer: Writer<'r, 's>) -> Standard<Writer<'r, 's>> {
    let arguments = &settings.arguments;
    let mut builder = StandardBuilder::new();
    builder
        .byte_offset(arguments.byte_offset)
        .color_specs(settings.colors.clone())
        .column(settings.column)
        .heading(settings.heading)
        .hyperlink(settings.hyperlink.clone())
        .max_columns(arguments.max_columns)
        .max_columns_preview(arguments.max_columns_preview)
        .only_matching(arguments.only_matching)
        .path(settings.with_filename)
        .path_terminator(settings.path_terminator)
        .per_match(arguments.vimgrep)
        .per_match_one_line(true)
        .replacement(arguments.replace.clone())
        .separator_context(settings.context_separator.clone())
        .separator_field_context(settings.field_context_separator.clone())
        .separator_field_match(settings.field_match_separator.clone())
        .separator_path(arguments.path_separator)
        .stats(settings.stats)
        .trim_ascii(arguments.trim);
    // With several threads the writer separates files, because only it knows their order.
    if settings.threads == 1 {
        builder.separator_search(settings.file_separator.clone());
    }
    builder.build(writer)
}

fn summary<'r, 's>(
    settings: &Settings,
    kind: SummaryKind,
    writer: Writer<'r, 's>,
) -> Summary<Writer<'r, 's>> {
    SummaryBuilder::new()
        .color_specs(settings.colors.clone())
        .exclude_zero(!settings.arguments.include_zero)
        .hyperlink(settings.hyperlink.clone())
        .kind(kind)
        .path(settings.with_filename)
        .path_terminator(settings.path_terminator)
        .separator_path(settings.arguments.path_separator)
        .stats(settings.stats)
        .build(writer)
}
