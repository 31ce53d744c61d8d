//! Set dueling: leader sets that always follow one of two policies, and a counter by which all
//! other sets choose.
//!
//! A name is `duel:FIRST:SECOND:LEADERS`: two members of the family [`Qlru`], and the number of
//! leader sets that each has. **Source.** Qureshi, Jaleel, Patt, Steely and Emer 2007.

use super::qlru::Qlru;
use std::fmt;
use std::str::FromStr;

/// Two policies and their leader sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Duel {
    /// The policy that the other sets begin with.
    pub first: Qlru,
    /// Its rival.
    pub second: Qlru,
    /// Leader sets of each policy.
    pub leaders: u32,
}

impl Duel {
    /// The form of a name, for messages.
    pub(crate) const SHAPE: &str = "duel:FIRST:SECOND:LEADERS (two QLRU names and a number of sets)";

    /// Why a cache of `sets` sets cannot have these leaders: the problem, and what would be
    /// accepted.
    pub(crate) fn problem(self, sets: u64) -> Option<(String, String)> {
        let leaders = u64::from(self.leaders);
        let fits = leaders > 0 && sets.is_multiple_of(leaders) && sets / leaders >= 2;
        (!fits).then(|| {
            let problem = format!("{leaders} leader sets of each policy in {sets} sets");
            (problem, "leaders that divide the sets, at most half as many".into())
        })
    }
}

impl FromStr for Duel {
    type Err = String;

    fn from_str(text: &str) -> Result<Duel, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let &[_, first, second, leaders] = parts.as_slice() else {
            return Err(format!("\"{text}\" (3 parts behind duel: are needed)"));
        };
        let number = leaders.parse().ok().filter(|&leaders: &u32| leaders > 0);
        let leaders = number.ok_or_else(|| format!("\"{leaders}\" is no number of leader sets"));
        Ok(Duel { first: first.parse()?, second: second.parse()?, leaders: leaders? })
    }
}

impl fmt::Display for Duel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duel:{}:{}:{}", self.first, self.second, self.leaders)
    }
}
