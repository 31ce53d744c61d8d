//! What `--help` knows of a command, as data: the one table that manual pages and completions are
//! written from.
//!
//! Who parses a command line fills it: `lightfoot` reads clap's own description of its commands
//! back, so that an option which is added there is in the manual and in every shell at once;
//! `grep`, which parses its flags itself, gives its own table.

/// A command.
#[derive(Clone, Debug, Default)]
pub struct CommandHelp {
    /// The program and the words behind it, such as `lightfoot index build`.
    pub words: Vec<String>,
    /// One sentence.
    pub about: String,
    /// What it is about among the commands beside it; empty where they are not grouped.
    pub subject: &'static str,
    /// What the manual page says before the options, by paragraph.
    pub description: &'static [&'static str],
    /// Ways to write it.
    pub usage: Vec<String>,
    /// Its options.
    pub groups: Vec<OptionGroup>,
    /// Its words that are no options, in order.
    pub operands: Vec<Operand>,
    /// Commands inside it.
    pub commands: Vec<CommandHelp>,
    /// How it can end: exit statuses and what they mean.
    pub statuses: &'static [Entry],
    /// Variables of the environment that it reads.
    pub environment: &'static [&'static [Entry]],
}

/// A name and what it means.
pub type Entry = (&'static str, &'static str);

/// Options about one subject.
#[derive(Clone, Debug, Default)]
pub struct OptionGroup {
    /// As help prints it.
    pub title: String,
    /// The options.
    pub options: Vec<OptionHelp>,
}

/// An option.
#[derive(Clone, Debug, Default)]
pub struct OptionHelp {
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
pub struct Operand {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What stands there.
    pub kind: OperandKind,
    /// The words there are, where they are few.
    pub choices: Vec<Choice>,
}

/// What a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperandKind {
    /// A file, or nobody knows.
    #[default]
    File,
    /// A program; everything behind it is its own.
    Program,
}

impl OptionHelp {
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

impl CommandHelp {
    /// Itself and all commands inside it.
    pub fn all(&self) -> Vec<&CommandHelp> {
        std::iter::once(self).chain(self.commands.iter().flat_map(CommandHelp::all)).collect()
    }

    /// All options, without their groups.
    pub fn options(&self) -> impl Iterator<Item = &OptionHelp> {
        self.groups.iter().flat_map(|group| &group.options)
    }

    /// `lightfoot index build`
    pub fn name(&self) -> String {
        self.named(" ")
    }

    /// Its last word: what it is called among the commands beside it.
    pub fn last(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    /// How many operands come before the program that it runs; `None` where it runs none.
    pub fn before_program(&self) -> Option<usize> {
        self.operands.iter().position(|operand| operand.kind == OperandKind::Program)
    }

    /// Its name with `between` in place of spaces.
    pub fn named(&self, between: &str) -> String {
        self.words.join(between)
    }
}
