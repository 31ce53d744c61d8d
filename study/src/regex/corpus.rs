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

/// Lines from all over a text, about `bytes` of them, so that a short text has what the long one
/// has: pieces of 4 KiB at even distances, and the line of each family.
pub(super) fn sample(text: &[u8], bytes: usize) -> Vec<u8> {
    const PIECE_BYTES: usize = 4 << 10;
    let pieces = (bytes / PIECE_BYTES).max(1);
    let mut sample = Vec::with_capacity(bytes + SAMPLES.len());
    for piece in 0..pieces {
        let start = pattern::line::end_of(text, text.len() / pieces * piece, b'\n');
        let end = pattern::line::end_of(text, (start + PIECE_BYTES).min(text.len() - 1), b'\n');
        sample.extend_from_slice(&text[start..end.max(start)]);
    }
    sample.extend_from_slice(SAMPLES.as_bytes());
    sample
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
    fn a_sample_has_whole_lines_from_everywhere() {
        let text: Vec<u8> = (0..40_000).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
        let sample = sample(&text, 64 << 10);
        assert!(sample.len() > 50_000 && sample.len() < 80_000, "{}", sample.len());
        let lines: Vec<&[u8]> = sample.split(|&byte| byte == b'\n').collect();
        let known: std::collections::HashSet<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        let own = lines.iter().filter(|line| known.contains(*line)).count();
        assert_eq!(lines.len() - own, SAMPLES.lines().count(), "no line is cut");
        assert!(sample.windows(8).any(|w| w == b"line 390"), "the end is in it");
    }

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
