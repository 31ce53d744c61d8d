//! The shape of a split layout: the width of digits and the number of lines, with as few bytes as
//! distinguish the keys. It is chosen from the number of keys and their ends, before any key is
//! placed.

use super::digit::{Width, DIRECTORY, WIDTHS};
use crate::lane::{Exact, Lane};
use crate::layout::method::{Numbers, Refusal};
use crate::scale::Scale;

/// Stretches of keys in which a plan looks for crowds.
const SAMPLED_STRETCHES: usize = 64;

/// Fewer keys in a stretch are placed without a look at them.
const KEYS_PER_STRETCH_MIN: usize = 512;

/// n keys in `scale.buckets()` lines, then `blocks` overflow blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split<L: Lane> {
    pub(in crate::layout) n: usize,
    pub(in crate::layout) scale: Scale<L>,
    pub(in crate::layout) digit: Width,
    pub(in crate::layout) blocks: usize,
}

impl<L: Lane> Split<L> {
    /// The plan for the sorted `keys`, before any is placed: the digit width and the number of
    /// lines, with as few bytes as distinguish the keys.
    pub(crate) fn plan<K: Exact<As = L>>(keys: &[K]) -> Result<Split<L>, Refusal> {
        if keys.len() >= DIRECTORY as usize {
            return Err(Refusal::TooMany);
        }
        let (Some(min), Some(max)) = (keys.first(), keys.last()) else { return Err(Refusal::Crowded) };
        let (min, max) = (min.to_lane(), max.to_lane());
        let values = max.minus(min).widen() as u128 + 2;
        let best = WIDTHS.into_iter().filter(|(digit, _)| digit.bits() <= L::BITS).map(|(digit, load)| {
            let needed = usize::try_from((values >> digit.bits()) + 1).unwrap_or(usize::MAX);
            (needed.max(keys.len().div_ceil(load)), digit)
        });
        let (lines, digit) = best.min_by_key(|&(lines, _)| lines).ok_or(Refusal::Crowded)?;
        let scale = Scale::new(min, max, lines);
        debug_assert!(scale.tells_apart(digit.bits()));
        let plan = Split { n: keys.len(), scale, digit, blocks: 0 };
        if plan.is_clearly_crowded(keys) {
            return Err(Refusal::Crowded);
        }
        Ok(plan)
    }

    /// Whether a sample shows that filling would refuse the keys: a third of them stand so close
    /// together that their lines are crowded on average, while overflow blocks take a quarter.
    fn is_clearly_crowded<K: Exact<As = L>>(&self, keys: &[K]) -> bool {
        let step = keys.len() / SAMPLED_STRETCHES;
        if step < KEYS_PER_STRETCH_MIN {
            return false;
        }
        let line = |rank: usize| self.scale.locate(keys[rank].to_lane()).0;
        let crowded = (0..SAMPLED_STRETCHES).filter(|stretch| {
            let lines = line((stretch + 1) * step - 1).saturating_sub(line(stretch * step)) + 1;
            step > lines * self.digit.capacity()
        });
        crowded.count() > SAMPLED_STRETCHES / 3
    }

    /// Lines to allocate before filling: the buckets, and as many overflow blocks as are accepted.
    pub(crate) fn lines_max(&self) -> usize {
        self.scale.buckets() + self.blocks_max()
    }

    /// The most overflow blocks that are accepted: with more, crowded lines are not rare.
    pub(super) fn blocks_max(&self) -> usize {
        self.scale.buckets() / 6 + 16
    }

    /// The shape of `n` keys with a file's numbers, or `None` when they describe none.
    pub(super) fn of_numbers(n: usize, numbers: Numbers) -> Option<Split<L>> {
        let scale = Scale::from_numbers([numbers[0], numbers[1], numbers[2], numbers[3]])?;
        let (digit, _) = WIDTHS
            .into_iter()
            .find(|(digit, _)| digit.bits() as u64 == numbers[4] && digit.bits() <= L::BITS)?;
        let blocks = usize::try_from(numbers[5]).ok()?;
        (n < DIRECTORY as usize && blocks < DIRECTORY as usize).then_some(Split { n, scale, digit, blocks })
    }
}
