//! The counts of an image: of a fragment's blocks, of a thread that ends, and of everything as a
//! profile.
//!
//! Each thread's context has one counter for each exit of a fragment. A block runs whenever the
//! traversal leaves by its own exit or by a later one, so executions are sums of counters from the
//! fragment's last exit back to the block. What happens outside complete traversals (steps, repeats
//! that stop in the middle) is added to a thread's own sums by [`Image::adjust`]. **Leaves out**
//! complex references, whose counts only records show.

use super::Image;
use crate::code::counter::count_address;
use crate::profile::{Block, Instruction, Module, Profile, Site};
use crate::target::layout::context;
use event::Stream;
use std::mem::take;

impl Image {
    /// A counter's value, summed over all contexts.
    pub(super) fn counted(&self, counter: u32) -> u64 {
        (0..self.used).map(|c| self.read64(c, count_address(counter))).fold(0, u64::saturating_add)
    }

    /// How often the blocks of the fragment ran.
    pub(super) fn executions(&mut self, fragment_index: usize) -> Vec<u64> {
        let fragment = &self.translator.cache.fragments[fragment_index];
        let sum = |n: u32| self.counted(fragment.counters + n);
        let mut executions = vec![sum(fragment.blocks)];
        for n in (0..fragment.blocks - 1).rev() {
            executions.push(executions[executions.len() - 1].saturating_add(sum(n)));
        }
        executions.reverse();
        self.look(fragment_index, &executions);
        executions
    }

    /// Adds the instructions of a block from `first` on, `times` times, to the sums that the thread
    /// of context `c` has beside its counters.
    pub(super) fn adjust(&mut self, c: usize, block: u32, first: u32, times: i64) {
        let block = &self.translator.blocks[block as usize];
        let sums = self.sums(block, first).map(|n| n as i64 * times);
        let whole = i64::from(first == 0 && times > 0);
        let own = &mut self.per_thread.entry(c).or_default().1;
        own.iter_mut().zip([sums[0], whole, sums[1], sums[2]]).for_each(|(own, more)| *own += more);
    }

    /// Instructions, loads and stores of a block from its instruction `first` on.
    pub(super) fn sums(&self, block: &Block, first: u32) -> [u64; 3] {
        let instructions = &self.translator.instructions
            [(block.first + first) as usize..(block.first + block.count) as usize];
        instructions.iter().fold([0; 3], |[n, loads, stores], i| {
            [n + 1, loads + u64::from(i.loads), stores + u64::from(i.stores)]
        })
    }

    /// Instructions, blocks, loads and stores of the thread that ends in context `c`.
    pub(crate) fn thread_counts(&mut self, c: usize) -> [u64; 4] {
        let now: Vec<u64> = (0..self.translator.counters).map(|n| self.read64(c, count_address(n))).collect();
        let (mut before, beside) = self.per_thread.remove(&c).unwrap_or_default();
        before.resize(now.len(), 0);
        self.checked(now.iter().copied());
        self.compare(&before, now.iter().copied());
        if self.evidence.exists() {
            return [0; 4];
        }
        let mut all = beside;
        // From each fragment's last counter back to its head, as in a profile.
        for fragment in &self.translator.cache.fragments {
            let counter =
                |n: u32| now[(fragment.counters + n) as usize] - before[(fragment.counters + n) as usize];
            let mut executions = counter(fragment.blocks);
            for n in (0..fragment.blocks).rev() {
                if n + 1 < fragment.blocks {
                    executions += counter(n);
                }
                if executions > 0 {
                    let [instructions, loads, stores] =
                        self.sums(&self.translator.blocks[(fragment.first_block + n) as usize], 0);
                    let times = executions as i64;
                    let sums = [instructions, 1, loads, stores];
                    all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum as i64 * times);
                }
            }
        }
        self.per_thread.insert(c, (now, [0; 4]));
        all.map(|n| n.max(0) as u64)
    }

    /// Modules, blocks, instructions and sites: moved out of the image, or copied if the image may
    /// be used again.
    fn tables(&mut self) -> (Vec<Module>, Vec<Block>, Vec<Instruction>, Vec<Site>) {
        let reusable = self.is_reusable();
        let (maps, translator) = (&mut self.maps, &mut self.translator);
        if reusable {
            return (
                maps.modules.clone(),
                translator.blocks.clone(),
                translator.instructions.clone(),
                translator.sites.clone(),
            );
        }
        (
            take(&mut maps.modules),
            take(&mut translator.blocks),
            take(&mut translator.instructions),
            take(&mut translator.sites),
        )
    }

    /// The image's counts as a profile.
    pub(crate) fn profile(&mut self) -> Profile {
        let (modules, mut blocks, instructions, sites) = self.tables();
        let translator = &self.translator;
        let mut counters = vec![0u64; translator.counters as usize];
        let base = translator.cache.layout.contexts_offset() as usize;
        for c in 0..self.used {
            let at = base + c * context::BYTES as usize + context::COUNTERS as usize;
            for (n, counter) in counters.iter_mut().enumerate() {
                *counter = counter.saturating_add(self.shared.read64(at + 8 * n));
            }
        }
        // The sum over all contexts is bounded by the time that all of them had.
        self.checked(counters.iter().map(|counter| counter / self.used.max(1) as u64));
        for fragment in &translator.cache.fragments {
            let first = fragment.counters as usize;
            let last = fragment.blocks as usize - 1;
            let mut executions = counters[first + fragment.blocks as usize];
            for n in (0..=last).rev() {
                let block = &mut blocks[fragment.first_block as usize + n];
                block.taken = counters[first + n];
                if n < last {
                    executions = executions.saturating_add(block.taken);
                }
                block.executions = executions;
            }
        }
        for (block, times) in &self.extra {
            let executions = &mut blocks[*block as usize].executions;
            *executions = executions.saturating_add(*times);
        }
        if self.translator.stream != Stream::Nothing {
            self.add_up(&counters, &blocks);
        }
        Profile {
            modules,
            blocks,
            instructions,
            sites,
            cut: self.cut.iter().map(|(&(b, k), &n)| (b, k, n)).collect(),
            repeats: Vec::new(),
            complex: Vec::new(),
        }
    }
}
