//! What the study found, as plain data, and the figures that follow from it.

use super::contender::{
    BBCOUNT, CACHE, CACHEGRIND, CACHEGRIND_PINNED, CACHEGRIND_SIM, CACHE_FORMER, CACHE_HOST, CACHE_PINNED,
    CACHE_PROCESSORS, COUNT, COUNT_FORMER, EMPTY, NATIVE,
};
use crate::race::{geometric_mean, median, Times};
use serde::{Deserialize, Serialize};

/// The whole study.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Findings {
    /// Number of this shape.
    pub(super) schema: u32,
    /// Day of the run, UTC.
    pub(super) date: String,
    /// `quick` or `full`.
    pub(super) effort: &'static str,
    /// Of lightfoot.
    pub(super) version: &'static str,
    /// What it ran on.
    pub(super) host: String,
    /// Race by program.
    pub(super) programs: Vec<ProgramFindings>,
    /// Race of `/bin/true`.
    pub(super) start_up: Vec<Timing>,
    /// Race with a former build; empty if none was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) former: Vec<ProgramFindings>,
    /// Race on long inputs; empty in the quick study.
    pub(super) steady: Vec<ProgramFindings>,
    /// What is held against a bar.
    pub(super) figures: Vec<Figure>,
}

/// One program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProgramFindings {
    /// Its name.
    pub(super) name: String,
    /// Why it did not run.
    pub(super) missing: Option<String>,
    /// Times by contender.
    pub(super) timings: Vec<Timing>,
    /// What the counts say.
    pub(super) exactness: Option<Exactness>,
}

/// One contender on one program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Timing {
    /// The contender.
    pub(super) name: String,
    /// What was typed.
    pub(super) command: Option<String>,
    /// The middle of the times.
    pub(super) median_s: Option<f64>,
    /// All of them, in order.
    pub(super) times_s: Vec<f64>,
    /// Why there is no time.
    pub(super) missing: Option<String>,
}

impl Timing {
    /// From the outcome of a race.
    pub(super) fn new(name: &str, command: Option<String>, times: Times) -> Timing {
        let (times_s, missing) = match times {
            Ok(times) if times.is_empty() => (times, Some("not part of the quick study".into())),
            Ok(times) => (times, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        Timing { name: name.to_owned(), command, median_s: median(&times_s), times_s, missing }
    }
}

/// Counts against themselves and against cachegrind's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Exactness {
    /// Instructions of a run, and of the same run again.
    pub(super) repeats: Option<[u64; 2]>,
    /// Whether the counted program's output and exit status are the native one's.
    pub(super) same_output: Option<bool>,
    /// Instructions with each iteration of a repeated string instruction counted.
    pub(super) iterations: Option<u64>,
    /// What cachegrind counted.
    pub(super) cachegrind: Option<u64>,
    /// Why a number is missing.
    pub(super) missing: Vec<String>,
}

/// A number with its bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    /// What it is.
    pub(super) name: String,
    /// Its value, in `unit`.
    pub(super) value: Option<f64>,
    /// `x` for a ratio, `ms`.
    pub(super) unit: &'static str,
    /// What is asked for.
    pub(super) bar: &'static str,
    /// What is wanted.
    pub(super) stretch: &'static str,
    /// Programs that the value is made of.
    pub(super) programs: usize,
}

/// How ratios over programs become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Mean,
    Least,
    Most,
}

impl ProgramFindings {
    fn median_s(&self, contender: &str) -> Option<f64> {
        self.timings.iter().find(|timing| timing.name == contender)?.median_s
    }

    /// How many times as long as `base` a contender took.
    pub(super) fn ratio(&self, contender: &str, base: &str) -> Option<f64> {
        Some(self.median_s(contender)? / self.median_s(base)?)
    }
}

impl Findings {
    /// Fills `figures`.
    pub(super) fn conclude(&mut self) {
        let pinned = if self.has(CACHEGRIND_PINNED) { CACHEGRIND_PINNED } else { CACHEGRIND_SIM };
        let [zen4, zen5, sapphire_rapids] = CACHE_PROCESSORS;
        let rows = [
            (CACHEGRIND, COUNT, Over::Mean, ">= 7", ">= 12"),
            (COUNT, BBCOUNT, Over::Most, "<= 1.1", "<= 1"),
            (CACHEGRIND_SIM, CACHE, Over::Mean, ">= 5", ">= 8"),
            (CACHEGRIND_SIM, CACHE, Over::Least, ">= 2.5", ">= 4"),
            (CACHEGRIND_SIM, CACHE_HOST, Over::Mean, ">= 5", ">= 8"),
            (CACHEGRIND_SIM, CACHE_HOST, Over::Least, ">= 2.5", ">= 4"),
            (CACHEGRIND_SIM, zen4, Over::Mean, ">= 4", ""),
            (CACHEGRIND_SIM, zen5, Over::Mean, ">= 4", ""),
            (CACHEGRIND_SIM, sapphire_rapids, Over::Mean, ">= 4", ""),
            (pinned, CACHE_PINNED, Over::Mean, ">= 4", ">= 6"),
            (pinned, CACHE_PINNED, Over::Least, ">= 2", ">= 3"),
            (COUNT, NATIVE, Over::Mean, "", ""),
        ];
        let ratios = rows.map(|(above, below, over, bar, stretch)| {
            figure(&self.programs, (above, below), over, bar, stretch)
        });
        self.figures = ratios.into();
        if !self.former.is_empty() {
            self.figures.extend([
                figure(&self.former, (COUNT, COUNT_FORMER), Over::Mean, "<= 1.01", ""),
                figure(&self.former, (CACHE, CACHE_FORMER), Over::Mean, "<= 1.01", ""),
                figure(&self.former, (CACHE, CACHE_FORMER), Over::Most, "<= 1.01", ""),
            ]);
        }
        let steady = [
            (EMPTY, NATIVE, Over::Mean, "<= 1.6", "<= 1.25"),
            (COUNT, NATIVE, Over::Mean, "", ""),
            (COUNT, BBCOUNT, Over::Most, "<= 1.1", "<= 1"),
        ];
        for (above, below, over, bar, stretch) in steady {
            let mut figure = figure(&self.steady, (above, below), over, bar, stretch);
            figure.name += ", long inputs";
            self.figures.push(figure);
        }
        self.figures.push(self.start_up_figure());
    }

    fn has(&self, contender: &str) -> bool {
        self.programs.iter().any(|program| program.median_s(contender).is_some())
    }

    fn start_up_figure(&self) -> Figure {
        let count = self.start_up.iter().find(|timing| timing.name == COUNT);
        Figure {
            name: "lightfoot count /bin/true".into(),
            value: count.and_then(|timing| timing.median_s).map(|seconds| seconds * 1e3),
            unit: "ms",
            bar: "<= 25",
            stretch: "<= 10",
            programs: 1,
        }
    }
}

fn figure(
    programs: &[ProgramFindings],
    (above, below): (&str, &str),
    over: Over,
    bar: &'static str,
    stretch: &'static str,
) -> Figure {
    let ratios: Vec<f64> = programs.iter().filter_map(|program| program.ratio(above, below)).collect();
    let (value, word) = match over {
        Over::Mean => (geometric_mean(&ratios), "geometric mean"),
        Over::Least => (ratios.iter().copied().reduce(f64::min), "least"),
        Over::Most => (ratios.iter().copied().reduce(f64::max), "most"),
    };
    Figure {
        name: format!("time of {above} over {below}, {word}"),
        value,
        unit: "x",
        bar,
        stretch,
        programs: ratios.len(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two programs, one without cachegrind.
    pub(in crate::instrument) fn findings() -> Findings {
        let timing = |name, times: &[f64]| Timing::new(name, Some(format!("run {name}")), Ok(times.to_vec()));
        let program = |name: &str, timings| ProgramFindings {
            name: name.into(),
            missing: None,
            timings,
            exactness: None,
        };
        let mut findings = Findings {
            programs: vec![
                program(
                    "a",
                    vec![
                        timing(NATIVE, &[1.0]),
                        timing(COUNT, &[2.0, 2.0, 9.0]),
                        timing(CACHEGRIND, &[16.0]),
                    ],
                ),
                program("b", vec![timing(NATIVE, &[1.0]), timing(COUNT, &[3.0]), timing(CACHEGRIND, &[6.0])]),
                program("c", vec![timing(NATIVE, &[1.0]), timing(COUNT, &[4.0])]),
            ],
            start_up: vec![timing(COUNT, &[0.012])],
            ..Findings::default()
        };
        findings.conclude();
        findings
    }

    #[test]
    fn figures_are_made_of_programs_that_both_ran() {
        let figures = findings().figures;
        assert_eq!(figures[0].name, "time of cachegrind over count, geometric mean");
        assert!((figures[0].value.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(figures[0].programs, 2);
        assert_eq!((figures[1].value, figures[1].programs), (None, 0));
        assert_eq!(figures.last().unwrap().value, Some(12.0));
    }
}
