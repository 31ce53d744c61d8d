//! Completions and manual pages, held against what `--help` prints and against the shells
//! themselves.
//!
//! Help is clap's (and `grep`'s own) rendering of the command line, so it is an account of the
//! options that is independent of the table that scripts and pages come from. A shell that is not
//! installed is said and left out.

mod bench;

use bench::{lightfoot, Bench};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// All commands that can be seen.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["count"],
    &["cache"],
    &["heap"],
    &["valgrind"],
    &["bench"],
    &["diff"],
    &["merge"],
    &["instrument"],
    &["new-tool"],
    &["tool"],
    &["trace"],
    &["show"],
    &["align"],
    &["perturb"],
    &["plan"],
    &["grep"],
    &["index"],
    &["index", "build"],
    &["index", "query"],
    &["index", "inspect"],
    &["study"],
    &["doctor"],
    &["machines"],
    &["completions"],
    &["man"],
    &["tile"],
];

fn output(words: &[&str]) -> String {
    let ran = lightfoot().args(words).run();
    ran.ends_with(0);
    String::from_utf8(ran.stdout).unwrap()
}

/// Long options that help lists, at the starts of its lines.
fn options(help: &str) -> BTreeSet<String> {
    let heads = help.lines().filter(|line| line.starts_with("  ") && line.trim_start().starts_with('-'));
    let words =
        heads.flat_map(|line| line.split([' ', ',', '=', '[', '<']).map(str::to_owned).collect::<Vec<_>>());
    words.filter(|word| word.len() > 3 && word.starts_with("--")).collect()
}

#[test]
fn every_option_of_help_is_in_manual_and_scripts() {
    let scripts = ["bash", "zsh", "powershell"].map(|shell| output(&["completions", shell]));
    let fish = output(&["completions", "fish"]);
    for words in COMMANDS {
        let help = output(&[words, &["--help"] as &[_]].concat());
        let manual = output(&[&["man"] as &[_], words].concat()).replace("\\-", "-");
        let options = options(&help);
        assert!(options.contains("--help"), "{words:?}: {options:?}");
        for option in &options {
            assert!(manual.contains(option.as_str()), "manual of {words:?} lacks {option}");
            assert!(scripts.iter().all(|script| script.contains(option.as_str())), "{words:?} {option}");
            assert!(fish.contains(&format!("-l {}", &option[2..])), "{words:?} {option}");
        }
    }
}

#[test]
fn every_command_of_help_has_a_page() {
    let help = output(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What is indented further belongs to the line above.
    let listed = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    for name in listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(COMMANDS.contains(&(&[name] as &[_])), "{name} is not in this test's table");
    }
    lightfoot().args(["man", "no-such-command"]).run().fails_with(2).says("no-such-command").in_one_line();
}

#[test]
fn manual_pages_are_clean() {
    let bench = Bench::new();
    for words in COMMANDS {
        let page = bench.file("page.1", output(&[&["man"] as &[_], words].concat()).as_bytes(), 0o644);
        let Ok(lint) = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&page).output()
        else {
            return eprintln!("skipped: no mandoc");
        };
        assert!(lint.status.success(), "{words:?}: {}", String::from_utf8_lossy(&lint.stdout));
    }
}

/// What a shell offers: `line` is the words before the cursor.
struct Case {
    line: &'static [&'static str],
    offers: &'static str,
}

const CASES: &[Case] = &[
    Case { line: &["cou"], offers: "count" },
    Case { line: &["count", "--follow-ch"], offers: "--follow-children" },
    Case { line: &["count", "--format", "callg"], offers: "callgrind" },
    Case { line: &["cache", "--by", "line", "--machine", "sandy"], offers: "sandy-bridge" },
    Case { line: &["tool", "opcode"], offers: "opcode-mix" },
    Case { line: &["index", "bui"], offers: "build" },
    Case { line: &["index", "build", "--sor"], offers: "--sorted" },
    Case { line: &["grep", "--no-ignore-pa"], offers: "--no-ignore-parent" },
    Case { line: &["study", "search-t"], offers: "search-trees" },
    Case { line: &["man", "pert"], offers: "perturb" },
];

fn script(bench: &Bench, shell: &str) -> std::path::PathBuf {
    bench.file("_lightfoot", output(&["completions", shell]).as_bytes(), 0o644)
}

fn runs(shell: &str) -> bool {
    let found = Command::new(shell).args(["-c", "true"]).output().is_ok_and(|out| out.status.success());
    if !found {
        eprintln!("skipped: no {shell}");
    }
    found
}

fn answer(command: &mut Command) -> String {
    let out = command.env("LC_ALL", "C").output().unwrap();
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn in_bash(script: &Path, line: &[&str]) -> String {
    let program = r#"source "$1"; shift; compopt() { :; }; COMP_WORDS=(lightfoot "$@"); COMP_CWORD=$#; _lightfoot; printf '%s\n' "${COMPREPLY[@]}""#;
    answer(Command::new("bash").args(["--norc", "-c", program, "bash"]).arg(script).args(line))
}

#[test]
fn bash_completes() {
    if !runs("bash") {
        return;
    }
    let bench = Bench::new();
    let script = script(&bench, "bash");
    for case in CASES {
        let found = in_bash(&script, case.line);
        assert!(found.lines().any(|word| word == case.offers), "{:?}: {found}", case.line);
    }
    // With COMP_WORDBREAKS as bash has it, `--by=l` is three words.
    assert_eq!(in_bash(&script, &["count", "--by", "=", "lin"]).trim(), "line");
    // Behind the program its own completions count, not ours.
    for line in [
        &["count", "ls", "--fo"] as &[_],
        &["count", "--", "ls", "--fo"],
        &["tool", "opcode-mix", "ls", "--fo"],
    ] {
        assert!(!in_bash(&script, line).contains("--fo"), "{line:?}");
    }
}

#[test]
fn fish_completes() {
    if !runs("fish") {
        return;
    }
    let bench = Bench::new();
    let script = script(&bench, "fish");
    let home = bench.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let complete = |line: &[&str]| {
        let program = format!("source '{}'; complete -C 'lightfoot {}'", script.display(), line.join(" "));
        answer(Command::new("fish").args(["--no-config", "-c", &program]).env("HOME", &home))
    };
    for case in CASES {
        let found = complete(case.line);
        assert!(
            found.lines().any(|line| line.split('\t').next() == Some(case.offers)),
            "{:?}: {found}",
            case.line
        );
    }
    assert!(!complete(&["count", "ls", "--follow"]).contains("--follow-children"));
}

#[test]
fn zsh_completes() {
    if !runs("zsh") {
        return;
    }
    let bench = Bench::new();
    let script = script(&bench, "zsh");
    // A terminal of its own, in which a tab is pressed behind each line; what is unique is then
    // completed in place. The next key is read when that is done, and shows the line.
    let driver = r#"
        zmodload zsh/zpty || exit 9
        zpty shell zsh -f -i
        zpty -w shell "PS1=; PROMPT_EOL_MARK=; autoload -Uz compinit; compinit -u -D; source ${(q)1}"
        zpty -w shell 'show() { print -r -- "(:$BUFFER:)"; BUFFER= }; zle -N show; bindkey "^G" show; print REA""DY'
        zpty -r shell reply '*READY*'
        shift
        for line; do
            zpty -w -n shell "$line"$'\t\x07'
            zpty -r shell reply '*(:*:)*'
            print -r -- "$reply"
        done
    "#;
    let lines = CASES.iter().map(|case| format!("lightfoot {}", case.line.join(" ")));
    let mut zsh = Command::new("timeout");
    zsh.args(["300", "zsh", "-f", "-c", driver, "zsh"])
        .arg(&script)
        .args(lines)
        .env("TERM", "dumb")
        .env("LC_ALL", "C");
    let out = zsh.output().unwrap();
    if out.status.code() == Some(9) {
        return eprintln!("skipped: no zsh/zpty");
    }
    let shown = String::from_utf8_lossy(&out.stdout);
    for case in CASES {
        assert!(shown.contains(case.offers), "{:?}: {shown}", case.line);
    }
    assert!(!shown.contains("command not found") && !shown.contains("error"), "{shown}");
}
