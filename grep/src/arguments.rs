//! The parsed command line of `grep`, before anything is looked up.
//!
//! Later flags override earlier ones, and several flags may set one property (`-i -s -S`;
//! `-c -l --json`): each property is one field here, and the last flag sets it. Nothing is opened,
//! compiled or compared with the file system; `settings` does that. Source of the grammar, and of
//! which flag overrides which: the documented behaviour of ripgrep 15.

use anyhow::{bail, Context, Result};
use grep_printer::{HyperlinkFormat, UserColorSpec};
use present::completion::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

/// The kind of output of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Output {
    /// Matching lines.
    #[default]
    Lines,
    /// Numbers of matching lines.
    Count,
    /// Numbers of matches.
    CountMatches,
    /// Paths with a match.
    Paths,
    /// Paths of files without a match.
    PathsWithout,
    /// JSON lines.
    Json,
}

/// The action of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Searches.
    Search(Output),
    /// Lists the files that would be searched.
    Files,
    /// Lists the file types.
    Types,
    /// Writes a manual page or completions.
    Generate(Generated),
    /// Explains which engine the pattern gets.
    Explain,
    /// Prints a stage of the compiler.
    Program,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode::Search(Output::Lines)
    }
}

/// The texts that `--generate` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generated {
    /// A manual page.
    Man,
    /// Completions for a shell.
    Completions(Shell),
}

/// A request that replaces the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// `-h`
    ShortHelp,
    /// `--help`
    LongHelp,
    /// `-V`, `--version`
    Version,
    /// `--pcre2-version`
    Pcre2Version,
}

/// What to do with files that hold NUL bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Binary {
    /// Stop at the first NUL byte of a file that was found in a folder; print a note instead of
    /// lines for a file that was named.
    #[default]
    Auto,
    /// Search them to the first match, and print a note.
    Search,
    /// Treat them as text.
    Text,
}

/// Where a match must begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Boundary {
    /// Anywhere.
    #[default]
    None,
    /// At the ends of words.
    Word,
    /// At the ends of a line.
    Line,
}

/// When output is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Buffering {
    /// By line on a terminal, else by block.
    #[default]
    Auto,
    /// By line.
    Line,
    /// By block.
    Block,
}

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Case {
    /// They differ.
    #[default]
    Sensitive,
    /// They do not differ.
    Insensitive,
    /// They differ if a pattern has an upper-case letter.
    Smart,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Color {
    /// Never.
    Never,
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Always, with ANSI escapes.
    Ansi,
}

/// Lines around a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// `-B`
    pub(super) before: Option<usize>,
    /// `-A`
    pub(super) after: Option<usize>,
    /// `-C`
    pub(super) both: Option<usize>,
    /// `--passthru`: all lines.
    pub(super) all: bool,
}

impl Around {
    /// The numbers of lines before and after a match.
    pub(super) fn lines(self) -> (usize, usize) {
        let both = self.both.unwrap_or(0);
        (self.before.unwrap_or(both), self.after.unwrap_or(both))
    }

    /// These lines without `--passthru`, which any of the three flags cancels.
    pub(super) fn limited(self) -> Around {
        if self.all {
            Around::default()
        } else {
            self
        }
    }
}

/// How bytes become text.
#[derive(Clone, Debug, Default)]
pub(super) enum Encoding {
    /// As UTF-8, or by a byte order mark.
    #[default]
    Auto,
    /// Without decoding.
    Raw,
    /// From this encoding.
    From(grep_searcher::Encoding),
}

/// The engine that matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Engine {
    /// Our engine.
    #[default]
    Default,
    /// PCRE2.
    Pcre2,
    /// Our engine if it has the pattern, else PCRE2; a graphics card if that is sooner.
    Auto,
    /// Our engine on a graphics card.
    Cuda,
}

/// Whether files are mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mapping {
    /// If few files were named.
    #[default]
    Auto,
    /// If possible.
    Always,
    /// Never.
    Never,
}

/// The source of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternSource {
    /// `-e`
    Given(String),
    /// `-f`
    File(PathBuf),
}

/// The order of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortKey {
    /// By path.
    Path,
    /// By time of the last change.
    Modified,
    /// By time of the last access.
    Accessed,
    /// By time of creation.
    Created,
}

/// The order of `--sort` and `--sortr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    /// The property to sort by.
    pub(super) key: SortKey,
    /// Whether the largest comes first.
    pub(super) reverse: bool,
}

/// A change of the known file types, or of the selected ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypeChange {
    /// Forget the globs of a type.
    Clear(String),
    /// `name:glob`
    Add(String),
    /// `-t`
    Select(String),
    /// `-T`
    Negate(String),
}

/// Which rules about ignoring are off. Each field names its rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NoIgnore {
    /// `.ignore`, `.rgignore`
    pub(super) dot: bool,
    /// `.git/info/exclude`
    pub(super) exclude: bool,
    /// Files named by `--ignore-file`
    pub(super) files: bool,
    /// git's global file
    pub(super) global: bool,
    /// Files of parent folders
    pub(super) parent: bool,
    /// `.gitignore`
    pub(super) vcs: bool,
    /// Complaints about ignore files
    pub(super) messages: bool,
}

/// The parsed command line. Fields are named after their flags.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "a field is documented by its flag")]
pub(super) struct Arguments {
    /// Long names of the flags that were given or cancelled, in their order.
    pub(super) given: Vec<&'static str>,
    /// The program's name, such as `lightfoot grep`.
    pub(super) program: &'static str,
    pub(super) special: Option<Special>,
    pub(super) mode: Mode,
    pub(super) positional: Vec<OsString>,
    pub(super) patterns: Vec<PatternSource>,
    pub(super) and: Vec<String>,
    pub(super) not: Vec<String>,
    pub(super) binary: Binary,
    pub(super) boundary: Boundary,
    pub(super) buffering: Buffering,
    pub(super) byte_offset: bool,
    pub(super) case: Case,
    pub(super) color: Color,
    pub(super) colors: Vec<UserColorSpec>,
    pub(super) column: Option<bool>,
    pub(super) around: Around,
    pub(super) context_separator: Option<Option<Vec<u8>>>,
    pub(super) crlf: bool,
    pub(super) debug: bool,
    pub(super) program_stage: String,
    pub(super) dfa_size_limit: Option<usize>,
    pub(super) encoding: Encoding,
    pub(super) engine: Engine,
    pub(super) explain: bool,
    pub(super) field_context_separator: Option<Vec<u8>>,
    pub(super) field_match_separator: Option<Vec<u8>>,
    pub(super) fixed_strings: bool,
    pub(super) follow: bool,
    pub(super) glob_case_insensitive: bool,
    pub(super) globs: Vec<String>,
    pub(super) heading: Option<bool>,
    pub(super) hidden: bool,
    pub(super) hostname_bin: Option<PathBuf>,
    pub(super) hyperlink_format: HyperlinkFormat,
    pub(super) iglobs: Vec<String>,
    pub(super) ignore_files: Vec<PathBuf>,
    pub(super) ignore_file_case_insensitive: bool,
    pub(super) include_zero: bool,
    pub(super) invert_match: bool,
    pub(super) line_number: Option<bool>,
    pub(super) max_columns: Option<u64>,
    pub(super) max_columns_preview: bool,
    pub(super) max_count: Option<u64>,
    pub(super) max_depth: Option<usize>,
    pub(super) max_filesize: Option<u64>,
    pub(super) mapping: Mapping,
    pub(super) multiline: bool,
    pub(super) multiline_dotall: bool,
    pub(super) no_config: bool,
    pub(super) no_ignore: NoIgnore,
    pub(super) no_messages: bool,
    pub(super) no_require_git: bool,
    pub(super) no_unicode: bool,
    pub(super) null: bool,
    pub(super) null_data: bool,
    pub(super) one_file_system: bool,
    pub(super) only_matching: bool,
    pub(super) path_separator: Option<u8>,
    pub(super) pre: Option<PathBuf>,
    pub(super) pre_globs: Vec<String>,
    pub(super) quiet: bool,
    pub(super) regex_size_limit: Option<usize>,
    pub(super) replace: Option<Vec<u8>>,
    pub(super) search_zip: bool,
    pub(super) sort: Option<Sort>,
    pub(super) stats: bool,
    pub(super) stop_on_nonmatch: bool,
    pub(super) threads: Option<usize>,
    pub(super) trim: bool,
    pub(super) type_changes: Vec<TypeChange>,
    pub(super) unrestricted: u8,
    pub(super) vimgrep: bool,
    pub(super) with_filename: Option<bool>,
}

impl Arguments {
    /// A later kind of output replaces an earlier one; a search never replaces a listing.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        let replaces = matches!(self.mode, Mode::Search(_)) || !matches!(mode, Mode::Search(_));
        if replaces {
            self.mode = mode;
        }
    }
}

/// What the command line gives for a flag.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// The flag.
    On,
    /// Its negation.
    Off,
    /// The flag and a value.
    Value(OsString),
}

impl Given {
    /// Whether the flag itself was given, not its negation.
    pub(super) fn on(&self) -> bool {
        !matches!(self, Given::Off)
    }

    /// The value as text.
    pub(super) fn text(self) -> Result<String> {
        match self {
            Given::Value(value) => {
                value.into_string().map_err(|value| anyhow::anyhow!("{} is not valid UTF-8", value.display()))
            }
            _ => Ok(String::new()),
        }
    }

    /// The value as a path.
    pub(super) fn path(self) -> PathBuf {
        match self {
            Given::Value(value) => value.into(),
            _ => PathBuf::new(),
        }
    }

    /// The value as bytes, with escape sequences resolved.
    pub(super) fn unescaped(self) -> Result<Vec<u8>> {
        let text = self.text().context("use escape sequences for bytes that are not UTF-8")?;
        Ok(grep_cli::unescape(&text))
    }

    /// The value as a number.
    pub(super) fn number<T: std::str::FromStr>(self) -> Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let text = self.text()?;
        text.parse().with_context(|| format!("{text:?} is not a number that fits"))
    }

    /// The value as a size: bytes, or a number with K, M or G.
    pub(super) fn size(self) -> Result<u64> {
        let text = self.text()?;
        match grep_cli::parse_human_readable_size(&text) {
            Ok(size) => Ok(size),
            Err(_) => bail!("{text:?} is not a size: expected bytes, or a number with K, M or G"),
        }
    }
}
