//! Two bits for each byte of a text: whether a matching line ends there, and whether any line does.
//!
//! The second one comes from the program of the empty expression, which marks the end of every
//! line. Starts and numbers of lines are then arithmetic on words of 64 bits. **Leaves out**
//! expressions without an exact program.

use pattern::compile::{compile, CompileOptions};
use pattern::kernel::Scanner;
use pattern::Regex;
use std::ops::{ControlFlow, Range};

/// The programs for matching lines and for all lines.
#[derive(Debug)]
pub(super) struct Dense {
    matching: Scanner,
    every: Scanner,
}

/// The bits of a text; scratch memory of one thread.
#[derive(Debug, Default)]
pub(super) struct Bits {
    matching: Vec<u64>,
    every: Vec<u64>,
}

impl Dense {
    /// The programs of an expression; `None` if it has no exact one.
    pub(super) fn new(regex: &Regex) -> Option<Dense> {
        if !matches!(regex.engine(), "streams" | "literal" | "required") {
            return None;
        }
        let scanner = |regex: &Regex| {
            let options = CompileOptions {
                terminator: b'\n',
                operations: pattern::plan::MOST_OPERATIONS,
                ..CompileOptions::default()
            };
            compile(regex.hir(), &options).ok().map(|program| Scanner::new(&program))
        };
        Some(Dense { matching: scanner(regex)?, every: scanner(&Regex::new("").ok()?)? })
    }
}

impl Bits {
    /// Computes the bits of a text.
    pub(super) fn mark(&mut self, dense: &Dense, text: &[u8]) {
        collect(&dense.matching, text, &mut self.matching);
        collect(&dense.every, text, &mut self.every);
    }
}

fn collect(scanner: &Scanner, text: &[u8], words: &mut Vec<u64>) {
    words.clear();
    let _ = scanner.scan_for(text.len()).finish(text, |_, ends| {
        words.extend_from_slice(ends);
        ControlFlow::Continue(())
    });
}

/// Walks over the reported lines of a piece: calls `visit` with the number of lines in front of a
/// line, and with the line's range without terminator. Returns the number of all lines.
#[inline]
pub(super) fn each_line(bits: &Bits, inverted: bool, mut visit: impl FnMut(u64, Range<usize>)) -> u64 {
    let (mut start, mut before) = (0, 0);
    for (at, (&every, &matching)) in bits.every.iter().zip(&bits.matching).enumerate() {
        let base = 64 * at;
        let wanted = if inverted { every & !matching } else { matching };
        if wanted == 0 {
            before += u64::from(every.count_ones());
            start = if every == 0 { start } else { base + 64 - every.leading_zeros() as usize };
            continue;
        }
        let mut left = every;
        while left != 0 {
            let end = base + left.trailing_zeros() as usize;
            if wanted & left & left.wrapping_neg() != 0 {
                visit(before, start..end);
            }
            before += 1;
            start = end + 1;
            left &= left - 1;
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use pattern::line;

    /// The lines that the bits give, checked against lines that are found one by one.
    fn lines(text: &[u8], pattern: &str, inverted: bool) -> Vec<(u64, Range<usize>)> {
        let dense = Dense::new(&Regex::new(pattern).unwrap()).unwrap();
        let mut bits = Bits::default();
        bits.mark(&dense, text);
        let mut found = Vec::new();
        let ends = each_line(&bits, inverted, |before, line| found.push((before, line)));
        assert_eq!(ends, line::each(text, b'\n').count() as u64);
        found
    }

    #[test]
    fn bits_give_lines_and_their_numbers() {
        let mut seed = 1_u64;
        for length in [0, 1, 2, 63, 64, 65, 511, 512, 513, 8191, 8192, 8193, 70_000] {
            for rarity in [2, 5, 70, 700] {
                let letters = (0..length).map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let roll = (seed >> 33) % rarity;
                    [b'\n', b'x'].get(roll as usize).copied().unwrap_or(b'a')
                });
                let text: Vec<u8> = letters.collect();
                for inverted in [false, true] {
                    let each = (0..).zip(line::each(&text, b'\n'));
                    let wanted = each.filter_map(|(before, line)| {
                        let content = line.start..line.start + line::content(&text[line.clone()], b'\n');
                        (text[content.clone()].contains(&b'x') != inverted).then_some((before, content))
                    });
                    assert_eq!(lines(&text, "x", inverted), wanted.collect::<Vec<_>>(), "{length} {rarity}");
                }
            }
        }
    }
}
