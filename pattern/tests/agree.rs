//! Agreement: the compiler with the `regex` crate line by line, every kernel with the reference and
//! with each other.
//!
//! One runner, many data: patterns and texts drawn from small alphabets that contain what is
//! delicate (characters of all lengths, invalid UTF-8, carriage returns, NUL), matches of every
//! length across every boundary, and the worst texts that are known.

mod agreement;
mod delicate;
mod drawn;
mod leaves;

use agreement::{check, check_kernels, expected, kernels, line_ends, options, parse, parse_for, regex};
use delicate::{pattern, text};
use drawn::random_program;
use lightfoot_pattern::compile::{compile, CompileError, CompileOptions, Haystack, Lines};
use lightfoot_pattern::kernel::Scanner;
use lightfoot_pattern::reference;
use lightfoot_pattern::transpose::{BLOCK_BYTES, CHUNK_BYTES};
use proptest::prelude::*;
use std::ops::ControlFlow;

// --- random patterns and texts

/// Cases that repeat from run to run; `PATTERN_SEED` asks for others.
fn config(cases: u32) -> ProptestConfig {
    let seed = std::env::var("PATTERN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2014);
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn random_patterns_match_what_regex_matches(pattern in pattern(), text in text(), nul in any::<bool>()) {
        let terminator = if nul { 0 } else { b'\n' };
        match compile(&parse_for(&pattern, terminator), &options(terminator)) {
            Ok(program) => {
                let ends = expected(&regex(&pattern, terminator), &text, terminator);
                let whole = reference::terminated(&text, terminator);
                let slow: Vec<usize> = (0..whole.len()).filter(|&at| reference::evaluate(&program, &whole)[at]).collect();
                prop_assert_eq!(&slow, &ends, "reference, {:?}\n{}", pattern, program);
                check_kernels(&program, &text, &ends, &format!("{pattern:?}"));
            }
            Err(CompileError::WordAhead { .. }) => {}
            Err(error) => prop_assert!(false, "{}: {}", pattern, error),
        }
    }
}

/// Texts of many blocks, in which stretches of ASCII and of other characters take turns and lines
/// are long.
fn long_text() -> impl Strategy<Value = Vec<u8>> {
    let stretch = prop_oneof![
        4 => text(),
        2 => (prop::sample::select(vec!["a", "ab", "b", " ", "x", "a ", "é", "aя", "漢", "😀"]), 1usize..700)
            .prop_map(|(piece, times)| piece.repeat(times).into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..80),
    ];
    prop::collection::vec(stretch, 1..12).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(config(700))]

    #[test]
    fn random_patterns_match_across_blocks(pattern in pattern(), text in long_text()) {
        if let Ok(program) = compile(&parse(&pattern), &options(b'\n')) {
            let ends = expected(&regex(&pattern, b'\n'), &text, b'\n');
            check_kernels(&program, &text, &ends, &format!("{pattern:?} across blocks"));
        }
    }
}

proptest! {
    #![proptest_config(config(700))]

    /// Programs that no expression has: every operation, looking back as far as the form permits.
    #[test]
    fn random_programs_are_the_reference(seed in 1u64.., text in long_text()) {
        let program = random_program(seed);
        let whole = reference::terminated(&text, b'\n');
        let bits = reference::evaluate(&program, &whole);
        let expected: Vec<usize> = (0..whole.len()).filter(|&at| bits[at]).collect();
        for kernel in kernels() {
            let mut found = line_ends(&Scanner::with_kernel(&program, kernel).unwrap(), &text);
            // What is behind the text is nobody's.
            found.retain(|&at| at < whole.len());
            prop_assert_eq!(&found, &expected, "{}\n{}", kernel.name(), program);
        }
    }
}

#[test]
fn most_random_patterns_compile() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let patterns: Vec<String> =
        (0..500).map(|_| pattern().new_tree(&mut runner).unwrap().current()).collect();
    let refused =
        patterns.iter().filter(|pattern| compile(&parse(pattern), &options(b'\n')).is_err()).count();
    assert!(refused < 50, "{refused} of 500 were refused");
}

#[test]
fn other_lines_are_the_complement() {
    let hir = parse("a+b");
    let program =
        compile(&hir, &CompileOptions { lines: Lines::Others, ..CompileOptions::default() }).unwrap();
    check_kernels(&program, b"ab\nb\n\naab\nx", &[4, 5, 11], "other lines");
}

// --- programs over rows

/// The byte that stands between rows.
const SEPARATOR: u8 = 0x1e;

/// The program of a pattern over rows on every kernel and the reference.
fn check_program(pattern: &str, rows: &[Vec<u8>]) {
    let options = CompileOptions { haystack: Haystack::Row { line_end: b'\n' }, ..options(SEPARATOR) };
    let program = match compile(&parse(pattern), &options) {
        Ok(program) => program,
        Err(CompileError::WordAhead { .. }) => return,
        Err(error) => panic!("{pattern}: {error}"),
    };
    let mut text = Vec::new();
    for row in rows {
        text.extend(row.iter().filter(|&&byte| byte != SEPARATOR));
        text.push(SEPARATOR);
    }
    let expected = expected(&regex(pattern, b'\n'), &text, SEPARATOR);
    let bits = reference::evaluate(&program, &text);
    let slow: Vec<usize> = (0..text.len()).filter(|&at| bits[at]).collect();
    assert_eq!(slow, expected, "reference, {pattern:?} in {:?}\n{program}", String::from_utf8_lossy(&text));
    check_kernels(&program, &text, &expected, &format!("{pattern:?} over rows"));
}

/// The program of a pattern over rows without a byte between them, on the reference and every
/// kernel.
fn check_marked(pattern: &str, rows: &[Vec<u8>]) {
    let options = CompileOptions { haystack: Haystack::MarkedRow { line_end: b'\n' }, ..options(0) };
    let program = match compile(&parse(pattern), &options) {
        Ok(program) => program,
        Err(CompileError::WordAhead { .. }) => return,
        Err(error) => panic!("{pattern}: {error}"),
    };
    let regex = regex(pattern, b'\n');
    let (mut text, mut row_ends, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| !row.is_empty()) {
        text.extend_from_slice(row);
        row_ends.resize(text.len(), false);
        row_ends[text.len() - 1] = true;
        if regex.is_match(row) {
            expected.push(text.len() - 1);
        }
    }
    let what = format!("{pattern:?} over marked {rows:?}\n{program}");
    let bits = reference::evaluate_rows(&program, &text, &row_ends);
    let slow: Vec<usize> = (0..text.len()).filter(|&at| bits[at]).collect();
    assert_eq!(slow, expected, "reference, {what}");
    text.resize(text.len().next_multiple_of(BLOCK_BYTES), 0);
    row_ends.resize(text.len(), false);
    let words = row_ends.chunks(64).map(|bits| (0..64).fold(0, |word, at| word | u64::from(bits[at]) << at));
    let words: Vec<u64> = words.collect();
    for kernel in kernels() {
        let scanner = Scanner::with_kernel(&program, kernel).unwrap();
        let (mut scan, mut found) = (scanner.scan(), Vec::new());
        for (number, chunk) in text.chunks(CHUNK_BYTES).enumerate() {
            let first = number * CHUNK_BYTES;
            let output = scan.feed_rows(chunk, &words[first / 64..(first + chunk.len()) / 64]);
            found.extend(
                (0..chunk.len()).filter(|at| output[at / 64] >> (at % 64) & 1 == 1).map(|at| first + at),
            );
        }
        assert_eq!(found, expected, "{}, {what}", kernel.name());
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn programs_over_rows_match_what_regex_matches(
        pattern in pattern(),
        rows in prop::collection::vec(text(), 0..6),
    ) {
        check_program(&pattern, &rows);
        check_marked(&pattern, &rows);
    }

    #[test]
    fn programs_over_long_rows_match_what_regex_matches(
        pattern in pattern(),
        rows in prop::collection::vec(prop_oneof![2 => text(), 1 => long_text()], 0..6),
    ) {
        check_marked(&pattern, &rows);
    }
}

#[test]
fn line_ends_in_rows_are_no_ends_of_rows() {
    let pieces: &[&[u8]] = &[
        b"", b"\n", b"\r", b"\r\n", b"a", b"b\n", b"\na", b"a\r", b"\n\r", b"\r\r\n", b"\0", b"\xc3", b"\xa9",
    ];
    let rows: Vec<Vec<u8>> =
        pieces.iter().flat_map(|first| pieces.iter().map(move |second| [*first, *second].concat())).collect();
    for pattern in [
        "^a",
        "a$",
        r"\Aa",
        r"a\z",
        "(?m)^a",
        "(?m)a$",
        "(?mR)^a",
        "(?mR)a$",
        "(?mR)^$",
        "(?m)^$",
        "^$",
        "(?mR)^",
        "(?mR)$",
        "(?mR)^\n",
        "(?mR)\r$",
        "(?mR)\n^",
        "(?m)b$",
        "(?m)b\n^",
        "(?s)a.*b",
        "a.*b",
        r"\b",
        r"\B",
        r"\bé\b",
        r"(?-u:\xc3)$",
        r"^(?-u:\xa9)",
        "é",
        "[^a]",
        r"\W$",
        r"^\s*$",
        r"\x00",
        "a\nb?",
    ] {
        check_program(pattern, &rows);
        check_marked(pattern, &rows);
    }
}

// --- boundaries

#[test]
fn matches_cross_every_boundary() {
    let lengths = [1, 2, 3, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1100];
    let boundaries = [64, 512, 1024, 4096, 8192, 16384];
    let patterns = ["xa*y", "x(?:a|bc)*y", "xa{1,1100}y", r"\bx\w*y\b", "^x[^b]*y$"];
    for pattern in patterns {
        let program = compile(&parse(pattern), &options(b'\n')).unwrap();
        let scanners: Vec<Scanner> =
            kernels().map(|kernel| Scanner::with_kernel(&program, kernel).unwrap()).collect();
        for boundary in boundaries {
            for length in lengths {
                for before in [0, 1, length / 2, length, length + 1] {
                    let Some(start) = usize::checked_sub(boundary, before) else { continue };
                    let mut text = vec![b'\n'; start];
                    text.push(b'x');
                    text.extend(std::iter::repeat_n(b'a', length));
                    text.extend_from_slice(b"y\nxay");
                    let ends = [start + length + 2, start + length + 6];
                    for scanner in &scanners {
                        let what = format!("{pattern}, {length} at {start}, {}", scanner.kernel().name());
                        assert_eq!(line_ends(scanner, &text), ends, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn characters_cross_every_boundary() {
    for pattern in [r"\p{Lu}\w+ \p{Lu}\w+", "Я", r"\bяя\b", "[漢字]+x", "😀.😀", r"\W\w{5}\W", r"(?i)ПРИВЕТ"]
    {
        for boundary in [64, 512, 8192] {
            for before in 0..12 {
                let mut text = vec![b' '; boundary - before];
                text.extend_from_slice("Яя Ёж 漢字x привет яя 😀漢😀\nяяя\n".as_bytes());
                text.extend_from_slice(&[b'.'; 700]);
                check(pattern, &text, b'\n');
            }
        }
    }
}

#[test]
fn one_letter_for_sixteen_megabytes() {
    let text = vec![b'a'; 16 << 20];
    for (pattern, expected) in [("a*b", 0), ("a*$", 1), ("^a*$", 1), ("^(?:aa)*b", 0)] {
        let program = compile(&parse(pattern), &options(b'\n')).unwrap();
        // Loops over a run this long are the slow side's worst case: a smaller part will do.
        let text = if pattern.contains("(?:") { &text[..1 << 14] } else { &text[..] };
        for kernel in kernels() {
            assert_eq!(
                Scanner::with_kernel(&program, kernel).unwrap().count_lines(text),
                expected,
                "{pattern}"
            );
        }
    }
}

#[test]
fn ends_of_texts() {
    for text in
        [&b""[..], b"\n", b"a", b"a\n", b"\n\n", b"b\na", b"\0", b"a\0b", b"a\r\nb\r\n", b"\xff", b"a\xff\n"]
    {
        for pattern in ["", "a", "^$", "$", "^", "a$", "[^b]", r"\b", r"\B", "(?-u:.)", "."] {
            check(pattern, text, b'\n');
            check(pattern, text, 0);
        }
    }
    // Continuation bytes too many, over which the crate's backward decoder steps.
    for text in [
        &b"x\xa9c"[..],
        b"x\xa9\xa9c",
        b"x\xa9\xa9\xa9c",
        b"x\xa9\xa9\xa9\xa9c",
        b"\xa9c",
        b"\xc3\xa9\xa9\xa9c",
        b"\xc3\xa9\xa9\xa9\xa9c",
        b"-\xa9c",
    ] {
        for pattern in [r"\bc", r"\Bc", r"\b{start-half}c", r"\b{start}c", r"(?-u:\xa9)\b$"] {
            check(pattern, text, b'\n');
        }
    }
    for length in [511, 512, 513, 8191, 8192, 8193, 16384] {
        let mut text = vec![b'x'; length];
        check("x$", &text, b'\n');
        check("^x+$", &text, b'\n');
        text[length - 1] = b'\n';
        check("x$", &text, b'\n');
    }
}

#[test]
fn pieces_are_as_good_as_the_whole() {
    let line = "some words, and more of them; Ωμέγα\n";
    let text = line.repeat(2000);
    let program = compile(&parse(r"[a-z]+ \w+;.*α$"), &options(b'\n')).unwrap();
    for kernel in kernels() {
        let scanner = Scanner::with_kernel(&program, kernel).unwrap();
        let mut count = 0;
        let mut scan = scanner.scan();
        let (first, rest) = text.as_bytes().split_at(3 * lightfoot_pattern::transpose::CHUNK_BYTES);
        let mut add = |_: usize, ends: &[u64]| {
            count += ends.iter().map(|word| word.count_ones()).sum::<u32>();
            ControlFlow::Continue(())
        };
        assert!(scan.feed(first, &mut add).is_continue() && scan.finish(rest, &mut add).is_continue());
        assert_eq!(count, 2000, "{}", kernel.name());
    }
}

#[test]
fn one_line_of_a_gigabyte_needs_no_more_memory_than_a_short_one() {
    let piece = b"all work and no play ".repeat(lightfoot_pattern::transpose::CHUNK_BYTES * 8);
    let program = compile(&parse(r"^all .* 7 times$"), &options(b'\n')).unwrap();
    let scanner = Scanner::new(&program);
    let (mut count, mut bytes) = (0, 0);
    let mut add = |_: usize, ends: &[u64]| {
        count += ends.iter().map(|word| word.count_ones()).sum::<u32>();
        ControlFlow::Continue(())
    };
    let mut scan = scanner.scan();
    while bytes < 1 << 30 {
        assert!(scan.feed(&piece, &mut add).is_continue());
        bytes += piece.len();
    }
    assert!(scan.finish(b"or 7 times", &mut add).is_continue());
    assert_eq!(count, 1);
}

/// In CRLF mode `^` and `$` look at two bytes, so the whole text is searched and each match counted
/// for the line that it starts in.
#[test]
fn crlf_anchors_are_those_of_the_whole_text() {
    let text = b"a\r\nb\nc\rd\r\n\r\n\nab\r\r\n\rb\n";
    for pattern in [
        "(?mR)a$",
        "(?mR)b$",
        "(?mR)c$",
        "(?mR)^b",
        "(?mR)^d",
        "(?mR)^$",
        "(?mR)^[a-d]+$",
        "(?mR)^.$",
        "(?mR)$",
    ] {
        let starts: Vec<usize> = regex(pattern, b'\n').find_iter(text).map(|found| found.start()).collect();
        let mut ends: Vec<usize> = starts
            .iter()
            .filter_map(|&start| {
                text[start..].iter().position(|&byte| byte == b'\n').map(|length| start + length)
            })
            .collect();
        ends.dedup();
        let program = compile(&parse(pattern), &options(b'\n')).unwrap();
        check_kernels(&program, text, &ends, pattern);
    }
}

#[test]
fn limits_are_kept() {
    let hir = parse("x(?:a{0,100}b?){0,100}y");
    assert!(compile(&hir, &options(b'\n')).is_ok());
    let small = CompileOptions { operations: 500, ..CompileOptions::default() };
    assert_eq!(compile(&hir, &small), Err(CompileError::TooLarge { limit: 500 }));
    check("(?:a{0,100}){0,100}", b"a\n\nb", b'\n');
    check("^(?:a{0,100}){0,100}$", b"aaaa\n\nb\naab", b'\n');
}
