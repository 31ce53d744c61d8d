//! What the paper found, each sentence held against this machine's figures.
//!
//! Misses are those of the paper's own cache, so its orderings must come out again; instructions
//! and times are today's, and may not. A sentence that does not hold is a finding, not an error.
//! Words such as "slightly" are given a number here, the same for all, and said beside the verdict.

use super::answers::{command, Answers, Row, Sentence};
use super::counted::Counted;
use super::simulated::{MACHINES, SIMULATED};
use super::structure::Structural;
use super::timed::Timed;
use crate::outcome::Claim;
use std::collections::BTreeSet;

/// Bytes of a node of item, left and right, and of Figure 4.8's cache.
const NODE_BYTES: usize = 12;
const CACHE_BYTES: usize = 8192;

/// All sentences.
pub(super) fn check(counted: &[Counted], structural: &[Structural], timed: &[Timed]) -> Vec<Claim> {
    let mut claims = misses(counted, structural);
    claims.extend(instructions(counted));
    claims.extend(times(counted, timed));
    claims
}

/// Figure 4.8 and what section 4.1 says of it, by program and by structure.
fn misses(counted: &[Counted], structural: &[Structural]) -> Vec<Claim> {
    // Where every structure fits the cache there is no order of misses.
    let missing: BTreeSet<usize> =
        structural.iter().filter(|point| NODE_BYTES * point.items > CACHE_BYTES).map(|p| p.items).collect();
    let program = Answers::counted(command("misses of the program"), counted, SIMULATED, |t| t.misses);
    let structure = "misses of the structure alone: the words that the lookups read, in the same cache";
    let structure = Answers::structural(structure.into(), structural);
    let kinds = [program, structure].map(|answers| answers.only(|items| missing.contains(&items)));
    MISSES.iter().flat_map(|sentence| kinds.iter().map(move |answers| answers.claim(sentence))).collect()
}

/// Figure 4.9 and what sections 4.1 and 4.4 say of it.
fn instructions(counted: &[Counted]) -> Vec<Claim> {
    let answers = Answers::counted(command("instructions"), counted, SIMULATED, |trial| trial.instructions);
    INSTRUCTIONS.iter().map(|sentence| answers.claim(sentence)).collect()
}

/// Figures 4.10 and 4.11, by the declared costs of the paper's machines and by this machine's
/// clock.
fn times(counted: &[Counted], timed: &[Timed]) -> Vec<Claim> {
    let clock = Answers::timed("nanoseconds by this machine's clock".into(), timed);
    let modelled = MACHINES.map(|machine| {
        let measured = format!(
            "cycles by the declared costs of `{machine}`: `lightfoot cache --branches --machine {machine} -- lightfoot lookups ALGORITHM`"
        );
        Answers::counted(measured, counted, machine, |trial| trial.cycles.unwrap_or(f64::NAN))
    });
    let both = |sentences: &[Sentence], machines: &[Answers]| -> Vec<Claim> {
        let all = machines.iter().chain([&clock]);
        let of_all = |answers: &Answers| sentences.iter().map(|s| answers.claim(s)).collect::<Vec<_>>();
        all.flat_map(of_all).collect()
    };
    let mut claims = both(TIMES, &modelled);
    // The conclusion speaks of large data sets alone.
    let large = modelled.each_ref().map(|answers| answers.only(is_large));
    let conclusion = large.iter().map(|answers| answers.claim(&LARGE));
    claims.extend(conclusion);
    claims.push(clock.only(is_large).claim(&LARGE));
    claims.extend(both(WINDOWS, &modelled[..1]));
    claims.extend(both(LINUX, &modelled[1..]));
    claims
}

const MISSES: &[Sentence] = &[
    Sentence {
        place: "Section 4.1",
        words: "Cache aware search with implicit pointers has slightly better cache performance than cache oblivious search with explicit pointers.",
        taken: "fewer misses, and closer to it than classic search with explicit pointers is",
        holds: |row| {
            let between = row.of("oblivious-explicit") - row.of("aware-implicit");
            between > 0.0 && between < row.of("classic-explicit") - row.of("aware-implicit")
        },
    },
    Sentence {
        place: "Figure 4.8",
        words: "We see that the cache aware search with implicit pointers has the fewest cache misses, while classic binary search has the most.",
        taken: "of the six, cache aware with implicit pointers has the fewest and one of the classic searches the most",
        holds: |row| row.least() == "aware-implicit" && row.most().starts_with("classic"),
    },
    Sentence {
        place: "Figure 4.8",
        words: "All the algorithms that use implicit pointers have fewer cache misses than their explicit pointer counterparts showing the effect of the larger memory footprint for the explicit pointers.",
        taken: "in all three families",
        holds: |row| {
            ["classic", "aware", "oblivious"]
                .iter()
                .all(|family| row.of(&format!("{family}-implicit")) < row.of(&format!("{family}-explicit")))
        },
    },
    Sentence {
        place: "Figure 4.8",
        words: "Most important is that both cache oblivious and cache aware search algorithms have much better memory performance than classic binary search.",
        taken: "at most two thirds of the misses of classic search with as explicit pointers",
        holds: |row| {
            ["implicit", "explicit"].iter().all(|pointers| {
                let classic = row.of(&format!("classic-{pointers}"));
                let other = |family: &str| row.of(&format!("{family}-{pointers}"));
                other("aware").max(other("oblivious")) <= classic / 1.5
            })
        },
    },
];

/// By how much a search executes more instructions than oblivious search with explicit pointers,
/// as a part of the high price: what that search pays for implicit pointers.
fn surplus(row: &Row, algorithm: &str) -> f64 {
    let least = row.of("oblivious-explicit");
    (row.of(algorithm) - least) / (row.of("oblivious-implicit") - least)
}

const INSTRUCTIONS: &[Sentence] = &[
    Sentence {
        place: "Section 4.1",
        words: "Cache aware search with implicit pointers has slightly worse instruction count performance than cache oblivious search with explicit pointers.",
        taken: "more instructions, by less than half of the high price (what oblivious search pays for implicit pointers)",
        holds: |row| (0.0..0.5).contains(&surplus(row, "aware-implicit")),
    },
    Sentence {
        place: "Figure 4.9",
        words: "We see immediately the high price in instruction count that is paid for our version of cache oblivious search with implicit pointers.",
        taken: "of the six the most, and more than twice those of its counterpart with explicit pointers",
        holds: |row| {
            row.most() == "oblivious-implicit"
                && row.of("oblivious-implicit") > 2.0 * row.of("oblivious-explicit")
        },
    },
    Sentence {
        place: "Figure 4.9",
        words: "The instruction count penalties for implicit pointers for classic binary search and cache aware search are small.",
        taken: "each less than half of the high price (what oblivious search pays for implicit pointers)",
        holds: |row| {
            let paid = |family: &str| row.of(&format!("{family}-implicit")) - row.of(&format!("{family}-explicit"));
            paid("classic").max(paid("aware")) < paid("oblivious") / 2.0
        },
    },
    Sentence {
        place: "Figure 4.9",
        words: "The explicit pointer versions of classic binary search and cache oblivious search execute the fewest instructions per lookup.",
        taken: "both fewer than each of the other four",
        holds: |row| {
            let most = row.of("classic-explicit").max(row.of("oblivious-explicit"));
            ["classic-implicit", "aware-implicit", "aware-explicit", "oblivious-implicit"]
                .iter()
                .all(|other| row.of(other) > most)
        },
    },
    Sentence {
        place: "Figure 4.9",
        words: "Cache aware search with explicit pointers has slightly more instructions per lookup because it does not achieve perfect binary splitting into equal size subproblems.",
        taken: "more than the other explicit searches, by less than half of the high price (what oblivious search pays for implicit pointers)",
        holds: |row| {
            (0.0..0.5).contains(&surplus(row, "aware-explicit"))
                && row.of("aware-explicit") > row.of("classic-explicit")
        },
    },
    Sentence {
        place: "Section 4.4",
        words: "This could be remedied by using the Brodal et al. calculation of pointers.",
        taken: "at most half of the high price (what oblivious search pays for implicit pointers) is left",
        holds: |row| surplus(row, "oblivious-brodal") <= 0.5,
    },
];

fn fastest(row: &Row) -> bool {
    row.least() == "aware-implicit"
}

fn not_far_behind(row: &Row) -> bool {
    row.of("oblivious-explicit") <= 1.5 * row.of(row.least())
}

fn slowest(row: &Row) -> bool {
    row.most() == "oblivious-implicit"
}

const FASTEST: &str = "of the six the least time";
const NOT_FAR: &str = "at most half as much time again as the fastest of the six";
const SLOWEST: &str = "of the six the most time";

const TIMES: &[Sentence] = &[
    Sentence {
        place: "Section 4.1",
        words: "In terms of execution time, both cache aware search with implicit pointers and cache oblivious search with explicit pointers perform comparably, and are both significantly faster the classic binary search.",
        taken: "neither takes half as much time again as the other, and both take at most four fifths of what either classic search takes",
        holds: |row| {
            let (aware, oblivious) = (row.of("aware-implicit"), row.of("oblivious-explicit"));
            let classic = row.of("classic-implicit").min(row.of("classic-explicit"));
            let slower = aware.max(oblivious);
            slower <= 1.5 * aware.min(oblivious) && slower <= 0.8 * classic
        },
    },
];

/// Data that are larger than the largest cache of the paper's two computers, 512 KB, are large.
fn is_large(items: usize) -> bool {
    4 * items > 512 << 10
}

const LARGE: Sentence = Sentence {
    place: "Section 4.7",
    words: "Both cache aware and cache oblivious search perform better than classic binary search on large data sets.",
    taken: "from 512 KB of items on, the faster search of each of the two families takes less time than either classic search",
    holds: |row| {
        let family = |name: &str| row.of(&format!("{name}-implicit")).min(row.of(&format!("{name}-explicit")));
        family("aware").max(family("oblivious")) < family("classic")
    },
};

const WINDOWS: &[Sentence] = &[
    Sentence {
        place: "Figure 4.10",
        words: "Cache aware search with implicit pointers is the fastest, […]",
        taken: FASTEST,
        holds: fastest,
    },
    Sentence {
        place: "Figure 4.10",
        words: "[…] but cache oblivious search with explicit pointers is not far behind.",
        taken: NOT_FAR,
        holds: not_far_behind,
    },
    Sentence {
        place: "Figure 4.10",
        words: "Cache oblivious search with implicit pointers is the slowest of all because of the high cost of computing pointers.",
        taken: SLOWEST,
        holds: slowest,
    },
];

const LINUX: &[Sentence] = &[
    Sentence {
        place: "Figure 4.11",
        words: "Again, cache aware search with implicit pointers is the fastest, […]",
        taken: FASTEST,
        holds: fastest,
    },
    Sentence {
        place: "Figure 4.11",
        words: "[…] but cache oblivious search with explicit pointers is not far behind.",
        taken: NOT_FAR,
        holds: not_far_behind,
    },
    Sentence {
        place: "Figure 4.11",
        words: "Again, cache oblivious search with implicit pointers is the slowest of all because of the high cost of computing pointers.",
        taken: SLOWEST,
        holds: slowest,
    },
    Sentence {
        place: "Figure 4.11",
        words: "Inexplicably, cache aware search with explicit pointers showed consistently poor performance under Linux.",
        taken: "slower than both other searches with explicit pointers",
        holds: |row| {
            row.of("aware-explicit") > row.of("classic-explicit").max(row.of("oblivious-explicit"))
        },
    },
];

#[cfg(test)]
pub(super) mod tests {
    use super::super::counted::Trial;
    use super::*;
    use crate::layout::Spread;
    use crate::outcome::Verdict;
    use search::paper::ALGORITHMS;

    const ITEMS: usize = 1 << 16;

    fn names() -> impl Iterator<Item = String> {
        ALGORITHMS.iter().map(|algorithm| algorithm.name.to_owned())
    }

    /// Figures of lookups in plain C, in two layouts.
    pub(in super::super) fn counted() -> Vec<Counted> {
        let misses = [12.71, 14.0, 2.4, 4.26, 4.79, 7.21, 4.9];
        let instructions = [151.0, 146.0, 252.0, 255.0, 1102.0, 146.0, 282.0];
        let cycles = [600.0, 610.0, 300.0, 420.0, 1200.0, 400.0, 500.0];
        let machines = [(SIMULATED, false), (MACHINES[0], true), (MACHINES[1], true)];
        let point = |(machine, costs): (&str, bool), which: usize, algorithm: String| {
            let trial = |padding_bytes| Trial {
                padding_bytes,
                misses: misses[which] + padding_bytes as f64 / 1e4,
                instructions: instructions[which],
                cycles: costs.then_some(cycles[which]),
            };
            let trials = vec![trial(0), trial(208)];
            Counted { machine: machine.into(), algorithm, items: ITEMS, block_bytes: 32, lookups: 10, trials }
        };
        let of = |machine| names().enumerate().map(move |(which, name)| point(machine, which, name));
        machines.into_iter().flat_map(of).collect()
    }

    pub(in super::super) fn structural() -> Vec<Structural> {
        let misses = [12.63, 13.90, 2.21, 4.13, 4.20, 6.85, 4.20];
        let point = |(algorithm, misses)| Structural {
            algorithm,
            items: ITEMS,
            block_bytes: 32,
            touches: 15.0,
            misses,
        };
        names().zip(misses).map(point).collect()
    }

    pub(in super::super) fn timed() -> Vec<Timed> {
        let times = [200.0, 250.0, 90.0, 120.0, 300.0, 110.0, 140.0];
        let spread = |ns| Spread { median: ns, least: ns - 1.0, most: ns + 1.0 };
        let point =
            |(algorithm, ns)| Timed { algorithm, items: ITEMS, block_bytes: 32, lookups: 10, ns: spread(ns) };
        names().zip(times).map(point).collect()
    }

    #[test]
    fn the_papers_own_picture_holds() {
        // The same figures at two numbers of items, of which the second is a large data set.
        let large = 1 << 18;
        let (mut counted, mut structural, mut timed) = (counted(), structural(), timed());
        counted.extend(counted.clone().into_iter().map(|point| Counted { items: large, ..point }));
        structural.extend(structural.clone().into_iter().map(|point| Structural { items: large, ..point }));
        timed.extend(timed.clone().into_iter().map(|point| Timed { items: large, ..point }));
        let claims = check(&counted, &structural, &timed);
        assert_eq!(claims.len(), 2 * MISSES.len() + INSTRUCTIONS.len() + 3 * (TIMES.len() + 1) + 2 * 7);
        for claim in &claims {
            // What nobody could explain needs the machine that showed it.
            let inexplicable = claim.sentence.starts_with("Inexplicably");
            assert!(inexplicable || claim.verdict == Verdict::Holds, "{claim:#?}");
            assert!(claim.extent.contains("2^18"), "{claim:#?}");
        }
    }

    #[test]
    fn the_conclusion_is_asked_of_large_data_sets_alone() {
        let claims = check(&counted(), &structural(), &timed());
        let conclusion: Vec<&Claim> = claims.iter().filter(|claim| claim.sentence == LARGE.words).collect();
        assert_eq!(conclusion.len(), 3);
        assert!(conclusion.iter().all(|claim| claim.verdict == Verdict::NotMeasured), "{conclusion:#?}");
    }

    #[test]
    fn another_picture_is_told_apart() {
        let verdicts = |counted: &[Counted]| -> Vec<Verdict> {
            check(counted, &structural(), &timed()).iter().map(|claim| claim.verdict).collect()
        };
        let mut one_layout = counted();
        one_layout[2].trials[1].misses = 90.0;
        let expected = verdicts(&counted());
        let differing: Vec<Verdict> = verdicts(&one_layout)
            .into_iter()
            .zip(&expected)
            .filter(|(a, b)| a != *b)
            .map(|(a, _)| a)
            .collect();
        assert!(!differing.is_empty() && differing.iter().all(|v| *v == Verdict::DependsOnLayout));
        let mut dear = counted();
        dear[1].trials.iter_mut().for_each(|trial| trial.instructions = 400.0);
        assert!(verdicts(&dear).contains(&Verdict::Fails));
    }

    #[test]
    fn without_figures_nothing_is_said() {
        assert!(check(&[], &[], &[]).iter().all(|claim| claim.verdict == Verdict::NotMeasured));
    }
}
