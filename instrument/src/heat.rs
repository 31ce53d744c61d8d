//! How references are recorded best: what the records themselves tell of the code that makes them.
//!
//! A check in line pays where a reference mostly stays on its line. Where it mostly does not (a walk down a column, a block that is entered from
//! afar), the check is followed by a misprediction now and then and by the way out of line, and costs more than all the records that it saves. So
//! fragments are translated with checks first, and the host looks at samples of the records as segments pass through its hands. Where a site's
//! records stand for much of its executions, its fragment is translated again and the reference recorded in line without a branch: written behind
//! the ring's position, which moves on if it was news; or, where nearly all are news, recorded always. And back, where few are. What is
//! recorded oftener than the filter would is as exact (see `event::Filter`). Checks of instruction lines that fail leave no records where that side is kept
//! whole: they are counted, one in [`crate::emit::kept::COUNTED_EVERY`], and their counters read ever more seldom.
//!
//! **Tried and left out:** a first tier of code without checks in line at all, each reference a call of a shared routine, because most
//! code runs a few times only: a tenth faster on a compiler that runs for 0.1 s, slower on what runs longer. Source: our own; translating
//! hot code again as in dynamic optimisers (Bala et al. 2000, Dynamo).

use crate::profile::Site;
use event::{FetchFilter, Filter, Record, RecordKind, SetFilter};

/// How a reference is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// Where the filter does not know its line.
    #[default]
    Checked,
    /// The same, without a branch.
    Branchless,
    /// Always.
    Always,
}

/// What a fragment is tuned from.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// First block of the fragment that it replaces, and how often its blocks ran.
    pub(crate) first_block: u32,
    pub(crate) executions: Vec<u64>,
    /// Whether anything in it is recorded without a check.
    pub(crate) any: Way,
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
    pub(crate) fn fetch(&self, heat: &Heat) -> Way {
        let seen = |(block, _, executions)| {
            way(heat.fetches.get(block as usize), executions, FETCH_CHECKED_PERCENT_MAX)
        };
        self.seen.map_or(Way::Checked, seen)
    }

    /// How to record its `nth` data reference.
    pub(crate) fn data(&self, heat: &Heat, nth: u32) -> Way {
        let seen = |(_, first, executions)| {
            way(heat.data.get((first + nth) as usize), executions, CHECKED_PERCENT_MAX)
        };
        self.seen.map_or(Way::Checked, seen)
    }
}

/// Records of a reference that were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// How its code records it.
    pub(crate) way: Way,
    looked: u16,
    /// Of these, how many the filter did not know.
    news: u16,
    /// For how many records they stand.
    stands_for: u32,
}

/// Records of a reference after which its way is thought over, and again after twice as many.
const LOOKED_MIN: u16 = 256;
/// Percentage of news among references from which on a check costs more than it saves, from which on recording always is cheaper than asking
/// without a branch, and below which a check does again.
const CHECKED_PERCENT_MAX: u64 = 30;
const ALWAYS_PERCENT_MIN: u64 = 85;
/// The same for a reference that is recorded always: less, so that none goes to and fro.
const STILL_ALWAYS_PERCENT_MIN: u64 = 75;
const BRANCHLESS_PERCENT_MIN: u64 = 8;
/// The first of them for instruction lines, whose way out of line is longer: a compiler took a tenth less time than with the other one.
const FETCH_CHECKED_PERCENT_MAX: u64 = 20;

/// The way that is best for what was seen in so many executions.
fn way(seen: Option<&Seen>, executions: u64, checked_percent_max: u64) -> Way {
    let Some(seen) = seen.filter(|seen| seen.looked >= LOOKED_MIN / 4) else {
        return seen.map_or(Way::Checked, |seen| seen.way);
    };
    let percent = |part: u64, whole: u64| part * 100 / whole.max(1);
    let news = match seen.way {
        Way::Always => percent(seen.news.into(), seen.looked.into()),
        Way::Checked | Way::Branchless => percent(seen.stands_for.into(), executions),
    };
    match seen.way {
        Way::Checked if news < checked_percent_max => Way::Checked,
        Way::Branchless | Way::Always if news < BRANCHLESS_PERCENT_MIN => Way::Checked,
        Way::Always if news >= STILL_ALWAYS_PERCENT_MIN => Way::Always,
        _ if news >= ALWAYS_PERCENT_MIN => Way::Always,
        _ => Way::Branchless,
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

    fn is_news(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        let set = line as usize & (self.lines.len() - 1);
        std::mem::replace(&mut self.lines[set], line) != line
    }
}

/// What the records have told so far.
#[derive(Default)]
pub(crate) struct Heat {
    data: Vec<Seen>,
    fetches: Vec<Seen>,
    data_lines: Lasts,
    /// `None` where the instruction side is kept whole: checks that fail are counted, not recorded.
    instruction_lines: Option<Lasts>,
    /// Segments to pass over until the next sample, and how many were passed over before the last one.
    wait: u32,
    waited: u32,
    /// Samples so far.
    samples: u64,
}

/// Records of a segment that are looked at.
const SAMPLE_RECORDS: usize = 4 << 10;
/// Segments passed over between two samples, after a while: a sample takes a tenth of the time of a segment.
const WAIT_MIN: u32 = 1;
const WAIT_MAX: u32 = 15;

impl Heat {
    pub(crate) fn new(filter: Option<&Filter>) -> Heat {
        let Some(filter) = filter else { return Heat::default() };
        Heat {
            data_lines: Lasts::new(filter.data),
            instruction_lines: (filter.fetches == FetchFilter::LastOfSet)
                .then(|| Lasts::new(filter.instruction)),
            ..Heat::default()
        }
    }

    /// What is known of a data reference.
    pub(crate) fn site(&mut self, site: u32) -> &mut Seen {
        entry(&mut self.data, site as usize)
    }

    /// What is known of a block's instruction lines.
    pub(crate) fn fetch(&mut self, block: u32) -> &mut Seen {
        entry(&mut self.fetches, block as usize)
    }

    /// Takes note of a block's checks of instruction lines that failed, where these are counted.
    pub(crate) fn failed(&mut self, block: u32, failures: u64) {
        let looked = u16::try_from(failures).unwrap_or(u16::MAX);
        let stands_for = u32::try_from(failures).unwrap_or(u32::MAX);
        let seen = self.fetch(block);
        *seen = Seen { way: seen.way, looked, news: looked, stands_for };
    }

    /// Whether anything of these blocks is to be recorded without a check.
    pub(crate) fn any(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> Way {
        let is = |_: &Seen, best| best != Way::Checked;
        if self.some(first_block, executions, sites, is) {
            Way::Always
        } else {
            Way::Checked
        }
    }

    /// Whether anything of these blocks is to be recorded otherwise than it is.
    pub(crate) fn changes(&self, first_block: u32, executions: &[u64], sites: &[Site]) -> bool {
        self.some(first_block, executions, sites, |s, best| best != s.way)
    }

    fn some(
        &self,
        first_block: u32,
        executions: &[u64],
        sites: &[Site],
        holds: impl Fn(&Seen, Way) -> bool,
    ) -> bool {
        executions.iter().zip(first_block..).any(|(&executions, block)| {
            let first = sites.partition_point(|s| s.block < block);
            let count = sites[first..].iter().take_while(|s| s.block == block).count();
            let fetch = self.fetches.get(block as usize);
            let decided = |s: &Seen, max| holds(s, way(Some(s), executions, max));
            self.data.iter().skip(first).take(count).any(|s| decided(s, CHECKED_PERCENT_MAX))
                || fetch.is_some_and(|s| decided(s, FETCH_CHECKED_PERCENT_MAX))
        })
    }

    /// Looks at the last records of a segment. The blocks whose references it is time to think over.
    pub(crate) fn sample(&mut self, records: &[Record], sites: &[Site]) -> Vec<u32> {
        let looked = &records[records.len().saturating_sub(SAMPLE_RECORDS)..];
        let stands_for = (records.len() / looked.len().max(1)) as u32 * (self.waited + 1);
        let mut blocks = Vec::new();
        for record in looked {
            let due = match record.code().kind() {
                RecordKind::Load | RecordKind::Store | RecordKind::Modify => {
                    let news = self.data_lines.is_news(record.address);
                    entry(&mut self.data, record.site()).note(news, stands_for)
                }
                RecordKind::Fetch => {
                    let Some(lines) = &mut self.instruction_lines else { continue };
                    let news = lines.is_news(record.address);
                    entry(&mut self.fetches, record.site()).note(news, stands_for)
                }
                _ => continue,
            };
            if due {
                let fetch = record.code().kind() == RecordKind::Fetch;
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

    /// Whether to read all counters of checks that failed: at the first segment, and whenever as many again have passed.
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

impl Seen {
    /// Notes a record; whether it is time to think over.
    fn note(&mut self, news: bool, stands_for: u32) -> bool {
        self.looked = self.looked.saturating_add(1);
        self.news = self.news.saturating_add(u16::from(news));
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
    use event::StoreFilter;

    fn heat() -> Heat {
        let sets = SetFilter { sets: 64, line_bytes: 64 };
        Heat::new(Some(&Filter {
            data: sets,
            instruction: sets,
            data_page: None,
            instruction_page: None,
            stores: StoreFilter::LikeLoads,
            fetches: FetchFilter::LastOfSet,
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
        let mut heat = heat();
        let records: Vec<Record> = (0..300).map(|n| load(1, 0x10_0000 + 64 * n)).collect();
        assert_eq!(heat.sample(&records, &SITES), [5]);
        let way = |executions| Experience { seen: Some((5, 0, executions)) }.data(&heat, 1);
        assert_eq!(way(310), Way::Always);
        assert_eq!(way(100_000), Way::Checked);
        assert_eq!(heat.any(5, &[310], &SITES), Way::Always);
        assert_eq!(heat.any(5, &[100_000], &SITES), Way::Checked);
    }

    #[test]
    fn a_reference_that_stays_on_its_line_is_checked_again() {
        let mut heat = heat();
        heat.site(2).way = Way::Always;
        let records: Vec<Record> = (0..100).map(|n| load(2, 0x20_0000 + n)).collect();
        heat.sample(&records, &SITES);
        let experience = Experience { seen: Some((5, 0, 100)) };
        assert_eq!(experience.data(&heat, 2), Way::Checked);
    }

    #[test]
    fn samples_become_rarer_and_stand_for_more() {
        let mut heat = heat();
        let records = vec![load(0, 0x1000); 3 * SAMPLE_RECORDS];
        heat.sample(&records, &SITES);
        assert_eq!(heat.data[0].stands_for, 3 * SAMPLE_RECORDS as u32);
        heat.sampled(0);
        assert!(heat.passes_over());
        assert!(!heat.passes_over());
        heat.sample(&records, &SITES);
        assert_eq!(heat.data[0].stands_for, 9 * SAMPLE_RECORDS as u32);
    }
}
