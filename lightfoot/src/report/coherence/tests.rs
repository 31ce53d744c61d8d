use super::*;
use crate::cli::SharedBy;
use present::terminal::Page;

fn place(function: &str, line: u32) -> Place {
    let file = Some("/src/near.c".into());
    Place {
        frames: vec![Frame {
            function: function.into(),
            library: "/bin/near".into(),
            file,
            line: Some(line),
        }],
    }
}

fn report() -> CoherenceReport {
    let counts = LineCounts { false_sharing: 99, invalidations: 101, ..LineCounts::default() };
    let pair =
        PairRow { missed: place("first", 5), took: place("second", 9), true_sharing: 0, false_sharing: 99 };
    let line = LineRow {
        address: 0x4040,
        counts,
        touched: vec![
            Touched { core: 1, read: 0xff, written: 0xff },
            Touched { core: 2, read: 0, written: 0xf001 },
        ],
        objects: vec![Lying {
            name: "counts".into(),
            address: Some(0x4030),
            size_bytes: Some(64),
            fields: [(0x4038, "[1].sum"), (0x4048, "[3].sum")]
                .map(|(address, name)| FieldPlace { address, size_bytes: 8, name: name.into() })
                .to_vec(),
        }],
        pairs: vec![pair.clone()],
    };
    let total = Counts { cold: 3, false_sharing: 99, invalidations: 101, ..Counts::default() };
    CoherenceReport {
        ran: CoherentRun {
            command: vec!["near".into()],
            machine: "m".into(),
            levels: vec![("L1D".into(), 48 << 10), ("L2".into(), 2 << 20)],
            quantum: 10_000,
            ..CoherentRun::default()
        },
        line_bytes: 64,
        total,
        cores: vec![(vec![0], total)],
        objects: objects(std::slice::from_ref(&line)),
        lines: vec![line],
        pairs: vec![pair],
        warnings: Vec::new(),
    }
}

#[test]
fn a_line_has_its_object_its_bytes_and_both_sides() {
    let text = report().text(SharedBy::Line, 9, &Page::PLAIN);
    assert!(text.starts_with("lightfoot cache --coherence: near, exit status 0\n"), "{text}");
    assert!(
        text.contains("m, 1 core with L1D of 48 KiB and L2 of 2 MiB; turns of 10,000 instructions"),
        "{text}"
    );
    assert!(text.contains("       99        0        0      101  0x4040  counts+16\n"), "{text}");
    assert!(text.contains("      core 1: bytes reads 0-7; writes 0-7\n"), "{text}");
    assert!(text.contains("      core 2: bytes writes 0,12-15 (counts[3].sum)\n"), "{text}");
    assert!(text.contains("      99 false: first (near.c:5)\n        after second (near.c:9)\n"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let source = report().text(SharedBy::Source, 9, &Page::PLAIN);
    assert!(source.contains("       99        0  first (near.c:5)\n"), "{source}");
    assert!(source.contains("after second (near.c:9)\n"), "{source}");
    let object = report().text(SharedBy::Object, 9, &Page::PLAIN);
    assert!(object.contains("      101  counts (1 line)\n"), "{object}");
    assert!(report().text(SharedBy::Line, 0, &Page::PLAIN).contains("(1 more with --top 0)"));
}

#[test]
fn rows_are_lines_of_csv() {
    let lines = |by| report().csv(by, 9).split_terminator("\r\n").map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(SharedBy::Line)[2], "99,0,0,101,0,0x4040,counts");
    assert_eq!(lines(SharedBy::Object)[1..], ["99,0,0,101,0,,(total)", "99,0,0,101,0,1,counts"]);
    assert_eq!(lines(SharedBy::Source)[2], "99,0,first (near.c:5),second (near.c:9)");
    for by in [SharedBy::Line, SharedBy::Object, SharedBy::Source] {
        let commas = |line: &String| line.matches(',').count();
        assert!(lines(by).iter().all(|line| commas(line) == commas(&lines(by)[0])));
    }
}

#[test]
fn runs_of_bytes_are_first_and_last() {
    assert_eq!(runs(0b1011, 64), [(0, 1), (3, 3)]);
    assert_eq!(runs(0b11, 128), [(0, 3)]);
    assert_eq!(runs(u64::MAX, 64), [(0, 63)]);
    assert_eq!(runs(0, 64), []);
}
