//! A fixed environment for the programs of a study, and a varied one.
//!
//! The environment and the arguments of a program stand above its stack, so their length moves the
//! stack and changes which of its lines collide with the lines of the data. A figure of one
//! environment may be an accident of it. Programs under measurement therefore run with a fixed
//! environment, and with one variable of twenty lengths: a figure is a median with its spread, and
//! a verdict that is not the same in all layouts is no verdict. Source: Mytkowicz et al. 2009 on
//! measurement bias.

use crate::outcome::Verdict;
use std::fmt;
use std::process::Command;

/// Layouts in which a verdict has to be the same.
pub(crate) const LAYOUTS: usize = 20;

/// The variable that is lengthened.
const PADDING: &str = "LIGHTFOOT_STUDY_PADDING";

/// Lengths of the padding in bytes: the first is 0, the last almost a page.
///
/// Neighbours differ by 208 bytes, an odd multiple of the 16 bytes that a stack is aligned to:
/// twenty of them reach every place within a line and spread over a page.
pub(crate) fn paddings(count: usize) -> Vec<usize> {
    (0..count).map(|layout| layout * 208).collect()
}

/// Gives a command the environment of all measured programs, with a padding in it.
pub(crate) fn fix_environment(command: &mut Command, padding_bytes: usize) {
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/").env("LC_ALL", "C");
    // What was kept from an earlier run must not make one run unlike another.
    command.env("LIGHTFOOT_TRANSLATIONS", "off").env(PADDING, "x".repeat(padding_bytes));
}

/// The middle and the ends of some figures.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// The spread of some figures, if there are any.
    pub(crate) fn of(values: &[f64]) -> Option<Spread> {
        Some(Spread {
            median: crate::race::median(values)?,
            least: values.iter().copied().min_by(f64::total_cmp)?,
            most: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median, self.least, self.most)
    }
}

/// One verdict from those of all layouts.
pub(crate) fn settle(verdicts: &[bool]) -> Verdict {
    match verdicts {
        [] => Verdict::NotMeasured,
        all if all.iter().all(|holds| *holds) => Verdict::Holds,
        all if all.iter().all(|holds| !holds) => Verdict::Fails,
        _ => Verdict::DependsOnLayout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paddings_reach_every_place_that_a_stack_can_take_in_a_line() {
        let paddings = paddings(LAYOUTS);
        assert_eq!(paddings[0], 0);
        let places = present::order::set_of(paddings.iter().map(|bytes| bytes / 16 % 4));
        assert_eq!(places.len(), 4, "{paddings:?}");
        assert!(*paddings.last().unwrap() > 3800, "{paddings:?}");
    }

    #[test]
    fn a_program_sees_nothing_of_the_callers_environment() {
        let mut command = Command::new("/usr/bin/env");
        command.env("STRANGER", "1");
        fix_environment(&mut command, 3);
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "HOME=/",
                "LC_ALL=C",
                "LIGHTFOOT_STUDY_PADDING=xxx",
                "LIGHTFOOT_TRANSLATIONS=off",
                "PATH=/usr/bin:/bin"
            ]
        );
    }

    #[test]
    fn a_verdict_that_flips_depends_on_the_layout() {
        assert_eq!(settle(&[true, true]), Verdict::Holds);
        assert_eq!(settle(&[false, false]), Verdict::Fails);
        assert_eq!(settle(&[true, false]), Verdict::DependsOnLayout);
        assert_eq!(settle(&[]), Verdict::NotMeasured);
        assert_eq!(format!("{:.1}", Spread::of(&[3.0, 1.0, 2.0]).unwrap()), "2.0 (1.0 to 3.0)");
        assert_eq!(Spread::of(&[]), None);
    }
}
