use super::super::arguments::{Around, Case, Mode, Output};
use super::*;
use std::collections::HashSet;

fn parsed(line: &str) -> Arguments {
    parse(line.split_whitespace().map(OsString::from)).unwrap()
}

fn refused(line: &str) -> String {
    format!("{:#}", parse(line.split_whitespace().map(OsString::from)).unwrap_err())
}

#[test]
fn names_are_unique_and_abouts_are_sentences() {
    let mut names = HashSet::new();
    for flag in all() {
        let longs = flag.aliases.iter().copied().chain([flag.long]).chain(flag.negated);
        for name in longs.map(String::from).chain(flag.short.map(String::from)) {
            assert!(names.insert(name.clone()), "{name} twice");
        }
        assert!(flag.about.ends_with('.'), "{}", flag.long);
    }
}

#[test]
fn groups_are_in_order() {
    for group in FLAGS {
        let names: Vec<_> = group.flags.iter().map(|flag| flag.long.trim_start_matches("no-")).collect();
        assert!(!names.is_empty(), "{}", group.title);
    }
}

#[test]
fn the_last_flag_wins() {
    assert_eq!(parsed("-i -s").case, Case::Sensitive);
    assert_eq!(parsed("-s -iS").case, Case::Smart);
    assert_eq!(parsed("-c -l").mode, Mode::Search(Output::Paths));
    assert_eq!(parsed("--files -c").mode, Mode::Files);
    assert!(!parsed("--hidden --no-hidden").hidden);
    assert!(!parsed("--crlf --null-data").crlf);
}

#[test]
fn context_flags_combine_and_take_passthru_back() {
    assert_eq!(parsed("-C3 -A1").around.lines(), (3, 1));
    assert_eq!(parsed("--passthru -B2").around, Around { before: Some(2), ..Around::default() });
}

#[test]
fn values_may_be_attached() {
    assert_eq!(parsed("-j4").threads, Some(4));
    assert_eq!(parsed("--max-filesize=2M").max_filesize, Some(2 << 20));
    assert_eq!(parsed("-m 3 a b").positional.len(), 2);
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(refused("--hiden"), "unrecognized flag --hiden: did you mean --hidden or --no-hidden?");
    assert_eq!(
        refused("-C x"),
        "error parsing flag -C: \"x\" is not a number that fits: invalid digit found in string"
    );
    assert!(refused("--color=blue").contains("never, auto, always or ansi"));
    assert!(refused("-e").contains("missing value for flag -e"));
    assert!(refused("-uuuu").contains("at most three times"));
}
