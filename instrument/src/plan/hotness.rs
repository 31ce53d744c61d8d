//! How references are recorded best: what the records themselves tell of the code that makes them.
//!
//! A check in line pays where a reference mostly stays on its line. Where it mostly does not (a
//! walk down a column, a block that is entered from afar), the check is followed by a misprediction
//! now and then and by the way out of line, and costs more than all the records that it saves. So
//! fragments are translated with checks first, and the host looks at samples of the records as
//! segments pass through its hands. Where a site's records stand for much of its executions, its
//! fragment is translated again and the reference recorded in line without a branch: written behind
//! the ring's position, which moves on if it was news; or, where nearly all are news, recorded
//! always. And back, where few are. What is recorded oftener than the filter would is as exact (see
//! `event::Filter`). Checks of instruction lines that fail leave no records where that side is kept
//! whole: they are counted, one in [`crate::plan::instruction_cache::COUNTED_EVERY`], and their
//! counters read ever more seldom.
//!
//! **Tried and left out:** a first tier of code without checks in line at all, each reference a
//! call of a shared routine, because most code runs a few times only: a tenth faster on a compiler
//! that runs for 0.1 s, slower on what runs longer. Source: our own; translating hot code again as
//! in dynamic optimisers (Bala et al. 2000, Dynamo).

use super::mode::RecordMode;
use crate::profile::Site;
use event::{FetchFilter, Filter, Record, RecordKind, SetFilter};

/// What a fragment is tuned from.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// First block of the fragment that it replaces, and how often its blocks ran.
    pub(crate) first_block: u32,
    pub(crate) executions: Vec<u64>,
    /// Whether anything in it is recorded without a check.
    pub(crate) any: RecordMode,
    /// How often it has been tuned.
    pub(crate) tunings: u8,
}

/// What was seen of one block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Experience {
    /// The block, its first site, its executions.
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

    /// How to record its `nth` data reference.
    pub(crate) fn data(&self, hotness: &HotnessProfile, nth: u32) -> RecordMode {
        let seen = |(_, first, executions)| {
            mode(hotness.data.get((first + nth) as usize), executions, CHECKED_PERCENT_MAX)
        };
        self.seen.map_or(RecordMode::Checked, seen)
    }
}

/// Records of a reference that were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteSample {
    /// How its code records it.
    pub(crate) mode: RecordMode,
    looked: u16,
    /// Of these, how many the filter did not know.
    filter_misses: u16,
    /// For how many records they stand.
    stands_for: u32,
}

/// Samples before the record mode is reconsidered; doubled each time.
const LOOKED_MIN: u16 = 256;
/// Percentage of filter misses among references from which on a check costs more than it saves,
/// from which on recording always is cheaper than asking without a branch, and below which a check
/// does again.
const CHECKED_PERCENT_MAX: u64 = 30;
const ALWAYS_PERCENT_MIN: u64 = 85;
/// The percentage from which on a reference that is recorded always stays so: less, so that none
/// goes to and fro.
const STILL_ALWAYS_PERCENT_MIN: u64 = 75;
const BRANCHLESS_PERCENT_MIN: u64 = 8;
/// Percentage of filter misses from which on a check of instruction lines costs more than it saves:
/// their way out of line is longer. A compiler took a tenth less time than with the percentage for
/// data.
const FETCH_CHECKED_PERCENT_MAX: u64 = 20;

/// The way that is best for what was seen in so many executions.
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

/// The last line of each set, as in the target.
#[derive(Default)]
struct Lasts {
    lines: Vec<u64>,
    shift: u32,
}

impl Lasts {
    fn new(filter: SetFilter) -> Lasts {
        Lasts { lines: vec![u64::MAX; filter.sets as usize], shift: filter.line_bytes.trailing_zeros() }
    }

    fn is_filter_miss(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        let set = line as usize & (self.lines.len() - 1);
        std::mem::replace(&mut self.lines[set], line) != line
    }
}

/// What the records have told so far.
#[derive(Default)]
pub(crate) struct HotnessProfile {
    data: Vec<SiteSample>,
    fetches: Vec<SiteSample>,
    data_lines: Lasts,
    /// `None` where the instruction side is kept whole: checks that fail are counted, not recorded.
    instruction_lines: Option<Lasts>,
    /// Segments to pass over until the next sample, and how many were passed over before the last
    /// one.
    wait: u32,
    waited: u32,
    /// Samples so far.
    samples: u64,
}

/// Records of a segment that are looked at: the last ones.
pub(crate) const SAMPLE_RECORDS: usize = 4 << 10;
/// Segments passed over between two samples, after a while: a sample takes a tenth of the time of a
/// segment.
const WAIT_MIN: u32 = 1;
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

    /// What is known of a data reference.
    pub(crate) fn site(&mut self, site: u32) -> &mut SiteSample {
        entry(&mut self.data, site as usize)
    }

    /// What is known of a block's instruction lines.
    pub(crate) fn fetch(&mut self, block: u32) -> &mut SiteSample {
        entry(&mut self.fetches, block as usize)
    }

    /// Takes note of a block's checks of instruction lines that failed, where these are counted.
    pub(crate) fn failed(&mut self, block: u32, failures: u64) {
        let looked = u16::try_from(failures).unwrap_or(u16::MAX);
        let stands_for = u32::try_from(failures).unwrap_or(u32::MAX);
        let seen = self.fetch(block);
        *seen = SiteSample { mode: seen.mode, looked, filter_misses: looked, stands_for };
    }

    /// Whether anything of these blocks is to be recorded without a check.
    pub(crate) fn any(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> RecordMode {
        let is = |_: &SiteSample, best| best != RecordMode::Checked;
        if self.some(first_block, executions, sites, is) {
            RecordMode::Always
        } else {
            RecordMode::Checked
        }
    }

    /// Whether anything of these blocks is to be recorded otherwise than it is.
    pub(crate) fn changes(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> bool {
        self.some(first_block, executions, sites, |s, best| best != s.mode)
    }

    fn some(
        &self,
        first_block: u32,
        executions: &[u64],
        sites: &[Site],
        holds: impl Fn(&SiteSample, RecordMode) -> bool,
    ) -> bool {
        executions.iter().zip(first_block..).any(|(&executions, block)| {
            let first = sites.partition_point(|s| s.block < block);
            let count = sites[first..].iter().take_while(|s| s.block == block).count();
            let fetch = self.fetches.get(block as usize);
            let decided = |s: &SiteSample, max| holds(s, mode(Some(s), executions, max));
            self.data.iter().skip(first).take(count).any(|s| decided(s, CHECKED_PERCENT_MAX))
                || fetch.is_some_and(|s| decided(s, FETCH_CHECKED_PERCENT_MAX))
        })
    }

    /// Looks at the last records of a segment of `count`. The blocks whose references it is time to
    /// think over. Records that name no site of `sites`, or none of the `block_count` blocks, are
    /// not generated code's, which whoever passes the segment on will find.
    pub(crate) fn sample(
        &mut self,
        looked: &[Record],
        count: usize,
        sites: &[Site],
        block_count: usize,
    ) -> Vec<u32> {
        let stands_for = (count / looked.len().max(1)) as u32 * (self.waited + 1);
        let mut blocks = Vec::new();
        // A record says whose it is; whether the filter knew its line, the model of the last lines
        // tells.
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

    /// After a sample: the next one soon where this one changed something.
    pub(crate) fn sampled(&mut self, changes: u64) {
        self.waited = if changes > 0 { WAIT_MIN } else { (self.waited * 2 + 1).min(WAIT_MAX) };
        self.wait = self.waited;
    }

    /// Whether to read all counters of checks that failed: at the first segment, and whenever as
    /// many again have passed.
    pub(crate) fn is_time_to_read(&mut self) -> bool {
        self.samples += 1;
        self.samples.is_power_of_two()
    }

    /// Whether this segment is passed over.
    pub(crate) fn passes_over(&mut self) -> bool {
        let waits = self.wait > 0;
        self.wait = self.wait.saturating_sub(1);
        waits
    }
}

impl SiteSample {
    /// Notes a record; whether it is time to think over.
    fn note(&mut self, filter_misses: bool, stands_for: u32) -> bool {
        self.looked = self.looked.saturating_add(1);
        self.filter_misses = self.filter_misses.saturating_add(u16::from(filter_misses));
        self.stands_for = self.stands_for.saturating_add(stands_for);
        self.looked >= LOOKED_MIN && self.looked.is_power_of_two()
    }
}

fn entry<T: Copy + Default>(entries: &mut Vec<T>, n: usize) -> &mut T {
    if entries.len() <= n {
        entries.resize((n + 1).next_power_of_two(), T::default());
    }
    &mut entries[n]
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{PageFilter, StoreFilter};

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
        let records: Vec<Record> = (0..300).map(|n| load(1, 0x10_0000 + 64 * n)).collect();
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
        let records: Vec<Record> = (0..100).map(|n| load(2, 0x20_0000 + n)).collect();
        hotness.sample(&records, 100, &SITES, 6);
        let experience = Experience { seen: Some((5, 0, 100)) };
        assert_eq!(experience.data(&hotness, 2), RecordMode::Checked);
    }

    #[test]
    fn records_of_nothing_teach_nothing() {
        let mut hotness = hotness();
        let records: Vec<Record> = (0..300).map(|n| load(3 + n, 64 * u64::from(n))).collect();
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
