//! `lightfoot completions SHELL`: what a shell offers behind each word, for every command.
//!
//! Scripts are written from the same table as help and manual pages ([`Page`]). They complete commands, options, values of options that have few, names that
//! this lightfoot knows (tools, studies, machines), and paths elsewhere. Where the measured program begins, its own completions take over.

mod bash;
mod fish;
mod powershell;
mod zsh;

use crate::cli::{Choice, Completions, Page, Shell};
use crate::report::output::print;
use crate::study::STUDIES;
use anyhow::Result;
use instrument::tools::TOOLS;
use machine::PRESETS;

pub(super) fn run(options: &Completions) -> Result<u8> {
    print(&script(options.shell))?;
    Ok(0)
}

/// The script for a shell.
pub(super) fn script(shell: Shell) -> String {
    let root = root();
    match shell {
        Shell::Bash => bash::script(&root),
        Shell::Zsh => zsh::script(&root),
        Shell::Fish => fish::script(&root),
        Shell::Powershell => powershell::script(&root),
    }
}

/// The whole command line, with `grep`'s flags and the names that are known.
pub(super) fn root() -> Page {
    let mut root = Page::root();
    for page in &mut root.commands {
        if page.words == ["grep"] {
            *page = Page { words: page.words.clone(), ..super::grep::page() };
        }
        enter_names(page);
    }
    let commands: Vec<Choice> = root.commands.iter().map(choice).collect();
    for page in root.commands.iter_mut().filter(|page| page.words == ["man"]) {
        page.places[0].choices.clone_from(&commands);
    }
    root
}

fn choice(page: &Page) -> Choice {
    Choice { name: page.words.last().cloned().unwrap_or_default(), about: page.about.clone() }
}

/// Names that are data, not syntax.
fn enter_names(page: &mut Page) {
    let named = |name: &str, about: &str| Choice { name: name.to_owned(), about: about.to_owned() };
    for option in page.groups.iter_mut().flat_map(|group| &mut group.options) {
        option.choices.extend(match option.longs.first().map(String::as_str) {
            Some("machine") => std::iter::once(named("host", "The machine that this runs on"))
                .chain(PRESETS.iter().map(|preset| named(preset.name, preset.description)))
                .collect(),
            Some("tool") => [
                named("count", "Instructions, blocks, loads and stores"),
                named("cache", "Misses in a simulated memory hierarchy"),
            ]
            .into_iter()
            .chain(TOOLS.iter().map(|tool| named(tool.name, tool.description)))
            .collect::<Vec<_>>(),
            _ => Vec::new(),
        });
    }
    let places = page.places.first_mut();
    match (page.words.first().map(String::as_str), places) {
        (Some("tool"), Some(place)) => {
            place.choices = TOOLS.iter().map(|tool| named(tool.name, tool.description)).collect();
        }
        (Some("study"), Some(place)) => {
            place.choices = STUDIES.iter().map(|study| named(study.name, study.about)).collect();
        }
        _ => {}
    }
}

/// Words between spaces.
fn words(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// How many words that are no options come before the program; `None` where no program is run.
pub(super) fn before_program(page: &Page) -> Option<usize> {
    page.places.iter().position(|place| place.kind == crate::cli::Kind::Program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_every_command_is_in_every_script() {
        let root = root();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Powershell] {
            let script = script(shell);
            for page in root.all() {
                for option in page.options() {
                    for long in option.longs.iter().chain(&option.negated) {
                        // fish writes names without their dashes.
                        let written = [format!("--{long}"), format!("-l {long} "), format!("-l {long}\n")];
                        assert!(
                            written.iter().any(|name| script.contains(name)),
                            "{shell:?}: {} --{long}",
                            page.name()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn names_that_are_data_are_offered() {
        let script = script(Shell::Bash);
        for name in ["opcode-mix", "search-trees", "sandy-bridge", "callgrind"] {
            assert!(script.contains(name), "{name}");
        }
    }
}
