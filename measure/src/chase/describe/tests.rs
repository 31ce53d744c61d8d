//! A report that is right, reports that are wrong, and levels that nothing tells.

use super::*;
use crate::chase::curve::Tread;
use crate::chase::verdict::WalkedSet;
use machine::CacheKind;

fn spread(median: f64) -> Spread {
    Spread { low: median * 0.99, median, high: median * 1.01 }
}

fn stairs(latencies: &[f64], sizes: &[u64]) -> Stairs {
    let tread = |latency: &f64| Tread { from: 1, to: 1 << 13, nanoseconds: spread(*latency) };
    let riser = |size: &u64| Riser { begins: *size, fits: *size, ends: size + size / 8 };
    Stairs {
        treads: latencies.iter().map(tread).collect(),
        risers: sizes.iter().map(riser).collect(),
        unsettled_from: None,
    }
}

fn findings(caches: &[u64], tlbs: &[u64]) -> Findings {
    Findings {
        cycle_ns: spread(0.25),
        line_bytes: Some(64),
        caches: stairs(&[1.25, 4.0, 25.0, 100.0][..=caches.len()], caches),
        tlbs: stairs(&[1.25, 3.0, 13.0][..=tlbs.len()], tlbs),
        largest: WalkedSet { bytes: 256 << 20, nanoseconds: spread(100.0) },
        read_bytes_per_s: spread(20e9),
        trials: 100,
        disturbed: 0,
        wall_s: 2.0,
    }
}

/// 48 KiB, 2 MiB and 32 MiB; 96 and 2,048 entries.
fn reported() -> Machine {
    let mut machine = Machine::host();
    let shape = |machine: &mut Machine, level: u8, size_bytes: u64, ways: u32| {
        let cache = machine.caches.iter_mut().find(|cache| cache.level == level && cache.holds_data());
        let cache = cache.expect("the host has three levels, or they are assumed");
        (cache.size_bytes, cache.ways, cache.line_bytes) = (size_bytes, ways, 64);
    };
    if machine.data_cache(3).is_none() {
        let mut third = machine.data_cache(2).unwrap().clone();
        (third.level, third.kind) = (3, CacheKind::Unified);
        machine.caches.push(third);
    }
    for (level, size, ways) in [(1, 48 << 10, 12), (2, 2 << 20, 16), (3, 32 << 20, 16)] {
        shape(&mut machine, level, size, ways);
    }
    for (level, entries, ways) in [(1, 96, 6), (2, 2048, 16)] {
        let name = machine.data_tlb(level).expect("a data TLB").name();
        let tlb = machine.tlbs.iter_mut().find(|tlb| tlb.name() == name).unwrap();
        (tlb.entries, tlb.ways) = (entries, ways);
    }
    machine.check().unwrap();
    machine
}

fn origin(machine: &Machine, field: &str) -> Origin {
    machine.source_of(field).unwrap().origin
}

#[test]
fn a_true_report_keeps_its_sizes_and_gains_their_origin() {
    let described = describe(&reported(), &findings(&[48 << 10, 2 << 20, 32 << 20], &[96, 2048]), "today");
    let machine = &described.machine;
    assert_eq!(described.remarks, [""; 0]);
    assert!(machine.description.ends_with(", measured on today") && machine.name == "measured");
    assert_eq!(machine.data_cache(2).unwrap().size_bytes, 2 << 20);
    for field in
        ["cache.L1D.size_bytes", "cache.L1D.line_bytes", "cache.L3.size_bytes", "tlb.L1 DTLB.entries"]
    {
        assert_eq!(origin(machine, field), Origin::Measured, "{field}");
    }
    // (4 − 1.25) ns and (100 − 25) ns of cycles of a quarter of a nanosecond.
    let penalty = |level| machine.data_cache(level).unwrap().penalty_cycles;
    assert_eq!((penalty(1), penalty(2), penalty(3)), (Some(11), Some(84), Some(300)));
    assert_eq!(machine.data_tlb(1).unwrap().penalty_cycles, Some(7));
    assert_eq!(origin(machine, "cache.L2.penalty_cycles"), Origin::Measured);
    assert_eq!(origin(machine, "cache.L1D.ways"), origin(&reported(), "cache.L1D.ways"));
    assert!(described.levels.iter().all(|level| level.measured.is_some_and(|measure| measure.agrees)));
    machine.check().unwrap();
}

#[test]
fn a_false_report_is_contradicted_and_corrected() {
    let described = describe(&reported(), &findings(&[32 << 10, 1 << 20, 64 << 20], &[64, 1536]), "today");
    let machine = &described.machine;
    let sizes: Vec<u64> = machine.data_path().map(|cache| cache.size_bytes).collect();
    assert_eq!(sizes, [32 << 10, 1 << 20, 64 << 20]);
    assert_eq!((machine.data_tlb(1).unwrap().entries, machine.data_tlb(2).unwrap().entries), (64, 1536));
    // 12 ways do not divide 512 lines, nor 6 ways 64 entries.
    assert_eq!((machine.data_cache(1).unwrap().ways, machine.data_tlb(1).unwrap().ways), (8, 4));
    assert_eq!(origin(machine, "cache.L1D.ways"), Origin::Assumed);
    assert_eq!(described.remarks.len(), 5, "{:?}", described.remarks);
    assert!(
        described.remarks[0].starts_with("L1D: 48 KiB ")
            && described.remarks[0].contains(", 32 KiB measured")
    );
    machine.check().unwrap();
}

#[test]
fn what_is_not_measured_stays_as_reported() {
    let mut found = findings(&[48 << 10, 2 << 20], &[96]);
    found.caches.unsettled_from = Some(24 << 20);
    let described = describe(&reported(), &found, "today");
    let machine = &described.machine;
    assert_eq!(machine.data_cache(3).unwrap().size_bytes, 32 << 20);
    assert_eq!(origin(machine, "cache.L3.size_bytes"), origin(&reported(), "cache.L3.size_bytes"));
    assert_eq!(machine.data_tlb(2).unwrap().entries, 2048);
    let remarks = described.remarks.join("\n");
    assert!(remarks.contains("L3: not measured, stays 32 MiB: latency rises from 24 MiB on"), "{remarks}");
    assert!(
        remarks.contains("L2 TLB: not measured") || remarks.contains("L2 DTLB: not measured"),
        "{remarks}"
    );
}

#[test]
fn a_riser_of_another_level_is_taken_for_none() {
    // The second level's riser was missed, so the third one's stands in its place.
    let described = describe(&reported(), &findings(&[48 << 10, 32 << 20], &[96, 2048]), "today");
    assert_eq!(described.machine.data_cache(2).unwrap().size_bytes, 2 << 20);
    let [_, second, third, ..] = &described.levels[..] else { panic!("{:?}", described.levels) };
    assert!(second.measured.is_none() && second.nanoseconds.is_none(), "{second:?}");
    assert!(third.measured.is_some_and(|measure| measure.agrees), "{third:?}");
    // A riser over three octaves tells nothing either.
    let mut soft = findings(&[48 << 10, 2 << 20, 32 << 20], &[96, 2048]);
    soft.caches.risers[1] = Riser { begins: 1 << 20, fits: 2 << 20, ends: 8 << 20 };
    let described = describe(&reported(), &soft, "today");
    assert!(described.levels[0].measured.is_some() && described.levels[1].measured.is_none());
    let slowly = "L2: not measured, stays 2 MiB: latency rises slowly from 1 MiB to 8 MiB";
    assert_eq!(described.remarks, [slowly]);
}

#[test]
fn a_level_that_nobody_reports_is_said() {
    let mut reported = reported();
    reported.caches.retain(|cache| cache.level < 3);
    let described = describe(&reported, &findings(&[48 << 10, 2 << 20, 32 << 20], &[96, 2048]), "today");
    assert_eq!(described.remarks, ["latency rises at 32 MiB too, where no level is reported"]);
}

#[test]
fn a_rise_within_a_level_that_the_next_riser_confirms_is_no_size() {
    // Misses of a TLB within the second level, as on a host that backs large pages by small ones.
    let mut found = findings(&[48 << 10, 2 << 20, 32 << 20], &[96, 2048]);
    found.caches = stairs(&[1.25, 4.0, 8.0, 25.0, 100.0], &[48 << 10, 768 << 10, 2 << 20, 32 << 20]);
    let described = describe(&reported(), &found, "today");
    assert_eq!(described.remarks, ["latency rises at 768 KiB too, where no level is reported"]);
    let measured: Vec<u64> = described.levels[..3].iter().map(|level| level.measured.unwrap().size).collect();
    assert_eq!(measured, [48 << 10, 2 << 20, 32 << 20]);
    assert_eq!(described.levels[1].nanoseconds, Some(spread(4.0)));
    // (25 − 4) ns in cycles of a quarter of a nanosecond.
    assert_eq!(described.machine.data_cache(2).unwrap().penalty_cycles, Some(84));
}

#[test]
fn corrections_that_do_not_fit_together_are_given_up() {
    // An inclusive second level that would hold less than the first.
    let mut inclusive = reported();
    let second = inclusive.caches.iter_mut().find(|cache| cache.level == 2).unwrap();
    second.behaviour.inclusion = machine::Inclusion::Inclusive;
    second.size_bytes = 64 << 10;
    inclusive.check().unwrap();
    let described = describe(&inclusive, &findings(&[96 << 10], &[96, 2048]), "today");
    assert!(described.remarks.iter().any(|remark| remark.contains("does not fit together")));
    assert_eq!(described.machine.data_cache(1).unwrap().size_bytes, 48 << 10);
    assert_eq!(described.machine.name, "measured");
}
