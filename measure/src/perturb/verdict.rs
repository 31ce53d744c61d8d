//! Chooses a verdict by numbers: *undisturbed*, *disturbed*, *cannot tell*.
//!
//! *Disturbed* needs significance and size: p, adjusted for the family, is at most α, and the
//! difference is at least the effect. *Undisturbed* needs evidence too: the difference is smaller
//! than the effect, and so is the far end of its confidence interval (two one-sided tests,
//! Schuirmann 1987). In all other cases the verdict is *cannot tell*, and a sentence says why.

use super::options::Options;
use super::quantile::quantile;
use super::remedy::{Remedy, SampleCounts};
use super::report::{Side, Verdict};

/// The result of relabelling for one comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// The p value, adjusted for the family.
    pub(super) p: f64,
    /// The observed statistic, in standard deviations over all relabellings.
    pub(super) statistic: f64,
    /// The value from which `statistic` is significant; `None` if none is.
    pub(super) critical: Option<f64>,
}

/// All that the verdict on a comparison depends on.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) baseline: Option<Side>,
    pub(super) run: Option<Side>,
    /// Standard error of the difference and its degrees of freedom; `None` if there are too few
    /// samples.
    pub(super) error: Option<(f64, usize)>,
    pub(super) test: Option<Test>,
    pub(super) smallest_p: f64,
    /// Computes how many samples would suffice.
    pub(super) remedy: Remedy<'a>,
    pub(super) layout_bias: Option<&'a str>,
}

/// The verdict and its reason; if it is *cannot tell*, also how many samples would suffice.
pub(super) fn decide(evidence: &Evidence<'_>, options: &Options) -> (Verdict, String, Option<SampleCounts>) {
    let (Some(baseline), Some(run)) = (evidence.baseline, evidence.run) else {
        let reason = "a metric is constant, or was not counted, in some run: it has no correlation there";
        return (Verdict::CannotTell, reason.into(), None);
    };
    let difference = run.mean - baseline.mean;
    // Never "-0.00".
    let shown = (100.0 * difference).round() / 100.0 + 0.0;
    let moved = format!("ρ {:.2} → {:.2} ({shown:+.2})", baseline.mean, run.mean);
    if evidence.smallest_p > options.alpha {
        let (samples, remedy) = evidence.remedy.fewest();
        let reason = format!(
            "{moved}; with these runs p cannot fall below {:.3}, so nothing is significant at {}: {}",
            evidence.smallest_p, options.alpha, remedy
        );
        return (Verdict::CannotTell, reason, Some(samples));
    }
    // Two questions: is it large enough to matter, and is it more than chance.
    let p = evidence.test.map_or(1.0, |test| test.p);
    let large = difference.abs() >= options.effect;
    let significant = p <= options.alpha;
    // A difference that layout could explain is not attributed to instrumentation.
    if let (true, true, Some(bias)) = (large, significant, evidence.layout_bias) {
        return (Verdict::CannotTell, format!("{moved}, p = {p:.4}; {bias}"), None);
    }
    // The far end of the difference's confidence interval.
    let margin = evidence.error.map(|(error, freedom)| difference.abs() + quantile(freedom) * error);
    let remedy = evidence.remedy;
    match (large, significant, margin) {
        (true, true, _) => (Verdict::Disturbed, format!("{moved}, p = {p:.4}"), None),
        (true, false, _) => {
            let needed = evidence.test.and_then(|test| remedy.significant(test.statistic, test.critical));
            let remedy = remedy.sentence(needed);
            let reason = format!("{moved}, but runs vary as much by themselves (p = {p:.2}): {remedy}");
            (Verdict::CannotTell, reason, needed)
        }
        (false, _, Some(margin)) if margin < options.effect => {
            (Verdict::Undisturbed, format!("{moved}, certainly less than {}", options.effect), None)
        }
        (false, ..) => {
            let needed = remedy.certain(difference, options.effect, evidence.error);
            let remedy = remedy.sentence(needed);
            let reason =
                format!("{moved}, and runs vary so much that {} is not excluded: {remedy}", options.effect);
            (Verdict::CannotTell, reason, needed)
        }
    }
}
