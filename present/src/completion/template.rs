//! What the scripts of all shells have in common: the name of the program in them, and lists of
//! words.

use crate::help::{Choice, CommandHelp};

/// A script with the program's name in it, as a word (`@NAME@`) and as a part of a function's name
/// (`@ID@`).
pub(super) fn with_names(root: &CommandHelp, script: &str) -> String {
    let name = root.name();
    script.replace("@NAME@", &name).replace("@ID@", &name.replace('-', "_"))
}

/// Words between spaces.
pub(super) fn words(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(" ")
}
