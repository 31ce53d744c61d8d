//! The counts of one process image, which are a part of the counts of a run.
//!
//! A part names blocks and sites of a profile and stores only their counts: some 20 bytes for a
//! block that ran and 70 for a site that missed. So parts of many processes can be kept until names
//! are needed. Counts are assigned instruction by instruction. The tables of a whole run use a
//! faster method ([`tally`](super::tally())), and tests compare the two.

use super::cell::{Cell, NONE};
use super::{cuts, for_each_complex, retired, Attribution, Counts, Tally};
use crate::cli::Rep;
use crate::run::complex::{complex_of, LoadsAndStores, Repeats};
use call_graph::Events;
use instrument::mark::PartCounts;
use instrument::{EndedImage, Numbering, Profile};
use present::order::SortRows;
use simulate::{BlockMisses, SiteMisses};
use std::collections::{BTreeMap, HashMap};

/// The counts of one image. Blocks and sites are indices into the tables of a profile.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// How often blocks ran.
    pub(super) executions: Vec<(u32, u64)>,
    /// How often the conditional branches at their ends were taken.
    pub(super) taken: Vec<(u32, u64)>,
    /// As in [`Profile::cut`].
    cut: Vec<(u32, u32, u64)>,
    /// As in [`Profile::repeats`].
    repeats: Repeats,
    /// As in [`Profile::complex`].
    complex: LoadsAndStores,
    /// Executions of blocks that are not part of `executions`: a request has them behind it.
    aside: Vec<(u32, u64)>,
    /// Misses of sites.
    pub sites: Vec<(u32, SiteMisses)>,
    /// Misses of blocks.
    pub blocks: Vec<(u32, BlockMisses)>,
}

/// How often a block was entered, and how it was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLeft {
    /// How often it was entered.
    pub entered: u64,
    /// How often it was left before its last instruction had retired.
    pub early: u64,
    /// How often the conditional branch at its end was taken.
    pub taken: u64,
}

impl Part {
    /// The counts of an image under its own numbers, from its profile and its simulation. If there
    /// is one, complex references are counted by it.
    pub fn of(profile: &Profile, simulated: Option<&simulate::Counts>) -> Part {
        let blocks = profile.blocks.iter().zip(0..).filter(|(block, _)| block.executions > 0);
        let taken = profile.blocks.iter().zip(0..).filter(|(block, _)| block.taken > 0);
        // Most blocks of an image's profile ran.
        let mut executions = Vec::with_capacity(profile.blocks.len());
        executions.extend(blocks.map(|(block, number)| (number, block.executions)));
        let mut part = Part {
            executions,
            taken: taken.map(|(block, number)| (number, block.taken)).collect(),
            cut: profile.cut.clone(),
            repeats: profile.repeats.clone(),
            complex: profile.complex.clone(),
            ..Part::default()
        };
        if let Some(counts) = simulated {
            (part.complex, part.repeats) = complex_of(&counts.complex);
            part.sites = filled(&counts.sites);
            part.blocks = filled(&counts.blocks);
        }
        part
    }

    /// What a thread counted between two cuts, with the counts of its records.
    pub fn of_section(section: &PartCounts, recorded: &simulate::Counts) -> Part {
        let (complex, repeats) = complex_of(&recorded.complex);
        Part {
            executions: section.executions.clone(),
            taken: section.taken.clone(),
            cut: section.left_early.clone(),
            repeats,
            complex,
            sites: filled(&recorded.sites),
            blocks: filled(&recorded.blocks),
            aside: section.aside.clone(),
        }
    }

    /// What an image counted in a region, under the numbers of the run's profile: each of its
    /// parts, and what was recorded in all of them under the image's own numbers.
    pub fn of_region<'i>(
        image: &'i EndedImage<'_>,
        recorded: &simulate::Counts,
    ) -> impl Iterator<Item = Part> + 'i {
        let missed = Part::of_section(&PartCounts::default(), recorded);
        let parts = image.parts.iter().map(|part| Part::of_section(part, &simulate::Counts::default()));
        parts.chain([missed]).map(|part| part.renumbered(image.numbering))
    }

    /// The executions that stand aside, as a part of their own.
    pub fn aside(&self) -> Part {
        Part { executions: self.aside.clone(), ..Part::default() }
    }

    /// The sum of parts with the same numbers.
    pub fn sum(parts: &[&Part]) -> Part {
        fn all<T: Copy>(parts: &[&Part], of: impl Fn(&Part) -> &Vec<T>) -> Vec<T> {
            parts.iter().flat_map(|part| of(part).iter().copied()).collect()
        }
        let whole = Part {
            executions: all(parts, |part| &part.executions),
            taken: all(parts, |part| &part.taken),
            cut: all(parts, |part| &part.cut),
            aside: all(parts, |part| &part.aside),
            repeats: all(parts, |part| &part.repeats),
            complex: all(parts, |part| &part.complex),
            sites: all(parts, |part| &part.sites),
            blocks: all(parts, |part| &part.blocks),
        };
        whole.joined(|block| block, |site| site)
    }

    /// Reduces a profile with the same numbers to the counts of the part; returns its misses.
    pub fn narrow(self, profile: &mut Profile) -> simulate::Counts {
        profile.blocks.iter_mut().for_each(|block| (block.executions, block.taken) = (0, 0));
        for (block, executions) in self.executions {
            profile.blocks[block as usize].executions = executions;
        }
        for (block, taken) in self.taken {
            profile.blocks[block as usize].taken = taken;
        }
        (profile.cut, profile.complex, profile.repeats) = (self.cut, self.complex, self.repeats);
        simulate::Counts {
            sites: spread(self.sites),
            blocks: spread(self.blocks),
            ..simulate::Counts::default()
        }
    }

    /// The blocks that ran, under the numbers of the part.
    pub fn ran(&self) -> impl Iterator<Item = u32> + '_ {
        self.executions.iter().chain(&self.aside).map(|&(block, _)| block)
    }

    /// How often blocks ran.
    pub fn entered(&self) -> u64 {
        self.executions.iter().map(|&(_, times)| times).sum()
    }

    /// How each block that ran was left.
    pub fn blocks_left(&self) -> impl Iterator<Item = (u32, BlockLeft)> + '_ {
        let taken: HashMap<u32, u64> = self.taken.iter().copied().collect();
        let mut early: HashMap<u32, u64> = HashMap::new();
        for &(block, _, times) in &self.cut {
            *early.entry(block).or_default() += times;
        }
        self.executions.iter().map(move |&(block, entered)| {
            let of = |counts: &HashMap<u32, u64>| counts.get(&block).copied().unwrap_or(0);
            (block, BlockLeft { entered, early: of(&early), taken: of(&taken) })
        })
    }

    /// The events of a simulation of two levels, by keys of instructions.
    pub fn events<K: Ord + Copy>(
        &self,
        profile: &Profile,
        rep: Rep,
        key: impl Fn(usize) -> K,
    ) -> BTreeMap<K, Events> {
        let mut events: BTreeMap<K, Events> = BTreeMap::new();
        // Neighbours mostly have one key: their sum is looked up once.
        let mut present: Option<(K, Events)> = None;
        let mut at = |instruction: usize, more: Events| {
            let key = key(instruction);
            match &mut present {
                Some((known, sum)) if *known == key => sum.add(&more),
                _ => {
                    if let Some((known, sum)) = present.replace((key, more)) {
                        events.entry(known).or_default().add(&sum);
                    }
                }
            }
        };
        self.for_each(&self.executions, profile, None, rep, |instruction, counts| {
            at(instruction, Events::of([counts.instructions, counts.loads, counts.stores]))
        });
        for &(site, misses) in &self.sites {
            let site = profile.sites[site as usize];
            let instruction = (profile.blocks[site.block as usize].first + site.index) as usize;
            at(instruction, Events::of_site(&misses));
        }
        for &(block, misses) in &self.blocks {
            at(profile.blocks[block as usize].first as usize, Events::of_block(&misses));
        }
        if let Some((known, sum)) = present {
            events.entry(known).or_default().add(&sum);
        }
        events.retain(|_, events| *events != Events::default());
        events
    }

    /// The counts under the numbers of the run.
    #[must_use]
    pub fn renumbered(self, numbers: &Numbering) -> Part {
        self.joined(|block| numbers.block(block), |site| numbers.site(site))
    }

    /// The counts under other numbers; what has one number is added up.
    fn joined(self, block: impl Fn(u32) -> u32, site: impl Fn(u32) -> u32) -> Part {
        let add = |sum: &mut u64, more: u64| *sum += more;
        let cut = self.cut.into_iter().map(|(block, first_lost, times)| ((block, first_lost), times));
        let complex = self.complex.into_iter().map(|(site, loads, stores)| (site, (loads, stores)));
        Part {
            executions: joined(self.executions, &block, add),
            taken: joined(self.taken, &block, add),
            aside: joined(self.aside, &block, add),
            cut: joined(cut, |(one, first_lost)| (block(one), first_lost), add)
                .into_iter()
                .map(|((block, first_lost), times)| (block, first_lost, times))
                .collect(),
            repeats: joined(self.repeats, &site, add),
            complex: joined(complex, &site, |sum, more| (sum.0, sum.1) = (sum.0 + more.0, sum.1 + more.1))
                .into_iter()
                .map(|(site, (loads, stores))| (site, loads, stores))
                .collect(),
            sites: joined(self.sites, &site, |sum, more| sum.add(&more)),
            blocks: joined(self.blocks, &block, |sum, more| sum.add(&more)),
        }
    }

    /// The sum of all counts, `none` at least.
    pub fn total(&self, profile: &Profile, misses: Option<&Attribution>, rep: Rep, none: Counts) -> Counts {
        let mut total = none;
        // Most blocks ran to their ends, and a sum needs none of their instructions.
        let mut cut: Vec<u32> = self.cut.iter().map(|&(block, _, _)| block).collect();
        cut.sort_unstable();
        let mut left = Vec::new();
        for &(number, executions) in &self.executions {
            if cut.binary_search(&number).is_ok() {
                left.push((number, executions));
                continue;
            }
            let block = &profile.blocks[number as usize];
            let instructions = &profile.instructions[block.first as usize..][..block.count as usize];
            let (mut loads, mut stores) = (0, 0);
            for instruction in instructions {
                loads += u64::from(instruction.loads);
                stores += u64::from(instruction.stores);
            }
            total.blocks += executions;
            total.instructions += executions * u64::from(block.count);
            total.loads += executions * loads;
            total.stores += executions * stores;
        }
        self.for_each(&left, profile, misses, rep, |_, counts| total.add(counts));
        total
    }

    /// The counts by the cells of the run's tally.
    pub fn cells(
        &self,
        profile: &Profile,
        misses: Option<&Attribution>,
        rep: Rep,
        tally: &Tally,
    ) -> Vec<(Cell, Counts)> {
        let mut cells: BTreeMap<u32, Counts> = BTreeMap::new();
        self.for_each(&self.executions, profile, misses, rep, |instruction, counts| {
            let cell = tally.of_instruction[instruction];
            debug_assert!(cell != NONE, "what counts in a part counts in the run");
            cells.entry(cell).or_insert(tally.none).add(counts);
        });
        cells.into_iter().map(|(cell, counts)| (tally.cells[cell as usize].0, counts)).collect()
    }

    /// Calls `add` with counts of instructions, by index into [`Profile::instructions`]: those of
    /// the blocks of `executions`, and all other counts of the part.
    fn for_each(
        &self,
        executions: &[(u32, u64)],
        profile: &Profile,
        misses: Option<&Attribution>,
        rep: Rep,
        mut add: impl FnMut(usize, &Counts),
    ) {
        let cuts = cuts(&self.cut);
        for &(number, executions) in executions {
            let block = &profile.blocks[number as usize];
            let first = block.first as usize;
            // Executions that a signal or fault cut short did not retire the block's last
            // instructions.
            let cuts = cuts.get(&number).map_or(&[][..], Vec::as_slice);
            for (index, instruction) in
                profile.instructions[first..][..block.count as usize].iter().enumerate()
            {
                add(first + index, &retired(instruction, index, executions, cuts));
            }
            // A block has no place of its own in the tally: its execution counts at its first
            // instruction.
            add(first, &Counts { blocks: executions, ..Counts::default() });
        }
        let of_site = |site: u32| {
            let site = profile.sites[site as usize];
            (profile.blocks[site.block as usize].first + site.index) as usize
        };
        for_each_complex(profile, &self.repeats, &self.complex, rep, |site, counts| {
            add(of_site(site), counts);
        });
        let Some(Attribution { by_site, by_block, .. }) = misses else { return };
        for (site, misses) in by_site {
            add(of_site(*site), &Counts { misses: Some(*misses), ..Counts::default() });
        }
        // Fetches miss by block, and so count at its first instruction.
        for (block, misses) in by_block {
            let first = profile.blocks[*block as usize].first as usize;
            add(first, &Counts { misses: Some(*misses), ..Counts::default() });
        }
    }
}

/// The entries that are not empty, with their indices.
fn filled<T: Copy + Default + PartialEq>(table: &[T]) -> Vec<(u32, T)> {
    let entries = table.iter().copied().zip(0..).filter(|(entry, _)| *entry != T::default());
    entries.map(|(entry, number)| (number, entry)).collect()
}

/// The table of which these are the entries that are not empty.
fn spread<T: Clone + Default>(entries: Vec<(u32, T)>) -> Vec<T> {
    let len = entries.iter().map(|(number, _)| *number as usize + 1).max().unwrap_or(0);
    let mut table = vec![T::default(); len];
    entries.into_iter().for_each(|(number, entry)| table[number as usize] = entry);
    table
}

/// The entries under other keys, in their order; what has one key is added up.
fn joined<K: Ord + Copy, T>(
    entries: impl IntoIterator<Item = (K, T)>,
    key: impl Fn(K) -> K,
    add: impl Fn(&mut T, T),
) -> Vec<(K, T)> {
    let mut entries: Vec<(K, T)> = entries.into_iter().map(|(own, entry)| (key(own), entry)).collect();
    entries.sort_rows_by_key(|(key, _)| *key);
    let mut joined: Vec<(K, T)> = Vec::with_capacity(entries.len());
    for (key, entry) in entries {
        match joined.last_mut() {
            Some((last, sum)) if *last == key => add(sum, entry),
            _ => joined.push((key, entry)),
        }
    }
    joined
}
