//! The flags of `grep`: one table that drives parsing, `--help`, the manual page and completions.
//!
//! clap is not used here: the flags override each other in the order in which they come (`-i -s`, `--no-X` after `X`), a short flag may
//! carry its value (`-C3`), and a start of the process has about a millisecond in all. A flag is one entry; adding one touches
//! nothing else. Source of names and grammar: ripgrep 15, whose users these flags are for.

mod filter;
mod output;
mod pattern;
mod search;
mod show;

use super::arguments::{Arguments, Given, Special};
use anyhow::{anyhow, bail, Context, Result};
use std::ffi::OsString;

/// One flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    /// Without its dashes.
    pub(super) long: &'static str,
    /// One letter.
    pub(super) short: Option<char>,
    /// The long name that takes the flag back.
    pub(super) negated: Option<&'static str>,
    /// Other long names.
    pub(super) aliases: &'static [&'static str],
    /// What its value is called; none for a switch.
    pub(super) value: Option<&'static str>,
    /// The values there are, where they are few.
    pub(super) choices: &'static [&'static str],
    /// One sentence.
    pub(super) about: &'static str,
    /// What it changes.
    apply: fn(&mut Arguments, Given) -> Result<()>,
}

impl Flag {
    const fn switch(
        long: &'static str,
        about: &'static str,
        apply: fn(&mut Arguments, Given) -> Result<()>,
    ) -> Flag {
        Flag { long, short: None, negated: None, aliases: &[], value: None, choices: &[], about, apply }
    }

    const fn taking(
        long: &'static str,
        value: &'static str,
        about: &'static str,
        apply: fn(&mut Arguments, Given) -> Result<()>,
    ) -> Flag {
        Flag { value: Some(value), ..Flag::switch(long, about, apply) }
    }

    const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    const fn negated(self, negated: &'static str) -> Flag {
        Flag { negated: Some(negated), ..self }
    }

    const fn alias(self, aliases: &'static [&'static str]) -> Flag {
        Flag { aliases, ..self }
    }

    const fn choices(self, choices: &'static [&'static str]) -> Flag {
        Flag { choices, ..self }
    }

    fn has_name(&self, long: &str) -> bool {
        self.long == long || self.aliases.contains(&long)
    }
}

/// Flags about one subject.
#[derive(Debug)]
pub(super) struct Group {
    /// As help prints it.
    pub(super) title: &'static str,
    /// In the order of the alphabet.
    pub(super) flags: &'static [Flag],
}

/// All flags.
pub(super) const FLAGS: &[Group] = &[
    Group { title: "Patterns", flags: pattern::FLAGS },
    Group { title: "Search", flags: search::FLAGS },
    Group { title: "Which files", flags: filter::FLAGS },
    Group { title: "Output", flags: output::FLAGS },
    Group { title: "Other answers", flags: show::FLAGS },
];

/// All flags, without their groups.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().flat_map(|group| group.flags)
}

/// Reads a command line (without the command's own name).
///
/// # Errors
/// One sentence that names the flag and what is wrong.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments> {
    let mut arguments = Arguments::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            lexopt::Arg::Value(value) => arguments.positional.push(value),
            lexopt::Arg::Short('h') => arguments.special = Some(Special::ShortHelp),
            lexopt::Arg::Short(letter) => {
                let flag = all().find(|flag| flag.short == Some(letter));
                let flag = flag.ok_or_else(|| anyhow!("unrecognized flag -{letter}"))?;
                give(flag, &format!("-{letter}"), &mut parser, &mut arguments)?;
            }
            lexopt::Arg::Long(name) => {
                let name = name.to_owned();
                long(&name, &mut parser, &mut arguments)?;
            }
        }
    }
    Ok(arguments)
}

fn long(name: &str, parser: &mut lexopt::Parser, arguments: &mut Arguments) -> Result<()> {
    let shown = format!("--{name}");
    if let Some(flag) = all().find(|flag| flag.has_name(name)) {
        return give(flag, &shown, parser, arguments);
    }
    match all().find(|flag| flag.negated == Some(name)) {
        Some(flag) => (flag.apply)(arguments, Given::Off).with_context(|| wrong(&shown)),
        None => bail!("unrecognized flag {shown}{}", similar(name)),
    }
}

fn give(flag: &Flag, shown: &str, parser: &mut lexopt::Parser, arguments: &mut Arguments) -> Result<()> {
    let given = match flag.value {
        None => Given::On,
        Some(_) => Given::Value(parser.value().with_context(|| format!("missing value for flag {shown}"))?),
    };
    (flag.apply)(arguments, given).with_context(|| wrong(shown))
}

fn wrong(shown: &str) -> String {
    format!("error parsing flag {shown}")
}

/// A hint at names that share most of their letters' pairs with `name`.
fn similar(name: &str) -> String {
    let names = all().flat_map(|flag| flag.aliases.iter().copied().chain([flag.long]).chain(flag.negated));
    let near: Vec<String> =
        names.filter(|known| likeness(name, known) > 0.5).map(|known| format!("--{known}")).collect();
    if near.is_empty() {
        String::new()
    } else {
        format!(": did you mean {}?", near.join(" or "))
    }
}

/// Share of common pairs of letters, from 0 to 1 (Dice 1945).
fn likeness(a: &str, b: &str) -> f64 {
    let pairs = |text: &str| -> Vec<(u8, u8)> { text.bytes().zip(text.bytes().skip(1)).collect() };
    let (a, mut b) = (pairs(a), pairs(b));
    let total = a.len() + b.len();
    let common =
        a.iter().filter(|pair| b.iter().position(|p| p == *pair).map(|at| b.swap_remove(at)).is_some());
    2.0 * common.count() as f64 / total.max(1) as f64
}

#[cfg(test)]
mod tests;
