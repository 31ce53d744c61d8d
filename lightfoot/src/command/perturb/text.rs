//! Verdicts for people: what is disturbed comes first, the largest difference first.

use measure::perturb::{Comparison, Kind, Report, Verdict};
use std::fmt::Write;

/// Verdicts in the order in which a reader needs them, with their titles.
pub(super) const ORDER: [(Verdict, &str); 3] = [
    (Verdict::Disturbed, "Disturbed"),
    (Verdict::CannotTell, "Cannot tell"),
    (Verdict::Undisturbed, "Undisturbed"),
];

/// The comparisons with a verdict, the largest difference first.
pub(super) fn with(report: &Report, verdict: Verdict) -> Vec<&Comparison> {
    // A size is no less than 0, so its bits are in its order.
    let size = |comparison: &Comparison| comparison.difference().map_or(0, |change| change.abs().to_bits());
    let keyed = report.comparisons.iter().enumerate().filter(|(_, comparison)| comparison.verdict == verdict);
    let mut order: Vec<(u64, usize)> = Vec::new();
    keyed.for_each(|(at, comparison)| order.push((u64::MAX - size(comparison), at)));
    order.sort_unstable();
    order.into_iter().map(|(_, at)| &report.comparisons[at]).collect()
}

/// What was compared, in a word.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Inner => "inner",
        Kind::Outer => "outer",
    }
}

/// What the words for kinds mean, for those kinds that occur.
pub(super) fn kinds(report: &Report) -> String {
    let meaning = [
        (Kind::Inner, "inner: two metrics within a run"),
        (Kind::Outer, "outer: a metric with itself, runs aligned with baselines"),
    ];
    let occurs = |kind| report.comparisons.iter().any(|comparison| comparison.kind == kind);
    let words: Vec<&str> =
        meaning.into_iter().filter(|(kind, _)| occurs(*kind)).map(|(_, words)| words).collect();
    words.join("; ")
}

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let [baselines, runs] = report.samples;
    let mut out = format!("{}: {baselines} baselines, {runs} runs", report.verdict().words());
    if let Some(added) = report.added_instructions {
        let _ = write!(out, ", instructions {:+.3} %", 100.0 * added);
    }
    let _ = writeln!(out, "; no inner p below {:.4} is possible", report.smallest_p);
    for (verdict, title) in ORDER {
        let found = with(report, verdict);
        if !found.is_empty() {
            let _ = writeln!(out, "\n{title}: {} of {}", found.len(), report.comparisons.len());
        }
        for comparison in found {
            let _ = writeln!(out, "  {}  {}", kind(comparison.kind), comparison.sentence);
        }
    }
    if !report.comparisons.is_empty() {
        let _ = writeln!(out, "\n({})", kinds(report));
    }
    if !report.notes.is_empty() {
        out += "\n";
    }
    report.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use measure::perturb::Side;

    /// A comparison of each verdict, and a second disturbed one with a larger difference.
    pub(crate) fn report() -> Report {
        let side = |mean| Some(Side { mean, deviation: 0.01, samples: 5 });
        let comparison = |kind, name: &str, verdict: Verdict, run| Comparison {
            kind,
            metrics: [name.into(), "<m>".into()],
            baseline: side(0.8),
            run: side(run),
            p: Some(0.02),
            verdict,
            sentence: format!("{name}: {}", verdict.words()),
            would_tell: None,
            correlations: Vec::new(),
        };
        Report {
            metrics: vec!["a".into(), "b".into(), "<m>".into()],
            samples: [5, 6],
            smallest_p: 0.004,
            added_instructions: Some(0.0123),
            comparisons: vec![
                comparison(Kind::Inner, "a", Verdict::Undisturbed, 0.79),
                comparison(Kind::Inner, "b", Verdict::Disturbed, 0.6),
                comparison(Kind::Outer, "a", Verdict::Disturbed, 0.1),
                comparison(Kind::Outer, "b", Verdict::CannotTell, 0.7),
            ],
            notes: vec!["a <note>".into()],
        }
    }

    #[test]
    fn what_is_disturbed_comes_first_and_the_largest_first() {
        let out = text(&report());
        let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("  ")).collect();
        let expected = [
            "  outer  a: disturbed",
            "  inner  b: disturbed",
            "  outer  b: cannot tell",
            "  inner  a: undisturbed",
        ];
        assert_eq!(lines, expected, "{out}");
        assert!(out.contains("\nDisturbed: 2 of 4\n") && out.ends_with("\nnote: a <note>\n"), "{out}");
    }
}
