//! What a flag is: an entry of the table, with the paths of the search that implement it.

use crate::arguments::{Arguments, Given};
use crate::settings::Settings;
use anyhow::Result;

/// Which ways of searching give the documented answer with a flag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paths {
    /// The direct path and the general one.
    Both,
    /// The general path alone.
    General,
    /// Both, where the settings are such; else the general path alone.
    BothWhere(fn(&Settings) -> bool),
}

impl Paths {
    /// Whether the direct path is one of them.
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
    /// Without its dashes.
    pub(crate) long: &'static str,
    /// Who implements it.
    pub(crate) paths: Paths,
    /// One letter.
    pub(crate) short: Option<char>,
    /// The long name that takes the flag back.
    pub(crate) negated: Option<&'static str>,
    /// Other long names.
    pub(crate) aliases: &'static [&'static str],
    /// What its value is called; none for a switch.
    pub(crate) value: Option<&'static str>,
    /// The values there are, where they are few.
    pub(crate) choices: &'static [&'static str],
    /// One sentence.
    pub(crate) about: &'static str,
    /// What it changes.
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

/// Flags about one subject.
#[derive(Debug)]
pub(crate) struct Group {
    /// As help prints it.
    pub(crate) title: &'static str,
    /// In the order of the alphabet.
    pub(crate) flags: &'static [Flag],
}
