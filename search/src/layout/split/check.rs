//! Checks that lines from an untrusted file are a valid split layout, so that no query reads
//! outside of them.

use super::digit::{first_block, first_rank, head, Digit, DIRECTORY};
use super::plan::Split;
use crate::lane::Lane;
use crate::line::{lanes, Line};

impl<L: Lane> Split<L> {
    /// True when every line holds as many digits in order as the next line's first rank says, and
    /// the blocks follow one another.
    pub(super) fn holds_as<D: Digit>(&self, lines: &[Line]) -> bool {
        let (buckets, blocks) = lines.split_at(self.scale.buckets());
        let (mut rank, mut used) = (0, 0);
        for (i, line) in buckets.iter().enumerate() {
            let end = buckets.get(i + 1).map_or(self.n, first_rank);
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

/// True when `count` digits in order and padding are all there is.
fn padded<D: Digit>(digits: &[D], count: usize) -> bool {
    count <= digits.len()
        && digits[..count].is_sorted()
        && digits[count..].iter().all(|&digit| digit == D::LARGEST)
}

/// True when the blocks hold `count` digits in order and the directory their largest ones.
fn directory_holds<D: Digit>(line: &Line, blocks: &[Line], count: usize) -> bool {
    let largest = &lanes::<D>(core::slice::from_ref(line))[2 * D::HEAD..];
    let digits = lanes::<D>(blocks);
    (1..=D::CROWD).contains(&count)
        && padded(digits, count)
        && padded(largest, blocks.len() - 1)
        && (1..blocks.len()).all(|i| largest[i - 1] == digits[i * D::PER_LINE - 1])
}
