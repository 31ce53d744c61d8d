//! What the paper found, each sentence held against this machine's figures.
//!
//! Misses are those of the paper's own cache, so its orderings must come out again; instructions
//! and times are today's, and may not. A sentence that does not hold is a finding, not an error.

use super::counted::Counted;
use super::timed::Timed;
use crate::outcome::{Claim, Verdict};

/// The paper's cache in bytes: half of it surely holds a structure without conflicts that matter.
const CACHE_BYTES: usize = 8192;

/// The figures of all algorithms at one number of items.
struct Row<'a>(Vec<(&'a str, f64)>);

impl Row<'_> {
    fn of(&self, algorithm: &str) -> f64 {
        self.0.iter().find(|(name, _)| *name == algorithm).map_or(f64::NAN, |(_, value)| *value)
    }

    /// The algorithm with the smallest value, of the paper's six.
    fn least(&self) -> &str {
        self.six().min_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }

    fn most(&self) -> &str {
        self.six().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }

    fn six(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().copied().filter(|(name, _)| *name != "oblivious-brodal")
    }

    fn shown(&self) -> String {
        let each: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
        each.join(", ")
    }
}

/// What the sentences are held against.
const MEASURED: &str =
    "misses and instructions of compiled lookups under `lightfoot cache`, times by this machine's clock";

/// All sentences.
pub(super) fn check(counted: &[Counted], timed: &[Timed]) -> Vec<Claim> {
    let paper: Vec<&Counted> = counted.iter().filter(|point| point.block_bytes == 32).collect();
    let (Some(largest), Some(longest)) =
        (paper.iter().map(|point| point.items).max(), timed.iter().map(|point| point.items).max())
    else {
        return Vec::new();
    };
    let at_largest = || paper.iter().filter(|point| point.items == largest);
    let misses = Row(at_largest().map(|point| (point.algorithm, point.misses)).collect());
    let instructions = Row(at_largest().map(|point| (point.algorithm, point.instructions)).collect());
    let times = Row(timed.iter().filter(|p| p.items == longest).map(|p| (p.algorithm, p.ns)).collect());
    let mut claims = misses_claims(&misses, &paper);
    claims.extend(cost_claims(&instructions, &times));
    claims
}

fn misses_claims(misses: &Row<'_>, paper: &[&Counted]) -> Vec<Claim> {
    let pairs = ["classic", "aware", "oblivious"]
        .map(|family| (misses.of(&format!("{family}-implicit")), misses.of(&format!("{family}-explicit"))));
    let fits = |point: &&&Counted| 12 * point.items <= CACHE_BYTES / 2;
    let fitting = paper.iter().filter(fits).map(|point| point.misses).fold(0.0, f64::max);
    vec![
        Claim {
            place: "4.8",
            sentence: "implicit pointers miss less often than explicit ones, in all three families",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(pairs.iter().all(|(implicit, explicit)| implicit < explicit))),
            extent: String::new(),
            spread: String::new(),
            detail: misses.shown(),
        },
        Claim {
            place: "4.8",
            sentence: "classic binary search misses most often",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(
                misses.most().starts_with("classic")
                    && misses.of("classic-implicit")
                        > misses.of("aware-implicit").max(misses.of("oblivious-implicit")),
            )),
            extent: String::new(),
            spread: String::new(),
            detail: misses.shown(),
        },
        Claim {
            place: "4.8",
            sentence: "cache aware search with implicit pointers misses least often",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(misses.least() == "aware-implicit")),
            extent: String::new(),
            spread: String::new(),
            detail: misses.shown(),
        },
        Claim {
            place: "4.8",
            sentence: "where the data fit the cache, nobody misses",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(fitting < 0.05)),
            extent: String::new(),
            spread: String::new(),
            detail: format!("at most {fitting:.3} misses per lookup"),
        },
    ]
}

fn cost_claims(instructions: &Row<'_>, times: &Row<'_>) -> Vec<Claim> {
    vec![
        Claim {
            place: "4.9",
            sentence: "cache oblivious search with implicit pointers executes by far the most instructions",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(instructions.most() == "oblivious-implicit")),
            extent: String::new(),
            spread: String::new(),
            detail: instructions.shown(),
        },
        Claim {
            place: "4.9",
            sentence: "the calculation of Brodal, Fagerberg and Jacob remedies that",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(
                instructions.of("oblivious-brodal") < instructions.of("oblivious-implicit") / 1.5,
            )),
            extent: String::new(),
            spread: String::new(),
            detail: instructions.shown(),
        },
        Claim {
            place: "4.9",
            sentence: "explicit classic and oblivious search execute the fewest instructions",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(
                ["classic-explicit", "oblivious-explicit"].contains(&instructions.least()),
            )),
            extent: String::new(),
            spread: String::new(),
            detail: instructions.shown(),
        },
        Claim {
            place: "4.10, 4.11",
            sentence: "cache aware search with implicit pointers is fastest",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(times.least() == "aware-implicit")),
            extent: String::new(),
            spread: String::new(),
            detail: times.shown(),
        },
        Claim {
            place: "4.10, 4.11",
            sentence: "cache oblivious search with implicit pointers is slowest",
            measured: MEASURED.into(),
            verdict: Verdict::of(Some(times.most() == "oblivious-implicit")),
            extent: String::new(),
            spread: String::new(),
            detail: times.shown(),
        },
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn counted() -> Vec<Counted> {
        let names = search::paper::ALGORITHMS.iter().map(|algorithm| algorithm.name);
        let misses = [5.0, 7.0, 2.0, 3.0, 2.5, 3.5, 2.5];
        let instructions = [90.0, 70.0, 95.0, 98.0, 400.0, 69.0, 150.0];
        let point = |((algorithm, misses), instructions)| Counted {
            algorithm,
            items: 1 << 20,
            block_bytes: 32,
            lookups: 10,
            trials: 1,
            misses,
            instructions,
        };
        names.zip(misses).zip(instructions).map(point).collect()
    }

    pub(in super::super) fn timed() -> Vec<Timed> {
        let names = search::paper::ALGORITHMS.iter().map(|algorithm| algorithm.name);
        let point = |(algorithm, ns)| Timed { algorithm, items: 1 << 20, block_bytes: 32, lookups: 10, ns };
        names.zip([200.0, 250.0, 90.0, 120.0, 300.0, 110.0, 140.0]).map(point).collect()
    }

    #[test]
    fn the_papers_own_picture_holds() {
        let claims = check(&counted(), &timed());
        assert!(claims.iter().all(|claim| claim.verdict == Verdict::Holds), "{claims:#?}");
    }

    #[test]
    fn another_picture_is_told_apart() {
        let mut counted = counted();
        counted[2].misses = 9.0;
        let claims = check(&counted, &timed());
        assert!(claims
            .iter()
            .any(|claim| claim.verdict == Verdict::Fails && claim.sentence.contains("misses least often")));
        assert!(check(&[], &[]).is_empty());
    }
}
