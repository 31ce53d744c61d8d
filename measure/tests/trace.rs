//! The trace file: round trips, cuts at every byte, forgeries, and the checker.

use lightfoot_measure::trace::{
    check, decode, End, Functions, Header, Interval, Metric, Record, Share, Source, Trace, Unit, Value,
    Writer,
};
use proptest::prelude::*;

fn header(metrics: usize) -> Header {
    let names = (0..metrics).map(|index| Metric::new(format!("m{index}"), Source::Kernel, "perf"));
    let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
    Header::new(vec!["program".into(), "-x".into()], interval, names.collect())
}

fn value() -> impl Strategy<Value = Value> {
    let number = || prop_oneof![0..3_u64, any::<u64>()];
    let share = proptest::option::of((number(), number()));
    (proptest::option::of(number()), share).prop_map(|(delta, share)| match delta {
        None => Value { delta, share: None },
        Some(_) => {
            Value { delta, share: share.map(|(enabled_ns, running_ns)| Share { enabled_ns, running_ns }) }
        }
    })
}

fn record(metrics: usize) -> impl Strategy<Value = Record> {
    let fields = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    (fields, prop::collection::vec(value(), metrics)).prop_map(
        |((sequence, start, dt, missed_ticks, threads), values)| Record {
            sequence,
            start,
            dt,
            missed_ticks,
            threads,
            values,
        },
    )
}

fn trace() -> impl Strategy<Value = Trace> {
    (0..5_usize).prop_flat_map(|metrics| {
        let end = prop::collection::vec(any::<Option<u64>>(), metrics).prop_map(|totals| End {
            totals,
            exit_status: Some(3),
            interrupted: false,
        });
        let rows = (1..4_usize).prop_flat_map(|names| {
            let row = prop::collection::vec((0..names as u32, any::<u64>()), 0..4);
            (Just(names), prop::collection::vec(row, 20))
        });
        let functions = proptest::option::of(rows);
        (prop::collection::vec(record(metrics), 0..20), end, functions).prop_map(
            move |(records, end, functions)| Trace {
                functions: functions.map(|(names, mut rows)| {
                    rows.truncate(records.len());
                    Functions {
                        names: (0..names).map(|name| format!("f{name}")).collect(),
                        instructions: rows,
                    }
                }),
                header: header(metrics),
                records,
                end: Some(end),
                cut: None,
            },
        )
    })
}

/// A sound trace of `records` records.
fn sound(records: u64) -> Trace {
    let mut trace = Trace::new(header(2));
    for sequence in 0..records {
        let values = vec![Value::whole(sequence * sequence), Value::whole(7)];
        let (start, dt) = (sequence * 1_000_000, 1_000_000);
        trace.records.push(Record { sequence, start, dt, missed_ticks: 0, threads: 1, values });
    }
    let totals = vec![trace.sum(0), trace.sum(1)];
    trace.end = Some(End { totals, exit_status: Some(0), interrupted: false });
    trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(trace in trace()) {
        prop_assert_eq!(decode(&trace.encode()).unwrap(), trace);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), prefix in 0..200_usize) {
        let mut forged = sound(4).encode();
        forged.truncate(prefix);
        forged.extend(bytes);
        if let Ok(trace) = decode(&forged) {
            check(&trace);
            for metric in 0..trace.header.metrics.len() {
                prop_assert!(trace.series(metric).len() <= trace.records.len());
            }
        }
    }

    #[test]
    fn a_changed_byte_never_changes_a_number_unseen(at in 0..1000_usize, bit in 0..8_u32) {
        let trace = sound(20);
        let mut bytes = trace.encode();
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        if let Ok(read) = decode(&bytes) {
            prop_assert!(read.cut.is_some() || at < 12, "byte {}", at);
            prop_assert_eq!(&read.records[..], &trace.records[..read.records.len()]);
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_the_cut() {
    let whole = sound(30);
    let bytes = whole.encode();
    let mut lengths = Vec::new();
    for cut in 0..bytes.len() {
        match decode(&bytes[..cut]) {
            Err(error) => assert!(lengths.is_empty(), "{cut}: {error} after a shorter file was read"),
            Ok(trace) => {
                let said = trace.cut.clone().expect("a cut is said");
                assert_eq!(said.of_bytes, cut as u64);
                assert!(said.at_byte <= said.of_bytes);
                assert_eq!(trace.records[..], whole.records[..trace.records.len()]);
                assert_eq!(trace.header, whole.header);
                lengths.push(trace.records.len());
            }
        }
    }
    assert!(lengths.is_sorted());
    assert_eq!((lengths[0], *lengths.last().unwrap()), (0, 30));
}

#[test]
fn refusals_are_sentences() {
    let said = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    assert_eq!(said(b""), "not a trace file");
    assert_eq!(said(b"some text that is long enough"), "not a trace file");
    assert!(said(b"LFTRACE\x1a\x01").contains("cut after 9 bytes"));
    let mut newer = sound(1).encode();
    newer[8] = 9;
    assert!(said(&newer).contains("format 9"));
    let mut empty = sound(1);
    empty.header.interval.length = 0;
    assert!(said(&empty.encode()).contains("interval has length 0"));
}

#[test]
fn an_interrupted_writer_leaves_a_file() {
    let trace = sound(5);
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &trace.header).unwrap();
    for record in &trace.records[..3] {
        writer.record(record).unwrap();
    }
    drop(writer);
    let read = decode(&file).unwrap();
    assert_eq!(read.records, trace.records[..3]);
    assert!(read.cut.unwrap().why.contains("killed"));
}

#[test]
fn the_checker_finds_what_is_wrong() {
    assert_eq!(check(&sound(9)), Vec::<String>::new());
    let complaint = |change: fn(&mut Trace)| {
        let mut trace = sound(9);
        change(&mut trace);
        check(&trace).join("; ")
    };
    assert!(complaint(|t| t.records[4].sequence = 9).contains("record 9 stands where 4 should"));
    assert!(complaint(|t| t.records[4].start += 1).contains("does not begin"));
    assert!(complaint(|t| t.records[4].values[1] = Value::whole(8)).contains("m1 adds up to 64"));
    assert!(complaint(|t| t.header.metrics[1].name = "m0".into()).contains("two metrics are called m0"));
    assert!(complaint(|t| t.records[0].values[0].share = Some(Share { enabled_ns: 1, running_ns: 2 }))
        .contains("ran longer"));
}

#[test]
fn a_shared_counter_is_scaled_and_a_last_short_record_left_out() {
    let mut trace = sound(3);
    trace.records[1].values[0].share = Some(Share { enabled_ns: 300, running_ns: 100 });
    trace.records[2].dt = 5;
    assert_eq!(trace.series(0), [0.0, 3.0]);
    assert_eq!(trace.sum(0), Some(5));
}
