//! Decides for each sentence of Cameron et al. 2014 about bit-parallel matching whether it holds in
//! this run.
//!
//! The available copy of the paper is a draft. Its sections 5 to 7 are headings, and its Figures 3
//! to 10 and 12 have captions and axes but no numbers. So the sentences are those of the abstract,
//! the introduction and sections 2 and 3. The page has tables of the quantities that the figures
//! would show.

use super::card::OnCard;
use super::contender::{Kind, AVX2, AVX512, CONTENDERS, SSE2};
use super::findings::{Cost, Row};
use crate::layout::Spread;
use crate::outcome::{by_size, Claim, Verdict};
use crate::race::geometric_mean;

/// "Substantially": this many times as fast, over the families.
const SUBSTANTIALLY: f64 = 2.0;

/// "To scale": vectors of twice the width execute at most this share of the instructions.
const SCALED_INSTRUCTIONS: f64 = 0.75;

/// All sentences.
pub(super) fn check(rows: &[Row], card: &OnCard) -> Vec<Claim> {
    vec![
        outperforms(rows),
        scales(rows),
        accelerates(card),
        several_characters(rows),
        Claim {
            place: "Introduction",
            sentence: "the agrep and nrgrep programs […] remain among the strongest competitors in regular expression matching performance",
            measured: String::from("nothing"),
            verdict: Verdict::NotMeasured,
            extent: String::new(),
            spread: String::new(),
            detail: "Neither program is in Debian: its agrep (tre-agrep) is another one with the same name, whose figures stand in the tables".into(),
        },
    ]
}

/// A ratio of two contenders' figures by family.
fn ratios<'r>(
    rows: &'r [Row],
    one: &str,
    other: &str,
    of: impl Fn(&Cost) -> Option<f64>,
) -> Vec<(&'r str, f64)> {
    let ratio = |row: &'r Row| Some((row.family.as_str(), of(row.cost(one)?)? / of(row.cost(other)?)?));
    rows.iter().filter_map(ratio).collect()
}

fn outperforms(rows: &[Row]) -> Claim {
    let kinds = [(Kind::Nfa, "NFA"), (Kind::Dfa, "DFA"), (Kind::Backtracking, "backtracking")];
    let (mut means, mut details, mut slower) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, name) in kinds {
        for contender in CONTENDERS.iter().filter(|contender| contender.kind == kind) {
            let speeds = ratios(rows, SSE2, contender.name, |cost| cost.gigabytes_per_second);
            let all: Vec<f64> = speeds.iter().map(|(_, ratio)| *ratio).collect();
            let Some(mean) = geometric_mean(&all) else { continue };
            details.push(format!("{mean:.1} times {} ({name}, {} families)", contender.name, all.len()));
            means.push(mean);
            // The mean decides; families on which the contender is faster are named all the same.
            let behind = speeds.iter().filter(|(_, ratio)| *ratio < 1.0);
            slower.extend(behind.map(|(family, _)| format!("{} on {family}", contender.name)));
        }
    }
    Claim {
        place: "Abstract",
        sentence: "On widely-deployed commodity hardware using 128-bit SSE2 SIMD technology, our algorithm implementations can substantially outperform traditional grep implementations based on NFAs, DFAs or backtracking.",
        measured: format!(
            "speed of bit streams translated for SSE2 over each contender's (substantially: at least {SUBSTANTIALLY} times, geometric mean over the families)"
        ),
        // The sentence speaks of all three kinds of implementations, so one contender that is not
        // clearly slower contradicts it.
        verdict: Verdict::of(
            (!means.is_empty()).then(|| means.iter().all(|mean| *mean >= SUBSTANTIALLY)),
        ),
        extent: if slower.is_empty() || means.is_empty() {
            String::new()
        } else {
            format!("slower than {}", slower.join(", "))
        },
        spread: Spread::of(&means).map_or(String::new(), |spread| format!("{spread:.1} over the contenders")),
        detail: if details.is_empty() { "Nobody could be compared".into() } else { details.join("; ") },
    }
}

fn scales(rows: &[Row]) -> Claim {
    let steps = [(SSE2, AVX2, "128 to 256 bits"), (AVX2, AVX512, "256 to 512 bits")];
    let (mut answers, mut details, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (narrow, wide, name) in steps {
        let values = |of: fn(&Cost) -> Option<f64>| -> Vec<f64> {
            ratios(rows, wide, narrow, of).iter().map(|(_, ratio)| *ratio).collect()
        };
        let fewer = values(|cost| cost.instructions_per_byte);
        let mean = geometric_mean(&fewer);
        answers.push((name.to_owned(), mean.map(|mean| mean <= SCALED_INSTRUCTIONS)));
        if let Some(mean) = mean {
            let faster = geometric_mean(&values(|cost| cost.gigabytes_per_second));
            let faster =
                faster.map_or(String::from("not timed"), |times| format!("{times:.2} times as fast"));
            details.push(format!("{name}: {mean:.2} times the instructions, {faster}"));
        }
        all.extend(fewer);
    }
    let (verdict, extent) = by_size(&answers);
    Claim {
        place: "Abstract",
        sentence: "The algorithms are also designed to scale with the availability of additional parallel resources such as the wider SIMD facilities (256-bit) of Intel AVX2 or future 512-bit extensions.",
        measured: format!(
            "instructions a byte of the same programs translated for twice the width (to scale: at most {SCALED_INSTRUCTIONS} times as many, geometric mean)"
        ),
        verdict,
        extent,
        spread: Spread::of(&all).map_or(String::new(), |spread| format!("{spread:.2} over the families")),
        detail: if details.is_empty() {
            "This machine lacks AVX2".into()
        } else {
            // What is more than a half is not the width's doing.
            format!(
                "{}; AVX-512 has three-input logic and transposes with bit matrices besides",
                details.join("; ")
            )
        },
    }
}

fn accelerates(card: &OnCard) -> Claim {
    let shares = card.shares_of_transfer();
    Claim {
        place: "Abstract",
        sentence: "Our GPU implementations show further acceleration limited only by data transfer speed.",
        measured:
            "searches of text in pinned memory, over the speed of copying it to the card in the same run"
                .into(),
        verdict: Verdict::of(Spread::of(&shares).map(|spread| spread.median >= 0.8)),
        extent: String::new(),
        spread: Spread::of(&shares)
            .map_or(String::new(), |spread| format!("{spread:.2} of the copy's speed")),
        detail: if shares.is_empty() {
            "This machine has no card that can be used; results/card holds the figures of one".into()
        } else {
            format!("{} families on the card", shares.len())
        },
    }
}

/// Operations with which Shift-Or, the simplest bit-parallel NFA, passes one byte, for each word of
/// states: a look-up, a shift, an or.
const SHIFT_OR_OPERATIONS: usize = 3;
const WORD_BITS: usize = 64;

fn several_characters(rows: &[Row]) -> Claim {
    let (mut values, mut fewer) = (Vec::new(), Vec::new());
    for row in rows {
        let Some(analysis) = &row.analysis else { continue };
        let operations = analysis.operations_per_byte(128);
        let theirs = SHIFT_OR_OPERATIONS * analysis.nfa_states.div_ceil(WORD_BITS);
        values.push(operations);
        fewer.push((row.family.clone(), Some(operations < theirs as f64)));
    }
    let failing: Vec<&str> =
        fewer.iter().filter(|(_, holds)| *holds == Some(false)).map(|(family, _)| family.as_str()).collect();
    let nfa: Vec<f64> =
        rows.iter().filter_map(|row| row.cost("regex's NFA")?.instructions_per_byte).collect();
    Claim {
        place: "Introduction",
        sentence: "Whereas our approach can match multiple characters per step, bit-parallel NFA algorithms proceed through the input one byte at a time.",
        measured: format!(
            "operations of the program for a byte with vectors of 128 bits, against {SHIFT_OR_OPERATIONS} for each word of states with which Shift-Or passes one"
        ),
        verdict: by_size(&fewer).0,
        extent: if failing.is_empty() { String::new() } else { format!("fails for {}", failing.join(", ")) },
        spread: Spread::of(&values)
            .map_or(String::new(), |spread| format!("{spread:.3} operations a byte over the families")),
        detail: Spread::of(&nfa).map_or(String::from("No NFA was counted"), |spread| {
            format!("An NFA simulation (regex's) executes {spread:.0} instructions a byte")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::Analysis;
    use super::*;

    fn cost(contender: &str, speed: f64, instructions: f64) -> Cost {
        Cost {
            contender: contender.into(),
            gigabytes_per_second: Some(speed),
            instructions_per_byte: Some(instructions),
            ..Cost::default()
        }
    }

    fn row(costs: Vec<Cost>, operations: usize) -> Row {
        let analysis = Analysis { logic: operations, carrying: 0, nfa_states: 9, dfa_bytes: None };
        Row {
            family: "family".into(),
            pattern: "p".into(),
            engine: "streams".into(),
            lines: 1,
            costs,
            analysis: Some(analysis),
        }
    }

    fn verdicts(rows: &[Row]) -> Vec<Verdict> {
        check(rows, &OnCard::none()).iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_sentence_can_hold_and_can_fail() {
        let (yes, no, unknown) = (Verdict::Holds, Verdict::Fails, Verdict::NotMeasured);
        let good = vec![
            cost(SSE2, 2.0, 2.0),
            cost(AVX2, 4.0, 1.0),
            cost(AVX512, 6.0, 0.5),
            cost("GNU grep", 0.5, 5.0),
        ];
        assert_eq!(verdicts(&[row(good.clone(), 60)]), [yes, yes, unknown, yes, unknown]);
        let mut bad = good;
        (bad[1].instructions_per_byte, bad[3].gigabytes_per_second) = (Some(1.9), Some(4.0));
        let claims = check(&[row(bad, 600)], &OnCard::none());
        let found: Vec<Verdict> = claims.iter().map(|claim| claim.verdict).collect();
        assert_eq!(found, [no, no, unknown, no, unknown]);
        assert_eq!(claims[0].extent, "slower than GNU grep on family");
    }

    #[test]
    fn what_was_not_measured_decides_nothing() {
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 5]);
    }
}
