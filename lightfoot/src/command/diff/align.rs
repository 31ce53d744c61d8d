//! Finds the lines of one source that are lines of another version of it.
//!
//! **Why.** Two comment lines on top of a file move all others, and by their numbers each of them
//! would have changed. **How.** Reports keep the text of the lines that ran. These texts are
//! compared as a version control system compares files (patience diff), which finds lines that
//! stand in both. Where as many lines were replaced as stand there now, the first of them became
//! the first, and so on. Without texts, and where all lines that ran in both have the texts that
//! their numbers had before, lines are those of equal numbers. **Leaves out** functions
//! that moved behind others: they are gone in one place and new in the other. Source: Bram Cohen's
//! patience diff, by the crate `similar`.

use similar::algorithms::{patience, Capture, Compact, Replace};
use similar::DiffOp;
use std::collections::BTreeMap;

/// Lines of a source that ran, by number, with their text if it is known.
pub(in crate::command) type Lines = BTreeMap<u32, Option<String>>;

/// Numbers of one line before and after; `None` where it does not exist.
pub(in crate::command) type Pair = (Option<u32>, Option<u32>);

/// Pairs the lines of a source, so that each stands in one pair.
pub(in crate::command) fn aligned(before: &Lines, after: &Lines) -> Vec<Pair> {
    // Runs of one source execute different lines of it, and none of these replaced another one.
    let common = before.keys().filter(|number| after.contains_key(number)).count();
    if agree(before, after) && 2 * common >= before.len().min(after.len()) {
        return by_number(before, after);
    }
    let texts = |lines: &Lines| lines.values().cloned().collect::<Option<Vec<String>>>();
    let (Some(old), Some(new)) = (texts(before), texts(after)) else { return by_number(before, after) };
    let numbers = |lines: &Lines| lines.keys().copied().collect::<Vec<u32>>();
    let (old_numbers, new_numbers) = (numbers(before), numbers(after));
    let mut pairs = Vec::new();
    for operation in operations(&old, &new) {
        let (old, new) = (&old_numbers[operation.old_range()], &new_numbers[operation.new_range()]);
        let is_matched = match operation {
            DiffOp::Equal { .. } => true,
            _ => old.len() == new.len(),
        };
        if is_matched {
            pairs.extend(old.iter().zip(new).map(|(&old, &new)| (Some(old), Some(new))));
        } else {
            pairs.extend(old.iter().map(|&old| (Some(old), None)));
            pairs.extend(new.iter().map(|&new| (None, Some(new))));
        }
    }
    pairs
}

/// The edits between two lists of lines. The crate's own function would compile its other
/// algorithms, too.
fn operations(old: &[String], new: &[String]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = patience::diff(&mut hook, old, 0..old.len(), new, 0..new.len());
    hook.into_inner().into_inner().into_ops()
}

/// Whether all lines that both have are equal.
pub(in crate::command) fn agree(before: &Lines, after: &Lines) -> bool {
    before.iter().all(|(number, text)| after.get(number).is_none_or(|other| other == text))
}

/// Pairs lines of equal numbers.
pub(in crate::command) fn by_number(before: &Lines, after: &Lines) -> Vec<Pair> {
    let own = |lines: &Lines, number: u32| lines.contains_key(&number).then_some(number);
    let all = present::order::set_of(before.keys().chain(after.keys()).copied());
    all.into_iter().map(|number| (own(before, number), own(after, number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(texts: &[(u32, &str)]) -> Lines {
        texts.iter().map(|(number, text)| (*number, Some((*text).to_owned()))).collect()
    }

    #[test]
    fn lines_that_moved_are_the_same_lines() {
        let before = lines(&[(3, "int f(int n) {"), (4, "return n;"), (9, "return f(1);")]);
        let after = lines(&[(5, "int f(int n) {"), (6, "return n;"), (7, "g();"), (12, "return f(1);")]);
        let expected = [(Some(3), Some(5)), (Some(4), Some(6)), (None, Some(7)), (Some(9), Some(12))];
        assert_eq!(aligned(&before, &after), expected);
    }

    #[test]
    fn a_line_that_was_rewritten_is_one_line() {
        let before = lines(&[(1, "a"), (2, "sum += t[i];"), (3, "b")]);
        let after = lines(&[(1, "a"), (2, "sum += t[2 * i];"), (3, "b")]);
        assert_eq!(aligned(&before, &after), [1, 2, 3].map(|line| (Some(line), Some(line))));
    }

    #[test]
    fn runs_of_one_source_execute_different_lines_of_it() {
        let before = lines(&[(1, "if (x)"), (2, "f();"), (5, "}")]);
        let after = lines(&[(1, "if (x)"), (4, "g();"), (5, "}")]);
        let expected = [(Some(1), Some(1)), (Some(2), None), (None, Some(4)), (Some(5), Some(5))];
        assert_eq!(aligned(&before, &after), expected);
    }

    #[test]
    fn without_texts_numbers_decide() {
        let mut before = lines(&[(1, "a"), (2, "b")]);
        before.insert(3, None);
        let after = lines(&[(2, "a"), (3, "b"), (4, "c")]);
        let expected = [(Some(1), None), (Some(2), Some(2)), (Some(3), Some(3)), (None, Some(4))];
        assert_eq!(aligned(&before, &after), expected);
    }

    proptest! {
        #[test]
        fn each_line_stands_in_one_pair(
            old in prop::collection::vec("[ab]{1,2}", 0..20),
            new in prop::collection::vec("[ab]{1,2}", 0..20),
        ) {
            let numbered = |texts: &[String]| -> Lines { (7..).zip(texts.iter().cloned().map(Some)).collect() };
            let (before, after) = (numbered(&old), numbered(&new));
            let pairs = aligned(&before, &after);
            let mut olds: Vec<u32> = pairs.iter().filter_map(|pair| pair.0).collect();
            let mut news: Vec<u32> = pairs.iter().filter_map(|pair| pair.1).collect();
            // Lines keep their order, too.
            prop_assert!(olds.is_sorted() && news.is_sorted());
            olds.dedup();
            news.dedup();
            prop_assert_eq!(olds, before.keys().copied().collect::<Vec<_>>());
            prop_assert_eq!(news, after.keys().copied().collect::<Vec<_>>());
            if old == new {
                prop_assert!(pairs.iter().all(|(old, new)| old == new));
            }
        }
    }
}
