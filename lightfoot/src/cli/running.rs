//! The options that name a program which runs already.

use clap::Args;
use std::time::Duration;

/// The options of a running program.
#[derive(Debug, Args)]
pub struct RunningProgram {
    /// Measure the running process PID instead of starting a program, and leave it as it was: its
    /// children run natively and are not counted
    #[arg(long, value_name = "PID", conflicts_with_all = ["program", "aslr", "virtual_cpu", "repeatable", "layouts", "follow_children", "compare_native"])]
    pub pid: Option<i32>,
    /// With --pid: measure for this time, such as 2s or 500ms [default: until Ctrl-C, or until the
    /// process ends]
    #[arg(long = "for", value_name = "TIME", requires = "pid", value_parser = time)]
    pub window: Option<Duration>,
}

/// A time such as 2s, 500ms or 1.5m.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a time such as 2s, 500ms or 1m";
    /// No measurement is longer: 365 days.
    const LONGEST_S: f64 = 365.0 * 86400.0;
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(EXPECTED.into()),
    };
    let number = digits.parse::<f64>().ok().map(|number| number * unit_s);
    let seconds = number.filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_S);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| EXPECTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["2", "s", "0s", "-1s", "1e9h", "2 s", "infs", "NaNs", "2d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
