//! The command line of a program of benchmarks.
//!
//! Cargo passes `--bench` or nothing, its users a filter, and `lightfoot bench` what it needs.

use std::ffi::OsString;

/// The settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Parts of the names of benchmarks; none for all.
    filters: Vec<String>,
    /// Parts of the names of benchmarks to leave out.
    skipped: Vec<String>,
    is_exact: bool,
    pub(crate) lists: bool,
    pub(crate) starts_cold: bool,
    /// Benchmarks run in this process, with marks around them.
    pub(crate) stays_here: bool,
    /// Only the benchmarks whose number leaves this rest with this divisor.
    part: Option<(u64, u64)>,
}

impl Settings {
    /// Reads the words behind the program's name.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let mut words = words.map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            match option {
                // What cargo and test runners say of the program, its output and its threads.
                "--bench" | "--test" | "--nocapture" | "--no-capture" | "--show-output" | "--quiet" | "-q"
                | "--include-ignored" | "--noplot" => {}
                "--format" | "--color" | "--test-threads" | "--logfile" => {
                    value.or_else(|| words.next()).ok_or_else(|| format!("{option}: give a value behind it"))?;
                }
                // No benchmark is ignored, so the list of ignored ones is empty.
                "--ignored" => settings.part = Some((0, 0)),
                "--skip" => {
                    let value = value.or_else(|| words.next());
                    settings.skipped.push(value.ok_or("--skip: give a part of a name behind it")?);
                }
                "--exact" => settings.is_exact = true,
                "--list" => settings.lists = true,
                "--here" => settings.stays_here = true,
                "--cold" => settings.starts_cold = true,
                "--part" => {
                    let value = value.or_else(|| words.next()).unwrap_or_default();
                    settings.part = Some(part(&value)?);
                }
                option if option.starts_with('-') => {
                    return Err(format!(
                        "there is no option {option}: name benchmarks, or give --list or --exact; 'cargo lightfoot \
                         bench' has options for what is counted"
                    ))
                }
                _ => settings.filters.push(word),
            }
        }
        Ok(settings)
    }

    /// Whether a benchmark of this name is meant.
    pub(crate) fn means(&self, name: &str) -> bool {
        if self.skipped.iter().any(|part| name.contains(part.as_str())) {
            return false;
        }
        let matches = |filter: &String| match self.is_exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        };
        self.filters.is_empty() || self.filters.iter().any(matches)
    }

    /// Whether the benchmark with this number, of those that are meant, belongs to this part.
    pub(crate) fn has_number(&self, number: u64) -> bool {
        match self.part {
            None => true,
            Some((_, 0)) => false,
            Some((rest, divisor)) => number % divisor == rest,
        }
    }
}

/// Reads `1/4`: every fourth benchmark from the second one on.
fn part(text: &str) -> Result<(u64, u64), String> {
    let numbers =
        text.split_once('/').and_then(|(rest, divisor)| Some((rest.parse().ok()?, divisor.parse().ok()?)));
    match numbers {
        Some((rest, divisor)) if rest < divisor => Ok((rest, divisor)),
        _ => Err(format!(
            "--part {text}: expected NUMBER/PARTS with a number below that of parts, such as 0/2"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Settings, String> {
        Settings::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_cargo_passes_changes_nothing() {
        assert_eq!(read("--bench"), Ok(Settings::default()));
        assert_eq!(read("--nocapture --test-threads=1 --color always"), Ok(Settings::default()));
        assert!(!read("--list --ignored").unwrap().has_number(0));
    }

    #[test]
    fn filters_mean_parts_of_names_or_whole_names() {
        let (part, whole) = (read("sort sum").unwrap(), read("--exact sort").unwrap());
        assert!(part.means("sorting/large") && part.means("a::sum") && !part.means("split"));
        assert!(whole.means("sort") && !whole.means("sorting"));
        assert!(Settings::default().means("anything"));
        let but = read("sort --skip large").unwrap();
        assert!(but.means("sort/small") && !but.means("sort/large"));
        assert!(read("--skip").unwrap_err().starts_with("--skip"));
    }

    #[test]
    fn parts_divide_the_benchmarks() {
        let part = read("--part 1/3").unwrap();
        assert_eq!((0..7).filter(|&number| part.has_number(number)).collect::<Vec<_>>(), [1, 4]);
        for wrong in ["3/3", "x", "", "1/0", "1"] {
            let said = read(&format!("--part={wrong}")).unwrap_err();
            assert!(said.contains(wrong) && said.contains("such as 0/2"), "{said}");
        }
    }

    #[test]
    fn an_unknown_option_is_named() {
        let said = read("--save-baseline main").unwrap_err();
        assert!(said.contains("--save-baseline") && said.contains("cargo lightfoot"), "{said}");
        assert!(read("--color").unwrap_err().contains("--color"));
    }
}
