//! How often the references of a node miss, for each execution, and how their waits overlap.

use crate::flow::Origin;
use crate::graph::Node;
use crate::stall::{Events, Role};
use instrument::Profile;
use simulate::SiteMisses;

/// Strides up to so many bytes are followed by prefetchers, which stop at the end of a page.
const STRIDE_BYTES_MAX: u64 = 2048;

/// Bytes of a line. Larger strides leave lines out, which prefetchers bring nevertheless.
const LINE_BYTES: u64 = 64;

/// A stride that stands in a register is small if at most this share of misses is in a page that
/// the TLB does not have.
const SMALL_STRIDE_TLB_SHARE: f64 = 0.25;

/// The simulated counts by site, with the places of the machine's levels.
pub(crate) struct Misses<'a> {
    profile: &'a Profile,
    sites: &'a [SiteMisses],
    /// By simulated level: where its misses are served, 0 for the second level to 2 for memory.
    served_by: Vec<usize>,
    /// By block: the number of its first site.
    first_sites: Vec<u32>,
}

impl<'a> Misses<'a> {
    /// The misses of a profile; `numbers` are the machine's numbers of the simulated levels.
    pub(crate) fn of(profile: &'a Profile, sites: &'a [SiteMisses], numbers: &[u8]) -> Misses<'a> {
        let mut first_sites = vec![0; profile.blocks.len() + 1];
        profile.sites.iter().for_each(|site| first_sites[site.block as usize + 1] += 1);
        for block in 0..profile.blocks.len() {
            first_sites[block + 1] += first_sites[block];
        }
        Misses { profile, sites, served_by: served_by(numbers), first_sites }
    }

    /// The sites of a block, each with the index of its instruction.
    pub(crate) fn all_of_block(&self, block: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let own = self.first_sites[block]..self.first_sites[block + 1];
        own.map(|site| (site, self.profile.sites[site as usize].index as usize))
    }

    /// The sites of a block that missed.
    pub(crate) fn of_block(&self, block: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let missed =
            |site: &(u32, usize)| self.sites.get(site.0 as usize).is_some_and(|site| !site.is_empty());
        self.all_of_block(block).filter(missed)
    }

    /// The misses of a site: of loads, and of stores. Translations count as the loads' if it loads.
    pub(crate) fn events(&self, site: u32) -> [Events; 2] {
        let SiteMisses { loads, stores, tlbs } = self.sites[site as usize];
        let mut events = [self.served(&loads), self.served(&stores)];
        let walks = tlbs[1].min(tlbs[0]);
        let translated = [(tlbs[0] - walks) as f64, walks as f64];
        events[usize::from(loads[0] == 0 && stores[0] > 0)].translated = translated;
        events
    }

    /// Where the misses of each level are served: the misses of a level less those of the next one.
    pub(crate) fn served(&self, misses: &[u64]) -> Events {
        let mut events = Events::default();
        for (level, &place) in self.served_by.iter().enumerate() {
            let further = misses.get(level + 1).copied().filter(|_| level + 1 < self.served_by.len());
            events.served[place] += misses[level].saturating_sub(further.unwrap_or(0)) as f64;
        }
        events
    }

    /// By step of a node: misses of loads and of stores in each execution.
    pub(crate) fn of_node(&self, node: &Node) -> Vec<[Events; 2]> {
        let mut rates = vec![[Events::default(); 2]; node.steps.len()];
        let each = 1.0 / node.executions.max(1) as f64;
        for (site, index) in node.blocks.iter().flat_map(|&block| self.of_block(block)) {
            let Some(rate) = rates.get_mut(index) else { continue };
            for (rate, events) in rate.iter_mut().zip(self.events(site)) {
                rate.add(&events, each);
            }
        }
        rates
    }
}

/// For each simulated level, where its misses are served.
fn served_by(numbers: &[u8]) -> Vec<usize> {
    let next = |level: usize| match numbers.get(level + 1) {
        Some(number) => usize::from(number.clamp(&2, &3) - 2),
        None => 2,
    };
    (0..numbers.len()).map(next).collect()
}

/// How the misses of a load overlap; `lines` come in an iteration by references with its stride.
pub(crate) fn role(origin: Option<Origin>, rate: &Events, lines: f64) -> Role {
    let missed: f64 = rate.served.iter().sum();
    let translated: f64 = rate.translated.iter().sum();
    match origin {
        Some(Origin::Chained) => Role::Chained,
        Some(Origin::Stride(Some(bytes))) if is_dense(bytes, lines) => Role::Streamed,
        Some(Origin::Stride(Some(bytes))) if bytes.unsigned_abs() <= STRIDE_BYTES_MAX => Role::Sparse,
        Some(Origin::Stride(None)) if translated <= SMALL_STRIDE_TLB_SHARE * missed => Role::Streamed,
        _ => Role::Independent,
    }
}

/// How the misses of a store take bandwidth.
pub(crate) fn role_of_store(origin: Option<Origin>, lines: f64) -> Role {
    match origin {
        Some(Origin::Stride(Some(bytes))) if is_dense(bytes, lines) => Role::Streamed,
        Some(Origin::Stride(None)) => Role::Streamed,
        _ => Role::Sparse,
    }
}

/// Whether references with this stride touch most lines on their way, alone or together.
fn is_dense(bytes: i64, lines: f64) -> bool {
    const MOST: f64 = 0.7;
    let step = bytes.unsigned_abs();
    step <= LINE_BYTES || lines * LINE_BYTES as f64 >= MOST * step as f64
}
