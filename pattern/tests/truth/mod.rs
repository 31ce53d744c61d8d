//! What lines of a text match: by the `regex` crate, and by the expression under test.

use lightfoot_pattern::Regex;
use std::ops::{ControlFlow, Range};

/// The truth: the matching lines and all spans, each line asked by itself with `regex`.
pub(crate) fn naive(pattern: &str, text: &[u8]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let regex = regex::bytes::RegexBuilder::new(pattern).build().unwrap();
    let (mut lines, mut spans) = (Vec::new(), Vec::new());
    for line in lightfoot_pattern::line::each(text, b'\n') {
        let content =
            &text[line.start..line.start + lightfoot_pattern::line::content(&text[line.clone()], b'\n')];
        let found: Vec<_> =
            regex.find_iter(content).map(|m| line.start + m.start()..line.start + m.end()).collect();
        if !found.is_empty() {
            lines.push(line);
        }
        spans.extend(found);
    }
    (lines, spans)
}

/// The lines that our expression pushes.
pub(crate) fn lines(regex: &Regex, text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let flow = regex.matching_lines(text, |line| {
        found.push(line);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    found
}
