//! Replacement policies: which line of a full set leaves. One file and one line in [`POLICIES`] for
//! each policy or family.
//!
//! **What.** A [`Policy`] is a value with a name, the bookkeeping of a cache that follows it
//! ([`Replacement`]), and its slow [`Definition`]; where the orders of uses and entries decide,
//! [`SetHistory::definition`] makes one. The first member, LRU, is the default and what
//! [`Hierarchy`](crate::Hierarchy) is fast for; [`Refined`](crate::Refined) simulates all.
//!
//! **Definitions.** An empty way, the lowest first, is taken before any line leaves; only then is a
//! policy asked. Each member's file defines it, and says where it differs.
//!
//! **To add one.** Write `policy/NAME.rs` with a `POLICY`, and list it here. `tests/refined.rs`
//! holds every member against its definition, and adds one of its own to show that a wrong member
//! is found. A policy need not be listed to be used: all of its parts are public.
//!
//! **Sources.** Smith 1982 for the first four; Abel and Reineke 2020 for the others.

mod definition;
mod draw;
mod duel;
mod fifo;
mod lru;
mod lru_plru4;
mod mru;
mod qlru;
mod random;
mod tree_plru;

pub use definition::{Definition, Fill, Policy, Repeats, Replacement, SetHistory, Shape, Victim};
pub use draw::Draw;

/// All policies, and one member of each family; the first is the default.
pub const POLICIES: &[Policy] = &[
    lru::POLICY,
    fifo::POLICY,
    tree_plru::POLICY,
    random::POLICY,
    mru::POLICY,
    mru::SLOW_TO_START,
    mru::NRU,
    lru_plru4::POLICY,
    qlru::POLICY,
    duel::POLICY,
];

impl Policy {
    /// Least recently used: the default.
    pub const LRU: Policy = lru::POLICY;

    /// The policy of this name: one of [`POLICIES`], or one that [`machine::Replacement`] reads.
    pub fn named(name: &str) -> Option<Policy> {
        name.parse().ok().and_then(Policy::of)
    }

    /// The policy that a description names; `None` only for a name that no file here defines.
    pub fn of(replacement: machine::Replacement) -> Option<Policy> {
        match replacement {
            machine::Replacement::Qlru(rules) => Some(qlru::policy(rules)),
            machine::Replacement::Duel(rivals) => Some(duel::policy(rivals)),
            plain => {
                let name = plain.to_string();
                POLICIES.iter().copied().find(|policy| policy.name == name)
            }
        }
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::LRU
    }
}
