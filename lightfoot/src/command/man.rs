//! `lightfoot man [COMMAND]`: manual pages, in the macros of man(7), from the table that help and completions come from.
//!
//! The date is that of `SOURCE_DATE_EPOCH`, where packagers set it, else today's.

use super::complete::root;
use crate::cli::{Choice, Man, Opt, Page};
use crate::exit::{Failure, USAGE};
use crate::report::output::print;
use crate::study::date::{day, today};
use anyhow::Result;
use std::fmt::Write;

/// Statuses of commands that run a program.
const OF_PROGRAMS: &[(&str, &str)] = &[
    ("the program's own", "The program ended by itself."),
    ("128 + N", "Signal N ended the program."),
    ("125", "lightfoot itself failed; the message says how."),
    ("126", "The program cannot be run; the message says why."),
    ("127", "There is no such program."),
    ("130", "Ctrl-C ended the measurement; the report is written and marked partial."),
];

/// Statuses of `grep`.
const OF_GREP: &[(&str, &str)] = &[
    ("0", "A line matched."),
    ("1", "No line matched."),
    ("2", "Something went wrong; with -q, only where no line matched."),
];

/// Statuses of all others.
const OF_OTHERS: &[(&str, &str)] = &[
    ("0", "Done."),
    ("1", "A negative answer, where an option asks for one (--fail-above, --fail-on)."),
    ("2", "The command line or what it names cannot be used; the message says why."),
    ("125", "lightfoot itself failed; the message says how."),
];

/// What is read from the environment.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "Where it is set and not empty, nothing is bold or coloured."),
    (
        "CLICOLOR_FORCE",
        "Where it is set, not empty and not 0, bold is used without a terminal too; CLICOLOR=0 is for never.",
    ),
    ("TERM, CI", "Where TERM is dumb, nothing is bold; unless CI is set, whose logs show it."),
    ("COLUMNS", "Width of reports and messages; otherwise that of the terminal, or 80."),
    ("LIGHTFOOT_TRANSLATIONS", "Folder in which translations are kept for the next run; off keeps none."),
    ("XDG_CACHE_HOME, HOME", "Where that folder lies otherwise."),
];

/// Of `grep` as well.
const ENVIRONMENT_OF_GREP: &[(&str, &str)] = &[(
    "LIGHTFOOT_GREP_CONFIG_PATH, RIPGREP_CONFIG_PATH",
    "A file of options, one word a line; the first that is set counts.",
)];

pub(super) fn run(options: &Man) -> Result<u8> {
    print(&page_of(&options.command)?)?;
    Ok(0)
}

/// The page of a command, by its words.
///
/// # Errors
/// When there is no such command.
pub(super) fn page_of(words: &[String]) -> Result<String> {
    let root = root();
    let found = root.all().into_iter().find(|page| page.words == words);
    match found {
        Some(page) => Ok(manual(page, &root, &date())),
        None => {
            let known: Vec<String> = root.commands.iter().map(|page| page.words.join(" ")).collect();
            let sentence =
                format!("there is no command {}: the commands are {}", words.join(" "), known.join(", "));
            Err(Failure { status: USAGE, sentence }.into())
        }
    }
}

fn date() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    set.map_or_else(today, |seconds| day(seconds / 86_400))
}

fn manual(page: &Page, root: &Page, date: &str) -> String {
    let title = page.named("-");
    let mut out = format!(
        ".TH {} 1 {date} \"lightfoot {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        escaped(&title.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escaped(&title),
        escaped(page.about.trim_end_matches('.'))
    );
    for (index, usage) in page.usage.iter().enumerate() {
        let _ = writeln!(out, "{}.B {}", if index > 0 { ".br\n" } else { "" }, escaped(usage));
    }
    if !page.places.is_empty() {
        out += ".SH ARGUMENTS\n";
        for place in &page.places {
            entry(&mut out, &place.name, &place.about, &place.choices);
        }
    }
    for group in page.groups.iter().filter(|group| !group.options.is_empty()) {
        let _ = writeln!(out, ".SH {}", escaped(&group.title.to_uppercase()));
        for option in &group.options {
            entry(&mut out, &names(option), &sentence(option), &option.choices);
        }
    }
    if !page.commands.is_empty() {
        out += ".SH COMMANDS\n";
        for command in &page.commands {
            entry(&mut out, &command.name(), &command.about, &[]);
        }
    }
    let (is_program, is_grep) = (super::complete::before_program(page).is_some(), page.words == ["grep"]);
    table(
        &mut out,
        "EXIT STATUS",
        if is_grep {
            OF_GREP
        } else if is_program {
            OF_PROGRAMS
        } else {
            OF_OTHERS
        },
    );
    let environment = if is_grep { ENVIRONMENT_OF_GREP } else { &[] };
    table(&mut out, "ENVIRONMENT", &[environment, ENVIRONMENT].concat());
    see_also(&mut out, page, root);
    out
}

fn table(out: &mut String, title: &str, rows: &[(&str, &str)]) {
    let _ = writeln!(out, ".SH {title}");
    for (name, about) in rows {
        entry(out, name, about, &[]);
    }
}

/// A name, what it is, and the values it takes.
fn entry(out: &mut String, name: &str, about: &str, choices: &[Choice]) {
    let _ = writeln!(out, ".TP\n.B {}\n{}", escaped(name), escaped(about));
    if !choices.is_empty() && choices.iter().all(|choice| !choice.about.is_empty()) {
        out.push_str(".RS\n");
        for choice in choices {
            let _ = writeln!(out, ".TP\n.B {}\n{}", escaped(&choice.name), escaped(&choice.about));
        }
        out.push_str(".RE\n");
    } else if !choices.is_empty() {
        let names: Vec<&str> = choices.iter().map(|choice| choice.name.as_str()).collect();
        let _ = writeln!(out, ".br\nValues: {}", escaped(&names.join(", ")));
    }
}

/// `-o FILE, --output=FILE`
fn names(option: &Opt) -> String {
    let value =
        |between: &str| option.value.as_ref().map_or(String::new(), |value| format!("{between}{value}"));
    let short = option.short.map(|short| format!("-{short}{}", value(" ")));
    let longs = option.longs.iter().map(|long| format!("--{long}{}", value("=")));
    short.into_iter().chain(longs).collect::<Vec<_>>().join(", ")
}

fn sentence(option: &Opt) -> String {
    let default = option.default.as_ref().map(|default| format!(" [default: {default}]"));
    let negated = option.negated.as_ref().map(|negated| format!(" --{negated} takes it back."));
    option.about.clone() + &default.unwrap_or_default() + &negated.unwrap_or_default()
}

fn see_also(out: &mut String, page: &Page, root: &Page) {
    let others = root.all().into_iter().filter(|other| {
        let parent = page.words.len() == other.words.len() + 1 && page.words.starts_with(&other.words);
        let child = other.words.len() == page.words.len() + 1 && other.words.starts_with(&page.words);
        parent || child
    });
    let names: Vec<String> = others.map(|other| format!(".BR {} (1)", escaped(&other.named("-")))).collect();
    let _ = writeln!(out, ".SH SEE ALSO\n{}", names.join(" ,\n"));
}

/// Roff's own characters made plain; a line may not begin with a dot or an apostrophe.
fn escaped(text: &str) -> String {
    let plain = text.replace('\\', "\\e").replace('-', "\\-").replace('\n', " ").replace('"', "\\(dq");
    if plain.starts_with(['.', '\'']) {
        format!("\\&{plain}")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_command_has_an_entry() {
        let root = root();
        for page in root.all() {
            let text = page_of(&page.words).unwrap();
            for long in page.options().flat_map(|option| &option.longs) {
                assert!(text.contains(&escaped(&format!("--{long}"))), "{}: --{long}", page.name());
            }
            for command in &page.commands {
                assert!(text.contains(&format!(".B {}\n", escaped(&command.name()))), "{}", command.name());
            }
        }
    }

    #[test]
    fn text_cannot_be_taken_for_a_request() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escaped("a\n'b \\-x"), "a 'b \\e\\-x");
    }

    #[test]
    fn an_unknown_command_is_named() {
        let said = page_of(&["cuont".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("cuont") && said.contains("count"), "{said}");
    }
}
