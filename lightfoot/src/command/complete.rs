//! `lightfoot completions SHELL`: writes the completions of all commands for a shell.

use super::valgrind;
use crate::cli::{self, Completions};
use crate::run::named::MEASURED;
use anyhow::Result;
use instrument::tools::TOOLS;
use machine::PRESETS;
use present::completion::script;
use present::help::{Choice, CommandHelp};
use present::output::print;
use study::STUDIES;

pub(super) fn run(options: &Completions) -> Result<u8> {
    print(&script(&root(), options.shell.into()))?;
    Ok(0)
}

/// The help of the whole command line, with the options of `grep` and `valgrind` and with names of
/// machines, tools and others.
pub(super) fn root() -> CommandHelp {
    let mut root = cli::help::root();
    for page in &mut root.commands {
        if page.last() == "grep" {
            let subject = page.subject;
            *page = CommandHelp { subject, ..grep::command_help(&[cli::help::PROGRAM, "grep"]) };
        }
        if page.last() == "valgrind" {
            let subject = page.subject;
            *page = CommandHelp { subject, ..valgrind::help::page(&[cli::help::PROGRAM, "valgrind"]) };
        }
        enter_names(page);
    }
    let commands: Vec<Choice> = root.commands.iter().map(choice).collect();
    for page in root.commands.iter_mut().filter(|page| page.last() == "man") {
        page.operands[0].choices.clone_from(&commands);
    }
    root
}

fn choice(page: &CommandHelp) -> Choice {
    Choice { name: page.last().to_owned(), about: page.about.clone() }
}

/// Adds names that are data and not syntax.
fn enter_names(page: &mut CommandHelp) {
    let named = |name: &str, about: &str| Choice { name: name.to_owned(), about: about.to_owned() };
    for option in page.groups.iter_mut().flat_map(|group| &mut group.options) {
        option.choices.extend(match option.longs.first().map(String::as_str) {
            Some("machine") => [
                named("host", "The machine that this runs on"),
                named(MEASURED, "The same, as lightfoot doctor --measure found it"),
            ]
            .into_iter()
            .chain(PRESETS.iter().map(|preset| named(preset.name, preset.description)))
            .collect(),
            Some("tool") if option.value.as_deref() == Some("TOOL") => [
                named("count", "Instructions, blocks, loads and stores"),
                named("cache", "Misses in a simulated memory hierarchy"),
            ]
            .into_iter()
            .chain(TOOLS.iter().map(|tool| named(tool.name, tool.description)))
            .collect::<Vec<_>>(),
            _ => Vec::new(),
        });
    }
    let operand = page.operands.first_mut();
    match (page.words.get(1).map(String::as_str), operand) {
        (Some("tool"), Some(operand)) => {
            operand.choices = TOOLS.iter().map(|tool| named(tool.name, tool.description)).collect();
        }
        (Some("study"), Some(operand)) => {
            operand.choices = STUDIES.iter().map(|study| named(study.name, study.about)).collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use present::completion::Shell;

    #[test]
    fn every_option_of_every_command_is_in_every_script() {
        let root = root();
        for shell in Shell::ALL {
            let script = script(&root, shell);
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
        let script = script(&root(), Shell::Bash);
        for name in ["opcode-mix", "search-trees", "sandy-bridge", "callgrind"] {
            assert!(script.contains(name), "{name}");
        }
    }
}
