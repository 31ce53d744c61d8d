//! A row of the report of abilities, and the facts from which rows are made.

use crate::host::{Leaves, Tree};
use crate::Machine;
#[cfg(feature = "toml")]
use serde::Serialize;

/// Whether this machine can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum State {
    /// It can.
    Yes,
    /// It can in part, or with less precision.
    Partly,
    /// It cannot.
    No,
}

/// One row of `lightfoot doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Ability {
    /// The subject, in a few words.
    pub name: String,
    /// The answer.
    pub state: State,
    /// The reason for the state, with the value that was found.
    pub reason: String,
    /// What the user can do about it; `None` if nothing needs to be or can be done.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub remedy: Option<String>,
}

impl Ability {
    /// Creates a row without a remedy.
    pub fn new(name: &str, state: State, reason: impl Into<String>) -> Ability {
        Ability { name: name.into(), state, reason: reason.into(), remedy: None }
    }

    /// Adds a remedy to the row.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Ability {
        Ability { remedy: Some(remedy.into()), ..self }
    }
}

/// The facts from which all rows are made.
pub(super) struct Facts {
    pub(super) tree: Tree,
    pub(super) leaves: Leaves,
    pub(super) machine: Machine,
    /// CPUs that this process may use, as the scheduler says; `None` for a recorded machine.
    pub(super) allowed: Option<u32>,
}
