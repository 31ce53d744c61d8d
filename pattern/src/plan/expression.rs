//! Properties of an expression on which the plan depends: its size, whether it has characters
//! beyond ASCII, and whether a string that every match contains is worth searching first.
//!
//! **Why a file of its own.** These are facts of the syntax tree alone; the plan weighs them. The
//! rates below were measured beside the engines that they choose between. **Leaves out** which
//! string is the rarest: `literal::required` finds it.

use crate::literal::required::{self, Cost};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Streams without Unicode classes are nearly as fast as memory: only strings that are estimated to
/// be this rare are looked for first.
const RARE: u32 = 11;

/// Where streams need no Unicode classes: confirming a line costs as much as streams over
/// `sparse_bytes` bytes, and compiling their program as much as confirming `patience_lines` lines.
const COST: Cost = Cost { sparse_bytes: 1 << 10, patience_lines: 256 };

/// The costs of streams with Unicode classes, which a search for a string may avoid.
const UNICODE_COST: Cost = Cost { sparse_bytes: 384, patience_lines: 4 << 10 };

/// Whether a class holds characters of several bytes.
pub(crate) fn has_long_characters(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.maximum_len().is_some_and(|bytes| bytes > 1),
        HirKind::Repetition(repetition) => has_long_characters(&repetition.sub),
        HirKind::Capture(capture) => has_long_characters(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(has_long_characters),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => false,
    }
}

/// Whether a string that every match contains is likely to be found faster than streams run.
pub(crate) fn has_rare_string(hir: &Hir) -> bool {
    required::rarest(hir).is_some_and(|string| match has_long_characters(hir) {
        true => string.len() > 1,
        false => string.len() > 2 && required::estimate(string) <= RARE,
    })
}

/// The costs of streams for `hir`, which a search for a string may avoid.
pub(crate) fn cost_of_streams(hir: &Hir) -> Cost {
    if has_long_characters(hir) {
        UNICODE_COST
    } else {
        COST
    }
}

/// The number of letters in all literals and classes.
pub(crate) fn letters(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => letters(&repetition.sub),
        HirKind::Capture(capture) => letters(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().map(letters).sum(),
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// An expression without assertions about words that matches wherever `hir` does.
pub(crate) fn without_word_boundaries(hir: &Hir) -> Hir {
    let all = |subs: &[Hir]| subs.iter().map(without_word_boundaries).collect();
    match hir.kind() {
        HirKind::Look(look) if regex_syntax::hir::LookSet::singleton(*look).contains_word() => Hir::empty(),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_word_boundaries(&repetition.sub));
            Hir::repetition(regex_syntax::hir::Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => without_word_boundaries(&capture.sub),
        HirKind::Concat(subs) => Hir::concat(all(subs)),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)),
        _ => hir.clone(),
    }
}
