//! The flags of `grep`: one table that drives parsing, `--help`, the manual page and completions.
//!
//! clap is not used here: flags override each other in their order (`-i -s`, `--no-X` after `X`), a
//! short flag may include its value (`-C3`), and a start of the process may take only about a
//! millisecond. A flag is one entry of the file of its subject: its names, the paths that implement
//! it, a sentence, and what it changes in [`Arguments`]. Parser, help, manual page, completions and
//! the choice of a path read the entry. The direct path takes a search only if the entries of all
//! given flags allow it. Source of names and grammar: ripgrep 15, whose users these flags are for.

mod entry;
mod filter;
mod output;
mod pattern;
mod search;
mod show;

pub(super) use entry::{Flag, Group};

use crate::arguments::{Arguments, Given, Special};
use crate::settings::Settings;
use anyhow::{anyhow, bail, Context, Result};
use std::ffi::OsString;

/// All flags.
pub(super) const FLAGS: &[Group] = &[
    Group { title: "Patterns", flags: pattern::FLAGS },
    Group { title: "Search", flags: search::FLAGS },
    Group { title: "Which files", flags: filter::FLAGS },
    Group { title: "Output", flags: output::FLAGS },
    Group { title: "Other answers", flags: show::FLAGS },
];

/// The flags of some groups.
pub(super) fn all(groups: &[Group]) -> impl Iterator<Item = &'static Flag> + '_ {
    groups.iter().flat_map(|group| group.flags)
}

/// Whether the direct path implements every flag that was given.
pub(super) fn direct_implements(groups: &[Group], settings: &Settings) -> bool {
    settings.arguments.given.iter().all(|long| {
        all(groups).find(|flag| flag.long == *long).is_some_and(|flag| flag.paths.direct(settings))
    })
}

/// Parses a command line (without the command's own name) by a table of flags.
///
/// # Errors
/// One sentence that names the flag and what is wrong.
pub(super) fn parse(groups: &[Group], words: impl IntoIterator<Item = OsString>) -> Result<Arguments> {
    let mut arguments = Arguments::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            lexopt::Arg::Value(value) => arguments.positional.push(value),
            lexopt::Arg::Short('h') => arguments.special = Some(Special::ShortHelp),
            lexopt::Arg::Short(letter) => {
                let flag = all(groups).find(|flag| flag.short == Some(letter));
                let flag = flag.ok_or_else(|| anyhow!("unrecognized flag -{letter}"))?;
                let given = value(flag, &format!("-{letter}"), &mut parser)?;
                give(flag, &format!("-{letter}"), given, &mut arguments)?;
            }
            lexopt::Arg::Long(name) => {
                let name = name.to_owned();
                long(groups, &name, &mut parser, &mut arguments)?;
            }
        }
    }
    Ok(arguments)
}

fn long(groups: &[Group], name: &str, parser: &mut lexopt::Parser, arguments: &mut Arguments) -> Result<()> {
    let shown = format!("--{name}");
    if let Some(flag) = all(groups).find(|flag| flag.has_name(name)) {
        let given = value(flag, &shown, parser)?;
        return give(flag, &shown, given, arguments);
    }
    match all(groups).find(|flag| flag.negated == Some(name)) {
        Some(flag) => give(flag, &shown, Given::Off, arguments),
        None => bail!("unrecognized flag {shown}{}", similar(groups, name)),
    }
}

/// Reads the value of a flag from the command line.
fn value(flag: &Flag, shown: &str, parser: &mut lexopt::Parser) -> Result<Given> {
    Ok(match flag.value {
        None => Given::On,
        Some(_) => Given::Value(parser.value().with_context(|| format!("missing value for flag {shown}"))?),
    })
}

fn give(flag: &Flag, shown: &str, given: Given, arguments: &mut Arguments) -> Result<()> {
    arguments.given.push(flag.long);
    (flag.apply)(arguments, given).with_context(|| wrong(shown))
}

fn wrong(shown: &str) -> String {
    format!("error parsing flag {shown}")
}

/// A hint with names that share most pairs of letters with `name`.
fn similar(groups: &[Group], name: &str) -> String {
    let names =
        all(groups).flat_map(|flag| flag.aliases.iter().copied().chain([flag.long]).chain(flag.negated));
    let near: Vec<String> =
        names.filter(|known| likeness(name, known) > 0.5).map(|known| format!("--{known}")).collect();
    if near.is_empty() {
        String::new()
    } else {
        format!(": did you mean {}?", near.join(" or "))
    }
}

/// The share of common pairs of letters, from 0 to 1 (Dice 1945).
fn likeness(name: &str, other: &str) -> f64 {
    let pairs = |text: &str| -> Vec<(u8, u8)> { text.bytes().zip(text.bytes().skip(1)).collect() };
    let (name, mut other) = (pairs(name), pairs(other));
    let total = name.len() + other.len();
    let common = name.iter().filter(|pair| {
        other.iter().position(|shared| shared == *pair).map(|at| other.swap_remove(at)).is_some()
    });
    2.0 * common.count() as f64 / total.max(1) as f64
}

#[cfg(test)]
mod tests;
