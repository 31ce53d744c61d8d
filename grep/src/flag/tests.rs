use super::entry::Paths;
use super::*;
use crate::arguments::{Around, Case, Mode, Output};
use std::collections::HashSet;

fn parsed(line: &str) -> Arguments {
    parse(FLAGS, line.split_whitespace().map(OsString::from)).unwrap()
}

fn refused(line: &str) -> String {
    format!("{:#}", parse(FLAGS, line.split_whitespace().map(OsString::from)).unwrap_err())
}

#[test]
fn names_are_unique_and_abouts_are_sentences() {
    let mut names = HashSet::new();
    for flag in all(FLAGS) {
        let longs = flag.aliases.iter().copied().chain([flag.long]).chain(flag.negated);
        for name in longs.map(String::from).chain(flag.short.map(String::from)) {
            assert!(names.insert(name.clone()), "{name} twice");
        }
        assert!(flag.about.ends_with('.'), "{}", flag.long);
    }
}

#[test]
fn a_flag_stands_in_one_group_once() {
    let mut names = std::collections::BTreeSet::new();
    for group in FLAGS {
        assert!(!group.flags.is_empty(), "{}", group.title);
        for flag in group.flags {
            assert!(names.insert(flag.long), "--{} stands there twice", flag.long);
        }
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

/// Settings of a search of this file for `x`.
fn settings(groups: &[Group], line: &str) -> Settings {
    let words = line.split_whitespace().chain(["x", file!()]).map(OsString::from);
    Settings::new(parse(groups, words).unwrap()).unwrap()
}

#[test]
fn the_direct_path_takes_what_the_flags_allow() {
    for line in [
        "",
        "-n -i -w",
        "-c",
        "--count-matches -m3",
        "-l0",
        "-o -b",
        "-v --heading",
        "-a -uu -g*.rs",
        "-A1",
        "-B2",
        "-C3",
        "-rx",
        "--column",
        "--color=always",
        "-p",
        "-U",
    ] {
        assert!(direct_implements(FLAGS, &settings(FLAGS, line)), "{line}");
    }
    for line in
        ["-C0", "-U --no-multiline", "--pre=", "-z --no-search-zip", "--trim --no-trim", "--color=never"]
    {
        assert!(direct_implements(FLAGS, &settings(FLAGS, line)), "{line} changes nothing");
    }
    for line in [
        "-C3 -m2",
        "--passthru",
        "--crlf",
        "--null-data",
        "--pre=cat",
        "-z",
        "--stats",
        "--stop-on-nonmatch",
        "--trim",
        "-M80",
        "--vimgrep",
        "--json",
        "--hyperlink-format=file://{path}",
        "--path-separator=+",
        "-Elatin1",
        "-P",
    ] {
        assert!(!direct_implements(FLAGS, &settings(FLAGS, line)), "{line}");
    }
}

/// A flag needs only an entry. This one stands in a table of its own, beside the others.
const SHOUT: &[Flag] =
    &[Flag::switch("shout", Paths::General, "Print lines in capitals.", |arguments, given| {
        arguments.trim = given.on();
        Ok(())
    })
    .short('!')
    .negated("no-shout")];

#[test]
fn a_new_flag_is_one_entry() {
    let groups = [Group { title: "More", flags: SHOUT }, Group { title: "Search", flags: search::FLAGS }];
    assert!(!settings(&groups, "").arguments.trim && settings(&groups, "--shout").arguments.trim);
    assert!(!settings(&groups, "-! --no-shout").arguments.trim);
    // The direct path does not know it.
    assert!(direct_implements(&groups, &settings(&groups, "-a")));
    assert!(!direct_implements(&groups, &settings(&groups, "-a --shout")));
    assert!(!direct_implements(FLAGS, &settings(&groups, "--shout")), "a flag that is not in the table");
    let help = crate::help::long(&groups, "seek") + &crate::help::short(&groups, "seek");
    assert_eq!(help.matches("-!, --shout").count(), 2, "{help}");
    let page = crate::help::command_help(&groups, &["seek"]);
    let manual = present::manual::manual(&page, &page, "1.0");
    assert!(manual.contains("\\-\\-shout") && manual.contains("SEEK 1"), "{manual}");
    for shell in present::completion::Shell::ALL {
        assert!(present::completion::script(&page, shell).contains("shout"), "{shell:?}");
    }
}
