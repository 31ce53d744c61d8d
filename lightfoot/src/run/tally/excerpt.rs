//! Excerpts of a profile: what one part of a run has executed, as a profile of its own.
//!
//! A profile has the blocks of the whole run in the order of their translation, and several copies
//! of a block that was translated again. An excerpt has the blocks of the part alone, in the order
//! of their addresses, with copies added up. So it does not depend on what else the run did, nor
//! does an estimate that is made from it; and an estimate of a small part takes little time.

use super::Part;
use instrument::{Block, Profile, Site};
use simulate::{BlockMisses, Counts, SiteMisses};
use std::collections::BTreeMap;

/// Makes excerpts of one profile.
pub struct Excerpts<'p> {
    profile: &'p Profile,
    /// By block: the number of its first site.
    first_sites: Vec<u32>,
}

impl<'p> Excerpts<'p> {
    /// Excerpts of this profile.
    pub fn new(profile: &'p Profile) -> Excerpts<'p> {
        let mut first_sites = vec![0; profile.blocks.len() + 1];
        profile.sites.iter().for_each(|site| first_sites[site.block as usize + 1] += 1);
        for block in 0..profile.blocks.len() {
            first_sites[block + 1] += first_sites[block];
        }
        Excerpts { profile, first_sites }
    }

    /// The whole profile.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    fn sites(&self, block: u32) -> &'p [Site] {
        let numbers =
            self.first_sites[block as usize] as usize..self.first_sites[block as usize + 1] as usize;
        &self.profile.sites[numbers]
    }

    /// The excerpt of a part, and its misses under the numbers of the excerpt.
    pub fn of(&self, part: &Part) -> (Profile, Counts) {
        let place = |block: u32| {
            let known = &self.profile.blocks[block as usize];
            (known.module, known.ip, known.len)
        };
        let named = part.executions.iter().map(|&(block, _)| block);
        // Instruction lines may miss in a block whose execution was cut short and counts nowhere.
        let missed = part.blocks.iter().map(|&(block, _)| block);
        let of_sites = part.sites.iter().map(|&(site, _)| self.profile.sites[site as usize].block);
        let mut numbers: BTreeMap<(u32, u64, u32), (u32, u32)> = BTreeMap::new();
        for block in named.chain(missed).chain(of_sites) {
            numbers.entry(place(block)).or_insert((0, block));
        }
        let mut excerpt = Profile { modules: self.profile.modules.clone(), ..Profile::default() };
        let mut first_sites = Vec::new();
        for (number, copy) in numbers.values_mut() {
            *number = excerpt.blocks.len() as u32;
            first_sites.push(excerpt.sites.len());
            self.append(*copy, &mut excerpt);
        }
        let number = |block: u32| numbers[&place(block)].0 as usize;
        for &(block, executions) in &part.executions {
            excerpt.blocks[number(block)].executions += executions;
        }
        for &(block, taken) in &part.taken {
            excerpt.blocks[number(block)].taken += taken;
        }
        let mut counts = Counts {
            sites: vec![SiteMisses::default(); excerpt.sites.len()],
            blocks: vec![BlockMisses::default(); excerpt.blocks.len()],
            ..Counts::default()
        };
        for (block, misses) in &part.blocks {
            counts.blocks[number(*block)].add(misses);
        }
        for (site, misses) in &part.sites {
            let known = &self.profile.sites[*site as usize];
            let first = first_sites[number(known.block)];
            let own = excerpt.sites[first..].iter().position(|site| site.index == known.index);
            if let Some(own) = own {
                counts.sites[first + own].add(misses);
            }
        }
        (excerpt, counts)
    }

    /// Appends a block that has not run yet, with its instructions and sites.
    fn append(&self, block: u32, excerpt: &mut Profile) {
        let known = &self.profile.blocks[block as usize];
        let (number, first) = (excerpt.blocks.len() as u32, excerpt.instructions.len() as u32);
        excerpt.blocks.push(Block { first, executions: 0, taken: 0, ..known.clone() });
        let instructions = &self.profile.instructions[known.first as usize..][..known.count as usize];
        excerpt.instructions.extend_from_slice(instructions);
        excerpt.sites.extend(self.sites(block).iter().map(|site| Site { block: number, ..*site }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use instrument::Instruction;

    /// Blocks at these addresses of one load each.
    fn profile(ips: &[u64]) -> Profile {
        let instruction = Instruction { offset: 0, len: 4, loads: 1, stores: 0, code: 0 };
        let block = |(ip, number): (&u64, u32)| Block {
            ip: *ip,
            len: 4,
            module: 0,
            first: number,
            count: 1,
            executions: 0,
            taken: 0,
        };
        Profile {
            blocks: ips.iter().zip(0..).map(block).collect(),
            instructions: vec![instruction; ips.len()],
            sites: ips.iter().zip(0..).map(|(&ip, block)| Site { ip, block, index: 0 }).collect(),
            ..Profile::default()
        }
    }

    fn part(executions: &[(u32, u64)], missed: &[u32]) -> Part {
        let one = SiteMisses { loads: [1, 0, 0], ..SiteMisses::default() };
        let mut part = Part::default();
        (part.executions, part.taken) = (executions.to_vec(), executions.to_vec());
        part.sites = missed.iter().map(|&site| (site, one)).collect();
        part
    }

    #[test]
    fn an_excerpt_does_not_depend_on_the_rest_of_the_run() {
        let (one, other) = (profile(&[0x30, 0x10, 0x30, 0x20]), profile(&[0x20, 0x30, 0x40]));
        let show = |profile: &Profile, part: &Part| {
            let (excerpt, counts) = Excerpts::new(profile).of(part);
            let blocks =
                excerpt.blocks.iter().map(|block| (block.ip, block.first, block.executions, block.taken));
            let sites = excerpt.sites.iter().map(|site| (site.ip, site.block));
            let misses = counts.sites.iter().map(|site| site.loads[0]);
            (blocks.collect::<Vec<_>>(), sites.collect::<Vec<_>>(), misses.collect::<Vec<_>>())
        };
        // Two copies of a block in the one run, one in the other.
        let found = show(&one, &part(&[(0, 2), (2, 3), (3, 7)], &[0, 2]));
        assert_eq!(found.0, [(0x20, 0, 7, 7), (0x30, 1, 5, 5)]);
        assert_eq!((&found.1[..], &found.2[..]), (&[(0x20, 0), (0x30, 1)][..], &[0, 2][..]));
        let twice = part(&[(0, 7), (1, 5)], &[1]);
        let mut twice = show(&other, &twice);
        twice.2[1] += 1;
        assert_eq!(twice, found);
    }
}
