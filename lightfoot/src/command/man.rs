//! `lightfoot man [COMMAND]`: writes manual pages from the table that help and completions use too.

use super::complete::root;
use crate::cli::Man;
use anyhow::Result;
use present::exit::{Failure, USAGE};
use present::help::CommandHelp;
use present::manual::manual;
use present::output::print;

pub(super) fn run(options: &Man) -> Result<u8> {
    print(&page_of(&options.command)?)?;
    Ok(0)
}

/// The page of a command, by its words behind the program's name.
///
/// # Errors
/// When there is no such command.
fn page_of(words: &[String]) -> Result<String> {
    let root = root();
    let found = root.all().into_iter().find(|page| &page.words[1..] == words);
    match found {
        Some(page) => Ok(manual(page, &root, env!("CARGO_PKG_VERSION"))),
        None => {
            let known: Vec<&str> = root.commands.iter().map(CommandHelp::last).collect();
            let sentence =
                format!("there is no command {}: the commands are {}", words.join(" "), known.join(", "));
            Err(Failure { status: USAGE, sentence }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_command_has_an_entry() {
        let root = root();
        for page in root.all() {
            let text = page_of(&page.words[1..]).unwrap();
            for long in page.options().flat_map(|option| &option.longs) {
                assert!(text.contains(&format!("--{long}").replace('-', "\\-")), "{}: --{long}", page.name());
            }
            for command in &page.commands {
                assert!(
                    text.contains(&format!(".B {}\n", command.name().replace('-', "\\-"))),
                    "{}",
                    command.name()
                );
            }
        }
    }

    #[test]
    fn an_unknown_command_is_named() {
        let said = page_of(&["cuont".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("cuont") && said.contains("count"), "{said}");
    }
}
