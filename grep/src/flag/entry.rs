//! The definition of a flag: an entry of the table, with the paths of the search that implement it.

use crate::arguments::{Arguments, Given};
use crate::settings::Settings;
use anyhow::Result;

/// The ways of searching that give the documented answer with a flag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paths {
    /// The direct path and the general one.
    Both,
    /// Only the general path.
    General,
    /// Both paths if the condition holds for the settings, else only the general path.
    BothWhere(fn(&Settings) -> bool),
}

impl Paths {
    /// Whether the direct path implements the flag.
    pub(super) fn direct(self, settings: &Settings) -> bool {
        match self {
            Paths::Both => true,
            Paths::General => false,
            Paths::BothWhere(holds) => holds(settings),
        }
    }
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    /// The long name, without dashes.
    pub(crate) long: &'static str,
    /// The paths that implement it.
    pub(crate) paths: Paths,
    /// The short name, one letter.
    pub(crate) short: Option<char>,
    /// The long name that cancels the flag.
    pub(crate) negated: Option<&'static str>,
    /// Other long names.
    pub(crate) aliases: &'static [&'static str],
    /// The name of its value; `None` for a switch.
    pub(crate) value: Option<&'static str>,
    /// The possible values, if they are few.
    pub(crate) choices: &'static [&'static str],
    /// One sentence of help.
    pub(crate) about: &'static str,
    /// Changes the arguments.
    pub(super) apply: fn(&mut Arguments, Given) -> Result<()>,
}

impl Flag {
    pub(super) const fn switch(
        long: &'static str,
        paths: Paths,
        about: &'static str,
        apply: fn(&mut Arguments, Given) -> Result<()>,
    ) -> Flag {
        Flag {
            long,
            paths,
            short: None,
            negated: None,
            aliases: &[],
            value: None,
            choices: &[],
            about,
            apply,
        }
    }

    pub(super) const fn taking(
        long: &'static str,
        paths: Paths,
        value: &'static str,
        about: &'static str,
        apply: fn(&mut Arguments, Given) -> Result<()>,
    ) -> Flag {
        Flag { value: Some(value), ..Flag::switch(long, paths, about, apply) }
    }

    pub(super) const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    pub(super) const fn negated(self, negated: &'static str) -> Flag {
        Flag { negated: Some(negated), ..self }
    }

    pub(super) const fn alias(self, aliases: &'static [&'static str]) -> Flag {
        Flag { aliases, ..self }
    }

    pub(super) const fn choices(self, choices: &'static [&'static str]) -> Flag {
        Flag { choices, ..self }
    }

    pub(super) fn has_name(&self, long: &str) -> bool {
        self.long == long || self.aliases.contains(&long)
    }
}

/// Flags of one subject.
#[derive(Debug)]
pub(crate) struct Group {
    /// The title in the help.
    pub(crate) title: &'static str,
    /// The flags in alphabetical order.
    pub(crate) flags: &'static [Flag],
}
