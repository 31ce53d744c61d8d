//! Manual pages, in the macros of man(7), from the table that also gives help and completions.
//!
//! The date is that of `SOURCE_DATE_EPOCH` if packagers set it, and otherwise today's.

use crate::date::{day, today};
use crate::help::{Choice, CommandHelp, Entry, OptionHelp};
use std::fmt::Write;

fn date() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    set.map_or_else(today, |seconds| day(seconds / 86_400))
}

/// The page of `page`, a command of `root`; `version` is that of the program.
pub fn manual(page: &CommandHelp, root: &CommandHelp, version: &str) -> String {
    dated(page, root, version, &date())
}

fn dated(page: &CommandHelp, root: &CommandHelp, version: &str, date: &str) -> String {
    // Pages are named like `lightfoot-count`, as `man lightfoot count` looks them up.
    let title = page.named("-");
    let mut out = format!(
        ".TH {} 1 {date} \"{} {version}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        escaped(&title.to_uppercase()),
        escaped(&root.name()),
        escaped(&title),
        escaped(page.about.trim_end_matches('.'))
    );
    for (index, usage) in page.usage.iter().enumerate() {
        // Each form of the usage takes its own line.
        let _ = writeln!(out, "{}.B {}", if index > 0 { ".br\n" } else { "" }, escaped(usage));
    }
    if !page.description.is_empty() {
        let paragraphs = page.description.iter().map(|text| escaped(text) + "\n");
        out += &format!(".SH DESCRIPTION\n{}", paragraphs.collect::<Vec<_>>().join(".PP\n"));
    }
    if !page.operands.is_empty() {
        out += ".SH ARGUMENTS\n";
        for operand in &page.operands {
            entry(&mut out, &operand.name, &operand.about, &operand.choices);
        }
    }
    for group in page.groups.iter().filter(|group| !group.options.is_empty()) {
        let _ = writeln!(out, ".SH {}", escaped(&group.title.to_uppercase()));
        for option in &group.options {
            entry(&mut out, &names(option), &sentence(option), &option.choices);
        }
    }
    // man-pages(7) puts the exit status before the environment, and the references last.
    commands(&mut out, page);
    table(&mut out, "EXIT STATUS", page.statuses);
    table(&mut out, "ENVIRONMENT", &page.environment.concat());
    see_also(&mut out, page, root);
    out
}

/// Its commands, by subject.
fn commands(out: &mut String, page: &CommandHelp) {
    if page.commands.is_empty() {
        return;
    }
    *out += ".SH COMMANDS\n";
    let mut subject = "";
    for command in &page.commands {
        if command.subject != subject {
            let _ = writeln!(out, ".SS {}", escaped(command.subject));
            subject = command.subject;
        }
        entry(out, &command.name(), &command.about, &[]);
    }
}

fn table(out: &mut String, title: &str, rows: &[Entry]) {
    if rows.is_empty() {
        return;
    }
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
fn names(option: &OptionHelp) -> String {
    let value =
        |between: &str| option.value.as_ref().map_or(String::new(), |value| format!("{between}{value}"));
    let short = option.short.map(|short| format!("-{short}{}", value(" ")));
    let longs = option.longs.iter().map(|long| format!("--{long}{}", value("=")));
    short.into_iter().chain(longs).collect::<Vec<_>>().join(", ")
}

fn sentence(option: &OptionHelp) -> String {
    let default = option.default.as_ref().map(|default| format!(" [default: {default}]"));
    let negated = option.negated.as_ref().map(|negated| format!(" --{negated} takes it back."));
    option.about.clone() + &default.unwrap_or_default() + &negated.unwrap_or_default()
}

fn see_also(out: &mut String, page: &CommandHelp, root: &CommandHelp) {
    let others = root.all().into_iter().filter(|other| {
        let parent = page.words.len() == other.words.len() + 1 && page.words.starts_with(&other.words);
        let child = other.words.len() == page.words.len() + 1 && other.words.starts_with(&page.words);
        parent || child
    });
    let names: Vec<String> = others.map(|other| format!(".BR {} (1)", escaped(&other.named("-")))).collect();
    if names.is_empty() {
        return;
    }
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
    fn text_cannot_be_taken_for_a_request() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escaped("a\n'b \\-x"), "a 'b \\e\\-x");
    }
}
