//! Baselines: results that are kept under a name, to compare with.

use super::results::{Results, Row, SCHEMA};
use anyhow::{Context, Result};
use present::exit::{Failure, USAGE};
use present::order::SortRows;
use std::path::{Path, PathBuf};

/// The baseline that every run leaves behind.
pub(super) const LAST: &str = "last";

/// A folder of baselines.
pub(super) struct Baselines(PathBuf);

fn refused(sentence: String) -> anyhow::Error {
    Failure { status: USAGE, sentence }.into()
}

/// Refuses a name that is no name of a file.
///
/// # Errors
/// When it is one.
pub(super) fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= 100 && name.chars().all(plain) {
        return Ok(());
    }
    Err(refused(format!(
        "baseline {name}: expected a name of letters, digits, dots and dashes, such as main"
    )))
}

impl Baselines {
    /// The baselines in this folder, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Baselines {
        Baselines(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// The names of those that are kept, in their order.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.path())).collect();
        names.sort_rows(String::cmp);
        names
    }

    /// Reads a baseline; `None` if there is none of this name.
    ///
    /// # Errors
    /// When its file is damaged, or of another version.
    pub(super) fn read(&self, name: &str) -> Result<Option<Results>> {
        let path = self.path(name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let wrong = || refused(format!("{} is no baseline of this version: save it anew", path.display()));
        let results: Results = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        if results.schema != SCHEMA {
            return Err(wrong());
        }
        Ok(Some(results))
    }

    /// Reads a baseline that was asked for.
    ///
    /// # Errors
    /// When there is none, in a sentence that names those that are kept.
    pub(super) fn named(&self, name: &str) -> Result<Results> {
        check_name(name)?;
        self.read(name)?.ok_or_else(|| {
            let known = match self.names().as_slice() {
                [] => String::from("none is kept"),
                names => format!("those kept are {}", names.join(", ")),
            };
            let folder = self.0.display();
            refused(format!(
                "there is no baseline {name} in {folder}: {known}; save one with --save-baseline {name}"
            ))
        })
    }

    /// Keeps results under a name, as a whole file or not at all.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn save(&self, name: &str, results: &Results) -> Result<()> {
        let path = self.path(name);
        let remedy = || format!("cannot write {}: name another folder with --baselines", path.display());
        std::fs::create_dir_all(&self.0).with_context(remedy)?;
        let text = serde_json::to_string_pretty(results)? + "\n";
        present::output::replace(&path, text).with_context(remedy)
    }

    /// Keeps results as those of the last run. Benchmarks that this run left out keep theirs.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn save_last(&self, results: &Results) -> Result<()> {
        let mut all = results.clone();
        // A damaged file is replaced.
        if let Some(before) = self.read(LAST).ok().flatten().filter(|before| same_measure(before, results)) {
            let is_new = |row: &Row| !results.benchmarks.iter().any(|new| new.key() == row.key());
            all.benchmarks.extend(before.benchmarks.into_iter().filter(is_new));
        }
        self.save(LAST, &all)
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

/// Whether two results were counted in the same way.
pub(super) fn same_measure(one: &Results, other: &Results) -> bool {
    (&one.machine, &one.virtual_cpu, one.cold) == (&other.machine, &other.virtual_cpu, other.cold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(names: &[&str]) -> Results {
        let row = |name: &&str| Row { name: (*name).to_owned(), ..Row::default() };
        Results { schema: SCHEMA, benchmarks: names.iter().map(row).collect(), ..Results::default() }
    }

    #[test]
    fn names_are_those_of_files() {
        assert!(check_name("main").is_ok() && check_name("v1.2-rc_3").is_ok());
        for wrong in ["", ".", "../x", "a/b", "-x", "ä"] {
            assert!(check_name(wrong).unwrap_err().to_string().starts_with("baseline "), "{wrong}");
        }
    }

    #[test]
    fn a_baseline_that_is_missing_is_named_with_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let baselines = Baselines::new(folder.path().join("new"));
        let said = baselines.named("main").unwrap_err().to_string();
        assert!(said.contains("main") && said.contains("none is kept"), "{said}");
        baselines.save("other", &results(&["a"])).unwrap();
        let said = baselines.named("main").unwrap_err().to_string();
        assert!(said.contains("those kept are other") && said.contains("--save-baseline main"), "{said}");
        assert_eq!(baselines.named("other").unwrap(), results(&["a"]));
        std::fs::write(baselines.folder().join("bad.json"), "{}").unwrap();
        assert!(baselines.named("bad").unwrap_err().to_string().contains("save it anew"));
    }

    #[test]
    fn the_last_run_keeps_what_was_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let baselines = Baselines::new(folder.path().to_owned());
        baselines.save_last(&results(&["a", "b"])).unwrap();
        baselines.save_last(&results(&["b"])).unwrap();
        let names = |results: Results| results.benchmarks.into_iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(baselines.named(LAST).unwrap()), ["b", "a"]);
        baselines.save_last(&Results { cold: true, ..results(&["b"]) }).unwrap();
        assert_eq!(names(baselines.named(LAST).unwrap()), ["b"], "those were counted otherwise");
        let shown = Results { cold: true, virtual_cpu: Some("haswell".into()), ..results(&["a"]) };
        baselines.save_last(&shown).unwrap();
        assert_eq!(names(baselines.named(LAST).unwrap()), ["a"], "and so were those");
    }
}
