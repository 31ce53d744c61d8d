//! Hotness: chooses how each reference is recorded, by sampling the records themselves.
//!
//! **Problem.** An inline check pays if a reference mostly stays on its line. If it mostly does not
//! (a walk down a column, a block that is entered from afar), the check costs mispredicted branches
//! and jumps to cold code, which is more than the records that it saves. **Idea.** Fragments are
//! translated with checks first, and the host samples the records of the segments that it hands
//! over. If a site's records stand for a large share of its executions, its fragment is translated
//! again, and the reference is recorded inline without a branch: the record is written behind the
//! ring's position, which moves on only on a filter miss. If nearly all references are filter
//! misses, each one is recorded. If few are, the check returns. Additional records change no
//! result, because the simulator handles filter hits exactly (see `event::Filter`). With an inline
//! instruction cache, failed checks of instruction lines leave no records: one in
//! [`crate::plan::instruction_cache::COUNTED_EVERY`] increments a counter, and the counters are
//! read after samples 1, 2, 4, 8 and so on.
//!
//! **Tried and left out:** a first tier of code without inline checks, in which each reference
//! calls a shared routine, because most code runs a few times only. It made a compiler that runs
//! for 0.1 s faster by a tenth, and longer runs slower. Source: our own; translating hot code again
//! as in dynamic optimisers (Bala et al. 2000, Dynamo).

use super::mode::RecordMode;
use crate::profile::Site;
use event::{FetchFilter, Filter, Record, RecordKind, SetFilter};

/// The samples of a fragment that is translated again.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// Number of the first block of the fragment that is replaced.
    pub(crate) first_block: u32,
    /// Executions of each of its blocks.
    pub(crate) executions: Vec<u64>,
    /// [`RecordMode::Checked`] if all its references are to be checked, and another mode otherwise.
    pub(crate) any: RecordMode,
    /// How often this code has been translated again.
    pub(crate) tunings: u8,
}

/// The samples of one block of a fragment that is translated again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Experience {
    /// Number of the block, number of its first site, executions; `None` in a first translation.
    pub(crate) seen: Option<(u32, u32, u64)>,
}

impl Experience {
    /// How to record the block's instruction lines.
    pub(crate) fn fetch(&self, hotness: &HotnessProfile) -> RecordMode {
        let seen = |(block, _, executions)| {
            mode(hotness.fetches.get(block as usize), executions, FETCH_CHECKED_PERCENT_MAX)
        };
        self.seen.map_or(RecordMode::Checked, seen)
    }

    /// How to record the block's data reference number `nth`.
    pub(crate) fn data(&self, hotness: &HotnessProfile, nth: u32) -> RecordMode {
        let seen = |(_, first, executions)| {
            mode(hotness.data.get((first + nth) as usize), executions, CHECKED_PERCENT_MAX)
        };
        self.seen.map_or(RecordMode::Checked, seen)
    }
}

/// The samples of one reference.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteSample {
    /// How the current code records the reference.
    pub(crate) mode: RecordMode,
    /// Samples of the reference.
    looked: u16,
    /// Samples that were filter misses.
    filter_misses: u16,
    /// Number of records that these samples represent: each stands for the records around it that
    /// were not sampled.
    stands_for: u32,
}

/// Samples before the record mode is reconsidered; doubled each time.
const LOOKED_MIN: u16 = 256;
/// From this percentage of filter misses on, a check costs more than it saves.
const CHECKED_PERCENT_MAX: u64 = 30;
/// From this percentage of filter misses on, recording always is cheaper than recording without a
/// branch.
const ALWAYS_PERCENT_MIN: u64 = 85;
/// From this percentage of filter misses on, a reference that is recorded always stays so. It is
/// lower than [`ALWAYS_PERCENT_MIN`], so that no reference alternates between two modes.
const STILL_ALWAYS_PERCENT_MIN: u64 = 75;
/// Below this percentage of filter misses, a reference that is recorded without a check is checked
/// again.
const BRANCHLESS_PERCENT_MIN: u64 = 8;
/// [`CHECKED_PERCENT_MAX`] for instruction lines: their failed checks run longer cold code. With
/// this value a compiler took a tenth less time than with the percentage for data.
const FETCH_CHECKED_PERCENT_MAX: u64 = 20;

/// The best record mode for a reference with these samples and this number of executions. With
/// fewer than a quarter of [`LOOKED_MIN`] samples it keeps its mode.
fn mode(seen: Option<&SiteSample>, executions: u64, checked_percent_max: u64) -> RecordMode {
    let Some(seen) = seen.filter(|seen| seen.looked >= LOOKED_MIN / 4) else {
        return seen.map_or(RecordMode::Checked, |seen| seen.mode);
    };
    let percent = |part: u64, whole: u64| part * 100 / whole.max(1);
    let filter_misses = match seen.mode {
        RecordMode::Always => percent(seen.filter_misses.into(), seen.looked.into()),
        RecordMode::Checked | RecordMode::Branchless => percent(seen.stands_for.into(), executions),
    };
    match seen.mode {
        RecordMode::Checked if filter_misses < checked_percent_max => RecordMode::Checked,
        RecordMode::Branchless | RecordMode::Always if filter_misses < BRANCHLESS_PERCENT_MIN => {
            RecordMode::Checked
        }
        RecordMode::Always if filter_misses >= STILL_ALWAYS_PERCENT_MIN => RecordMode::Always,
        _ if filter_misses >= ALWAYS_PERCENT_MIN => RecordMode::Always,
        _ => RecordMode::Branchless,
    }
}

/// The host's model of the target's filter: the last line of each set. It decides whether a sampled
/// record was a filter miss.
#[derive(Default)]
struct Lasts {
    lines: Vec<u64>,
    shift: u32,
}

impl Lasts {
    fn new(filter: SetFilter) -> Lasts {
        Lasts { lines: vec![u64::MAX; filter.sets as usize], shift: filter.line_bytes.trailing_zeros() }
    }

    /// Makes the line of `address` the last of its set; returns whether another one was.
    fn is_filter_miss(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        let set = line as usize & (self.lines.len() - 1);
        std::mem::replace(&mut self.lines[set], line) != line
    }
}

/// The samples of all references and instruction lines of an image.
#[derive(Default)]
pub(crate) struct HotnessProfile {
    /// Samples of data references, indexed by site.
    data: Vec<SiteSample>,
    /// Samples of instruction lines, indexed by block.
    fetches: Vec<SiteSample>,
    data_lines: Lasts,
    /// `None` with an inline instruction cache, whose failed checks are counted and not recorded.
    instruction_lines: Option<Lasts>,
    /// Segments to skip before the next sample.
    wait: u32,
    /// Segments that are skipped between two samples at present.
    waited: u32,
    /// Samples so far.
    samples: u64,
}

/// Length of a sample: this many records at the end of a segment.
pub(crate) const SAMPLE_RECORDS: usize = 4 << 10;
/// The fewest segments that are skipped between two samples. A sample takes a tenth of the time
/// that a segment takes.
const WAIT_MIN: u32 = 1;
/// The most segments that are skipped between two samples.
const WAIT_MAX: u32 = 15;

impl HotnessProfile {
    pub(crate) fn new(filter: Option<&Filter>) -> HotnessProfile {
        let Some(filter) = filter else { return HotnessProfile::default() };
        HotnessProfile {
            data_lines: Lasts::new(filter.data),
            instruction_lines: (filter.fetches == FetchFilter::LastOfSet)
                .then(|| Lasts::new(filter.instruction)),
            ..HotnessProfile::default()
        }
    }

    /// The samples of data reference `site`.
    pub(crate) fn site(&mut self, site: u32) -> &mut SiteSample {
        entry(&mut self.data, site as usize)
    }

    /// The samples of the instruction lines of `block`.
    pub(crate) fn fetch(&mut self, block: u32) -> &mut SiteSample {
        entry(&mut self.fetches, block as usize)
    }

    /// Replaces the samples of a block's instruction lines by a count of failed checks, all of
    /// which are misses.
    pub(crate) fn failed(&mut self, block: u32, failures: u64) {
        let looked = u16::try_from(failures).unwrap_or(u16::MAX);
        let stands_for = u32::try_from(failures).unwrap_or(u32::MAX);
        let seen = self.fetch(block);
        *seen = SiteSample { mode: seen.mode, looked, filter_misses: looked, stands_for };
    }

    /// Whether any reference of these blocks should be recorded without a check: then
    /// [`RecordMode::Always`], else [`RecordMode::Checked`].
    pub(crate) fn any(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> RecordMode {
        let is = |_: &SiteSample, best| best != RecordMode::Checked;
        if self.some(first_block, executions, sites, is) {
            RecordMode::Always
        } else {
            RecordMode::Checked
        }
    }

    /// Whether any reference of these blocks should get another record mode.
    pub(crate) fn changes(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> bool {
        self.some(first_block, executions, sites, |sample, best| best != sample.mode)
    }

    /// Whether `holds` is true of any reference of these blocks, given its samples and best mode.
    fn some(
        &self,
        first_block: u32,
        executions: &[u64],
        sites: &[Site],
        holds: impl Fn(&SiteSample, RecordMode) -> bool,
    ) -> bool {
        executions.iter().zip(first_block..).any(|(&executions, block)| {
            let first = sites.partition_point(|site| site.block < block);
            let count = sites[first..].iter().take_while(|site| site.block == block).count();
            let fetch = self.fetches.get(block as usize);
            let decided = |sample: &SiteSample, max| holds(sample, mode(Some(sample), executions, max));
            self.data.iter().skip(first).take(count).any(|sample| decided(sample, CHECKED_PERCENT_MAX))
                || fetch.is_some_and(|sample| decided(sample, FETCH_CHECKED_PERCENT_MAX))
        })
    }

    /// Samples `looked`, the last records of a segment of `count` records. Returns the blocks whose
    /// record modes should be reconsidered. Records that name no site of `sites`, or none of the
    /// `block_count` blocks, are skipped: generated code did not write them, and the observer's
    /// screen will report them.
    pub(crate) fn sample(
        &mut self,
        looked: &[Record],
        count: usize,
        sites: &[Site],
        block_count: usize,
    ) -> Vec<u32> {
        let stands_for = (count / looked.len().max(1)) as u32 * (self.waited + 1);
        let mut blocks = Vec::new();
        // A fetch record names its block; all others name their site. The model of the filter
        // decides whether the record was a filter miss or an additional one.
        for record in looked {
            let fetch = record.code().kind() == RecordKind::Fetch;
            if record.site() >= if fetch { block_count } else { sites.len() } {
                continue;
            }
            let due = match record.code().kind() {
                RecordKind::Load | RecordKind::Store | RecordKind::Modify => {
                    let filter_misses = self.data_lines.is_filter_miss(record.address);
                    entry(&mut self.data, record.site()).note(filter_misses, stands_for)
                }
                RecordKind::Fetch => {
                    let Some(lines) = &mut self.instruction_lines else { continue };
                    let filter_misses = lines.is_filter_miss(record.address);
                    entry(&mut self.fetches, record.site()).note(filter_misses, stands_for)
                }
                _ => continue,
            };
            if due {
                blocks.push(if fetch { record.site() as u32 } else { sites[record.site()].block });
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// Sets how many segments are skipped before the next sample: few if this one changed a mode,
    /// and otherwise twice as many as before.
    pub(crate) fn sampled(&mut self, changes: u64) {
        self.waited = if changes > 0 { WAIT_MIN } else { (self.waited * 2 + 1).min(WAIT_MAX) };
        self.wait = self.waited;
    }

    /// Whether to read all counters of failed checks: after samples 1, 2, 4, 8 and so on.
    pub(crate) fn is_time_to_read(&mut self) -> bool {
        self.samples += 1;
        self.samples.is_power_of_two()
    }

    /// Counts a segment; returns whether it is to be skipped.
    pub(crate) fn passes_over(&mut self) -> bool {
        let waits = self.wait > 0;
        self.wait = self.wait.saturating_sub(1);
        waits
    }
}

impl SiteSample {
    /// Adds a sampled record; returns whether the record mode should be reconsidered.
    fn note(&mut self, filter_misses: bool, stands_for: u32) -> bool {
        self.looked = self.looked.saturating_add(1);
        self.filter_misses = self.filter_misses.saturating_add(u16::from(filter_misses));
        self.stands_for = self.stands_for.saturating_add(stands_for);
        self.looked >= LOOKED_MIN && self.looked.is_power_of_two()
    }
}

/// The entry with this index; the vector grows to hold it.
fn entry<T: Copy + Default>(entries: &mut Vec<T>, index: usize) -> &mut T {
    if entries.len() <= index {
        entries.resize((index + 1).next_power_of_two(), T::default());
    }
    &mut entries[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{ModifyFilter, PageFilter, StoreFilter};

    fn hotness() -> HotnessProfile {
        let sets = SetFilter { sets: 64, line_bytes: 64 };
        HotnessProfile::new(Some(&Filter {
            data: sets,
            instruction: sets,
            data_page: None,
            instruction_page: None,
            stores: StoreFilter::LikeLoads,
            fetches: FetchFilter::LastOfSet,
            pages: PageFilter::LastOfSet,
            modifies: ModifyFilter::Both,
        }))
    }

    const SITES: [Site; 3] = [
        Site { ip: 0x400, block: 5, index: 0 },
        Site { ip: 0x404, block: 5, index: 1 },
        Site { ip: 0x408, block: 5, index: 2 },
    ];

    fn load(site: u32, address: u64) -> Record {
        Record::new(RecordKind::Load, 8, site, address).unwrap()
    }

    #[test]
    fn a_check_that_mostly_fails_is_given_up() {
        let mut hotness = hotness();
        let records: Vec<Record> = (0..300).map(|index| load(1, 0x10_0000 + 64 * index)).collect();
        assert_eq!(hotness.sample(&records, 300, &SITES, 6), [5]);
        let mode = |executions| Experience { seen: Some((5, 0, executions)) }.data(&hotness, 1);
        assert_eq!(mode(310), RecordMode::Always);
        assert_eq!(mode(100_000), RecordMode::Checked);
        assert_eq!(hotness.any(5, &[310], &SITES), RecordMode::Always);
        assert_eq!(hotness.any(5, &[100_000], &SITES), RecordMode::Checked);
    }

    #[test]
    fn a_reference_that_stays_on_its_line_is_checked_again() {
        let mut hotness = hotness();
        hotness.site(2).mode = RecordMode::Always;
        let records: Vec<Record> = (0..100).map(|index| load(2, 0x20_0000 + index)).collect();
        hotness.sample(&records, 100, &SITES, 6);
        let experience = Experience { seen: Some((5, 0, 100)) };
        assert_eq!(experience.data(&hotness, 2), RecordMode::Checked);
    }

    #[test]
    fn records_of_nothing_teach_nothing() {
        let mut hotness = hotness();
        let records: Vec<Record> = (0..300).map(|index| load(3 + index, 64 * u64::from(index))).collect();
        assert!(hotness.sample(&records, 300, &SITES, 6).is_empty());
        assert!(hotness.data.is_empty() && hotness.fetches.is_empty());
    }

    #[test]
    fn samples_become_rarer_and_stand_for_more() {
        let mut hotness = hotness();
        let records = vec![load(0, 0x1000); SAMPLE_RECORDS];
        hotness.sample(&records, 3 * SAMPLE_RECORDS, &SITES, 6);
        assert_eq!(hotness.data[0].stands_for, 3 * SAMPLE_RECORDS as u32);
        hotness.sampled(0);
        assert!(hotness.passes_over());
        assert!(!hotness.passes_over());
        hotness.sample(&records, 3 * SAMPLE_RECORDS, &SITES, 6);
        assert_eq!(hotness.data[0].stands_for, 9 * SAMPLE_RECORDS as u32);
    }
}
