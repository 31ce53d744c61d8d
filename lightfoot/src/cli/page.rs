//! What `--help` knows of a command, as data: the one table that manual pages and completions are written from.
//!
//! clap's own description of the command line is read back, so that an option which is added there is in the manual and in every shell at once. `grep`, which
//! parses its flags itself, gives its own table in the same form. Hidden commands are left out.

use super::Cli;
use clap::{Arg, ArgAction, Command, CommandFactory};

/// A command.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The words behind `lightfoot`; none for the whole.
    pub words: Vec<String>,
    /// One sentence.
    pub about: String,
    /// Ways to write it.
    pub usage: Vec<String>,
    /// Its options.
    pub groups: Vec<Group>,
    /// Its words that are no options, in order.
    pub places: Vec<Place>,
    /// Commands inside it.
    pub commands: Vec<Page>,
}

/// Options about one subject.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// As help prints it.
    pub title: String,
    /// The options.
    pub options: Vec<Opt>,
}

/// An option.
#[derive(Clone, Debug, Default)]
pub struct Opt {
    /// One letter.
    pub short: Option<char>,
    /// Long names, the first one foremost.
    pub longs: Vec<String>,
    /// The long name that takes it back.
    pub negated: Option<String>,
    /// What its value is called; none for a switch.
    pub value: Option<String>,
    /// The values there are, where they are few.
    pub choices: Vec<Choice>,
    /// The value where none is given.
    pub default: Option<String>,
    /// What it does, in one sentence.
    pub about: String,
}

/// A value that can be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// As it is written.
    pub name: String,
    /// What it means, where that is said.
    pub about: String,
}

/// A word that is no option.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What stands there.
    pub kind: Kind,
    /// The words there are, where they are few.
    pub choices: Vec<Choice>,
}

/// What a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A file, or nobody knows.
    #[default]
    File,
    /// A program; everything behind it is its own.
    Program,
}

impl Opt {
    /// All ways to write it, and to take it back.
    pub fn spellings(&self) -> impl Iterator<Item = String> + '_ {
        self.names().chain(self.negated.iter().map(|long| format!("--{long}")))
    }

    /// The ways to write it that a value follows.
    pub fn valued(&self) -> impl Iterator<Item = String> + '_ {
        self.names().filter(|_| self.value.is_some())
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain(self.longs.iter().map(|long| format!("--{long}")))
    }
}

impl Page {
    /// The whole command line; of `grep` the name alone, whose flags are not clap's.
    pub fn root() -> Page {
        let mut command = Cli::command();
        command.build();
        Page::of(&command, Vec::new())
    }

    fn of(command: &Command, words: Vec<String>) -> Page {
        let inner = |command: &Command| {
            let mut words = words.clone();
            words.push(command.get_name().to_owned());
            Page::of(command, words)
        };
        let commands = command.get_subcommands();
        let commands = commands.filter(|command| !command.is_hide_set() && command.get_name() != "help");
        let commands = commands.map(inner).collect();
        let usage = command.clone().render_usage().to_string();
        let lines = usage.lines().map(|line| line.trim().trim_start_matches("Usage: ").to_owned());
        let arguments: Vec<&Arg> =
            command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
        let options = arguments.iter().filter(|argument| !argument.is_positional());
        let places = arguments.iter().filter(|argument| argument.is_positional());
        Page {
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            usage: lines.collect(),
            groups: vec![Group {
                title: "Options".to_owned(),
                options: options.map(|a| option(a)).collect(),
            }],
            places: places.map(|argument| place(argument)).collect(),
            commands,
            words,
        }
    }

    /// Itself and all commands inside it.
    pub fn all(&self) -> Vec<&Page> {
        std::iter::once(self).chain(self.commands.iter().flat_map(Page::all)).collect()
    }

    /// All options, without their groups.
    pub fn options(&self) -> impl Iterator<Item = &Opt> {
        self.groups.iter().flat_map(|group| &group.options)
    }

    /// `lightfoot index build`
    pub fn name(&self) -> String {
        self.named(" ")
    }

    /// Its name with `between` in place of spaces.
    pub fn named(&self, between: &str) -> String {
        std::iter::once("lightfoot")
            .chain(self.words.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(between)
    }
}

fn option(argument: &Arg) -> Opt {
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = argument.get_value_names().filter(|_| takes).map(|names| names.join(" "));
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let defaults = defaults.collect::<Vec<_>>().join(",");
    Opt {
        short: argument.get_short(),
        longs: argument.get_long().into_iter().map(str::to_owned).collect(),
        negated: None,
        value,
        choices: if takes { choices(argument) } else { Vec::new() },
        default: Some(defaults).filter(|value| takes && !value.is_empty()),
        about: about(argument),
    }
}

fn place(argument: &Arg) -> Place {
    let names = argument.get_value_names().map(|names| names.join(" "));
    let name = names.unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
    let kind = if argument.is_trailing_var_arg_set() { Kind::Program } else { Kind::File };
    Place { name, about: about(argument), kind, choices: choices(argument) }
}

fn about(argument: &Arg) -> String {
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

fn choices(argument: &Arg) -> Vec<Choice> {
    let shown = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let choice = |value: clap::builder::PossibleValue| Choice {
        name: value.get_name().to_owned(),
        about: value.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    shown.map(choice).collect()
}
