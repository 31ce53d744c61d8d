//! The search as a program of its own: it has its own name everywhere, and needs nothing of
//! lightfoot's other commands.

use std::path::Path;
use std::process::{Command, Output};

fn search(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-grep"));
    command.args(words).current_dir(folder).env_clear().stdin(std::process::Stdio::null());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn it_finds_lines_and_ends_as_greps_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(folder.path().join("b"), "tree\n").unwrap();
    let found = search(&["-n", "t.*e", "--sort=path", "."], folder.path());
    assert_eq!(text(&found), "./a:3:three\n./b:1:tree\n");
    assert_eq!(found.status.code(), Some(0));
    assert_eq!(search(&["nothing", "."], folder.path()).status.code(), Some(1));
    let wrong = search(&["("], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).starts_with("lightfoot-grep: "), "{wrong:?}");
    let none = search(&[], folder.path());
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("no pattern was given: lightfoot-grep [OPTIONS]"), "{said}");
}

#[test]
fn help_version_manual_and_completions_have_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&search(&["--help"], folder.path()));
    assert!(help.contains("usage: lightfoot-grep [OPTIONS] PATTERN") && !help.contains("lightfoot grep"));
    assert!(text(&search(&["--version"], folder.path())).starts_with("lightfoot-grep "));
    let page = text(&search(&["--generate", "man"], folder.path()));
    assert!(page.starts_with(".TH LIGHTFOOT\\-GREP 1 ") && page.contains("\\-\\-max\\-count"), "{page}");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = text(&search(&["--generate", &format!("complete-{shell}")], folder.path()));
        assert!(script.contains("lightfoot-grep") && script.contains("max-count"), "{shell}: {script}");
        assert!(!script.contains("opcode-mix") && !script.contains("@NAME@"), "{shell}: {script}");
    }
}

#[test]
fn a_link_called_rg_answers_to_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("rg");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lightfoot-grep"), &link).unwrap();
    std::fs::write(folder.path().join("a"), "one\ntwo\n").unwrap();
    let run = |words: &[&str]| Command::new(&link).args(words).current_dir(folder.path()).output().unwrap();
    assert_eq!(text(&run(&["-n", "t.o", "a"])), "2:two\n");
    assert!(String::from_utf8_lossy(&run(&["("]).stderr).starts_with("rg: "));
    assert!(text(&run(&["--help"])).contains("usage: rg [OPTIONS] PATTERN"));
    assert!(text(&run(&["--generate", "complete-bash"])).contains("rg"));
    assert!(text(&run(&["--generate", "man"])).starts_with(".TH RG 1 "));
}

#[test]
fn the_widest_instructions_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "sing\nnothing of it\n".repeat(9000);
    std::fs::write(folder.path().join("a"), &lines).unwrap();
    let run = |vectors: &str, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-grep"));
        command.args(words).current_dir(folder.path()).env_clear().env("LIGHTFOOT_VECTORS", vectors);
        command.stdin(std::process::Stdio::null()).output().unwrap()
    };
    for vectors in ["avx512", "avx2", "sse2", "portable", ""] {
        assert_eq!(text(&run(vectors, &["-c", r"\b[a-z]{4}\b", "a"])), "9000\n", "{vectors}");
        assert_eq!(text(&run(vectors, &["-c", "sing|song|zing", "a"])), "9000\n", "{vectors}");
    }
    let explained = text(&run("portable", &["--explain", "[a-z]+ing"]));
    assert!(explained.contains("kernel: portable"), "{explained}");
    let wrong = run("mmx", &["a"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(said.contains("LIGHTFOOT_VECTORS=mmx") && said.contains("avx512, avx2, sse2"), "{said}");
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn threads_write_whole_results_of_every_file() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300 {
        let lines: String = (0..number % 5).map(|line| format!("{number} {line}\n")).collect();
        std::fs::write(folder.path().join(format!("{number:03}")), lines + "other\n").unwrap();
    }
    // What is printed for a file stays together, behind one separator, in whatever order.
    let blocks = |words: &[&str], separator: &str| {
        let found = text(&search(words, folder.path()));
        let mut blocks: Vec<String> = found.trim_end().split(separator).map(str::to_owned).collect();
        blocks.sort();
        blocks
    };
    for (flags, separator) in
        [(["--heading", "-n"], "\n\n"), (["-C1", "--no-line-number"], "\n--\n"), (["-c", "-H"], "\n")]
    {
        let ordered = blocks(&[&flags[..], &["--sort=path", "[0-9] ", "."]].concat(), separator);
        assert_eq!(ordered.len(), 240, "{flags:?}");
        for threads in ["-j2", "-j7"] {
            let found = blocks(&[&flags[..], &[threads, "[0-9] ", "."]].concat(), separator);
            assert_eq!(found, ordered, "{flags:?} {threads}");
        }
    }
}
