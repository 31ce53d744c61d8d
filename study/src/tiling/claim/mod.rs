//! Decides for every sentence of Athanasaki et al. 2006 that states a finding whether it holds
//! here.
//!
//! Sections 3 and 5 are about the paper's Xeon, which is simulated ([`simulation`]). Section 4
//! measures that Xeon, so another machine can repeat only the kind of experiment ([`time`]). A
//! sentence holds if it holds at every N of the study.

mod simulation;
mod time;

use super::findings::Findings;
use crate::outcome::{by_size, Claim, Verdict};

/// All sentences, in the paper's order.
pub(super) fn check(findings: &Findings) -> Vec<Claim> {
    let mut claims = simulation::abstract_and_section_3(findings);
    claims.extend(time::section_4(findings));
    claims.extend(simulation::section_5(findings));
    claims
}

/// A sentence of the paper, and what it is held against.
struct Sentence {
    place: &'static str,
    quote: &'static str,
    measured: String,
}

impl Sentence {
    fn new(place: &'static str, quote: &'static str, measured: impl Into<String>) -> Sentence {
        Sentence { place, quote, measured: measured.into() }
    }

    /// The answer for each N, with its figures; an N that gives none decides nothing.
    fn at(self, sizes: &[usize], answer: impl Fn(usize) -> Option<(bool, String)>) -> Claim {
        let answers: Vec<(usize, Option<(bool, String)>)> = sizes.iter().map(|&n| (n, answer(n))).collect();
        let points: Vec<(String, Option<bool>)> = answers
            .iter()
            .map(|(n, answer)| (format!("N = {n}"), answer.as_ref().map(|(holds, _)| *holds)))
            .collect();
        let (verdict, extent) = by_size(&points);
        let shown = |(n, answer): &(usize, Option<(bool, String)>)| {
            answer.as_ref().map(|(_, figures)| format!("N = {n}: {figures}"))
        };
        let detail: Vec<String> = answers.iter().filter_map(shown).collect();
        let detail = if detail.is_empty() { "nothing was measured".into() } else { detail.join("; ") };
        let Sentence { place, quote, measured } = self;
        Claim { place, sentence: quote, measured, verdict, extent, spread: String::new(), detail }
    }

    /// A sentence that nothing here can decide, and why.
    fn undecided(self, why: impl Into<String>) -> Claim {
        let Sentence { place, quote, measured } = self;
        Claim {
            place,
            sentence: quote,
            measured,
            verdict: Verdict::NotMeasured,
            extent: String::new(),
            spread: String::new(),
            detail: why.into(),
        }
    }
}

/// `T = 64`, or that there is none.
fn tile(tile: Option<usize>) -> String {
    tile.map_or("no T".into(), |tile| format!("T = {tile}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::simulation::Missed;
    use crate::tile::timing::Rate;
    use crate::tile::POWERS;
    use crate::tiling::findings::{Counted, Host, Simulated, Times, Unified};
    use crate::tiling::findings::{FOUR_THREADS, SERIAL, TWO_THREADS};
    use crate::tiling::variant::VARIANTS;

    /// Findings at N = 1,024 and 2,048 with the misses, mispredictions and speeds of some T.
    fn findings(
        missed: impl Fn(&str, usize, usize) -> [u64; 3],
        mispredicted: impl Fn(usize) -> u64,
        speed: impl Fn(&str, usize, usize) -> f64,
    ) -> Findings {
        let mut findings = Findings {
            host: Host { simultaneous: true, fitting: Some(64), ..Host::default() },
            unified: Some(Unified { n: 512, tile: 64, data: 1000, both: missed("unified", 512, 1)[0] }),
            ..Findings::default()
        };
        for n in [1024, 2048] {
            for (variant, &tile) in VARIANTS.iter().flat_map(|v| POWERS.iter().map(move |tile| (v, tile))) {
                let [l1, l2, tlb] = missed(variant.name, n, tile);
                let missed = Missed { l1, l2: Some(l2), tlb: Some(tlb) };
                findings.simulated.push(Simulated { variant: variant.name.into(), n, tile, missed });
            }
            let rate = |crew: &str, tile| {
                let gflops = [1.0; 3].map(|one| one * speed(crew, n, tile));
                Rate { crew: crew.into(), tile, gflops }
            };
            let rates = [SERIAL, TWO_THREADS, FOUR_THREADS].into_iter();
            let rates = rates.flat_map(|crew| POWERS.iter().map(move |&tile| rate(crew, tile))).collect();
            findings.times.push(Times { n, rates });
        }
        // Counts of the compiled loops: instructions fall with T, as loop overhead does.
        for (loops, predictor, n, tile) in crate::tiling::real::counts() {
            findings.counted.push(Counted {
                loops: loops.into(),
                predictor: predictor.into(),
                n,
                tile,
                missed: Missed::default(),
                instructions: 1_000_000 / tile as u64,
                mispredictions: mispredicted(tile),
            });
        }
        findings
    }

    /// Findings of an invented machine on which every sentence of the paper holds.
    fn papers() -> Findings {
        // Up to the best T, misses fall as 1/T; beyond it they are many. Two threads share L1, so
        // their best T is half as large below N = 2,048.
        let missed = |variant: &str, n: usize, tile: usize| {
            let best = if variant.starts_with("two threads") && n < 2048 { 32 } else { 64 };
            let l1 = if tile <= best { 64_000_000 / tile as u64 } else { 20_000_000 + tile as u64 };
            let fewer = match (variant, tile) {
                (super::super::variant::MODERATE, _) => 40_000_000 / tile as u64,
                (_, 512) => 1_000,
                (_, tile) => 100_000 - tile as u64,
            };
            // The moderate L2 moves the optimum to T = 128 to 256, as section 5 states.
            let moderate = variant == super::super::variant::MODERATE;
            let l1 = if moderate && (128..=256).contains(&tile) { 64_000 } else { l1 };
            [if variant == "unified" { 1005 } else { l1 }, fewer, if tile == 256 { 500 } else { 900 }]
        };
        let speed = |crew: &str, n: usize, tile: usize| {
            let best = match crew {
                SERIAL => 64,
                TWO_THREADS if n >= 2048 => 64,
                _ => 32,
            };
            let factor = match crew {
                SERIAL => 2.0,
                TWO_THREADS => 1.5,
                _ => 2.88,
            };
            if tile == best {
                factor
            } else {
                factor / 4.0
            }
        };
        findings(missed, |tile| 100_000 / tile as u64, speed)
    }

    /// The opposite of each: small tiles best everywhere, threads that gain nothing, a second level
    /// that misses as often as the first.
    fn opposite() -> Findings {
        let missed = |variant: &str, _: usize, tile: usize| {
            // The first level misses a little more with every T, the others least at T = 16.
            let l1 = 10_000_000 + 1_000_000 * u64::from(tile.ilog2());
            let l1 = if variant == super::super::variant::WAYS[2] { l1 / 3 } else { l1 };
            let others = 1_000_000 * (1 + tile.abs_diff(16) as u64);
            [if variant == "unified" { 1500 } else { l1 }, others, others]
        };
        findings(
            missed,
            |tile| 10_000 * tile as u64,
            |crew, n, tile| {
                let slow = if crew == SERIAL {
                    1.0
                } else if crew == TWO_THREADS {
                    1.2
                } else {
                    0.9
                };
                let best = if crew == SERIAL || n < 2048 { 128 } else { 512 };
                if tile == best {
                    slow
                } else {
                    slow / 8.0
                }
            },
        )
    }

    #[test]
    fn sentences_are_the_papers_and_have_an_answer() {
        for claim in check(&papers()) {
            assert!(!claim.sentence.is_empty() && !claim.measured.is_empty() && !claim.detail.is_empty());
        }
        assert!(check(&Findings::default()).iter().all(|claim| claim.verdict == Verdict::NotMeasured));
    }

    /// Sentences that both machines answer the same, or that no machine answers, are not tested.
    #[test]
    fn every_sentence_can_hold_and_can_fail() {
        let (true_of, false_of) = (check(&papers()), check(&opposite()));
        for (yes, no) in true_of.iter().zip(&false_of) {
            if yes.verdict == Verdict::NotMeasured {
                assert_eq!(no.verdict, Verdict::NotMeasured, "{}", yes.sentence);
                continue;
            }
            assert_eq!(yes.verdict, Verdict::Holds, "{}: {}", yes.sentence, yes.detail);
            assert_eq!(no.verdict, Verdict::Fails, "{}: {}", no.sentence, no.detail);
        }
    }

    #[test]
    fn a_host_whose_cores_run_one_thread_decides_nothing_about_two() {
        let mut findings = papers();
        findings.host.simultaneous = false;
        let claims = check(&findings);
        let serial = claims.iter().find(|claim| claim.sentence.contains("seems to have better")).unwrap();
        assert_eq!(serial.verdict, Verdict::NotMeasured);
    }

    #[test]
    fn the_number_of_mispredictions_that_make_a_tile_cheapest_is_bounded() {
        let findings = papers();
        let (low, high) = findings.cheapest_between("one thread", 1024, 64).unwrap();
        assert!(low == 0.0 && high > 0.0 && high < 1.0, "{low} {high}");
        assert_eq!(
            opposite().cheapest_between("one thread", 1024, 512).map(|(low, _)| low > 0.0),
            Some(true)
        );
    }
}
