//! `--help`, `-h`, `--version`, and the page that manual and completions are made of, from the table of flags.

use super::flag::{self, Flag, FLAGS};
use crate::cli::{Choice, Group, Opt, Page};
use crate::report::terminal::beside;
use std::fmt::Write;

const USAGE: &str = "\
usage: lightfoot grep [OPTIONS] PATTERN [PATH ...]
       lightfoot grep [OPTIONS] -e PATTERN ... [PATH ...]
       lightfoot grep [OPTIONS] -f FILE ... [PATH ...]
       lightfoot grep [OPTIONS] --files [PATH ...]
       COMMAND | lightfoot grep [OPTIONS] PATTERN
";

const ABOUT: &str =
    "Searches files for lines that match a pattern: folders recursively, except what ignore files name.";

const STATUS: &str = "Exit status: 0 when a line matched, 1 when none did, 2 when something went wrong \
(with -q, 0 as soon as a line matched).";

/// A column of this width holds the flags.
const WIDTH: usize = 34;

/// `-h`
pub(super) fn short() -> String {
    let mut out = format!("{}\n{USAGE}", beside("", ABOUT));
    for group in FLAGS {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let names = names(flag);
            // A long name has a line of its own.
            if names.len() > WIDTH {
                let _ = writeln!(out, "  {names}");
                out += &beside(&format!("  {:<WIDTH$}  ", ""), flag.about);
            } else {
                out += &beside(&format!("  {names:<WIDTH$}  "), flag.about);
            }
        }
    }
    out + "\n" + &beside("", STATUS)
}

/// `--help`
pub(super) fn long() -> String {
    let mut out = format!("{}\n{USAGE}", beside("", ABOUT));
    for group in FLAGS {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let _ = write!(out, "\n  {}\n{}", names(flag), beside("      ", flag.about));
            out.extend(further(flag).iter().map(|line| beside("      ", line)));
        }
    }
    let syntax = "The pattern syntax is that of the regex crate: https://docs.rs/regex/latest/regex/#syntax";
    out + "\n" + &beside("", STATUS) + "\n" + &beside("", syntax)
}

fn further(flag: &Flag) -> Vec<String> {
    let mut lines = Vec::new();
    if !flag.choices.is_empty() {
        lines.push(format!("Values: {}.", flag.choices.join(", ")));
    }
    if let Some(negated) = flag.negated {
        lines.push(format!("--{negated} takes it back."));
    }
    if !flag.aliases.is_empty() {
        lines.push(format!("Also --{}.", flag.aliases.join(", --")));
    }
    lines
}

/// `-m N, --max-count=N`
fn names(flag: &Flag) -> String {
    match (flag.short, flag.value) {
        (Some(short), Some(value)) => format!("-{short} {value}, --{}={value}", flag.long),
        (Some(short), None) => format!("-{short}, --{}", flag.long),
        (None, Some(value)) => format!("--{}={value}", flag.long),
        (None, None) => format!("--{}", flag.long),
    }
}

/// `--version`
pub(super) fn version() -> String {
    format!("lightfoot grep {}\n", env!("CARGO_PKG_VERSION"))
}

/// `--pcre2-version`
pub(super) fn pcre2_version() -> String {
    let (major, minor) = grep_pcre2::version();
    let jit = if grep_pcre2::is_jit_available() { "with" } else { "without" };
    format!("PCRE2 {major}.{minor}, {jit} machine code\n")
}

/// Itself, as manual page and completions need it.
pub(in crate::command) fn page() -> Page {
    let groups = FLAGS.iter().map(group).collect();
    let usage = USAGE.lines().map(|line| line.trim_start_matches("usage:").trim().to_owned());
    Page { about: ABOUT.to_owned(), usage: usage.collect(), groups, ..Page::default() }
}

fn group(group: &flag::Group) -> Group {
    Group { title: group.title.to_owned(), options: group.flags.iter().map(option).collect() }
}

fn option(flag: &Flag) -> Opt {
    let longs = [flag.long].into_iter().chain(flag.aliases.iter().copied());
    let choice = |name: &&str| Choice { name: (*name).to_owned(), about: String::new() };
    Opt {
        short: flag.short,
        longs: longs.map(str::to_owned).collect(),
        negated: flag.negated.map(str::to_owned),
        value: flag.value.map(str::to_owned),
        choices: flag.choices.iter().map(choice).collect(),
        default: None,
        about: flag.about.to_owned(),
    }
}
