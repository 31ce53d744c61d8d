//! What section 4.5 of Ladner, Fortna and Nguyen 2002 says of instrumentation with ATOM, held
//! against this run.
//!
//! That output, exit status and addresses are the program's own is held by the tests, on every
//! instruction; a study only repeats what a clock and a count can show.

use super::contender::{CACHE, COUNT, NATIVE};
use super::result::{Findings, ProgramFindings};
use crate::outcome::Claim;
use crate::race::geometric_mean;

/// All sentences.
pub(super) fn check(findings: &Findings) -> Vec<Claim> {
    vec![repeats(&findings.programs), slower(&findings.programs)]
}

fn repeats(programs: &[ProgramFindings]) -> Claim {
    let pairs =
        programs.iter().filter_map(|program| Some((program.name, program.exactness.as_ref()?.repeats?)));
    let pairs: Vec<(&str, [u64; 2])> = pairs.collect();
    let differing: Vec<&str> =
        pairs.iter().filter(|(_, [first, second])| first != second).map(|(name, _)| *name).collect();
    Claim {
        place: "Section 4.5",
        sentence: "an instruction counter gives a number, not an estimate: a second run counts the same",
        holds: (!pairs.is_empty()).then_some(differing.is_empty()),
        detail: match differing.is_empty() {
            true => format!("{} programs counted twice", pairs.len()),
            false => format!("{} of {} differ: {}", differing.len(), pairs.len(), differing.join(", ")),
        },
    }
}

fn slower(programs: &[ProgramFindings]) -> Claim {
    let mean = |contender: &str| {
        let ratios: Vec<f64> =
            programs.iter().filter_map(|program| program.ratio(contender, NATIVE)).collect();
        geometric_mean(&ratios)
    };
    let (count, cache) = (mean(COUNT), mean(CACHE));
    let shown = |mean: Option<f64>| mean.map_or("not measured".into(), |mean| format!("{mean:.1}"));
    Claim {
        place: "Section 4.5",
        sentence:
            "instrumented code can be considerably slower than the program alone (here: more than 1.5 times)",
        holds: count.zip(cache).map(|(count, cache)| count.max(cache) > 1.5),
        detail: format!(
            "times as long as natively, geometric means: count {}, cache {}, start-up and report included",
            shown(count),
            shown(cache)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::findings;
    use super::super::result::Exactness;
    use super::*;

    #[test]
    fn a_second_count_decides() {
        let mut findings = findings();
        assert_eq!(check(&findings)[0].holds, None);
        let counted = |repeats| Some(Exactness { repeats: Some(repeats), ..Exactness::default() });
        findings.programs[0].exactness = counted([5, 5]);
        assert_eq!(check(&findings)[0].holds, Some(true));
        findings.programs[1].exactness = counted([5, 6]);
        let claim = &check(&findings)[0];
        assert_eq!((claim.holds, claim.detail.as_str()), (Some(false), "1 of 2 differ: b"));
    }

    #[test]
    fn slowness_needs_both() {
        assert_eq!(check(&findings())[1].holds, None);
    }
}
