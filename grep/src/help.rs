//! `--help`, `-h`, `--version`, and the help for manual page and completions, from the table of
//! flags.

use super::flag::{Flag, Group};
use present::help::{Choice, CommandHelp, Entry, OptionGroup, OptionHelp};
use present::terminal::beside;
use std::fmt::Write;

/// The forms of the command line; `@` is the program.
const USAGE: &str = "\
usage: @ [OPTIONS] PATTERN [PATH ...]
       @ [OPTIONS] -e PATTERN ... [PATH ...]
       @ [OPTIONS] -f FILE ... [PATH ...]
       @ [OPTIONS] --files [PATH ...]
       COMMAND | @ [OPTIONS] PATTERN
";

const ABOUT: &str =
    "Searches files for lines that match a pattern: folders recursively, except what ignore files name.";

const STATUS: &str = "Exit status: 0 when a line matched, 1 when none did, 2 when something went wrong \
(with -q, 0 as soon as a line matched).";

/// The width of the column of flags.
const WIDTH: usize = 34;

/// `-h`
pub(super) fn short(groups: &[Group], program: &str) -> String {
    let mut out = format!("{}\n{}", beside("", ABOUT), usage(program));
    for group in groups {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let names = names(flag);
            // A long name stands on a line of its own.
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
pub(super) fn long(groups: &[Group], program: &str) -> String {
    let mut out = format!("{}\n{}", beside("", ABOUT), usage(program));
    for group in groups {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let _ = write!(out, "\n  {}\n{}", names(flag), beside("      ", flag.about));
            out.extend(further(flag).iter().map(|line| beside("      ", line)));
        }
    }
    let syntax = "The pattern syntax is that of the regex crate: https://docs.rs/regex/latest/regex/#syntax";
    out + "\n" + &beside("", STATUS) + "\n" + &beside("", syntax)
}

fn usage(program: &str) -> String {
    USAGE.replace('@', program)
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

/// The names of a flag, as in `-m N, --max-count=N`.
fn names(flag: &Flag) -> String {
    match (flag.short, flag.value) {
        (Some(short), Some(value)) => format!("-{short} {value}, --{}={value}", flag.long),
        (Some(short), None) => format!("-{short}, --{}", flag.long),
        (None, Some(value)) => format!("--{}={value}", flag.long),
        (None, None) => format!("--{}", flag.long),
    }
}

/// `--version`
pub(super) fn version(program: &str) -> String {
    format!("{program} {}\n", env!("CARGO_PKG_VERSION"))
}

/// `--pcre2-version`
pub(super) fn pcre2_version() -> String {
    let (major, minor) = grep_pcre2::version();
    let jit = if grep_pcre2::is_jit_available() { "with" } else { "without" };
    format!("PCRE2 {major}.{minor}, {jit} machine code\n")
}

/// Exit statuses.
const STATUSES: &[Entry] = &[
    ("0", "A line matched."),
    ("1", "No line matched."),
    ("2", "Something went wrong; with -q, only where no line matched."),
];

/// Variables that only this command reads.
pub(super) const ENVIRONMENT: &[Entry] = &[
    (
        "LIGHTFOOT_GREP_CONFIG_PATH, RIPGREP_CONFIG_PATH",
        "A file of options, one word a line; the first that is set counts.",
    ),
    (
        pattern::vectors::VARIABLE,
        "The widest vector instructions that engines may use, for reports and tests: avx512, avx2, sse2, or portable.",
    ),
];

/// The help from which the manual page and completions are written. `words` are the program and the
/// words before the options.
pub(super) fn command_help(groups: &[Group], words: &[&str]) -> CommandHelp {
    let usage = usage(&words.join(" "));
    let usage = usage.lines().map(|line| line.trim_start_matches("usage:").trim().to_owned());
    CommandHelp {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        about: ABOUT.to_owned(),
        usage: usage.collect(),
        groups: groups.iter().map(group).collect(),
        statuses: STATUSES,
        environment: &[ENVIRONMENT, present::terminal::ENVIRONMENT],
        ..CommandHelp::default()
    }
}

fn group(group: &Group) -> OptionGroup {
    OptionGroup { title: group.title.to_owned(), options: group.flags.iter().map(option).collect() }
}

fn option(flag: &Flag) -> OptionHelp {
    let longs = [flag.long].into_iter().chain(flag.aliases.iter().copied());
    let choice = |name: &&str| Choice { name: (*name).to_owned(), about: String::new() };
    OptionHelp {
        short: flag.short,
        longs: longs.map(str::to_owned).collect(),
        negated: flag.negated.map(str::to_owned),
        value: flag.value.map(str::to_owned),
        choices: flag.choices.iter().map(choice).collect(),
        default: None,
        about: flag.about.to_owned(),
    }
}
