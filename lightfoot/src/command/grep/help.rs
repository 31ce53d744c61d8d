//! `--help`, `-h`, `--version` and the manual page, from the table of flags.

use super::flag::{Flag, FLAGS};
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
    let mut out = format!("{ABOUT}\n\n{USAGE}");
    for group in FLAGS {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let _ = writeln!(out, "  {:<WIDTH$}  {}", names(flag), flag.about);
        }
    }
    let _ = write!(out, "\n{STATUS}\n");
    out
}

/// `--help`
pub(super) fn long() -> String {
    let mut out = format!("{ABOUT}\n\n{USAGE}");
    for group in FLAGS {
        let _ = write!(out, "\n{}:\n", group.title);
        for flag in group.flags {
            let _ = write!(out, "\n  {}\n      {}\n", names(flag), flag.about);
            for line in further(flag) {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
    let _ = write!(out, "\n{STATUS}\n\nThe pattern syntax is that of the regex crate: https://docs.rs/regex/latest/regex/#syntax\n");
    out
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

/// A manual page in roff.
pub(super) fn man() -> String {
    let mut out = format!(
        ".TH LIGHTFOOT-GREP 1 \"\" \"{version}\" \"User Commands\"\n.SH NAME\nlightfoot grep \\- {ABOUT}\n.SH SYNOPSIS\n.nf\n{usage}.fi\n",
        version = env!("CARGO_PKG_VERSION"),
        usage = escaped(USAGE.trim_start_matches("usage: ")),
    );
    for group in FLAGS {
        let _ = writeln!(out, ".SH {}", group.title.to_uppercase());
        for flag in group.flags {
            let _ = writeln!(out, ".TP\n{}\n{}", escaped(&names(flag)), escaped(flag.about));
            for line in further(flag) {
                let _ = writeln!(out, "{}", escaped(&line));
            }
        }
    }
    let _ = writeln!(out, ".SH EXIT STATUS\n{}", escaped(STATUS));
    out
}

/// Roff's own characters made plain; a line may not begin with a dot.
fn escaped(text: &str) -> String {
    let plain = text.replace('\\', "\\\\").replace('-', "\\-");
    plain.replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")
}
