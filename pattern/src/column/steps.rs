//! Parts of expressions that are strings and runs of characters, byte by byte without an automaton.
//!
//! **Problem.** In `([^/]+)/` or `([0-9]+) ms` each byte says at once where a run ends, but a
//! general one-pass automaton prepares each search and looks up groups at each byte, which takes
//! several times as long as a short row's bytes.
//!
//! **Idea.** A run takes as many characters as it can. Where none of them can begin what follows,
//! taking fewer leads to no match, so that there is nothing to come back to.
//!
//! **Leaves out** alternatives, repeated groups, assertions but for the end, repetitions that
//! prefer fewer, and runs of Unicode that meet a character beyond ASCII: the automaton decides
//! those.

use regex_automata::util::primitives::NonMaxUsize;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// What a place of a row has to hold.
#[derive(Debug)]
enum Step {
    String(Box<[u8]>),
    Run(Box<Run>),
    /// The end of the row.
    End,
    /// A group's beginning or end: its slot.
    Slot(usize),
}

/// Characters of a class, one behind the other.
#[derive(Debug)]
struct Run {
    /// What a byte is: one of [`STOPS`], [`GOES_ON`], [`UNKNOWN`].
    bytes: [u8; 256],
    least: usize,
    most: usize,
}

const STOPS: u8 = 0;
const GOES_ON: u8 = 1;
/// A character beyond ASCII, which may belong to the class.
const UNKNOWN: u8 = 2;

/// A sequence of strings, runs and groups.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
}

/// What became of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    NoMatch,
    /// At this place.
    Match(usize),
    /// The automaton has to look.
    Unknown,
}

impl Steps {
    /// The steps of a sequence of parts, where it has nothing else.
    pub(super) fn new(parts: &[Hir]) -> Option<Steps> {
        let mut steps = Vec::new();
        parts.iter().try_for_each(|part| add(part, &mut steps))?;
        let runs_end = (0..steps.len()).all(|at| match &steps[at] {
            Step::Run(run) => is_apart(run, &steps[at + 1..]),
            _ => true,
        });
        runs_end.then_some(Steps { steps })
    }

    /// Goes through a row from a place on, and fills the slots of groups, but not of group 0.
    pub(super) fn search(&self, row: &[u8], from: usize, slots: &mut [Option<NonMaxUsize>]) -> Ended {
        let mut at = from;
        for step in &self.steps {
            match step {
                Step::String(string) => {
                    if !row[at..].starts_with(string) {
                        return Ended::NoMatch;
                    }
                    at += string.len();
                }
                Step::Run(run) => {
                    let left = &row[at..];
                    let most = left.len().min(run.most);
                    let is_over = |&byte: &u8| run.bytes[usize::from(byte)] != GOES_ON;
                    let count = left[..most].iter().position(is_over).unwrap_or(most);
                    if count < most && run.bytes[usize::from(left[count])] == UNKNOWN {
                        return Ended::Unknown;
                    }
                    if count < run.least {
                        return Ended::NoMatch;
                    }
                    at += count;
                }
                Step::End if at < row.len() => return Ended::NoMatch,
                Step::End => {}
                Step::Slot(slot) => slots[*slot] = NonMaxUsize::new(at),
            }
        }
        Ended::Match(at)
    }
}

/// Adds a part's steps; `None` where it has others.
fn add(part: &Hir, steps: &mut Vec<Step>) -> Option<()> {
    match part.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => steps.push(Step::String(literal.0.clone())),
        HirKind::Class(_) => steps.push(run(part, 1, Some(1))?),
        HirKind::Look(Look::End) => steps.push(Step::End),
        HirKind::Capture(capture) => {
            let slot = 2 * capture.index as usize;
            steps.push(Step::Slot(slot));
            add(&capture.sub, steps)?;
            steps.push(Step::Slot(slot + 1));
        }
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| add(part, steps))?,
        HirKind::Repetition(repetition) if repetition.greedy => {
            steps.push(run(&repetition.sub, repetition.min, repetition.max)?);
        }
        HirKind::Repetition(_) | HirKind::Alternation(_) | HirKind::Look(_) => return None,
    }
    Some(())
}

/// A run of a class or of one byte.
fn run(part: &Hir, least: u32, most: Option<u32>) -> Option<Step> {
    let mut bytes = [STOPS; 256];
    let mut add = |first: u32, last: u32| (first..=last).for_each(|byte| bytes[byte as usize] = GOES_ON);
    match part.kind() {
        HirKind::Literal(literal) => match &literal.0[..] {
            [byte] => add(u32::from(*byte), u32::from(*byte)),
            _ => return None,
        },
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().for_each(|range| add(u32::from(range.start()), u32::from(range.end())));
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ascii = class.iter().filter(|range| range.start().is_ascii());
            ascii.for_each(|range| add(u32::from(range.start()), u32::from(range.end()).min(0x7f)));
            if class.iter().any(|range| !range.end().is_ascii()) {
                bytes[0x80..].fill(UNKNOWN);
            }
        }
        _ => return None,
    }
    let most = most.map_or(usize::MAX, |most| most as usize);
    Some(Step::Run(Box::new(Run { bytes, least: least as usize, most })))
}

/// Whether no character of a run can begin what follows it.
fn is_apart(run: &Run, following: &[Step]) -> bool {
    let has = |byte: u8| run.bytes[usize::from(byte)] != STOPS;
    for step in following {
        match step {
            Step::String(string) => return !has(string[0]),
            Step::Run(next) => {
                if (0..=255).any(|byte| has(byte) && next.bytes[usize::from(byte)] != STOPS) {
                    return false;
                }
                if next.least > 0 {
                    return true;
                }
            }
            Step::End => return true,
            Step::Slot(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pattern: &str) -> Option<Steps> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
        Steps::new(std::slice::from_ref(&hir))
    }

    #[test]
    fn runs_end_where_a_byte_says_so() {
        for pattern in ["([0-9]+) ms", "([^/]+)/", "a{2,3}([b-d]*)x", "[a-c]+", "(é)([0-9]*)$", "x?y*z", ""]
        {
            assert!(steps(pattern).is_some(), "{pattern}");
        }
        // Runs whose characters begin what follows, lazy ones, alternatives, repeated groups.
        for pattern in
            ["[a-c]+b", "a*b?a", r"\w+ing", "[a-c]+?x", "(?:a|bc)", "(a)*", r"a\b", "[^a]*é", "(?:ab)+"]
        {
            assert!(steps(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn characters_that_may_belong_to_a_run_are_left_to_the_automaton() {
        let search = |pattern: &str, row: &str| {
            let mut slots = [None; 4];
            let ended = steps(pattern).unwrap().search(row.as_bytes(), 0, &mut slots);
            (ended, slots[2].map(|slot| slot.get()), slots[3].map(|slot| slot.get()))
        };
        assert_eq!(search("([^/]+)/", "host/path"), (Ended::Match(5), Some(0), Some(4)));
        assert_eq!(search("([^/]+)/", "höst/path").0, Ended::Unknown);
        assert_eq!(search("([0-9]{2,3})x", "123x"), (Ended::Match(4), Some(0), Some(3)));
        assert_eq!(search("([0-9]{2,3})x", "1234x").0, Ended::NoMatch);
        assert_eq!(search("([0-9]{2,3})x", "1x").0, Ended::NoMatch);
        assert_eq!(search("([0-9]+)é$", "7é"), (Ended::Match(3), Some(0), Some(1)));
        assert_eq!(search("([0-9]+)é$", "7éé").0, Ended::NoMatch);
        assert_eq!(search("(a*)", ""), (Ended::Match(0), Some(0), Some(0)));
    }
}
