//! Presets become levels, plans and cycle models.

use event::{StoreFilter, Stream};
use machine::{Machine, PRESETS};
use simulate::{plan_stream, CycleModel, Modelled, Sharing, WriteBacks};

#[test]
fn every_preset_can_be_simulated_from_its_stream() {
    for preset in PRESETS {
        let machine = preset.machine();
        let modelled = Modelled::of(&machine).unwrap().unwrap();
        if ["zen4-victim", "sandy-bridge"].contains(&preset.name) {
            let plan = plan_stream(&machine, WriteBacks::Ignored).unwrap();
            assert_eq!(plan.stream, Stream::Full, "{}", plan.why);
            continue;
        }
        let first = machine.data_cache(1).unwrap();
        assert_eq!(modelled.levels.data.size_bytes(), first.size_bytes, "{}", preset.name);
        let plan = plan_stream(&machine, WriteBacks::Ignored).unwrap();
        let Stream::Filtered(filter) = plan.stream else { panic!("{}: {}", preset.name, plan.why) };
        assert_eq!(filter.data.line_bytes, first.line_bytes);
        assert_eq!(first.sets() % u64::from(filter.data.sets), 0, "{}", preset.name);
        let stream = plan_stream(&machine, WriteBacks::Counted).unwrap().stream;
        assert_eq!(stream, Stream::Full);
    }
}

#[test]
fn the_papers_cache_bypasses_stores() {
    let plan = plan_stream(&Machine::preset("ladner2002").unwrap(), WriteBacks::Ignored).unwrap();
    let Stream::Filtered(filter) = plan.stream else { panic!("{}", plan.why) };
    assert_eq!((filter.stores, filter.data.sets), (StoreFilter::NeverEnter, 256));
}

#[test]
fn a_server_has_three_levels_and_shares_the_last() {
    let machine = Machine::preset("sapphire-rapids").unwrap();
    let modelled = Modelled::of(&machine).unwrap().unwrap();
    assert_eq!(modelled.numbers, [1, 2, 3]);
    let sharing: Vec<_> = modelled.levels.outer.iter().map(|outer| outer.sharing).collect();
    assert_eq!(sharing, [Sharing::PerThread, Sharing::AllThreads]);
    assert!(modelled.left_out.is_empty());
    assert!(CycleModel::of(&machine).unwrap().cache_miss.iter().all(|&cycles| cycles > 0.0));
}
