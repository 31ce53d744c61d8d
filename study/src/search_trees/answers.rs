//! Figures of all algorithms by number of items and layout, and the question whether a sentence
//! holds of them: at every number of items, in every layout.

use super::counted::{Counted, Trial};
use super::simulated::{BLOCKS_BYTES, SIMULATED};
use super::structure::Structural;
use super::timed::Timed;
use crate::layout::{settle, Spread};
use crate::outcome::{by_size, Claim, Verdict};
use std::collections::BTreeMap;

/// The figures of all algorithms at one number of items, in one layout.
#[derive(Clone, Debug, Default)]
pub(super) struct Row(Vec<(String, f64)>);

impl Row {
    /// The figure of one algorithm.
    pub(super) fn of(&self, algorithm: &str) -> f64 {
        self.0.iter().find(|(name, _)| name == algorithm).map_or(f64::NAN, |(_, value)| *value)
    }

    /// The algorithm with the smallest figure, of the paper's six.
    pub(super) fn least(&self) -> &str {
        self.six().min_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }

    /// The algorithm with the largest figure, of the paper's six.
    pub(super) fn most(&self) -> &str {
        self.six().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }

    fn six(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value)).filter(|(name, _)| *name != BRODAL)
    }

    fn shown(&self) -> String {
        let each: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
        each.join(", ")
    }
}

/// The search that is none of the paper's six.
const BRODAL: &str = "oblivious-brodal";

/// One kind of figures: by number of items the rows of all layouts, in the same order.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// What was measured and how.
    measured: String,
    rows: BTreeMap<usize, Vec<Row>>,
    /// How far one trial differs from another, where no layout tells.
    noise: String,
}

/// The sentence that is asked about.
pub(super) struct Sentence {
    pub(super) place: &'static str,
    pub(super) words: &'static str,
    /// What the words are taken to say of the figures.
    pub(super) taken: &'static str,
    pub(super) holds: fn(&Row) -> bool,
}

impl Answers {
    /// Those of a counted figure on one machine, in blocks of the paper's size.
    pub(super) fn counted(
        measured: String,
        counted: &[Counted],
        machine: &str,
        of: impl Fn(&Trial) -> f64,
    ) -> Answers {
        let mut rows: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
        let wanted = |point: &&Counted| point.machine == machine && point.block_bytes == BLOCKS_BYTES[0];
        for point in counted.iter().filter(wanted) {
            let layouts = rows.entry(point.items).or_default();
            layouts.resize(layouts.len().max(point.trials.len()), Row::default());
            for (row, trial) in layouts.iter_mut().zip(&point.trials) {
                row.0.push((point.algorithm.clone(), of(trial)));
            }
        }
        Answers { measured, rows, noise: String::new() }
    }

    /// Those of the structure alone, which have one layout.
    pub(super) fn structural(measured: String, structural: &[Structural]) -> Answers {
        let wanted = structural.iter().filter(|point| point.block_bytes == BLOCKS_BYTES[0]);
        Answers::single(measured, wanted.map(|point| (point.items, &point.algorithm, point.misses)))
    }

    /// Those of this machine's clock: the medians.
    pub(super) fn timed(measured: String, timed: &[Timed]) -> Answers {
        let width = |point: &&Timed| (point.ns.most - point.ns.least) / point.ns.median;
        let widest = timed.iter().max_by(|a, b| width(a).total_cmp(&width(b)));
        let noise = widest.map(|point| {
            let (name, ns, size) = (&point.algorithm, point.ns, size(point.items));
            format!("ten trials; widest: {name} {ns:.1} at {size}")
        });
        let points = timed.iter().map(|point| (point.items, &point.algorithm, point.ns.median));
        Answers { noise: noise.unwrap_or_default(), ..Answers::single(measured, points) }
    }

    fn single<'p>(measured: String, points: impl Iterator<Item = (usize, &'p String, f64)>) -> Answers {
        let mut rows: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
        for (items, algorithm, value) in points {
            let row = rows.entry(items).or_insert_with(|| vec![Row::default()]);
            row[0].0.push((algorithm.clone(), value));
        }
        Answers { measured, rows, noise: String::new() }
    }

    /// Only the numbers of items that `wanted` picks.
    pub(super) fn only(&self, wanted: impl Fn(usize) -> bool) -> Answers {
        let rows = self.rows.iter().filter(|(items, _)| wanted(**items));
        Answers {
            measured: self.measured.clone(),
            noise: self.noise.clone(),
            rows: present::order::map_of(rows.map(|(items, rows)| (*items, rows.clone()))),
        }
    }

    /// What these figures answer to a sentence.
    pub(super) fn claim(&self, sentence: &Sentence) -> Claim {
        let verdicts: Vec<(usize, Verdict)> =
            self.rows.iter().map(|(items, rows)| (*items, verdict(rows, sentence.holds))).collect();
        let answer = |verdict: Verdict| match verdict {
            Verdict::Holds => Some(true),
            Verdict::Fails => Some(false),
            Verdict::DependsOnLayout | Verdict::NotMeasured => None,
        };
        let points: Vec<(String, Option<bool>)> =
            verdicts.iter().map(|(items, verdict)| (size(*items), answer(*verdict))).collect();
        let (mut verdict, mut extent) = by_size(&points);
        let mixed: Vec<String> = (verdicts.iter().filter(|(_, v)| *v == Verdict::DependsOnLayout))
            .map(|(items, _)| size(*items))
            .collect();
        if !mixed.is_empty() {
            extent += if extent.is_empty() { "" } else { "; " };
            extent += &format!("depends on the layout at {}", mixed.join(", "));
            verdict = if verdict == Verdict::Fails { verdict } else { Verdict::DependsOnLayout };
        }
        Claim {
            place: sentence.place,
            sentence: sentence.words,
            measured: format!("{}; taken to say: {}", self.measured, sentence.taken),
            verdict,
            extent,
            spread: self.spread(),
            detail: self.detail(),
        }
    }

    /// The medians at a middle and at the largest number of items.
    fn detail(&self) -> String {
        let largest = self.rows.keys().next_back().copied();
        let shown = |items: usize| {
            let rows = self.rows.get(&items)?;
            let names = rows.first()?.0.iter().map(|(name, _)| name.clone());
            let middle = |name: String| {
                let middle = over_layouts(rows, &name)?.median;
                Some((name, middle))
            };
            Some(format!("{}: {}", size(items), Row(names.filter_map(middle).collect()).shown()))
        };
        let mut each: Vec<usize> = [1 << 16].into_iter().chain(largest).collect();
        each.dedup();
        let each: Vec<String> = each.into_iter().filter_map(shown).collect();
        if each.is_empty() {
            "nothing was measured".into()
        } else {
            each.join("; ")
        }
    }

    /// The widest spread over layouts, of all algorithms of the paper at all numbers of items.
    fn spread(&self) -> String {
        let mut widest: Option<(f64, String)> = None;
        for (items, rows) in self.rows.iter().filter(|(_, rows)| rows.len() > 1) {
            for (name, _) in rows[0].six() {
                let Some(spread) = over_layouts(rows, name) else { continue };
                let width = spread.most - spread.least;
                if widest.as_ref().is_none_or(|(most, _)| width > *most) {
                    let shown =
                        format!("{} layouts; widest: {name} {spread} at {}", rows.len(), size(*items));
                    widest = Some((width, shown));
                }
            }
        }
        widest.map_or(self.noise.clone(), |(_, shown)| shown)
    }
}

/// One algorithm's figures over the layouts.
fn over_layouts(rows: &[Row], name: &str) -> Option<Spread> {
    Spread::of(&rows.iter().map(|row| row.of(name)).collect::<Vec<_>>())
}

/// The verdict over all layouts.
fn verdict(rows: &[Row], holds: fn(&Row) -> bool) -> Verdict {
    settle(&rows.iter().map(holds).collect::<Vec<_>>())
}

/// A number of items as a page shows it.
fn size(items: usize) -> String {
    if items.is_power_of_two() {
        format!("n = 2^{}", items.ilog2())
    } else {
        format!("n = {items}")
    }
}

/// What Figures 4.8 and 4.9 are measured by.
pub(super) fn command(figure: &str) -> String {
    format!("{figure}: `lightfoot cache --machine {SIMULATED} -- lightfoot lookups ALGORITHM --items N --lookups L --trials 2`, less the run with one trial, less an empty loop")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(values: &[(usize, [f64; 2])]) -> Answers {
        let row = |value| Row(vec![("a".into(), value), ("b".into(), 1.0), (BRODAL.into(), 0.0)]);
        let rows = values.iter().map(|(items, values)| (*items, values.map(row).to_vec())).collect();
        Answers { measured: "m".into(), rows, noise: String::new() }
    }

    fn claim(values: &[(usize, [f64; 2])]) -> Claim {
        let holds = |row: &Row| row.least() == "a";
        answers(values).claim(&Sentence { place: "p", words: "w", taken: "a is least", holds })
    }

    #[test]
    fn a_sentence_holds_at_every_size_in_every_layout() {
        let held = claim(&[(128, [0.5, 0.6]), (256, [0.1, 0.9])]);
        assert_eq!((held.verdict, held.extent.as_str()), (Verdict::Holds, "n = 2^7 to n = 2^8"));
        assert_eq!(held.spread, "2 layouts; widest: a 0.50 (0.10 to 0.90) at n = 2^8");
        assert!(held.detail.starts_with("n = 2^8: a 0.50, b 1.00"), "{}", held.detail);
    }

    #[test]
    fn a_layout_that_disagrees_is_no_failure_and_a_size_that_fails_is() {
        let mixed = claim(&[(128, [0.5, 0.6]), (256, [0.1, 1.9])]);
        assert_eq!(mixed.verdict, Verdict::DependsOnLayout);
        assert_eq!(mixed.extent, "n = 2^7; depends on the layout at n = 2^8");
        let failed = claim(&[(128, [1.5, 1.6]), (256, [0.1, 1.9])]);
        assert_eq!(failed.verdict, Verdict::Fails);
        assert_eq!(claim(&[]).verdict, Verdict::NotMeasured);
    }

    #[test]
    fn sizes_can_be_left_out() {
        let answers = answers(&[(128, [2.0, 2.0]), (1024, [0.5, 0.5])]);
        let sentence =
            Sentence { place: "p", words: "w", taken: "a is least", holds: |row| row.most() == "b" };
        assert_eq!(answers.only(|items| items > 512).claim(&sentence).verdict, Verdict::Holds);
        assert_eq!(answers.claim(&sentence).verdict, Verdict::Fails);
    }
}
