//! Finds the files: walks folders by the rules of ignore files, globs and types, and sorts what it
//! finds.
//!
//! The crate `ignore` implements the rules. This file decides which of its entries are searched: a
//! path that was given is searched whatever it is, and one that was found must be a file.

use super::arguments::{Sort, SortKey, TypeChange};
use super::say;
use super::settings::Settings;
use anyhow::Result;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use ignore::{DirEntry, WalkBuilder};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file, or standard input, to search.
#[derive(Debug)]
pub(super) struct Haystack {
    /// The path as printed.
    pub(super) path: PathBuf,
    /// Whether it was given on the command line.
    pub(super) named: bool,
    /// Whether it is standard input.
    pub(super) stdin: bool,
}

impl Haystack {
    /// The haystack of an entry of the walk, if it is to be searched.
    pub(super) fn new(entry: Result<DirEntry, ignore::Error>, implicit_path: bool) -> Option<Haystack> {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                say::error(error);
                return None;
            }
        };
        if let Some(error) = entry.error() {
            say::ignore(error);
        }
        let stdin = entry.is_stdin();
        // A given path has depth 0. A link to a folder is walked, not read.
        let named = stdin || (entry.depth() == 0 && !is_folder(&entry));
        if !named && !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return None;
        }
        let path = entry.path();
        let path = if implicit_path { path.strip_prefix("./").unwrap_or(path) } else { path };
        Some(Haystack { path: path.to_owned(), named, stdin })
    }

    /// The path that results show.
    pub(super) fn shown(&self) -> &Path {
        if self.stdin {
            Path::new("<stdin>")
        } else {
            &self.path
        }
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    let Some(kind) = entry.file_type() else { return false };
    kind.is_dir() || (entry.path_is_symlink() && entry.path().is_dir())
}

/// The haystack of a search that names one file, or standard input, and needs no walk and no ignore
/// file.
pub(super) fn alone(settings: &Settings) -> Option<Haystack> {
    let arguments = &settings.arguments;
    let ruled = !(arguments.globs.is_empty()
        && arguments.iglobs.is_empty()
        && arguments.type_changes.is_empty()
        && arguments.ignore_files.is_empty());
    let [path] = settings.paths.as_slice() else { return None };
    let stdin = path == Path::new("-");
    // The walk treats all other kinds of paths.
    let is_plain = stdin || path.metadata().is_ok_and(|about| about.is_file());
    (!ruled && is_plain).then(|| Haystack { path: path.clone(), named: true, stdin })
}

/// Builds the walk.
///
/// # Errors
/// When a glob or type is malformed or unknown.
pub(super) fn builder(settings: &Settings) -> Result<WalkBuilder> {
    let arguments = &settings.arguments;
    let mut builder = WalkBuilder::new(&settings.paths[0]);
    for path in &settings.paths[1..] {
        builder.add(path);
    }
    if !arguments.no_ignore.files {
        for path in &arguments.ignore_files {
            if let Some(error) = builder.add_ignore(path) {
                say::ignore(error);
            }
        }
    }
    let off = arguments.no_ignore;
    builder
        .max_depth(arguments.max_depth)
        .follow_links(arguments.follow)
        .max_filesize(arguments.max_filesize)
        .threads(settings.threads)
        .same_file_system(arguments.one_file_system)
        .skip_stdout(settings.searches())
        .overrides(globs(settings)?)
        .hidden(!arguments.hidden)
        .parents(!off.parent)
        .ignore(!off.dot)
        .git_global(!off.vcs && !off.global)
        .git_ignore(!off.vcs)
        .git_exclude(!off.vcs && !off.exclude)
        .require_git(!arguments.no_require_git)
        .ignore_case_insensitive(arguments.ignore_file_case_insensitive)
        .current_dir(&settings.folder);
    // Building the types takes about a millisecond, so they are built only if flags use them.
    if !arguments.type_changes.is_empty() {
        builder.types(types(&arguments.type_changes)?);
    }
    if !off.dot {
        builder.add_custom_ignore_filename(".rgignore");
    }
    if settings.sort() == Some(Sort { key: SortKey::Path, reverse: false }) {
        builder.sort_by_file_name(std::ffi::OsStr::cmp);
    }
    Ok(builder)
}

/// The known types after the user's changes.
///
/// # Errors
/// When a type is unknown or a glob is malformed.
pub(super) fn types(changes: &[TypeChange]) -> Result<Types> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    for change in changes {
        match change {
            TypeChange::Clear(name) => {
                builder.clear(name);
            }
            TypeChange::Add(definition) => {
                builder.add_def(definition)?;
            }
            TypeChange::Select(name) => {
                builder.select(name);
            }
            TypeChange::Negate(name) => {
                builder.negate(name);
            }
        }
    }
    Ok(builder.build()?)
}

fn globs(settings: &Settings) -> Result<Override> {
    let arguments = &settings.arguments;
    if arguments.globs.is_empty() && arguments.iglobs.is_empty() {
        return Ok(Override::empty());
    }
    let mut builder = OverrideBuilder::new(&settings.folder);
    builder.case_insensitive(arguments.glob_case_insensitive)?;
    for glob in &arguments.globs {
        builder.add(glob)?;
    }
    builder.case_insensitive(true)?;
    for glob in &arguments.iglobs {
        builder.add(glob)?;
    }
    Ok(builder.build()?)
}

/// The globs of `--pre-glob`.
///
/// # Errors
/// When a glob is malformed.
pub(super) fn pre_globs(settings: &Settings) -> Result<Override> {
    let mut builder = OverrideBuilder::new(&settings.folder);
    for glob in &settings.arguments.pre_globs {
        builder.add(glob)?;
    }
    Ok(builder.build()?)
}

/// Haystacks in the requested order; in their own order if none was requested or the walk sorts
/// them.
pub(super) fn sorted<'h>(
    haystacks: impl Iterator<Item = Haystack> + 'h,
    sort: Option<Sort>,
) -> Box<dyn Iterator<Item = Haystack> + 'h> {
    let Some(Sort { key, reverse }) = sort else { return Box::new(haystacks) };
    let time: fn(&Metadata) -> io::Result<SystemTime> = match key {
        SortKey::Path if !reverse => return Box::new(haystacks),
        SortKey::Path => {
            let mut all: Vec<Haystack> = haystacks.collect();
            all.sort_by(|one, other| other.path.cmp(&one.path));
            return Box::new(all.into_iter());
        }
        SortKey::Modified => Metadata::modified,
        SortKey::Accessed => Metadata::accessed,
        SortKey::Created => Metadata::created,
    };
    let timed = |haystack: Haystack| {
        let found = time_of(&haystack.path, time);
        (haystack, found)
    };
    let mut all: Vec<(Haystack, Option<SystemTime>)> = haystacks.map(timed).collect();
    // Files without a time come last, or first in reverse order.
    let order = |time: &Option<SystemTime>| (time.is_none(), *time);
    all.sort_by(
        |(_, one), (_, other)| {
            if reverse {
                order(other).cmp(&order(one))
            } else {
                order(one).cmp(&order(other))
            }
        },
    );
    Box::new(all.into_iter().map(|(haystack, _)| haystack))
}

fn time_of(path: &Path, time: fn(&Metadata) -> io::Result<SystemTime>) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| time(&metadata)).ok()
}
