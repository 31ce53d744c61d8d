//! Lines by the general automaton: records, whole texts, and single lines.
//!
//! The slowest way, which needs no preparation and knows every expression: short texts and what
//! programs leave undecided go here. **Leaves out** spans, which `regex::spans` finds.

use crate::line::{self, Push};
use crate::regex::automaton::Automaton;
use regex_automata::Input;
use std::ops::ControlFlow;

pub(super) fn records(
    spans: &Automaton,
    text: &[u8],
    terminator: u8,
    push: &mut Push<'_>,
) -> ControlFlow<()> {
    for record in line::each(text, terminator) {
        let content = line::content(&text[record.clone()], terminator);
        if spans.is_match(&text[record.start..record.start + content]) {
            push(record)?;
        }
    }
    ControlFlow::Continue(())
}

pub(super) fn automaton(
    spans: &Automaton,
    text: &[u8],
    terminator: u8,
    push: &mut Push<'_>,
) -> ControlFlow<()> {
    let mut at = 0;
    while at < text.len() {
        let input = Input::new(text).span(at..text.len()).earliest(true);
        // The end of some match is enough: it lies in the line that matches, and the search goes on
        // behind that line.
        let Some(half) = spans.search_half(&input) else { break };
        // An empty match behind the last terminator lies in no line.
        if half.offset() == text.len() && text.last() == Some(&terminator) {
            break;
        }
        let end = line::end_of(text, half.offset(), terminator);
        let start = at + line::start_of(&text[at..], half.offset() - at, terminator);
        at = end;
        if !looks_back(text, start) || matches_alone(spans, &text[start..end], terminator) {
            push(start..end)?;
        }
    }
    ControlFlow::Continue(())
}

/// Whether an assertion in the line at `start` may have looked behind its beginning: the
/// automaton's reads the character before a stray continuation byte (80 to BF) from up to three
/// bytes before it, and takes the terminator for it. Alone, such a line begins with what is no
/// character.
fn looks_back(text: &[u8], start: usize) -> bool {
    start > 0 && text.get(start).is_some_and(|byte| (0x80..0xc0).contains(byte))
}

/// Whether a line, given without its terminator, matches.
///
/// Not `is_match`: where the earliest end of a match is asked for, the fastest engine for Unicode's
/// `\b` is left out.
pub(super) fn matches_content(spans: &Automaton, content: &[u8]) -> bool {
    spans.search_half(&Input::new(content)).is_some()
}

fn matches_alone(spans: &Automaton, line: &[u8], terminator: u8) -> bool {
    matches_content(spans, &line[..line::content(line, terminator)])
}
