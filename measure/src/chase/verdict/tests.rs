//! Rounds that agree, rounds that do not, and a thread that lost its processor.

use super::*;

/// Trials of one latency: quartiles a percent apart.
fn point(size: u64, latency: f64) -> Point {
    Point { size, nanoseconds: [1.0, 1.005, 1.01, 1.015, 1.02].map(|factor| latency * factor).to_vec() }
}

fn grid(octaves: std::ops::Range<u32>) -> Vec<u64> {
    octaves.flat_map(|octave| (8..16).map(move |part| (part << octave) / 8)).collect()
}

/// The latency of a set by the levels that it may fit into.
fn latency(size: u64, levels: &[(u64, f64)]) -> f64 {
    levels.iter().find(|(holds, _)| size <= *holds).or(levels.last()).map_or(0.0, |(_, time)| *time)
}

const CACHES: [(u64, f64); 4] = [(48 << 10, 1.25), (2 << 20, 4.0), (32 << 20, 25.0), (u64::MAX, 100.0)];
const TLBS: [(u64, f64); 3] = [(96, 0.0), (2048, 2.0), (u64::MAX, 12.0)];

fn round(caches: &[(u64, f64)]) -> Round {
    let lines = grid(12..22).into_iter().map(|size| point(size, latency(size, caches))).collect();
    let sampled = grid(22..28).into_iter().map(|size| point(size, latency(size, caches))).collect();
    let of_lines = |lines: u64| latency(lines * 64, caches);
    let packed = grid(4..13).into_iter().map(|lines| point(lines, of_lines(lines))).collect();
    let of_pages = |pages: u64| of_lines(pages) + latency(pages, &TLBS);
    let pages = grid(4..13).into_iter().map(|pages| point(pages, of_pages(pages))).collect();
    Round { lines, packed, pages, sampled }
}

pub(in super::super) fn sweeps() -> Sweeps {
    let pairs = [16, 32, 64, 128, 256].map(|size| point(size, if size < 64 { 3.0 } else { 4.0 }));
    Sweeps {
        cycle: vec![0.25; 5],
        pairs: pairs.to_vec(),
        rounds: vec![round(&CACHES); 3],
        read: vec![20e9; 5],
        watch: Watch { trials: 1000, disturbed: 3 },
        wall: Duration::from_secs(2),
        used: Duration::from_millis(1990),
    }
}

fn fits(stairs: &Stairs) -> Vec<u64> {
    stairs.risers.iter().map(|riser| riser.fits).collect()
}

#[test]
fn rounds_that_agree_tell_all_levels() {
    let found = findings(&sweeps()).unwrap();
    assert_eq!(fits(&found.caches), [48 << 10, 2 << 20, 32 << 20]);
    assert_eq!(fits(&found.tlbs), [96, 2048], "the data cache of 768 lines is no TLB");
    assert_eq!((found.line_bytes, found.largest.bytes), (Some(64), 240 << 20));
    assert!((found.tlbs.treads[2].nanoseconds.median - 13.25).abs() < 0.3, "{:?}", found.tlbs);
}

#[test]
fn a_thread_without_a_processor_says_so() {
    let lost = Sweeps { used: Duration::from_millis(1200), ..sweeps() };
    let error = findings(&lost).unwrap_err().to_string();
    assert!(error.starts_with("the machine is busy: other programs had the processor for 40 %"), "{error}");
    let interrupted = Sweeps { watch: Watch { trials: 100, disturbed: 30 }, ..sweeps() };
    let error = findings(&interrupted).unwrap_err().to_string();
    assert!(error.contains("30 of 100 trials were interrupted"), "{error}");
}

#[test]
fn rounds_that_disagree_about_a_level_of_the_core_are_refused() {
    let mut busy = sweeps();
    // In one round a neighbour had half of the second level.
    let squeezed = [CACHES[0], (1 << 20, 4.0), CACHES[2], CACHES[3]];
    busy.rounds[1] = round(&squeezed);
    let error = findings(&busy).unwrap_err().to_string();
    assert!(error.contains("rounds disagree about level 2"), "{error}");
    let slow = [(48 << 10, 1.25), (2 << 20, 8.0), CACHES[2], CACHES[3]];
    busy.rounds[1] = round(&slow);
    let error = findings(&busy).unwrap_err().to_string();
    assert!(error.contains("a load from level 2 takes 4.0 to 8.1 ns"), "{error}");
}

#[test]
fn rounds_that_disagree_about_the_last_level_leave_it_out() {
    let mut shared = sweeps();
    shared.rounds[2] = round(&[CACHES[0], CACHES[1], (8 << 20, 25.0), CACHES[3]]);
    let found = findings(&shared).unwrap().caches;
    assert_eq!((fits(&found), found.treads.len()), (vec![48 << 10, 2 << 20], 3));
    assert_eq!(found.unsettled_from, Some(8 << 20));
}

#[test]
fn a_riser_that_one_round_has_lost_is_believed_and_one_that_two_have_is_not() {
    let mut sweeps = sweeps();
    let lost = [CACHES[0], CACHES[1], (u64::MAX, 25.0)];
    sweeps.rounds[1] = round(&lost);
    assert_eq!(fits(&findings(&sweeps).unwrap().caches), [48 << 10, 2 << 20, 32 << 20]);
    sweeps.rounds[2] = round(&lost);
    let found = findings(&sweeps).unwrap().caches;
    assert_eq!((fits(&found), found.unsettled_from), (vec![48 << 10, 2 << 20], Some(32 << 20)));
}

#[test]
fn a_curve_of_noise_is_refused_with_its_reason() {
    let mut noisy = sweeps();
    for (index, point) in noisy.rounds[0].lines.iter_mut().enumerate() {
        point.nanoseconds = vec![1.0, 2.0, 4.0, 8.0, 1.0 + index as f64];
    }
    let error = findings(&noisy).unwrap_err().to_string();
    assert!(error.contains("chases over lines: trials of one size disagree at"), "{error}");
}

#[test]
fn a_line_ends_where_all_larger_distances_cost_more() {
    let times = |times: [f64; 4]| -> Vec<Point> {
        [16, 32, 64, 128].into_iter().zip(times).map(|(distance, time)| point(distance, time)).collect()
    };
    assert_eq!(line_bytes(&times([3.0, 3.0, 3.0, 4.0])), Some(128));
    assert_eq!(line_bytes(&times([3.0, 4.0, 4.0, 4.0])), Some(32));
    assert_eq!(line_bytes(&times([3.0, 3.0, 4.0, 3.0])), None);
    assert_eq!(line_bytes(&times([3.0, 3.0, 3.0, 3.0])), None);
    assert_eq!(line_bytes(&[]), None);
}
