//! Replacement policies: which line of a full set leaves. One file and one line in [`POLICIES`] for
//! each.
//!
//! **What.** A [`Policy`] is a value with a name, the bookkeeping of a cache that follows it
//! ([`Replacement`]), and a slow definition of its choice ([`SetHistory`]). The first member, LRU,
//! is the default and what [`Hierarchy`](crate::Hierarchy) is fast for; [`Refined`](crate::Refined)
//! simulates all.
//!
//! **Definitions.** An empty way, the lowest first, is taken before any line leaves; only then is a
//! policy asked. Each member's file defines it.
//!
//! **To add one.** Write `policy/NAME.rs` with a `POLICY`, and list it here. `tests/refined.rs`
//! holds every member against its definition, and adds one of its own to show that a wrong member
//! is found. A policy need not be listed to be used: all of its parts are public.
//!
//! **Sources.** Smith 1982 for the policies.

mod definition;
mod draw;
mod fifo;
mod lru;
mod random;
mod tree_plru;

pub use definition::{Policy, Replacement, SetHistory};
pub use draw::Draw;

/// All policies; the first is the default.
pub const POLICIES: &[Policy] = &[lru::POLICY, fifo::POLICY, tree_plru::POLICY, random::POLICY];

impl Policy {
    /// Least recently used: the default.
    pub const LRU: Policy = lru::POLICY;

    /// The policy of this name among [`POLICIES`].
    pub fn named(name: &str) -> Option<Policy> {
        POLICIES.iter().copied().find(|policy| policy.name == name)
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::LRU
    }
}
