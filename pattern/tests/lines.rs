//! Every engine of the plan against the `regex` crate, line by line: which lines match, how many,
//! and all spans.

mod truth;

use lightfoot_pattern::plan::ENGINES;
use lightfoot_pattern::regex::{Boundary, Case, Options, RegexBuilder, RegexSet, Scratch, Terminator};
use lightfoot_pattern::Regex;
use proptest::prelude::*;
use std::ops::{ControlFlow, Range};
use truth::{lines, naive};

/// The next match, asked for one by one in a text that is long enough to be passed over, is the one
/// that the `regex` crate finds in the lines.
#[test]
fn single_matches_of_long_texts_are_those_of_their_lines() {
    let filler = "zz zzz\n".repeat(5_000);
    let some = "ab cd é\nÉab Ab b\n\nfoo aab\n";
    let text = [some, &filler, some, "aaab", &filler, "b ", some, &filler, "é ab"].concat();
    let text = text.as_bytes();
    for pattern in PATTERNS {
        let regex = Regex::new(pattern).unwrap();
        if regex.can_be_empty() {
            continue;
        }
        let (_, spans) = naive(pattern, text);
        let (mut at, mut found) = (0, Vec::new());
        while let Some(next) = regex.find_at(text, at) {
            at = next.end;
            found.push(next);
        }
        assert_eq!(found, spans, "{pattern:?}");
        for line in lightfoot_pattern::line::each(text, b'\n').step_by(97) {
            let expected = spans.iter().find(|span| span.start >= line.start);
            assert_eq!(regex.find_at(text, line.start).as_ref(), expected, "{pattern:?} {line:?}");
        }
    }
}

/// Holds all engines against the truth, the planned one included.
fn check(pattern: &str, text: &[u8]) {
    let (expected, spans) = naive(pattern, text);
    let planned = Regex::new(pattern).unwrap();
    let forced = ENGINES.iter().map(|kind| RegexBuilder::new().engine(kind.name).build(pattern).unwrap());
    for regex in forced.chain([planned]) {
        let engine = regex.engine();
        assert_eq!(lines(&regex, text), expected, "{pattern:?} by {engine}");
        assert_eq!(regex.count_lines(text), expected.len() as u64, "{pattern:?} by {engine}");
        assert_eq!(regex.is_match(text), !expected.is_empty(), "{pattern:?} by {engine}");
        let mut first = Vec::new();
        while let Some(line) =
            regex.first_line(&text[first.last().map_or(0, |line: &Range<usize>| line.end)..])
        {
            let base = first.last().map_or(0, |line: &Range<usize>| line.end);
            first.push(base + line.start..base + line.end);
        }
        assert_eq!(first, expected, "{pattern:?} by {engine}, one by one");
        let (mut ends, mut at) = (Vec::new(), 0);
        while let Some(end) = regex.first_line_end(&text[at..]) {
            at += end;
            ends.push(at);
        }
        let expected_ends: Vec<usize> = expected.iter().map(|line| line.end).collect();
        assert_eq!(ends, expected_ends, "{pattern:?} by {engine}, ends alone");
        assert_eq!(regex.find_iter(text).collect::<Vec<_>>(), spans, "{pattern:?} by {engine}");
        let mut each = Vec::new();
        if regex
            .each_match(text, &mut Scratch::default(), &mut |spans| each.extend_from_slice(spans))
            .is_some()
        {
            assert_eq!(each, spans, "{pattern:?}, starts from bits");
        }
    }
}

const PATTERNS: &[&str] = &[
    "a",
    "ab",
    " ",
    "[a-c]+b",
    "a*",
    "",
    "^a",
    "b$",
    "^$",
    r"\bab\b",
    r"\w+ \w+",
    r"a{2,3}b",
    "ab|cd|é",
    r"\p{Lu}\w*",
    "é+",
    r"(?i)Ab",
    "(a|b)*c",
    ".",
    r"[^a]b",
    r"\s+$",
    r"\Bb",
    r"(?-u:\xC3)(?:ß)*[^a]",
    "foo|bar|bazaar|quux|corge",
    "(?i)foo|kab|asb|a b|b a",
    "[ax]b|[bk]\u{212a}|abc",
    r"[0-9]{1,3}(\.[0-9]{1,3}){3}",
    r"(ab)+\b.",
    r"\w*ab\b",
    r"^[a-c]+ab.?$",
    r"[é-ü]t\w*é\b|tt",
    r"\p{Lu}?té\b",
];

#[test]
fn engines_agree_on_small_texts() {
    let texts: &[&[u8]] = &[
        b"",
        b"\n",
        b"a",
        b"ab\n",
        b"\n\n",
        b"ab\ncd\n",
        b"x ab y\nAB\n\naab b",
        b"a\r\nb\r\n",
        b"\xff\xfea\n\xc3",
        "é ÉA été\n".as_bytes(),
        b"1.2.3.4\n300.1\nabab.\n",
        b"a\0b\n\0\n",
        "x \u{212a}Ab \na\u{17f}B\nka\nb\u{212a}\n".as_bytes(),
        b"\xc3\x9fc\n\xc3\xc3\x9fb\n",
    ];
    for pattern in PATTERNS {
        for text in texts {
            check(pattern, text);
        }
    }
}

/// Patterns whose lines of ASCII have a program of their own, with gaps and stars of runs.
const TWINS: &[&str] = &[
    r"if.{0,30}return",
    r"if.{3,9}r",
    r"\b\w{6}\b",
    r"\w+ing\b",
    r"^(\w+ )+\w+$",
    r"(\w+,)*x",
    r"x(\w+ )*y",
    r"[^a]{2,9}z",
    r"é.{0,5}a",
    r"\Bb",
    r".{20}x",
    r"(?i)k\b",
    r"[[:^alpha:]]{3}|été",
    r"(.+ )*if",
];

#[test]
fn lines_of_ascii_and_others_follow_each_other_in_every_way() {
    let ascii = "if (ab) return x;\nsinging in, x\nwe all sing\nab cd ef\n\nx ab cd y\nif no\n";
    let others = "if (é) return x;\nété été\nnaïve singing\nça va, x\n中华人民 xx zz\nK\u{212a} b\n";
    let broken: &[u8] = b"if \xff return\n\xc3\xa9\xc3 b\nab\x80cd ing\n";
    let long = "sing if (a, b) ".repeat(1200);
    let joined = |parts: &[&[u8]]| parts.concat();
    let [a, o] = [ascii.as_bytes(), others.as_bytes()];
    let texts = [
        joined(&[a, o, broken]),
        joined(&[&a.repeat(9), o, &a.repeat(9), broken, a]),
        joined(&[&a.repeat(300), o, &a.repeat(300), &o.repeat(120), a]),
        joined(&[long.as_bytes(), "é return\n".as_bytes(), a, long.as_bytes(), b"\n", o]),
        joined(&[&a.repeat(240), long.as_bytes(), "return é".as_bytes()]),
        joined(&[&o.repeat(60), long.as_bytes()]),
        joined(&[&[a, o].concat().repeat(40), b"if return"]),
    ];
    for pattern in TWINS {
        for text in &texts {
            check(pattern, text);
        }
    }
}

#[test]
fn gaps_and_stars_of_runs_are_those_of_the_automaton() {
    let mut seed = 22u64;
    let mut text = Vec::new();
    for _ in 0..3000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(b"aab  c,,\nd"[(seed >> 33) as usize % 10]);
    }
    for pattern in [
        "a.{0,3}b",
        "a.{2,7}c",
        "a[^c]{0,64}d",
        "d[a ]{1,100}b",
        "c.{0,200}d",
        "(a+b)*c",
        "^(a+ )*b",
        "(?:[ab]+,)+c",
        "c(?:a+b)*$",
        "(a+a)*b",
        "((a+b)*c)*d",
        "(?:,(?:a+b)*)+c",
    ] {
        check(pattern, &text);
    }
}

#[test]
fn matches_of_any_length_are_found_across_all_boundaries() {
    for length in [1, 2, 63, 64, 65, 511, 512, 513, 1100] {
        for boundary in [64, 512, 4096, 8192, 16384] {
            for back in [0, 1, length / 2, length] {
                let before = boundary - back.min(boundary - 1);
                let text = [&b"x".repeat(before)[..], &b"a".repeat(length), b"\nxx\n"].concat();
                let pattern = format!("xa{{{length}}}$");
                let regex = RegexBuilder::new().engine("streams").build(&pattern).unwrap();
                assert_eq!(regex.count_lines(&text), 1, "{length} at {before}");
                assert_eq!(
                    lines(&regex, &text),
                    std::slice::from_ref(&(0..before + length + 1)),
                    "{length} at {before}"
                );
            }
        }
    }
}

#[test]
fn one_long_line_of_one_letter_takes_linear_time() {
    let mut text = b"a".repeat(4 << 20);
    let regex = Regex::new("a*b").unwrap();
    assert_eq!(regex.count_lines(&text), 0);
    text.push(b'b');
    assert_eq!(lines(&regex, &text), std::slice::from_ref(&(0..text.len())));
}

#[test]
fn a_dense_string_is_searched_by_both_engines_in_one_text() {
    let text = [&b"a b c\nd\n".repeat(9000)[..], b" "].concat();
    check(" ", &text);
    check("x*a b", &text);
}

/// Spans by marks of a text of some pieces' length, against the truth.
#[test]
fn lines_with_a_required_string_are_confirmed_in_groups() {
    // Sparse enough for the search not to be given up, many enough for a program to confirm them.
    let mut text = Vec::new();
    for number in 0..6000 {
        text.extend_from_slice(format!("{}\n", "-+ ".repeat(400)).as_bytes());
        let line: String = match number % 7 {
            0 => format!("a{number}qx://b{number}"),
            1 => "://".into(),
            2 => format!("é://{}", "b".repeat(number % 200)),
            3 => format!("ab:// xx://{number} ://"),
            4 => "x://y".into(),
            5 => "\n a://b\n".into(),
            _ => format!(" ://c{number} é"),
        };
        text.extend_from_slice(format!("{line}\n").as_bytes());
    }
    text.truncate(text.len() - 1);
    for pattern in
        ["[a-z]+[0-9]*q?[a-z]://[^ ]", r"\w://\w+$", "^[a-f]*[ x]*://[^:]*$", r"[a-z]+://.*[a-z]://[0-9]"]
    {
        let (expected, _) = naive(pattern, &text);
        let regex = RegexBuilder::new().engine("required").build(pattern).unwrap();
        for pass in 0..3 {
            assert_eq!(lines(&regex, &text), expected, "{pattern} in pass {pass}");
            assert_eq!(regex.count_lines(&text), expected.len() as u64);
        }
        assert!(regex.is_match(&text));
        let stops = regex.matching_lines(&text, |line| match line == expected[100] {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert!(stops.is_break());
    }
}

/// What stands beside a string is decided by its bytes, or by the automaton beside characters
/// beyond ASCII: where the string is rare, and where it is dense.
#[test]
fn strings_between_words_are_those_of_regex() {
    let mut seed = 76_u64;
    let pieces = ["ing", "ing", " ", "_", "\n", "é", "—", "x", "ing ", ">ing", "7", "\r\n", "\u{301}"];
    for fill in [0, 3000] {
        let mut text = Vec::new();
        while text.len() < 300_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let roll = (seed >> 33) as usize;
            text.extend_from_slice(pieces[roll % pieces.len()].as_bytes());
            text.extend_from_slice(
                " - \n".repeat(if roll.is_multiple_of(5) { fill / 4 } else { 0 }).as_bytes(),
            );
        }
        for pattern in [
            r"\bing\b",
            r"\bing",
            r"ing\b",
            r"\b{start-half}ing\b{end-half}",
            r"\b{start}ing\b{end}",
            r"(?-u)\bing\b",
            r"\b{start-half}>ing\b{end-half}",
            r"\b>ing\b",
            r"\Bing\b",
        ] {
            check(pattern, &text);
        }
    }
}

fn check_each_match(pattern: &str, text: &[u8]) {
    let regex = Regex::new(pattern).unwrap();
    let mut each = Vec::new();
    let mut scratch = Scratch::default();
    // The scratch memory of another text must not show.
    regex.each_match(&b"abing ing\n".repeat(99), &mut scratch, &mut |_| ());
    assert!(
        regex.each_match(text, &mut scratch, &mut |spans| each.extend_from_slice(spans)).is_some(),
        "{pattern} has no marks"
    );
    assert_eq!(each, naive(pattern, text).1, "{pattern}");
}

#[test]
fn all_matches_of_long_texts_are_those_of_regex() {
    let mut seed = 7_u64;
    let pieces = [
        "sing", "ing", "a", "being ", " ", "\n", "b_ing", "x1", "Éting", "ingé", "Über", "\u{2014}", "\n",
        "42 ",
    ];
    let rare = ["\u{1f600}ing ", "\r\n", "ab", "the end of", "THE", "漢字"];
    for length in [1000, 70_000, 300_000] {
        for rarity in [1, 40] {
            let mut text = Vec::new();
            while text.len() < length {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let roll = (seed >> 33) as usize;
                let family = if roll.is_multiple_of(rarity) { &rare[..] } else { &pieces[..8] };
                let family = if rarity == 1 && !roll.is_multiple_of(3) { &pieces[..] } else { family };
                text.extend_from_slice(family[roll / 64 % family.len()].as_bytes());
            }
            for pattern in [
                r"[a-z]+ing\b",
                r"[a-z]+ing",
                r"\w+",
                r"\b\w{2,4}\b",
                "ing",
                "(?i)the|ing|a b",
                r"^\w+",
                r"\S+$",
                r"[a-z]+?ing",
                r"a.*g",
                r"\w+\s\w+",
                "[^ab]{3}",
                r"\B\w\B",
                "é|ing|Ü",
                r"\d+",
                r"(?:a|being |x1)+",
                r"\p{Lu}\w*",
                r".",
                r"\b\w{3}\b",
                r"\w{2}\B",
                r"ing[é—]?",
            ] {
                check_each_match(pattern, &text);
            }
        }
    }
}

#[test]
fn many_words_are_found() {
    let words: Vec<String> = (0..3000u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let mut text = Vec::new();
    for n in 0..20_000u32 {
        text.extend_from_slice(format!("{:x} {}\n", n.wrapping_mul(2_246_822_519), n % 7).as_bytes());
        if n % 997 == 0 {
            text.extend_from_slice(format!("x{}y\n", words[n as usize % words.len()]).as_bytes());
        }
    }
    for count in [2, 20, 500, 3000] {
        check(&words[..count].join("|"), &text);
        if count < 1000 {
            check(&format!("(?i){}", words[..count].join("|")), &text);
        }
    }
}

#[test]
fn options_change_what_matches() {
    let count = |change: &dyn Fn(&mut Options), patterns: &[&str], text: &str| {
        let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
        RegexBuilder::new().with(change).build_many(&patterns).unwrap().count_lines(text.as_bytes())
    };
    let text = "foo\nFOO bar\nfoobar\na.c\nabc\n";
    assert_eq!(count(&|_| (), &["foo"], text), 2);
    assert_eq!(count(&|o| o.case = Case::Insensitive, &["foo"], text), 3);
    assert_eq!(count(&|o| o.case = Case::Smart, &["foo"], text), 3);
    assert_eq!(count(&|o| o.case = Case::Smart, &["Foo"], text), 0);
    assert_eq!(count(&|o| o.case = Case::Smart, &["foo", "X"], text), 2);
    assert_eq!(count(&|o| o.boundary = Boundary::Word, &["foo"], text), 1);
    assert_eq!(count(&|o| o.boundary = Boundary::Line, &["foo", "ab."], text), 2);
    assert_eq!(count(&|o| o.fixed_strings = true, &["a.c"], text), 1);
    assert_eq!(count(&|o| o.terminator = Terminator::CrLf, &["o$"], "foo\r\nfob\r\n"), 1);
    assert_eq!(count(&|o| o.terminator = Terminator::Nul, &["^b"], "ab\0b\0a\nb\0"), 2);
    assert_eq!(count(&|_| (), &[], text), 0);
}

#[test]
fn groups_of_several_patterns_are_numbered_on() {
    use grep_matcher::{Captures, Matcher};
    let regex = RegexBuilder::new().build_many(&["(a)x".into(), "(b)(c)".into()]).unwrap();
    let mut captures = regex.new_captures().unwrap();
    assert!(regex.captures(b"-bc", &mut captures).unwrap());
    let groups: Vec<_> = (0..4).map(|index| captures.get(index).map(|m| (m.start(), m.end()))).collect();
    assert_eq!(groups, [Some((1, 3)), None, Some((1, 2)), Some((2, 3))]);
}

#[test]
fn a_set_says_which_patterns_match() {
    let set = RegexSet::new(&["a".into(), "b+c".into(), "^z".into()]).unwrap();
    assert_eq!(set.matches(b"xa\nq\n"), [0]);
    assert_eq!(set.matches(b"zbbc\na\n"), [0, 1, 2]);
    assert!(set.matches(b"").is_empty());
    let mut seen = Vec::new();
    let _ = set.matching_lines(b"abc\nx\nz\n", |line, which| {
        seen.push((line, which.to_vec()));
        ControlFlow::Continue(())
    });
    assert_eq!(seen, [(0..4, vec![0, 1]), (6..8, vec![2])]);
}

#[test]
fn what_is_refused_shows_the_place() {
    let said = |pattern: &str| Regex::new(pattern).unwrap_err().to_string();
    assert_eq!(said("ab(c"), "regex parse error:\n    ab(c\n      ^\nerror: unclosed group");
    assert!(said(r"a\nb").contains("    a\\nb\n     ^^\n"), "{}", said(r"a\nb"));
    assert!(said(r"(a)\1").contains("backreferences are not supported"));
    let small = RegexBuilder::new().with(|o| o.size_limit = 1000).build(r"\w{50}").unwrap_err();
    assert_eq!(small.kind, lightfoot_pattern::regex::ErrorKind::TooLarge(1000));
}

#[test]
fn bounded_repetitions_of_bounded_repetitions_are_run_or_refused() {
    match RegexBuilder::new().build("(a{0,100}){0,100}b") {
        Ok(regex) => assert_eq!(regex.count_lines(b"aaab\nc\n"), 1),
        Err(error) => assert!(matches!(error.kind, lightfoot_pattern::regex::ErrorKind::TooLarge(_))),
    }
}

/// Patterns of a small grammar over a few characters.
fn some_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "c", "é", ".", "[ab]", "[^a]", r"\w", r"\s", r"\b", "^", "$", "ab", r"\d", "x",
    ]);
    leaf.prop_map(String::from).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "*?"]))
                .prop_map(|(part, repeat)| format!("(?:{part}){repeat}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn engines_agree_with_regex(pattern in some_pattern(), text in prop::collection::vec(
        prop::sample::select(b"aabbcx 1\n\r\xc3\xa9\xff".to_vec()), 0..200)) {
        check(&pattern, &text);
    }
}
