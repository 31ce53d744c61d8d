//! A row of the answer, and the facts that rows read.

use crate::host::{Leaves, Tree};
use crate::Machine;
#[cfg(feature = "toml")]
use serde::Serialize;

/// Whether something can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum State {
    /// It can be done.
    Yes,
    /// It can be done with less precision, or in part.
    Partly,
    /// It cannot be done.
    No,
}

/// One row of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct Ability {
    /// What is asked, a few words.
    pub name: String,
    /// The answer.
    pub state: State,
    /// Why, with the value that was found.
    pub reason: String,
    /// What to do about it; `None` where nothing needs doing or nothing can be done.
    #[cfg_attr(feature = "toml", serde(skip_serializing_if = "Option::is_none"))]
    pub remedy: Option<String>,
}

impl Ability {
    /// A row that needs no remedy.
    pub fn new(name: &str, state: State, reason: impl Into<String>) -> Ability {
        Ability { name: name.into(), state, reason: reason.into(), remedy: None }
    }

    /// This row with a remedy.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Ability {
        Ability { remedy: Some(remedy.into()), ..self }
    }
}

/// Where the rows read from.
pub(super) struct Facts {
    pub(super) tree: Tree,
    pub(super) leaves: Leaves,
    pub(super) machine: Machine,
    /// CPUs that this process may use, as the scheduler says; `None` for a recorded machine.
    pub(super) allowed: Option<u32>,
}
