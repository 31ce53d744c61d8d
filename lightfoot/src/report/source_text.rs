//! What stands in the lines of source that a report names.
//!
//! A report of lines outlives its sources: when two versions of a program are compared, those of
//! the first one are mostly gone. So each row of a line keeps the line itself. **Leaves out** files
//! that have changed since the program was built, because their lines are no longer those that ran.

use super::row::Row;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Larger files are not read.
const FILE_BYTES_MAX: u64 = 1 << 24;
/// More characters of a line are not kept.
const LINE_CHARACTERS_MAX: usize = 200;

/// Lines of sources, each file read once.
#[derive(Default)]
pub(super) struct SourceText {
    /// By file; `None` if it cannot be read.
    files: HashMap<String, Option<Source>>,
    /// When each library was written.
    built: HashMap<String, Option<SystemTime>>,
}

struct Source {
    text: String,
    /// Where each line begins in `text`.
    starts: Vec<usize>,
    written: Option<SystemTime>,
}

impl SourceText {
    /// Adds to rows of lines what stands there.
    pub(super) fn add_to(&mut self, rows: &mut [Row]) {
        for row in rows {
            row.text = self.line(row).map(str::to_owned);
        }
    }

    fn line(&mut self, row: &Row) -> Option<&str> {
        let (file, line) = (row.file.as_ref()?, row.line?);
        let built = match &row.library {
            None => None,
            Some(library) => {
                *self.built.entry(library.clone()).or_insert_with(|| modified(Path::new(library)))
            }
        };
        let source = self.files.entry(file.clone()).or_insert_with(|| Source::read(Path::new(file)));
        let source = source.as_ref()?;
        let is_newer = built.zip(source.written).is_some_and(|(built, written)| written > built);
        if is_newer {
            return None;
        }
        source.line(line)
    }
}

impl Source {
    fn read(path: &Path) -> Option<Source> {
        let about = fs::metadata(path).ok()?;
        if !about.is_file() || about.len() > FILE_BYTES_MAX {
            return None;
        }
        let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Some(Source { text, starts, written: about.modified().ok() })
    }

    /// A line, from 1.
    fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let rest = &self.text[*self.starts.get(index)?..];
        let line = rest.split('\n').next()?.trim();
        Some(line.char_indices().nth(LINE_CHARACTERS_MAX).map_or(line, |(end, _)| &line[..end]))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rows_have_their_lines_unless_the_file_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("a.c"), folder.path().join("a"));
        fs::write(&source, format!("first\n  second();\t\n{}", "\u{fc}".repeat(201))).unwrap();
        fs::write(&library, "").unwrap();
        let row = |line| Row {
            file: Some(source.to_str().unwrap().into()),
            library: Some(library.to_str().unwrap().into()),
            line: Some(line),
            ..Row::default()
        };
        let texts = || {
            let mut rows = [0, 1, 2, 3, 4].map(row);
            SourceText::default().add_to(&mut rows);
            rows.map(|row| row.text)
        };
        let expected =
            [None, Some("first".into()), Some("second();".into()), Some("\u{fc}".repeat(200)), None];
        assert_eq!(texts(), expected);
        let later = SystemTime::now() + Duration::from_secs(60);
        fs::File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
        assert_eq!(texts(), [const { None }; 5]);
    }
}
