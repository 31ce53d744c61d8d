//! Replacement policies by name: which line of a full set leaves.
//!
//! A policy is one word, in a file, behind a shape on the command line, and in a report: `plru`,
//! `QLRU_H00_M1_R0_U1`, or `duel:FIRST:SECOND:LEADERS`. The simulator defines what a policy does;
//! this crate reads its name, and says for how many ways it exists. **Source.** The names are those
//! of nanoBench (Abel and Reineke 2020) and of uops.info.

mod duel;
mod qlru;

pub use duel::Duel;
pub use qlru::{Choice, Hit, Insertion, Moment, Qlru, Update};

use std::fmt;
use std::str::FromStr;

/// Which line of a full set is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// The least recently used one.
    #[default]
    Lru,
    /// The one that came first.
    Fifo,
    /// The one that a binary tree of bits points to.
    Plru,
    /// Any line leaves, drawn by chance.
    Random,
    /// The first one without a use since all others had one; filling a set counts as use.
    Mru,
    /// `Mru` whose bits stay as they are while a set fills.
    MruN,
    /// The first one without a use since a miss found all used.
    Nru,
    /// Trees of four ways each; the tree that was used least recently gives up the line that it
    /// points to.
    LruPlru4,
    /// By an age of two bits (quad-age LRU).
    Qlru(Qlru),
    /// One of two policies of ages, whichever has fewer misses in sets that always follow it.
    Duel(Duel),
}

/// The policies of one name each.
pub const REPLACEMENTS: &[(&str, Replacement)] = &[
    ("lru", Replacement::Lru),
    ("fifo", Replacement::Fifo),
    ("plru", Replacement::Plru),
    ("random", Replacement::Random),
    ("mru", Replacement::Mru),
    ("mru_n", Replacement::MruN),
    ("nru", Replacement::Nru),
    ("lru_plru4", Replacement::LruPlru4),
];

/// The most ways of a set with tree-PLRU replacement.
const PLRU_WAYS_MAX: u32 = 64;

impl Replacement {
    /// What is possible, for messages.
    #[cfg(feature = "toml")]
    pub(crate) fn possible() -> String {
        let names: Vec<String> = REPLACEMENTS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        format!("{} or {} or {}", names.join(" or "), Qlru::SHAPE, Duel::SHAPE)
    }

    /// Why a cache of this shape cannot have the policy: the problem, and what would be accepted.
    pub(crate) fn problem(self, sets: u64, ways: u32) -> Option<(String, String)> {
        let at_most = |most: u32| {
            (ways > most).then(|| (format!("{self} of {ways} ways"), format!("at most {most} ways, or lru")))
        };
        match self {
            Replacement::Plru => at_most(PLRU_WAYS_MAX),
            Replacement::LruPlru4 if !ways.is_multiple_of(4) => {
                Some((format!("{self} of {ways} ways"), "a multiple of 4 ways, at most 64".into()))
            }
            Replacement::LruPlru4 => at_most(PLRU_WAYS_MAX),
            Replacement::Mru | Replacement::MruN | Replacement::Nru => at_most(64),
            Replacement::Qlru(_) => at_most(Qlru::WAYS_MAX),
            Replacement::Duel(duel) => at_most(Qlru::WAYS_MAX).or_else(|| duel.problem(sets)),
            Replacement::Lru | Replacement::Fifo | Replacement::Random => None,
        }
    }
}

impl FromStr for Replacement {
    type Err = String;

    /// Reads a name; upper and lower case are equal.
    fn from_str(text: &str) -> Result<Replacement, String> {
        let lower = text.to_ascii_lowercase();
        if let Some((_, plain)) = REPLACEMENTS.iter().find(|(name, _)| *name == lower) {
            return Ok(*plain);
        }
        if lower.starts_with("qlru_") {
            return text.parse().map(Replacement::Qlru);
        }
        if lower.starts_with("duel:") {
            return text.parse().map(Replacement::Duel);
        }
        Err(format!("\"{text}\""))
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replacement::Qlru(qlru) => qlru.fmt(f),
            Replacement::Duel(duel) => duel.fmt(f),
            plain => {
                let named = REPLACEMENTS.iter().find(|(_, other)| other == plain);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(feature = "toml")]
impl serde::Serialize for Replacement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_and_said() {
        for name in [
            "lru",
            "mru_n",
            "lru_plru4",
            "QLRU_H00_M1_R0_U1",
            "QLRU_H11_MR161_R1_U2",
            "QLRU_H21_M2_R0_U0_UMO",
            "duel:QLRU_H11_M1_R1_U2:QLRU_H11_MR161_R1_U2:32",
        ] {
            let policy: Replacement = name.parse().unwrap();
            assert_eq!(policy.to_string(), name);
            assert_eq!(name.to_ascii_lowercase().parse::<Replacement>(), Ok(policy));
        }
        let other: Replacement = "QLRU_H11_MR31_R1_U2".parse().unwrap();
        assert_eq!(other.to_string(), "QLRU_H11_MR161_R1_U2", "two spellings of one insertion");
        for (name, policy) in REPLACEMENTS {
            assert_eq!(policy.to_string(), *name);
        }
    }

    #[test]
    fn a_wrong_name_is_refused_with_the_part_that_is_wrong() {
        let said = |text: &str| text.parse::<Replacement>().unwrap_err();
        assert_eq!(said("clock"), "\"clock\"");
        assert_eq!(
            said("QLRU_H01_M1_R0_U1"),
            "\"QLRU_H01_M1_R0_U1\" (\"H01\" is none of H21 H20 H11 H10 H00)"
        );
        assert_eq!(
            said("QLRU_H11_MR21_R0_U1"),
            "\"QLRU_H11_MR21_R0_U1\" (\"MR21\" is none of M0 M1 M2 M3, and no MRpx: p from 4 8 16 32 64, x from 0 1 2)"
        );
        assert!(said("QLRU_H11_M1_R3_U1").contains("\"R3\" is none of R0 R1 R2"));
        assert!(
            said("QLRU_H11_M1_R0_U2").contains("R0 and R2 need a line of age 3, which U2 and U3 do not keep")
        );
        assert!(said("QLRU_H11_M1_R0").contains("4 parts behind QLRU are needed, and UMO may follow"));
        assert!(said("QLRU_H11_M1_R0_U0_UMX").contains("\"UMX\" is not UMO"));
        assert!(said("duel:QLRU_H11_M1_R1_U2:lru:32").contains("\"lru\""));
        assert!(said("duel:QLRU_H11_M1_R1_U2:QLRU_H11_M3_R1_U2").contains("3 parts behind duel: are needed"));
        assert!(
            said("duel:QLRU_H11_M1_R1_U2:QLRU_H11_M3_R1_U2:0").contains("\"0\" is no number of leader sets")
        );
    }

    #[test]
    fn shapes_are_checked() {
        let problem = |name: &str, sets, ways| {
            name.parse::<Replacement>()
                .unwrap()
                .problem(sets, ways)
                .map(|(problem, expected)| format!("{problem}; {expected}"))
        };
        assert_eq!(problem("lru_plru4", 64, 12), None);
        assert_eq!(
            problem("lru_plru4", 64, 10).unwrap(),
            "lru_plru4 of 10 ways; a multiple of 4 ways, at most 64"
        );
        assert_eq!(
            problem("QLRU_H00_M1_R0_U1", 64, 33).unwrap(),
            "QLRU_H00_M1_R0_U1 of 33 ways; at most 32 ways, or lru"
        );
        let duel = "duel:QLRU_H11_M1_R1_U2:QLRU_H11_M3_R1_U2:32";
        assert_eq!(problem(duel, 64, 16), None);
        assert!(problem(duel, 48, 16)
            .unwrap()
            .contains("32 leader sets of each policy in 48 sets; leaders that divide"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,40}|(?i)(qlru|duel)[_:hmru0-9]{0,30}") {
            if let Ok(policy) = text.parse::<Replacement>() {
                prop_assert_eq!(policy.to_string().parse::<Replacement>(), Ok(policy));
            }
        }
    }
}
