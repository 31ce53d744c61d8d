//! From numbers to a word: *undisturbed*, *disturbed*, *cannot tell*.
//!
//! *Disturbed* needs significance and size: p, adjusted for the family, at most α, and a difference of at least the effect. *Undisturbed* is no lack of evidence either: the
//! difference is smaller than the effect, and so is the far end of its confidence interval (two one-sided tests, Schuirmann 1987). Everything else
//! cannot be told, and the sentence says why.

use super::{Options, Side, Verdict};

/// What is known of a comparison before the verdict.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) baseline: Option<Side>,
    pub(super) run: Option<Side>,
    /// Standard error of the difference and its degrees of freedom, when there are enough samples.
    pub(super) error: Option<(f64, usize)>,
    pub(super) p: Option<f64>,
    pub(super) smallest_p: f64,
    /// What is to be done when the smallest p is too large.
    pub(super) remedy: &'a str,
    pub(super) layout_bias: Option<&'a str>,
}

/// The verdict and its reason.
pub(super) fn decide(evidence: &Evidence<'_>, options: &Options) -> (Verdict, String) {
    let (Some(baseline), Some(run)) = (evidence.baseline, evidence.run) else {
        let reason = "a metric is constant, or was not counted, in some run: it has no correlation there";
        return (Verdict::CannotTell, reason.into());
    };
    let difference = run.mean - baseline.mean;
    // Never "-0.00".
    let shown = (100.0 * difference).round() / 100.0 + 0.0;
    let moved = format!("ρ {:.2} → {:.2} ({shown:+.2})", baseline.mean, run.mean);
    if evidence.smallest_p > options.alpha {
        let reason = format!(
            "{moved}; with these runs p cannot fall below {:.3}, so nothing is significant at {}: {}",
            evidence.smallest_p, options.alpha, evidence.remedy
        );
        return (Verdict::CannotTell, reason);
    }
    let p = evidence.p.unwrap_or(1.0);
    let large = difference.abs() >= options.effect;
    let significant = p <= options.alpha;
    if let (true, true, Some(bias)) = (large, significant, evidence.layout_bias) {
        return (Verdict::CannotTell, format!("{moved}, p = {p:.4}; {bias}"));
    }
    let margin = evidence.error.map(|(error, freedom)| difference.abs() + quantile(freedom) * error);
    match (large, significant, margin) {
        (true, true, _) => (Verdict::Disturbed, format!("{moved}, p = {p:.4}")),
        (true, false, _) => {
            let reason =
                format!("{moved}, but runs vary as much by themselves (p = {p:.2}): more runs would tell");
            (Verdict::CannotTell, reason)
        }
        (false, _, Some(margin)) if margin < options.effect => {
            (Verdict::Undisturbed, format!("{moved}, certainly less than {}", options.effect))
        }
        (false, ..) => {
            let reason = format!(
                "{moved}, and runs vary so much that {} is not excluded: more runs would tell",
                options.effect
            );
            (Verdict::CannotTell, reason)
        }
    }
}

/// 95 % of Student's distribution lies below this (one-sided), by degrees of freedom.
fn quantile(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
        1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701,
        1.699, 1.697,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => T[freedom - 1],
        _ => 1.697,
    }
}
