//! What the study found: predictions by several rules beside measured times.

use super::experiment::{Counted, Timed};
use super::statistics::{median_error, pairs, scale, spearman};
use serde::Serialize;

/// Times of a family that differ by less are not told apart, as a share of the smaller one.
pub(super) const APART: f64 = 0.05;

/// The bar: rank correlation, share of pairs in percent, and median error in percent.
pub(super) const BAR: [f64; 3] = [0.90, 90.0, 40.0];

/// One variant.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) family: String,
    pub(super) operations: usize,
    pub(super) half: Half,
    pub(super) timed: Timed,
    pub(super) counted: Counted,
}

/// Constants were fitted to one half of the variants; the other half judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Half {
    Fitting,
    Judging,
}

impl Half {
    /// The half of the variant at a place of its family: the first is for fitting, the second
    /// judges, and so on. The rule is older than the first result.
    pub(super) fn of(place: usize) -> Half {
        if place.is_multiple_of(2) {
            Half::Fitting
        } else {
            Half::Judging
        }
    }

    pub(super) fn shown(self) -> &'static str {
        match self {
            Half::Fitting => "fitting",
            Half::Judging => "judging",
        }
    }
}

/// A rule that predicts time from what was counted.
pub(super) struct Predictor {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) predict: fn(&Counted) -> f64,
}

/// All rules, the estimate last.
pub(super) const PREDICTORS: &[Predictor] = &[
    Predictor { name: "instructions", about: "instructions alone", predict: |counted| counted.instructions },
    Predictor {
        name: "Ir + 10 L1 + 100 LL",
        about: "the usual rule of cachegrind's users, with misses of the first and the last level",
        predict: |counted| counted.instructions + 10.0 * counted.l1_misses + 100.0 * counted.last_misses,
    },
    Predictor {
        name: "declared costs",
        about: "the machine's declared cost of every event, in full: what the report called cycles before",
        predict: |counted| counted.declared,
    },
    Predictor {
        name: ESTIMATE,
        about: "the report's estimated cycles",
        predict: |counted| counted.estimated,
    },
];

/// The name of the rule that is judged.
pub(super) const ESTIMATE: &str = "estimated cycles";

/// How good a rule is over some variants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quality {
    pub(super) variants: usize,
    pub(super) spearman: f64,
    /// Pairs within a family in the right order, and all that are told apart.
    pub(super) pairs_right: usize,
    pub(super) pairs: usize,
    pub(super) median_error_percent: f64,
}

impl Quality {
    /// Pairs in the right order, in percent.
    pub(super) fn pairs_percent(&self) -> f64 {
        100.0 * self.pairs_right as f64 / self.pairs.max(1) as f64
    }

    /// Whether each of the three figures reaches the bar.
    pub(super) fn reaches(&self) -> [bool; 3] {
        [self.spearman >= BAR[0], self.pairs_percent() >= BAR[1], self.median_error_percent <= BAR[2]]
    }
}

/// A rule with its scale and its quality over all variants, the fitting half and the judging half.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) predictor: &'static str,
    /// Nanoseconds of a predicted unit: the middle of the fitting half's ratios.
    pub(super) scale_ns: f64,
    pub(super) all: Option<Quality>,
    pub(super) fitting: Option<Quality>,
    pub(super) judging: Option<Quality>,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) host: String,
    pub(super) rows: Vec<Row>,
    pub(super) verdicts: Vec<Verdict>,
}

impl Row {
    /// Measured nanoseconds of an operation: the least of all rounds.
    pub(super) fn measured(&self) -> f64 {
        self.timed.least_ns / self.operations as f64
    }

    /// Predicted units of an operation.
    pub(super) fn predicted(&self, predictor: &Predictor) -> f64 {
        (predictor.predict)(&self.counted) / self.operations as f64
    }
}

/// The verdicts about all rules.
pub(super) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    PREDICTORS.iter().filter_map(|predictor| verdict(rows, predictor)).collect()
}

fn verdict(rows: &[Row], predictor: &Predictor) -> Option<Verdict> {
    let half = |half: Half| -> Vec<&Row> { rows.iter().filter(|row| row.half == half).collect() };
    let (all, fitting, judging): (Vec<&Row>, _, _) =
        (rows.iter().collect(), half(Half::Fitting), half(Half::Judging));
    let (predicted, measured) = columns(&fitting, predictor);
    let scale_ns = scale(&predicted, &measured)?;
    let quality = |rows: &[&Row]| quality(rows, predictor, scale_ns);
    Some(Verdict {
        predictor: predictor.name,
        scale_ns,
        all: quality(&all),
        fitting: quality(&fitting),
        judging: quality(&judging),
    })
}

fn columns(rows: &[&Row], predictor: &Predictor) -> (Vec<f64>, Vec<f64>) {
    rows.iter().map(|row| (row.predicted(predictor), row.measured())).unzip()
}

fn quality(rows: &[&Row], predictor: &Predictor, scale_ns: f64) -> Option<Quality> {
    let (predicted, measured) = columns(rows, predictor);
    let (mut pairs_right, mut all) = (0, 0);
    for family in families(rows) {
        let own: Vec<&Row> = rows.iter().filter(|row| row.family == family).copied().collect();
        let (predicted, measured) = columns(&own, predictor);
        let (right, told_apart) = pairs(&predicted, &measured, APART);
        pairs_right += right;
        all += told_apart;
    }
    Some(Quality {
        variants: rows.len(),
        spearman: spearman(&predicted, &measured)?,
        pairs_right,
        pairs: all,
        median_error_percent: median_error(&predicted, &measured, scale_ns)?,
    })
}

/// The families in their order.
pub(super) fn families<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut families: Vec<&str> = Vec::new();
    for row in rows {
        if !families.contains(&row.family.as_str()) {
            families.push(&row.family);
        }
    }
    families
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Four variants of two families: the estimate orders all pairs, instructions do not.
    pub(crate) fn rows() -> Vec<Row> {
        let row = |(place, (family, ns, instructions, estimated)): (usize, (&str, f64, f64, f64))| Row {
            name: format!("{family}:{place}"),
            family: family.into(),
            operations: 10,
            half: Half::of(place),
            timed: Timed { least_ns: ns, median_ns: 1.1 * ns },
            counted: Counted {
                instructions,
                declared: instructions,
                estimated,
                parts: vec![("base".into(), estimated / 2.0), ("memory".into(), estimated / 2.0)],
                ..Counted::default()
            },
        };
        [
            ("list", 100.0, 70.0, 200.0),
            ("list", 300.0, 60.0, 500.0),
            ("sort", 50.0, 80.0, 100.0),
            ("sort", 90.0, 90.0, 250.0),
        ]
        .into_iter()
        .enumerate()
        .map(row)
        .collect()
    }

    #[test]
    fn a_rule_is_scaled_on_one_half_and_judged_on_both() {
        let verdicts = verdicts(&rows());
        let of = |name: &str| verdicts.iter().find(|verdict| verdict.predictor == name).unwrap();
        let estimate = of(ESTIMATE);
        assert!((estimate.scale_ns - 0.5).abs() < 1e-12);
        let all = estimate.all.unwrap();
        assert_eq!((all.pairs_right, all.pairs, all.variants), (2, 2, 4));
        assert!((estimate.fitting.unwrap().median_error_percent).abs() < 1e-9);
        assert_eq!(of("instructions").all.unwrap().pairs_right, 1);
        assert!(all.reaches()[1] && !of("instructions").all.unwrap().reaches()[1]);
    }

    #[test]
    fn halves_take_turns_in_a_family() {
        assert_eq!([0, 1, 2, 3].map(Half::of), [Half::Fitting, Half::Judging, Half::Fitting, Half::Judging]);
    }
}
