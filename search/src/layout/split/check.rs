//! Checks that lines from an untrusted file are a valid split layout, so that no query reads
//! outside of them.

use super::digit::{first_block, first_rank, head, Digit, DIRECTORY};
use super::plan::Split;
use crate::lane::Lane;
use crate::line::{lanes, Line};

impl<L: Lane> Split<L> {
    /// Whether every line holds, in order, as many digits as the next line's first rank requires,
    /// and the blocks follow one another.
    pub(in crate::layout) fn holds_as<D: Digit>(&self, lines: &[Line]) -> bool {
        let (buckets, blocks) = lines.split_at(self.scale.buckets());
        let (mut rank, mut used) = (0, 0);
        for (number, line) in buckets.iter().enumerate() {
            let end = buckets.get(number + 1).map_or(self.n, first_rank);
            if first_rank(line) != rank || end < rank {
                return false;
            }
            let whole = if head(line) & DIRECTORY == 0 {
                padded(&lanes::<D>(core::slice::from_ref(line))[D::HEAD..], end - rank)
            } else {
                let blocks = &blocks[used..];
                let needed = (end - rank).div_ceil(D::PER_LINE);
                let numbered = first_block::<D>(line) == used && needed <= blocks.len();
                used += needed;
                numbered && directory_holds::<D>(line, &blocks[..needed], end - rank)
            };
            if !whole {
                return false;
            }
            rank = end;
        }
        rank == self.n && used == blocks.len()
    }
}

/// Whether `digits` are `count` digits in order and padding behind them.
fn padded<D: Digit>(digits: &[D], count: usize) -> bool {
    count <= digits.len()
        && digits[..count].is_sorted()
        && digits[count..].iter().all(|&digit| digit == D::LARGEST)
}

/// Whether the blocks hold `count` digits in order, and the directory holds their largest digits.
fn directory_holds<D: Digit>(line: &Line, blocks: &[Line], count: usize) -> bool {
    let largest = &lanes::<D>(core::slice::from_ref(line))[2 * D::HEAD..];
    let digits = lanes::<D>(blocks);
    (1..=D::CROWD).contains(&count)
        && padded(digits, count)
        && padded(largest, blocks.len() - 1)
        && (1..blocks.len()).all(|number| largest[number - 1] == digits[number * D::PER_LINE - 1])
}
