//! What section 4.5 of Ladner, Fortna and Nguyen 2002 says of instrumentation with ATOM, held
//! against this run.
//!
//! Addresses, registers and single instructions are held by the tests; a study repeats what an
//! output, a clock and a count can show. That a count repeats is no sentence of the paper; the page
//! has it in a table.

use super::contender::{CACHE, COUNT, NATIVE};
use super::result::{Findings, ProgramFindings};
use crate::layout::Spread;
use crate::outcome::{Claim, Verdict};
use crate::race::geometric_mean;

/// All sentences.
pub(super) fn check(findings: &Findings) -> Vec<Claim> {
    vec![same_semantics(&findings.programs), slower(&findings.programs)]
}

fn same_semantics(programs: &[ProgramFindings]) -> Claim {
    let compared: Vec<(&str, bool)> = programs
        .iter()
        .filter_map(|program| Some((program.name.as_str(), program.exactness.as_ref()?.same_output?)))
        .collect();
    let differing: Vec<&str> = compared.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    Claim {
        place: "Section 4.5",
        sentence: "When the executable is then run, it has the same semantics as the uninstrumented program",
        measured: "standard output and exit status, natively and under `lightfoot count`".into(),
        verdict: Verdict::of((!compared.is_empty()).then_some(differing.is_empty())),
        extent: String::new(),
        spread: String::new(),
        detail: match (compared.is_empty(), differing.is_empty()) {
            (true, _) => "No program could be run".into(),
            (_, true) => format!("{} programs said and ended the same", compared.len()),
            _ => format!("{} of {} differ: {}", differing.len(), compared.len(), differing.join(", ")),
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
    let ratios: Vec<f64> = programs.iter().filter_map(|program| program.ratio(CACHE, NATIVE)).collect();
    Claim {
        place: "Section 4.5",
        sentence:
            "This means that the instrumented code can be considerably slower than the uninstrumented code",
        measured:
            "wall times of whole commands, `lightfoot count` and `lightfoot cache` over the program alone"
                .into(),
        // "Can be": one program that takes half as long again is enough.
        verdict: Verdict::of(count.zip(cache).map(|(count, cache)| count.max(cache) > 1.5)),
        extent: String::new(),
        spread: Spread::of(&ratios)
            .map_or(String::new(), |spread| format!("cache over the programs: {spread:.1}")),
        detail: format!(
            "Times as long as natively, geometric means: count {}, cache {}, start-up and report included",
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
    fn another_output_decides() {
        let mut findings = findings();
        assert_eq!(check(&findings)[0].verdict, Verdict::NotMeasured);
        let compared = |same| Some(Exactness { same_output: Some(same), ..Exactness::default() });
        findings.programs[0].exactness = compared(true);
        assert_eq!(check(&findings)[0].verdict, Verdict::Holds);
        findings.programs[1].exactness = compared(false);
        let claim = &check(&findings)[0];
        assert_eq!((claim.verdict, claim.detail.as_str()), (Verdict::Fails, "1 of 2 differ: b"));
    }

    #[test]
    fn slowness_needs_both() {
        assert_eq!(check(&findings())[1].verdict, Verdict::NotMeasured);
    }
}
