//! Candidates for PCRE2: no line that PCRE2 matches is lost, with the patterns that people write
//! and with random ones.

use grep_matcher::Matcher;
use grep_pcre2::{RegexMatcher, RegexMatcherBuilder};
use lightfoot_pattern::regex::{Case, Options};
use lightfoot_pattern::superset::{superset, Candidates};
use proptest::prelude::*;

fn exact(pattern: &str, case: Case) -> Result<RegexMatcher, grep_pcre2::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).utf(true).ucp(true).caseless(case == Case::Insensitive).build(pattern)
}

fn options(case: Case) -> Options {
    let mut options = Options::default();
    options.case = case;
    options
}

/// Compares the count of candidates that are confirmed with that of all lines; whether there was a
/// superset.
fn check(pattern: &str, case: Case, text: &[u8]) -> bool {
    let exact = exact(pattern, case).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let superset = superset(&[pattern.to_string()], &options(case));
    let has_superset = superset.is_some();
    let expected = Candidates::new(exact.clone(), None).count_lines(text).unwrap();
    let shown = superset.as_ref().map(|regex| regex.hir().to_string());
    let candidates = Candidates::new(exact, superset);
    assert_eq!(candidates.count_lines(text).unwrap(), expected, "{pattern:?} by {shown:?}");
    let mut by_searcher = 0;
    let mut at = 0;
    while let Some(kind) = candidates.find_candidate_line(&text[at..]).unwrap().filter(|_| has_superset) {
        let (grep_matcher::LineMatchKind::Candidate(start) | grep_matcher::LineMatchKind::Confirmed(start)) =
            kind;
        let line = lightfoot_pattern::line::around(text, at + start, b'\n');
        let content = lightfoot_pattern::line::content(&text[line.clone()], b'\n');
        by_searcher += u64::from(candidates.is_match(&text[line.start..line.start + content]).unwrap());
        at = line.end;
    }
    assert!(!has_superset || by_searcher == expected, "{pattern:?} one by one");
    has_superset
}

const TEXT: &str = "the the cat\nfoo bar\nbarfoo\nFOO\nprice: 12€\nab ba ab\nKelvin \u{212a}elvin\n²x ²\nnaïve naïve\n\
a.b|c [d] {2}\n\tx\u{b}y\nfoobar foobaz\n\nline \"quoted\" 'it''s'\n<b>bold</b> <i>x</b>\nabcabc\nxyzzy\n1999-12-31\n\u{17f}tra\u{df}e\naa\n";

#[test]
fn patterns_of_everyday_keep_all_lines_and_have_a_superset() {
    for pattern in [
        r"(\w+) \1",
        r"\b(\w+)\s+\1\b",
        "foo(?=bar)",
        "foo(?!bar)",
        "(?<=foo)ba[rz]",
        "(?<!x)yz+",
        r"(?<q>['\x22]).*?\k<q>",
        r"<(?P<tag>\w+)>.*?</(?P=tag)>",
        "(?>a+)b",
        "a++b",
        r"foo\Kbar",
        r"^(?=.*foo)(?=.*ba).*r",
        r"\p{Lu}oo",
        r"\d{4}-\d\d",
        r"[^a-z\s]+x",
        r"[[:upper:]]{2}",
        r"[]a]b",
        r"[\]\-a-c]+ b",
        r"\Qa.b|c\E",
        "(?i)kelvin",
        "(?i:f)oo",
        r"x\x0by",
        r"\x{20ac}",
        r"(a)(b)\2\1",
        r"(abc)\g1",
        r"(abc)\g{-1}",
        r"\w²",
        "(?s)the.cat",
        "(?m)^foo$",
        r"a{2}",
        r"b\|c",
        r"\{2}",
        "€|ï",
        "(foo|bar)(?#a comment)ba",
        r"\W\d\W",
        r"\Sx \S",
        r"[\w€]+€",
        r"(\2a|(b))+ ",
        r"[^\W\d]\d",
        r"\h\H\h",
        r"(^a|b).*\1",
    ] {
        assert!(check(pattern, Case::Sensitive, TEXT.as_bytes()), "{pattern} has none");
        check(pattern, Case::Insensitive, TEXT.as_bytes());
    }
}

#[test]
fn what_is_not_understood_or_matches_everywhere_has_none() {
    for pattern in [
        r"(a(?1)?b)",
        "(?R)?a",
        "(?(1)a|b)",
        r"(?|(a)|(b))\1",
        "(*UTF)a",
        r"(?x) a b",
        r"a\Rb",
        "(?=foo)",
        "a*",
        "(?!x)",
        r"\Ga",
        r"\cA",
        r"(?^:a)",
        "a{,3}b",
        r"\07",
        r"\12",
        r"\N{U+41}",
    ] {
        assert!(superset(&[pattern.to_string()], &options(Case::Sensitive)).is_none(), "{pattern}");
    }
    assert!(superset(&["é".into()], &options(Case::Insensitive)).is_some());
    assert!(superset(&["[é]".into()], &options(Case::Insensitive)).is_none());
}

#[test]
fn groups_are_numbered_through_all_patterns() {
    let patterns: Vec<String> = vec!["(xx)z".into(), r"(a)(b)\2".into()];
    let exact = RegexMatcherBuilder::new().utf(true).ucp(true).build_many(&patterns).unwrap();
    let superset = superset(&patterns, &options(Case::Sensitive));
    assert!(superset.is_some());
    assert_eq!(Candidates::new(exact, superset).count_lines(b"abb\naba\nxxz\n").unwrap(), 2);
}

#[test]
fn a_superset_leaves_lines_out() {
    let few = |pattern: &str| {
        let regex = superset(&[pattern.to_string()], &options(Case::Sensitive)).unwrap();
        regex.count_lines(TEXT.as_bytes())
    };
    assert_eq!((few("foo(?=bar)"), few(r"(abc)\1"), few(r"(?<=foo)ba[rz]"), few("(?<!x)yz+")), (3, 1, 3, 1));
}

fn some_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "k",
        "K",
        "é",
        " ",
        ".",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        r"\b",
        r"\B",
        "^",
        "$",
        "[ab]",
        "[^a]",
        r"[^\w]",
        "[a-k]",
        r"\p{L}",
        r"[^\Wa]",
        r"\h",
        "[[:alpha:]]",
        "[[:^punct:]]",
        r"\x6b",
        "s",
        "²",
        "ſ",
    ]);
    leaf.prop_map(String::from).prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner.clone(), prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "*?", "++"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            2 => (inner.clone(), prop::sample::select(vec!["(?=", "(?!", "(?>", "(", "(?i:", "(?-i:"]))
                .prop_map(|(part, open)| format!("{open}{part})")),
            1 => (inner.clone(), inner).prop_map(|(group, between)| format!(r"({group}){between}\1")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1997),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_line_is_lost(
        pattern in some_pattern(),
        pieces in prop::collection::vec(prop::sample::select(vec![
            &b"a"[..], b"b", b"k", b"K", b"s", b" ", b"\t", b"1", b"-", b"\n", b"\n", b"\n", b"\r",
            "é".as_bytes(), "²".as_bytes(), "\u{212a}".as_bytes(), "ſ".as_bytes(), "\u{180e}".as_bytes(), b"\xff",
        ]), 0..60),
        folds in any::<bool>(),
    ) {
        let case = if folds { Case::Insensitive } else { Case::Sensitive };
        if exact(&pattern, case).is_ok() {
            check(&pattern, case, &pieces.concat());
        }
    }
}
