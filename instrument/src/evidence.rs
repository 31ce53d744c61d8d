//! Evidence that the program changed memory that it shares with the host.
//!
//! **What.** Rings, contexts and counters are written by generated code, in the program's own
//! address space: a stray pointer or a malicious program can write there too. The host checks every
//! number that it reads there against the values that generated code can have written. The first
//! impossible number is noted here, by the control thread or the observer's thread. **Why this
//! way.** All parts of a run share one cell, and the host reads it after each stop, so no part
//! needs a way back to the host. The run then ends with an error, because one false number makes
//! all others doubtful. **Leaves out** forged numbers that are possible.

use crate::error::{Error, ErrorKind};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A number that generated code cannot have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    /// A ring's position lies outside its segment.
    Position(u64),
    /// The number names no exit.
    Exit(u32),
    /// A record names a site or block that does not exist, or an access that cannot have happened.
    Record(u64, u32, u32),
    /// A count is larger than the program had time for.
    Count(u64),
    /// A counter had a larger value before.
    Backwards(u64, u64),
    /// A branch was taken more often than its block ran.
    Taken(u64, u64),
    /// More control transfers lead to a block than it has executions.
    Entries(u64, u64),
    /// More references were recorded than the executed blocks can have made.
    References(u64, u64),
}

impl fmt::Display for Forgery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Forgery::*;
        match *self {
            Position(at) => write!(formatter, "the position {at:#x} lies outside the buffer of records"),
            Exit(number) => write!(formatter, "there is no exit {number}"),
            Record(address, what, extra) => {
                write!(formatter, "lightfoot never writes the record {address:#x} {what:#x} {extra:#x}")
            }
            Count(count) => write!(formatter, "a counter says {count}, more than the program had time for"),
            Backwards(before, now) => write!(formatter, "a counter went from {before} back to {now}"),
            Taken(taken, ran) => {
                write!(formatter, "a branch was taken {taken} times in a block that ran {ran} times")
            }
            Entries(led, ran) => write!(formatter, "{led} branches lead to a block that ran {ran} times"),
            References(recorded, made) => {
                write!(
                    formatter,
                    "{recorded} references were recorded, but the blocks that ran make at most {made}"
                )
            }
        }
    }
}

/// The first forgery of a run, if there was one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence(Arc<OnceLock<Forgery>>);

impl Evidence {
    /// Notes a forgery; the first one stays.
    #[cold]
    pub(crate) fn note(&self, forgery: Forgery) {
        // The first one is enough.
        let _ = self.0.set(forgery);
    }

    /// Whether a forgery was noted. Cost: a load.
    pub(crate) fn exists(&self) -> bool {
        self.0.get().is_some()
    }

    /// The error of a run with a forged number.
    pub(crate) fn error(&self) -> Option<Error> {
        let forgery = self.0.get()?;
        let sentence = format!(
            "the program changed memory that lightfoot keeps in it ({forgery}), so no count can be trusted and there is no report: \
             look for stray writes with a memory checker, or do not trust the program"
        );
        Some(Error::new(ErrorKind::MemoryChanged, sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_forgery_is_said() {
        let evidence = Evidence::default();
        assert!(!evidence.exists() && evidence.error().is_none());
        evidence.clone().note(Forgery::Exit(7));
        evidence.note(Forgery::Position(3));
        let error = evidence.error().unwrap();
        assert_eq!((error.kind(), error.exit_status()), (ErrorKind::MemoryChanged, 1));
        assert!(error.to_string().contains("there is no exit 7"), "{error}");
    }
}
