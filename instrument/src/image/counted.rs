//! The counts of an image: of a fragment's blocks, of a thread that ends, and of everything as a
//! profile.
//!
//! Each thread's context has one counter for each exit of a fragment. A block runs whenever the
//! traversal leaves by its own exit or by a later one, so a block's executions are the sum of the
//! counters from its own exit to the last one:
//!
//! ```text
//!   counters of a fragment   │ exit of block 0 │ exit of block 1 │ … │ last block │
//!   executions of block 1                      └──────── sum ─────────────────────┘
//! ```
//!
//! [`Image::adjust`] adds what happens outside complete traversals (steps, repeats that stop in the
//! middle) to sums of the thread. **Leaves out** complex references, which only records count.

use super::Image;
use crate::call::{CallRecords, Ticks};
use crate::code::counter::{count_address, tick_address};
use crate::code::fragment::Fragment;
use crate::profile::{Block, Instruction, Module, Profile, Site};
use crate::translate::Translator;
use event::Stream;
use std::mem::take;

/// How an image's tables come into its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProfileTables {
    /// The image needs them no longer, unless a forked child may use it.
    Moved,
    /// The image goes on in another process.
    Copied,
    /// Only blocks that ran, and those with sites, are in the profile, under new numbers.
    Ran,
}

/// How often a block of an image ran, and how often the branch at its end was taken.
pub(super) struct BlockCount {
    pub(super) block: u32,
    pub(super) executions: u64,
    pub(super) taken: u64,
}

/// What is not zero among the counts of an image.
pub(super) struct ImageCounts {
    /// Counters, in order.
    pub(super) counters: Vec<(u32, u64)>,
    /// Blocks, in order.
    pub(super) blocks: Vec<BlockCount>,
}

/// The number of items at the beginning of a sorted table that lie before something. The cost grows
/// with the logarithm of that number.
pub(super) fn leading<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut reach = 1;
    while items.get(reach - 1).is_some_and(&is_before) {
        reach *= 2;
    }
    // All before half of the reach are before it, and the last of the reach is not.
    let known = reach / 2;
    known + items[known..items.len().min(reach)].partition_point(is_before)
}

/// The numbers of two sorted lists in order, each once.
fn merged(ones: impl ExactSizeIterator<Item = u32>, others: Vec<u32>) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(ones.len() + others.len());
    let mut others = others.into_iter().peekable();
    for one in ones {
        numbers.extend(std::iter::from_fn(|| others.next_if(|other| *other < one)));
        numbers.push(one);
    }
    numbers.extend(others);
    numbers.dedup();
    numbers
}

/// Appends the counts of the blocks of `fragment`, of which `own` are the counters that are not
/// zero, in order.
fn enter(fragment: &Fragment, own: &[(u32, u64)], blocks: &mut Vec<BlockCount>) {
    let start = blocks.len();
    let mut own = own.iter().rev().peekable();
    let mut counter = |index: u32| {
        let number = fragment.counters + index;
        while own.next_if(|(counter, _)| *counter > number).is_some() {}
        own.next_if(|(counter, _)| *counter == number).map_or(0, |&(_, value)| value)
    };
    // Sum the counters from the last one back to the head.
    let mut executions = counter(fragment.blocks);
    for index in (0..fragment.blocks).rev() {
        let taken = counter(index);
        if index + 1 < fragment.blocks {
            executions = executions.saturating_add(taken);
        }
        if executions > 0 || taken > 0 {
            blocks.push(BlockCount { block: fragment.first_block + index, executions, taken });
        }
    }
    blocks[start..].reverse();
}

impl Image {
    /// A counter's value, summed over all contexts.
    pub(super) fn counted(&self, counter: u32) -> u64 {
        (0..self.used)
            .map(|context| self.read64(context, count_address(counter)))
            .fold(0, u64::saturating_add)
    }

    /// Adds the counters of the thread in context `context`.
    fn add_counters(&self, context: usize, counters: &mut [u64]) {
        self.for_counters(context, counters.len(), |counter, value| {
            let sum = &mut counters[counter as usize];
            *sum = sum.saturating_add(value);
        });
    }

    /// Calls `add` with the counters of the thread in context `context` that are not zero, among
    /// the first `len`. Kept translations have counters that no thread touches, so most pages do
    /// not exist, and are not read.
    fn for_counters(&self, context: usize, len: usize, mut add: impl FnMut(u32, u64)) {
        let first = self.context(context) + count_address(0) as usize;
        for part in self.shared.present(first..first + 8 * len) {
            for at in part.step_by(8) {
                let value = self.shared.read64(at);
                if value > 0 {
                    add(((at - first) / 8) as u32, value);
                }
            }
        }
    }

    /// The counts of all contexts. The cost grows with what ran, and with the logarithm of what is
    /// translated.
    fn counts(&self) -> ImageCounts {
        let mut counters = Vec::new();
        for context in 0..self.used {
            self.for_counters(context, self.translator.counters as usize, |counter, value| {
                counters.push((counter, value));
            });
        }
        if self.used > 1 {
            counters.sort_unstable_by_key(|&(counter, _)| counter);
            counters.dedup_by(|(counter, value), (last, sum)| {
                let same = counter == last;
                *sum = if same { sum.saturating_add(*value) } else { *sum };
                same
            });
        }
        // The run's time limits the sum over all contexts, too.
        self.checked(counters.iter().map(|(_, value)| value / self.used.max(1) as u64));
        let mut counts = ImageCounts { blocks: Vec::with_capacity(counters.len()), counters };
        let fragments = &self.translator.cache.fragments;
        debug_assert!(fragments.is_sorted_by_key(|fragment| fragment.counters));
        let (mut rest, mut left) = (&counts.counters[..], &fragments[..]);
        while let Some(&(counter, _)) = rest.first() {
            left = &left[leading(left, |fragment| fragment.counters <= counter).saturating_sub(1)..];
            let end = left.get(1).map_or(u32::MAX, |next| next.counters);
            let own;
            (own, rest) = rest.split_at(leading(rest, |&(counter, _)| counter < end));
            enter(&left[0], own, &mut counts.blocks);
        }
        for (&block, &times) in &self.extra {
            match counts.blocks.binary_search_by_key(&block, |counted| counted.block) {
                Ok(at) => {
                    let executions = &mut counts.blocks[at].executions;
                    *executions = executions.saturating_add(times);
                }
                Err(at) => counts.blocks.insert(at, BlockCount { block, executions: times, taken: 0 }),
            }
        }
        counts
    }

    /// The executions of each block of the fragment.
    pub(super) fn executions(&mut self, fragment_index: usize) -> Vec<u64> {
        let fragment = &self.translator.cache.fragments[fragment_index];
        let sum = |index: u32| self.counted(fragment.counters + index);
        let mut executions = vec![sum(fragment.blocks)];
        for index in (0..fragment.blocks - 1).rev() {
            executions.push(executions[executions.len() - 1].saturating_add(sum(index)));
        }
        executions.reverse();
        self.look(fragment_index, &executions);
        executions
    }

    /// Adds the instructions of a block from `first` on, `times` times, to the sums of the thread
    /// in context `context`. These sums belong to the thread's counts in addition to its counters.
    pub(super) fn adjust(&mut self, context: usize, block: u32, first: u32, times: i64) {
        let block = &self.translator.blocks[block as usize];
        let sums = self.sums(block, first).map(|sum| sum as i64 * times);
        let whole = i64::from(first == 0 && times > 0);
        self.adjust_ticks(context, sums);
        let own = &mut self.per_thread.entry(context).or_default().1;
        own.iter_mut().zip([sums[0], whole, sums[1], sums[2]]).for_each(|(own, more)| *own += more);
    }

    /// Counts an exit as its stub would: increments its counter, and adds to the running sums.
    pub(crate) fn count_exit(&self, context: usize, counter: u32) {
        let at = count_address(counter);
        self.write64(context, at, self.read64(context, at).wrapping_add(1));
        self.adjust_ticks(context, self.translator.cache.weights_of(counter).map(i64::from));
    }

    /// Adds to the running sums of the thread in context `context`, if it has any.
    fn adjust_ticks(&self, context: usize, more: [i64; 3]) {
        for (index, more) in more.into_iter().enumerate().take(self.translator.summed()) {
            let at = tick_address(index);
            self.write64(context, at, self.read64(context, at).wrapping_add_signed(more));
        }
    }

    /// The running sums of the thread in context `context`; `None` where calls are not recorded.
    pub(crate) fn ticks(&self, context: usize) -> Option<Ticks> {
        let [instructions, loads, stores] = [0, 1, 2].map(|index| self.read64(context, tick_address(index)));
        (self.translator.calls != CallRecords::None).then_some(Ticks { instructions, loads, stores })
    }

    /// The instructions of the thread in context `context`, if it has a running sum of them.
    pub(crate) fn instructions(&self, context: usize) -> u64 {
        self.read64(context, tick_address(0))
    }

    /// The numbers of instructions, loads and stores of a block from its instruction `first` on.
    pub(super) fn sums(&self, block: &Block, first: u32) -> [u64; 3] {
        let range = (block.first + first) as usize..(block.first + block.count) as usize;
        self.translator.instructions.range(range).fold([0; 3], |[count, loads, stores], instruction| {
            [count + 1, loads + u64::from(instruction.loads), stores + u64::from(instruction.stores)]
        })
    }

    /// Instructions, blocks, loads and stores of the thread that ends in context `context`.
    pub(crate) fn thread_counts(&mut self, context: usize) -> [u64; 4] {
        let mut now = vec![0u64; self.translator.counters as usize];
        self.add_counters(context, &mut now);
        let (mut before, beside) = self.per_thread.remove(&context).unwrap_or_default();
        before.resize(now.len(), 0);
        self.checked(now.iter().copied());
        self.compare(&before, now.iter().copied());
        if self.evidence.exists() {
            return [0; 4];
        }
        let mut all = beside;
        // Sum the counters of each fragment, from the last one back to the head.
        for fragment in &self.translator.cache.fragments {
            let counter = |index: u32| {
                now[(fragment.counters + index) as usize] - before[(fragment.counters + index) as usize]
            };
            let mut executions = counter(fragment.blocks);
            for index in (0..fragment.blocks).rev() {
                if index + 1 < fragment.blocks {
                    executions += counter(index);
                }
                if executions > 0 {
                    let [instructions, loads, stores] =
                        self.sums(&self.translator.blocks[(fragment.first_block + index) as usize], 0);
                    let times = executions as i64;
                    let sums = [instructions, 1, loads, stores];
                    all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum as i64 * times);
                }
            }
        }
        self.per_thread.insert(context, (now, [0; 4]));
        all.map(|sum| sum.max(0) as u64)
    }

    /// The modules, blocks, instructions and sites of a profile. They are moved out of the image,
    /// or copied if the image may be used again.
    fn tables(&mut self, tables: ProfileTables) -> (Vec<Module>, Vec<Block>, Vec<Instruction>, Vec<Site>) {
        let reusable = tables == ProfileTables::Copied || self.is_reusable();
        let (maps, translator) = (&mut self.maps, &mut self.translator);
        if reusable {
            return (
                maps.modules.clone(),
                translator.blocks.clone(),
                translator.instructions.to_vec(),
                translator.sites.clone(),
            );
        }
        (
            take(&mut maps.modules),
            take(&mut translator.blocks),
            take(&mut translator.instructions).into_vec(),
            take(&mut translator.sites),
        )
    }

    /// The image's counts as a profile. If the profile has only some of the image's blocks, also
    /// returns their numbers in the image.
    pub(crate) fn profile(&mut self, tables: ProfileTables) -> (Profile, Vec<u32>) {
        let counts = self.counts();
        if self.translator.stream != Stream::Nothing {
            self.add_up(&counts);
        }
        if tables == ProfileTables::Ran {
            return self.profile_of_ran(&counts);
        }
        let (modules, mut blocks, instructions, sites) = self.tables(tables);
        for counted in &counts.blocks {
            let block = &mut blocks[counted.block as usize];
            (block.executions, block.taken) = (counted.executions, counted.taken);
        }
        let profile = Profile {
            modules,
            blocks,
            instructions,
            sites,
            cut: self.cut.iter().map(|(&(block, retired), &times)| (block, retired, times)).collect(),
            repeats: Vec::new(),
            complex: Vec::new(),
        };
        (profile, Vec::new())
    }

    /// A profile of the blocks that ran. Blocks with sites are among them, because a thread that
    /// was killed may have recorded references of a block that no counter has counted; so sites
    /// keep their numbers.
    fn profile_of_ran(&self, counts: &ImageCounts) -> (Profile, Vec<u32>) {
        let Translator { blocks, sites, .. } = &self.translator;
        let mut others: Vec<u32> = sites.iter().map(|site| site.block).collect();
        others.extend(self.cut.keys().map(|&(block, _)| block));
        others.sort_unstable();
        let numbers = merged(counts.blocks.iter().map(|counted| counted.block), others);
        // Tables of their final size need not be moved while they grow.
        let count = |&number: &u32| blocks[number as usize].count as usize;
        let mut profile = Profile {
            modules: self.maps.modules.clone(),
            blocks: Vec::with_capacity(numbers.len()),
            instructions: Vec::with_capacity(numbers.iter().map(count).sum()),
            ..Profile::default()
        };
        let (mut counted, mut sites) = (counts.blocks.iter().peekable(), sites.iter().peekable());
        for (&number, new) in numbers.iter().zip(0..) {
            let block = &blocks[number as usize];
            let count = counted.next_if(|counted| counted.block == number);
            let (executions, taken) = count.map_or((0, 0), |count| (count.executions, count.taken));
            let first = profile.instructions.len() as u32;
            profile.blocks.push(Block { first, executions, taken, ..block.clone() });
            profile.instructions.extend(self.translator.instructions_of(block));
            while let Some(site) = sites.next_if(|site| site.block == number) {
                profile.sites.push(Site { block: new, ..*site });
            }
        }
        let new = |block: u32| numbers.partition_point(|&number| number < block) as u32;
        profile.cut =
            self.cut.iter().map(|(&(block, retired), &times)| (new(block), retired, times)).collect();
        (profile, numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machine::random::Random;

    #[test]
    fn leading_items_are_counted() {
        for len in 0..70u32 {
            let items: Vec<u32> = (0..len).map(|item| item / 2).collect();
            for limit in 0..40 {
                let expected = items.iter().filter(|item| **item < limit).count();
                assert_eq!(leading(&items, |item| *item < limit), expected, "{len} {limit}");
            }
        }
    }

    #[test]
    fn lists_are_merged() {
        let list = |numbers: &[u32]| numbers.to_vec();
        let merged = |ones: &[u32], others: &[u32]| merged(ones.iter().copied(), others.to_vec());
        assert_eq!(merged(&[], &[]), list(&[]));
        assert_eq!(merged(&[1, 4], &[]), list(&[1, 4]));
        assert_eq!(merged(&[], &[2, 2, 3]), list(&[2, 3]));
        assert_eq!(merged(&[1, 4, 9], &[0, 1, 1, 2, 4, 8, 10, 10]), list(&[0, 1, 2, 4, 8, 9, 10]));
    }

    /// The executions and taken branches of a fragment's blocks, from all of its counters.
    fn slow(first_block: u32, counters: &[u64]) -> Vec<(u32, u64, u64)> {
        let blocks = counters.len() - 1;
        let of_block = |index: usize| {
            let later = counters[index..blocks - 1].iter().sum::<u64>() + counters[blocks];
            let executions = if index == blocks - 1 { counters[blocks] } else { later };
            (first_block + index as u32, executions, counters[index])
        };
        (0..blocks).map(of_block).filter(|(_, executions, taken)| executions + taken > 0).collect()
    }

    #[test]
    fn counters_that_are_not_zero_give_the_counts_of_all() {
        let mut random = Random::default();
        let mut next = |below: u64| random.word() % below;
        for _ in 0..2000 {
            let blocks = 1 + next(6) as u32;
            let values: Vec<u64> = (0..=blocks).map(|_| if next(3) == 0 { 1 + next(9) } else { 0 }).collect();
            let fragment = Fragment { first_block: 40, blocks, counters: 100, ..Fragment::default() };
            let own: Vec<(u32, u64)> =
                (100..).zip(values.iter().copied()).filter(|(_, value)| *value > 0).collect();
            let mut counted = Vec::new();
            enter(&fragment, &own, &mut counted);
            let counted: Vec<_> = counted.iter().map(|one| (one.block, one.executions, one.taken)).collect();
            assert_eq!(counted, slow(40, &values), "{values:?}");
        }
    }
}
