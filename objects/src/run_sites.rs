//! Places of allocation of a run. Each image numbers its own; here those with equal calls are one.

use heap::Site;
use symbol::ByNumber;

/// A place of allocation, and what became of its blocks in all images that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSite {
    /// Numbers of calls, the innermost first.
    pub(crate) stack: Vec<u32>,
    /// The most bytes that lived at a time in one image.
    pub(crate) most_bytes: u64,
    /// Blocks that were allocated.
    pub(crate) blocks: u64,
    /// The sum of their lives in instructions.
    pub(crate) lifetimes: u64,
}

/// All places.
#[derive(Default)]
pub(crate) struct RunSites {
    pub(crate) all: Vec<RunSite>,
    /// Numbers by a hash of the calls.
    numbers: ByNumber<u64, Vec<u32>>,
}

/// A hash of calls.
fn hash(stack: &[u32]) -> u64 {
    stack.iter().fold(0, |hash: u64, &call| {
        (hash ^ u64::from(call)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    })
}

impl RunSites {
    /// The number of no place.
    pub(crate) const NONE: u32 = u32::MAX;

    /// Gives the place `site` of an image, whose numbers are `own`, its number in the run.
    pub(crate) fn met(&mut self, own: &mut Vec<u32>, site: u32, stack: &[u32]) -> u32 {
        let alike = self.numbers.entry(hash(stack)).or_default();
        let known = alike.iter().copied().find(|&number| self.all[number as usize].stack == stack);
        let number = known.unwrap_or_else(|| {
            alike.push(self.all.len() as u32);
            self.all.push(RunSite { stack: stack.to_vec(), ..RunSite::default() });
            self.all.len() as u32 - 1
        });
        if own.len() <= site as usize {
            own.resize((site as usize + 1).next_power_of_two(), RunSites::NONE);
        }
        own[site as usize] = number;
        number
    }

    /// The calls of a place.
    pub(crate) fn stack(&self, number: u32) -> &[u32] {
        &self.all[number as usize].stack
    }

    /// Adds what became of the places of an image that has ended, whose numbers are `own`.
    pub(crate) fn ended(&mut self, own: &[u32], places: &[Site]) {
        for (&number, place) in own.iter().zip(places).filter(|(number, _)| **number != RunSites::NONE) {
            let site = &mut self.all[number as usize];
            site.most_bytes = site.most_bytes.max(place.most.bytes);
            site.blocks += place.total.blocks;
            site.lifetimes += place.lifetimes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::Amount;

    #[test]
    fn places_with_equal_calls_are_one() {
        let mut sites = RunSites::default();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        assert_eq!(sites.met(&mut first, 2, &[7, 8]), 0);
        assert_eq!(sites.met(&mut first, 0, &[9]), 1);
        assert_eq!(sites.met(&mut second, 0, &[7, 8]), 0);
        let place = |bytes, blocks, lifetimes| {
            let (most, total) = (Amount { bytes, blocks: 1 }, Amount { bytes: 0, blocks });
            Site { most, total, lifetimes, ..Site::default() }
        };
        // Nothing missed the second place of the first image.
        sites.ended(&first, &[place(1, 2, 3), place(100, 100, 100), place(50, 4, 40)]);
        sites.ended(&second, &[place(30, 5, 50), place(100, 100, 100)]);
        let of = |stack: &[u32], most_bytes, blocks, lifetimes| RunSite {
            stack: stack.to_vec(),
            most_bytes,
            blocks,
            lifetimes,
        };
        assert_eq!(sites.all, [of(&[7, 8], 50, 9, 90), of(&[9], 1, 2, 3)]);
    }
}
