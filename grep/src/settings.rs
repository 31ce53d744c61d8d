//! Turns arguments into settings: defaults that depend on the terminal, on the paths and on each
//! other, pattern files, and globs.
//!
//! Printers, searchers and walkers build what only they need from these values. Source of the
//! defaults: the documented behaviour of ripgrep 15.

use super::arguments::{
    Arguments, Binary, Boundary, Case, Color, Encoding, Mapping, Mode, Output, PatternSource, Sort,
};
use anyhow::{bail, ensure, Context, Result};
use grep_printer::{ColorSpecs, HyperlinkConfig, HyperlinkEnvironment};
use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The settings of a search.
#[derive(Debug)]
pub(super) struct Settings {
    /// The arguments that need no interpretation.
    pub(super) arguments: Arguments,
    /// The kind of output; lines for modes that do not search.
    pub(super) output: Output,
    /// The patterns, each once.
    pub(super) patterns: Vec<String>,
    /// The paths to search; never empty.
    pub(super) paths: Vec<PathBuf>,
    /// Whether no path was given, so that the working directory or standard input was chosen.
    pub(super) implicit_path: bool,
    /// Whether exactly one haystack that is no folder is searched.
    pub(super) one_file: bool,
    /// The working directory.
    pub(super) folder: PathBuf,
    pub(super) color: Color,
    pub(super) colors: ColorSpecs,
    pub(super) hyperlink: HyperlinkConfig,
    pub(super) column: bool,
    pub(super) heading: bool,
    pub(super) line_number: bool,
    pub(super) with_filename: bool,
    /// Bytes that are printed between the results of two files.
    pub(super) file_separator: Option<Vec<u8>>,
    pub(super) context_separator: Option<Vec<u8>>,
    pub(super) field_match_separator: Vec<u8>,
    pub(super) field_context_separator: Vec<u8>,
    pub(super) path_terminator: Option<u8>,
    /// Whether statistics are collected.
    pub(super) stats: bool,
    /// Whether one match decides everything.
    pub(super) quit_after_match: bool,
    /// Threads of the walk.
    pub(super) threads: usize,
    /// Threads that may search one large file; `None` for as many as the system offers.
    pub(super) file_threads: Option<usize>,
    /// Whether named files are text until a line to be printed has a NUL byte, as files that
    /// ripgrep maps are. Nothing is mapped.
    pub(super) as_mapped: bool,
    pub(super) terminal: bool,
}

impl Settings {
    /// Interprets the command line.
    ///
    /// # Errors
    /// One sentence, for example when there is no pattern or a pattern file cannot be read.
    pub(super) fn new(mut arguments: Arguments) -> Result<Settings> {
        let mut stdin = Stdin::Free;
        // The order matters: patterns may take the first operand and all of standard input, and the
        // remaining operands are the paths.
        let output = output(&arguments);
        let patterns = patterns(&mut arguments, &mut stdin)?;
        let (paths, implicit_path) = paths(&mut arguments, stdin)?;
        let one_file = paths.len() == 1 && (is_stdin(&paths[0]) || !paths[0].is_dir());
        let only_stdin = paths.len() == 1 && is_stdin(&paths[0]);
        let terminal = std::io::stdout().is_terminal();
        let stats = matches!(arguments.mode, Mode::Search(_)) && (arguments.stats || output == Output::Json);
        // --vimgrep prints path, line and column with each match: it takes no headings, and the
        // column and the file name are on unless they were switched off.
        let heading = !arguments.vimgrep && arguments.heading.unwrap_or(terminal);
        let column = arguments.column.unwrap_or(arguments.vimgrep);
        let context_separator = arguments.context_separator.clone().unwrap_or(Some(b"--".to_vec()));
        Ok(Settings {
            output,
            patterns,
            implicit_path,
            one_file,
            folder: working_directory()?,
            color: color(&arguments, terminal),
            colors: colors(&arguments),
            hyperlink: hyperlink(&arguments),
            column,
            heading,
            line_number: line_number(&arguments, output, column, terminal && !only_stdin),
            with_filename: arguments.with_filename.unwrap_or(arguments.vimgrep || !one_file),
            file_separator: file_separator(&arguments, output, heading, context_separator.as_ref()),
            context_separator,
            field_match_separator: arguments.field_match_separator.clone().unwrap_or(b":".to_vec()),
            field_context_separator: arguments.field_context_separator.clone().unwrap_or(b"-".to_vec()),
            path_terminator: arguments.null.then_some(0),
            stats,
            quit_after_match: !stats && arguments.quiet,
            // Sorted output has one order, which a single thread gives without waiting.
            threads: if arguments.sort.is_some() || one_file {
                1
            } else {
                arguments.threads.unwrap_or_else(cores)
            },
            file_threads: arguments.threads,
            as_mapped: as_mapped(&arguments, &paths),
            terminal,
            paths,
            arguments,
        })
    }

    /// Whether a search can find anything.
    pub(super) fn can_match(&self) -> bool {
        (!self.patterns.is_empty() || self.arguments.invert_match) && self.arguments.max_count != Some(0)
    }

    /// Whether standard output may be one of the files that are searched.
    pub(super) fn searches(&self) -> bool {
        matches!(self.arguments.mode, Mode::Search(_))
    }

    /// The order of files.
    pub(super) fn sort(&self) -> Option<Sort> {
        self.arguments.sort
    }

    /// How NUL bytes are treated in a file that was named or found.
    pub(super) fn binary(&self, named: bool) -> grep_searcher::BinaryDetection {
        if self.arguments.binary == Binary::Text || self.arguments.null_data {
            grep_searcher::BinaryDetection::none()
        } else if named || self.arguments.binary == Binary::Search {
            grep_searcher::BinaryDetection::convert(0)
        } else {
            grep_searcher::BinaryDetection::quit(0)
        }
    }

    /// The options of an expression.
    pub(super) fn expression(&self) -> pattern::regex::Options {
        use pattern::regex::{self, Terminator, Unit};
        let arguments = &self.arguments;
        let mut options = regex::Options::default();
        options.case = match arguments.case {
            Case::Sensitive => regex::Case::Sensitive,
            Case::Insensitive => regex::Case::Insensitive,
            Case::Smart => regex::Case::Smart,
        };
        options.boundary = match arguments.boundary {
            Boundary::None => regex::Boundary::None,
            Boundary::Word => regex::Boundary::Word,
            Boundary::Line => regex::Boundary::Line,
        };
        options.terminator = match (arguments.crlf, arguments.null_data) {
            (true, _) => Terminator::CrLf,
            (_, true) => Terminator::Nul,
            _ => Terminator::LineFeed,
        };
        options.unit = if arguments.multiline { Unit::Text } else { Unit::Line };
        options.multi_line = true;
        options.dot_matches_new_line = arguments.multiline && arguments.multiline_dotall;
        options.fixed_strings = arguments.fixed_strings;
        options.unicode = !arguments.no_unicode;
        options.excluded = (arguments.binary != Binary::Text && !arguments.null_data).then_some(0);
        options.size_limit = arguments.regex_size_limit.unwrap_or(options.size_limit);
        options.dfa_size_limit = arguments.dfa_size_limit.unwrap_or(options.dfa_size_limit);
        options
    }
}

/// The number of threads without `--threads`. Asking the system takes a dozen calls.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(12)
}

/// Whether standard input was already read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdin {
    Free,
    Consumed,
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn output(arguments: &Arguments) -> Output {
    match arguments.mode {
        Mode::Search(Output::CountMatches) if arguments.invert_match => Output::Count,
        Mode::Search(Output::Count) if arguments.only_matching => Output::CountMatches,
        Mode::Search(output) => output,
        _ => Output::Lines,
    }
}

fn patterns(arguments: &mut Arguments, stdin: &mut Stdin) -> Result<Vec<String>> {
    if matches!(arguments.mode, Mode::Files | Mode::Types | Mode::Generate(_)) {
        return Ok(Vec::new());
    }
    if arguments.patterns.is_empty() {
        ensure!(
            !arguments.positional.is_empty(),
            "no pattern was given: {} [OPTIONS] PATTERN [PATH]...",
            arguments.program
        );
        let pattern = arguments.positional.remove(0);
        return match pattern.into_string() {
            Ok(pattern) => Ok(vec![pattern]),
            Err(pattern) => {
                bail!("the pattern {} is not valid UTF-8: write its bytes as \\xNN", pattern.display())
            }
        };
    }
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for source in std::mem::take(&mut arguments.patterns) {
        for pattern in from_source(source, stdin)? {
            if seen.insert(pattern.clone()) {
                all.push(pattern);
            }
        }
    }
    Ok(all)
}

fn from_source(source: PatternSource, stdin: &mut Stdin) -> Result<Vec<String>> {
    match source {
        PatternSource::Given(pattern) => Ok(vec![pattern]),
        PatternSource::File(path) if is_stdin(&path) => {
            ensure!(*stdin == Stdin::Free, "standard input holds the patterns of one -f - only");
            *stdin = Stdin::Consumed;
            Ok(grep_cli::patterns_from_stdin()?)
        }
        PatternSource::File(path) => grep_cli::patterns_from_path(&path)
            .with_context(|| format!("cannot read patterns from {}", path.display())),
    }
}

/// The paths, and whether they had to be guessed.
fn paths(arguments: &mut Arguments, stdin: Stdin) -> Result<(Vec<PathBuf>, bool)> {
    let given: Vec<PathBuf> =
        std::mem::take(&mut arguments.positional).into_iter().map(PathBuf::from).collect();
    if stdin == Stdin::Consumed && given.iter().any(|path| is_stdin(path)) {
        bail!("standard input cannot hold both the patterns and the text");
    }
    if !given.is_empty() {
        return Ok((given, false));
    }
    let searches = matches!(arguments.mode, Mode::Search(_));
    let from_stdin = searches && stdin == Stdin::Free && grep_cli::is_readable_stdin();
    Ok((vec![PathBuf::from(if from_stdin { "-" } else { "./" })], true))
}

fn working_directory() -> Result<PathBuf> {
    std::env::current_dir()
        .or_else(|error| {
            std::env::var_os("PWD").filter(|pwd| !pwd.is_empty()).map(PathBuf::from).ok_or(error)
        })
        .context("cannot tell the working directory: was it removed?")
}

fn color(arguments: &Arguments, terminal: bool) -> Color {
    match arguments.color {
        Color::Auto if !terminal => Color::Never,
        other => other,
    }
}

fn colors(arguments: &Arguments) -> ColorSpecs {
    let mut specs = grep_printer::default_color_specs();
    specs.extend(arguments.colors.iter().cloned());
    ColorSpecs::new(&specs)
}

fn hyperlink(arguments: &Arguments) -> HyperlinkConfig {
    let mut environment = HyperlinkEnvironment::new();
    if arguments.hyperlink_format.is_empty() {
        return HyperlinkConfig::new(environment, arguments.hyperlink_format.clone());
    }
    environment.host(host(arguments.hostname_bin.as_deref()));
    let wsl = std::env::var("WSL_DISTRO_NAME").ok();
    environment.wsl_prefix(wsl.map(|name| format!("wsl$/{name}")));
    HyperlinkConfig::new(environment, arguments.hyperlink_format.clone())
}

/// The output of the command, or else the system's name.
fn host(command: Option<&Path>) -> Option<String> {
    let output = command.and_then(|path| std::process::Command::new(path).output().ok());
    let printed =
        output.and_then(|out| String::from_utf8(out.stdout).ok()).map(|name| name.trim().to_owned());
    printed.filter(|name| !name.is_empty()).or_else(|| grep_cli::hostname().ok()?.into_string().ok())
}

fn line_number(arguments: &Arguments, output: Output, column: bool, for_people: bool) -> bool {
    let usual = match output {
        _ if arguments.quiet => false,
        Output::Lines => for_people || column || arguments.vimgrep,
        Output::Json => true,
        _ => false,
    };
    arguments.line_number.unwrap_or(usual)
}

fn file_separator(
    arguments: &Arguments,
    output: Output,
    heading: bool,
    context_separator: Option<&Vec<u8>>,
) -> Option<Vec<u8>> {
    let (before, after) = if arguments.around.all { (0, 0) } else { arguments.around.lines() };
    match output {
        Output::Lines if !matches!(arguments.mode, Mode::Search(_)) => None,
        Output::Lines if heading => Some(Vec::new()),
        Output::Lines if before + after > 0 => context_separator.cloned(),
        _ => None,
    }
}

/// Whether ripgrep would map the named files.
fn as_mapped(arguments: &Arguments, paths: &[PathBuf]) -> bool {
    match arguments.mapping {
        Mapping::Always => true,
        Mapping::Never => false,
        Mapping::Auto => paths.len() <= 10 && paths.iter().all(|path| path.is_file()),
    }
}

impl Settings {
    /// The encoding to decode from; `None` if a byte order mark decides, or nothing is decoded.
    pub(super) fn encoding(&self) -> &Encoding {
        &self.arguments.encoding
    }
}
