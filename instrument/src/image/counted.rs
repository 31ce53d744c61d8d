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
use crate::profile::{Block, Instruction, Module, Profile, Site};
use event::Stream;
use std::mem::take;

/// How an image's tables come into its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProfileTables {
    /// The image needs them no longer, unless a forked child may use it.
    Moved,
    /// The image goes on in another process.
    Copied,
}

impl Image {
    /// A counter's value, summed over all contexts.
    pub(super) fn counted(&self, counter: u32) -> u64 {
        (0..self.used)
            .map(|context| self.read64(context, count_address(counter)))
            .fold(0, u64::saturating_add)
    }

    /// Adds the counters of the thread in context `context`. Kept translations have counters that
    /// no thread touches, so most pages do not exist, and are not read.
    fn add_counters(&self, context: usize, counters: &mut [u64]) {
        let first = self.context(context) + count_address(0) as usize;
        for part in self.shared.present(first..first + 8 * counters.len()) {
            let numbers = (part.start - first) / 8..(part.end - first) / 8;
            for (counter, at) in counters[numbers].iter_mut().zip(part.step_by(8)) {
                *counter = counter.saturating_add(self.shared.read64(at));
            }
        }
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

    /// The numbers of instructions, loads and stores of a block from its instruction `first` on.
    pub(super) fn sums(&self, block: &Block, first: u32) -> [u64; 3] {
        let instructions = &self.translator.instructions
            [(block.first + first) as usize..(block.first + block.count) as usize];
        instructions.iter().fold([0; 3], |[count, loads, stores], instruction| {
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
    pub(crate) fn profile(&mut self, tables: ProfileTables) -> Profile {
        let (modules, mut blocks, instructions, sites) = self.tables(tables);
        let translator = &self.translator;
        let mut counters = vec![0u64; translator.counters as usize];
        (0..self.used).for_each(|context| self.add_counters(context, &mut counters));
        // The run's time limits the sum over all contexts, too.
        self.checked(counters.iter().map(|counter| counter / self.used.max(1) as u64));
        for fragment in &translator.cache.fragments {
            let first = fragment.counters as usize;
            let last = fragment.blocks as usize - 1;
            let mut executions = counters[first + fragment.blocks as usize];
            for index in (0..=last).rev() {
                let block = &mut blocks[fragment.first_block as usize + index];
                block.taken = counters[first + index];
                if index < last {
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
            cut: self.cut.iter().map(|(&(block, retired), &times)| (block, retired, times)).collect(),
            repeats: Vec::new(),
            complex: Vec::new(),
        }
    }
}
