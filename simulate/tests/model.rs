//! Presets become levels, plans and cycle models.

use event::{Record, RecordKind, StoreFilter, Stream};
use lightfoot_simulate::{
    plan_stream, CycleModel, FetchTlb, Geometry, Hierarchy, Modelled, PageRange, Sharing, WriteBacks,
};
use machine::{Machine, PRESETS};

#[test]
fn every_preset_can_be_simulated_from_its_stream() {
    for preset in PRESETS {
        let machine = preset.machine();
        let modelled = Modelled::of(&machine).unwrap().unwrap();
        if ["zen4-victim", "skylake-sp-victim", "sandy-bridge", "sandy-bridge-policies"]
            .contains(&preset.name)
        {
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

/// `text` with the TLBs of a small machine: 4 and 4 entries in the first level, and these behind.
fn with_outer_tlbs(text: &str) -> Machine {
    let first = "[[tlb]]\nlevel = 1\nkind = \"data\"\nentries = 4\nways = \"full\"\npage_bytes = [4096]\n\
                 [[tlb]]\nlevel = 1\nkind = \"instruction\"\nentries = 4\nways = \"full\"\npage_bytes = [4096]\n";
    let mut machine = Machine::preset("cachegrind").unwrap();
    machine.tlbs.clear();
    let caches = machine.to_toml().replace("tlb = []\n", "");
    Machine::from_toml(&format!("{caches}{first}{text}"), "test".as_ref()).unwrap()
}

fn second(kind: &str, entries: u32, penalty: u32) -> String {
    format!(
        "[[tlb]]\nlevel = 2\nkind = \"{kind}\"\nentries = {entries}\nways = \"full\"\n\
         page_bytes = [4096, \"2M\"]\npenalty_cycles = {penalty}\n"
    )
}

#[test]
fn a_declared_second_level_instruction_tlb_is_simulated() {
    let machine = with_outer_tlbs(&(second("data", 64, 30) + &second("instruction", 16, 50)));
    let modelled = Modelled::of(&machine).unwrap().unwrap();
    assert_eq!(modelled.levels.outer_fetch_tlb, FetchTlb::Own(Geometry::tlb(16, 16, 4096)));
    assert!(modelled.left_out.is_empty(), "{:?}", modelled.left_out);
    let model = CycleModel { per_instruction: 0.5, ..CycleModel::of(&zen4_costs(machine)).unwrap() };
    assert_eq!((model.tlb_miss[1], model.fetch_tlb_miss[1]), (30.0, 50.0));
    let zen = Modelled::of(&Machine::preset("zen4").unwrap()).unwrap().unwrap();
    assert_eq!(zen.levels.outer_fetch_tlb, FetchTlb::Own(Geometry::tlb(512, 4, 4096)));
    let large = PageRange { start: 0, last: u64::MAX, page_bytes: 2 << 20 };
    let zen = zen.with_large_pages(&Machine::preset("zen4").unwrap(), vec![large]).unwrap();
    assert_eq!(zen.levels.large_pages.unwrap().outer_instruction[0].geometry.sets, 128);
    let unified = Modelled::of(&with_outer_tlbs(&second("unified", 64, 30))).unwrap().unwrap();
    assert_eq!(unified.levels.outer_fetch_tlb, FetchTlb::Unified);
}

fn zen4_costs(machine: Machine) -> Machine {
    Machine { cycle: Machine::preset("zen4").unwrap().cycle, ..machine }
}

#[test]
fn where_a_description_names_none_it_is_said() {
    let modelled = Modelled::of(&with_outer_tlbs(&second("data", 64, 30))).unwrap().unwrap();
    assert_eq!(modelled.levels.outer_fetch_tlb, FetchTlb::Absent);
    assert!(modelled.left_out[0].contains("names no second-level TLB for instructions"));
    let modelled = Modelled::of(&with_outer_tlbs(&second("instruction", 64, 30))).unwrap().unwrap();
    assert_eq!(modelled.levels.outer_tlb, None);
    assert!(modelled.left_out[0].contains("names none for data"));
}

/// Eight pages of code in turn: more than a first level of 4 entries has.
#[test]
fn each_side_asks_its_own_second_level() {
    let misses = |outer: String| {
        let modelled = Modelled::of(&with_outer_tlbs(&outer)).unwrap().unwrap();
        let mut hierarchy = Hierarchy::new(&modelled.levels).unwrap();
        let block = |n: u64| Record::new(RecordKind::Block, 0, 0, n % 8 * 4096).unwrap();
        let records: Vec<Record> = (0..800).map(|n| Record { extra: 1, ..block(n) }).collect();
        hierarchy.records(0, &records);
        hierarchy.counts().tlb(1).instructions
    };
    assert_eq!(misses(second("data", 64, 30) + &second("instruction", 5, 30)), 800, "5 entries are too few");
    assert_eq!(misses(second("data", 5, 30) + &second("instruction", 64, 30)), 8);
    assert_eq!(misses(second("unified", 64, 30)), 8);
    assert_eq!(misses(second("data", 64, 30)), 800, "each miss of the first level is a page walk");
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
