//! What a study gives back: its page, its files, and what its paper found held against what was
//! measured here.
//!
//! A sentence that does not hold is a finding, not an error: machines and compilers have changed
//! since the papers. What could not be measured is neither.

use anyhow::{Context, Result};
use present::output::{print, replace};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt::{Display, Write};
use std::fs::create_dir_all;
use std::path::{Path, PathBuf};

/// What this machine answers to a sentence of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds at every size that was measured.
    Holds,
    /// It fails at one size at least.
    Fails,
    /// It holds in some layouts of memory and fails in others, so that neither is a finding.
    DependsOnLayout,
    /// It cannot be measured here, or was not.
    NotMeasured,
}

/// Verdicts in the order in which pages count them.
pub const VERDICTS: [Verdict; 4] =
    [Verdict::Holds, Verdict::Fails, Verdict::DependsOnLayout, Verdict::NotMeasured];

impl Verdict {
    /// The verdict as a page shows it.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::DependsOnLayout => "depends on layout",
            Verdict::NotMeasured => "not measured",
        }
    }

    /// Holds or fails; an answer that nobody has was not measured.
    #[must_use]
    pub fn of(answer: Option<bool>) -> Verdict {
        match answer {
            Some(true) => Verdict::Holds,
            Some(false) => Verdict::Fails,
            None => Verdict::NotMeasured,
        }
    }
}

/// A sentence of a paper, and what this machine answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Figure, table or section.
    pub place: &'static str,
    /// The paper's own words; […] marks what a quotation leaves out.
    pub sentence: &'static str,
    /// What was measured and how, with the command where there is one.
    pub measured: String,
    /// The answer.
    pub verdict: Verdict,
    /// The sizes at which it holds, and where it stops; empty where the sentence has no size.
    pub extent: String,
    /// How far the figures spread over layouts or trials; empty where they cannot spread.
    pub spread: String,
    /// The figures behind the answer, or why there are none.
    pub detail: String,
}

/// A claim as a journal has it.
#[derive(Deserialize)]
struct Written {
    place: String,
    sentence: String,
    measured: String,
    verdict: Verdict,
    extent: String,
    spread: String,
    detail: String,
}

impl<'de> Deserialize<'de> for Claim {
    /// The quotation lasts as long as the program: a journal holds a hundred of them at most.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claim, D::Error> {
        let Written { place, sentence, measured, verdict, extent, spread, detail } =
            Written::deserialize(deserializer)?;
        let [place, sentence] = [place, sentence].map(|text| -> &'static str { text.leak() });
        Ok(Claim { place, sentence, measured, verdict, extent, spread, detail })
    }
}

/// The verdict over several sizes, and the sizes: a sentence holds when it holds at each of them.
///
/// A size without an answer counts for nothing; without any answer the sentence was not measured.
pub(crate) fn by_size(points: &[(String, Option<bool>)]) -> (Verdict, String) {
    let answered: Vec<(&str, bool)> =
        points.iter().filter_map(|(size, answer)| Some((size.as_str(), (*answer)?))).collect();
    let (Some(first), Some(last)) = (answered.first(), answered.last()) else {
        return (Verdict::NotMeasured, String::new());
    };
    let whole = if answered.len() == 1 { first.0.to_owned() } else { format!("{} to {}", first.0, last.0) };
    let failing: Vec<&str> = answered.iter().filter(|(_, holds)| !holds).map(|(size, _)| *size).collect();
    if failing.is_empty() {
        return (Verdict::Holds, whole);
    }
    let from = answered.iter().position(|(_, holds)| !holds).unwrap_or_default();
    let (all, once) = (failing.len() == answered.len(), from + failing.len());
    let extent = match (all, from) {
        (true, _) => format!("fails at {whole}"),
        // It begins at one size and goes on.
        (_, 0) if answered[once..].iter().all(|(_, holds)| *holds) => {
            format!("fails up to {}, holds from {}", answered[once - 1].0, answered[once].0)
        }
        // It stops at one size and never comes back.
        _ if once == answered.len() => {
            format!("holds up to {}, fails from {}", answered[from - 1].0, failing[0])
        }
        _ => format!("fails at {}; holds elsewhere from {whole}", failing.join(", ")),
    };
    (Verdict::Fails, extent)
}

/// Writes files with these ends of their names into a folder, which is made if it is missing; gives
/// their paths, in this order. Each file gets its name when it is complete.
///
/// # Errors
/// When the folder cannot be made, or a file cannot be written.
pub(crate) fn write_files(
    folder: &Path,
    stem: &str,
    files: impl IntoIterator<Item = (impl Display, String)>,
) -> Result<Vec<PathBuf>> {
    create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut paths = Vec::new();
    for (end, text) in files {
        let path = folder.join(format!("{stem}{end}"));
        replace(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The claims as a page shows them: a table of verdicts, then what was measured for each sentence.
#[must_use]
pub(crate) fn table(claims: &[Claim]) -> String {
    let mut out = String::from("| place | the paper's sentence | here | where |\n|---|---|---|---|\n");
    for claim in claims {
        let verdict = match claim.verdict {
            Verdict::Holds => claim.verdict.shown().to_owned(),
            other => format!("**{}**", other.shown()),
        };
        let _ = writeln!(
            out,
            "| {} | “{}” | {verdict} | {} |",
            claim.place,
            claim.sentence,
            or_dash(&claim.extent)
        );
    }
    out += "\nWhat was measured, in the same order:\n\n";
    for (number, claim) in claims.iter().enumerate() {
        let spread =
            if claim.spread.is_empty() { String::new() } else { format!(" Spread: {}.", claim.spread) };
        let _ =
            writeln!(out, "{}. {}: {}. {}.{spread}", number + 1, claim.place, claim.measured, claim.detail);
    }
    out
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() {
        "-"
    } else {
        text
    }
}

/// What a study found and wrote.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Outcome {
    /// For the terminal, in Markdown.
    pub summary: String,
    /// The paper's sentences.
    pub claims: Vec<Claim>,
    /// What was written, the page and its plots among it.
    pub files: Vec<PathBuf>,
}

impl Outcome {
    /// Prints the summary on standard output and names the files on standard error.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn show(&self) -> Result<()> {
        print(&self.summary)?;
        self.files.iter().for_each(|path| present::tell!("lightfoot: wrote {}", path.display()));
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn claim(verdict: Verdict) -> Claim {
        Claim {
            place: "4.8",
            sentence: "a < b",
            measured: "misses of `lightfoot cache`".into(),
            verdict,
            extent: "n = 128".into(),
            spread: "1 to 2".into(),
            detail: "1 & 2".into(),
        }
    }

    #[test]
    fn every_verdict_is_told_apart() {
        let table = table(&VERDICTS.map(claim));
        for part in [
            "| “a < b” | holds | n = 128 |",
            "| **fails** |",
            "| **depends on layout** |",
            "| **not measured** |",
            "4. 4.8: misses of `lightfoot cache`. 1 & 2. Spread: 1 to 2.",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }

    #[test]
    fn a_sentence_holds_only_where_every_size_agrees() {
        let sizes = |answers: &[Option<bool>]| {
            let points: Vec<(String, Option<bool>)> =
                answers.iter().enumerate().map(|(at, answer)| (format!("n = {at}"), *answer)).collect();
            let (verdict, extent) = by_size(&points);
            (verdict, extent)
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(sizes(&[yes, None, yes]), (Verdict::Holds, "n = 0 to n = 2".into()));
        assert_eq!(sizes(&[yes]), (Verdict::Holds, "n = 0".into()));
        assert_eq!(
            sizes(&[yes, yes, no, no]),
            (Verdict::Fails, "holds up to n = 1, fails from n = 2".into())
        );
        assert_eq!(
            sizes(&[no, yes, no]),
            (Verdict::Fails, "fails at n = 0, n = 2; holds elsewhere from n = 0 to n = 2".into())
        );
        assert_eq!(sizes(&[no, yes, yes]).1, "fails up to n = 0, holds from n = 1");
        assert_eq!(sizes(&[no, no]), (Verdict::Fails, "fails at n = 0 to n = 1".into()));
        assert_eq!(sizes(&[None]).0, Verdict::NotMeasured);
        assert_eq!(sizes(&[]).0, Verdict::NotMeasured);
    }
}
