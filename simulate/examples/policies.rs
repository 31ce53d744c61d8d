//! A loop that is one line larger than its set, under every replacement policy, and under one of
//! our own: `cargo run --example policies`.

use lightfoot_simulate::event::{Record, RecordKind};
use lightfoot_simulate::policy::{Draw, Repeats, Replacement, SetHistory, Victim};
use lightfoot_simulate::{Geometry, GeometryError, Levels, Policy, Refined, POLICIES};

/// The line that was used last leaves: the best policy for a loop that does not fit.
const MOST_RECENT: Policy = Policy {
    name: "last",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| Box::new(LastWay(vec![0; shape.sets])),
    defined: |shape| SetHistory::definition(shape, LAST),
};

const LAST: Victim = |history: &SetHistory, _: &mut Draw| *history.by_use.last().expect("a set has a way");

/// By set, the way that was used last.
struct LastWay(Vec<usize>);

impl Replacement for LastWay {
    fn used(&mut self, set: usize, way: usize) {
        self.0[set] = way;
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0[set]
    }
}

fn main() -> Result<(), GeometryError> {
    // One set of 8 ways; nine lines in turn, a thousand times.
    let cache = Geometry::cache(8 * 64, 8, 64);
    let records: Vec<Record> =
        (0..9000).filter_map(|n| Record::new(RecordKind::Load, 8, 0, n % 9 * 64)).collect();
    for policy in POLICIES.iter().copied().chain([MOST_RECENT]) {
        let mut cache = Refined::new(&Levels::data_only(cache.with_policy(policy)))?;
        cache.records(0, &records);
        println!("{:<12} {:>5} misses of {}", policy.name, cache.counts().cache(0).loads, records.len());
    }
    Ok(())
}
