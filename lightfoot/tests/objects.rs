//! `lightfoot cache --by object`, `type` and `field`: programs whose misses follow from their
//! source, line by line, on a simulated machine of known sizes.

mod bench;
mod objects_report;

use bench::{compile, json, lightfoot, Bench};
use objects_report::{first_level, report, rows, sum, MACHINE, MISSES};
use serde_json::Value;
use std::path::Path;

/// Elements of the arrays, and lines of the table.
const COUNT: u64 = 20_000;

/// An array of structures of one line each, filled and walked; an array of doubles, the same way;
/// a hash join over a table of lines; a list whose nodes are a line each, followed behind the join.
/// Every pass is longer than the cache, so that each line is missed once in each pass.
const PASSES: &str = r#"
#include <stdlib.h>
#define COUNT 20000L
#define APART __attribute__((noinline, noclone))
struct particle { double volatile mass; long volatile number; char cold[48]; };
struct bucket { long volatile key; long volatile value; long unused[6]; };
struct node { struct node *volatile next; long volatile value; char rest[48]; };
struct wide { long volatile first; char between[64]; long volatile last; char behind[48]; };
static struct bucket buckets[COUNT] __attribute__((aligned(64)));
struct node *list;
void *lines(size_t count, size_t size) { return aligned_alloc(64, count * size); }
APART void fill(struct particle *all) {
    for (long i = 0; i < COUNT; i++) { all[i].mass = i; all[i].number = i; }
}
APART double walk(struct particle *all) {
    double sum = 0;
    for (long i = 0; i < COUNT; i++) sum += all[i].mass;
    return sum;
}
APART double apart(double volatile *masses) {
    double sum = 0;
    for (long i = 0; i < COUNT; i++) masses[i] = i;
    for (long i = 0; i < COUNT; i++) sum += masses[i];
    return sum;
}
APART long join(void) {
    long sum = 0;
    for (long i = 0; i < COUNT; i++) { struct bucket *b = &buckets[i * 7919 % COUNT]; b->key = i; b->value = i; }
    for (long i = 0; i < COUNT; i++) { struct bucket *b = &buckets[i * 7919 % COUNT]; if (b->key == i) sum += b->value; }
    return sum;
}
APART void grow(void) {
    for (long i = 0; i < COUNT; i++) {
        struct node *node = lines(1, sizeof *node);
        node->value = i;
        node->next = list;
        list = node;
    }
}
APART long follow(void) {
    long sum = 0;
    for (struct node *node = list; node; node = node->next) sum += node->value;
    return sum;
}
APART long ends(struct wide *all) {
    long sum = 0;
    for (long i = 0; i < COUNT; i++) sum += all[i].first + all[i].last;
    return sum;
}
int main(void) {
    struct particle *particles = lines(COUNT, sizeof *particles);
    fill(particles);
    double sum = walk(particles);
    double *masses = aligned_alloc(64, COUNT * sizeof *masses);
    sum += apart(masses);
    grow();
    sum += join();
    sum += follow();
    struct wide *pairs = lines(COUNT, sizeof *pairs);
    sum += ends(pairs);
    return sum < 0;
}
"#;

/// The type with this name.
fn named<'a>(report: &'a Value, name: &str) -> &'a Value {
    let types = rows(report, "types");
    let names: Vec<&Value> = types.iter().map(|row| &row["name"]).collect();
    types.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} among {names:?}"))
}

fn field<'a>(row: &'a Value, name: &str) -> &'a Value {
    row["fields"].as_array().unwrap().iter().find(|field| field["name"] == name).unwrap()
}

#[test]
fn misses_of_objects_are_those_that_the_source_says_and_add_up_to_those_of_the_run() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "passes", &["-O1", "-g"], PASSES) else { return };
    let report = report(&bench, &program, &["--by", "object"]);
    let objects = rows(&report, "objects");
    let totals = &report["totals"];
    for column in MISSES {
        assert_eq!(sum(objects, column), totals[column].as_u64().unwrap_or(0), "{column}");
    }
    let plain = self::report(&bench, &program, &[]);
    for column in MISSES {
        assert_eq!(totals[column], plain["totals"][column], "{column} of the run without objects");
    }
    // The caller of `lines` tells its blocks apart.
    let frame = |row: &Value, at: usize| {
        let number = row["stack"][at].as_u64().unwrap() as usize;
        rows(&report, "frames")[number]["function"].as_str().unwrap().to_owned()
    };
    let of_lines = |bytes: u64, caller: &str| {
        let is_it = |row: &&Value| {
            row["footprint_bytes"] == bytes && row["kind"] == "heap" && frame(row, 1) == caller
        };
        objects.iter().find(is_it).unwrap_or_else(|| panic!("no blocks of {bytes} bytes from {caller}"))
    };
    let particles = of_lines(64 * COUNT, "main");
    assert_eq!((frame(particles, 0).as_str(), first_level(particles)), ("lines", (COUNT, COUNT)));
    assert_eq!(particles["blocks"], 1);
    // `aligned_alloc` itself writes no node, but headers beside nodes.
    let nodes = of_lines(64 * COUNT, "grow");
    assert_eq!((first_level(nodes).0, &nodes["blocks"]), (COUNT, &Value::from(COUNT)));
    let masses = objects.iter().find(|row| row["footprint_bytes"] == 8 * COUNT).unwrap();
    assert_eq!(first_level(masses), (COUNT / 8, COUNT / 8), "eight of them share a line");
    let buckets = objects.iter().find(|row| row["name"] == "buckets").unwrap();
    assert_eq!((&buckets["kind"], first_level(buckets)), (&Value::from("global"), (COUNT, COUNT)));
    assert_eq!(first_level(of_lines(128 * COUNT, "main")), (2 * COUNT, 0), "each spreads over two lines");
}

#[test]
fn fields_have_the_misses_and_uses_that_the_source_says() {
    let bench = Bench::new();
    for level in ["-O0", "-O2"] {
        let Some(program) = compile(&bench, "passes", &[level, "-g"], PASSES) else { return };
        let report = report(&bench, &program, &["--by", "field", "--accesses"]);
        let typed = rows(&report, "types").iter().chain(rows(&report, "untyped"));
        for column in MISSES {
            let all = report["totals"][column].as_u64().unwrap_or(0);
            assert_eq!(sum(typed.clone(), column), all, "{level}: {column}");
        }
        let particle = named(&report, "particle");
        assert_eq!(particle["size_bytes"], 64);
        let uses = |row: &Value| (row["loads"].as_u64().unwrap(), row["stores"].as_u64().unwrap());
        assert_eq!(first_level(field(particle, "mass")), (COUNT, COUNT), "{level}");
        assert_eq!(uses(field(particle, "mass")), (COUNT, COUNT), "{level}");
        assert_eq!(first_level(field(particle, "number")), (0, 0), "{level}");
        assert_eq!(uses(field(particle, "number")), (0, COUNT), "{level}");
        assert_eq!(uses(field(particle, "cold")), (0, 0), "{level}");
        let node = named(&report, "node");
        assert_eq!(uses(field(node, "next")), (COUNT, COUNT), "{level}");
        let bucket = named(&report, "bucket");
        assert_eq!(
            (uses(field(bucket, "key")), uses(field(bucket, "value"))),
            ((COUNT, COUNT), (COUNT, COUNT))
        );
        // Variables of frames are doubles too; where they share a line with what is used in
        // between depends on where the stack starts.
        let masses =
            rows(&report, "objects").iter().find(|row| row["type"] == "double" && row["kind"] == "heap");
        assert_eq!(first_level(masses.unwrap()), (COUNT / 8, COUNT / 8), "{level}");
        // Both fields that are written share the line that is fetched; then one of them is read.
        let object = rows(&report, "objects").iter().find(|row| row["type"] == "particle").unwrap();
        assert_eq!(object["fetched_bytes"], 2 * 64 * COUNT, "{level}");
        assert_eq!(object["used_bytes"], (16 + 8) * COUNT, "{level}");
        assert!(object["told_by"].as_str().unwrap().starts_with("variable particles"), "{object}");
    }
}

/// Arrays in frames: one of structures, with a field that nobody uses; and two in scopes that
/// exclude each other, so that compilers give them the same bytes. All are longer than the caches.
const FRAMES: &str = r#"
#define COUNT 20000L
#define APART __attribute__((noinline, noclone))
#define ALIGNED __attribute__((aligned(64)))
struct particle { double volatile mass; long volatile number; char cold[48]; };
APART void fill(struct particle *all) {
    for (long i = 0; i < COUNT; i++) { all[i].mass = i; all[i].number = i; }
}
APART double walk(struct particle *all) {
    double sum = 0;
    for (long i = 0; i < COUNT; i++) sum += all[i].mass;
    return sum;
}
APART double apart(double volatile *masses) {
    double sum = 0;
    for (long i = 0; i < 8 * COUNT; i++) masses[i] = i;
    for (long i = 0; i < 8 * COUNT; i++) sum += masses[i];
    return sum;
}
APART double own(void) {
    struct particle particles[COUNT] ALIGNED;
    fill(particles);
    double sum = walk(particles);
    for (long i = 0; i < COUNT; i++) sum += particles[i].number;
    return sum;
}
APART double either(int which) {
    double sum;
    if (which) { struct particle odd[COUNT] ALIGNED; fill(odd); sum = walk(odd); }
    else { double volatile even[8 * COUNT] ALIGNED; sum = apart(even); }
    return sum;
}
int main(void) { return own() + either(0) + either(1) < 0; }
"#;

#[test]
fn variables_in_frames_have_the_misses_that_the_source_says() {
    let bench = Bench::new();
    for level in ["-O0", "-O1", "-O2"] {
        let options = [level, "-g", "-fno-stack-clash-protection"];
        let Some(program) = compile(&bench, "frames", &options, FRAMES) else { return };
        let report = report(&bench, &program, &["--by", "field", "--accesses"]);
        let variable = |name: &str| {
            let is_it = |row: &&Value| row["kind"] == "stack" && row["name"] == name;
            let found = rows(&report, "objects").iter().find(is_it);
            found.unwrap_or_else(|| panic!("no {name} at {level}"))
        };
        let particles = variable("own:particles");
        assert_eq!(first_level(particles), (2 * COUNT, COUNT), "{level}");
        assert_eq!(
            (&particles["footprint_bytes"], &particles["stores"]),
            (&(64 * COUNT).into(), &(2 * COUNT).into())
        );
        // The two arrays of `either` are told apart by the scope of the call.
        assert_eq!(first_level(variable("either:odd")), (COUNT, COUNT), "{level}");
        assert_eq!(first_level(variable("either:even")), (COUNT, COUNT), "{level}");
        assert_eq!(variable("either:even")["loads"], 8 * COUNT);
        let particle = named(&report, "particle");
        assert_eq!(first_level(field(particle, "mass")), (2 * COUNT, 2 * COUNT), "of both arrays, {level}");
        assert_eq!(first_level(field(particle, "number")), (COUNT, 0), "{level}");
        let cold = field(particle, "cold");
        assert_eq!((&cold["loads"], &cold["stores"]), (&0.into(), &0.into()), "{level}");
        for column in MISSES {
            let total = report["totals"][column].as_u64().unwrap_or(0);
            assert_eq!(sum(rows(&report, "objects"), column), total, "{column} at {level}");
        }
    }
}

/// Arrays whose length only the run tells: of structures, which functions use that get its address;
/// and of numbers, in a function that calls nothing.
const LENGTHS: &str = r#"
#define APART __attribute__((noinline, noclone))
struct particle { double volatile mass; long volatile number; char cold[8]; };
APART void fill(struct particle *all, long count) {
    for (long i = 0; i < count; i++) { all[i].mass = i; all[i].number = i; }
}
APART double walk(struct particle *all, long count) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += all[i].mass;
    return sum;
}
APART double own(long count) {
    struct particle particles[count];
    fill(particles, count);
    double sum = walk(particles, count);
    for (long i = 0; i < count; i++) sum += particles[i].number;
    return sum;
}
APART double leaf(long count) {
    double volatile masses[count];
    double sum = 0;
    for (long i = 0; i < count; i++) masses[i] = i;
    for (long i = 0; i < count; i++) sum += masses[i];
    return sum;
}
int main(int arguments, char **values) { return own(20000L * arguments) + leaf(2000L * arguments) < 0; }
"#;

#[test]
fn arrays_of_variable_length_have_the_accesses_that_the_source_says() {
    let bench = Bench::new();
    for level in ["-O0", "-O1", "-O2"] {
        let options = [level, "-g", "-fno-stack-clash-protection"];
        let Some(program) = compile(&bench, "lengths", &options, LENGTHS) else { return };
        let report = report(&bench, &program, &["--by", "field", "--accesses"]);
        let uses = |name: &str| {
            let is_it = |row: &&Value| row["kind"] == "stack" && row["name"] == name;
            let found = rows(&report, "objects").iter().find(is_it);
            let row = found.unwrap_or_else(|| panic!("no {name} at {level}"));
            (row["loads"].as_u64().unwrap(), row["stores"].as_u64().unwrap())
        };
        assert_eq!(uses("own:particles"), (2 * COUNT, 2 * COUNT), "{level}");
        assert_eq!(uses("leaf:masses"), (COUNT / 10, COUNT / 10), "{level}");
        let particle = named(&report, "particle");
        for name in ["mass", "number"] {
            let field = field(particle, name);
            assert_eq!(
                (&field["loads"], &field["stores"]),
                (&COUNT.into(), &COUNT.into()),
                "{name}, {level}"
            );
        }
        let cold = field(particle, "cold");
        assert_eq!((&cold["loads"], &cold["stores"]), (&0.into(), &0.into()), "{level}");
    }
}

/// More values than registers: compilers keep some in the frame from one call to another.
const MOVING: &str = r#"
__attribute__((noinline)) long next(long x) { static volatile long s; s += x; return s; }
__attribute__((noinline, noclone)) void many(long n, long *out) {
    long a = next(1), b = next(2), c = next(3), d = next(4), e = next(5), f = next(6), g = next(7);
    long h = next(8), k = next(9), l = next(10), m = next(11), o = next(12);
    for (long i = 0; i < n; i++) { next(i); }
    out[0] = a; next(1); out[1] = b; next(1); out[2] = c; next(1); out[3] = d; next(2); out[4] = e; next(2);
    out[5] = f; next(2); out[6] = g; next(2); out[7] = h; next(2);
    out[8] = k; out[9] = l; out[10] = m; out[11] = o;
}
int main(int n, char **v) { long out[12]; many(1000 * n, out); return out[5] == 3; }
"#;

#[test]
fn a_variable_that_moves_counts_where_it_lies_in_the_frame() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "moving", &["-O2", "-g"], MOVING) else { return };
    // Another compiler may save nothing, or say nothing of it.
    let lists = std::process::Command::new("readelf").arg("-wo").arg(&program).output();
    let text = lists.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned()).unwrap_or_default();
    if !text.contains("DW_OP_fbreg") {
        return eprintln!("not here: readelf and a compiler that describes saved values");
    }
    let report = report(&bench, &program, &["--by", "object", "--accesses"]);
    let own = |row: &&Value| row["name"].as_str().unwrap().starts_with("many:");
    let found: Vec<&Value> = rows(&report, "objects").iter().filter(own).collect();
    // A value is saved once, and loaded again once or twice.
    let uses = |row: &Value| row["loads"].as_u64().unwrap() + row["stores"].as_u64().unwrap();
    assert!(!found.is_empty(), "{:?}", rows(&report, "objects"));
    assert!(found.iter().all(|row| (1..=4).contains(&uses(row))), "{found:?}");
}

/// A function without calls whose array lies at the stack pointer, as LLVM describes it.
const LEAF: &str = r#"
use std::mem::MaybeUninit;
use std::ptr::{read_volatile, write_volatile};
#[inline(never)]
fn leaf(rounds: u64) -> u64 {
    let mut cells = [const { MaybeUninit::<u64>::uninit() }; 400];
    let first = cells.as_mut_ptr().cast::<u64>();
    for round in 0..rounds {
        for cell in 0..400 {
            // SAFETY: the array has 400 cells.
            unsafe { write_volatile(first.add(cell), round) }
        }
    }
    // SAFETY: the array has 400 cells, and the loop above has written them.
    (0..400).map(|cell| unsafe { read_volatile(first.add(cell)) }).sum()
}
fn main() {
    std::process::exit(i32::from(leaf(10) == 5));
}
"#;

#[test]
fn the_frame_of_a_function_that_calls_nothing_is_known_by_its_unwind_table() {
    let bench = Bench::new();
    let (source, program) = (bench.file("leaf.rs", LEAF.as_bytes(), 0o644), bench.join("leaf"));
    let built = std::process::Command::new("rustc")
        .args(["-C", "opt-level=2", "-g", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return eprintln!("not here: rustc (frames of Rust are not tested)");
    }
    let report = report(&bench, &program, &["--by", "object", "--accesses"]);
    let is_it = |row: &&Value| row["name"].as_str().unwrap().ends_with("leaf:cells");
    let found = rows(&report, "objects").iter().find(is_it);
    let cells = found.unwrap_or_else(|| panic!("no cells in {:?}", rows(&report, "objects")));
    assert_eq!((&cells["loads"], &cells["stores"]), (&400.into(), &4000.into()), "{cells}");
}

#[test]
fn a_page_names_cold_fields_and_an_order_that_saves_lines() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "passes", &["-O2", "-g"], PASSES) else { return };
    let page = |name: &str| {
        let lightfoot = lightfoot().within(bench.path()).arg("cache").args(MACHINE);
        let ran = lightfoot.args(["--by", "field", "--type", name, "--"]).arg(&program).run();
        ran.ends_with(0);
        ran.said().to_owned()
    };
    let particle = page("particle");
    assert!(particle.contains("cold : char[]  never used"), "{particle}");
    assert!(particle.contains("no order of its members"), "{particle}");
    let wide = page("wide");
    assert!(wide.contains("20,000 visits of values touch 40,000 lines, 2.000 each"), "{wide}");
    let squeezed = wide.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed.contains("this order would touch 20,000 lines, 20,000 (50.0 %) fewer"), "{wide}");
    let report = report(&bench, &program, &["--by", "field", "--type", "wide"]);
    let together = &named(&report, "wide")["together"];
    assert_eq!(together["pairs"][0]["fields"], serde_json::json!(["first", "last"]));
    assert_eq!(together["proposal"]["lines"], COUNT);
}

#[test]
fn pages_show_layouts() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "passes", &["-O2", "-g"], PASSES) else { return };
    let page = |options: &[&str]| {
        let out = bench.join("page.html");
        let lightfoot = lightfoot().within(bench.path()).arg("cache").args(MACHINE).args(options);
        lightfoot.args(["--format", "html", "-o"]).arg(&out).arg("--").arg(&program).run().ends_with(0);
        let html = std::fs::read_to_string(&out).unwrap();
        assert!(html.contains("script-src 'none'") && !html.contains("style=\""), "{html}");
        html
    };
    let wide = page(&["--by", "field", "--type", "wide"]);
    assert!(wide.contains("20,000 visits of values touch 40,000 lines, 2.000 each"), "{wide}");
    assert!(wide.contains("20,000 (50.0 %) fewer") && wide.contains("<td class=\"name\">first, last</td>"));
    // As it lies, and in the proposed order.
    assert_eq!(wide.matches("<svg class=\"memory\"").count(), 2, "{wide}");
    let particle = page(&["--by", "field", "--type", "particle"]);
    assert!(particle.contains("never used</span>") && particle.contains("badge hot"), "{particle}");
    assert!(particle.contains("No order of its members that was tried"), "{particle}");
    let types = page(&["--by", "type"]);
    assert!(types.contains("<h2>Types</h2>") && types.contains("<h2>particle"), "{types}");
    // Without accesses nothing is called unused.
    assert!(!types.contains("never used</span>"), "{types}");
    let objects = page(&["--by", "object", "--accesses"]);
    assert!(objects.contains("<h2>Objects</h2>") && objects.contains("from main"), "{objects}");
}

/// Two passes over an array, of which one is in a region, and one over a variable in it.
const REGION: &str = r#"
#include <stdlib.h>
#include "lightfoot_region.h"
#define COUNT 20000L
struct particle { double volatile mass; long volatile number; char cold[48]; };
static double volatile masses[COUNT] __attribute__((aligned(64)));
int main(void) {
    struct particle *particles = aligned_alloc(64, COUNT * sizeof *particles);
    for (long i = 0; i < COUNT; i++) { particles[i].mass = i; particles[i].number = i; }
    region_begin("walk");
    for (long i = 0; i < COUNT; i++) masses[i] = particles[i].mass;
    region_end("walk");
    for (long i = 0; i < COUNT; i++) masses[i] += particles[i].number;
    return masses[COUNT - 1] < 0;
}
"#;

#[test]
fn a_region_has_the_misses_and_accesses_of_its_code_alone() {
    let bench = Bench::new();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("region/include");
    let flags = ["-O1", "-g", "-I", include.to_str().unwrap()];
    let Some(program) = compile(&bench, "walk", &flags, REGION) else { return };
    let region = ["--region", "walk"];
    let plain = report(&bench, &program, &region);
    for options in [&["--by", "object"][..], &["--by", "field", "--accesses"]] {
        let report = report(&bench, &program, &[options, &region].concat());
        assert_eq!(report["region"], "walk");
        for column in MISSES.iter().chain(&["instructions", "loads", "stores"]) {
            assert_eq!(report["totals"][column], plain["totals"][column], "{column}");
        }
        let objects = rows(&report, "objects");
        for column in MISSES {
            let total = plain["totals"][column].as_u64().unwrap_or(0);
            assert_eq!(sum(objects, column), total, "{options:?}: {column}");
        }
        let particles = objects.iter().find(|row| row["footprint_bytes"] == 64 * COUNT).unwrap();
        assert_eq!(first_level(particles), (COUNT, 0), "read in the region, written before it");
        let masses = objects.iter().find(|row| row["name"] == "masses").unwrap();
        assert_eq!(first_level(masses), (0, COUNT / 8));
        if options.len() > 2 {
            let of = |row: &Value, column: &str| row[column].as_u64().unwrap();
            assert_eq!((of(particles, "loads"), of(particles, "stores")), (COUNT, 0));
            assert_eq!((of(masses, "loads"), of(masses, "stores")), (0, COUNT));
            // Behind the region, another miss ends the fetch before its other bytes are used.
            assert_eq!(of(particles, "fetched_bytes"), 64 * COUNT);
            assert!((8 * COUNT..9 * COUNT).contains(&of(particles, "used_bytes")), "{particles}");
            let particle = named(&report, "particle");
            assert_eq!(field(particle, "number")["loads"], 0, "{particle}");
        }
    }
    let never = ["cache", "--by", "object", "--region", "run"];
    let ran = lightfoot().within(bench.path()).args(never).arg("--").arg(&program).run();
    ran.ends_with(1).says("the program never entered region run");
}

/// Policies, prefetchers and victims: every reference that missed is one of an object.
#[test]
fn rows_add_up_on_machines_that_are_not_plain() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "passes", &["-O1", "-g"], PASSES) else { return };
    for machine in ["ice-lake-policies", "sandy-bridge-policies", "skylake-sp-victim", "zen4-victim"] {
        let report = |options: &[&str]| {
            let lightfoot = lightfoot().within(bench.path()).args(["cache", "--machine", machine]);
            let ran = lightfoot.args(["--format", "json"]).args(options).arg("--").arg(&program).run();
            ran.ends_with(0);
            json(ran.said().as_bytes())
        };
        let (plain, by_object) = (report(&[]), report(&["--by", "object"]));
        let objects = rows(&by_object, "objects");
        for column in MISSES {
            let total = plain["totals"][column].as_u64().unwrap_or(0);
            assert_eq!(by_object["totals"][column].as_u64().unwrap_or(0), total, "{machine}: {column}");
            assert_eq!(sum(objects, column), total, "{machine}: {column}");
        }
        // Buckets that follow each other lie pages apart, where no prefetcher goes.
        let buckets = objects.iter().find(|row| row["name"] == "buckets").unwrap();
        assert!(first_level(buckets).0 > COUNT * 9 / 10, "{machine}: {buckets}");
        let by_field = report(&["--by", "field"]);
        let typed = rows(&by_field, "types").iter().chain(rows(&by_field, "untyped"));
        for column in MISSES {
            let total = plain["totals"][column].as_u64().unwrap_or(0);
            assert_eq!(sum(typed.clone(), column), total, "{machine}: {column} by field");
        }
    }
}

#[test]
fn what_cannot_be_combined_is_refused_with_a_sentence() {
    let bench = Bench::new();
    for (options, sentence) in [
        (&["count", "--by", "object"][..], "use lightfoot cache --by object"),
        (&["cache", "--by", "object,line"], "--by object stands alone"),
        (&["cache", "--by", "type", "--layouts", "2"], "it reports one run"),
        (&["cache", "--by", "object", "--format", "flamegraph"], "use text, json, csv or html"),
        (&["cache", "--by", "field", "--branches"], "has no place beside rows of data"),
        (&["cache", "--accesses"], "add --by object"),
        (
            &["cache", "--by", "object", "--accesses", "--machine", "ice-lake-policies"],
            "need an L1D with LRU and no prefetcher",
        ),
        (&["cache", "--by", "object", "--type", "x"], "add --by field"),
        (&["cache", "--by", "object", "--frames", "0"], "expected 1 to 100"),
    ] {
        let ran = lightfoot().within(bench.path()).args(options).args(["--", "/bin/true"]).run();
        let said = ran.said().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(sentence), "{options:?}: {said}");
    }
}
