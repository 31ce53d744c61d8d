//! Searches files for lines that match a pattern, with the flags, the output and the exit statuses
//! of ripgrep.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | the words of a command line | the search, on standard output | [`main`] |
//! | a program that offers the search | its help, manual page, completions | [`command_help`] |
//!
//! `flag` reads the command line into `arguments`, `settings` interprets it, `walk` finds the
//! files, and `search` runs workers over them. `worker` is the general path, with every kind of
//! output; `direct` is the fast path for most searches. Both print the same bytes, and the table of
//! flags states which paths implement each flag. The engine is the crate `pattern`. The command
//! line is parsed here and not by clap, because flags override each other in their order and a
//! start may take only a millisecond. Exit status: 0 a match, 1 none, 2 an error (an error wins
//! unless `-q`).
//!
//! It is the command `lightfoot grep`, and a program of its own, `lightfoot-grep`.

#![forbid(unsafe_code)]

mod arguments;
mod card;
mod command;
mod config;
mod direct;
mod explain;
mod flag;
mod help;
mod list;
mod matching;
mod outcome;
mod query;
mod results;
mod say;
mod search;
mod settings;
mod stdout;
mod walk;
mod worker;
mod writer;

pub use command::{command_help, main, Program};
