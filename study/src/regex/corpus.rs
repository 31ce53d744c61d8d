//! Text of this machine: headers, scripts and documentation, in the order of their paths.
//!
//! A machine with little text gets the same text again until there is enough. A few lines at the
//! end of each round hold what each family looks for, so that no pattern is without a match.

use std::path::PathBuf;

/// Where text is.
const FOLDERS: &[&str] =
    &["/usr/include", "/usr/lib/python3", "/usr/share/doc", "/usr/share/perl", "/usr/share"];

/// No larger file is taken: one of them should not be the corpus.
const MOST_BYTES: u64 = 1 << 20;

const SAMPLES: &str = "Written on 12/31/1999 by someone@example.org.\nSee https://example.org/a/b or write.\n 0xdeadbeef, 0x00ff.\n\
The old house stands empty near the river and the long road. 192.168.0.17\n\tmutex_unlock(&queue->lock); // sing\n\
a23456789012345678901c23456789012345678901e\n";

/// At least `bytes` of text, less than a line more.
pub(super) fn collect(bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + MOST_BYTES as usize);
    let mut walk = ignore::WalkBuilder::new(FOLDERS[0]);
    FOLDERS[1..].iter().for_each(|folder| {
        walk.add(folder);
    });
    let walk = walk.standard_filters(false).sort_by_file_path(|a, b| a.cmp(b)).build();
    let files =
        walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    for path in files.map(ignore::DirEntry::into_path) {
        if text.len() >= bytes {
            break;
        }
        text.extend(text_of(&path).unwrap_or_default());
    }
    text.extend_from_slice(SAMPLES.as_bytes());
    while text.len() < bytes {
        let again = text.len().min(bytes - text.len());
        text.extend_from_within(..again);
    }
    let end = pattern::line::end_of(&text, bytes - 1, b'\n');
    text.truncate(end.saturating_sub(SAMPLES.len() + 1));
    text.push(b'\n');
    text.extend_from_slice(SAMPLES.as_bytes());
    text
}

/// A file that is text: no NUL byte, valid UTF-8, a line feed at its end.
fn text_of(path: &PathBuf) -> Option<Vec<u8>> {
    if path.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    (text.ends_with(b"\n") && !text.contains(&0) && std::str::from_utf8(&text).is_ok()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_matches_somewhere() {
        let text = collect(100_000);
        assert!(text.len() >= 99_000 && text.len() < 200_000, "{}", text.len());
        for family in super::super::family::FAMILIES {
            let regex = pattern::Regex::new(family.pattern).unwrap();
            assert!(regex.is_match(&text), "{}", family.name);
        }
    }
}
