//! `diff` of two versions of a program: lines that moved, checkouts in other folders, renamed
//! functions, noise.

mod bench;

use bench::{json, lightfoot, Bench, Ran};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "\
static volatile unsigned sum;
__attribute__((noinline)) static void work(unsigned times) {
  for (unsigned i = 0; i < times; i++)
    sum += i * i;
}
int main(void) {
  work(2000);
  return 0;
}
";

/// Builds a program in a folder of its own, and makes its report of lines and functions; `None`
/// without a compiler.
fn version(bench: &Bench, folder: &str, source: &str) -> Option<PathBuf> {
    let folder = bench.join(folder);
    fs::create_dir_all(folder.join("src")).unwrap();
    let (file, program) = (folder.join("src/program.c"), folder.join("program"));
    fs::write(&file, source).unwrap();
    // The file must not be newer than the program that is made of it.
    let built = Command::new("cc").args(["-g", "-O1", "-o"]).arg(&program).arg(&file).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("not here: cc (comparisons are not tested)");
        return None;
    }
    let report = folder.join("report.json");
    lightfoot()
        .args(["count", "--by", "line", "--format", "json", "-o"])
        .arg(&report)
        .arg(&program)
        .run()
        .ends_with(0);
    Some(report)
}

fn compared(options: &[&str], before: &Path, after: &Path) -> Ran {
    lightfoot().arg("diff").args(options).args(["--ignore", ".so"]).arg(before).arg(after).run()
}

fn text(options: &[&str], before: &Path, after: &Path) -> String {
    String::from_utf8(compared(options, before, after).stdout).unwrap()
}

/// Rows of a comparison: name, name before, and instructions before and after.
fn rows(options: &[&str], before: &Path, after: &Path) -> Vec<(String, Option<String>, [u64; 2])> {
    let ran = compared(&[options, &["--format", "json"]].concat(), before, after);
    ran.ends_with(0);
    let answer = json(&ran.stdout);
    let number = |row: &Value, side: &str| row["change"]["instructions"][side].as_u64().unwrap();
    let row = |row: &Value| {
        let name = row["name"].as_str().unwrap().to_owned();
        let was = row["was"].as_str().map(str::to_owned);
        (name, was, [number(row, "before"), number(row, "after")])
    };
    answer["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn comments_on_top_change_no_row_and_checkouts_compare_clean() {
    let bench = Bench::new();
    let moved = format!("/* two lines\n   of comment */\n{PROGRAM}");
    let Some(before) = version(&bench, "one", PROGRAM) else { return };
    let Some(after) = version(&bench, "two", &moved) else { return };
    assert_eq!(rows(&["--by", "line"], &before, &after), []);
    let said = text(&["--by", "line"], &before, &after);
    assert!(said.contains("note: 1 file of "), "{said}");
    // The user's word decides, and says nothing.
    let folder = |name: &str| bench.join(name).to_str().unwrap().to_owned();
    let mapping = format!("{}={}", folder("one"), folder("two"));
    let said = text(&["--by", "line", "--map-path", &mapping], &before, &after);
    assert!(!said.contains("note:"), "{said}");
}

#[test]
fn a_line_that_costs_more_is_named_as_it_is_now() {
    let bench = Bench::new();
    let slower = format!("/* a comment */\n{}", PROGRAM.replace("work(2000)", "work(3000)"));
    let Some(before) = version(&bench, "one", PROGRAM) else { return };
    let Some(after) = version(&bench, "two", &slower) else { return };
    let found = rows(&["--by", "line"], &before, &after);
    let (name, was, [old, new]) = &found[0];
    assert!(name.ends_with("two/src/program.c:5") || name.ends_with("two/src/program.c:4"), "{found:?}");
    assert!(was.as_deref().is_some_and(|was| was.contains("two/src/program.c:")), "{found:?}");
    assert!(*new > *old * 14 / 10 && *new < *old * 16 / 10, "{found:?}");
    let said = text(&["--by", "line"], &before, &after);
    assert!(said.contains("(was ") && said.contains("+50.0 %"), "{said}");
    let markdown = text(&["--by", "line", "--format", "markdown"], &before, &after);
    assert!(markdown.starts_with("| | before | after | change |\n|---|"), "{markdown}");
    assert!(markdown.contains("\n| row | instr | change |\n|---|---:|---:|\n| `"), "{markdown}");
    // Only the loop's lines have changed much.
    let heavy = rows(&["--by", "line", "--noise", "1%"], &before, &after);
    assert!(!heavy.is_empty() && heavy.iter().all(|row| row.2[1] > row.2[0]), "{heavy:?}");
    assert_eq!(rows(&["--by", "line", "--noise", "1000%"], &before, &after), []);
}

#[test]
fn totals_without_rows_that_a_report_lacks_are_said_to_have_them() {
    let bench = Bench::new();
    let Some(whole) = version(&bench, "one", PROGRAM) else { return };
    let mut report = json(&fs::read(&whole).unwrap());
    report["functions"].as_array_mut().unwrap().truncate(1);
    let short = bench.file("short.json", report.to_string().as_bytes(), 0o644);
    assert!(!text(&[], &whole, &whole).contains("heaviest rows only"));
    assert!(text(&[], &whole, &short).contains("short.json has its heaviest rows only"));
}

#[test]
fn renamed_functions_are_compared_by_their_new_name() {
    let bench = Bench::new();
    let renamed = PROGRAM.replace("work", "toil");
    let Some(before) = version(&bench, "one", PROGRAM) else { return };
    let Some(after) = version(&bench, "two", &renamed) else { return };
    let names = |options: &[&str]| -> Vec<String> {
        rows(options, &before, &after).into_iter().map(|row| row.0).collect()
    };
    assert_eq!(names(&[]), ["toil [program]", "work [program]"]);
    assert_eq!(names(&["--map-name", "work=toil"]), Vec::<String>::new());
    compared(&["--map-name", "work"], &before, &after).fails_with(2).says("expected OLD=NEW");
}
