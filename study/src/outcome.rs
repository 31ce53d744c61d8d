//! What a study gives back: its page, its files, and what its paper found held against what was
//! measured here.
//!
//! A sentence that does not hold is a finding, not an error: machines and compilers have changed
//! since the papers. What could not be measured is neither.

use anyhow::Result;
use present::output::print;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// A sentence of a paper and whether it holds here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Figure, table or section.
    pub place: &'static str,
    /// What the authors found, in our words.
    pub sentence: &'static str,
    /// Whether it holds on this machine; `None` when it could not be measured.
    pub holds: Option<bool>,
    /// The figures behind the answer, or why there are none.
    pub detail: String,
}

impl Claim {
    /// The answer as a page shows it.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not measured",
        }
    }
}

/// The claims as a table in Markdown.
#[must_use]
pub(crate) fn table(claims: &[Claim]) -> String {
    let mut out = String::from("| place | sentence | here | figures |\n|---|---|---|---|\n");
    for claim in claims {
        let verdict = match claim.holds {
            Some(true) => claim.verdict().to_owned(),
            _ => format!("**{}**", claim.verdict()),
        };
        let _ = writeln!(out, "| {} | {} | {verdict} | {} |", claim.place, claim.sentence, claim.detail);
    }
    out
}

/// What a study found and wrote.
#[derive(Clone, Debug, Default)]
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
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_told_apart() {
        let claim = |holds| Claim { place: "1", sentence: "s", holds, detail: "d".into() };
        let table = table(&[claim(Some(true)), claim(Some(false)), claim(None)]);
        for part in ["| holds |", "| **does not hold** |", "| **not measured** |"] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }
}
