//! Holds every kernel against the slow twin, and lines against a search for one word after the
//! other.

use super::*;
use proptest::prelude::*;
use regex_automata::meta;
use std::ops::Range;

fn list(words: &[String], case: &str) -> List {
    let escaped: Vec<String> = words.iter().map(|word| regex_syntax::escape(word)).collect();
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    List::of(&parser.parse(&format!("{case}(?:{})", escaped.join("|"))).unwrap(), usize::MAX).unwrap()
}

fn kernels() -> impl Iterator<Item = &'static MarkKernel> {
    KERNELS.iter().filter(|kernel| (kernel.is_available)())
}

/// The kernels as they are where words are many, which look at every second position.
fn halving() -> impl Iterator<Item = &'static MarkKernel> {
    let halving = |kernel: &MarkKernel| &*Box::leak(Box::new(MarkKernel { most_in_registers: 0, ..*kernel }));
    kernels().map(halving)
}

fn some_words(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("wK{}", number.wrapping_mul(2_654_435_761) % 99_991)).collect()
}

fn some_text() -> Vec<u8> {
    (0..60_000u32).flat_map(|n| format!("{n} wk{} Wk{}\n", n * 7 % 99_991, n % 1000).into_bytes()).collect()
}

#[test]
fn every_kernel_marks_what_the_slow_twin_marks() {
    let text = some_text();
    // Words of three bytes have one window each, however many there are.
    let long: Vec<String> = some_words(3000).into_iter().filter(|word| word.len() > 4).collect();
    for (case, words) in [("", &long), ("(?i-u)", &long), ("", &some_words(2500))] {
        for count in [1, 20, 60, 61, 64, 65, 500, 1200, 1201, 2500] {
            let list = list(&words[..count], case);
            for kernel in kernels() {
                let index = Index::new(&list, &text[..50_000], kernel.most_in_registers);
                let is_halved =
                    count > kernel.most_in_registers && words[..count].iter().all(|word| word.len() > 4);
                assert_eq!(index.tables.step, if is_halved { 2 } else { 1 });
                for from in [0, 1, 4097] {
                    let place = from..from + CHUNK_BYTES;
                    let (mut marks, mut expected) = ([0; CHUNK_BYTES + 64], [0; CHUNK_BYTES + 64]);
                    let found = (kernel.mark)(&index.tables, &text, place.start, place.end, &mut marks);
                    let expected = match kernel.name {
                        "avx2" => marked_without_filters(&index.tables, &text, place),
                        _ => {
                            let number =
                                scalar::mark(&index.tables, &text, place.start, place.end, &mut expected);
                            expected[..number].to_vec()
                        }
                    };
                    assert_eq!(marks[..found], expected, "{} of {count} from {from}", kernel.name);
                }
            }
        }
    }
}

/// What the kernel without filters marks: windows that pass the bitmaps, and the nibbles if there
/// are any.
fn marked_without_filters(tables: &Tables, text: &[u8], place: Range<usize>) -> Vec<u16> {
    let passes = |&at: &usize| {
        let window = tables.folded(tables::window_at(text, at));
        tables.passes_bitmaps(window) && tables.nibbles.as_ref().is_none_or(|nibbles| nibbles.pass(window))
    };
    let places = place.clone().filter(|at| at.is_multiple_of(tables.step));
    places.filter(passes).map(|at| (at - place.start) as u16).collect()
}

/// Ends of the lines that contain a word, found by searching for each word.
fn naive(list: &List, text: &[u8]) -> Vec<usize> {
    let holds = |line: &[u8]| {
        let stands = |word: &list::Spelling, at: usize| {
            let pairs = word.bytes.iter().zip(&word.folds).enumerate();
            pairs.into_iter().all(|(i, (&b, &fold))| line.get(at + i).is_some_and(|&t| t | fold == b))
        };
        list.words.iter().any(|word| (0..line.len()).any(|at| stands(word, at)))
    };
    line::each(text, b'\n').filter(|line| holds(&text[line.clone()])).map(|line| line.end).collect()
}

fn ends(words: &Words, spans: &Automaton, text: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let _ = words.lines(spans, text, b'\n', Wanted::Lines, &mut |line| {
        ends.push(line.end);
        ControlFlow::Continue(())
    });
    assert_eq!(words.count(spans, text, b'\n'), ends.len() as u64);
    ends
}

#[test]
fn words_are_found_at_both_ends_of_a_text() {
    let spans = Automaton::from(meta::Regex::new("needle|pin").unwrap());
    for kernel in kernels() {
        let words = ["needle".to_string(), "pin".to_string()];
        let search = Words::with_kernel(list(&words, ""), kernel).unwrap();
        for length in [0, 1, 100, 127, 128, 200, 4096, 5000, 9000] {
            let text =
                [&b"pin"[..], &b"-".repeat(length), b"\n", &b"x\n".repeat(length), b"needl\nneedle"].concat();
            assert_eq!(ends(&search, &spans, &text), [length + 4, text.len()], "{} {length}", kernel.name);
        }
    }
}

#[test]
fn long_forms_of_letters_are_asked_of_the_automaton() {
    let words = ["kelvin".to_string(), "mass".to_string(), "unit".to_string()];
    let spans = Automaton::from(meta::Regex::new("(?i)kelvin|mass|unit").unwrap());
    let line = "é Ｋ; \u{212a} elvin\n".repeat(300);
    let text = format!("{line}\u{212a}ELVIN\n{line}ma\u{17f}S{line}Unit\u{17f}");
    let expected: Vec<usize> = line::each(text.as_bytes(), b'\n')
        .filter(|line| spans.is_match(&text[line.clone()]))
        .map(|line| line.end)
        .collect();
    assert_eq!(expected.len(), 3);
    for kernel in kernels() {
        let search = Words::with_kernel(list(&words, "(?i)"), kernel).unwrap();
        assert!(search.list.has_long_forms);
        assert_eq!(ends(&search, &spans, text.as_bytes()), expected, "{}", kernel.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2019),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn lines_are_those_that_contain_a_word(
        words in prop::collection::vec("[abAB]{2,5}|[a-d]{2,20}|[é-]a[bB]", 1..90),
        shortest in 1usize..7,
        pieces in prop::collection::vec("[abABcdé \n-]{0,40}", 0..80),
        times in 1usize..12,
        folds in any::<bool>(),
    ) {
        let text = pieces.concat().repeat(times).into_bytes();
        // Long words have two windows each where they are many.
        let words: Vec<String> = words.into_iter().filter(|word| word.len() >= shortest).collect();
        prop_assume!(!words.is_empty());
        let list = list(&words, if folds { "(?i-u)" } else { "" });
        let expected = naive(&list, &text);
        let spans = Automaton::from(meta::Regex::new("never asked").unwrap());
        for kernel in kernels().chain(halving()) {
            let search = Words::with_kernel(list.clone(), kernel).unwrap();
            prop_assert_eq!(&ends(&search, &spans, &text), &expected, "{}", kernel.name);
        }
    }
}
