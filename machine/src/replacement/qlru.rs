//! Quad-age LRU: policies that keep an age of two bits for each way.
//!
//! A name has four parts and a fifth that may be absent: `QLRU_Hxy_Mz_Rr_Uu[_UMO]`.
//!
//! | part | says |
//! |---|---|
//! | `Hxy` | a hit makes age 3 to x, age 2 to y, and younger ages to 0 |
//! | `Mz`, `MRpx` | a new line has age z; or age x once in p times, and age 3 otherwise |
//! | `Rr` | which line leaves: 0 and 1 the lowest way of age 3, 2 too; 2 fills empty ways from the top |
//! | `Uu` | how all ages grow when they are updated |
//! | `UMO` | ages are updated on misses only, before a line is chosen |
//!
//! `MR3x` is read too: nanoBench's simulator spells `MR16x` so.
//!
//! **Source.** Abel and Reineke 2020, section VI, and the simulator of nanoBench's CacheAnalyzer.
//! **Leaves out** its insertions of age 2 or 1 with a rare younger age (`MR2x`, `MR10`).

use std::fmt;
use std::str::FromStr;

/// What a hit does to ages 3 and 2; a younger line becomes age 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The age that replaces age 3.
    pub of_3: u8,
    /// The age that replaces age 2.
    pub of_2: u8,
}

/// The age of a line that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Insertion {
    /// Always this one.
    Age(u8),
    /// This age once in `period` times by chance, and age 3 otherwise.
    Seldom {
        /// The rare age.
        age: u8,
        /// A power of two.
        period: u8,
    },
}

/// Which line leaves a full set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// R0: the lowest way of age 3, of which there is one.
    Lowest,
    /// R1: the lowest way of age 3, or way 0.
    LowestOrFirst,
    /// R2: the lowest way of age 3; empty ways are taken from the highest on.
    LowestFilledFromTop,
}

/// How ages grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// U0: all by what the oldest lacks to 3.
    All,
    /// U1: all but the way just used, by what the oldest of them lacks to 3.
    AllOthers,
    /// U2: all by 1 if none is 3.
    Step,
    /// U3: all but the way just used by 1, if none is 3.
    StepOthers,
}

/// When ages grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// After each access.
    Access,
    /// UMO: on misses only, before a line is chosen; no way counts as just used.
    Miss,
}

/// A member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qlru {
    /// What a hit does.
    pub hit: Hit,
    /// How old a new line is.
    pub insertion: Insertion,
    /// Which line leaves.
    pub choice: Choice,
    /// How ages grow.
    pub update: Update,
    /// When they do.
    pub moment: Moment,
}

const HITS: &[(&str, Hit)] = &[
    ("H21", Hit { of_3: 2, of_2: 1 }),
    ("H20", Hit { of_3: 2, of_2: 0 }),
    ("H11", Hit { of_3: 1, of_2: 1 }),
    ("H10", Hit { of_3: 1, of_2: 0 }),
    ("H00", Hit { of_3: 0, of_2: 0 }),
];

const CHOICES: &[(&str, Choice)] =
    &[("R0", Choice::Lowest), ("R1", Choice::LowestOrFirst), ("R2", Choice::LowestFilledFromTop)];

const UPDATES: &[(&str, Update)] =
    &[("U0", Update::All), ("U1", Update::AllOthers), ("U2", Update::Step), ("U3", Update::StepOthers)];

/// Periods of a rare age.
const PERIODS: [u8; 5] = [4, 8, 16, 32, 64];

impl Qlru {
    /// The most ways: their ages fill a word of 64 bits.
    pub const WAYS_MAX: u32 = 32;

    /// The form of a name, for messages.
    pub(crate) const SHAPE: &str = "QLRU_Hxy_Mz_Rr_Uu (such as QLRU_H00_M1_R0_U1)";

    /// A number that tells the members apart; [`Qlru::of_code`] reads it back.
    pub fn code(self) -> u16 {
        let insertion = match self.insertion {
            Insertion::Age(age) => u16::from(age),
            Insertion::Seldom { age, period } => 4 + 3 * index_of(&PERIODS, period) + u16::from(age),
        };
        let moment = u16::from(self.moment == Moment::Miss);
        let digits = [
            (place(HITS, self.hit), 5),
            (insertion, 19),
            (place(CHOICES, self.choice), 3),
            (place(UPDATES, self.update), 4),
            (moment, 2),
        ];
        digits.iter().fold(0, |code, (digit, base)| code * base + digit)
    }

    /// The member of this number; numbers of no member are those of others.
    pub fn of_code(code: u16) -> Qlru {
        let mut rest = usize::from(code);
        let mut digit = |base: usize| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        // The last digit of the code comes first.
        let moment = [Moment::Access, Moment::Miss][digit(2)];
        let (update, choice) = (UPDATES[digit(4)].1, CHOICES[digit(3)].1);
        let insertion = match digit(19) {
            age @ 0..4 => Insertion::Age(age as u8),
            seldom => Insertion::Seldom { age: ((seldom - 4) % 3) as u8, period: PERIODS[(seldom - 4) / 3] },
        };
        Qlru { hit: HITS[digit(5)].1, insertion, choice, update, moment }
    }
}

fn place<T: PartialEq>(names: &[(&str, T)], value: T) -> u16 {
    names.iter().position(|(_, other)| *other == value).unwrap_or(0) as u16
}

fn index_of(values: &[u8], value: u8) -> u16 {
    values.iter().position(|&other| other == value).unwrap_or(0) as u16
}

/// The value of a part's name, or a sentence that says what is possible.
fn part<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value);
    let possible: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("\"{text}\" is none of {}", possible.join(" ")))
}

impl FromStr for Insertion {
    type Err = String;

    fn from_str(text: &str) -> Result<Insertion, String> {
        let ages =
            [("M0", 0), ("M1", 1), ("M2", 2), ("M3", 3)].map(|(name, age)| (name, Insertion::Age(age)));
        part(&ages, text).or_else(|problem| {
            let upper = text.to_ascii_uppercase();
            let seldom = PERIODS.iter().flat_map(|&period| (0..3).map(move |age| (period, age)));
            let named = seldom
                .map(|(period, age)| Insertion::Seldom { age, period })
                .find(|insertion| insertion.to_string() == upper);
            let otherwise_3 = [("MR30", 0), ("MR31", 1), ("MR32", 2)];
            let named = named.or_else(|| {
                let (_, age) = otherwise_3.into_iter().find(|(name, _)| *name == upper)?;
                Some(Insertion::Seldom { age, period: 16 })
            });
            named.ok_or(format!("{problem}, and no MRpx: p from 4 8 16 32 64, x from 0 1 2"))
        })
    }
}

impl fmt::Display for Insertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Insertion::Age(age) => write!(f, "M{age}"),
            Insertion::Seldom { age, period } => write!(f, "MR{period}{age}"),
        }
    }
}

impl FromStr for Qlru {
    type Err = String;

    fn from_str(text: &str) -> Result<Qlru, String> {
        let read = || {
            let parts: Vec<&str> = text.split('_').skip(1).collect();
            let (&[hit, insertion, choice, update], behind) =
                parts.split_first_chunk::<4>().ok_or("4 parts behind QLRU are needed, and UMO may follow")?;
            let moment = match behind {
                [] => Moment::Access,
                [word] if word.eq_ignore_ascii_case("UMO") => Moment::Miss,
                [word, ..] => return Err(format!("\"{word}\" is not UMO, at the end")),
            };
            let (hit, insertion) = (part(HITS, hit)?, insertion.parse()?);
            let (choice, update) = (part(CHOICES, choice)?, part(UPDATES, update)?);
            if choice != Choice::LowestOrFirst && matches!(update, Update::Step | Update::StepOthers) {
                return Err("R0 and R2 need a line of age 3, which U2 and U3 do not keep".into());
            }
            Ok(Qlru { hit, insertion, choice, update, moment })
        };
        read().map_err(|problem: String| format!("\"{text}\" ({problem})"))
    }
}

impl fmt::Display for Qlru {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |names: &[(&'static str, Hit)]| names[usize::from(place(names, self.hit))].0;
        let choice = CHOICES[usize::from(place(CHOICES, self.choice))].0;
        let update = UPDATES[usize::from(place(UPDATES, self.update))].0;
        let moment = if self.moment == Moment::Miss { "_UMO" } else { "" };
        write!(f, "QLRU_{}_{}_{choice}_{update}{moment}", name(HITS), self.insertion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_member() {
        for code in 0..5 * 19 * 3 * 4 * 2 {
            assert_eq!(Qlru::of_code(code).code(), code);
        }
    }
}
