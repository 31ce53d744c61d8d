//! `lightfoot cache --by object`, `type` and `field` of programs that start others, and of programs
//! that run already: rows of all processes that add up, and what was there before.

mod bench;
mod objects_report;

use bench::{compile, json, lightfoot, signal, Bench};
use objects_report::{first_level, report, rows, sum, MACHINE, MISSES};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lines of each array.
const COUNT: u64 = 20_000;

/// A program that fills an array of lines; a fork of it that walks its copy, whose caches are
/// empty, fills a variable and allocates nothing at that place; and itself once more by an exec,
/// which fills an array of its own.
const FAMILY: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lightfoot_region.h"
#define COUNT 20000L
#define APART __attribute__((noinline, noclone))
struct particle { double volatile mass; long volatile number; char cold[48]; };
static double volatile masses[COUNT] __attribute__((aligned(64)));
APART struct particle *filled(void) {
    struct particle *all = aligned_alloc(64, COUNT * sizeof *all);
    for (long i = 0; i < COUNT; i++) { all[i].mass = i; all[i].number = i; }
    return all;
}
APART void walk(struct particle *all) {
    for (long i = 0; i < COUNT; i++) masses[i] = all[i].mass;
}
int main(int count, char **words) {
    struct particle *particles = filled();
    if (count > 1) return 0;
    region_begin("walk");
    if (fork() == 0) {
        walk(particles);
        _exit(0);
    }
    int status;
    wait(&status);
    region_end("walk");
    if (fork() == 0) {
        execl(words[0], words[0], "again", (char *)0);
        _exit(1);
    }
    wait(&status);
    return status != 0;
}
"#;

fn family(bench: &Bench) -> Option<std::path::PathBuf> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("region/include");
    compile(bench, "family", &["-O1", "-g", "-I", include.to_str().unwrap()], FAMILY)
}

fn named<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    let names: Vec<&Value> = rows.iter().map(|row| &row["name"]).collect();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} among {names:?}"))
}

/// The processes of a report, whose numbers in the system are those of the run.
fn processes(report: &Value) -> Vec<Value> {
    let mut processes = report["processes"].as_array().unwrap().clone();
    for process in &mut processes {
        process["pid"].take();
        process["parent"].take();
    }
    processes
}

/// Asserts that rows add up to the misses of another report.
fn add_up<'a>(rows: impl IntoIterator<Item = &'a Value> + Clone, totals: &Value) {
    for column in MISSES {
        assert_eq!(sum(rows.clone(), column), totals[column].as_u64().unwrap_or(0), "{column}");
    }
}

#[test]
fn objects_of_all_processes_are_summed() {
    let bench = Bench::new();
    let Some(program) = family(&bench) else { return };
    let followed = ["--follow-children"];
    let plain = report(&bench, &program, &followed);
    let by_object = report(&bench, &program, &["--by", "object", "--follow-children"]);
    assert_eq!(by_object["totals"], plain["totals"]);
    assert_eq!(processes(&by_object).len(), 3);
    assert_eq!(processes(&by_object), processes(&plain));
    let objects = rows(&by_object, "objects");
    add_up(objects, &plain["totals"]);
    // One place of allocation, in three images: filled in two, and walked in the third, which has a
    // copy and allocates nothing.
    let particles: Vec<&Value> =
        objects.iter().filter(|row| row["footprint_bytes"] == 64 * COUNT && row["kind"] == "heap").collect();
    assert_eq!(particles.len(), 1, "{particles:?}");
    assert_eq!(first_level(particles[0]), (COUNT, 2 * COUNT));
    assert_eq!(particles[0]["blocks"], 2);
    assert_eq!(first_level(named(objects, "masses")), (0, COUNT / 8), "of the child alone");
    let by_field = report(&bench, &program, &["--by", "field", "--accesses", "--follow-children"]);
    add_up(rows(&by_field, "types").iter().chain(rows(&by_field, "untyped")), &plain["totals"]);
    let particle = named(rows(&by_field, "types"), "particle");
    let field = |name: &str| named(particle["fields"].as_array().unwrap(), name).clone();
    let (mass, number) = (field("mass"), field("number"));
    assert_eq!((&mass["loads"], &mass["stores"]), (&COUNT.into(), &(2 * COUNT).into()));
    assert_eq!((&number["loads"], &number["stores"]), (&0.into(), &(2 * COUNT).into()));
    assert_eq!(first_level(&mass), (COUNT, 2 * COUNT));
    let masses = named(rows(&by_field, "objects"), "masses");
    // The child ends: what it touched of its lines counts.
    assert_eq!((&masses["fetched_bytes"], &masses["used_bytes"]), (&(8 * COUNT).into(), &(8 * COUNT).into()));
}

#[test]
fn a_child_counts_in_the_region_in_which_it_was_forked() {
    let bench = Bench::new();
    let Some(program) = family(&bench) else { return };
    let region = ["--region", "walk", "--follow-children"];
    let plain = report(&bench, &program, &region);
    let report = report(&bench, &program, &[&["--by", "object"], &region[..]].concat());
    for column in MISSES.iter().chain(&["instructions", "loads", "stores"]) {
        assert_eq!(report["totals"][column], plain["totals"][column], "{column}");
    }
    assert_eq!(processes(&report), processes(&plain));
    let objects = rows(&report, "objects");
    add_up(objects, &plain["totals"]);
    let particles = objects.iter().find(|row| row["footprint_bytes"] == 64 * COUNT).unwrap();
    assert_eq!(first_level(particles), (COUNT, 0), "walked in the region, filled outside of it");
}

#[test]
fn a_program_without_children_has_the_rows_that_it_has_alone() {
    let bench = Bench::new();
    let Some(program) = family(&bench) else { return };
    for options in [&["--by", "object"][..], &["--by", "field", "--accesses"]] {
        let run = |more: &[&str]| {
            let lightfoot = lightfoot().within(bench.path()).arg("cache").args(MACHINE).args(options);
            let ran = lightfoot.args(more).args(["--format", "json", "--"]).arg(&program).arg("again").run();
            ran.ends_with(0);
            json(ran.said().as_bytes())
        };
        let (alone, followed) = (run(&[]), run(&["--follow-children"]));
        assert_eq!((&alone["objects"], &alone["totals"]), (&followed["objects"], &followed["totals"]));
        assert!(rows(&alone, "objects").iter().any(|row| row["kind"] == "heap"));
    }
}

/// Has an array that was mapped, a list in its heap, an array on its stack and a variable, and
/// obeys letters: it walks one of them, frees the array and fills a new one, or adds to the list.
const OWNER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define COUNT 20000L
#define APART __attribute__((noinline, noclone))
struct node { struct node *volatile next; long volatile value; char rest[48]; };
static struct node *list;
static long volatile table[COUNT] __attribute__((aligned(64)));
APART long lines(char volatile *all, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum += all[64 * i];
    return sum;
}
APART void add(void) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    list = node;
}
APART long follow(void) {
    long sum = 0;
    for (struct node *node = list; node; node = node->next) sum += node->value;
    return sum;
}
APART long walk(void) {
    long sum = 0;
    for (long i = 0; i < COUNT; i++) sum += table[i];
    return sum;
}
APART char *filled(void) {
    char volatile *all = aligned_alloc(64, COUNT * 64);
    for (long i = 0; i < COUNT; i++) all[64 * i] = 1;
    return (char *)all;
}
int main(void) {
    char own[64 * 1024] __attribute__((aligned(64)));
    memset(own, 1, sizeof own);
    char *all = filled();
    for (long i = 0; i < 1000; i++) add();
    write(1, "ready\n", 6);
    for (char c; read(0, &c, 1) == 1 && c != 'q';) {
        long sum = 0;
        if (c == 'a') sum = lines(all, COUNT);
        if (c == 'l') sum = follow();
        if (c == 's') sum = lines(own, 1024);
        if (c == 'g') sum = walk();
        if (c == 'n') { free(all); all = filled(); }
        if (c == '+') for (long i = 0; i < 100; i++) add();
        write(1, sum < 0 ? "-\n" : "+\n", 2);
    }
    return 7;
}
"#;

#[test]
fn what_a_running_program_had_before_is_a_row_of_its_own() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "owner", &["-O1", "-g"], OWNER) else { return };
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(), "ready\n");
    let (pid, path) = (child.id().to_string(), bench.join("report.json"));
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_lightfoot")).arg("cache").args(MACHINE);
    command.args(["--by", "field", "--format", "json", "--pid", &pid, "-o"]).arg(&path);
    let measuring = command.stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let maps = || std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    while maps().matches("memfd").count() < 6 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not entered");
        std::thread::sleep(Duration::from_millis(2));
    }
    for letter in ["a", "l", "s", "g", "n", "a", "+"] {
        input.write_all(letter.as_bytes()).unwrap();
        assert_eq!(line(), "+\n");
    }
    let number = rustix::process::Pid::from_raw(measuring.id() as i32).unwrap();
    rustix::process::kill_process(number, signal("INT")).unwrap();
    assert!(measuring.wait_with_output().unwrap().status.success());
    input.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let report = json(&std::fs::read(path).unwrap());
    let objects = rows(&report, "objects");
    add_up(objects, &report["totals"]);
    let loads = |row: &Value| first_level(row).0;
    // Beside the lines that the program walks lies what its library has: some lines.
    let some = |count: u64| count..count + 60;
    let had = |name: &str| named(objects, &format!("{name} before the measurement"));
    assert!(some(COUNT).contains(&loads(had("mapped"))), "{}", had("mapped"));
    assert!(some(1000).contains(&loads(had("allocated"))), "{}", had("allocated"));
    assert!(some(1024).contains(&loads(had("entered"))), "{}", had("entered"));
    assert_eq!(loads(named(objects, "table")), COUNT / 8);
    // What was allocated since is known, also where something else lay before.
    let filled = objects.iter().find(|row| row["footprint_bytes"] == 64 * COUNT && row["kind"] == "heap");
    let filled = filled.unwrap_or_else(|| panic!("{objects:?}"));
    assert_eq!((first_level(filled), &filled["blocks"]), ((COUNT, COUNT), &1.into()));
    let node = named(rows(&report, "types"), "node");
    assert!(first_level(node).1 > 0, "{node}");
    let more = objects.iter().find(|row| row["type"] == "node").unwrap();
    assert_eq!(more["blocks"], 100);
}
