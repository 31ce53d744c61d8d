//! Comments and prose: at most 100 columns wide, each doc comment understood alone, and files that
//! they name exist.
//!
//! rustdoc shows an item without its neighbours, so a comment that leans on the one above it says
//! nothing there. Tables and code blocks may be wider: they cannot be broken. Left out: whether a
//! sentence is good, which no program can say.

use crate::{complain, files, text};
use std::path::Path;

const COLUMNS: usize = 100;

/// How a doc comment begins that leans on its neighbour, and what a SAFETY sentence must not say.
const LEANING_STARTS: &[&str] = &["The same", "Likewise", "Same as", "As above", "Ditto", "And ", "Or "];
const LEANING: &[&str] = &["as above", "see above", "likewise."];

/// A comment line: its text, and whether it documents an item.
fn comment(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let rest = line.strip_prefix("//")?;
    let documents = rest.starts_with('/') || rest.starts_with('!');
    Some((rest.trim_start_matches(['/', '!']).trim(), documents))
}

/// Whether a line of prose or comment may be wide: tables, links and words without a gap may.
fn may_be_wide(text: &str) -> bool {
    let gap_after = text.char_indices().skip(60).any(|(_, c)| c == ' ');
    text.starts_with('|') || text.contains("://") || text.starts_with('[') || !gap_after
}

/// The lines of a file that are comment or prose and too wide, by number.
fn wide_lines(path: &str, content: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let prose = if path.ends_with(".rs") { comment(line).map(|(text, _)| text) } else { Some(line) };
        let Some(prose) = prose else {
            fenced = false;
            continue;
        };
        fenced ^= prose.trim_start().starts_with("```");
        if !fenced && line.chars().count() > COLUMNS && !may_be_wide(prose) {
            found.push(format!("{path}:{}: {} columns", number + 1, line.chars().count()));
        }
    }
    found
}

/// Doc comments that lean on a neighbour, and SAFETY sentences that point at another one.
fn leaning(path: &str, content: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in content.lines().enumerate() {
        let Some((text, documents)) = comment(line) else {
            inside = false;
            continue;
        };
        let begins = documents && !inside && LEANING_STARTS.iter().any(|start| text.starts_with(start));
        let lower = text.to_lowercase();
        let points =
            (documents || text.starts_with("SAFETY")) && LEANING.iter().any(|words| lower.contains(words));
        if begins || points {
            found.push(format!("{path}:{}: {text}", number + 1));
        }
        inside = documents && !text.is_empty();
    }
    found
}

/// Paths in backticks of comments that look like files of this tree and are none. A path may be
/// given from the root, from the crate, from the crate's `src`, or from the file's folder.
fn missing_files(path: &str, content: &str, all: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let Some((text, _)) = comment(line) else { continue };
        for name in text.split('`').skip(1).step_by(2).filter(|name| is_file_name(name)) {
            let ends = |file: &String| file == name || file.ends_with(&format!("/{name}"));
            if !all.iter().any(ends) {
                found.push(format!("{path}:{}: there is no {name}", number + 1));
            }
        }
    }
    found
}

/// A path with a folder and the extension of a source: plain small words with a slash and an
/// extension that sources have.
fn is_file_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '/' | '.');
    let source = ["rs", "toml", "md", "c", "sh", "cu"];
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let ours = !name.starts_with('/') && !name.contains("..") && name.chars().all(plain);
    ours && name.contains('/') && extension.is_some_and(|extension| source.contains(&extension))
}

#[test]
fn comments_and_prose_fit_the_page() {
    // Pages under `results` are written by studies, in tables and captured output.
    let written = files(&["rs", "md"]).into_iter().filter(|path| !path.starts_with("results/"));
    let complaints = written.flat_map(|path| wide_lines(&path, &text(&path)));
    complain(&format!("wider than {COLUMNS} columns"), &complaints.collect::<Vec<_>>());
}

#[test]
fn doc_comments_stand_alone() {
    let complaints = files(&["rs"]).into_iter().flat_map(|path| leaning(&path, &text(&path)));
    complain("comments that lean on their neighbours", &complaints.collect::<Vec<_>>());
}

#[test]
fn comments_name_files_that_exist() {
    let all = files(&["rs", "toml", "md", "c", "sh", "cu"]);
    let sources = all.iter().filter(|path| path.ends_with(".rs"));
    let complaints = sources.flat_map(|path| missing_files(path, &text(path), &all));
    complain("files that comments name", &complaints.collect::<Vec<_>>());
}

#[test]
fn the_comment_checks_can_fail() {
    let wide = format!("/// {}\nlet x = \"{}\";\n", "word ".repeat(25), "word ".repeat(25));
    assert_eq!(wide_lines("a.rs", &wide), ["a.rs:1: 129 columns"]);
    assert!(wide_lines("a.md", &format!("| {} |", "word ".repeat(25))).is_empty());
    assert!(wide_lines("a.md", &format!("```\n{}\n```", "word ".repeat(25))).is_empty());
    assert_eq!(leaning("a.rs", "/// Counts.\n///\n/// The same").len(), 1);
    assert_eq!(leaning("a.rs", "/// Counts\n/// The same").len(), 0);
    assert_eq!(leaning("a.rs", "// SAFETY: as above").len(), 1);
    let all = ["x/src/emit/mod.rs".to_owned()];
    assert!(missing_files("a.rs", "// `emit/mod.rs`", &all).is_empty());
    assert_eq!(missing_files("a.rs", "// `emit/gone.rs`", &all).len(), 1);
}
