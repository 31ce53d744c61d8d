//! Steps of a study that are finished, kept on disk: an interrupted study goes on where it stopped.
//!
//! A full study runs for an hour or more. Each of its steps has a name and an estimate; its figures
//! are written down as a line of JSON as soon as they are known. The next run of the same study, of
//! the same effort, by the same version, on the same machine takes them from there and measures the
//! rest. Anything else in the file, a line that was cut off too, is measured again. When the study
//! has written its results, the file goes.
//!
//! The time that is left follows from the estimates, scaled by how long the steps of this run truly
//! took. It leaves out steps that run side by side: a study measures one thing at a time.

use crate::host::host;
use crate::options::Options;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    step: String,
    figures: serde_json::Value,
}

/// The finished steps of one study.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    finished: HashMap<String, serde_json::Value>,
    /// Seconds that the whole study is estimated to take, and those of its steps so far.
    estimated_seconds: f64,
    passed_seconds: f64,
    /// Of the steps that this run measured: their estimates, and how long they took.
    own_estimated_seconds: f64,
    own_seconds: f64,
}

impl Journal {
    /// Opens the journal of a study and says how long the study will take.
    ///
    /// # Errors
    /// When the folder of the results cannot be written to.
    pub(crate) fn open(options: &Options, study: &str, estimated_seconds: f64) -> Result<Journal> {
        let journal = Journal::of(options, study, estimated_seconds)?;
        present::tell!(
            "lightfoot: study {study} ({}): about {} on a quiet machine",
            options.effort.shown(),
            shown(estimated_seconds)
        );
        Ok(journal)
    }

    /// Opens the journal of something whose steps estimate their own time.
    ///
    /// # Errors
    /// When the folder of the results cannot be written to.
    pub(crate) fn of(options: &Options, study: &str, estimated_seconds: f64) -> Result<Journal> {
        let effort = options.effort.shown();
        std::fs::create_dir_all(&options.folder)
            .with_context(|| format!("cannot make {}", options.folder.display()))?;
        let path = options.folder.join(format!(".{study}-{effort}.journal"));
        // Figures of another version or machine are not this study's.
        let limit = options.max_bytes.map_or(String::from("default"), |bytes| bytes.to_string());
        let head = format!("{study} {effort} {} {limit} {}", env!("CARGO_PKG_VERSION"), host());
        let finished = read(&path, &head);
        let opened = if finished.is_empty() {
            File::create(&path).and_then(|mut file| writeln!(file, "{head}").map(|()| file))
        } else {
            OpenOptions::new().append(true).open(&path)
        };
        let mut file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        if !finished.is_empty() {
            // A line that was cut off must not swallow the next one.
            writeln!(file).with_context(|| format!("cannot write {}", path.display()))?;
            present::tell!(
                "lightfoot: going on with {}: {} steps are done (remove it to begin anew)",
                path.display(),
                finished.len()
            );
        }
        Ok(Journal {
            path,
            file,
            finished,
            estimated_seconds,
            passed_seconds: 0.0,
            own_estimated_seconds: 0.0,
            own_seconds: 0.0,
        })
    }

    /// The figures of a step: those that were written down, or else what `measure` finds.
    ///
    /// # Errors
    /// Those of `measure`, and a full disk.
    pub(crate) fn step<T: Serialize + DeserializeOwned>(
        &mut self,
        step: &str,
        estimated_seconds: f64,
        measure: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(figures) = self.known(step) {
            self.passed_seconds += estimated_seconds;
            return Ok(figures);
        }
        present::tell!("lightfoot: {step} ({} left)", shown(self.left_seconds()));
        let started = Instant::now();
        let figures = measure()?;
        self.own_seconds += started.elapsed().as_secs_f64();
        self.own_estimated_seconds += estimated_seconds;
        self.passed_seconds += estimated_seconds;
        self.add(step, &figures)?;
        Ok(figures)
    }

    /// The figures of a step that were written down.
    pub(crate) fn known<T: DeserializeOwned>(&self, step: &str) -> Option<T> {
        serde_json::from_value(self.finished.get(step)?.clone()).ok()
    }

    /// Writes the figures of a step down.
    ///
    /// # Errors
    /// A full disk.
    pub(crate) fn add<T: Serialize>(&mut self, step: &str, figures: &T) -> Result<()> {
        let figures = serde_json::to_value(figures).context("cannot write JSON")?;
        let entry = Entry { step: step.to_owned(), figures };
        let line = serde_json::to_string(&entry).context("cannot write JSON")?;
        writeln!(self.file, "{line}").with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Seconds that are left, from the estimates and from how well they held so far.
    fn left_seconds(&self) -> f64 {
        let scale = if self.own_estimated_seconds > 0.0 {
            self.own_seconds / self.own_estimated_seconds
        } else {
            1.0
        };
        (self.estimated_seconds - self.passed_seconds).max(0.0) * scale
    }

    /// Ends the journal: the results are written.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(crate) fn finish(self) -> Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// The steps in a journal with this head; none if it is missing or another study's.
fn read(path: &std::path::Path, head: &str) -> HashMap<String, serde_json::Value> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    if lines.next() != Some(head) {
        return HashMap::new();
    }
    let entries = lines.filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    entries.map(|entry| (entry.step, entry.figures)).collect()
}

/// Seconds as a person says them.
fn shown(seconds: f64) -> String {
    match seconds {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        _ if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Effort;

    fn options(folder: &std::path::Path, effort: Effort) -> Options {
        Options { effort, folder: folder.to_owned(), max_bytes: None }
    }

    #[test]
    fn an_interrupted_study_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), Effort::Full);
        let mut journal = Journal::open(&options, "dice", 10.0).unwrap();
        assert_eq!(journal.step("one", 5.0, || Ok(vec![1.5, f64::MAX])).unwrap(), [1.5, f64::MAX]);
        assert!(journal.step("two", 5.0, || anyhow::bail!("no dice") as Result<u32>).is_err());
        drop(journal);

        // The machine went down in the middle of a line.
        let path = folder.path().join(".dice-full.journal");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "{{\"step\":\"two\",\"fig").unwrap();
        let mut journal = Journal::open(&options, "dice", 10.0).unwrap();
        let again: Vec<f64> = journal.step("one", 5.0, || panic!("it was done")).unwrap();
        assert_eq!(again, [1.5, f64::MAX]);
        assert_eq!(journal.step("two", 5.0, || Ok(2)).unwrap(), 2);
        drop(journal);
        let mut journal = Journal::open(&options, "dice", 10.0).unwrap();
        assert_eq!(journal.step("two", 5.0, || Ok(3)).unwrap(), 2, "what was cut off did not swallow it");
        journal.finish().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn figures_of_another_effort_version_or_shape_are_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let full = options(folder.path(), Effort::Full);
        let mut journal = Journal::open(&full, "dice", 10.0).unwrap();
        assert_eq!(journal.step("one", 5.0, || Ok(1)).unwrap(), 1);
        drop(journal);
        let mut quick = Journal::open(&options(folder.path(), Effort::Quick), "dice", 10.0).unwrap();
        assert_eq!(quick.step("one", 5.0, || Ok(2)).unwrap(), 2);
        let mut journal = Journal::open(&full, "dice", 10.0).unwrap();
        assert_eq!(journal.step("one", 5.0, || Ok(String::from("a word"))).unwrap(), "a word");
        drop(journal);
        let path = folder.path().join(".dice-full.journal");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(env!("CARGO_PKG_VERSION"), "0.0.0")).unwrap();
        let mut journal = Journal::open(&full, "dice", 10.0).unwrap();
        assert_eq!(journal.step("one", 5.0, || Ok(4)).unwrap(), 4);
    }

    #[test]
    fn the_time_left_follows_the_steps() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&options(folder.path(), Effort::Quick), "dice", 100.0).unwrap();
        assert!((journal.left_seconds() - 100.0).abs() < 1e-9);
        journal.passed_seconds = 50.0;
        (journal.own_estimated_seconds, journal.own_seconds) = (50.0, 100.0);
        assert!((journal.left_seconds() - 100.0).abs() < 1e-9);
        assert_eq!([shown(42.0), shown(600.0), shown(7200.0)], ["42 s", "10 min", "2.0 h"]);
    }
}
