//! What a shell offers behind each word, for every command of a program: a script for each shell.
//!
//! Scripts are written from the table that help and manual pages come from ([`CommandHelp`]). They
//! complete commands, options, values of options that have few, names that the table lists (tools,
//! studies, machines), and paths elsewhere. Where the measured program begins, its own completions
//! take over.

mod bash;
mod fish;
mod powershell;
mod template;
mod zsh;

use crate::help::CommandHelp;

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// From version 4.
    Bash,
    /// With its completion system.
    Zsh,
    /// The friendly interactive shell.
    Fish,
    /// From version 5.
    Powershell,
}

impl Shell {
    /// All of them.
    pub const ALL: [Shell; 4] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Powershell];
}

/// The script that completes `root`, a whole program, in a shell.
pub fn script(root: &CommandHelp, shell: Shell) -> String {
    match shell {
        Shell::Bash => bash::script(root),
        Shell::Zsh => zsh::script(root),
        Shell::Fish => fish::script(root),
        Shell::Powershell => powershell::script(root),
    }
}
